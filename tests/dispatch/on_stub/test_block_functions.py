"""Block functions in kernels that numba-cuda compiles for a launch."""

import pickle

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockValueError, ResourceError

cuda = pytest.importorskip("numba.cuda")


@bn.jit
def double(x, BLOCK: bn.constexpr):
    at = bn.span(0, BLOCK)
    x[at] *= 2


@pytest.mark.parametrize("link", ["ir", "ltoir"])
def test_the_threads_of_the_launch_are_checked_when_it_is_compiled(link):
    doubled = bn.block_function(double, {"BLOCK": 128}, num_warps=4, link=link)

    @cuda.jit(lto=link == "ltoir")
    def kernel(x):
        doubled(x)

    x = cuda.to_device(np.zeros(100, np.float32))

    with pytest.raises(BlockValueError, match=(
            r"double: called in a block of \(64, 1, 1\) threads, accepted \(128, 1, 1\)")):
        kernel[5, 64](x)
    compiled = kernel.compile((x._numba_type_,))
    assert compiled._codelibrary.get_cubin(cc=(9, 0, "a")).code


@bn.jit
def product(a, b, c, DEPTH: bn.constexpr):
    rows, columns = bn.block(0, 64), bn.block(1, 64)
    total = bn.zeros((64, 64), bn.float32)
    for depth in bn.spans(a.shape[1], DEPTH):
        total += a[rows, depth] @ b[depth, columns]
    c[rows, columns] = total


@pytest.mark.parametrize("is_launched", [True, False])
def test_kernels_of_the_device_have_instructions_of_its_architecture_alone(is_launched):
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4)

    def blocks(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)
    kernel = cuda.jit(blocks)
    a, b = (cuda.to_device(np.zeros((64, 64), np.float16)) for _ in range(2))
    c = cuda.to_device(np.zeros((64, 64), np.float32))

    if is_launched:
        kernel[1, multiply.threads](a, b, c)
        (compiled,) = kernel.overloads.values()
    else:
        compiled = kernel.compile(tuple(array._numba_type_ for array in (a, b, c)))
    text, _ = cuda.compile_ptx(blocks, compiled.argument_types, cc=(9, 0))

    made = compiled._codelibrary.get_asm_str()
    assert "wgmma.mma_async" in made and "tensormap.replace" in made
    assert "wgmma.mma_async" not in text and "mma.sync" in text


def given_by(stub, configuration, kernel, *arrays) -> int:
    """Dynamic shared memory of a launch."""
    kernel[configuration](*arrays)
    return stub.launches[-1].shared


@pytest.mark.parametrize("link", ["ir", "ltoir"])
def test_launches_give_block_functions_their_shared_memory(stub, link):
    """Three slots of both operands, more than the 48 KiB that are static, and the caller's own."""
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4, link=link)

    @cuda.jit(lto=link == "ltoir")
    def blocks(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)

    a, b = (cuda.to_device(np.zeros((64, 64), np.float16)) for _ in range(2))
    arrays = a, b, cuda.to_device(np.zeros((64, 64), np.float32))

    alone = given_by(stub, (1, multiply.threads), blocks, *arrays)
    beside = given_by(stub, (1, multiply.threads, 0, 100), blocks, *arrays)

    assert alone > 3 * 2 * 64 * 64 * 2 and beside == 1024 + alone
    assert stub.shared_limit >= beside


def test_kernels_of_numbas_cache_give_them_too(stub):
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4)

    def blocks(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)
    kernel = cuda.jit(blocks)
    a, b = (cuda.to_device(np.zeros((64, 64), np.float16)) for _ in range(2))
    arrays = a, b, cuda.to_device(np.zeros((64, 64), np.float32))
    alone = given_by(stub, (1, multiply.threads), kernel, *arrays)
    (compiled,) = kernel.overloads.values()

    again = pickle.loads(pickle.dumps(compiled))
    stream = kernel[1, multiply.threads].stream
    again.launch(arrays, (1, 1, 1), (multiply.threads, 1, 1), stream)

    assert stub.launches[-1].shared == alone


def test_a_granted_launch_gives_no_more_than_it_says(stub):
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4, shared_bytes=70 * 1024)

    @cuda.jit
    def blocks(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)

    a, b = (cuda.to_device(np.zeros((64, 64), np.float16)) for _ in range(2))
    arrays = a, b, cuda.to_device(np.zeros((64, 64), np.float32))

    assert given_by(stub, (1, multiply.threads, 0, 70 * 1024), blocks, *arrays) == 70 * 1024
    assert 48 * 1024 < given_by(stub, (1, multiply.threads), blocks, *arrays) <= 70 * 1024


def test_a_launch_with_more_than_the_gpu_has(stub):
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4)

    @cuda.jit
    def blocks(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)

    a, b = (cuda.to_device(np.zeros((64, 64), np.float16)) for _ in range(2))
    arrays = a, b, cuda.to_device(np.zeros((64, 64), np.float32))

    with pytest.raises(ResourceError, match=(
            "block function: needs 49208 bytes of shared memory, beside 204800 of arrays of the "
            "kernel that calls it, accepted 232448 together")):
        blocks[1, multiply.threads, 0, 200 * 1024](*arrays)
    assert not stub.launches

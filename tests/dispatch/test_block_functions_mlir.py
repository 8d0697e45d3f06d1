"""Block functions in kernels of numba-cuda-mlir, linked as LTO IR; the emulator runs their PTX."""


import numpy as np
import pytest
from numba_callers import linked

import blocknumba as bn
from blocknumba.emulator import Module
from blocknumba.errors import BlockError

cuda = pytest.importorskip("numba_cuda_mlir.cuda", reason="numba-cuda-mlir is not installed")
from numba_cuda_mlir import tools  # noqa: E402
from numba_cuda_mlir.numba_cuda.typing.typeof import typeof  # noqa: E402

from blocknumba.dispatch.block_functions import numba_cuda_mlir as adapter  # noqa: E402

FRESH = np.random.default_rng()
CAPABILITY = (9, 0)


@pytest.fixture
def run(monkeypatch):
    """A function that runs a kernel: (function, grid, threads, *arrays and numbers)."""
    monkeypatch.setattr(tools, "get_gpu_compute_capability", lambda *_: CAPABILITY)
    adapter._ltoir.cache_clear()
    pieces = []

    def compiled(*arguments):
        pieces.append(compile_to_ltoir(*arguments))
        return pieces[-1]

    compile_to_ltoir = adapter.compile_to_ltoir
    monkeypatch.setattr(adapter, "compile_to_ltoir", compiled)

    def launch(function, grid, threads, *arguments):
        code, _ = cuda.compile(function, tuple(map(typeof, arguments)), cc=CAPABILITY,
                               device=False, output="ltoir", abi="numba")
        module = Module.parse(linked([code, *pieces], CAPABILITY))
        parameters = [field for argument in arguments for field in fields(argument)]
        module.launch(module.kernels[0], grid, threads, parameters)

    return launch


def fields(argument) -> list:
    """An array as MLIR's lowering passes it: a memref."""
    if not isinstance(argument, np.ndarray):
        return [np.asarray(argument)[()]]
    strides = [stride // argument.itemsize for stride in argument.strides]
    return [argument, argument, 0, *argument.shape, *strides]


@bn.jit
def softmax(x, y, BLOCK: bn.constexpr):
    row, columns = bn.program_id(0), bn.arange(BLOCK)
    y[row, columns] = bn.softmax(x[row, columns], 0, where=columns < x.shape[1])


@bn.jit
def product(a, b, c, DEPTH: bn.constexpr):
    rows, columns = bn.block(0, 64), bn.block(1, 64)
    total = bn.zeros((64, 64), bn.float32)
    for start in bn.range(0, a.shape[1], DEPTH):
        depth = bn.span(start, DEPTH)
        total += a[rows, depth] @ b[depth, columns]
    c[rows, columns] = total


@bn.jit
def fill(x, value, BLOCK: bn.constexpr):
    x[bn.span(0, BLOCK)] = value


def test_rows_of_a_matrix_one_call_after_the_other(run):
    row_softmax = bn.block_function(softmax, {"BLOCK": 1024}, num_warps=4)

    def rows(x, y):
        row = cuda.blockIdx.x
        while row < x.shape[0]:
            row_softmax(row, x, y)
            row += cuda.gridDim.x

    x = FRESH.standard_normal((5, 999)).astype(np.float32)
    y = np.full_like(x, np.nan)

    run(rows, 2, row_softmax.threads, x, y)

    power = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, power / power.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::-1, ::2], lambda x: x.T])
def test_products_of_float16_of_any_strides(run, view):
    multiply = bn.block_function(product, {"DEPTH": 32}, num_warps=4)

    def blocks(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)

    a, b = (view(FRESH.standard_normal((100, 100)).astype(np.float16)) for _ in range(2))
    b = b[:a.shape[1]] if b.shape[0] > a.shape[1] else b
    c = np.full((a.shape[0], b.shape[1]), np.nan, np.float32)

    run(blocks, (2, 2), multiply.threads, a, b, c)

    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=3e-4)


def test_arrays_in_shared_memory(run):
    row_softmax = bn.block_function(softmax, {"BLOCK": 256}, num_warps=2)

    def kernel(x, y):
        row = cuda.shared.array((1, 256), np.float32)
        for column in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
            row[0, column] = x[cuda.blockIdx.x, column]
        row_softmax(0, row, row)
        for column in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
            y[cuda.blockIdx.x, column] = row[0, column]

    x = FRESH.standard_normal((3, 256)).astype(np.float32)
    y = np.full_like(x, np.nan)

    run(kernel, 3, row_softmax.threads, x, y)

    power = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, power / power.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32,
                                   np.float64])
def test_numbers_arrive(run, dtype):
    filled = bn.block_function(fill, {"BLOCK": 32}, num_warps=1)

    def kernel(x, values):
        filled(value=values[1], x=x)

    x, values = np.zeros(20, dtype), np.array([0, 1 if dtype == np.bool_ else 77], dtype)

    run(kernel, 1, filled.threads, x, values)

    assert (x == values[1]).all()


def test_mistakes_are_shown_at_the_call(run):
    row_softmax = bn.block_function(softmax, {"BLOCK": 32}, num_warps=1)

    def kernel(x, y):
        row_softmax(0, 1, x, y)

    with pytest.raises(BlockError) as caught:
        run(kernel, 1, 32, np.zeros((2, 8), np.float32), np.zeros((2, 8), np.float32))

    lines = str(caught.value).splitlines()
    assert lines[0] == "softmax: given 2 program ids before x, y, accepted 1, as many as it reads"
    assert lines[1].startswith("  test_block_functions_mlir.py, line ")
    assert lines[2:] == ["    row_softmax(0, 1, x, y)", "    ^^^^^^^^^^^^^^^^^^^^^^^"]


def test_the_same_function_serves_both_packages(run):
    numba_cuda = pytest.importorskip("numba.cuda")
    filled = bn.block_function(fill, {"BLOCK": 32}, num_warps=1)

    def kernel(x):
        filled(x, 3)

    x = np.zeros(20, np.int32)

    run(kernel, 1, 32, x)

    assert (x == 3).all()
    from numba.cuda.typing.typeof import typeof as typeof_of_numba_cuda
    text, _ = numba_cuda.compile_ptx(kernel, (typeof_of_numba_cuda(x),), cc=CAPABILITY)
    assert ".entry" in text

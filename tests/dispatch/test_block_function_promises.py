"""What callers of block functions promise: kinds of arrays, and dynamic shared memory."""

import pickle

import numpy as np
import pytest
from numba_callers import EMULATED, GPUS, MACHINES, Machine

import blocknumba as bn
from blocknumba.emulator.errors import KernelAssertionError
from blocknumba.errors import BlockTypeError, BlockValueError, ResourceError

cuda = pytest.importorskip("numba.cuda")
from numba import float32  # noqa: E402
from numba.cuda.compiler import compile_cuda  # noqa: E402
from numba.cuda.typing.typeof import typeof  # noqa: E402

FRESH = np.random.default_rng()
GRANTED = 96 * 1024


@pytest.fixture(params=MACHINES)
def emulated(request) -> Machine:
    """Emulated GPUs."""
    return request.param


@pytest.fixture(params=[*MACHINES, *(
    pytest.param(gpu, marks=pytest.mark.gpu(emulated="emulated"), id=f"gpu-{gpu.link}")
    for gpu in GPUS)])
def machine(request) -> Machine:
    """Those, and the GPU where there is one."""
    return request.param


@bn.jit
def product(a, b, c, DEPTH: bn.constexpr):
    rows, columns = bn.block(0, 64), bn.block(1, 64)
    total = bn.zeros((64, 64), bn.float32)
    for start in bn.range(0, a.shape[1], DEPTH):
        depth = bn.span(start, DEPTH)
        total += a[rows, depth] @ b[depth, columns]
    c[rows, columns] = total


@bn.jit
def copy(x, y, R: bn.constexpr, C: bn.constexpr):
    rows, columns = bn.span(0, R), bn.span(0, C)
    y[rows, columns] = x[rows, columns]


def caller_of(multiply):
    """A kernel whose blocks call a product."""
    def blocks(a, b, c):
        multiply(cuda.blockIdx.x, cuda.blockIdx.y, a, b, c)
    return blocks


def check_product(machine: Machine, multiply, shared_bytes: int = 0) -> None:
    m, n, k = 100, 88, 328
    a, b = (FRESH.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)

    machine.run(caller_of(multiply), (2, 2), multiply.threads, a, b, c, shared_bytes=shared_bytes)

    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (np.abs(c - exact) <= 2e-6 * bound).all()


@pytest.mark.parametrize("arrays", ["global", "aligned"])
def test_products_of_arrays_of_a_kind(machine, arrays):
    check_product(machine, bn.block_function(product, {"DEPTH": 64}, num_warps=4, arrays=arrays,
                                             link=machine.link))


def test_products_with_more_shared_memory_than_is_static(machine):
    """Five stages of 16 KiB."""
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4, arrays="global",
                                 shared_bytes=GRANTED, num_stages=5, link=machine.link)

    check_product(machine, multiply, GRANTED)


def test_a_promise_saves_the_code_for_other_arrays():
    lines = {}
    for arrays in ("global", "aligned", "any"):
        multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4, arrays=arrays)
        matrices = [np.zeros((64, 64), dtype) for dtype in (np.float16, np.float16, np.float32)]
        lines[arrays] = len(Machine(EMULATED).ptx(caller_of(multiply), matrices).splitlines())

    assert lines["global"] < lines["aligned"] < lines["any"]


@pytest.mark.parametrize("arrays, view", [
    ("global", lambda x: x[:, 1:33]), ("aligned", lambda x: x[:, 1:33]),
    ("aligned", lambda x: x[:, ::2])])
def test_arrays_that_were_excluded_stop_the_kernel(arrays, view):
    copied = bn.block_function(copy, {"R": 8, "C": 32}, num_warps=1, arrays=arrays, debug=True)

    def kernel(x, y):
        copied(x, y)

    with pytest.raises(KernelAssertionError, match="copy: given an array that arrays= leaves out"):
        Machine(EMULATED).run(kernel, 1, 32, view(np.zeros((8, 64), np.float32)),
                              np.zeros((8, 32), np.float32))


def test_shared_arrays_are_not_in_global_memory():
    copied = bn.block_function(copy, {"R": 8, "C": 32}, num_warps=1, arrays="global", debug=True)

    def kernel(y):
        x = cuda.shared.array((8, 32), np.float32, alignment=16)
        copied(x, y)

    with pytest.raises(KernelAssertionError, match="copy: given an array that arrays= leaves out"):
        Machine(EMULATED).run(kernel, 1, 32, np.zeros((8, 32), np.float32))


def test_less_shared_memory_than_was_promised_stops_the_kernel():
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4, shared_bytes=GRANTED,
                                 num_stages=5, debug=True)
    matrices = [np.zeros((64, 64), dtype) for dtype in (np.float16, np.float16, np.float32)]

    with pytest.raises(KernelAssertionError, match=(
            "product: given less than 82008 bytes of dynamic shared memory")):
        Machine(EMULATED).run(caller_of(multiply), (1, 1), 128, *matrices, shared_bytes=48 * 1024)


def test_a_promise_of_more_than_the_gpu_has():
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4, shared_bytes=10**6)
    matrices = [np.zeros((64, 64), dtype) for dtype in (np.float16, np.float16, np.float32)]

    with pytest.raises(ResourceError, match=(
            "product: shared_bytes: given 1000000, accepted 232448 on sm_90a")):
        Machine(EMULATED).ptx(caller_of(multiply), matrices)


def test_what_a_kernel_of_numbas_cache_needs_is_known():
    """Launches of it give that, where it is read again."""
    filled = bn.block_function(product, {"DEPTH": 64}, num_warps=4, shared_bytes=GRANTED)
    half, single = (typeof(np.zeros((64, 64), dtype)) for dtype in (np.float16, np.float32))
    library = compile_cuda(caller_of(filled), None, (half, half, single), cc=(9, 0, "a")).library

    again = pickle.loads(pickle.dumps(library))

    (known,) = (text.dynamic_bytes for text in again.llvm_strs if hasattr(text, "dynamic_bytes"))
    assert 48 * 1024 < known <= GRANTED


def test_dynamic_arrays_of_the_caller_are_its_own(emulated):
    """Block functions have the end of the launch's shared memory, whatever else there is."""
    multiply = bn.block_function(product, {"DEPTH": 64}, num_warps=4, arrays="global",
                                 shared_bytes=GRANTED, link=emulated.link)
    own = 300  # floats; what is left of the first 2 KiB is nobody's

    def kernel(a, b, c, kept):
        mine = cuda.shared.array(0, float32)
        for i in range(cuda.threadIdx.x, own, cuda.blockDim.x):
            mine[i] = kept[i]
        multiply(0, 0, a, b, c)
        for i in range(cuda.threadIdx.x, own, cuda.blockDim.x):
            kept[i] = mine[i] + 1

    a, b = (FRESH.standard_normal((64, 192)).astype(np.float16) for _ in range(2))
    b, c, kept = np.ascontiguousarray(b.T), np.full((64, 64), np.nan, np.float32), np.arange(
        own, dtype=np.float32)

    emulated.run(kernel, 1, multiply.threads, a, b, c, kept, shared_bytes=2048 + GRANTED)

    np.testing.assert_array_equal(kept, np.arange(1, own + 1))
    exact, bound = (np.matmul(*(f(x.astype(np.float64)) for x in (a, b)))
                    for f in (np.asarray, np.abs))
    assert (np.abs(c - exact) <= 2e-6 * bound).all()


@pytest.mark.parametrize("options, error, message", [
    ({"arrays": "local"}, BlockValueError,
     "copy: given arrays='local', accepted 'any', 'aligned', 'global'"),
    ({"shared_bytes": 0}, BlockTypeError,
     "copy: shared_bytes: given 0, accepted None or a number of bytes"),
    ({"shared_bytes": "48K"}, BlockTypeError,
     "copy: shared_bytes: given '48K', accepted None or a number of bytes")])
def test_promises_that_mean_nothing(options, error, message):
    with pytest.raises(error) as caught:
        bn.block_function(copy, {"R": 8, "C": 32}, num_warps=1, **options)

    assert str(caught.value) == message

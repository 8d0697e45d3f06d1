"""PTX that libNVVM writes for kernels of numba-cuda runs right, for every generation of targets."""

import math
from functools import cache

import numpy as np
import pytest

from blocknumba.emulator import Module

cuda = pytest.importorskip("numba.cuda")

CAPABILITIES = [(8, 0), (9, 0), (10, 0)]


def softmax(x, y):
    """One block to a row of 256 columns."""
    partial = cuda.shared.array(32, np.float32)
    thread, row = cuda.threadIdx.x, cuda.blockIdx.x
    value = x[row, thread]
    largest = value
    for distance in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(-1, largest, distance))
    if thread % 32 == 0:
        partial[thread // 32] = largest
    cuda.syncthreads()
    for warp in range(cuda.blockDim.x // 32):
        largest = max(largest, partial[warp])
    cuda.syncthreads()
    power = math.exp(value - largest)
    total = power
    for distance in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(-1, total, distance)
    if thread % 32 == 0:
        partial[thread // 32] = total
    cuda.syncthreads()
    total = np.float32(0)
    for warp in range(cuda.blockDim.x // 32):
        total += partial[warp]
    y[row, thread] = power / total


def transpose(x, y):
    """Tiles of 16 by 16 through padded shared memory."""
    tile = cuda.shared.array((16, 17), np.int32)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    tile[row, column] = x[cuda.blockIdx.y * 16 + row, cuda.blockIdx.x * 16 + column]
    cuda.syncthreads()
    y[cuda.blockIdx.x * 16 + row, cuda.blockIdx.y * 16 + column] = tile[column, row]


def histogram(x, counts):
    """A grid-stride loop of atomics."""
    for index in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, x[index] % counts.size, 1)


@cache
def compiled(function, signature, capability):
    """The module of a kernel, and its name."""
    text, _ = cuda.compile(function, signature, cc=capability, output="ptx", abi="numba",
                           device=False)
    found = Module.parse(text)
    assert found.unknown_instructions() == []
    return found, found.kernels[0]


def fields(array):
    """What numba-cuda passes for an array: two nulls, sizes, pointer, shape and strides."""
    return [0, 0, array.size, array.itemsize, array, *array.shape, *array.strides]


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_softmax_through_shuffles_and_shared_memory(capability):
    found, name = compiled(softmax, "void(float32[:, ::1], float32[:, ::1])", capability)
    x = np.random.default_rng(0).standard_normal((3, 256)).astype(np.float32)
    y = np.zeros_like(x)
    report = found.launch(name, 3, 256, [*fields(x), *fields(y)])
    power = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, power / power.sum(1, keepdims=True), rtol=1e-5)
    assert report.bank_conflicts == 0 and report.sectors_per_request == 4


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_transpose_through_padded_shared_memory(capability):
    found, name = compiled(transpose, "void(int32[:, ::1], int32[:, ::1])", capability)
    x = np.arange(32 * 48, dtype=np.int32).reshape(32, 48)
    y = np.zeros((48, 32), np.int32)
    report = found.launch(name, (3, 2), (16, 16), [*fields(x), *fields(y)])
    assert (y == x.T).all()
    assert report.total.sectors == report.total.ideal_sectors


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_histogram_with_atomics(capability):
    found, name = compiled(histogram, "void(int32[::1], int32[::1])", capability)
    x = np.random.default_rng(1).integers(0, 1000, 3000).astype(np.int32)
    counts = np.zeros(17, np.int32)
    found.launch(name, 3, 128, [*fields(x), *fields(counts)])
    assert counts.tolist() == np.bincount(x % 17, minlength=17).tolist()


# libdevice's functions, with the error in units of the last place that CUDA documents.
# Source: CUDA Programming Guide, "Mathematical Functions".
_FUNCTIONS = {
    "sin": (math.sin, -9.0, 9.0, 2), "cos": (math.cos, 1e4, 2e6, 2), "tan": (math.tan, -1, 1, 4),
    "exp": (math.exp, -80, 80, 2), "log": (math.log, 1e-6, 1e6, 1), "tanh": (math.tanh, -5, 5, 2),
    "erf": (math.erf, -3, 3, 2), "lgamma": (math.lgamma, 3.0, 50.0, 6),
    "expm1": (math.expm1, -2, 2, 1), "log1p": (math.log1p, -0.5, 4, 1),
    "asin": (math.asin, -0.9, 0.9, 2), "atan": (math.atan, -9, 9, 2),
    "sqrt": (math.sqrt, 0.1, 1e5, 0.5), "log2": (math.log2, 3, 1e9, 1),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_the_mathematical_library_is_as_exact_as_documented(name, dtype):
    function, low, high, max_units = _FUNCTIONS[name]

    def apply(x, y):
        index = cuda.grid(1)
        if index < x.size:
            y[index] = function(x[index])
    kind = np.dtype(dtype).name
    found, kernel = compiled(apply, f"void({kind}[::1], {kind}[::1])", (9, 0))
    x = np.linspace(low, high, 150).astype(dtype)
    y = np.zeros_like(x)
    found.launch(kernel, 2, 96, [*fields(x), *fields(y)])
    exact = np.array([function(float(value)) for value in x])
    units = np.abs(y - exact) / np.spacing(np.abs(exact).astype(dtype) + np.finfo(dtype).tiny)
    assert units.max() <= max_units + 1  # 1: what Python's own function may be off by, and rounding

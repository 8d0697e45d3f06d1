"""Host time of one launch of 4 arguments (3 arrays, 1 int): pytest perf/bench_launch.py (GPU)."""

import ctypes

import pytest

pytest.importorskip("torch")
pytest.importorskip("cupy")

import cupy  # noqa: E402
import torch  # noqa: E402
import triton_kernels  # noqa: E402
from example_kernels import vector_add  # noqa: E402
from measure import CLOCK, host_timer, interleaved  # noqa: E402
from numba import cuda  # noqa: E402

from blocknumba.dispatch.driver import require_driver  # noqa: E402

SIZE, BLOCK, THREADS = 1024, 1024, 128
ROUNDS, REPEATS = 25, 400
SOURCE = """extern "C" __global__ void add(const float* x, const float* y, float* out, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) out[i] = x[i] + y[i];
}"""


@cuda.jit
def add(x, y, out, size):
    i = cuda.grid(1)
    if i < size:
        out[i] = x[i] + y[i]


def packed_driver_launch(arrays: list[cupy.ndarray]):
    """cuLaunchKernel with arguments packed beforehand: what no launcher in Python can beat."""
    api = require_driver("perf").api
    function = cupy.RawKernel(SOURCE, "add").kernel.ptr
    values = [*(ctypes.c_void_p(array.data.ptr) for array in arrays), ctypes.c_int(SIZE)]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    address = ctypes.addressof(pointers)
    keep = values, pointers

    def launch(keep=keep) -> None:
        api.cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, 0, address, 0)

    return launch


def launches() -> dict:
    """Who -> one launch, each with arrays of its own kind."""
    in_cupy = [cupy.zeros(SIZE, cupy.float32) for _ in range(3)]
    in_torch = [torch.zeros(SIZE, device="cuda") for _ in range(3)]
    in_numba = [cuda.device_array(SIZE, "f4") for _ in range(3)]
    ours, theirs = vector_add.add_pointers, triton_kernels.add
    raw = cupy.RawKernel(SOURCE, "add")
    return {
        "blocknumba, CuPy": lambda: ours[1](*in_cupy, SIZE, BLOCK=BLOCK),
        "blocknumba, Torch": lambda: ours[1](*in_torch, SIZE, BLOCK=BLOCK),
        "blocknumba, Numba": lambda: ours[1](*in_numba, SIZE, BLOCK=BLOCK),
        "driver, packed": packed_driver_launch(in_cupy),
        "CuPy RawKernel": lambda: raw((1,), (THREADS,), (*in_cupy, cupy.int32(SIZE))),
        "torch.add": lambda: torch.add(in_torch[0], in_torch[1], out=in_torch[2]),
        "Triton, Torch": lambda: theirs[(1,)](*in_torch, SIZE, BLOCK=BLOCK),
        "numba-cuda, Numba": lambda: add[1, THREADS](*in_numba, SIZE),
    }


@pytest.fixture(scope="module")
def samples():
    return interleaved(launches(), host_timer, ROUNDS, REPEATS,
                       between=cupy.cuda.runtime.deviceSynchronize)


@pytest.mark.gpu
@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("arrays", ["CuPy", "Torch", "Numba"])
def test_launch(benchmark, samples, arrays):
    CLOCK.replay(benchmark, samples, f"blocknumba, {arrays}")

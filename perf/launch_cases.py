"""One launch of 4 arguments (3 arrays, 1 int), by blocknumba and its peers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import cupy
import torch
import triton_kernels
from example_kernels import vector_add
from measure import Run, Samples, host_timer, interleaved
from numba import cuda

from blocknumba.dispatch.driver import require_driver

SIZE, BLOCK, THREADS = 1024, 1024, 128
ROUNDS, REPEATS = 25, 400
SUBJECTS = ("blocknumba, CuPy", "blocknumba, Torch", "blocknumba, Numba")
SOURCE = """extern "C" __global__ void add(const float* x, const float* y, float* out, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) out[i] = x[i] + y[i];
}"""


@cuda.jit
def add(x, y, out, size):
    i = cuda.grid(1)
    if i < size:
        out[i] = x[i] + y[i]


def packed_driver_launch(arrays: list[cupy.ndarray]) -> Callable[[], None]:
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


def launches() -> dict[str, Run]:
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


def measure_launches() -> Samples:
    """Host seconds of one launch, of REPEATS queued back to back."""
    return interleaved(launches(), host_timer, ROUNDS, REPEATS,
                       between=cupy.cuda.runtime.deviceSynchronize)

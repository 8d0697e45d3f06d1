"""One launch of some arguments, arrays and ints, by blocknumba and its peers."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence

import cupy
import torch
from launch_kernels import ARGUMENTS, BLOCK, c_source, numba_kernel, tile_kernel, written_call
from measure import Run, Samples, host_timer, interleaved
from numba import cuda

from blocknumba.dispatch.launch.driver import require_driver

ROUNDS, REPEATS = 25, 400
SUBJECTS = ("blocknumba, CuPy", "blocknumba, Torch", "blocknumba, Numba")
BOUND = "blocknumba, bound"
DRIVER, TRITON = "driver, packed", "Triton, Torch"
OTHERS = ("blocknumba, CuPy, other arrays each time", "blocknumba, Torch, other arrays each time",
          "Triton, Torch, other arrays each time")
_NAMED = f"BLOCK={BLOCK}"
_MAKE = {"CuPy": lambda: cupy.zeros(BLOCK, cupy.float32),
         "Torch": lambda: torch.zeros(BLOCK, device="cuda"),
         "Numba": lambda: cuda.device_array(BLOCK, "f4")}


def arguments(count: int, library: str) -> list[object]:
    """Arrays of a library, and then ints, none of which is 1."""
    arrays, numbers = ARGUMENTS[count]
    return [*(_MAKE[library]() for _ in range(arrays)), *range(3, 3 + numbers)]


def packed_driver_launch(function: int, given: Sequence[object]) -> Run:
    """cuLaunchKernel by cuda-bindings, with arguments packed beforehand."""
    launch = require_driver("perf").api.cuLaunchKernel
    values = [ctypes.c_int(value) if isinstance(value, int) else ctypes.c_void_p(value.data.ptr)
              for value in given]
    pointers = (ctypes.c_void_p * max(1, len(values)))(
        *(ctypes.addressof(value) for value in values))
    address, keep = ctypes.addressof(pointers), (values, pointers, given)
    return lambda keep=keep: launch(function, 1, 1, 1, BLOCK, 1, 1, 0, 0, address, 0)


def launches(count: int) -> dict[str, Run]:
    """Who -> one launch with a number of arguments, each with arrays of its own kind."""
    ours, theirs = tile_kernel("blocknumba", count), tile_kernel("Triton", count)
    raw, in_cupy = cupy.RawKernel(c_source(count), "total"), arguments(count, "CuPy")
    passed = (*in_cupy[:ARGUMENTS[count][0]], *map(cupy.int32, in_cupy[ARGUMENTS[count][0]:]))
    bound = ours.bind(1, *in_cupy, BLOCK=BLOCK)
    return {
        **{f"blocknumba, {library}": written_call(ours, "1", arguments(count, library), _NAMED)
           for library in _MAKE},
        BOUND: lambda: bound(),
        DRIVER: packed_driver_launch(raw.kernel.ptr, in_cupy),
        "CuPy RawKernel": lambda: raw((1,), (BLOCK,), passed),
        TRITON: written_call(theirs, "(1,)", arguments(count, "Torch"), _NAMED),
        "numba-cuda, Numba": written_call(numba_kernel(count), f"1, {BLOCK}",
                                          arguments(count, "Numba")),
    }


def launches_of_other_arrays() -> dict[str, Run]:
    """Who -> one launch of 4 arguments, with one of 8 sets of arrays in turn."""
    kernels = {"blocknumba": tile_kernel("blocknumba", 4), "Triton": tile_kernel("Triton", 4)}
    return {name: _in_turn(kernels[who], "1" if who == "blocknumba" else "(1,)", library)
            for name in OTHERS for who, library, _ in (name.split(", ", 2),)}


def measure_launches(count: int) -> Samples:
    """Host seconds of one launch with a number of arguments, of REPEATS queued back to back."""
    runs = launches(count)
    return _measured(runs | launches_of_other_arrays() if count == 4 else runs)


def _measured(runs: dict[str, Run]) -> Samples:
    for run in runs.values():  # compiled, and on the shortest path from the second launch on
        run(), run()
    return interleaved(runs, host_timer, ROUNDS, REPEATS,
                       between=cupy.cuda.runtime.deviceSynchronize)


def _in_turn(kernel: object, grid: str, library: str) -> Callable[[], object]:
    turns = itertools.cycle([written_call(kernel, grid, arguments(4, library), _NAMED)
                             for _ in range(8)])
    return lambda: next(turns)()

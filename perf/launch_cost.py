"""Our own host time of a launch: what it costs against a driver that does nothing.

    LD_LIBRARY_PATH=FOLDER python perf/launch_cost.py

FOLDER has tests/dispatch/stub_driver.c, built as libcuda.so.1.  Prints JSON: nanoseconds of one
launch of Numba arrays, by what is passed, each the least of many rounds.
"""

from __future__ import annotations

import ctypes
import itertools
import json
from typing import NamedTuple

from launch_kernels import ARGUMENTS, BLOCK, tile_kernel, written_call
from measure import Run, host_timer, interleaved
from numba import cuda

import blocknumba as bn
from blocknumba.dispatch.launch.driver import require_driver

ROUNDS, REPEATS = 60, 200
_NAMED = f"BLOCK={BLOCK}"


class Four(NamedTuple):
    """The arguments of a kernel."""

    x: object
    y: object
    z: object
    n: int


def add_all(x, y, z, n, BLOCK):
    r = bn.span(0, BLOCK)
    x[r] = y[r] + z[r] + n


@bn.jit
def in_a_tuple(given, BLOCK: bn.constexpr):
    add_all(given[0], given[1], given[2], given[3], BLOCK)


@bn.jit
def in_fields(given, BLOCK: bn.constexpr):
    add_all(given.x, given.y, given.z, given.n, BLOCK)


@bn.jit
def by_a_star(*given, BLOCK: bn.constexpr):
    add_all(given[0], given[1], given[2], given[3], BLOCK)



def launches() -> dict[str, Run]:
    """What is passed -> one launch; "cuda-bindings" is its cuLaunchKernel alone."""
    runs: dict[str, Run] = {}
    for count in ARGUMENTS:
        kernel, given = tile_kernel("blocknumba", count), _arguments(count)
        runs[f"{count} arguments"] = written_call(kernel, "1", given, _NAMED)
        bound = kernel.bind(1, *given, BLOCK=BLOCK)
        runs[f"{count} arguments, bound"] = lambda bound=bound: bound()
    kernel = tile_kernel("blocknumba", 4)
    turns = itertools.cycle([written_call(kernel, "1", _arguments(4), _NAMED) for _ in range(4)])
    runs["4 arguments, other arrays each time"] = lambda: next(turns)()
    given = _arguments(4)
    runs["4 arguments in a tuple"] = written_call(in_a_tuple, "1", [tuple(given)], _NAMED)
    runs["4 arguments in a named tuple"] = written_call(in_fields, "1", [Four(*given)], _NAMED)
    runs["4 arguments by a star"] = written_call(by_a_star, "1", given, _NAMED)
    api = require_driver("perf").api
    parameters = ctypes.addressof((ctypes.c_void_p * 1)())
    runs["cuda-bindings"] = lambda: api.cuLaunchKernel(16, 1, 1, 1, 128, 1, 1, 0, 0, parameters, 0)
    return runs


def _arguments(count: int) -> list[object]:
    arrays, numbers = ARGUMENTS[count]
    return [*(cuda.device_array(BLOCK, "f4") for _ in range(arrays)), *range(3, 3 + numbers)]


def main() -> None:
    """Measure and print."""
    runs = launches()
    stub = ctypes.CDLL("libcuda.so.1")
    for run in runs.values():  # compiled, and on the shortest path from the second launch on
        run(), run()
    stub.stub_quiet(1)
    samples = interleaved(runs, host_timer, ROUNDS, REPEATS)
    print(json.dumps({name: round(min(seconds) * 1e9) for name, seconds in samples.items()}))


if __name__ == "__main__":
    main()

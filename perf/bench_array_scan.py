"""Cumulative sums of a whole array next to CuPy's (CUB) and to a copy, on one GPU.

    python perf/bench_array_scan.py [--output FILE]

The kernel is examples/scan.py's, with the fastest of a few blocks, numbers of warps and of registers;
the three take turns, and ratios are medians over rounds. CuPy copies its argument and then runs CUB in
place: what CUB takes by itself is printed as CuPy's time less that of the copy. Results are
compared with NumPy's first: integers are equal, floats are whole numbers whose sums are exact.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import cupy
import numpy as np
from cupy._core import set_routine_accelerators
from measure import Run, fastest, gpu_timer, interleaved, median_ratio, medians

import blocknumba as bn

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import scan  # noqa: E402

ROUNDS, REPEATS = 20, 10
SIZES = (1 << 24, 1 << 26, 1 << 28)
DTYPES = ("int32", "float32", "int64")
WINDOW = 32
# elements of a program, warps, registers of a thread at most
SIZES_OF_PROGRAMS = ((2048, 4, None), (4096, 4, 64), (4096, 4, 128), (8192, 4, 128), (8192, 8, 64),
                     (8192, 8, 128))
SUBJECT, PEER, COPY = "blocknumba", "CuPy", "copy"


def candidates(x: cupy.ndarray, out: cupy.ndarray) -> Iterator[tuple[str, Run]]:
    """The kernel in each size, with states of its own."""
    for block, warps, registers in SIZES_OF_PROGRAMS:
        programs = bn.cdiv(x.size, block)
        states, ticket = cupy.zeros((2, programs), cupy.int64), cupy.zeros(1, cupy.int64)
        run = scan.cumulative_sum.bind(programs, x, out, states, ticket, BLOCK=block,
                                       WINDOW=WINDOW, num_warps=warps, maxnreg=registers)
        yield f"block {block}, {warps} warps, registers {registers or 'as they come'}", run


def runs_of(size: int, dtype: str) -> tuple[str, Mapping[str, Run]]:
    """What our fastest is, and the competitors.

    Errors: AssertionError where a result is not NumPy's.
    """
    values = np.random.default_rng().integers(-3, 4, size).astype(dtype)
    x = cupy.asarray(values)
    ours, theirs, copied = (cupy.full(size, 77, dtype) for _ in range(3))
    expected = cupy.asarray(np.cumsum(values, dtype=dtype))
    named = dict(candidates(x, ours))
    for name, run in named.items():
        for _ in range(3):  # states are used again
            ours.fill(77)
            run()
            assert bool((ours == expected).all()), f"wrong sums: {name}"
    best = fastest(named.values(), gpu_timer())

    def cumsum() -> None:
        cupy.cumsum(x, out=theirs)

    cumsum()
    assert bool((theirs == expected).all()), "CuPy's sums differ"
    name = next(name for name, run in named.items() if run is best)
    return name, {SUBJECT: best, PEER: cumsum, COPY: lambda: cupy.copyto(copied, x)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments, found = parser.parse_args(), {}
    set_routine_accelerators(["cub"])
    for size, dtype in itertools.product(SIZES, DTYPES):
        name, runs = runs_of(size, dtype)
        samples = interleaved(runs, gpu_timer(), ROUNDS, REPEATS)
        times = {who: seconds * 1e6 for who, seconds in medians(samples).items()}
        ratios = {who: median_ratio(samples, who, SUBJECT) for who in (PEER, COPY)}
        times["CUB"] = times[PEER] - times[COPY]
        ratios["CUB"] = times["CUB"] / times[SUBJECT]
        found[f"{dtype} {size}"] = {"us": times, "ratios": ratios, "kernel": name}
        print(f"{dtype:8} 2**{size.bit_length() - 1}  "
              + "  ".join(f"{who} {us:8.1f} us" for who, us in times.items())
              + "".join(f"  {who} / {SUBJECT} {ratio:.3f}" for who, ratio in ratios.items())
              + f"  ({name})", flush=True)
    if arguments.output:
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        arguments.output.write_text(json.dumps(
            {"card": properties["name"].decode(), "cupy": cupy.__version__, "cases": found},
            indent=1))


if __name__ == "__main__":
    main()

"""Tiles that the compiler chooses (`bn.auto`) on the CPU, next to the best of a list of each kind.

    python perf/bench_auto_cpu.py                    print a table
    python perf/bench_auto_cpu.py --output FILE      write it too
    python perf/bench_auto_cpu.py --only softmax     some kinds

All configurations of a list are timed in turns; the fastest is the peer.
The constants of the model were fitted without the shapes marked "frozen".
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from auto_kernels import column_sums, matmul, softmax, transpose
from example_kernels import heat
from measure import Run, host_timer, interleaved, median_ratio, medians

import blocknumba as bn
from blocknumba.dispatch.launch.native import thread_count

AUTO, BEST = "bn.auto", "best of the list"
ROUNDS, FINAL_ROUNDS = 2, 9
ENOUGH_SECONDS = 2e-3  # of one timing
FLOAT32, FLOAT64, FROZEN = np.float32, np.float64, " frozen"


@dataclass(frozen=True)
class Case:
    """One kernel on some arrays.

    axes: (constant, extent of an array) along each axis of the grid.
    lists: the extents that the peer tries, by name.
    arguments: those before the constants.   constants: those that are not chosen.
    """

    name: str
    kernel: object
    arguments: tuple
    axes: tuple[tuple[str, int], ...]
    lists: dict[str, tuple[int, ...]]
    constants: dict[str, object]

    def launch(self, extents: dict[str, object]) -> Run:
        """A launch with some extents, at the least cost: what is compared are tiles."""
        def grid(given: dict[str, int]) -> tuple[int, ...]:
            return tuple(bn.cdiv(size, given[name]) for name, size in self.axes)
        return self.kernel.bind(grid, *self.arguments, **self.constants, **extents)

    def choices(self) -> Iterator[dict[str, int]]:
        """All configurations of the list."""
        for extents in itertools.product(*self.lists.values()):
            yield dict(zip(self.lists, extents))


ROWS = {"ROWS": (1, 2, 4, 8, 16, 32, 64)}
GEMM = {"BM": (16, 32, 64, 128), "BN": (32, 64, 128, 256), "BK": (32, 128, 512)}
SQUARES = {"BM": (8, 16, 32, 64, 128), "BN": (8, 16, 32, 64, 128, 256)}
STENCIL = {"ROWS": (1, 4, 16, 64), "COLUMNS": (32, 64, 256, 1024)}
SUMS = {"ROWS": (1, 4, 16, 64, 256), "COLUMNS": (16, 64, 256, 1024)}


def cases() -> Iterator[Case]:
    """All cases."""
    for rows, columns, mark in ((4096, 1000, ""), (256, 8192, ""), (1024, 3000, FROZEN)):
        x = normal(rows, columns)
        yield Case(f"softmax {rows} x {columns}{mark}", softmax, (x, np.empty_like(x)),
                   (("ROWS", rows),), ROWS, {"COLUMNS": bn.next_power_of_2(columns)})
    for M, N, K, dtype in ((512, 512, 512, FLOAT32), (1024, 256, 1024, FLOAT32),
                           (512, 512, 512, FLOAT64)):
        x, w = normal(M, K, dtype=dtype), normal(K, N, dtype=dtype)
        yield Case(f"matmul {M} x {N} x {K}, {dtype.__name__}", matmul,
                   (x, w, np.empty((M, N), FLOAT32)), (("BM", M), ("BN", N)), GEMM, {})
    for side in (512, 2048):
        x = normal(side, side)
        yield Case(f"stencil {side}", heat.step, (x, np.empty_like(x), FLOAT32(0.2)),
                   (("ROWS", side), ("COLUMNS", side)), STENCIL, {})
    for rows, columns, mark in ((1024, 4096, ""), (8192, 512, ""), (2000, 3000, FROZEN)):
        x = normal(rows, columns)
        yield Case(f"column sums {rows} x {columns}{mark}", column_sums,
                   (x, np.empty(columns, FLOAT32)), (("COLUMNS", columns),), SUMS, {})
    for side, dtype, mark in ((2048, FLOAT32, ""), (1000, FLOAT64, ""), (1500, FLOAT32, FROZEN)):
        x = normal(side, side, dtype=dtype)
        yield Case(f"transpose {side}, {dtype.__name__}{mark}", transpose, (x, np.empty_like(x)),
                   (("BM", side), ("BN", side)), SQUARES, {})


def normal(*shape: int, dtype: type = FLOAT32) -> np.ndarray:
    """Random numbers."""
    return np.random.default_rng(0).standard_normal(shape, np.float32).astype(dtype)


def launches(case: Case) -> dict[str, Run]:
    """The configurations of a case's list by their names, compiled."""
    runs = {", ".join(f"{name}={size}" for name, size in extents.items()): case.launch(extents)
            for extents in case.choices()}
    with ThreadPoolExecutor(thread_count()) as pool:
        list(pool.map(lambda run: run(), runs.values()))
    return runs


def measured(case: Case) -> dict[str, object]:
    """The choice, the best of the list, and the ratio of their times."""
    auto = case.launch(dict.fromkeys(case.lists, bn.auto))
    choice = case.kernel.tiles.latest
    runs = launches(case)
    once = statistics.median(host_timer(run, 1) for run in runs.values())
    repeats = max(1, math.ceil(ENOUGH_SECONDS / once))
    times = medians(interleaved(runs, host_timer, ROUNDS, repeats))
    best = min(times, key=times.get)
    repeats = max(1, math.ceil(ENOUGH_SECONDS / times[best]))
    samples = interleaved({AUTO: auto, BEST: runs[best]}, host_timer, FINAL_ROUNDS, repeats)
    chosen = ", ".join(f"{name}={size}" for name, size in choice.constants().items())
    return {"chosen": chosen, "best": best, "configurations": len(runs),
            "us": {who: seconds * 1e6 for who, seconds in medians(samples).items()},
            "ratio": median_ratio(samples, BEST, AUTO),
            "listed us": {name: round(seconds * 1e6, 2) for name, seconds in sorted(
                times.items(), key=lambda item: item[1])}}


def main() -> None:
    """Print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    found = {}
    for case in cases():
        if given.only not in case.name:
            continue
        row = found[case.name] = measured(case)
        print(f"{case.name:32} {row['ratio']:.3f}  {row['chosen']:24} best {row['best']}",
              flush=True)
    ratios = [row["ratio"] for row in found.values()]
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    print(f"geometric mean {mean:.3f}, least {min(ratios):.3f}, {thread_count()} threads")
    if given.output:
        given.output.write_text(json.dumps(
            {"threads": thread_count(), "mean": mean, "least": min(ratios), "cases": found},
            indent=1))


if __name__ == "__main__":
    main()

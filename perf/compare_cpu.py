"""Kernels on the CPU beside NumPy and Numba, interleaved.

    python perf/compare_cpu.py --rounds 20 --json perf/results/cpu.json

A ratio is the peer's time by ours, of one round; the table has its quartiles.  The peers' threads
are told to sleep once their work is done: those that wait awake take a processor of who is next.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

# read when the libraries are loaded
os.environ |= {"OPENBLAS_THREAD_TIMEOUT": "4", "OMP_WAIT_POLICY": "passive"}

import numba  # noqa: E402
import numpy as np  # noqa: E402

import blocknumba as bn  # noqa: E402

ROWS, COLUMNS, LENGTH = 4096, 1024, 1 << 24
Run = Callable[[], object]


@bn.jit(device="cpu")
def add_kernel(x, y, out, n, BLOCK: bn.constexpr):
    i = bn.program_id(0) * BLOCK + bn.arange(0, BLOCK)
    inside = i < n
    bn.store(out + i, bn.load(x + i, inside) + bn.load(y + i, inside), inside)


@bn.jit(device="cpu")
def softmax_kernel(x, out, n, BLOCK: bn.constexpr):
    i = bn.program_id(0) * n + bn.arange(0, BLOCK)
    inside = bn.arange(0, BLOCK) < n
    row = bn.load(x + i, inside, -float("inf"))
    e = bn.exp(row - bn.max(row, 0))
    bn.store(out + i, e / bn.sum(e, 0), inside)


@bn.jit(device="cpu")
def column_sums_kernel(x, out, rows, columns, ROWS_: bn.constexpr, BLOCK: bn.constexpr):
    j = bn.program_id(0) * BLOCK + bn.arange(0, BLOCK)
    total = bn.zeros((BLOCK,), bn.float32)
    for start in range(0, rows, ROWS_):
        i = start + bn.arange(0, ROWS_)
        inside = (i < rows)[:, None] & (j < columns)[None, :]
        total += bn.sum(bn.load(x + i[:, None] * columns + j[None, :], inside), 0)
    bn.store(out + j, total, j < columns)


@numba.njit(parallel=True)
def numba_add(x, y, out):
    for i in numba.prange(x.size):
        out[i] = x[i] + y[i]


@numba.njit(parallel=True, fastmath=True)
def numba_softmax(x, out):
    for r in numba.prange(x.shape[0]):
        largest = x[r, 0]
        for c in range(x.shape[1]):
            largest = max(largest, x[r, c])
        total = np.float32(0)
        for c in range(x.shape[1]):
            out[r, c] = np.exp(x[r, c] - largest)
            total += out[r, c]
        for c in range(x.shape[1]):
            out[r, c] /= total


@numba.njit(parallel=True, fastmath=True)
def numba_column_sums(x, out):
    blocks = numba.get_num_threads()
    width = -(-x.shape[1] // blocks)
    for b in numba.prange(blocks):
        stop = min(x.shape[1], (b + 1) * width)
        out[b * width:stop] = 0
        for r in range(x.shape[0]):
            for c in range(b * width, stop):
                out[c] += x[r, c]


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    """Softmax of each row."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def cases() -> dict[str, dict[str, Run]]:
    """The runs of each case, by who runs them."""
    generator = np.random.default_rng(0)
    x, y = (generator.random(LENGTH, np.float32) for _ in range(2))
    out = np.empty_like(x)
    matrix = generator.standard_normal((ROWS, COLUMNS), np.float32)
    result, sums = np.empty_like(matrix), np.empty(COLUMNS, np.float32)
    return {
        "add": {
            "ours": lambda: add_kernel[LENGTH // 8192](x, y, out, LENGTH, BLOCK=8192),
            "numpy": lambda: np.add(x, y, out=out), "numba": lambda: numba_add(x, y, out)},
        "softmax": {
            "ours": lambda: softmax_kernel[ROWS](matrix, result, COLUMNS, BLOCK=1024),
            "numpy": lambda: numpy_softmax(matrix),
            "numba": lambda: numba_softmax(matrix, result)},
        "column sums": {
            "ours": lambda: column_sums_kernel[COLUMNS // 128](
                matrix, sums, ROWS, COLUMNS, ROWS_=64, BLOCK=128),
            "numpy": lambda: matrix.sum(axis=0),
            "numba": lambda: numba_column_sums(matrix, sums)}}


def measure(runs: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round, interleaved; the first round is not counted."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            found[name].append((time.perf_counter() - start) * 1e3)
    return {name: times[1:] for name, times in found.items()}


def main() -> None:
    """Measure, print a table, write the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = {}
    print("| case | ours, ms | NumPy / ours | Numba / ours |\n|---|---|---|---|")
    for title, runs in cases().items():
        times = measure(runs, given.rounds)
        ours = np.array(times["ours"])
        ratios = {peer: np.percentile(np.array(times[peer]) / ours, (25, 50, 75)).round(2).tolist()
                  for peer in ("numpy", "numba")}
        results[title] = {"ms": times, "ratios": ratios}
        print(f"| {title} | {np.median(ours):.2f} | {ratios['numpy']} | {ratios['numba']} |")
    if given.json:
        given.json.write_text(json.dumps(results))


if __name__ == "__main__":
    main()

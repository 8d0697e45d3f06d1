"""Sorting, the greatest elements and histograms next to Triton and CuPy, on one GPU.

    python perf/bench_order.py [--output FILE]

Both Triton's kernels and ours are those of one row a program, with the fastest of 4, 8 and 16 warps
of their own; CuPy sorts the same rows and counts the same array.  All take turns; a ratio is the
peer's time divided by ours, the median over rounds.  Results are compared first.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from math import exp, log
from pathlib import Path

import cupy
import numpy as np
import torch
import triton
import triton.language as tl
from measure import Run, fastest, gpu_timer, interleaved, median_ratio, medians

import blocknumba as bn

ROUNDS, REPEATS = 20, 5
WARPS = (4, 8, 16)
ELEMENTS = 1 << 25  # of a matrix: more than the L2 cache holds
COLUMNS = (512, 1024, 2048, 4096)
KEPT = (4096, 64)  # of how many, how many
BINS, BLOCK = (64, 256, 1024), 4096
PROGRAMS = 1056  # eight for each multiprocessor of an H200
SUBJECT, TRITON, CUPY = "blocknumba", "Triton", "CuPy"


@triton.jit
def their_sort(x, y, COLUMNS: tl.constexpr):
    offsets = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(y + offsets, tl.sort(tl.load(x + offsets)))


@bn.jit
def our_sort(x, y, COLUMNS: bn.constexpr):
    row, columns = bn.program_id(0), bn.span(0, COLUMNS)
    y[row, columns] = bn.sort(x[row, columns])


@triton.jit
def their_topk(x, y, COLUMNS: tl.constexpr, KEPT: tl.constexpr):
    row = tl.program_id(0)
    found = tl.topk(tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS)), KEPT)
    tl.store(y + row * KEPT + tl.arange(0, KEPT), found)


@bn.jit
def our_topk(x, y, COLUMNS: bn.constexpr, KEPT: bn.constexpr):
    row = bn.program_id(0)
    y[row, bn.span(0, KEPT)] = bn.topk(x[row, bn.span(0, COLUMNS)], KEPT)


@triton.jit
def their_histogram(x, total, size, BLOCK: tl.constexpr, BINS: tl.constexpr):
    counts = tl.zeros((BINS,), tl.int32)
    for start in range(tl.program_id(0) * BLOCK, size, tl.num_programs(0) * BLOCK):
        counts += tl.histogram(tl.load(x + start + tl.arange(0, BLOCK)), BINS)
    tl.atomic_add(total + tl.arange(0, BINS), counts, sem="relaxed")


@bn.jit
def our_histogram(x, total, BLOCK: bn.constexpr, BINS: bn.constexpr):
    counts = bn.zeros(BINS, bn.int32)
    for r in bn.grid_spans(x.shape[0], BLOCK):
        counts += bn.histogram(x[r], BINS)
    bn.atomic_add(total.at[bn.span(0, BINS)], counts)


def _fastest(run: Callable[[int], object]) -> Run:
    return fastest([lambda warps=warps: run(warps) for warps in WARPS], gpu_timer())


def sort_runs(columns: int) -> Mapping[str, Run]:
    """Rows of a float32 matrix sorted.   Errors: AssertionError where one is not."""
    rows = ELEMENTS // columns
    x = torch.randn(rows, columns, device="cuda")
    ours, theirs = torch.full((2, rows, columns), torch.nan, device="cuda")
    matrix = cupy.asarray(x)
    runs = {
        SUBJECT: _fastest(lambda warps: our_sort[rows](x, ours, COLUMNS=columns, num_warps=warps)),
        TRITON: _fastest(lambda warps: their_sort[(rows,)](
            x, theirs, COLUMNS=columns, num_warps=warps)),
        CUPY: lambda: cupy.sort(matrix, axis=1)}
    expected = torch.sort(x, 1).values
    assert torch.equal(ours, expected) and torch.equal(theirs, expected), "rows are not sorted"
    return runs


def topk_runs(columns: int, kept: int) -> Mapping[str, Run]:
    """The greatest elements of rows.   Errors: AssertionError where they are others."""
    rows = ELEMENTS // columns
    x = torch.randn(rows, columns, device="cuda")
    ours, theirs = torch.full((2, rows, kept), torch.nan, device="cuda")
    runs = {
        SUBJECT: _fastest(lambda warps: our_topk[rows](
            x, ours, COLUMNS=columns, KEPT=kept, num_warps=warps)),
        TRITON: _fastest(lambda warps: their_topk[(rows,)](
            x, theirs, COLUMNS=columns, KEPT=kept, num_warps=warps))}
    expected = torch.topk(x, kept, 1).values
    assert torch.equal(ours, expected) and torch.equal(theirs, expected), "other elements"
    return runs


def histogram_runs(bins: int, skewed: bool) -> Mapping[str, Run]:
    """Counts of a whole array.   Errors: AssertionError where they are wrong.

    skewed: nine of ten elements are in one bin.
    """
    x = torch.randint(0, bins, (ELEMENTS,), device="cuda", dtype=torch.int32)
    if skewed:
        x[torch.rand(ELEMENTS, device="cuda") < 0.9] = 3
    ours, theirs = torch.zeros((2, bins), device="cuda", dtype=torch.int32)
    array = cupy.asarray(x)

    def our_run(warps: int) -> None:
        our_histogram[PROGRAMS](x, ours, BLOCK=BLOCK, BINS=bins, num_warps=warps)

    def their_run(warps: int) -> None:
        their_histogram[(PROGRAMS,)](x, theirs, ELEMENTS, BLOCK=BLOCK, BINS=bins, num_warps=warps)
    expected = np.bincount(x.cpu().numpy(), minlength=bins)
    for run, total in ((our_run, ours), (their_run, theirs)):
        for warps in WARPS:
            total.zero_()
            run(warps)
            assert np.array_equal(total.cpu().numpy(), expected), f"wrong counts, {warps} warps"
    return {SUBJECT: _fastest(our_run), TRITON: _fastest(their_run),
            CUPY: lambda: cupy.bincount(array, minlength=bins)}


def cases() -> Iterator[tuple[str, Mapping[str, Run]]]:
    """The work of each row of the table."""
    for columns in COLUMNS:
        yield f"sort f32 {columns}", sort_runs(columns)
    yield f"topk f32 {KEPT[1]} of {KEPT[0]}", topk_runs(*KEPT)
    for bins in BINS:
        yield f"histogram {bins}", histogram_runs(bins, skewed=False)
    yield f"histogram {BINS[1]} skewed", histogram_runs(BINS[1], skewed=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments, found = parser.parse_args(), {}
    ratios: dict[str, list[float]] = {}
    for name, runs in cases():
        samples = interleaved(runs, gpu_timer(), ROUNDS, REPEATS)
        times = {who: seconds * 1e6 for who, seconds in medians(samples).items()}
        against = {peer: median_ratio(samples, peer, SUBJECT) for peer in runs if peer != SUBJECT}
        for peer, ratio in against.items():
            ratios.setdefault(peer, []).append(ratio)
        found[name] = {"us": times, "peer / ours": against}
        print(f"{name:22}", "  ".join(f"{who} {time:8.1f} us" for who, time in times.items()),
              "  ", "  ".join(f"{peer} / ours {ratio:.3f}" for peer, ratio in against.items()),
              flush=True)
    for peer, values in ratios.items():
        print(f"{peer}: geometric mean {exp(sum(map(log, values)) / len(values)):.3f}, "
              f"least {min(values):.3f}")
    if arguments.output:
        card = torch.cuda.get_device_name()
        versions = {"torch": torch.__version__, "triton": triton.__version__,
                    "cupy": cupy.__version__}
        arguments.output.write_text(json.dumps({"card": card, **versions, "cases": found},
                                               indent=1))


if __name__ == "__main__":
    main()

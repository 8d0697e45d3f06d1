"""Scans, random numbers and gathers within tiles next to Triton, on one GPU.

    python perf/bench_scans.py [--output FILE]

Both run the same kernel with the fastest of 4, 8 and 16 warps of their own, and take turns; the
ratio is Triton's time divided by ours, the median over rounds.  Results are compared first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
import triton
import triton.language as tl
from measure import Run, fastest, gpu_timer, two_columns

import blocknumba as bn

ROUNDS, REPEATS = 20, 10
WARPS = (4, 8, 16)
ELEMENTS = 1 << 26  # of a matrix: five times the L2 cache
COLUMNS = (1024, 4096, 16384, 32768, 65536)
GATHERED = (512, 2048)  # elements of a row
MAX_HELD = 128  # elements of a tile in one thread, where more warps can have them
DROPPED = 0.125  # of the elements; exact in float32
RANDOM_BLOCK = 1024
SUBJECT, PEER = "blocknumba", "Triton"


@triton.jit
def their_cumsum(x, y, COLUMNS: tl.constexpr):
    offsets = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(y + offsets, tl.cumsum(tl.load(x + offsets), 0))


@bn.jit
def our_cumsum(x, y, COLUMNS: bn.constexpr):
    row, columns = bn.program_id(0), bn.span(0, COLUMNS)
    y[row, columns] = bn.cumsum(x[row, columns])


@triton.jit
def their_random(y, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.rand(seed, offsets))


@bn.jit
def our_random(y, seed, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    y[r] = bn.rand(seed, r.index)


@triton.jit
def their_dropout(x, y, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, offsets) > p
    tl.store(y + offsets, tl.where(kept, tl.load(x + offsets) / (1 - p), 0.0))


@bn.jit
def our_dropout(x, y, p, seed, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    y[r] = bn.where(bn.rand(seed, r.index) > p, x[r] / (1 - p), 0)


@triton.jit
def their_gather(x, places, y, COLUMNS: tl.constexpr):
    offsets = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(y + offsets, tl.gather(tl.load(x + offsets), tl.load(places + offsets), 0))


@bn.jit
def our_gather(x, places, y, COLUMNS: bn.constexpr):
    row, columns = bn.program_id(0), bn.span(0, COLUMNS)
    y[row, columns] = bn.gather(x[row, columns], places[row, columns], 0)


def cumsum_runs(columns: int) -> Mapping[str, Run]:
    """Cumulative sums of the rows of a float32 matrix.

    Errors: AssertionError where a sum is farther from float64's than rounding takes it.
    """
    rows = ELEMENTS // columns
    x = torch.randn(rows, columns, device="cuda")
    ours, theirs = torch.full((2, rows, columns), torch.nan, device="cuda")

    warps_of_row = [warps for warps in WARPS if columns <= MAX_HELD * 32 * warps]
    runs = {
        SUBJECT: _fastest(lambda warps: our_cumsum[rows](
            x, ours, COLUMNS=columns, num_warps=warps), warps_of_row),
        PEER: _fastest(lambda warps: their_cumsum[(rows,)](
            x, theirs, COLUMNS=columns, num_warps=warps), warps_of_row)}
    expected = torch.cumsum(x.double(), 1)
    for y in (ours, theirs):
        torch.testing.assert_close(y.double(), expected, rtol=1e-4, atol=1e-3)
    return runs


def random_runs() -> Mapping[str, Run]:
    """Uniform numbers.   Errors: AssertionError unless both make the same bits."""
    ours, theirs = torch.full((2, ELEMENTS), torch.nan, device="cuda")
    programs = ELEMENTS // RANDOM_BLOCK
    runs = {
        SUBJECT: _fastest(lambda warps: our_random[programs](
            ours, 7, BLOCK=RANDOM_BLOCK, num_warps=warps)),
        PEER: _fastest(lambda warps: their_random[(programs,)](
            theirs, 7, BLOCK=RANDOM_BLOCK, num_warps=warps))}
    assert torch.equal(ours, theirs), "other random numbers than Triton's"
    return runs


def dropout_runs() -> Mapping[str, Run]:
    """Elements dropped at random.   Errors: AssertionError where Triton drops others."""
    x = torch.randn(ELEMENTS, device="cuda")
    ours, theirs = torch.full((2, ELEMENTS), torch.nan, device="cuda")
    programs = ELEMENTS // RANDOM_BLOCK
    runs = {
        SUBJECT: _fastest(lambda warps: our_dropout[programs](
            x, ours, DROPPED, 7, BLOCK=RANDOM_BLOCK, num_warps=warps)),
        PEER: _fastest(lambda warps: their_dropout[(programs,)](
            x, theirs, DROPPED, 7, BLOCK=RANDOM_BLOCK, num_warps=warps))}
    assert torch.equal(ours == 0, theirs == 0), "other elements are dropped"
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0)
    return runs


def gather_runs(columns: int) -> Mapping[str, Run]:
    """Elements of each row by places in it.   Errors: AssertionError where they are others."""
    rows = ELEMENTS // columns
    x = torch.randn(rows, columns, device="cuda")
    places = torch.randint(0, columns, (rows, columns), device="cuda", dtype=torch.int32)
    ours, theirs = torch.full((2, rows, columns), torch.nan, device="cuda")
    runs = {
        SUBJECT: _fastest(lambda warps: our_gather[rows](
            x, places, ours, COLUMNS=columns, num_warps=warps)),
        PEER: _fastest(lambda warps: their_gather[(rows,)](
            x, places, theirs, COLUMNS=columns, num_warps=warps))}
    expected = torch.gather(x, 1, places.long())
    assert torch.equal(ours, expected) and torch.equal(theirs, expected), "other elements"
    return runs


def _fastest(run: Callable[[int], object], choices: Sequence[int] = WARPS) -> Run:
    return fastest([lambda warps=warps: run(warps) for warps in choices], gpu_timer())


def cases() -> Iterator[tuple[str, Mapping[str, Run]]]:
    """The work of each row of the table."""
    for columns in COLUMNS:
        yield f"cumsum f32 {columns}", cumsum_runs(columns)
    yield "rand f32", random_runs()
    yield "dropout f32", dropout_runs()
    for columns in GATHERED:
        yield f"gather f32 {columns}", gather_runs(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    output = parser.parse_args().output
    about = {"card": torch.cuda.get_device_name(), "torch": torch.__version__,
             "triton": triton.__version__}
    two_columns(cases(), SUBJECT, PEER, ROUNDS, REPEATS, output, about)


if __name__ == "__main__":
    main()

"""Statistics of rows and functions of libdevice next to Triton, on one GPU.

    python perf/bench_reductions.py [--output FILE]

Both run the same kernel with the fastest of 4, 8 and 16 warps of their own, and take turns; the
ratio is Triton's time divided by ours, the median over rounds.  Results are compared first, with
float64.  Triton's variance is of two passes, as users write it; ours keeps more digits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch
import triton
import triton.language as tl
from measure import Run, fastest, gpu_timer, two_columns
from triton.language.extra.cuda import libdevice  # of extra alone are stubs

import blocknumba as bn

ROUNDS, REPEATS = 20, 10
WARPS = (4, 8, 16)
ELEMENTS = 1 << 26  # of a matrix: five times the L2 cache
COLUMNS = (1024, 4096, 16384)
BLOCK = 1024
SUBJECT, PEER = "blocknumba", "Triton"


@bn.jit
def our_rows(x, y, FUNCTION: bn.constexpr, COLUMNS: bn.constexpr):
    row, columns = bn.program_id(0), bn.span(0, COLUMNS)
    y[row] = FUNCTION(x[row, columns])


@triton.jit
def their_var(x, y, COLUMNS: tl.constexpr):
    offsets = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.load(x + offsets)
    mean = tl.sum(row, 0) / COLUMNS
    tl.store(y + tl.program_id(0), tl.sum((row - mean) * (row - mean), 0) / COLUMNS)


@triton.jit
def their_logsumexp(x, y, COLUMNS: tl.constexpr):
    offsets = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.load(x + offsets)
    greatest = tl.max(row, 0)
    tl.store(y + tl.program_id(0), tl.log(tl.sum(tl.exp(row - greatest), 0)) + greatest)


@triton.jit
def their_nansum(x, y, COLUMNS: tl.constexpr):
    offsets = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.load(x + offsets)
    tl.store(y + tl.program_id(0), tl.sum(tl.where(row == row, row, 0.0), 0))


@bn.jit
def our_elements(x, y, FUNCTION: bn.constexpr, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    y[r] = FUNCTION(x[r])


def their_elements(name: str) -> Callable:
    """Triton's kernel for one function: it takes none as an argument."""
    function = getattr(libdevice, name)

    @triton.jit
    def kernel(x, y, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + offsets, FUNCTION(tl.load(x + offsets)))

    return lambda x, y, warps: kernel[(x.numel() // BLOCK,)](x, y, function, BLOCK,
                                                             num_warps=warps)


ROW_FUNCTIONS = {
    "var": (their_var, lambda x: x.var(1, correction=0)),
    "logsumexp": (their_logsumexp, lambda x: torch.logsumexp(x, 1)),
    "nansum": (their_nansum, lambda x: x.nansum(1))}
ELEMENT_FUNCTIONS = {
    "erfinv": torch.erfinv, "j0": torch.special.bessel_j0, "erfcx": torch.special.erfcx,
    "cyl_bessel_i0": torch.special.i0,
    "sinpi": lambda x: torch.sin(torch.pi * x)}


def row_runs(name: str, columns: int) -> Mapping[str, Run]:
    """A statistic of the rows of a float32 matrix.   Errors: AssertionError for wrong results."""
    kernel, exact = ROW_FUNCTIONS[name]
    rows = ELEMENTS // columns
    x = torch.randn(rows, columns, device="cuda")
    ours, theirs = torch.full((2, rows), torch.nan, device="cuda")
    runs = {
        SUBJECT: _fastest(lambda warps: our_rows[rows](
            x, ours, FUNCTION=getattr(bn, name), COLUMNS=columns, num_warps=warps)),
        PEER: _fastest(lambda warps: kernel[(rows,)](x, theirs, columns, num_warps=warps))}
    expected = exact(x.double())
    for y in (ours, theirs):
        torch.testing.assert_close(y.double(), expected, rtol=1e-4, atol=1e-3)
    return runs


def element_runs(name: str) -> Mapping[str, Run]:
    """A function of each element, in (-1, 1).   Errors: AssertionError for wrong results."""
    x = torch.rand(ELEMENTS, device="cuda") * 1.998 - 0.999
    ours, theirs = torch.full((2, ELEMENTS), torch.nan, device="cuda")
    their = their_elements(name)
    runs = {
        SUBJECT: _fastest(lambda warps: our_elements[ELEMENTS // BLOCK](
            x, ours, FUNCTION=getattr(bn.libdevice, name), BLOCK=BLOCK, num_warps=warps)),
        PEER: _fastest(lambda warps: their(x, theirs, warps))}
    expected = ELEMENT_FUNCTIONS[name](x.double())
    for y in (ours, theirs):
        torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-6)
    return runs


def _fastest(run: Callable[[int], object]) -> Run:
    return fastest([lambda warps=warps: run(warps) for warps in WARPS], gpu_timer())


def cases() -> Iterator[tuple[str, Mapping[str, Run]]]:
    """The work of each row of the table."""
    for name in ROW_FUNCTIONS:
        for columns in COLUMNS:
            yield f"{name} f32 {columns}", row_runs(name, columns)
    for name in ELEMENT_FUNCTIONS:
        yield f"{name} f32", element_runs(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    output = parser.parse_args().output
    about = {"card": torch.cuda.get_device_name(), "torch": torch.__version__,
             "triton": triton.__version__}
    two_columns(cases(), SUBJECT, PEER, ROUNDS, REPEATS, output, about)


if __name__ == "__main__":
    main()

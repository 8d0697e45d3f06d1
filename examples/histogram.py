"""Histograms: every element adds one to a counter in global memory, or in its program's own.

Counters in global memory take any number of bins. A program's own are few and fast; what it counted
is added to those of all programs at its end.
"""

import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run

BLOCK = 1024
PROGRAMS = 16


@bn.jit
def histogram(x, counts, BLOCK: bn.constexpr):
    """counts[v] += how often v is in x, by any number of programs.

    x: (size,) ints; counts: (bins,) int32. A value that is not a bin is not counted.
    """
    for r in bn.grid_spans(x.shape[0], BLOCK):
        # Past its end x reads as 0, which is a bin.
        bn.atomic_add(counts.at[x[r].to(bn.int32)], 1, mask=r.index < x.shape[0])


@bn.jit
def histogram_by_tiles(x, counts, BLOCK: bn.constexpr, BINS: bn.constexpr):
    """The same with counters of each program. BINS: a power of two, at least the bins of counts."""
    own = bn.zeros(BINS, bn.int32)
    for r in bn.grid_spans(x.shape[0], BLOCK):
        own += bn.histogram(x[r], BINS, mask=r.index < x.shape[0])
    bn.atomic_add(counts.at[bn.span(0, BINS)], own)


@bn.jit
def histogram_pointers(x, counts, size, BLOCK: tl.constexpr):
    """The same in Triton's dialect; every value must be a bin."""
    for start in range(tl.program_id(0) * BLOCK, size, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        inside = offsets < size
        bins = tl.load(x + offsets, mask=inside, other=0).to(tl.int32)
        tl.atomic_add(counts + bins, 1, mask=inside)


def check(library: ArrayLibrary) -> None:
    """All of them give NumPy's bincount."""
    x = np.random.default_rng(0).integers(0, 200, 50_021).astype(np.uint8)
    for kernel, sizes, constants in ((histogram, (), {}), (histogram_by_tiles, (), {"BINS": 256}),
                                     (histogram_pointers, (x.size,), {})):
        counts = library.array(np.zeros(256, np.int32))
        kernel[PROGRAMS](library.array(x), counts, *sizes, BLOCK=BLOCK, **constants)
        np.testing.assert_array_equal(library.numpy(counts), np.bincount(x, minlength=256))


if __name__ == "__main__":
    run(check)

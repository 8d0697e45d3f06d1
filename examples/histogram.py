"""Histogram with atomics: every element adds one to its counter in global memory."""

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
def histogram_pointers(x, counts, size, BLOCK: tl.constexpr):
    """The same in Triton's dialect; every value must be a bin."""
    for start in range(tl.program_id(0) * BLOCK, size, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        inside = offsets < size
        bins = tl.load(x + offsets, mask=inside, other=0).to(tl.int32)
        tl.atomic_add(counts + bins, 1, mask=inside)


def check(library: ArrayLibrary) -> None:
    """Both dialects give NumPy's bincount."""
    x = np.random.default_rng(0).integers(0, 200, 50_021).astype(np.uint8)
    for kernel, sizes in ((histogram, ()), (histogram_pointers, (x.size,))):
        counts = library.array(np.zeros(256, np.int32))
        kernel[PROGRAMS](library.array(x), counts, *sizes, BLOCK=BLOCK)
        np.testing.assert_array_equal(library.numpy(counts), np.bincount(x, minlength=256))


if __name__ == "__main__":
    run(check)

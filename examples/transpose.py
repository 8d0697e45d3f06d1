"""Transpose of a matrix: each program moves one tile, reading and writing whole rows of it."""

import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run

TILE = 64


@bn.jit
def transpose(x, out, TILE: bn.constexpr):
    """out = x.T"""
    rows, columns = bn.block(0, TILE), bn.block(1, TILE)
    out[columns, rows] = x[rows, columns].T


@bn.jit
def transpose_pointers(x, out, rows, columns, TILE: tl.constexpr):
    """The same in Triton's dialect; both matrices are contiguous."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    tile = tl.load(x + i[:, None] * columns + j[None, :],
                   mask=(i[:, None] < rows) & (j[None, :] < columns))
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile),
             mask=(j[:, None] < columns) & (i[None, :] < rows))


def check(library: ArrayLibrary) -> None:
    """Both dialects give NumPy's x.T."""
    x = np.random.default_rng(0).standard_normal((301, 203), np.float32)
    grid = tuple(bn.cdiv(extent, TILE) for extent in x.shape)
    for kernel, sizes in ((transpose, ()), (transpose_pointers, x.shape)):
        out = library.array(np.zeros(x.shape[::-1], np.float32))
        kernel[grid](library.array(x), out, *sizes, TILE=TILE)
        np.testing.assert_array_equal(library.numpy(out), x.T)


if __name__ == "__main__":
    run(check)

"""Sums of the rows and of the columns of a matrix of any size."""

import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run

ROW_BLOCK = 1024
TILE = 32, 64


@bn.jit
def row_sums(x, sums, BLOCK: bn.constexpr):
    """sums[i] = x[i].sum(); one program a row, BLOCK elements at a time."""
    i = bn.program_id(0)
    total = bn.zeros((BLOCK,), bn.float32)
    for columns in bn.spans(x.shape[1], BLOCK):
        total += x[i, columns]
    sums[i] = bn.sum(total, axis=0)


@bn.jit
def column_sums(x, sums, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """sums[j] = x[:, j].sum(); one program for COLUMNS columns, ROWS rows at a time."""
    columns = bn.block(0, COLUMNS)
    total = bn.zeros((ROWS, COLUMNS), bn.float32)
    for rows in bn.spans(x.shape[0], ROWS):
        total += x[rows, columns]
    sums[columns] = bn.sum(total, axis=0)


@bn.jit
def row_sums_pointers(x, sums, columns, BLOCK: tl.constexpr):
    """row_sums in Triton's dialect; rows are contiguous and follow each other."""
    i = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x + i * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(sums + i, tl.sum(total, axis=0))


@bn.jit
def column_sums_pointers(x, sums, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """column_sums in Triton's dialect."""
    offsets = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, rows, ROWS):
        i = start + tl.arange(0, ROWS)
        inside = (i[:, None] < rows) & (offsets[None, :] < columns)
        total += tl.load(x + i[:, None] * columns + offsets[None, :], mask=inside, other=0.0)
    tl.store(sums + offsets, tl.sum(total, axis=0), mask=offsets < columns)


def check(library: ArrayLibrary) -> None:
    """All four kernels agree with NumPy; whole numbers, so that the order cannot matter."""
    values = np.random.default_rng(0).integers(-100, 100, (301, 2501)).astype(np.float32)
    rows, columns = values.shape
    x = library.array(values)
    for kernel, sizes in ((row_sums, ()), (row_sums_pointers, (columns,))):
        sums = library.array(np.zeros(rows, np.float32))
        kernel[rows](x, sums, *sizes, BLOCK=ROW_BLOCK)
        np.testing.assert_array_equal(library.numpy(sums), values.sum(axis=1))
    for kernel, sizes in ((column_sums, ()), (column_sums_pointers, (rows, columns))):
        sums = library.array(np.zeros(columns, np.float32))
        kernel[bn.cdiv(columns, TILE[1])](x, sums, *sizes, ROWS=TILE[0], COLUMNS=TILE[1])
        np.testing.assert_array_equal(library.numpy(sums), values.sum(axis=0))


if __name__ == "__main__":
    run(check)

"""Gather rows of a table by their numbers, as an embedding look-up does."""

import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run

ROWS, COLUMNS = 16, 64


@bn.jit
def gather_rows(table, numbers, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """out[i] = table[numbers[i]]

    table: (entries, columns); numbers: (rows,) ints; out: (rows, columns).
    A number outside the table selects a row of zeros.
    """
    rows, columns = bn.block(0, ROWS), bn.block(1, COLUMNS)
    out[rows, columns] = table[numbers[rows], columns]


@bn.jit
def gather_rows_pointers(table, numbers, out, rows, columns, ROWS: tl.constexpr,
                         COLUMNS: tl.constexpr):
    """The same in Triton's dialect; every number must be in the table."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    number = tl.load(numbers + i, mask=i < rows, other=0)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    entries = tl.load(table + number[:, None] * columns + j[None, :], mask=inside)
    tl.store(out + i[:, None] * columns + j[None, :], entries, mask=inside)


def check(library: ArrayLibrary) -> None:
    """Both dialects give NumPy's table[numbers]."""
    generator = np.random.default_rng(0)
    table = generator.standard_normal((500, 130), np.float32)
    numbers = generator.integers(0, 500, 301)
    rows, columns = numbers.size, table.shape[1]
    grid = bn.cdiv(rows, ROWS), bn.cdiv(columns, COLUMNS)
    for kernel, sizes in ((gather_rows, ()), (gather_rows_pointers, (rows, columns))):
        out = library.array(np.zeros((rows, columns), np.float32))
        kernel[grid](library.array(table), library.array(numbers), out, *sizes,
                     ROWS=ROWS, COLUMNS=COLUMNS)
        np.testing.assert_array_equal(library.numpy(out), table[numbers])


if __name__ == "__main__":
    run(check)

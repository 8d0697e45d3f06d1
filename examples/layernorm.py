"""Layer normalisation, forward: each program normalises one row."""

import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run

EPSILON = 1e-5
LONGEST_ROW_IN_REGISTERS = 16384
SPAN_OF_LONG_ROW = 4096


@bn.jit
def layernorm(x, weight, bias, y, mean, rstd, epsilon, BLOCK: bn.constexpr):
    """y[i] = (x[i] - mean[i]) * rstd[i] * weight + bias, computed in float32.

    x, y: (rows, columns); weight, bias: (columns,); mean, rstd: (rows,); one program a row.
    BLOCK: a power of two, at least columns: the row is read once and stays in registers.
    """
    i = bn.program_id(0)
    columns = bn.span(0, BLOCK)
    size = x.shape[1]
    row = x[i, columns].to(bn.float32)
    average = bn.sum(row, axis=0) / size
    # Outside the row x reads as 0, which is not average away from average.
    centred = bn.where(columns.index < size, row - average, 0.0)
    scale = bn.rsqrt(bn.sum(centred * centred, axis=0) / size + epsilon)
    mean[i] = average
    rstd[i] = scale
    y[i, columns] = centred * scale * weight[columns] + bias[columns]


@bn.jit
def layernorm_long_rows(x, weight, bias, y, mean, rstd, epsilon, BLOCK: bn.constexpr):
    """The same for rows of any length, read three times, BLOCK elements at a time."""
    i = bn.program_id(0)
    row, size = x[i], x.shape[1]
    total = bn.zeros((BLOCK,), bn.float32)
    for columns in bn.spans(size, BLOCK):
        total += row[columns].to(bn.float32)
    average = bn.sum(total, axis=0) / size
    squares = bn.zeros((BLOCK,), bn.float32)
    for columns in bn.spans(size, BLOCK):
        centred = bn.where(columns.index < size, row[columns].to(bn.float32) - average, 0.0)
        squares += centred * centred
    scale = bn.rsqrt(bn.sum(squares, axis=0) / size + epsilon)
    mean[i] = average
    rstd[i] = scale
    for columns in bn.spans(size, BLOCK):
        centred = row[columns].to(bn.float32) - average
        y[i, columns] = centred * scale * weight[columns] + bias[columns]


@bn.jit
def layernorm_pointers(x, weight, bias, y, mean, rstd, size, epsilon, BLOCK: tl.constexpr):
    """layernorm in Triton's dialect; rows are contiguous and follow each other."""
    i = tl.program_id(0)
    start = i.to(tl.int64) * size
    columns = tl.arange(0, BLOCK)
    inside = columns < size
    row = tl.load(x + start + columns, mask=inside, other=0.0).to(tl.float32)
    average = tl.sum(row, axis=0) / size
    centred = tl.where(inside, row - average, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / size + epsilon)
    tl.store(mean + i, average)
    tl.store(rstd + i, scale)
    normal = centred * scale * tl.load(weight + columns, mask=inside, other=0.0)
    normal += tl.load(bias + columns, mask=inside, other=0.0)
    tl.store(y + start + columns, normal, mask=inside)


def launch(x, weight, bias, y, mean, rstd) -> None:
    """Normalise the rows of x, in registers if a row fits there."""
    rows, columns = x.shape
    if columns <= LONGEST_ROW_IN_REGISTERS:
        kernel, block = layernorm, bn.next_power_of_2(columns)
    else:
        kernel, block = layernorm_long_rows, SPAN_OF_LONG_ROW
    kernel[rows](x, weight, bias, y, mean, rstd, EPSILON, BLOCK=block)


def launch_pointers(x, weight, bias, y, mean, rstd) -> None:
    """The same with the kernel in Triton's dialect."""
    rows, columns = x.shape
    layernorm_pointers[rows](x, weight, bias, y, mean, rstd, columns, EPSILON,
                             BLOCK=bn.next_power_of_2(columns))


def check(library: ArrayLibrary) -> None:
    """Both dialects and both kinds of row agree with NumPy in float64."""
    generator = np.random.default_rng(0)
    cases = (launch, 37, 781), (launch_pointers, 37, 781), (launch, 2, 20_000)
    for start, rows, columns in cases:
        x = (generator.standard_normal((rows, columns)) * 3 + 5).astype(np.float16)
        weight, bias = generator.standard_normal((2, columns), np.float32)
        y = library.array(np.zeros_like(x))
        mean, rstd = (library.array(np.zeros(rows, np.float32)) for _ in range(2))
        start(library.array(x), library.array(weight), library.array(bias), y, mean, rstd)
        exact = x.astype(np.float64)
        average = exact.mean(axis=1, keepdims=True)
        scale = 1 / np.sqrt(exact.var(axis=1, keepdims=True) + EPSILON)
        np.testing.assert_allclose(library.numpy(mean), average[:, 0], rtol=1e-5)
        np.testing.assert_allclose(library.numpy(rstd), scale[:, 0], rtol=1e-5)
        np.testing.assert_allclose(library.numpy(y), (exact - average) * scale * weight + bias,
                                   rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    run(check)

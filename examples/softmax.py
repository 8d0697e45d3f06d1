"""Fused softmax of the rows of a matrix: each program keeps one row in registers."""

import numpy as np

import blocknumba as bn
import blocknumba.language as tl
from array_libraries import ArrayLibrary, run


@bn.jit
def softmax(x, y, BLOCK: bn.constexpr):
    """y[i] = exp(x[i]) / sum(exp(x[i])), computed in float32.

    x, y: (rows, columns); one program a row; BLOCK: a power of two, at least columns.
    """
    i = bn.program_id(0)
    columns = bn.span(0, BLOCK)
    row = bn.load(x.at[i, columns], other=float("-inf")).to(bn.float32)
    powers = bn.exp(row - bn.max(row, axis=0))
    # One division a row, not one an element: the quotient may be off by one more rounding.
    y[i, columns] = powers * (1.0 / bn.sum(powers, axis=0))


@bn.jit
def softmax_pointers(x, y, columns, BLOCK: tl.constexpr):
    """The same in Triton's dialect; rows are contiguous and follow each other."""
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    start = tl.program_id(0).to(tl.int64) * columns
    row = tl.load(x + start + offsets, mask=inside, other=float("-inf")).to(tl.float32)
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + start + offsets, powers * (1.0 / tl.sum(powers, axis=0)), mask=inside)


def reference(x: np.ndarray) -> np.ndarray:
    """Softmax of the rows of x, in float64."""
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def check(library: ArrayLibrary) -> None:
    """Both dialects, in float32 and float16, agree with NumPy in float64."""
    generator = np.random.default_rng(0)
    for dtype, tolerance in ((np.float32, 1e-6), (np.float16, 1e-3)):
        x = generator.standard_normal((37, 781)).astype(dtype)
        rows, columns = x.shape
        for kernel, sizes in ((softmax, ()), (softmax_pointers, (columns,))):
            y = library.array(np.zeros_like(x))
            kernel[rows](library.array(x), y, *sizes, BLOCK=bn.next_power_of_2(columns))
            np.testing.assert_allclose(library.numpy(y), reference(x), rtol=tolerance, atol=1e-7)


if __name__ == "__main__":
    run(check)

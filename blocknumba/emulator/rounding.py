"""Floating-point results in every rounding mode of PTX, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_SPLITTER = np.float64(2**27 + 1)  # Dekker: halves a 53-bit significand
_SMALL, _LARGE = 2.0**-400, 2.0**400  # products and their errors stay in range between the two


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b rounded to nearest, and the error of that.   Source: Knuth, TAOCP 2, 4.2.2."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def sum_downwards(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """two_sum for the mode rm, where an exact zero is negative."""
    total, error = two_sum(a, b)
    return downward_zero(total, error, np.signbit(a) | np.signbit(b)), error


def downward_zero(total: np.ndarray, error: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """A sum, its exact zeros being -0 unless both terms are positive, as the mode rm wants them.

    negative: whether either term is.   Source: IEEE 754-2019, 6.3.
    """
    return np.where((total == 0) & (error == 0) & negative, -0.0, total)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b in f64 rounded to nearest, and the error of that.   Source: Dekker 1971."""
    product = a * b
    scaled_a, scaled_b = a * _SPLITTER, b * _SPLITTER
    high_a = scaled_a - (scaled_a - a)
    high_b = scaled_b - (scaled_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)
    return product, error


def to_odd(value: np.ndarray, error: np.ndarray) -> np.ndarray:
    """value + error rounded to odd in f64: rounding that again is as good as rounding once.

    value must be value + error rounded to nearest.
    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums" (2008).
    """
    bits = value.view(np.int64)
    inexact_even = (error != 0) & ((bits & 1) == 0) & np.isfinite(value)
    towards = np.where((error > 0) == (value > 0), 1, -1)
    return np.where(inexact_even, bits + towards, bits).view(np.float64)


def fma_exactly(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b + c of f64 rounded to nearest, and an error that has the right sign."""
    a, b, c = np.broadcast_arrays(a, b, c)
    product_high, product_low = two_product(a, b)
    carry_high, carry_low = two_sum(c, product_low)
    total, total_low = two_sum(product_high, carry_high)
    rest, rest_error = two_sum(total_low, carry_low)
    result, error = two_sum(total, to_odd(rest, rest_error))
    # a product too large for f64 is finite all the same
    plain = np.where(np.isfinite(a) & np.isfinite(b) & np.isinf(c), c, a * b + c)
    exotic = ~np.isfinite(product_low) | ~np.isfinite(result)
    size = np.abs(product_high)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    extreme = finite & (exotic | (size > _LARGE) | ((size < _SMALL) & (a != 0) & (b != 0)))
    if extreme.any():
        result, error = result.copy(), error.copy()
        for lane in np.flatnonzero(extreme):
            result[lane], error[lane] = _fma_of_integers(a[lane], b[lane], c[lane])
    # an exact zero takes the sign that a * b + c gives it
    keep = finite & ((result != 0) | extreme)
    return np.where(keep, result, plain), np.where(finite, error, 0.0)


def _fma_of_integers(a: float, b: float, c: float) -> tuple[float, float]:
    """fma_exactly for one lane of any size, by rational arithmetic."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return float(a) * float(b) + float(c), 0.0
    try:
        nearest = exact.numerator / exact.denominator
    except OverflowError:
        return (float("inf"), -1.0) if exact > 0 else (float("-inf"), 1.0)
    error = exact - Fraction(nearest)
    return nearest, float((error > 0) - (error < 0))


def narrow(value: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    """An f64 value (rounded to odd where inexact) in dtype.

    mode: rn to nearest even, rz to zero, rm down, rp up, rna to nearest away from zero.
    Overflow: to infinity, or to the largest finite value where the mode rounds towards it.
    """
    result = _nearest(value, dtype)
    if mode == "rn":
        return result
    back = result.astype(np.float64)
    exact = (value == back) | np.isnan(value)  # infinities too, whose difference is NaN
    return direct(result, np.where(exact, 0.0, value - back), mode)


def _nearest(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """f64 to nearest even in dtype with one rounding."""
    if dtype != BFLOAT16:
        return value.astype(dtype)
    single = value.astype(np.float32)
    back = single.astype(np.float64)
    error = np.where(np.isfinite(back), value - back, 0.0)
    bits = single.view(np.int32)
    towards = np.where((single == 0) | ((error > 0) == (single > 0)), 1, -1).astype(np.int32)
    odd = np.where((error != 0) & ((bits & 1) == 0), bits + towards, bits).view(np.float32)
    return odd.astype(dtype)


def direct(nearest: np.ndarray, error: np.ndarray, mode: str) -> np.ndarray:
    """A result rounded to nearest, moved to where a directed mode wants it.

    error: has the sign of exact minus nearest.
    """
    if mode == "rn":
        return nearest
    integer = np.dtype(f"i{nearest.dtype.itemsize}")
    bits = nearest.view(integer)
    positive = bits >= 0
    if mode == "rz":
        step = np.where((error != 0) & ((error > 0) != positive), -1, 0)
    elif mode == "rm":
        step = np.where(error < 0, np.where(positive, -1, 1), 0)
    else:
        step = np.where(error > 0, np.where(positive, 1, -1), 0)
    crosses = (step == -1) & (bits << 1 == 0)
    moved = np.where(crosses, bits, bits + step.astype(integer))
    return moved.astype(integer).view(nearest.dtype)


def quotient(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a / b of f64 rounded to nearest, and an error that has the right sign."""
    result = a / b
    residual, _ = fma_exactly(-result, b, a)
    error = np.where(np.isfinite(result) & np.isfinite(b), np.sign(residual) * np.sign(b), 0.0)
    return result, error


def square_root(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The root of f64 rounded to nearest, and an error that has the right sign."""
    result = np.sqrt(a)
    residual, _ = fma_exactly(-result, result, a)
    return result, np.where(np.isfinite(result), residual, 0.0)


# exact result less r, of fractions, in the sign: of a quotient times the divisor's
RESIDUALS: dict[Callable, Callable[..., Fraction]] = {
    two_sum: lambda r, a, b: a + b - r, sum_downwards: lambda r, a, b: a + b - r,
    two_product: lambda r, a, b: a * b - r, quotient: lambda r, a, b: (a - r * b) * b,
    square_root: lambda r, a: a - r * r}


def errors_of_extremes(operation: Callable, result: np.ndarray, error: np.ndarray,
                       operands: Sequence[np.ndarray]) -> np.ndarray:
    """The error of an operation on f64, right in its sign where operands are tiny or huge too.

    An infinite result of finite operands is too large; a quotient by zero is exact.
    """
    finite = np.logical_and.reduce([np.isfinite(operand) for operand in operands])
    if operation is quotient:
        finite = finite & (operands[1] != 0)
    if operation is square_root:
        finite = finite & (operands[0] >= 0)
    sizes = [np.abs(operand) for operand in (*operands, result)]
    extreme = np.logical_or.reduce([(size > _LARGE) | ((size < _SMALL) & (size != 0))
                                    for size in sizes])
    extreme |= (result == 0) & (operation is not two_sum) & (operation is not sum_downwards)
    error = np.where(finite & np.isinf(result), -np.sign(result), np.where(finite, error, 0.0))
    for lane in zip(*np.nonzero(finite & extreme & np.isfinite(result))):
        exact = RESIDUALS[operation](*(Fraction(float(value[lane])) for value in
                                       (result, *operands)))
        error[lane] = (exact > 0) - (exact < 0)
    return error

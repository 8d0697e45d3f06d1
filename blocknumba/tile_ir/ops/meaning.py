"""NumPy meanings that NumPy itself does not have under one name."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np


def floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """floor(x / y); 0 for an integer divided by 0."""
    with np.errstate(all="ignore"):
        return np.floor_divide(x, y)


def remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x - floor(x / y) * y; 0 for an integer modulo 0."""
    with np.errstate(all="ignore"):
        return np.remainder(x, y)


def fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z with one rounding."""
    if x.dtype == np.float64:
        return _exact_fma(x, y, z)
    return (x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)).astype(x.dtype)


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x ** y; for integers modulo 2**bits, and the truncated reciprocal when y < 0."""
    if x.dtype.kind not in "iu":
        with np.errstate(all="ignore"):
            return np.power(x, y)
    negative = y < 0
    result = np.power(x, np.where(negative, 0, y))
    sign = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, -1, 1), 0)).astype(x.dtype)
    return np.where(negative, sign, result)


def reciprocal_sqrt(x: np.ndarray) -> np.ndarray:
    """1 / sqrt(x)."""
    with np.errstate(all="ignore"):
        return (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype)


def multiply_high(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The high half of the product of two unsigned words."""
    half = x.dtype.itemsize * 4
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    a, b = x.view(unsigned), y.view(unsigned)
    mask, shift = unsigned.type((1 << half) - 1), unsigned.type(half)
    a_low, a_high, b_low, b_high = a & mask, a >> shift, b & mask, b >> shift
    middle = a_high * b_low + (a_low * b_low >> shift)
    carry = a_low * b_high + (middle & mask)
    return (a_high * b_high + (middle >> shift) + (carry >> shift)).view(x.dtype)


def population_count(x: np.ndarray) -> np.ndarray:
    """How many bits of each element are set."""
    return np.bitwise_count(x.view(np.dtype(f"u{x.dtype.itemsize}"))).astype(x.dtype)


def leading_zeros(x: np.ndarray) -> np.ndarray:
    """How many zero bits precede the highest set one."""
    bits = x.view(np.dtype(f"u{x.dtype.itemsize}")).copy()
    for shift in (1, 2, 4, 8, 16, 32)[: 3 + x.dtype.itemsize.bit_length() - 1]:
        bits |= bits >> bits.dtype.type(shift)
    return (x.dtype.itemsize * 8 - np.bitwise_count(bits).astype(x.dtype)).astype(x.dtype)


def first_set(x: np.ndarray) -> np.ndarray:
    """1 + the index of the lowest set bit, or 0."""
    lowest = x & -x if x.dtype.kind == "i" else x & (~x + x.dtype.type(1))
    width = x.dtype.type(x.dtype.itemsize * 8)
    return np.where(x == 0, x.dtype.type(0), width - leading_zeros(lowest))


def convert(x: np.ndarray, dtype: np.dtype, rounding: str = "nearest") -> np.ndarray:
    """x as dtype; the op `cast` says what happens outside its range."""
    if dtype == x.dtype:
        return x
    if dtype.kind == "b":
        return x != 0
    with np.errstate(all="ignore"):
        if dtype.kind in "iu" and x.dtype.kind not in "iub":
            return _float_to_integer(x, dtype)
        nearest = x.astype(dtype)
        return nearest if rounding == "nearest" else _towards_zero(x, nearest)


def _float_to_integer(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Truncated and saturated; NaN gives 0."""
    bounds = np.iinfo(dtype)
    wide = np.trunc(x.astype(np.float64))
    inside = (wide >= bounds.min) & (wide < float(bounds.max) + 1)
    result = np.where(inside, wide, 0).astype(dtype)
    result = np.where(wide < bounds.min, dtype.type(bounds.min), result)
    return np.where(wide >= float(bounds.max) + 1, dtype.type(bounds.max), result)


def _towards_zero(x: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """nearest, or the float next to it nearer to zero where it is beyond x."""
    beyond = np.abs(nearest.astype(x.dtype)) > np.abs(x)
    return np.where(beyond, np.nextafter(nearest, nearest.dtype.type(0)), nearest)


def _exact_fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """float64 fma through exact rationals; slow, for the rare double kernel."""

    def one(a: float, b: float, c: float) -> float:
        if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
            return a * b + c
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        return float(exact) if exact else a * b + c

    return np.frompyfunc(one, 3, 1)(x, y, z).astype(np.float64)


def _by_element(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """A scalar function of float64 on arrays of any float dtype."""
    vectorised = np.frompyfunc(function, 1, 1)
    return lambda x: vectorised(x.astype(np.float64)).astype(np.float64).astype(x.dtype)


def _gamma(x: float) -> float:
    if x == 0 or x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.copysign(math.inf, x) if x == 0 else math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


erf = _by_element(math.erf)
erfc = _by_element(math.erfc)
gamma = _by_element(_gamma)
lgamma = _by_element(_lgamma)

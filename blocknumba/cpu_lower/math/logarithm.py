"""The logarithms, and the inverse hyperbolic functions that are logarithms of sums.

x = m 2**k with m from sqrt(1/2) to sqrt(2), f = m - 1 and log(1 + f) = f - f**2 / 2 + tail(f): the
first two terms are kept apart from the tail, whose error weighs little.
Source: the decomposition is that of Sun's fdlibm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocknumba import coefficients as table
from blocknumba.cpu_lower.math.double_word import (
    Double, plus, quotient, root, two_product, two_sum,
)
from blocknumba.cpu_lower.math.registry import elementwise
from blocknumba.cpu_lower.vectors import Vector, absolute, copysign, fma, polynomial, where


@dataclass(frozen=True, slots=True)
class Split:
    """x = m * 2**k; k is an integral float."""

    m: Vector
    k: Vector


def split(x: Vector) -> Split:
    """The parts of positive finite numbers."""
    format_ = x.format
    tiny = x < format_.least_normal
    raised = format_.fraction + 1
    parts = split_normal(where(tiny, x * 2.0 ** raised, x))
    return Split(parts.m, parts.k - where(tiny, x.like(float(raised)), 0.0))


def split_normal(x: Vector) -> Split:
    """The parts of positive finite numbers that are not subnormal."""
    format_ = x.format
    root_half = x.like(math.sqrt(0.5)).as_bits
    # one more than 0 in the exponent where m is from sqrt(1/2) to 1
    above = x.as_bits - root_half + (format_.bias << format_.fraction)
    m = ((above & ((1 << format_.fraction) - 1)) + root_half).as_float(format_)
    # k + bias is put into the fraction of 2**fraction, which is then subtracted
    ones = 2.0 ** format_.fraction
    biased = ((above >> format_.fraction) | x.like(ones).as_bits).as_float(format_)
    return Split(m, biased - (ones + format_.bias))


def log1p_tail(f: Vector, half_square: Vector) -> Vector:
    """log(1 + f) - f + f**2 / 2; half_square: f**2 / 2."""
    if f.scalar == "float":
        return polynomial(f, table.LOG1P["float"]) * (f * (half_square + half_square))
    s = f / (f + 2.0)
    z = s * s
    return s * fma(z, polynomial(z, table.ATANH["double"]), half_square)


def _with_special_values(x: Vector, value: Vector) -> Vector:
    """The logarithm of 0, negative numbers, infinity and NaN beside those of all other x."""
    outside = where(x == 0.0, x.like(-math.inf), math.nan)
    return where(x > 0.0, where(x < math.inf, value, x), outside)


def log_of_sum(x: Vector, low: Vector | None = None) -> Vector:
    """log(x + low) for positive finite x; low: less than an ulp of x."""
    parts = split(x)
    f, k = parts.m - 1.0, parts.k
    high_ln2, low_ln2 = table.LN2_SHORT[x.scalar]
    half_square = f * f * 0.5
    tail = log1p_tail(f, half_square)
    if low is not None:
        tail = tail + low / x
    small = half_square - fma(k, low_ln2, tail)
    return k * high_ln2 - (small - f)


@elementwise("log", float32=1, float64=1, cost=16)
def log(x: Vector) -> Vector:
    return _with_special_values(x, log_of_sum(x))


@elementwise("log1p", float32=1, float64=1)
def log1p(x: Vector) -> Vector:
    total = two_sum(x.like(1.0), x)
    value = _with_special_values(total.high, log_of_sum(total.high, total.low))
    return where(absolute(x) < x.format.epsilon / 8, x, value)


@dataclass(frozen=True, slots=True)
class Base:
    """Constants of a logarithm to a base.

    factor: of the natural logarithm; of_two: the logarithm of 2, whose first part times an exponent
    is exact; both in two parts.  rest: (log(1 + f) / f - factor) / f of float32.
    """

    factor: dict[str, tuple[float, float]]
    of_two: dict[str, tuple[float, float]]
    rest: dict[str, tuple[float, ...]]


BASE_2 = Base(table.LOG2_E, {"float": (1.0, 0.0), "double": (1.0, 0.0)}, table.LOG2)
BASE_10 = Base(table.LOG10_E, table.LOG10_2_SHORT, table.LOG10)


def _log_to_base(x: Vector, base: Base) -> Vector:
    parts = split(x)
    log_m = _float_log if x.scalar == "float" else _double_log
    return _with_special_values(x, log_m(parts.m - 1.0, parts.k, base))


def _float_log(f: Vector, k: Vector, base: Base) -> Vector:
    first, second = base.factor["float"]
    tail = f * fma(f, polynomial(f, base.rest["float"]), second)
    tail = fma(k, base.of_two["float"][1], tail)
    return fma(k, base.of_two["float"][0], fma(f, first, tail))


def _double_log(f: Vector, k: Vector, base: Base) -> Vector:
    """The factor times log(1 + f), both in two parts, plus k times the logarithm of 2."""
    first, second = base.factor["double"]
    half = f * 0.5
    half_square = half * f
    high = f - half_square
    low = ((f - high) - half_square) - fma(half, f, -half_square) + log1p_tail(f, half_square)
    product = high * first
    rest = fma(high, first, -product) + fma(high, second, low * first)
    whole = k * base.of_two["double"][0]
    total = whole + product
    return total + (fma(k, base.of_two["double"][1], rest) + ((whole - total) + product))


@elementwise("log2", float32=1, float64=1, cost=16)
def log2(x: Vector) -> Vector:
    return _log_to_base(x, BASE_2)


@elementwise("log10", float32=1, float64=1)
def log10(x: Vector) -> Vector:
    return _log_to_base(x, BASE_10)


def _small(x: Vector) -> float:
    """Limit below which x**2 / 3 is lost beside 1."""
    return 2.0 ** -(x.format.fraction // 2 + 2)


def _log_of_large_sum(size: Vector, total: Double) -> Vector:
    """log(total), where total is 2 * size for large size, and may then be infinite."""
    large = size > 2.0 ** (size.format.fraction // 2 + 3)
    value = log_of_sum(where(large, size, total.high), where(large, 0.0, total.low))
    return value + where(large, value.like(table.LN2[size.scalar][0]), 0.0)


@elementwise("asinh", float32=1.5, float64=1.5)
def asinh(x: Vector) -> Vector:
    """log(|x| + sqrt(x**2 + 1)), with the sum in two parts."""
    size = absolute(x)
    value = _log_of_large_sum(size, plus(root(plus(two_product(size, size), 1.0)), size))
    value = where(size < math.inf, value, size)
    return where(size < _small(x), x, copysign(value, x))


@elementwise("acosh", float32=1.5, float64=1.5)
def acosh(x: Vector) -> Vector:
    """log(x + sqrt(x**2 - 1)), with the sum in two parts."""
    value = _log_of_large_sum(x, plus(root(plus(two_product(x, x), -1.0)), x))
    outside = where(x == 1.0, x.like(0.0), math.nan)
    return where(x > 1.0, where(x < math.inf, value, x), outside)


@elementwise("atanh", float32=1.5, float64=1.5)
def atanh(x: Vector) -> Vector:
    """log((1 + |x|) / (1 - |x|)) / 2, with the quotient in two parts."""
    size = absolute(x)
    one = x.like(1.0)
    ratio = quotient(two_sum(one, size), two_sum(one, -size))
    value = log_of_sum(ratio.high, ratio.low) * 0.5
    value = where(size < 1.0, value, where(size == 1.0, x.like(math.inf), math.nan))
    return where(size < _small(x), x, copysign(value, x))

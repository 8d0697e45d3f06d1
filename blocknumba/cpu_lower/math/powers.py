"""Powers and roots."""

from __future__ import annotations

import math

from blocknumba import coefficients as table
from blocknumba.cpu_lower.math.double_word import (
    Double, product, quick_sum, quotient, root, times, two_product, two_sum,
)
from blocknumba.cpu_lower.math.exponential import exp_of_sum, integral
from blocknumba.cpu_lower.math.logarithm import split, split_normal
from blocknumba.cpu_lower.math.registry import elementwise
from blocknumba.cpu_lower.vectors import (
    Vector, absolute, at_least, at_most, copysign, fma, polynomial, rounded, where,
)
from blocknumba.cpu_lower.vectors import sqrt as square_root


@elementwise("sqrt", float32=0.5, float64=0.5, cost=8)
def sqrt(x: Vector) -> Vector:
    return square_root(x)


@elementwise("rsqrt", float32=1.5, float64=1.5, cost=12)
def rsqrt(x: Vector) -> Vector:
    return 1.0 / square_root(x)


@elementwise("cbrt", float32=1, float64=1)
def cbrt(x: Vector) -> Vector:
    """t**(-1/3) by a polynomial and Householder's steps; t r**2 is then corrected once.

    |x| = t * 8**q with t from 0.35 to 2.83.
    """
    size = absolute(x)
    parts = split(size)
    q, bits = integral(parts.k, 1.0 / 3.0, x.format.bias)
    third = fma(q, -3.0, parts.k)
    t = parts.m * where(third > 0.5, x.like(2.0), where(third < -0.5, x.like(0.5), 1.0))
    r = polynomial(t, table.INVERSE_CBRT[x.scalar])
    for _ in range(1 if x.scalar == "float" else 2):
        error = fma(-t * r, r * r, 1.0)
        r = fma(r * error, polynomial(error, (1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0)), r)
    y = t * r * r
    square = two_product(y, y)
    rest = fma(-square.low, y, fma(-square.high, y, t))
    y = fma(rest, r * r * (1.0 / 3.0), y)
    value = y * (bits << x.format.fraction).as_float(x.format)
    return where((size > 0.0) & (size < math.inf), copysign(value, x), x)


@elementwise("hypot", float32=1, float64=1, arity=2)
def hypot(x: Vector, y: Vector) -> Vector:
    infinite = (absolute(x) == math.inf) | (absolute(y) == math.inf)
    if x.scalar == "float":
        wide, other = x.to("double"), y.to("double")
        value = square_root(fma(wide, wide, other * other)).to("float")
    else:
        value = _scaled_hypot(x, y)
    return where(infinite, math.inf, value)


def _scaled_hypot(x: Vector, y: Vector) -> Vector:
    """Squares in two parts of numbers that are brought near 1; float64."""
    a, b = absolute(x), absolute(y)
    larger, smaller = where(a > b, a, b), where(a > b, b, a)
    large, small = larger > 2.0 ** 500, larger < 2.0 ** -400
    scale = where(large, x.like(2.0 ** -600), where(small, x.like(2.0 ** 600), 1.0))
    back = where(large, x.like(2.0 ** 600), where(small, x.like(2.0 ** -600), 1.0))
    first, second = (two_product(v, v) for v in (larger * scale, smaller * scale))
    total = quick_sum(first.high, second.high)
    value = root(Double(total.high, total.low + (first.low + second.low))).high * back
    return where((a == 0.0) & (b == 0.0), 0.0, value)


@elementwise("power", float32=1, float64=1, arity=2, cost=60)
def power(x: Vector, y: Vector) -> Vector:
    """The power of |x|, and then what signs, zeros, infinities and NaN make of it if there are."""
    size = absolute(x)
    value = _float_power(size, y) if x.scalar == "float" else _double_power(size, y)
    usual = (x > 0.0) & (x < math.inf) & (absolute(y) < math.inf)
    return x.body.where_any(~usual, lambda: [_with_special_values(x, y, value)], [value])[0]


def _float_power(size: Vector, y: Vector) -> Vector:
    """float32 in float64, by polynomials that are as short as that allows."""
    parts = split_normal(size.to("double"))
    f = parts.m - 1.0
    s = f / (f + 2.0)
    z = s * s
    log_m = fma(s * z, polynomial(z, table.ATANH["double short"]), s + s)
    exponent = fma(log_m, table.LOG2_E["double"][0], parts.k) * y.to("double")
    exponent = at_least(at_most(exponent, 130.0), -152.0)
    n, bits = integral(exponent, 1.0, exponent.format.bias)
    r = (exponent - n) * table.LN2["double"][0]
    near = fma(fma(polynomial(r, table.EXP["double short"]), r, 1.0), r, 1.0)
    return (near * (bits << near.format.fraction).as_float(near.format)).to("float")


def _double_power(size: Vector, y: Vector) -> Vector:
    """e ** (y log |x|), with a logarithm of more digits than float64 has."""
    # more would overflow in the product of two parts; of any number but 1 it is enough
    y = at_least(at_most(y, 2.0 ** 80), -2.0 ** 80)
    exponent = times(long_log(size), y)
    limited = at_least(at_most(exponent.high, 800.0), -800.0)
    # the second part of an exponent that is limited, or overflows, is none
    return exp_of_sum(limited, where(limited == exponent.high, exponent.low, 0.0))


def long_log(x: Vector) -> Double:
    """log(x) to 66 bits: 2 s + s z (2/3 + z p(z)), where z = s**2 and only p has 53."""
    parts = split(x)
    f = parts.m - 1.0
    none = f.like(0.0)
    s = quotient(Double(f, none), two_sum(f.like(2.0), f))
    z = product(s, s)
    two_thirds, more = table.TWO_THIRDS["double"]
    factor = quick_sum(f.like(two_thirds),
                       fma(z.high, polynomial(z.high, table.ATANH_ABOVE["double"]), more))
    cubic = product(product(s, z), factor)
    log_m = quick_sum(s.high + s.high, cubic.high)
    low = log_m.low + (cubic.low + (s.low + s.low))
    high_ln2, low_ln2 = table.LN2_SHORT["double"]
    total = quick_sum(parts.k * high_ln2, log_m.high)
    return quick_sum(total.high, total.low + fma(parts.k, low_ln2, low))


def _with_special_values(x: Vector, y: Vector, value: Vector) -> Vector:
    """x ** y from |x| ** y.   Source: C17, F.10.4.4."""
    size = absolute(x)
    half = y * 0.5
    whole = rounded("trunc", y) == y
    odd = whole & (rounded("trunc", half) != half)
    limit = (size == 0.0) | (size == math.inf) | (absolute(y) == math.inf)
    shrinks = (size > 1.0) ^ (y > 0.0)
    value = where(limit, where(size == 1.0, value.like(1.0), where(shrinks, value.like(0.0),
                                                                   math.inf)), value)
    value = where(odd & (x.as_bits < 0), -value, value)
    value = where((x < 0.0) & (size < math.inf) & ~whole, math.nan, value)
    value = where((x != x) | (y != y), math.nan, value)
    return where((x == 1.0) | (y == 0.0), 1.0, value)

"""asin, acos, atan and atan2: polynomials near 0, to which other arguments are brought."""

from __future__ import annotations

import math

from blocknumba import coefficients as table
from blocknumba.cpu_lower.math.double_word import Double, quick_sum, quotient, two_sum
from blocknumba.cpu_lower.math.registry import elementwise
from blocknumba.cpu_lower.vectors import (
    Vector, absolute, at_most, copysign, fma, polynomial, sqrt, where,
)

EIGHTH = math.tan(math.pi / 8)


@elementwise("asin", float32=1.5, float64=1.5)
def asin(x: Vector) -> Vector:
    """Up to 1/2 a polynomial, above pi/2 - 2 asin(sqrt((1 - |x|) / 2))."""
    size = absolute(x)
    near_one = size > 0.5
    s, tail = _asin_parts(size, near_one)
    high, low, _ = table.HALF_PI[x.scalar]
    total = quick_sum(x.like(high), s * -2.0)
    large = total.high + (total.low + (low - (tail + tail)))
    return copysign(where(near_one, large, s + tail), x)


@elementwise("acos", float32=1.5, float64=1.5)
def acos(x: Vector) -> Vector:
    """pi/2 - asin(x), without its cancellation near 1."""
    size = absolute(x)
    near_one = size > 0.5
    s, tail = _asin_parts(size, near_one)
    high, low, _ = table.HALF_PI[x.scalar]
    negative = x < 0.0
    # 2 asin of the root for x > 1/2, pi less that for x < -1/2, pi/2 - asin(x) between them
    twice = where(near_one, x.like(2.0), 1.0)
    upward = near_one ^ negative
    signed = where(upward, twice, -twice)
    base = where(near_one, where(negative, x.like(2.0), 0.0), 1.0)
    signed = where(near_one & negative, x.like(-2.0), signed)
    total = quick_sum(base * high, s * signed)
    value = total.high + (total.low + (base * low + tail * signed))
    return where(near_one & ~negative, (s + tail) * 2.0, value)


def _asin_parts(size: Vector, near_one: Vector) -> tuple[Vector, Vector]:
    """Two numbers whose sum is asin(size), or asin(sqrt((1 - size) / 2)) where near one."""
    z = where(near_one, (1.0 - size) * 0.5, size * size)
    s = where(near_one, sqrt(z), size)
    return s, s * z * polynomial(z, table.ASIN[size.scalar])


@elementwise("atan", float32=1, float64=1)
def atan(x: Vector) -> Vector:
    size = at_most(absolute(x), 2.0 ** (2 * x.format.fraction))  # pi/2 from there on
    one = x.like(1.0)
    return copysign(_angle(size, one, one < 0.0), x)


@elementwise("atan2", float32=1.5, float64=1.5, arity=2)
def atan2(x: Vector, y: Vector) -> Vector:
    """The angle of the point (y, x)."""
    over, under = absolute(x), absolute(y)
    high, far = over == math.inf, under == math.inf
    # an infinity beside a number is 1 beside 0, or beside NaN; two are 1 beside 1
    over, under = (where(high, 1.0, where(far, over * 0.0, over)),
                   where(far, 1.0, where(high, under * 0.0, under)))
    under = where((over == 0.0) & (under == 0.0), 1.0, under)
    scale = _scale(where(over > under, over, under))
    return copysign(_angle(over * scale, under * scale, y.as_bits < 0), x)


def _scale(larger: Vector) -> Vector:
    """A power of two that keeps reciprocals and sums finite and normal."""
    exponent = larger.format.bias // 2
    large, small = larger > 2.0 ** exponent, larger < 2.0 ** -exponent
    return where(large, larger.like(2.0 ** -exponent), where(small, 2.0 ** exponent,
                                                             larger.like(1.0)))


def _angle(over: Vector, under: Vector, left: Vector) -> Vector:
    """atan(over / under), or pi less that where left; over, under: not negative, finite or NaN.

    The angle is reduced to less than pi/8 by a quarter or an eighth of a turn.
    """
    steep = over > under * (1.0 / EIGHTH)
    middle = (over > under * EIGHTH) & ~steep
    total, difference = two_sum(over, under), two_sum(over, -under)
    zero = over.like(0.0)
    ratio = quotient(
        Double(where(steep, -under, where(middle, difference.high, over)),
               where(middle, difference.low, zero)),
        Double(where(steep, over, where(middle, total.high, under)),
               where(middle, total.low, zero)))
    q = ratio.high
    z = q * q
    tail = fma(q * z, polynomial(z, table.ATAN[q.scalar]), ratio.low)
    high, low, _ = table.HALF_PI[q.scalar]
    quarters = where(steep, q.like(1.0), where(middle, q.like(0.5), 0.0))
    quarters = where(left, 2.0 - quarters, quarters)
    q, tail = (where(left, -part, part) for part in (q, tail))
    start = quick_sum(quarters * high, q)
    return start.high + (start.low + fma(quarters, low, tail))

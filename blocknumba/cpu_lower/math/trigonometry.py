"""sin, cos and tan: reduction by multiples of pi / 2, and polynomials up to pi / 4.

|x| = k pi/2 + r.  pi / 2 is subtracted in three parts, the first of which leaves no error, and r is
kept as a sum r + low.  Where k has too many bits for that, x is multiplied with the bits of 2 / pi
that decide the quadrant and what follows: one lane after another, as large numbers are rare.
Source: M. Payne, R. Hanek, Radian reduction for trigonometric functions, 1983.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from blocknumba import coefficients as table
from blocknumba.cpu_lower.math.double_word import Double, quick_sum, quotient, two_product
from blocknumba.cpu_lower.math.exponential import integral
from blocknumba.cpu_lower.math.registry import elementwise
from blocknumba.cpu_lower.vectors import Vector, absolute, at_least, fma, polynomial, where

# k of fewer bits than these: k times the third part of pi / 2 is still exact enough.
LARGEST = {"float": 2.0 ** 17, "double": 2.0 ** 30}


@dataclass(frozen=True, slots=True)
class Angle:
    """k * pi/2 + r + low; quadrant: an integer whose last two bits are those of k."""

    r: Vector
    low: Vector
    quadrant: Vector


def reduce(size: Vector) -> Angle:
    """The angle of a number from 0 to LARGEST."""
    first, second, third = (-part for part in table.HALF_PI[size.scalar])
    k, bits = integral(size, table.TWO_OVER_PI[size.scalar][0], 0)
    near = fma(k, first, size)
    subtracted = two_product(k, second)
    r = near + subtracted.high
    low = ((near - r) + subtracted.high) + subtracted.low
    return Angle(r, fma(k, third, low), bits)


def reduce_large(size: Vector) -> Angle:
    """The angle of any finite float64, in one lane.

    With size = m * 2**e only the bits of 2 / pi from 2**(1 - e) down matter: those above make
    whole turns.  192 of them times m are the quadrant and 190 bits of the fraction.
    """
    bits = size.as_bits
    m = (bits & ((1 << 52) - 1) | (1 << 52)).to_unsigned("i128")
    start = (bits >> 52) - (1023 + 52) + (64 - 2)  # the first bit; the table has 64 more in front
    word = start >> 6
    shift = (start & 63).to_unsigned("i128")
    words = [size.body.load_constant("two_over_pi", table.TWO_OVER_PI_BITS, "i64", word + i)
             .to_unsigned("i128") for i in range(4)]
    first, second = (words[0] << 64) | words[1], (words[2] << 64) | words[3]
    # two shifts, as one by 128 would be undefined
    window = (first << shift) | ((second >> 1) >> (127 - shift))
    below = (second << shift) >> 64
    turns = m * window + ((m * below) >> 64)
    # to the nearest quadrant; the fraction is signed, in units of 2**-126
    quadrant = (turns + (1 << 125)) >> 126
    fraction = turns - (quadrant << 126)
    top = fraction.shift_signed(75).to("i64").to("double") * 2.0 ** -51
    middle = ((fraction >> 24) & ((1 << 51) - 1)).to("i64").to("double") * 2.0 ** -102
    rest = fma((fraction & ((1 << 24) - 1)).to("i64").to("double"), 2.0 ** -126, middle)
    high = top + rest
    return _times_half_pi(high, rest - (high - top), quadrant.to("i64"))


def _times_half_pi(high: Vector, low: Vector, quadrant: Vector) -> Angle:
    first, second, _ = table.HALF_PI["double"]
    r = high * first
    return Angle(r, fma(high, first, -r) + fma(high, second, low * first), quadrant)


def sine(angle: Angle) -> Double:
    """sin(r + low)."""
    r = angle.r
    z = r * r
    cubic = fma(r * z, polynomial(z, table.SIN[r.scalar]), angle.low)
    return quick_sum(r, fma(z * -0.5, angle.low, cubic))


def cosine(angle: Angle) -> Double:
    """cos(r + low)."""
    r = angle.r
    z = r * r
    half = z * 0.5
    leading = 1.0 - half
    rest = fma(-r, angle.low, (1.0 - leading) - half)
    return quick_sum(leading, fma(z * z, polynomial(z, table.COS[r.scalar]), rest))


def _negated(x: Vector, bits: Vector) -> Vector:
    """x with its sign changed where bit 1 of an integer is set."""
    sign = (bits << (x.format.bits - 2)) & x.format.sign
    return (x.as_bits ^ sign).as_float(x.format)


def _is_odd(angle: Angle) -> Vector:
    return (angle.quadrant & 1) != 0


def _sin_of(angle: Angle) -> Vector:
    value = where(_is_odd(angle), cosine(angle).high, sine(angle).high)
    return _negated(value, angle.quadrant)


def _cos_of(angle: Angle) -> Vector:
    value = where(_is_odd(angle), sine(angle).high, cosine(angle).high)
    return _negated(value, angle.quadrant + 1)


def _tan_of(angle: Angle) -> Vector:
    odd = _is_odd(angle)
    s, c = sine(angle), cosine(angle)
    over = Double(where(odd, c.high, s.high), where(odd, c.low, s.low))
    under = Double(where(odd, s.high, c.high), where(odd, s.low, c.low))
    return _negated(quotient(over, under).high, angle.quadrant << 1)


def _of_angle(size: Vector, function: Callable[[Angle], Vector]) -> Vector:
    """A function of the angle |x|; NaN where that is infinite."""
    def of_large(one: Vector) -> Vector:
        wide = one.to("double")
        value = function(reduce_large(wide)).to(one.scalar)
        return where(one < math.inf, value, math.nan)

    usual = function(reduce(size))
    limit = LARGEST[size.scalar]
    large = size > limit
    rare = size.body.each_lane("large", of_large, at_least(size, limit))
    return size.body.where_any(large, lambda: [where(large, rare(), usual)], [usual])[0]


def _with_sign(value: Vector, x: Vector) -> Vector:
    """An odd function of |x| as one of x."""
    return (value.as_bits ^ (x.as_bits & x.format.sign)).as_float(x.format)


@elementwise("sin", float32=1, float64=1, cost=40)
def sin(x: Vector) -> Vector:
    return _with_sign(_of_angle(absolute(x), _sin_of), x)


@elementwise("cos", float32=1, float64=1, cost=40)
def cos(x: Vector) -> Vector:
    return _of_angle(absolute(x), _cos_of)


# Below 1 a unit of tan is 2**-53 in float64. There the rounding of r * r is up to 0.35 of it in the
# cosine, that of the terms of the sine 0.15, and the quotient's 0.5: 1.0, and products of these.
@elementwise("tan", float32=1.5, float64=1.5, cost=50)
def tan(x: Vector) -> Vector:
    return _with_sign(_of_angle(absolute(x), _tan_of), x)

"""The gamma function and the logarithm of its absolute value; float32 is computed in float64."""

from __future__ import annotations

import math

from blocknumba import coefficients as table
from blocknumba.cpu_lower.math.double_word import (
    Double, plus, product, quick_sum, times, two_product, two_sum,
)
from blocknumba.cpu_lower.math.exponential import exp_of_sum
from blocknumba.cpu_lower.math.logarithm import log
from blocknumba.cpu_lower.math.powers import long_log
from blocknumba.cpu_lower.math.registry import elementwise
from blocknumba.cpu_lower.math.trigonometry import Angle, cosine, sine
from blocknumba.cpu_lower.vectors import (
    Vector, absolute, at_least, at_most, copysign, fma, polynomial, rounded, where,
)

# Stirling's series from here on, products below.
STIRLING = 8.0
# gamma is infinite, and of negative numbers 0, from less than this on; the sine of it is not 0.
GAMMA_LIMIT = 200.5
# lgamma of larger float64 numbers rounds to infinity.
LGAMMA_LIMIT = 2.5599833278516383e305


def _small_gamma(x: Vector) -> Vector:
    """Gamma of |x| <= STIRLING, in float64.

    x = m + u with |u| <= 1/2: 1 / gamma(2 + u) is a polynomial, and from 2 + u to x one factor is
    multiplied or divided for each step.
    """
    m = rounded("rint", x)
    u = x - m
    one = Double(x.like(1.0), x.like(0.0))
    above = one
    for step in range(2, int(STIRLING)):
        # step + u is exact where it is taken: x less an integer
        above = _where(m > step, times(above, u + step), above)
    below = _where(m < 1.5, two_sum(one.high, u), one)
    below = _where(m < 0.5, times(below, u), below)

    def below_zero() -> list[Vector]:
        made = below
        for step in range(-1, -int(STIRLING) - 1, -1):
            made = _where(m < step + 0.5, product(made, two_sum(u.like(float(step)), u)), made)
        return [made.high]

    divisor = x.body.where_any(m < 0.0, below_zero, [below.high])[0]
    return above.high / (divisor * polynomial(u, table.INVERSE_GAMMA["double"]))


def _where(condition: Vector, x: Double, y: Double) -> Double:
    return Double(where(condition, x.high, y.high), where(condition, x.low, y.low))


def _stirling(size: Vector) -> Double:
    """log(gamma(a)) for a >= STIRLING: (a - 1/2) (log(a) - 1) + (log(2 pi) - 1) / 2 + s(1 / a)."""
    high, low = table.STIRLING_CONSTANT["double"]
    inverse = 1.0 / size
    series = inverse * polynomial(inverse * inverse, table.STIRLING["double"])
    total = plus(times(plus(long_log(size), -1.0), size - 0.5), high)
    return quick_sum(total.high, total.low + (low + series))


def _sine_of_half_turns(size: Vector) -> Vector:
    """|sin(pi * size)|, exactly 0 of integers."""
    rest = absolute(size - rounded("rint", size))
    near = rest <= 0.25
    part = where(near, rest, 0.5 - rest)
    half_pi, low, _ = table.HALF_PI["double"]
    r = two_product(part, 2.0 * half_pi)
    angle = Angle(r.high, fma(part, 2.0 * low, r.low), rest)
    return where(near, sine(angle).high, cosine(angle).high)


def _is_pole(x: Vector) -> Vector:
    return (x <= 0.0) & (rounded("rint", x) == x)


@elementwise("gamma", float32=1, float64=6)
def gamma(x: Vector) -> Vector:
    return _gamma(x.to("double")).to(x.scalar)


def _gamma(x: Vector) -> Vector:
    large = absolute(x) >= STIRLING
    small = _small_gamma(at_least(at_most(x, STIRLING), -STIRLING))
    value = x.body.where_any(large, lambda: [where(large, _large_gamma(x), small)], [small])[0]
    pole = where(x == 0.0, copysign(x.like(math.inf), x), math.nan)
    return where(_is_pole(x), pole, value)


def _large_gamma(x: Vector) -> Vector:
    """Below 0 gamma(-a) = -pi / (a sin(pi a) gamma(a)), without that gamma(a) overflows."""
    size = at_most(absolute(x), GAMMA_LIMIT)
    negative = x < 0.0
    logarithm = _stirling(at_least(size, STIRLING))
    factor = where(negative, x.like(-0.5), 1.0)
    power = exp_of_sum(logarithm.high * factor, logarithm.low * factor)
    half = absolute(x) * 0.5
    odd = half - rounded("floor", half) >= 0.5  # gamma is positive where floor(a) is
    ratio = math.pi / (size * _sine_of_half_turns(size))
    reflected = power * where(odd, ratio, -ratio) * power
    return where(negative, reflected, power)


@elementwise("lgamma", float32=1, float64=3)
def lgamma(x: Vector) -> Vector:
    return _lgamma(x.to("double")).to(x.scalar)


def _lgamma(x: Vector) -> Vector:
    size = absolute(x)
    tiny, large = size < 2.0 ** -60, size >= STIRLING
    gamma_of_x = absolute(_small_gamma(at_least(at_most(x, STIRLING), -STIRLING)))
    logarithm = log(where(tiny, size, gamma_of_x))  # gamma of tiny x may be infinite
    small = where(tiny, -logarithm, logarithm)
    value = x.body.where_any(large, lambda: [where(large, _large_lgamma(x), small)], [small])[0]
    infinite = _is_pole(x) | (size > LGAMMA_LIMIT)
    return where(infinite, math.inf, value)


def _large_lgamma(x: Vector) -> Vector:
    """Below 0 log(pi / |a sin(pi a)|) - log(gamma(a)): a difference of numbers in two parts."""
    size = at_least(at_most(absolute(x), LGAMMA_LIMIT), STIRLING)
    positive = _stirling(size)
    sine = long_log(size * _sine_of_half_turns(size) * (1.0 / math.pi))
    total = two_sum(sine.high, positive.high)
    reflected = total.high + (total.low + (sine.low + positive.low))
    return where(x < 0.0, -reflected, positive.high + positive.low)

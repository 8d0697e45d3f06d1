"""The gamma function and the logarithm of its absolute value; float32 is computed in float64."""

from __future__ import annotations

import math

from blocknumba.cpu_lower.math import coefficients as table
from blocknumba.cpu_lower.math.double_word import (
    Double, plus, product, quick_sum, times, two_product, two_sum,
)
from blocknumba.cpu_lower.math.exponential import exp_of_sum
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
# lgamma of larger numbers is infinite.
LGAMMA_LIMIT = 2.5563481638716906e305


def _small_gamma(x: Vector) -> Vector:
    """Gamma of |x| < STIRLING, in float64.

    x = m + u with |u| <= 1/2: 1 / gamma(2 + u) is a polynomial, and from 2 + u to x one factor is
    multiplied or divided for each step.
    """
    m = rounded("rint", x)
    u = x - m
    above = Double(x.like(1.0), x.like(0.0))
    below = above
    for step in range(2, int(STIRLING)):
        factor = two_sum(u.like(float(step)), u)
        above = _times_where(m > step, above, factor)
    for step in range(1, -int(STIRLING) - 1, -1):
        factor = two_sum(u.like(float(step)), u)
        below = _times_where(m < step + 0.5, below, factor)
    inverse = polynomial(u, table.INVERSE_GAMMA["double"])
    return above.high / (below.high * inverse)


def _times_where(condition: Vector, x: Double, y: Double) -> Double:
    made = product(x, y)
    return Double(where(condition, made.high, x.high), where(condition, made.low, x.low))


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


@elementwise("gamma", float32=1, float64=5)
def gamma(x: Vector) -> Vector:
    return _gamma(x.to("double")).to(x.scalar)


def _gamma(x: Vector) -> Vector:
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
    small = _small_gamma(at_least(at_most(x, STIRLING), -STIRLING))
    value = where(size < STIRLING, small, where(negative, reflected, power))
    pole = where(x == 0.0, copysign(x.like(math.inf), x), math.nan)
    return where(_is_pole(x), pole, value)


@elementwise("lgamma", float32=1, float64=2)
def lgamma(x: Vector) -> Vector:
    return _lgamma(x.to("double")).to(x.scalar)


def _lgamma(x: Vector) -> Vector:
    """log |gamma(x)|, from one logarithm more than Stirling's: of what is below 8 or reflected."""
    size = absolute(x)
    limited = at_most(size, LGAMMA_LIMIT)
    negative, tiny, large = x < 0.0, size < 2.0 ** -60, size >= STIRLING
    small = absolute(_small_gamma(at_least(at_most(x, STIRLING), -STIRLING)))
    reflected = limited * _sine_of_half_turns(limited) * (1.0 / math.pi)
    argument = where(large, where(negative, reflected, 1.0), where(tiny, size, small))
    first = long_log(argument)
    sign = where(large | tiny, x.like(-1.0), 1.0)
    second = _stirling(at_least(limited, STIRLING))
    other = where(large, where(negative, x.like(-1.0), 1.0), 0.0)
    total = two_sum(first.high * sign, second.high * other)
    value = total.high + (total.low + fma(first.low, sign, second.low * other))
    infinite = _is_pole(x) | (size > LGAMMA_LIMIT)
    return where(infinite, math.inf, value)

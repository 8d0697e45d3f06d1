"""exp and what is computed from it: exp2, expm1, sinh, cosh, tanh.

x = n ln 2 + r with |r| <= ln(2) / 2, and e**x = 2**n e**r by a polynomial.  n is rounded by adding
a number so large that its last bit counts ones; the sum's bits then hold n, and a bias that was
added with it, ready to be shifted into the exponent of a float.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba import coefficients as table
from blocknumba.cpu_lower.math.double_word import quick_sum, two_sum
from blocknumba.cpu_lower.math.registry import elementwise
from blocknumba.cpu_lower.vectors import (
    Vector, absolute, at_least, at_most, copysign, fma, polynomial, where,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Arguments beyond which functions do not change.

    overflow: exp is infinite; underflow: exp is 0; minus_one: expm1 is -1; hyperbolic: sinh and
    cosh are infinite.
    """

    overflow: float
    underflow: float
    minus_one: float
    hyperbolic: float


LIMITS = {"float": Limits(89.0, -105.0, -20.0, 89.5), "double": Limits(710.0, -746.0, -40.0, 710.5)}


def integral(x: Vector, scale: float, bias: int) -> tuple[Vector, Vector]:
    """x * scale rounded to an integer: as a float, and as bits whose last are those of n + bias."""
    ones = 1.5 * 2 ** x.format.fraction + bias
    total = fma(x, scale, ones)
    return total - ones, total.as_bits


def times_power(x: Vector, bits: Vector) -> Vector:
    """x * 2**n, rounded once, also where 2**n alone is no float.

    bits: from `integral` with a bias of twice the format's.
    """
    half = bits >> 1
    shift = x.format.fraction
    first = (half << shift).as_float(x.format)
    return x * first * ((bits - half) << shift).as_float(x.format)


def scaled(r: Vector, bits: Vector) -> Vector:
    """e**r * 2**n where that is no subnormal number and does not overflow.

    bits: from `integral` with a bias of the format's.
    """
    return _exp_near_zero(r) * (bits << r.format.fraction).as_float(r.format)


def _reduced(x: Vector, bias: int) -> tuple[Vector, Vector]:
    """r, and the bits of n."""
    n, bits = integral(x, table.LOG2_E[x.scalar][0], bias)
    high, low = table.LN2[x.scalar]
    return fma(n, -low, fma(n, -high, x)), bits


def _exp_near_zero(r: Vector) -> Vector:
    return fma(fma(polynomial(r, table.EXP[r.scalar]), r, 1.0), r, 1.0)


def exp_of_sum(x: Vector, low: Vector) -> Vector:
    """e ** (x + low), but for the last rounding hardly in error; low: less than an ulp of x."""
    x = _limited(x)
    n, bits = integral(x, table.LOG2_E[x.scalar][0], 2 * x.format.bias)
    first, second = table.LN2[x.scalar]
    near = fma(n, -first, x)
    nearer = fma(n, -second, near)
    r = two_sum(nearer, fma(n, -second, near - nearer) + low)
    tail = fma(polynomial(r.high, table.EXP[x.scalar]), r.high * r.high, fma(r.low, r.high, r.low))
    total = quick_sum(r.high.like(1.0), r.high)
    return times_power(total.high + (total.low + tail), bits)


def _limited(x: Vector) -> Vector:
    """x as far as exp changes."""
    return at_least(at_most(x, LIMITS[x.scalar].overflow), LIMITS[x.scalar].underflow)


@elementwise("exp", float32=1, float64=1, cost=14)
def exp(x: Vector) -> Vector:
    r, bits = _reduced(_limited(x), 2 * x.format.bias)
    return times_power(_exp_near_zero(r), bits)


@elementwise("exp2", float32=1, float64=1, cost=12)
def exp2(x: Vector) -> Vector:
    format_ = x.format
    least = -(format_.bias + format_.fraction + 2)
    x = at_least(at_most(x, float(format_.bias + 1)), float(least))
    n, bits = integral(x, 1.0, 2 * format_.bias)
    r = x - n
    return times_power(fma(polynomial(r, table.EXP2[x.scalar]), r, 1.0), bits)


def _itself_near_zero(x: Vector, value: Vector) -> Vector:
    """value, but x where a function of slope 1 is x: which keeps -0.0 and subnormal numbers."""
    return where(absolute(x) < x.format.epsilon / 8, x, value)


@elementwise("expm1", float32=2, float64=2)
def expm1(x: Vector) -> Vector:
    """2**n (e**r - 1) + (2**n - 1), halved on the way so that 2**(n - 1) is no infinity."""
    limits = LIMITS[x.scalar]
    format_ = x.format
    limited = at_least(at_most(x, limits.overflow), limits.minus_one)
    n, bits = integral(limited, table.LOG2_E[x.scalar][0], format_.bias - 1)
    high, low = table.LN2[x.scalar]
    near = fma(n, -high, limited)
    r = fma(n, -low, near)
    rest = fma(n, -low, near - r)
    tail = fma(polynomial(r, table.EXP[x.scalar]), r * r, fma(rest, r, rest))
    power = (bits << format_.fraction).as_float(format_)
    half = fma(power, r + tail, power - 0.5)
    return _itself_near_zero(x, half + half)


def _quarter_exp(size: Vector) -> Vector:
    """e**size / 4 for size >= 0, which overflows no sooner than sinh."""
    r, bits = _reduced(at_most(size, LIMITS[size.scalar].hyperbolic), size.format.bias - 2)
    return scaled(r, bits)


def odd_polynomial(x: Vector, coefficients: dict[str, tuple[float, ...]]) -> Vector:
    """x + x**3 p(x**2)."""
    z = x * x
    return fma(x * z, polynomial(z, coefficients[x.scalar]), x)


@elementwise("sinh", float32=2, float64=2)
def sinh(x: Vector) -> Vector:
    """Up to 1 a polynomial, above (e**x - e**-x) / 2."""
    size = absolute(x)
    quarter = _quarter_exp(size)
    half = quarter - 0.0625 / quarter
    return where(size < 1.0, _itself_near_zero(x, odd_polynomial(x, table.SINH)),
                 copysign(half + half, x))


@elementwise("cosh", float32=1.5, float64=1.5)
def cosh(x: Vector) -> Vector:
    quarter = _quarter_exp(absolute(x))
    half = quarter + 0.0625 / quarter
    return half + half


@elementwise("tanh", float32=1.5, float64=1.5, cost=24)
def tanh(x: Vector) -> Vector:
    """Up to 0.6 a polynomial, above 1 - 2 / (e**2x + 1)."""
    size = absolute(x)
    r, bits = _reduced(at_most(size + size, 40.0), x.format.bias)
    large = 1.0 - 2.0 / (scaled(r, bits) + 1.0)
    return where(size < 0.6, _itself_near_zero(x, odd_polynomial(x, table.TANH)),
                 copysign(large, x))

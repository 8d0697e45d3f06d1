"""Functions whose results are exact: rounding to integers, remainders, neighbours, signs."""

from __future__ import annotations

import math

from blocknumba.cpu_lower.math.registry import elementwise
from blocknumba.cpu_lower.vectors import Vector, absolute, rounded, where
from blocknumba.cpu_lower.vectors import copysign as with_sign
from blocknumba.cpu_lower.vectors import fma


@elementwise("floor", float32=0, float64=0, cost=1)
def floor(x: Vector) -> Vector:
    return rounded("floor", x)


@elementwise("ceil", float32=0, float64=0, cost=1)
def ceil(x: Vector) -> Vector:
    return rounded("ceil", x)


@elementwise("trunc", float32=0, float64=0, cost=1)
def trunc(x: Vector) -> Vector:
    return rounded("trunc", x)


@elementwise("rint", float32=0, float64=0, cost=1)
def rint(x: Vector) -> Vector:
    return rounded("rint", x)


@elementwise("copysign", float32=0, float64=0, arity=2, cost=1)
def copysign(x: Vector, y: Vector) -> Vector:
    return with_sign(x, y)


@elementwise("nextafter", float32=0, float64=0, arity=2)
def nextafter(x: Vector, y: Vector) -> Vector:
    """The bits of floats of one sign are ordered as the floats are."""
    bits = x.as_bits
    outward = (x < y) ^ (bits < 0)
    moved = (bits + where(outward, bits.like(1), -1)).as_float(x.format)
    least = with_sign(bits.like(1).as_float(x.format), y)
    value = where(x == y, y, where(x == 0.0, least, moved))
    return where((x != x) | (y != y), x + y, value)


def _step(size: Vector, divisor: Vector) -> Vector:
    """size less the largest multiple of divisor, exactly; size / divisor < 2**fraction."""
    quotient = rounded("trunc", size / divisor)
    rest = fma(-quotient, divisor, size)
    # the quotient may have been rounded up to the next integer
    return where(rest < 0.0, rest + divisor, rest)


def _exponent(x: Vector) -> Vector:
    """The exponent of positive numbers, subnormal ones too, plus the bias; an integer."""
    format_ = x.format
    tiny = x < format_.least_normal
    bits = where(tiny, x * 2.0 ** (format_.fraction + 1), x).as_bits >> format_.fraction
    return bits - where(tiny, bits.like(format_.fraction + 1), 0)


def _power(exponent: Vector, like: Vector) -> Vector:
    """2 ** exponent of integers."""
    return ((exponent + like.format.bias) << like.format.fraction).as_float(like.format)


def fmod(x: Vector, y: Vector) -> Vector:
    """The exact remainder of x / y with the sign of x; NaN of infinite x, and of y = 0."""
    size, divisor = absolute(x), absolute(y)
    limit = 2.0 ** x.format.fraction
    far = (size / divisor >= limit) & (size < math.inf) & (divisor > 0.0)

    def step(carried: list[Vector]) -> tuple[Vector, list[Vector]]:
        (rest,) = carried
        distance = _exponent(rest) - _exponent(divisor) - (x.format.fraction - 2)
        more = far & (distance > 0)
        # a power of two is a float as far as twice the bias
        distance = where(distance < 2 * x.format.bias, distance, 2 * x.format.bias)
        distance = where(more, distance, 0)
        half = distance >> 1
        scaled = divisor * _power(half, x) * _power(distance - half, x)
        return more, [_step(rest, scaled)]

    rest = x.body.where_any(far, lambda: x.body.repeat([size], step), [_step(size, divisor)])[0]
    rest = where((divisor == math.inf) & (size < math.inf), size, rest)
    return with_sign(rest, x)


@elementwise("mod", float32=0, float64=0, arity=2, cost=10)
def mod(x: Vector, y: Vector) -> Vector:
    """Source: npy_divmod."""
    rest = fmod(x, y)
    apart = (y < 0.0) ^ (rest < 0.0)
    return where(rest == 0.0, with_sign(rest, y), where(apart, rest + y, rest))


@elementwise("floordiv", float32=0, float64=0, arity=2, cost=10)
def floordiv(x: Vector, y: Vector) -> Vector:
    """Source: npy_divmod, whose roundings it repeats."""
    rest = fmod(x, y)
    quotient = (x - rest) / y
    apart = ((y < 0.0) ^ (rest < 0.0)) & (rest != 0.0)
    quotient = where(apart, quotient - 1.0, quotient)
    below = rounded("floor", quotient)
    below = where(quotient - below > 0.5, below + 1.0, below)
    ratio = x / y
    value = where(quotient == 0.0, with_sign(quotient, ratio), below)
    return where(y == 0.0, ratio, value)

"""Functions of angles in half turns, of the normal distribution, and their inverses.

Those of the error function are computed in float64, and rounded.
"""

from __future__ import annotations

import math

from blocknumba.libdevice.floats import erf, erfc, exp, hypot, log, rint, sqrt
from blocknumba.libdevice.parts import as_float, same_dtype
from blocknumba.tile_ir.ir.types import float64, int32
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import (
    FLOAT_FUNCTIONS, absolute as _abs, fma as _fma, where as _where,
)

_sin, _cos, _copysign, _floor = (
    FLOAT_FUNCTIONS[name] for name in ("sin", "cos", "copysign", "floor"))
_INFINITY, _NAN = float("inf"), float("nan")
_ROOT_HALF = math.sqrt(0.5)
_ROOT_HALF_REST = -4.833646656726457e-17  # of the root of 1/2
_ROOT_PI, _SLOPE = math.sqrt(math.pi), 2 / math.sqrt(math.pi)


def sincospi(x):
    """(sin(pi * x), cos(pi * x)).   Error: at most 6 units in the last place."""
    value = as_float(x)
    quarters = rint(2.0 * value)
    angle = math.pi * (value - 0.5 * quarters)
    turn = cast(quarters - 4.0 * _floor(0.25 * quarters), int32)
    is_swapped, is_low = (turn & 1) == 1, (turn & 2) == 2
    sine, cosine = _sin(angle), _cos(angle)
    first, second = _where(is_swapped, cosine, sine), _where(is_swapped, sine, cosine)
    first = _where(is_low, -first, first)
    second = _where(is_low != is_swapped, -second, second)
    first = _where(first == 0, _copysign(0.0, value), first)
    return same_dtype(first, x), same_dtype(_where(second == 0, 0.0, second), x)


def sinpi(x):
    """sin(pi * x).   Error: at most 6 units in the last place."""
    sine, _ = sincospi(x)
    return sine


def cospi(x):
    """cos(pi * x).   Error: at most 6 units in the last place."""
    _, cosine = sincospi(x)
    return cosine


def rhypot(x, y):
    """1 / hypot(x, y).   Error: at most 6 units in the last place."""
    return 1 / hypot(x, y)


def norm3d(x, y, z):
    """sqrt(x*x + y*y + z*z) without overflow.   Error: at most 9 units in the last place."""
    return hypot(hypot(x, y), z)


def norm4d(x, y, z, w):
    """sqrt(x*x + y*y + z*z + w*w) without overflow.   Error: at most 9 units in the last place."""
    return hypot(hypot(x, y), hypot(z, w))


def rnorm3d(x, y, z):
    """1 / norm3d(x, y, z).   Error: at most 11 units in the last place."""
    return 1 / norm3d(x, y, z)


def rnorm4d(x, y, z, w):
    """1 / norm4d(x, y, z, w).   Error: at most 11 units in the last place."""
    return 1 / norm4d(x, y, z, w)


def erfcx(x):
    """exp(x * x) * erfc(x).   Error: at most 16 units in the last place, 1 of float32."""
    return same_dtype(_scaled_tail(cast(as_float(x), float64)), x)


def _scaled_tail(x):
    """exp(x * x) * erfc(x) of float64: with the square's rounding error; from 25 on a series."""
    size = _abs(x)
    square = size * size
    rest = _where(size < 30, _fma(size, size, -square), 0.0)
    scale = exp(square) * (1 + rest)
    near = scale * erfc(_where(size < 26, size, 26.0))
    step = _where(size < 25, 0.0, 0.5 / square)
    series = 1.0 + step * 0
    for factor in (17, 15, 13, 11, 9, 7, 5, 3, 1):
        series = 1 - factor * step * series
    above = _where(size < 25, near, series / (_ROOT_PI * size))
    return _where(x < 0, 2 * scale - above, above)


def erfinv(x):
    """The inverse of erf; infinite at -1 and 1, NaN outside.

    Error: at most 8 units in the last place, 1 of float32.
    """
    value = cast(as_float(x), float64)
    size = _abs(value)
    outer = _copysign(_inverse_tail(_where(size > 0.5, 1 - size, 0.5)), value)
    return same_dtype(_where(size > 0.5, outer, _inverse_middle(value)), x)


def erfcinv(x):
    """The inverse of erfc; infinite at 0, -infinite at 2, NaN outside.

    Error: at most 8 units in the last place, 1 of float32.
    """
    return same_dtype(_inverse(cast(as_float(x), float64)), x)


def _inverse(x):
    """The inverse of erfc, of float64."""
    upper = _inverse_tail(_where(x < 0.5, x, 0.5))
    lower = -_inverse_tail(_where(x > 1.5, 2 - x, 0.5))
    return _where(x < 0.5, upper, _where(x > 1.5, lower, _inverse_middle(1 - x)))


def _inverse_middle(x):
    """The inverse of erf up to 1/2 in size: two of Halley's steps from the first terms of a series.

    Source: Halley's method; erf' = 2 / sqrt(pi) * exp(-x*x), erf'' = -2 x erf'.
    """
    square = _where(_abs(x) > 0.5, 0.0, x * x) * (math.pi / 4)
    y = x * (_ROOT_PI / 2) * (1 + square * (1 / 3 + square * (7 / 30 + square * (127 / 630))))
    for _ in (1, 2):
        step = (erf(y) - x) / (_SLOPE * exp(-y * y))
        y = y - step / (1 + step * y)
    return _where(x == 0, x, y)


def _inverse_tail(x):
    """The inverse of erfc of 0 to 1/2: steps on its logarithm, whose slope is no trouble.

    Source: Abramowitz and Stegun, 26.2.23, for the start.
    """
    plain = _where((x > 0) & (x <= 0.5), x, 0.5)
    logarithm = log(plain)
    root = sqrt(-2 * (logarithm - math.log(2)))
    above = 2.515517 + root * (0.802853 + root * 0.010328)
    below = 1 + root * (1.432788 + root * (0.189269 + root * 0.001308))
    y = (root - above / below) * _ROOT_HALF
    for _ in (1, 2, 3):
        scaled = _scaled_tail(y)
        y = y + (log(scaled) - y * y - logarithm) * (_ROOT_PI / 2) * scaled
    return _where(x == 0, _INFINITY, _where((x > 0) & (x <= 0.5), y, _NAN))


def normcdf(x):
    """The share of a normal distribution that is below x.

    Error: at most 10 units in the last place, 1 of float32.
    """
    value = cast(as_float(x), float64)
    point = value * -_ROOT_HALF
    plain = _where(_abs(value) < 40, point, 0.0)
    rest = _fma(value, -_ROOT_HALF, -plain) - value * _ROOT_HALF_REST
    slope = _SLOPE * exp(-plain * plain)
    correction = _where(_abs(value) < 40, slope * rest, 0.0)
    return same_dtype(0.5 * (erfc(point) - correction), x)


def normcdfinv(x):
    """The point below which the share x of a normal distribution is.

    Infinite at 0 and 1, NaN outside.   Error: at most 9 units in the last place, 1 of float32.
    """
    value = cast(as_float(x), float64)
    return same_dtype(0 - _inverse(2 * value) / _ROOT_HALF, x)

"""Bessel functions: recurrences below, asymptotic series above; computed in float64, and rounded.

Error: at most 1e-14 times the larger of 1 and the size of the result, 1e-12 of jn and yn; of
float32 its rounding besides.   Source: Abramowitz and Stegun, chapter 9.
"""

from __future__ import annotations

import math

from blocknumba.libdevice.floats import cbrt, cos, exp, log, sin, sqrt
from blocknumba.libdevice.parts import as_float, integers, same_dtype
from blocknumba.tile_ir.ir.types import float64, int32
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import absolute as _abs, where as _where
from blocknumba.typing.functions.reduce import max as _max

_FAR = 25.0  # where the asymptotic series take over
_TERMS = 24  # of the series of powers of 1/x: the least ones at 25 are below 2**-55
_START = 64  # J_64(25) is below 1e-18
_EULER = 0.5772156649015329
_LARGE, _TO_SMALL = 1e200, 1e-200
_INFINITY, _NAN = float("inf"), float("nan")


def _expansion(order):
    """The factors of the powers of 1/x in the asymptotic series.   Source: 9.2.9."""
    factors = [1.0]
    for k in range(1, _TERMS):
        factors.append(factors[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return tuple(factors)


_FACTORS = (_expansion(0), _expansion(1))
_EVEN = tuple(tuple(row[k] * (-1) ** (k // 2) for k in range(_TERMS - 2, -1, -2))
              for row in _FACTORS)
_ODD = tuple(tuple(row[k] * (-1) ** (k // 2) for k in range(_TERMS - 1, 0, -2))
             for row in _FACTORS)
_ALTERNATING = tuple(tuple(row[k] * (-1) ** k for k in range(_TERMS - 1, -1, -1))
                     for row in _FACTORS)


def _polynomial(factors, x):
    """The sum of factors times powers of x, the highest first."""
    total = factors[0] + x * 0
    for factor in factors[1:]:
        total = total * x + factor
    return total


def _near(x):
    """(J0, J1, Y0, Y1) of x from 0 to 25: J by downward recurrence, Y by sums of J.

    Source: 9.1.27, 9.1.46 and 9.1.88.
    """
    above, here = x * 0, x * 0 + 1e-200
    total, even, odd = x * 0, x * 0, x * 0
    for index in range(_START):
        k = cast(_START - index, float64)
        # here is J_k, up to a factor that all have
        half = (_START - index) // 2
        sign = cast(1 - 2 * (half & 1), float64)
        is_even = ((_START - index) & 1) == 0
        n = cast(half, float64)
        total += _where(is_even, 2 * here, 0.0)
        even += _where(is_even, sign / (n + _where(is_even, 0.0, 1.0)) * here, 0.0)
        weight = _where(half > 0, sign * k / (n * (n + 1) + _where(half > 0, 0.0, 1.0)), 0.0)
        odd += _where(is_even, 0.0, weight * here)
        above, here = here, 2 * k / x * here - above
        scale = _where(_abs(here) > _LARGE, cast(_TO_SMALL, float64), 1.0)
        above, here, total = above * scale, here * scale, total * scale
        even, odd = even * scale, odd * scale
    total += here
    j0, j1 = here / total, above / total
    logarithm = log(0.5 * x) + _EULER
    y0 = 2 / math.pi * (logarithm * j0 - 2 * even / total)
    y1 = 2 / math.pi * ((logarithm - 1) * j1 - j0 / x - odd / total)
    return j0, j1, y0, y1


def _far(x):
    """(J0, J1, Y0, Y1) of x from 25 on.   Source: 9.2.5, 9.2.6."""
    inverse = 1 / x
    square = inverse * inverse
    p0, p1 = _polynomial(_EVEN[0], square), _polynomial(_EVEN[1], square)
    q0, q1 = (_polynomial(_ODD[0], square) * inverse, _polynomial(_ODD[1], square) * inverse)
    sine, cosine = sin(x), cos(x)
    plus, minus = cosine + sine, sine - cosine
    scale = sqrt(inverse / math.pi)
    return (scale * (p0 * plus - q0 * minus), scale * (p1 * minus + q1 * plus),
            scale * (p0 * minus + q0 * plus), scale * (q1 * minus - p1 * plus))


def _all(x):
    """(J0, J1, Y0, Y1) of x > 0."""
    is_far = x > _FAR
    # below 1e-40 they are the first terms of their series, and steps do not overflow
    near = _near(_where(is_far | (x != x), 1.0, _where(x < 1e-40, 1e-40, x)))
    far = _far(_where(is_far, x, _FAR))
    j0, j1, y0, y1 = (_where(is_far, far[0], near[0]), _where(is_far, far[1], near[1]),
                      _where(is_far, far[2], near[2]), _where(is_far, far[3], near[3]))
    is_tiny = x < 1e-40
    j1 = _where(is_tiny, 0.5 * x, j1)
    y0 = _where(is_tiny, 2 / math.pi * (log(0.5 * x) + _EULER), y0)
    y1 = _where(is_tiny, -2 / math.pi / x, y1)
    is_infinite = x == _INFINITY
    return (_where(is_infinite, 0.0, _with_nan(j0, x)), _where(is_infinite, 0.0, _with_nan(j1, x)),
            _where(is_infinite, 0.0, _with_nan(y0, x)), _where(is_infinite, 0.0, _with_nan(y1, x)))


def _with_nan(value, x):
    return _where(x != x, x, value)


def _second_kind(value, x):
    """Y of any x: -infinite at 0, NaN below."""
    return _where(x == 0, -_INFINITY, _where(x < 0, _NAN, value))


def j0(x):
    """The Bessel function of the first kind of order 0."""
    value, _, _, _ = _all(_abs(cast(as_float(x), float64)))
    return same_dtype(value, x)


def j1(x):
    """The Bessel function of the first kind of order 1."""
    point = cast(as_float(x), float64)
    _, value, _, _ = _all(_abs(point))
    return same_dtype(_where(point < 0, -value, value), x)


def y0(x):
    """The Bessel function of the second kind of order 0; NaN below 0."""
    point = cast(as_float(x), float64)
    _, _, value, _ = _all(_abs(point))
    return same_dtype(_second_kind(value, point), x)


def y1(x):
    """The Bessel function of the second kind of order 1; NaN below 0."""
    point = cast(as_float(x), float64)
    _, _, _, value = _all(_abs(point))
    return same_dtype(_second_kind(value, point), x)


def jn(n, x):
    """The Bessel function of the first kind of an integer order."""
    order, point = integers(n, int32), cast(as_float(x), float64)
    count, size = _abs(order), _abs(point)
    first, second, _, _ = _all(size)
    orders = cast(count, float64)
    upward = _upward(first, second, count, size)
    downward = _downward(count, _where(size < orders, size, 0.5 * orders))
    value = _where(count == 0, first, _where(count == 1, second,
                                             _where(size < orders, downward, upward)))
    value = _where(size == 0, _where(count == 0, 1.0, 0.0), value)
    is_negative = ((point < 0) != (order < 0)) & ((count & 1) == 1)
    return same_dtype(_where(is_negative, -value, value), x)


def yn(n, x):
    """The Bessel function of the second kind of an integer order; NaN below 0."""
    order, point = integers(n, int32), cast(as_float(x), float64)
    count, size = _abs(order), _abs(point)
    _, _, first, second = _all(size)
    value = _where(count == 0, first, _upward(first, second, count, size))
    value = _where((order < 0) & ((count & 1) == 1), -value, value)
    return same_dtype(_second_kind(value, point), x)


def _upward(first, second, count, x):
    """The function of order count, of those of orders 0 and 1.   Source: 9.1.27."""
    below, here = first + count * 0, second + count * 0
    for k in range(1, _max(count)):
        following = 2 * cast(k, float64) / x * here - below
        goes_on = (k < count) & (_abs(here) < _INFINITY)
        below, here = _where(goes_on, here, below), _where(goes_on, following, here)
    return here


def _downward(count, x):
    """J of order count where x is below it, from an order at which J is nothing beside it."""
    most = _max(count)
    start = (most + 40 + cast(16 * cbrt(cast(most, float64)), int32)) // 2 * 2
    least = _where(x < 1e-40, 1e-40, x)
    above, here = least * 0, least * 0 + 1e-200
    total, found = least * 0, least * 0
    for index in range(start):
        k = start - index
        found = _where(k == count, here, found)
        total += _where((k & 1) == 0, 2 * here, 0.0)
        above, here = here, 2 * cast(k, float64) / least * here - above
        scale = _where(_abs(here) > _LARGE, cast(_TO_SMALL, float64), 1.0)
        above, here, total, found = above * scale, here * scale, total * scale, found * scale
    return found / (total + here)


def cyl_bessel_i0(x):
    """The modified Bessel function of the first kind of order 0.

    Error: at most 16 units in the last place, 1 of float32.
    """
    size = _abs(cast(as_float(x), float64))
    near, _ = _modified_near(_where(size > 30, 30.0, size))
    far = _modified_far(_ALTERNATING[0], _where(size > 30, size, 30.0))
    return same_dtype(_with_nan(_where(size > 30, far, near), size), x)


def cyl_bessel_i1(x):
    """The modified Bessel function of the first kind of order 1.

    Error: at most 16 units in the last place, 1 of float32.
    """
    point = cast(as_float(x), float64)
    size = _abs(point)
    _, near = _modified_near(_where(size > 30, 30.0, size))
    far = _modified_far(_ALTERNATING[1], _where(size > 30, size, 30.0))
    value = _with_nan(_where(size > 30, far, near), size)
    return same_dtype(_where(point < 0, -value, value), x)


def _modified_near(x):
    """(I0, I1) of x up to 30: sums of positive terms.   Source: 9.6.10."""
    quarter = 0.25 * x * x
    one, other = x * 0 + 1, x * 0 + 1
    first, second = one, other
    for index in range(1, 80):
        k = cast(index, float64)
        one, other = one * quarter / (k * k), other * quarter / (k * (k + 1))
        first, second = first + one, second + other
    return first, 0.5 * x * second


def _modified_far(factors, x):
    """I of x from 30 on; exp(x) in two halves, which overflow only where I does.  Source: 9.7.1."""
    half = exp(0.5 * x)
    is_infinite = x == _INFINITY
    series = _polynomial(factors, _where(is_infinite, 0.0, 1 / x))
    share = _where(is_infinite, 1.0, series / sqrt(2 * math.pi * x))
    return half * (half * share)

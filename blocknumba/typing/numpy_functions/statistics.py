"""NumPy's functions of many elements: averages, quantiles, norms, products and polynomials."""

from __future__ import annotations

import math

import numpy as np

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.typing.function import function
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import (
    FLOAT_FUNCTIONS, absolute, floating, where as choose,
)
from blocknumba.typing.functions.order import sort
from blocknumba.typing.functions.parts import extract
from blocknumba.typing.functions.reduce import (
    max as max_along, min as min_along, sum as sum_along,
)
from blocknumba.typing.functions.search import searchsorted
from blocknumba.typing.functions.shape import broadcast_to, ravel, reshape
from blocknumba.typing.functions.statistics import mean
from blocknumba.typing.numpy_functions.parts import (
    accept, floats, is_tuple, kind, tile, wide_floats,
)
from blocknumba.typing.numpy_functions.shapes import taken
from blocknumba.typing.static_values import static, static_range

_isnan, _sqrt = FLOAT_FUNCTIONS["isnan"], FLOAT_FUNCTIONS["sqrt"]


def average(a, axis=None, weights=None, *, keepdims=False):
    """The mean along axis, each element counted as its weight says."""
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    a, weights = floats(a, weights)
    if axis is not None and len(weights.shape) == 1 and len(a.shape) > 1:
        weights = reshape(weights, _along(a.shape, axis))
    weights = broadcast_to(weights, a.shape)
    total = sum_along(weights, axis, keepdims=keepdims)
    return sum_along(a * weights, axis, keepdims=keepdims) / total


@function
def _along(context, shape, axis):
    """The shape of a vector that lies along an axis."""
    at = axis % len(shape)
    return tuple(n if place == at else 1 for place, n in enumerate(shape))


def quantile(a, q, axis=None, *, keepdims=False):
    """The value that the part q, a compile-time number from 0 to 1, of the elements is below.

    Between two elements it is interpolated; NaN where there is one.
    """
    a = floating("quantile", a)
    if axis is None:
        found = _of_sorted(sort(ravel(a)), q, 0)
        return reshape(found, (1,) * len(a.shape)) if keepdims else reshape(found, ())
    found = _of_sorted(sort(a, axis), q, axis)
    return found if keepdims else reshape(found, _without(a.shape, axis))


def percentile(a, q, axis=None, *, keepdims=False):
    """The quantile of q / 100."""
    return quantile(a, _hundredth(q), axis, keepdims=keepdims)


@function
def _hundredth(context, q):
    """A compile-time number by 100."""
    given = static("np.percentile: q", q)
    require(isinstance(given, (int, float)), "np.percentile: q: given {}, accepted a number", given,
            error=BlockTypeError)
    return given / 100


@function
def _without(context, shape, axis):
    """A shape less one axis."""
    at = axis % len(shape)
    return tuple(n for place, n in enumerate(shape) if place != at)


def _of_sorted(ordered, q, axis):
    """The quantile along the axis of a tile whose NaN are last, kept with extent 1."""
    n = ordered.shape[axis]
    low, high, part = _place(q, n)
    below, above = _element(ordered, low, axis), _element(ordered, high, axis)
    last = _element(ordered, n - 1, axis)
    step = above - below
    found = above - step * (1 - part) if part >= 0.5 else below + step * part
    return choose(_isnan(last), last, choose(below == above, below, found))


@function
def _place(context, q, n):
    """The two elements around a quantile and how far it is between them."""
    given = static("np.quantile: q", q)
    require(isinstance(given, (int, float)) and 0 <= given <= 1, "np.quantile: q: given {}, "
            "accepted a number from 0 to 1", given, error=BlockValueError)
    place = given * (n - 1)
    low = min(math.floor(place), n - 1)
    return low, min(low + 1, n - 1), place - low


def _element(x, index, axis):
    """The slice of x at a compile-time index of an axis, which it keeps with extent 1."""
    return extract(x, _starts(x.shape, index, axis), _slice(x.shape, axis))


@function
def _starts(context, shape, index, axis):
    at = axis % len(shape)
    return tuple(index if place == at else 0 for place in range(len(shape)))


@function
def _slice(context, shape, axis):
    at = axis % len(shape)
    return tuple(1 if place == at else n for place, n in enumerate(shape))


def norm(x, ord=None, axis=None, keepdims=False):
    """The length of vectors along axis, of all elements if it is None: of order 2, 1, inf, -inf
    or 0."""
    x = floating("linalg.norm", x)
    if axis is None:
        accept(ord is None or len(x.shape) == 1, "np.linalg.norm: accepted an order of vectors: "
               "give axis")
    size = absolute(x)
    if ord is None or ord == 2:
        return _sqrt(sum_along(size * size, axis, keepdims=keepdims))
    if ord == 1:
        return sum_along(size, axis, keepdims=keepdims)
    if ord == np.inf:
        return max_along(size, axis, keepdims=keepdims)
    if ord == -np.inf:
        return min_along(size, axis, keepdims=keepdims)
    accept(ord == 0, "np.linalg.norm: accepted the orders 2, 1, inf, -inf and 0")
    return sum_along(cast(x != 0, x.dtype), axis, keepdims=keepdims)


def vecdot(x1, x2, axis=-1):
    """The sums of products along an axis."""
    of = (x1 * x2).dtype
    if kind("vecdot", x1, x2) == "float":  # sums of few bits are in float32
        x1, x2 = wide_floats(x1, x2)
    return cast(sum_along(x1 * x2, axis), of)


def inner(a, b):
    """The sum of products of two vectors."""
    a, b = tile("inner", a, 1), tile("inner", b, 1)
    return vecdot(a, b)


def vdot(a, b):
    """The sum of products of all elements."""
    return vecdot(ravel(a), ravel(b))


def polyval(p, x):
    """p[0] * x**(n - 1) + ... + p[n - 1]; p: a tuple, or a tile of rank 1."""
    found = x * 0
    if is_tuple(p):
        for coefficient in p:
            found = found * x + coefficient
        return found
    for place in static_range(p.shape[0]):
        found = found * x + p[place]
    return found


def digitize(x, bins, right=False):
    """The number of bins, which increase, that are at most x, or less than x if right."""
    return searchsorted(bins, x, side="left" if right else "right")


def interp(x, xp, fp):
    """The values at x of lines through the points (xp, fp); xp increases."""
    x, xp, fp = floats(x, xp, fp)
    n = xp.shape[0]
    after = searchsorted(xp, x, side="right")
    low = choose(after == 0, 0, choose(after == n, n - 1, after - 1))
    high = choose(low == n - 1, n - 1, low + 1)
    x0, x1, y0, y1 = taken(xp, low), taken(xp, high), taken(fp, low), taken(fp, high)
    slope = (y1 - y0) / choose(x1 == x0, 1, x1 - x0)
    inside = slope * (x - x0) + y0
    return choose(_isnan(x), x, choose((after == 0) | (after == n), y0, inside))

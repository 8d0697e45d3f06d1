"""Functions that make tiles and scalars, and functions that convert them."""

from __future__ import annotations

import math

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import (
    DTYPES, DType, bfloat16, bool_, float8_e5m2, float16, float32, uint8, uint16,
)
from blocknumba.tile_ir.ops.create import require_shape
from blocknumba.typing import promotion
from blocknumba.typing.context import describe, require_numbers
from blocknumba.typing.function import function
from blocknumba.typing.static_values import static_choice, static_dtype, static_int, static_shape
from blocknumba.typing.values import Number

_ROUNDINGS = {None: "nearest", "rtne": "nearest", "rtz": "zero"}


@function
def program_id(context, axis):
    """Index of this program along a grid axis (0, 1 or 2), a Python int kept in int32.

    Example:
    >>> @bn.jit
    ... def number(out):
    ...     out[bn.program_id(0)] = bn.program_id(0)
    >>> out = np.zeros(4, np.int32)
    >>> _ = number[4](out)
    >>> out
    array([0, 1, 2, 3], dtype=int32)
    """
    return Number(context.emit("program_id", axis=static_int("program_id: axis", axis)))


@function
def num_programs(context, axis):
    """Number of programs along a grid axis (0, 1 or 2), a Python int kept in int32.

    Example:
    >>> @bn.jit
    ... def count(out):
    ...     out[bn.program_id(0)] = bn.num_programs(0)
    >>> out = np.zeros(4, np.int32)
    >>> _ = count[3](out)
    >>> out
    array([3, 3, 3, 0], dtype=int32)
    """
    return Number(context.emit("num_programs", axis=static_int("num_programs: axis", axis)))


@function
def arange(context, start, stop=None):
    """start, start+1, ..., stop-1 as an int32 tile; with one argument, from 0.

    start, stop: compile-time ints; stop - start is a power of two.
    Errors: bounds known at run time only; a size that is not a power of two.
    Source: numpy.arange.

    Example:
    >>> bn.evaluate(bn.arange, 2, 6)
    array([2, 3, 4, 5], dtype=int32)
    """
    if stop is None:
        start, stop = 0, start
    first = static_int("arange: start", start)
    return context.emit("arange", start=first, size=static_int("arange: stop", stop) - first)


@function
def full(context, shape, value, dtype=None):
    """A tile of shape whose elements are value.

    value: a number or scalar; dtype: that of value when not given, float32 of a Python float.
    Errors: an int literal that dtype cannot hold.
    Source: numpy.full.

    Example:
    >>> bn.evaluate(bn.full, (2, 2), 7, bn.float32)
    array([[7., 7.],
           [7., 7.]], dtype=float32)
    """
    to = None if dtype is None else static_dtype("full", dtype)
    scalar = _fill_value(context, value, to)
    require(scalar.type.is_scalar, "full: value must be a scalar, got {}", scalar.type)
    return _filled(context, "full", scalar, shape)


@function
def zeros(context, shape, dtype=float32):
    """A tile of zeros.   Source: numpy.zeros.

    Example:
    >>> bn.evaluate(bn.zeros, (4,), bn.int32)
    array([0, 0, 0, 0], dtype=int32)
    """
    return _filled(context, "zeros", context.constant(0, _dtype_of("zeros", dtype)), shape)


@function
def ones(context, shape, dtype=float32):
    """A tile of ones.   Source: numpy.ones.

    Example:
    >>> bn.evaluate(bn.ones, (2, 2))
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _filled(context, "ones", context.constant(1, _dtype_of("ones", dtype)), shape)


@function
def empty(context, shape, dtype=float32):
    """A tile of any values; they are zeros, so that runs agree.

    Errors: with debug=True, on the CPU, a use of an element that is still one of them.
    Source: numpy.empty.

    Example:
    >>> bn.evaluate(bn.empty, (2, 4), bn.int8).shape
    (2, 4)
    """
    of = _dtype_of("empty", dtype)
    if context.options.debug:
        scalar = context.emit("undefined", dtype=of.name, shape=(), zero=True)
    else:
        scalar = context.constant(0, of)
    return _filled(context, "empty", scalar, shape)


@function
def zeros_like(context, x):
    """A tile of zeros of x's shape and dtype.   Source: numpy.zeros_like.

    Example:
    >>> bn.evaluate(bn.zeros_like, [1.5, 2.5])
    array([0., 0.])
    """
    return _full_like(context, x, 0)


@function
def ones_like(context, x):
    """A tile of ones of x's shape and dtype.   Source: numpy.ones_like.

    Example:
    >>> bn.evaluate(bn.ones_like, [1.5, 2.5])
    array([1., 1.])
    """
    return _full_like(context, x, 1)


@function
def full_like(context, x, value):
    """A tile of value of x's shape and dtype.   Source: numpy.full_like.

    Example:
    >>> bn.evaluate(bn.full_like, [1.5, 2.5], 3)
    array([3., 3.])
    """
    return _full_like(context, x, value)


@function
def cast(context, x, dtype, fp_downcast_rounding=None, bitcast=False):
    """x converted to dtype.

    fp_downcast_rounding: "rtne" (ties to even, the default) or "rtz" (towards zero), of a float
    to a narrower float of 16 bits, or float8_e5m2.  bitcast: take the bits as dtype, of the same
    size; of a Python number of run time, the bits that it has as a float, or an int, of that size.
    Source: numpy.ndarray.astype, numpy.ndarray.view.

    Example:
    >>> bn.evaluate(bn.cast, [1.7, -1.7], bn.int32)
    array([ 1, -1], dtype=int32)
    >>> bn.evaluate(bn.cast, np.float32([1, 2]), bn.int32, bitcast=True)
    array([1065353216, 1073741824], dtype=int32)
    """
    to = static_dtype("cast", dtype)
    if isinstance(x, Number):
        value = _of_size(context, x, to) if bitcast else x.value
    elif promotion.is_literal(x):
        value = _fill_value(context, x, to, "cast")
    else:
        value = context.value(x, what="cast")
    if bitcast:
        return context.emit("bitcast", value, dtype=to.name)
    rounding = _ROUNDINGS[static_choice("cast: fp_downcast_rounding", fp_downcast_rounding,
                                        tuple(_ROUNDINGS))]
    if rounding == "nearest":
        return context.cast(value, to)
    if to == float8_e5m2 and value.type.dtype.is_float and value.type.dtype.bits > to.bits:
        return _truncated(context, value)
    return context.emit("cast", value, dtype=to.name, rounding=rounding)


def _truncated(context, value) -> Value:
    """A float of 16 bits or more rounded towards zero to float8_e5m2, float16's first byte."""
    if value.type.dtype == bfloat16:
        value = context.cast(value, float32)
    if value.type.dtype != float16:
        value = context.emit("cast", value, dtype="float16", rounding="zero")
    # the first byte of some NaNs is that of infinity
    nan = context.broadcast_to(context.constant(math.nan, float16), value.type.shape)
    value = context.emit("select", context.emit("ne", value, value), nan, value)
    bits = context.emit("bitcast", value, dtype="uint16")
    eight = context.broadcast_to(context.constant(8, uint16), bits.type.shape)
    byte = context.cast(context.emit("shr", bits, eight), uint8)
    return context.emit("bitcast", byte, dtype=float8_e5m2.name)


def _dtype_of(name: str, dtype: object) -> DType:
    """The dtype of a new tile.

    Errors: an int, which is meant as one more extent.
    """
    require(not isinstance(dtype, int), "{}: given {} as a dtype, accepted dtypes", name, dtype,
            hint=f"write the shape as a tuple: bn.{name}((8, 8))")
    return static_dtype(name, dtype)


def _of_size(context, number, dtype) -> Value:
    """A Python number of run time in the dtype of its kind that has the size of another."""
    name = f"{number.dtype.kind}{dtype.bits}"
    require(name in DTYPES, "cast: given {} and {}, accepted dtypes of 16 bits and more",
            describe(number), dtype)
    return context.cast(number.value, DTYPES[name])


def convert_scalar(context, x, dtype):
    """`float32(x)`, `int(x)`: x converted to dtype."""
    return cast.rule(context, x, dtype)


def _filled(context, name, scalar, shape) -> Value:
    extents = static_shape(name, shape)
    require_shape(name, extents)
    return context.broadcast_to(scalar, extents, name) if extents else scalar


def _full_like(context, x, value) -> Value:
    require_numbers("full_like", x)
    tile = context.value(x, what="full_like")
    return context.broadcast_to(_fill_value(context, value, tile.type.dtype), tile.type.shape)


def _fill_value(context, value, dtype, name="full") -> Value:
    """value as a scalar of dtype: a float literal is converted, an int literal must fit."""
    if isinstance(value, float) and dtype is not None and not dtype.is_float:
        if dtype == bool_ or not value.is_integer():
            raise BlockTypeError(f"{name}: given the float {value!r}, accepted {dtype}",
                                 hint="write it as a value of that dtype")
        value = int(value)
    if isinstance(value, int) and dtype == bool_:
        return context.constant(bool(value), bool_)
    if not promotion.is_number(value):
        raise BlockTypeError(f"{name}: value must be a number, got {describe(value)}")
    return context.value(value, dtype, name)

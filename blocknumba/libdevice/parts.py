"""Bits of floats, and functions of operands of one dtype, that libdevice is made with."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from blocknumba.tile_ir.ir.types import DType, float32, float64, int32, int64
from blocknumba.typing import promotion
from blocknumba.typing.context import describe, require_numbers
from blocknumba.typing.function import function
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import absolute, where
from blocknumba.errors import BlockTypeError


@function
def as_float(context, x):
    """x as a float of 32 or 64 bits: what functions of floats compute in."""
    require_numbers("libdevice", x)
    dtype = promotion.float_dtype((x,))
    return context.value(x, float32 if dtype.bits < 32 else dtype)


@function
def as_floats(context, x, y):
    """x and y as floats of one dtype, 32 or 64 bits."""
    require_numbers("libdevice", x, y)
    dtype = promotion.float_dtype((x, y))
    return tuple(context.value(v, float32 if dtype.bits < 32 else dtype) for v in (x, y))


@function
def same_dtype(context, result, x):
    """A result as the float that functions of floats give for x."""
    return context.cast(context.value(result), promotion.float_dtype((x,)))


@function
def integers(context, x, dtype):
    """x as integers of a dtype.

    Errors: BlockTypeError for floats.
    """
    require_numbers("libdevice", x)
    if promotion.result_dtype((x,)).is_float:
        raise BlockTypeError(f"libdevice: given {describe(x)}, accepted ints")
    return context.value(x, dtype) if promotion.is_literal(x) else cast.rule(context, x, dtype)


def exponent_of(x):
    """e of |x| = m * 2**e, 1 <= m < 2, of finite x but 0; int32."""
    if x.dtype == float64:
        is_tiny = absolute(x) < 2.0**-1022
        bits = cast(where(is_tiny, x * 2.0**54, x), int64, bitcast=True)
        return cast((bits >> 52) & 2047, int32) - where(is_tiny, 1077, 1023)
    is_tiny = absolute(x) < 2.0**-126
    bits = cast(where(is_tiny, x * 2.0**24, x), int32, bitcast=True)
    return ((bits >> 23) & 255) - where(is_tiny, 151, 127)


def mantissa_of(x):
    """m of x = m * 2**e, 1 <= |m| < 2, of finite x but 0."""
    if x.dtype == float64:
        scaled = where(absolute(x) < 2.0**-1022, x * 2.0**54, x)
        bits = cast(scaled, int64, bitcast=True)
        return cast((bits & ~(2047 << 52)) | (1023 << 52), float64, bitcast=True)
    scaled = where(absolute(x) < 2.0**-126, x * 2.0**24, x)
    return cast((cast(scaled, int32, bitcast=True) & ~(255 << 23)) | (127 << 23), float32,
                bitcast=True)


def power_of_two(n, like):
    """2**n in the dtype of like, of int32 n within its normal numbers."""
    if like.dtype == float64:
        return cast(cast(n + 1023, int64) << 52, float64, bitcast=True)
    return cast((n + 127) << 23, float32, bitcast=True)


_OF_AN_ORDER, _OF_A_POWER = ("jn", "yn"), ("ldexp", "scalbn", "powi")


def of_dtype(base: str, function: Callable, dtype: DType, name: str) -> Callable:
    """A function whose floats are converted to a dtype; ints that it takes stay as they are.

    base: the function's own name.
    """
    def one(x):
        return function(cast(x, dtype))

    def two(x, y):
        return function(cast(x, dtype), cast(y, dtype))

    def three(x, y, z):
        return function(cast(x, dtype), cast(y, dtype), cast(z, dtype))

    def four(x, y, z, w):
        return function(cast(x, dtype), cast(y, dtype), cast(z, dtype), cast(w, dtype))

    def of_an_order(n, x):
        return function(n, cast(x, dtype))

    def of_a_power(x, n):
        return function(cast(x, dtype), n)

    if base in _OF_AN_ORDER or base in _OF_A_POWER:
        made = of_an_order if base in _OF_AN_ORDER else of_a_power
    else:
        made = (one, two, three, four)[len(inspect.signature(function).parameters) - 1]
    return named(made, name, f"{base} of {dtype}.")


def named(made: Callable, name: str, doc: str) -> Callable:
    """A function that was made, with its name and docstring."""
    made.__name__ = made.__qualname__ = name
    made.__doc__ = doc
    return made

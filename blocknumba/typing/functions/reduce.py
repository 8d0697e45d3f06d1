"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir import Value
from blocknumba.tile_ir.types import DType, bool_, float32, int32, uint32
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe
from blocknumba.typing.function import BlockFunction, function
from blocknumba.typing.functions.elementwise import binary
from blocknumba.typing.static_values import static, static_axes, static_axis, static_dtype


@function
def sum(context, x, axis=None, keep_dims=False, dtype=None, keepdims=False):
    """The sum along axis, along several, or of all elements (axis=None).

    bool, int8 and int16 are summed in int32, uint8 and uint16 in uint32; floats of 16 and 8 bits
    in float32, then rounded.  dtype: convert before summing.
    Source: numpy.sum.
    """
    tile = _tile(context, "sum", x)
    tile = context.cast(tile, static_dtype("sum", dtype) if dtype is not None
                        else _sum_dtype(tile.type.dtype))
    return _reduce(context, "sum", tile, axis, keep_dims or keepdims)


@function
def prod(context, x, axis=None, keep_dims=False, dtype=None, keepdims=False):
    """The product along axis, with the dtypes of sum.   Source: numpy.prod."""
    tile = _tile(context, "prod", x)
    tile = context.cast(tile, static_dtype("prod", dtype) if dtype is not None
                        else _sum_dtype(tile.type.dtype))
    return _reduce(context, "prod", tile, axis, keep_dims or keepdims)


@function
def max(context, x, axis=None, return_indices=False, return_indices_tie_break_left=True,
        keep_dims=False, keepdims=False):
    """The greatest element along axis; NaN if there is one.

    return_indices: give (values, indices), the first index on ties.
    Source: numpy.max.
    """
    return _extreme(context, "max", x, axis, return_indices, return_indices_tie_break_left,
                    keep_dims or keepdims)


@function
def min(context, x, axis=None, return_indices=False, return_indices_tie_break_left=True,
        keep_dims=False, keepdims=False):
    """The least element along axis; NaN if there is one.

    return_indices: give (values, indices), the first index on ties.
    Source: numpy.min.
    """
    return _extreme(context, "min", x, axis, return_indices, return_indices_tie_break_left,
                    keep_dims or keepdims)


@function
def argmax(context, x, axis=None, tie_break_left=True, keep_dims=False, keepdims=False):
    """Index of the greatest element along axis, the first on ties; NaN is greatest.  int32.

    Source: numpy.argmax.
    """
    return _arg(context, "max", x, axis, tie_break_left, keep_dims or keepdims)


@function
def argmin(context, x, axis=None, tie_break_left=True, keep_dims=False, keepdims=False):
    """Index of the least element along axis, the first on ties; NaN is least.  int32.

    Source: numpy.argmin.
    """
    return _arg(context, "min", x, axis, tie_break_left, keep_dims or keepdims)


@function
def mean(context, x, axis=None, keep_dims=False, keepdims=False):
    """The mean along axis: float32 of integers, else of x's dtype.   Source: numpy.mean."""
    tile = _tile(context, "mean", x)
    dtype = promotion.float_dtype((tile,))
    wide = context.cast(tile, float32 if dtype.bits < 32 else dtype)
    count = _extent(tile, static_axes("mean", axis, len(tile.type.shape)))
    total = _reduce(context, "sum", wide, axis, keep_dims or keepdims)
    return context.cast(binary(context, "div", total, float(count)), dtype)


@function
def var(context, x, axis=None, keep_dims=False, keepdims=False):
    """The mean squared distance from the mean along axis.   Source: numpy.var."""
    tile = _tile(context, "var", x)
    dtype = promotion.float_dtype((tile,))
    wide = context.cast(tile, float32 if dtype.bits < 32 else dtype)
    middle = mean.rule(context, wide, axis, True)
    distance = binary(context, "sub", wide, middle)
    square = binary(context, "mul", distance, distance)
    return context.cast(mean.rule(context, square, axis, keep_dims or keepdims), dtype)


def _logical(name: str, kind: str, doc: str) -> BlockFunction:
    def rule(context, x, axis=None, keep_dims=False, keepdims=False):
        tile = context.cast(_tile(context, name, x), bool_)
        return _reduce(context, kind, tile, axis, keep_dims or keepdims)
    return _declare(rule, name, doc)


def _of_kind(name: str, kind: str, doc: str) -> BlockFunction:
    def rule(context, x, axis=None, keep_dims=False, keepdims=False):
        return _reduce(context, kind, _tile(context, name, x), axis, keep_dims or keepdims)
    return _declare(rule, name, doc)


def _declare(rule: Callable, name: str, doc: str) -> BlockFunction:
    rule.__doc__ = doc
    return BlockFunction(rule, name)


any = _logical("any", "or", "Whether any element along axis is not 0.   Source: numpy.any.")
all = _logical("all", "and", "Whether every element along axis is not 0.   Source: numpy.all.")
xor_sum = _of_kind("xor_sum", "xor", "Exclusive or of the integers along axis.\n\n"
                   "Source: numpy.bitwise_xor.reduce.")
nanmax = _of_kind("nanmax", "fmax", "The greatest float along axis that is not NaN.\n\n"
                  "Source: numpy.nanmax.")
nanmin = _of_kind("nanmin", "fmin", "The least float along axis that is not NaN.\n\n"
                  "Source: numpy.nanmin.")


def _tile(context: Context, name: str, x: object) -> Value:
    if not isinstance(x, Value) or x.type.is_pointer:
        raise BlockTypeError(f"{name}: given {describe(x)}, accepted a tile")
    return x


def _sum_dtype(dtype: DType) -> DType:
    if dtype.is_float or dtype.bits > 16:
        return dtype
    return uint32 if dtype.kind == "uint" else int32


def _reduce(context: Context, kind: str, tile: Value, axis: object, keep: object) -> Value:
    """tile reduced along axes, from the last so that the others keep their place."""
    shape, dtype = tile.type.shape, tile.type.dtype
    tile = context.cast(tile, promotion.computed_dtype(dtype))
    axes = static_axes(kind, axis, len(shape))
    if axis is None and len(axes) > 1:
        tile, axes = context.emit("reshape", tile, shape=(tile.type.size,)), (0,)
        dropped = tuple(range(len(shape)))
    else:
        dropped = axes
    for each in reversed(axes):
        tile = context.emit("reduce", tile, axis=each, kind=kind)
    return _kept(context, context.cast(tile, dtype), shape, dropped, keep)


def _kept(context: Context, tile: Value, shape: tuple[int, ...], dropped: tuple[int, ...],
          keep: object) -> Value:
    """tile with its dropped axes put back with extent 1 when that was asked for."""
    if not static("keep_dims", keep) or not shape:
        return tile
    kept = tuple(1 if i in dropped else n for i, n in enumerate(shape))
    if not tile.type.shape:
        return context.broadcast_to(tile, kept)
    return context.emit("reshape", tile, shape=kept)


def _extreme(context, kind, x, axis, return_indices, tie_break_left, keep):
    tile = _tile(context, kind, x)
    values = _reduce(context, kind, tile, axis, keep)
    if not static(f"{kind}: return_indices", return_indices):
        return values
    return values, _arg(context, kind, tile, axis, tie_break_left, keep)


def _arg(context: Context, kind: str, x: object, axis: object, tie_break_left: object,
         keep: object) -> Value:
    tile = _tile(context, f"arg{kind}", x)
    require(static(f"arg{kind}: tie_break_left", tie_break_left) in (True, False),
            "arg{}: tie_break_left must be a bool", kind)
    shape = tile.type.shape
    tile = context.cast(tile, promotion.computed_dtype(tile.type.dtype))
    require(shape, "arg{}: given {}, accepted a tile", kind, tile.type)
    if axis is None:
        flat = context.emit("reshape", tile, shape=(tile.type.size,)) if len(shape) > 1 else tile
        index = context.emit("arg_reduce", flat, axis=0, kind=kind)
        return _kept(context, index, shape, tuple(range(len(shape))), keep)
    along = static_axis(f"arg{kind}", axis, len(shape))
    index = context.emit("arg_reduce", tile, axis=along, kind=kind)
    return _kept(context, index, shape, (along,), keep)


def _extent(tile: Value, axes: tuple[int, ...]) -> int:
    count = 1
    for axis in axes:
        count *= tile.type.shape[axis]
    return count

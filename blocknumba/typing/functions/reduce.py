"""Reductions along axes.

`where` leaves elements out: where it is False the identity of the reduction stands in their stead.
"""

from __future__ import annotations

import math

import numpy as np

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, bool_, float32, int32, uint32
from blocknumba.tile_ir.ops.reduce import identity
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe, loading_hint
from blocknumba.typing.function import BlockFunction, described, function
from blocknumba.typing.functions.elementwise import binary
from blocknumba.typing.static_values import static, static_axes, static_axis, static_dtype
from blocknumba.typing.values import Number

# the elementwise op that combines a result with `initial`
_COMBINING = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "fmax": "fmax",
              "fmin": "fmin", "xor": "xor", "or": "or", "and": "and"}


@function
def sum(context, x, axis=None, keep_dims=False, dtype=None, keepdims=False, *, initial=None,
        where=None):
    """The sum along axis, along several, or of all elements (axis=None).

    bool, int8 and int16 are summed in int32, uint8 and uint16 in uint32; floats of 16 and 8 bits
    in float32, then rounded.  dtype: convert before summing.
    where: bool, broadcast to x: which elements count; the sum of none is 0.  Elements that were
    loaded outside an array are 0 and change nothing, but what is computed from them may.
    initial: a number that is added.
    Source: numpy.sum.

    Example:
    >>> bn.evaluate(bn.sum, [[1, 2], [3, 4]], axis=1)
    array([3, 7])
    >>> bn.evaluate(bn.sum, [1, 2], where=[False, True])
    np.int64(2)
    """
    tile = as_tile(context, "sum", x)
    tile = context.cast(tile, static_dtype("sum", dtype) if dtype is not None
                        else sum_dtype(tile.type.dtype))
    return reduced(context, "sum", tile, axis, keep_dims or keepdims, where, initial)


@function
def prod(context, x, axis=None, keep_dims=False, dtype=None, keepdims=False, *, initial=None,
         where=None):
    """The product along axis, with the dtypes of sum.

    where: bool, broadcast to x: which elements count; the product of none is 1.  Leave out those
    that were loaded outside an array: they are 0.   initial: a number to multiply by.
    Source: numpy.prod.

    Example:
    >>> bn.evaluate(bn.prod, [[1, 2], [3, 4]], axis=0)
    array([3, 8])
    """
    tile = as_tile(context, "prod", x)
    tile = context.cast(tile, static_dtype("prod", dtype) if dtype is not None
                        else sum_dtype(tile.type.dtype))
    return reduced(context, "prod", tile, axis, keep_dims or keepdims, where, initial)


@function
def max(context, x, axis=None, return_indices=False, return_indices_tie_break_left=True,
        keep_dims=False, keepdims=False, *, initial=None, where=None):
    """The greatest element along axis; NaN if there is one.

    return_indices: give (values, indices), the first index on ties.
    where: bool, broadcast to x: which elements count; the greatest of none is the least value of
    the dtype.  Leave out those that were loaded outside an array: they are 0.
    initial: a number that counts too, as an element; not with return_indices.
    Source: numpy.max, which needs initial where there is `where`.

    Example:
    >>> bn.evaluate(bn.max, [[1, 5], [7, 3]], axis=1)
    array([5, 7])
    >>> bn.evaluate(bn.max, [1, 7, 7, 2], axis=0, return_indices=True)
    (np.int64(7), np.int32(1))
    """
    return _extreme(context, "max", x, axis, return_indices, return_indices_tie_break_left,
                    keep_dims or keepdims, where, initial)


@function
def min(context, x, axis=None, return_indices=False, return_indices_tie_break_left=True,
        keep_dims=False, keepdims=False, *, initial=None, where=None):
    """The least element along axis; NaN if there is one.

    return_indices: give (values, indices), the first index on ties.
    where: bool, broadcast to x: which elements count; the least of none is the greatest value of
    the dtype.  Leave out those that were loaded outside an array: they are 0.
    initial: a number that counts too, as an element; not with return_indices.
    Source: numpy.min, which needs initial where there is `where`.

    Example:
    >>> bn.evaluate(bn.min, [[1, 5], [7, 3]], axis=1)
    array([1, 3])
    """
    return _extreme(context, "min", x, axis, return_indices, return_indices_tie_break_left,
                    keep_dims or keepdims, where, initial)


@function
def argmax(context, x, axis=None, tie_break_left=True, keep_dims=False, keepdims=False, *,
           where=None):
    """Index of the greatest element along axis, the first on ties; NaN is greatest.  int32.

    where: bool, broadcast to x: which elements count; 0 where none does.  Leave out those that
    were loaded outside an array: they are 0.
    Source: numpy.argmax; `where` is that of numpy.max.

    Example:
    >>> bn.evaluate(bn.argmax, [[1, 5], [7, 3]], axis=1)
    array([1, 0], dtype=int32)
    """
    return _arg(context, "max", x, axis, tie_break_left, keep_dims or keepdims, where)


@function
def argmin(context, x, axis=None, tie_break_left=True, keep_dims=False, keepdims=False, *,
           where=None):
    """Index of the least element along axis, the first on ties; NaN is least.  int32.

    where: bool, broadcast to x: which elements count; 0 where none does.  Leave out those that
    were loaded outside an array: they are 0.
    Source: numpy.argmin; `where` is that of numpy.min.

    Example:
    >>> bn.evaluate(bn.argmin, [[1, 5], [7, 3]], axis=1)
    array([0, 1], dtype=int32)
    """
    return _arg(context, "min", x, axis, tie_break_left, keep_dims or keepdims, where)


def _logical(name: str, kind: str, doc: str) -> BlockFunction:
    def rule(context, x, axis=None, keep_dims=False, keepdims=False, *, where=None):
        tile = context.cast(as_tile(context, name, x), bool_)
        return reduced(context, kind, tile, axis, keep_dims or keepdims, where)
    return described(rule, name, doc)


def _of_bits(name: str, kind: str, doc: str) -> BlockFunction:
    def rule(context, x, axis=None, keep_dims=False, keepdims=False, *, initial=None, where=None):
        tile = as_tile(context, name, x)
        dtype = tile.type.dtype
        require(not dtype.is_float, "{}: given {}, accepted ints and bools", name, dtype,
                hint=f"reinterpret the bits: bn.cast(x, bn.int{dtype.bits}, bitcast=True)")
        return reduced(context, kind, tile, axis, keep_dims or keepdims, where, initial)
    return described(rule, name, doc)


_WHERE = "where: bool, broadcast to x: which elements count"
any = _logical("any", "or", f"""Whether any element along axis is not 0.

    {_WHERE}; False where none does.  Elements that were loaded outside an array are 0 and change
    nothing, but what is computed from them may.
    Source: numpy.any.

    Example:
    >>> bn.evaluate(bn.any, [[0, 2], [0, 0]], axis=1)
    array([ True, False])""")
all = _logical("all", "and", f"""Whether every element along axis is not 0.

    {_WHERE}; True where none does.  Leave out those that were loaded outside an array: they are 0.
    Source: numpy.all.

    Example:
    >>> bn.evaluate(bn.all, [[1, 2], [0, 4]], axis=1)
    array([ True, False])""")
xor_sum = _of_bits("xor_sum", "xor", f"""Exclusive or of the integers along axis.

    {_WHERE}; 0 where none does.   initial: a number that counts too, as an element.
    Source: numpy.bitwise_xor.reduce.

    Example:
    >>> bn.evaluate(bn.xor_sum, [1, 2, 4, 7])
    np.int64(0)""")
reduce_or = _of_bits("reduce_or", "or", f"""Or of the bits of integers along axis.

    {_WHERE}; 0 where none does.   initial: a number that counts too, as an element.
    Source: numpy.bitwise_or.reduce.

    Example:
    >>> bn.evaluate(bn.reduce_or, [1, 2, 4, 4])
    np.int64(7)""")
reduce_and = _of_bits("reduce_and", "and", f"""And of the bits of integers along axis.

    {_WHERE}; all bits where none does.   initial: a number that counts too, as an element.  Leave
    out those that were loaded outside an array: they are 0.
    Source: numpy.bitwise_and.reduce.

    Example:
    >>> bn.evaluate(bn.reduce_and, [6, 7, 14, 15])
    np.int64(6)""")


def as_tile(context: Context, name: str, x: object) -> Value:
    """x as a value.

    Errors: what is no tile, and no number.
    """
    if isinstance(x, Number):
        return context.value(x)
    if not isinstance(x, Value) or x.type.is_pointer:
        raise BlockTypeError(f"{name}: given {describe(x)}, accepted a tile", hint=loading_hint(x))
    return x


def sum_dtype(dtype: DType) -> DType:
    """The dtype in which elements of a dtype are added and multiplied."""
    if dtype.is_float or dtype.bits > 16:
        return dtype
    return uint32 if dtype.kind == "uint" else int32


def mask_of(context: Context, name: str, tile: Value, where: object,
            parameter: str = "where") -> Value | None:
    """`where` as a bool tile of the shape of the elements it is about; None when all count."""
    if where is None or where is True:
        return None
    mask = context.value(where, what=f"{name}: {parameter}")
    require(mask.type.dtype == bool_, "{}: {} must be bool, got {}", name, parameter, mask.type,
            hint="compare it: x != 0")
    return context.broadcast_to(mask, tile.type.shape, f"{name}: {parameter}")


def _included(context: Context, kind: str, tile: Value, mask: Value | None,
              dtype: DType) -> Value:
    """tile with the identity of a reduction of dtype where mask is False."""
    if mask is None:
        return tile
    nothing = context.constant(identity(kind, dtype), tile.type.dtype)
    return context.emit("select", mask, tile, context.broadcast_to(nothing, tile.type.shape))


def reduced(context: Context, kind: str, tile: Value, axis: object, keep: object,
            where: object = None, initial: object = None, counts: bool = False) -> Value:
    """tile reduced along axes, from the last so that the others keep their index.

    counts: the number of elements matters too, which debug is told.
    """
    shape, dtype = tile.type.shape, tile.type.dtype
    mask = mask_of(context, kind, tile, where)
    axes = static_axes(kind, axis, len(shape))
    # neither what initial is added to nor what is reduced along another axis is rounded before
    narrow = dtype.is_float and dtype.bits == 16 and (initial is not None or len(axes) > 1)
    tile = context.cast(tile, float32 if narrow else promotion.computed_dtype(dtype))
    tile = _included(context, kind, tile, mask, dtype)
    noted = {"counts": True} if counts and context.options.debug else {}
    for first, last in _runs(axes):
        if last > first:
            own = tile.type.shape
            joined = (*own[:first], math.prod(own[first:last + 1]), *own[last + 1:])
            tile = context.emit("reshape", tile, shape=joined)
        tile = context.emit("reduce", tile, axis=first, kind=kind, **noted)
    tile = context.cast(_combined(context, kind, tile, initial, dtype), dtype)
    return kept_axes(context, tile, shape, axes, keep)


def _runs(axes: tuple[int, ...]) -> list[tuple[int, int]]:
    """The first and the last axis of each run of neighbours, the last run first."""
    runs: list[tuple[int, int]] = []
    for axis in reversed(axes):
        if runs and runs[-1][0] == axis + 1:
            runs[-1] = (axis, runs[-1][1])
        else:
            runs.append((axis, axis))
    return runs


def _combined(context: Context, kind: str, tile: Value, initial: object, dtype: DType) -> Value:
    """A result with `initial`, a scalar that is converted to dtype first."""
    if initial is None:
        return tile
    scalar = context.value(initial, dtype, f"{kind}: initial")
    require(scalar.type.is_scalar, "{}: initial must be a scalar, got {}", kind, scalar.type)
    scalar = context.broadcast_to(context.cast(scalar, tile.type.dtype), tile.type.shape)
    return context.emit(_COMBINING[kind], tile, scalar)


def kept_axes(context: Context, tile: Value, shape: tuple[int, ...], dropped: tuple[int, ...],
              keep: object) -> Value:
    """tile with its dropped axes put back with extent 1 when that was asked for."""
    known = static("keep_dims", keep)
    require(isinstance(known, (bool, int, np.bool_)), "keep_dims: given {}, accepted True and "
            "False", describe(keep), hint="pass dtypes by name: dtype=...", error=BlockTypeError)
    if not known or not shape:
        return tile
    kept = tuple(1 if i in dropped else n for i, n in enumerate(shape))
    if not tile.type.shape:
        return context.broadcast_to(tile, kept)
    return context.emit("reshape", tile, shape=kept)


def _extreme(context, kind, x, axis, return_indices, tie_break_left, keep, where, initial):
    tile = as_tile(context, kind, x)
    values = reduced(context, kind, tile, axis, keep, where, initial)
    if not static(f"{kind}: return_indices", return_indices):
        return values
    require(initial is None, "{}: given initial and return_indices, accepted one of them", kind)
    return values, _arg(context, kind, tile, axis, tie_break_left, keep, where)


def _arg(context: Context, kind: str, x: object, axis: object, tie_break_left: object,
         keep: object, where: object) -> Value:
    tile = as_tile(context, f"arg{kind}", x)
    require(static(f"arg{kind}: tie_break_left", tie_break_left) in (True, False),
            "arg{}: tie_break_left must be a bool", kind)
    shape = tile.type.shape
    mask = mask_of(context, f"arg{kind}", tile, where)
    tile = context.cast(tile, promotion.computed_dtype(tile.type.dtype))
    require(shape, "arg{}: given {}, accepted a tile", kind, tile.type)
    if mask is not None:
        tile, kind = _is_extreme(context, kind, tile, axis, mask), "max"
    if axis is None:
        flat = context.emit("reshape", tile, shape=(tile.type.size,)) if len(shape) > 1 else tile
        index = context.emit("arg_reduce", flat, axis=0, kind=kind)
        return kept_axes(context, index, shape, tuple(range(len(shape))), keep)
    along = static_axis(f"arg{kind}", axis, len(shape))
    index = context.emit("arg_reduce", tile, axis=along, kind=kind)
    return kept_axes(context, index, shape, (along,), keep)


def _is_extreme(context: Context, kind: str, tile: Value, axis: object, mask: Value) -> Value:
    """A bool for each element: does it count, and is it the greatest or least along axis, or NaN?

    The identity would not do: an element that counts may be equal to it.
    """
    extreme = reduced(context, kind, tile, axis, True, mask)
    found = binary(context, "eq", tile, extreme)
    if tile.type.dtype.is_float:
        found = binary(context, "or", found, binary(context, "ne", tile, tile))
    return binary(context, "and", found, mask)

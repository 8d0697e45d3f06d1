"""Positions in sorted tiles, and the elements that differ: searchsorted, unique_counts."""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import bool_, float32, int32
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.function import function
from blocknumba.typing.functions.order import sort
from blocknumba.typing.functions.reduce import as_tile
from blocknumba.typing.static_values import static_choice

SIDES = ("left", "right")


@function
def searchsorted(context, a, v, side="left"):
    """The index in a before which each element of v keeps it sorted, int32 of v's shape.

    a: a tile of rank 1 in ascending order, NaN last.   v: a tile of any shape or a number; both
    are promoted to one dtype.   side: "left" is before elements of a that are equal, "right"
    after them.
    Elements of a that were loaded outside an array are 0: load them as `other` instead.
    Source: numpy.searchsorted.

    Example:
    >>> bn.evaluate(bn.searchsorted, [1, 3, 3, 5], [0, 3, 9, 4])
    array([0, 1, 4, 3], dtype=int32)
    """
    tile = as_tile(context, "searchsorted", a)
    require_numbers("searchsorted", v)
    require(len(tile.type.shape) == 1, "searchsorted: a: given {}, accepted a tile of one axis",
            describe(a))
    side = static_choice("searchsorted: side", side, SIDES)
    dtype = promotion.result_dtype((tile, v))
    wanted = context.value(v, dtype, "searchsorted: v")
    shape = wanted.type.shape
    keys, wanted = (_comparable(context, x) for x in (context.cast(tile, dtype), wanted))
    flat = context.broadcast_to(wanted, (1,)) if not shape else context.emit(
        "reshape", wanted, shape=(wanted.type.size,))
    return context.emit("reshape", _positions(context, keys, flat, side), shape=shape)


def _positions(context: Context, keys: Value, wanted: Value, side: str) -> Value:
    """Per element of a tile the number of keys before it: a binary search, bit by bit."""
    def step_over(position: Value, step: int) -> Value:
        """The position moved by a step where all keys up to there are before the element."""
        last = _with_number(context, "add", position, step - 1)
        key = context.emit("gather", keys, last, axis=0)
        if side == "left":
            is_before = _is_before(context, key, wanted)
        else:
            is_before = context.emit("invert", _is_before(context, wanted, key))
        moved = _with_number(context, "add", position, step)
        return context.emit("select", is_before, moved, position)

    (extent,) = keys.type.shape
    position = context.broadcast_to(context.constant(0, int32), wanted.type.shape)
    step = extent // 2
    while step:
        position, step = step_over(position, step), step // 2
    return step_over(position, 1)  # to the very end


@function
def unique_counts(context, x):
    """The different elements of x in ascending order, how often each is in it, and their number.

    x: a tile; its elements are taken in any order.   Gives (values, counts, number): tiles of as
    many elements as x has, of which the first `number` are meant, an int32 scalar.  After them
    values repeat the greatest one, and counts, int32, are 0.
    Zeros are equal; every NaN is an element of its own, as in NumPy.
    Source: numpy.unique_counts.

    Example:
    >>> bn.evaluate(bn.unique_counts, [3, 1, 3, 3])
    (array([1, 3, 3, 3]), array([1, 3, 0, 0], dtype=int32), np.int32(2))
    """
    tile = as_tile(context, "unique_counts", x)
    require(tile.type.shape, "unique_counts: given {}, accepted a tile", describe(x))
    ordered = sort.rule(context, tile, None)
    (extent,) = ordered.type.shape
    indices = context.emit("arange", start=0, size=extent)
    before = _with_number(context, "maximum", _with_number(context, "sub", indices, 1), 0)
    keys = _comparable(context, ordered)
    differs = context.emit("ne", context.emit("gather", keys, before, axis=0), keys)
    is_first = context.emit("or", differs, _with_number(context, "eq", indices, 0))
    beyond = context.broadcast_to(context.constant(extent, int32), (extent,))
    starts = context.emit("sort", context.emit("select", is_first, indices, beyond), axis=0,
                          kept=extent)
    values = context.emit("gather", ordered,
                          _with_number(context, "minimum", starts, extent - 1), axis=0)
    following = _with_number(context, "minimum", _with_number(context, "add", indices, 1),
                             extent - 1)
    stops = context.emit("gather", starts, following, axis=0)
    stops = context.emit("select", _with_number(context, "eq", indices, extent - 1), beyond, stops)
    number = context.emit("reduce", context.cast(is_first, int32), axis=0, kind="sum")
    return values, context.emit("sub", stops, starts), number


def _comparable(context: Context, tile: Value) -> Value:
    """A tile that can be compared: floats of 8 bits in float32, bools in int32."""
    dtype = tile.type.dtype
    if dtype == bool_:
        return context.cast(tile, int32)
    return context.cast(tile, float32) if dtype.is_float and dtype.bits == 8 else tile


def _is_before(context: Context, x: Value, y: Value) -> Value:
    """Whether elements of x come before those of y, NaN last."""
    less = context.emit("lt", x, y)
    if not x.type.dtype.is_float:
        return less
    numbers = context.emit("invert", context.emit("isnan", x))
    return context.emit("or", less, context.emit("and", context.emit("isnan", y), numbers))


def _with_number(context: Context, name: str, x: Value, number: int) -> Value:
    """An op on a tile and a number."""
    constant = context.constant(number, x.type.dtype)
    return context.emit(name, x, context.broadcast_to(constant, x.type.shape))

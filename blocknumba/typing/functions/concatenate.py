"""Functions that make a tile of several, or of copies of one.

Two tiles side by side along an axis are a join and a transpose, in C order a reshape:

    x, y  (outer, n, inner)   ->   join  (outer, n, inner, 2)   ->   (outer, 2, n, inner)

so nothing moves where the threads that hold the halves keep them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.function import function
from blocknumba.typing.functions.shape import reshaped, tile_of
from blocknumba.typing.static_values import static_axis, static_int


@function
def concatenate(context, tiles, axis=0):
    """Tiles one after the other along axis; axis=None: all of their elements, in C order.

    tiles: a tuple of tiles of one rank, whose extents are the same but along axis, where they add
    up to a power of two; their dtypes are promoted.
    Errors: BlockTypeError for scalars and other shapes; for a sum that is no power of two.
    Source: numpy.concatenate.

    Example:
    >>> bn.evaluate(lambda x, y: bn.concatenate((x, y)), [1, 2], [3.5, 4.5])
    array([1. , 2. , 3.5, 4.5])
    """
    values = _tiles(context, "concatenate", tiles)
    if axis is None:
        values = [reshaped(context, "concatenate", value, (value.type.size,)) for value in values]
    return _concatenated(context, "concatenate", values, 0 if axis is None else axis)


@function
def cat(context, x, y, can_reorder=False, dim=0):
    """x and y one after the other along an axis; can_reorder changes nothing: they stay in order.

    Source: numpy.concatenate, Triton's cat.

    Example:
    >>> bn.evaluate(bn.cat, [1, 2], [3, 4])
    array([1, 2, 3, 4])
    """
    return _concatenated(context, "cat", _tiles(context, "cat", (x, y)), dim)


@function
def stack(context, tiles, axis=0):
    """Tiles and scalars of one shape along a new axis, an axis of the result.

    tiles: a tuple of them, as many as a power of two; their dtypes are promoted.
    Errors: BlockTypeError for other numbers of tiles; for shapes that differ.
    Source: numpy.stack.

    Example:
    >>> bn.evaluate(lambda x, y: bn.stack((x, y), axis=1), [1, 2], [3, 4])
    array([[1, 3],
           [2, 4]])
    """
    values = _tiles(context, "stack", tiles)
    shape = values[0].type.shape
    for value in values:
        require(value.type.shape == shape, "stack: given shapes {} and {}, accepted one shape",
                shape, value.type.shape)
    at = static_axis("stack", axis, len(shape) + 1)
    wide = (*shape[:at], 1, *shape[at:])
    return _concatenated(context, "stack", [reshaped(context, "stack", value, wide)
                                            for value in values], at)


@function
def repeat(context, x, repeats, axis=None):
    """Each element of x several times along axis; axis=None: along all of x in C order.

    repeats: a compile-time power of two.
    Source: numpy.repeat.

    Example:
    >>> bn.evaluate(bn.repeat, [1, 2], 2)
    array([1, 1, 2, 2])
    """
    tile = tile_of(context, "repeat", x)
    times = static_int("repeat: repeats", repeats)
    require(times > 0 and not times & times - 1, "repeat: repeats must be a power of two, got {}",
            times, hint=f"the next valid number is {next_size(times)}")
    if axis is None:
        tile = reshaped(context, "repeat", tile, (tile.type.size,))
    shape = tile.type.shape
    at = static_axis("repeat", 0 if axis is None else axis, len(shape))
    outer, inner = math.prod(shape[:at]), math.prod(shape[at + 1:])
    rows = reshaped(context, "repeat", tile, (outer * shape[at], 1, inner))
    rows = context.broadcast_to(rows, (outer * shape[at], times, inner))
    return reshaped(context, "repeat", rows, (*shape[:at], shape[at] * times, *shape[at + 1:]))


def next_size(size: int) -> int:
    """The power of two that is not less than a size."""
    return 1 << max(size - 1, 0).bit_length()


def part_of(context: Context, tile: Value, axis: int, start: int, size: int) -> Value:
    """The elements of a tile from start on along an axis; start is a multiple of size."""
    shape = tile.type.shape
    if size == shape[axis]:
        return tile
    starts = tuple(start if a == axis else 0 for a in range(len(shape)))
    return context.emit("extract", tile, starts=starts,
                        shape=(*shape[:axis], size, *shape[axis + 1:]))


def in_a_row(context: Context, tiles: Sequence[Value], axis: int) -> Value:
    """Tiles of one dtype one after the other along an axis; their extents add up to a power of two.

    It is halved until a half, or a quarter and so on, is an aligned part of one tile.
    """
    if len(tiles) == 1:
        return tiles[0]
    ends, end = [], 0
    for tile in tiles:
        end += tile.type.shape[axis]
        ends.append(end)

    def between(start: int, size: int) -> Value:
        number = next(i for i, stop in enumerate(ends) if start < stop)
        extent = tiles[number].type.shape[axis]
        own = start - (ends[number] - extent)
        if own % size == 0 and own + size <= extent:
            return part_of(context, tiles[number], axis, own, size)
        half = size // 2
        return _side_by_side(context, between(start, half), between(start + half, half), axis)

    return between(0, end)


def _side_by_side(context: Context, x: Value, y: Value, axis: int) -> Value:
    """Two tiles of one type, one after the other along an axis."""
    shape = x.type.shape
    outer, extent, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:])
    flat = (outer, extent, inner)
    sides = [reshaped(context, "concatenate", side, flat) for side in (x, y)]
    pairs = context.emit("transpose", context.emit("join", *sides), axes=(0, 3, 1, 2))
    return reshaped(context, "concatenate", pairs, (*shape[:axis], 2 * extent, *shape[axis + 1:]))


def _tiles(context: Context, name: str, tiles: object) -> list[Value]:
    """The tiles of a tuple in their promoted dtype.

    Errors: BlockTypeError for what is no tuple, or an empty one.
    """
    if not isinstance(tiles, tuple) or not tiles:
        raise BlockTypeError(f"{name}: given {describe(tiles)}, accepted a tuple of tiles",
                             hint=f"write bn.{name}((x, y))")
    require_numbers(name, *tiles)
    dtype = promotion.tile_dtype(tiles)
    return [context.value(tile, dtype, name) for tile in tiles]


def _concatenated(context: Context, name: str, tiles: Sequence[Value], axis: object) -> Value:
    shape = tiles[0].type.shape
    require(all(tile.type.shape for tile in tiles), "{}: given a scalar, accepted tiles of rank 1 "
            "or more", name, hint="bn.stack and bn.join take scalars")
    at = static_axis(name, axis, len(shape))
    for tile in tiles[1:]:
        other = tile.type.shape
        fits = len(other) == len(shape) and other[:at] == shape[:at] and (
            other[at + 1:] == shape[at + 1:])
        require(fits, "{}: given shapes {} and {}, accepted the same extents but for axis {}",
                name, shape, other, at)
    total = sum(tile.type.shape[at] for tile in tiles)
    if total & total - 1:
        raise BlockValueError(
            f"{name}: axis {at} of the result has extent {total}, accepted powers of two",
            hint=f"the next valid extent is {next_size(total)}: add tiles of zeros")
    return in_a_row(context, tiles, at)

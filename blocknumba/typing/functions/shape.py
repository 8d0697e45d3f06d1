"""Functions that rearrange the elements of tiles."""

from __future__ import annotations

import math

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.function import function
from blocknumba.typing.static_values import static_axes, static_axis, static_dtype, static_shape
from blocknumba.typing.values import Number


@function
def reshape(context, x, *shape, can_reorder=False):
    """The elements of x in C order in another shape; one extent may be -1.

    Source: numpy.reshape.

    Example:
    >>> bn.evaluate(bn.reshape, [1, 2, 3, 4], (2, -1))
    array([[1, 2],
           [3, 4]])
    """
    return reshaped(context, "reshape", x, _shape_arguments("reshape", shape))


@function
def view(context, x, *shape):
    """reshape under Triton's older name; with a dtype, the bits of x taken as that dtype.

    Source: numpy.ndarray.view.

    Example:
    >>> bn.evaluate(bn.view, np.float32([1, 2]), bn.int32)
    array([1065353216, 1073741824], dtype=int32)
    """
    if len(shape) == 1 and not isinstance(shape[0], (int, tuple, Value)):
        dtype = static_dtype("view", shape[0])
        return context.emit("bitcast", tile_of(context, "view", x), dtype=dtype.name)
    return reshaped(context, "view", x, _shape_arguments("view", shape))


@function
def ravel(context, x, can_reorder=False):
    """x as a tile of rank 1.   Source: numpy.ravel.

    Example:
    >>> bn.evaluate(bn.ravel, [[1, 2], [3, 4]])
    array([1, 2, 3, 4])
    """
    return reshaped(context, "ravel", x, (-1,))


@function
def expand_dims(context, x, axis):
    """x with new axes of extent 1; axis, or each of them, is an axis of the result.

    Source: numpy.expand_dims.

    Example:
    >>> bn.evaluate(bn.expand_dims, [1, 2], axis=1)
    array([[1],
           [2]])
    """
    tile = tile_of(context, "expand_dims", x)
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = static_axes("expand_dims", axis, len(tile.type.shape) + len(given))
    extents = iter(tile.type.shape)
    rank = len(tile.type.shape) + len(axes)
    shape = tuple(1 if i in axes else next(extents) for i in range(rank))
    return context.emit("reshape", tile, shape=shape) if tile.type.shape else (
        context.broadcast_to(tile, shape))


@function
def squeeze(context, x, axis=None):
    """x without its axes of extent 1, or without those given.   Source: numpy.squeeze.

    Example:
    >>> bn.evaluate(bn.squeeze, [[[1], [2]]])
    array([1, 2])
    """
    tile = tile_of(context, "squeeze", x)
    shape = tile.type.shape
    axes = static_axes("squeeze", axis, len(shape)) if axis is not None else tuple(
        i for i, n in enumerate(shape) if n == 1)
    for i in axes:
        require(shape[i] == 1, "squeeze: axis {} of {} has extent {}, accepted 1", i, shape,
                shape[i])
    left = tuple(n for i, n in enumerate(shape) if i not in axes)
    return reshaped(context, "squeeze", tile, left)


@function
def broadcast_to(context, x, *shape):
    """x repeated to a shape that it broadcasts to.   Source: numpy.broadcast_to.

    Example:
    >>> bn.evaluate(bn.broadcast_to, [1, 2], (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    return context.broadcast_to(tile_of(context, "broadcast_to", x),
                                _shape_arguments("broadcast_to", shape), "broadcast_to")


@function
def broadcast(context, x, y):
    """The tuple of x and y in their common shape.   Source: numpy.broadcast_arrays.

    Example:
    >>> bn.evaluate(bn.broadcast, [1, 2], [[3], [4]])
    (array([[1, 2],
           [1, 2]]), array([[3, 3],
           [4, 4]]))
    """
    tiles = [tile_of(context, "broadcast", operand) for operand in (x, y)]
    return tuple(context.broadcast_together(tiles, "broadcast"))


@function
def trans(context, x, *axes):
    """x with its axes in another order; without axes the last two are swapped.

    Source: numpy.transpose, numpy.matrix_transpose.

    Example:
    >>> bn.evaluate(bn.trans, [[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    tile = tile_of(context, "trans", x)
    rank = len(tile.type.shape)
    order = _shape_arguments("trans", axes) if axes else None
    if order is None:
        require(rank >= 2, "trans: given {}, accepted rank 2 or more", tile.type)
        order = (*range(rank - 2), rank - 1, rank - 2)
    return _permuted(context, "trans", tile, order)


@function
def permute(context, x, *axes):
    """x with its axes in another order.   Source: numpy.permute_dims.

    Example:
    >>> bn.evaluate(bn.permute, [[[1, 2], [3, 4]]], (2, 0, 1)).shape
    (2, 1, 2)
    """
    return _permuted(context, "permute", tile_of(context, "permute", x),
                     _shape_arguments("permute", axes))


@function
def swapaxes(context, x, axis1, axis2):
    """x with two axes exchanged.   Source: numpy.swapaxes.

    Example:
    >>> bn.evaluate(bn.swapaxes, [[1, 2], [3, 4]], 0, 1)
    array([[1, 3],
           [2, 4]])
    """
    tile = tile_of(context, "swapaxes", x)
    order = list(range(len(tile.type.shape)))
    first, second = (static_axis("swapaxes", axis, len(order)) for axis in (axis1, axis2))
    order[first], order[second] = order[second], order[first]
    return _permuted(context, "swapaxes", tile, tuple(order))


@function
def join(context, x, y):
    """x and y, broadcast together, side by side on a new last axis of extent 2.

    Source: numpy.stack with axis=-1.

    Example:
    >>> bn.evaluate(bn.join, [1, 2], [3, 4])
    array([[1, 3],
           [2, 4]])
    """
    require_numbers("join", x, y)
    dtype = promotion.tile_dtype((x, y))
    values = [context.value(operand, dtype, "join") for operand in (x, y)]
    values = context.broadcast_together(values, "join")
    if not values[0].type.shape:
        values = [context.broadcast_to(value, (1,)) for value in values]
        return reshaped(context, "join", context.emit("join", *values), (2,))
    return context.emit("join", *values)


@function
def split(context, x):
    """The halves of a last axis of extent 2: (x[..., 0], x[..., 1]).

    Example:
    >>> bn.evaluate(bn.split, [[1, 2], [3, 4]])
    (array([1, 3]), array([2, 4]))
    """
    tile = tile_of(context, "split", x)
    if tile.type.shape == (2,):
        halves = context.emit("split", reshaped(context, "split", tile, (1, 2)))
        return tuple(scalar_of(context, half) for half in halves)
    return context.emit("split", tile)


@function
def interleave(context, x, y):
    """The elements of x and y in turn along the last axis.

    Example:
    >>> bn.evaluate(bn.interleave, [1, 2], [3, 4])
    array([1, 3, 2, 4])
    """
    pairs = join.rule(context, x, y)
    shape = pairs.type.shape
    if len(shape) == 1:
        return pairs
    return reshaped(context, "interleave", pairs, (*shape[:-2], shape[-2] * 2))


@function
def flip(context, x, dim=-1):
    """x with the order of an axis reversed, or of several; None: of the last one.

    Source: numpy.flip, of which axis=None means all axes.

    Example:
    >>> bn.evaluate(bn.flip, [1, 2, 3, 4])
    array([4, 3, 2, 1])
    """
    return _flipped(context, x, -1 if dim is None else dim)


@function
def numpy_flip(context, m, axis=None):
    """m with the order of axis reversed, of several axes, or of all.   Source: numpy.flip."""
    return _flipped(context, m, axis)


@function
def item(context, x):
    """The element of a tile of one element, as a scalar.   Source: numpy.ndarray.item.

    Example:
    >>> bn.evaluate(bn.item, [[7]])
    np.int64(7)
    """
    if isinstance(x, Number):
        return x
    tile = tile_of(context, "item", x)
    require(tile.type.size == 1, "item: given {}, accepted one element", tile.type,
            hint="pick one, x[0], or reduce them: x.sum(), x.max()")
    return scalar_of(context, tile)


def as_scalar(context: Context, operand: object) -> object:
    """A tile of one element as that element; anything else as it is."""
    if isinstance(operand, Value) and operand.type.shape and operand.type.size == 1:
        return scalar_of(context, operand)
    return operand


def scalar_of(context: Context, tile: Value) -> Value:
    """The only element of a tile.

    Errors: a tile of pointers.
    """
    require(not tile.type.is_pointer, "index: given {}, accepted tiles of numbers", tile.type,
            hint="add one number to the array: x + i is one pointer")
    while tile.type.shape:
        tile = context.emit("reduce", tile, axis=0, kind="max") if tile.type.dtype.bits != 8 or (
            not tile.type.dtype.is_float) else _first_byte(context, tile)
    return tile


def _first_byte(context: Context, tile: Value) -> Value:
    """An axis of extent 1 dropped from a tile of 8-bit floats, which have no arithmetic."""
    bits = context.emit("bitcast", tile, dtype="uint8")
    return context.emit("bitcast", context.emit("reduce", bits, axis=0, kind="max"),
                        dtype=tile.type.dtype.name)


def _flipped(context: Context, x: object, axis: object) -> Value:
    tile = tile_of(context, "flip", x)
    for each in static_axes("flip", axis, len(tile.type.shape)):
        tile = context.emit("flip", tile, axis=each)
    return tile


def tile_of(context: Context, name: str, x: object) -> Value:
    """A tile or number as a Value.   name: of the function, for errors."""
    if not isinstance(x, Value) and not promotion.is_number(x):
        raise BlockTypeError(f"{name}: given {describe(x)}, accepted a tile")
    return context.value(x, what=name)


def _shape_arguments(name: str, shape: tuple) -> tuple[int, ...]:
    """`f(x, 2, 4)` and `f(x, (2, 4))` alike."""
    return static_shape(name, shape[0] if len(shape) == 1 else shape)


def reshaped(context: Context, name: str, x: object, shape: tuple[int, ...]) -> Value:
    """The elements of x in C order in a shape of as many; one extent may be -1."""
    tile = tile_of(context, name, x)
    require(shape.count(-1) < 2, "{}: given {}, accepted at most one extent of -1", name, shape)
    if -1 in shape:
        known = math.prod(n for n in shape if n != -1)
        require(known and tile.type.size % known == 0, "{}: {} elements do not fill {}", name,
                tile.type.size, shape)
        shape = tuple(tile.type.size // known if n == -1 else n for n in shape)
    if shape == tile.type.shape:
        return tile
    if not tile.type.shape:
        require(math.prod(shape) == 1, "{}: given a scalar, accepted shapes of one element, got {}",
                name, shape)
        return context.broadcast_to(tile, shape)
    if not shape:
        require(tile.type.size == 1, "{}: given {}, accepted one element", name, tile.type)
        return scalar_of(context, tile)
    return context.emit("reshape", tile, shape=shape)


def _permuted(context: Context, name: str, tile: Value, axes: tuple[int, ...]) -> Value:
    rank = len(tile.type.shape)
    order = tuple(static_axis(name, axis, rank) for axis in axes)
    require(sorted(order) == list(range(rank)), "{}: given axes {}, accepted a permutation of {}",
            name, axes, tuple(range(rank)))
    return tile if order == tuple(range(rank)) else context.emit("transpose", tile, axes=order)


"""Ops that rearrange the elements of tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.opdef import PURE, REARRANGES, op
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ops.create import require_shape


def common_shape(shapes: Sequence[tuple[int, ...]], what: str) -> tuple[int, ...]:
    """The shape that shapes broadcast to.   Source: numpy.broadcast_shapes."""
    result = shapes[0]
    for shape in shapes[1:]:
        if shape == result:
            continue
        rank = max(len(shape), len(result))
        a, b = ((1,) * (rank - len(s)) + s for s in (result, shape))
        if any(n != m and 1 not in (n, m) for n, m in zip(a, b)):
            raise BlockTypeError(f"{what}: shapes {result} and {shape} do not broadcast together",
                                 hint=_axis_hint(result, shape))
        result = tuple(max(n, m) for n, m in zip(a, b))
    return result


def _axis_hint(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    if len(a) == len(b) == 1:
        return "add an axis to one of them: x[:, None] or x[None, :]"
    return ""


@op(PURE | REARRANGES)
def splat(x, *, shape) -> TileType:
    """A scalar repeated to a tile of shape.

    x: scalar of any dtype, pointers included; shape: powers of two, of rank MAX_RANK at most.
    Source: numpy.full.
    """
    require(x.is_scalar, "splat: given {}, accepted a scalar", x)
    require_shape("splat", shape)
    return x.shaped(shape)


@splat.numpy
def _(x, *, shape):
    return np.broadcast_to(x.reshape(x.shape[:1] + (1,) * len(shape)), x.shape[:1] + shape)


@op(PURE | REARRANGES)
def broadcast(x, *, shape) -> TileType:
    """x with each axis of extent 1 repeated to the extent in shape; the rank stays.

    Source: numpy.broadcast_to.
    """
    require_shape("broadcast", shape)
    fits = len(shape) == len(x.shape) and all(n in (1, m) for n, m in zip(x.shape, shape))
    require(fits, "broadcast: given shape {}, accepted one that broadcasts to {}", x.shape, shape)
    return x.shaped(shape)


@broadcast.numpy
def _(x, *, shape):
    return np.broadcast_to(x, x.shape[:1] + shape)


@op(PURE | REARRANGES)
def reshape(x, *, shape) -> TileType:
    """The elements of x, in C order, in another shape of the same size.

    Source: numpy.reshape.
    """
    require_shape("reshape", shape)
    require(math.prod(shape) == x.size, "reshape: given {} with {} elements, accepted {} elements",
            x.shape, x.size, math.prod(shape))
    return x.shaped(shape)


@reshape.numpy
def _(x, *, shape):
    return x.reshape(x.shape[:1] + shape)


@op(PURE | REARRANGES)
def transpose(x, *, axes) -> TileType:
    """Axis i of the result is axis axes[i] of x.

    Source: numpy.transpose.
    """
    require(sorted(axes) == list(range(len(x.shape))),
            "transpose: axes must be a permutation of {}, got {}", tuple(range(len(x.shape))), axes)
    return x.shaped(tuple(x.shape[axis] for axis in axes))


@transpose.numpy
def _(x, *, axes):
    return x.transpose((0, *(axis + 1 for axis in axes)))


@op(PURE)
def join(x, y) -> TileType:
    """x and y side by side on a new last axis of extent 2.

    Source: numpy.stack with axis=-1.
    """
    require(x == y and x.shape, "join: given {} and {}, accepted two tiles of one type", x, y)
    require_shape("join", (*x.shape, 2))
    return x.shaped((*x.shape, 2))


@join.numpy
def _(x, y):
    return np.stack(np.broadcast_arrays(x, y), axis=-1)


@op(PURE)
def split(x) -> tuple[TileType, TileType]:
    """The two halves of a last axis of extent 2: x[..., 0] and x[..., 1]."""
    require(len(x.shape) >= 2 and x.shape[-1] == 2,
            "split: given {}, accepted rank 2 or more and a last axis of extent 2", x)
    half = x.shaped(x.shape[:-1])
    return half, half


@split.numpy
def _(x):
    return x[..., 0], x[..., 1]


@op(PURE)
def flip(x, *, axis) -> TileType:
    """x with the order of one axis reversed.

    Source: numpy.flip.
    """
    require(0 <= axis < len(x.shape), "flip: axis must be in [0, {}), got {}", len(x.shape), axis)
    return x


@flip.numpy
def _(x, *, axis):
    return np.flip(x, axis + 1)


@op(PURE)
def extract(x, *, starts, shape) -> TileType:
    """The subset of x that starts at starts and has shape; starts are multiples of shape.

    Source: x[starts[0] : starts[0] + shape[0], ...].
    """
    require_shape("extract", shape)
    fits = len(starts) == len(shape) == len(x.shape) and all(
        0 <= s and s + n <= m and s % n == 0 for s, n, m in zip(starts, shape, x.shape))
    require(fits, "extract: given start {} and shape {}, accepted an aligned part of {}", starts,
            shape, x.shape)
    return x.shaped(shape)


@extract.numpy
def _(x, *, starts, shape):
    return x[(slice(None), *(slice(s, s + n) for s, n in zip(starts, shape)))]

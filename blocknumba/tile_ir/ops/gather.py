"""Ops that take elements of a tile by indices of run time."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import PURE, op
from blocknumba.tile_ir.ir.types import TileType, int32


@op(PURE)
def gather(x, indices, *, axis) -> TileType:
    """x[i, indices[i, j, k], k] at [i, j, k], for axis 1 of three; 0 where the index is outside.

    x: tile of numbers; indices: int32, of x's shape but for the extent of axis.  An index is
    inside from 0 up to that extent of x; negative ones do not count from the end.
    Source: numpy.take_along_axis.
    """
    rank = len(x.shape)
    require(0 <= axis < rank, "gather: axis must be in [0, {}), got {}", rank, axis)
    require(not x.is_pointer, "gather: given {}, accepted a tile of numbers", x)
    fits = indices.dtype == int32 and len(indices.shape) == rank and all(
        n == m or i == axis for i, (n, m) in enumerate(zip(x.shape, indices.shape)))
    require(fits, "gather: given indices {} for {}, accepted int32 of its shape but for axis {}",
            indices, x, axis)
    return x.shaped(indices.shape)


@gather.numpy
def _(x, indices, *, axis):
    extent = x.shape[axis + 1]
    inside = (indices >= 0) & (indices < extent)
    found = np.take_along_axis(x, np.where(inside, indices, 0).astype(np.intp), axis + 1)
    return np.where(inside, found, np.zeros((), x.dtype))

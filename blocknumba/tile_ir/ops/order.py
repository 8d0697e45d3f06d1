"""The order of elements along an axis, and counts of equal ones."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import PURE, op
from blocknumba.tile_ir.ir.types import TileType, bool_, int32, int64, uint32, uint64

SORTED = (int32, uint32, int64, uint64)


@op(PURE)
def sort(*tiles, axis, kept) -> tuple[TileType, ...]:
    """The least elements along axis, in ascending order.

    tiles: of one shape and rank >= 1, of 32- or 64-bit integers: an element is the tuple of theirs
    at one place, compared from the first tile on.  Of elements that are equal in all tiles none
    can be told from another.
    kept: a power of two, how many elements are returned, at most the extent of the axis; it is the
    extent of the results.
    Source: numpy.sort; numpy.lexsort.
    """
    require(tiles, "sort: given no tiles, accepted one or more")
    first = tiles[0]
    require(all(tile.shape == first.shape and tile.layout == first.layout for tile in tiles),
            "sort: given {}, accepted tiles of one shape", " and ".join(map(str, tiles)))
    require(all(tile.dtype in SORTED for tile in tiles), "sort: given {}, accepted tiles of {}",
            " and ".join(map(str, tiles)), ", ".join(map(str, SORTED)))
    require(0 <= axis < len(first.shape), "sort: axis must be in [0, {}), got {}",
            len(first.shape), axis)
    require(0 < kept <= first.shape[axis] and not kept & kept - 1,
            "sort: kept must be a power of two up to {}, got {}", first.shape[axis], kept)
    shape = (*first.shape[:axis], kept, *first.shape[axis + 1:])
    return tuple(tile.shaped(shape) for tile in tiles)


@sort.numpy
def _(*tiles, axis, kept):
    tiles = np.broadcast_arrays(*tiles)
    along = axis + 1  # arrays of as many programs
    if len(tiles) == 1:
        return np.take(np.sort(tiles[0], along), range(kept), along)
    order = np.take(np.lexsort(tiles[::-1], along), range(kept), along)
    return tuple(np.take_along_axis(tile, order, along) for tile in tiles)


@op(PURE)
def histogram(x, mask=None, *, bins) -> TileType:
    """Counts of 0, 1, ..., bins - 1 in x: int32, of shape (bins,).

    x: int32 tile of any shape; other numbers are not counted.   mask: bool, of x's shape: which
    elements count.   bins: a power of two.
    Source: numpy.bincount.
    """
    require(x.shape and x.dtype == int32, "histogram: given {}, accepted a tile of int32", x)
    require(mask is None or mask == x.of(bool_), "histogram: mask: given {}, accepted {}", mask,
            x.of(bool_))
    require(bins > 0 and not bins & bins - 1, "histogram: bins must be a power of two, got {}",
            bins)
    return TileType(int32, (bins,))


@histogram.numpy
def _(x, mask=None, *, bins):
    tiles = np.broadcast_arrays(x, True if mask is None else mask)
    programs = len(tiles[0])
    numbers, counts = (tile.reshape(programs, -1) for tile in tiles)
    counts = counts & (numbers >= 0) & (numbers < bins)
    slots = numbers.astype(np.int64) + bins * np.arange(programs)[:, None]
    found = np.bincount(slots[counts], minlength=programs * bins)
    return found.astype(np.int32).reshape(programs, bins)

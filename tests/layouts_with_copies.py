"""Layouts in which threads hold copies, for tests: whole tiles, and tiles that are broadcast."""

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import (
    LANE_BITS, REGISTER, dims_of, from_columns, log2, reshape, shape_of,
)


def replicated(shape: tuple[int, ...], num_warps: int) -> LinearLayout:
    """Every thread holds the whole tile."""
    size = sum(bits for _, bits in dims_of(shape))
    return from_columns(shape, gf2.identity(size), (0,) * LANE_BITS, (0,) * log2(num_warps))


def insert_axis(layout: LinearLayout, axis: int) -> LinearLayout:
    """The layout of a tile with a new axis of extent 1 at this index."""
    shape = shape_of(layout)
    return reshape(layout, shape[:axis] + (1,) + shape[axis:])


def stretch(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    """The layout of a tile broadcast to shape: along axes of extent 1 each thread holds all.

    The new elements are in the registers above those of the tile.
    """
    old = shape_of(layout)
    wider = layout.with_outs(dims_of(shape))
    first_bit, added = 0, ()
    for axis in reversed(range(len(shape))):
        bits = log2(shape[axis])
        if old[axis] != shape[axis]:
            added += tuple(1 << first_bit + bit for bit in range(bits))
        first_bit += bits
    return wider.with_columns(REGISTER, wider[REGISTER] + added)

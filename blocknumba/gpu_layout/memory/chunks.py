"""Parts of tiles that go through shared memory one after the other, so that a small buffer does.

A part has the elements whose packed index has certain bits set in one way.  Where these bits are
registers and nothing else, in the layout that a tile comes from and in the one it goes to, every
thread has some of every part, and takes part in all that happens to it.
"""

from __future__ import annotations

from functools import lru_cache

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import LANE, REGISTER, WARP, from_columns


@lru_cache(maxsize=1024)
def chunk_bits(source: LinearLayout, destination: LinearLayout, wanted: int) -> tuple[int, ...]:
    """Up to `wanted` bits of the packed index, the highest ones, that parts may differ in."""
    touched = 0
    for layout in (source, destination):
        sums = (column for column in layout[REGISTER] if column & column - 1)
        for column in (*layout[LANE], *layout[WARP], *sums):
            touched |= column
    shared = set(source[REGISTER]) & set(destination[REGISTER])
    alone = sorted(column.bit_length() - 1 for column in shared if not column & touched)
    return tuple(alone[max(0, len(alone) - wanted) :])


@lru_cache(maxsize=1024)
def chunk_layout(layout: LinearLayout, bits: tuple[int, ...]) -> LinearLayout:
    """The layout of every part of a tile, as a tile of rank 1 in the order of the packed index."""
    removed = sum(1 << bit for bit in bits)
    register = tuple(column for column in layout[REGISTER] if not column & removed)
    size = 1 << layout.out_bits - len(bits)

    def kept(columns: gf2.Matrix) -> gf2.Matrix:
        return tuple(_without(column, bits) for column in columns)

    return from_columns((size,), kept(register), kept(layout[LANE]), kept(layout[WARP]))


def _without(index: int, bits: tuple[int, ...]) -> int:
    """An index with some bits left out, highest first so that the lower ones keep their places."""
    for bit in sorted(bits, reverse=True):
        low = index & (1 << bit) - 1
        index = index >> bit + 1 << bit | low
    return index


def registers_of_chunk(layout: LinearLayout, bits: tuple[int, ...], index: int) -> tuple[int, ...]:
    """The registers that hold one part, in the order of the part's registers.

    index: bit i of it says how bits[i] is set.
    """
    removed = sum(1 << bit for bit in bits)
    chosen = sum((index >> i & 1) << bit for i, bit in enumerate(bits))
    return tuple(
        register for register, place in enumerate(gf2.images(layout[REGISTER]))
        if place & removed == chosen
    )

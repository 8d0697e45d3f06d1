"""Chunks: pieces of a tile that go through shared memory one after the other, in a small buffer.

A chunk has the elements whose packed index has given values in some chosen bits.  The bits must be
register bits, and nothing else, both in the source layout and in the destination layout.  Then
every thread holds elements of every chunk and takes part in each copy.

Worked example: of 8 elements with the packed index b2 b1 b0, b2 is chosen.  Chunk 0 has the
elements 0..3, chunk 1 the elements 4..7; a buffer of 4 elements suffices.
"""

from __future__ import annotations

from functools import lru_cache

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import LANE, REGISTER, WARP, from_columns


@lru_cache(maxsize=1024)
def chunk_bits(source: LinearLayout, destination: LinearLayout, wanted: int) -> tuple[int, ...]:
    """Bits of the packed index that can number the chunks of a tile: at most `wanted`, the highest.
    """
    touched = 0
    for layout in (source, destination):
        sums = (column for column in layout[REGISTER] if column & column - 1)
        for column in (*layout[LANE], *layout[WARP], *sums):
            touched |= column
    shared = set(source[REGISTER]) & set(destination[REGISTER])
    own = sorted(column.bit_length() - 1 for column in shared if not column & touched)
    return tuple(own[max(0, len(own) - wanted) :])


@lru_cache(maxsize=1024)
def chunk_layout(layout: LinearLayout, bits: tuple[int, ...]) -> LinearLayout:
    """The layout of every chunk of a tile, as a tile of rank 1 in the order of the packed index."""
    removed = sum(1 << bit for bit in bits)
    register = tuple(column for column in layout[REGISTER] if not column & removed)
    size = 1 << layout.out_bits - len(bits)

    def kept(columns: gf2.Matrix) -> gf2.Matrix:
        return tuple(_without(column, bits) for column in columns)

    return from_columns((size,), kept(register), kept(layout[LANE]), kept(layout[WARP]))


def _without(index: int, bits: tuple[int, ...]) -> int:
    """An index without some bits: highest first, so that lower bits keep their positions."""
    for bit in sorted(bits, reverse=True):
        low = index & (1 << bit) - 1
        index = index >> bit + 1 << bit | low
    return index


def registers_of_chunk(layout: LinearLayout, bits: tuple[int, ...], index: int) -> tuple[int, ...]:
    """The registers that hold one chunk, in the order of the chunk's registers.

    index: of the chunk; bit i of it is the value of bits[i].
    """
    removed = sum(1 << bit for bit in bits)
    chosen = sum((index >> i & 1) << bit for i, bit in enumerate(bits))
    return tuple(
        register for register, image in enumerate(gf2.images(layout[REGISTER]))
        if image & removed == chosen
    )

"""Layouts of tiles in shared memory that the copy engine and the tensor cores know.

A tile is cut along one of its axes, the minor one, into panels, and a panel is stored row by row, a
row being swizzle_bytes of the minor axis.  The 16-byte chunks of a row are permuted by the place of
the row, so that a column of chunks lies in different banks.  Without swizzle a tile is one panel.

Worked example: an (8, 64) tile of 16-bit elements in rows of 128 bytes.  Row 3 has its first chunk
of 8 elements at the place of chunk 0 ^ 3:

    >>> swizzled((8, 64), 1, 16, 128)(offset=3 * 64 + 3 * 8)
    {'dim1': 0, 'dim0': 3}

Source: PTX ISA, "Swizzling Modes" of cp.async.bulk.tensor; "Matrix Descriptor" of wgmma.
"""

from __future__ import annotations

from functools import lru_cache

from blocknumba.gpu_layout import gf2
from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.registers import dims_of, log2
from blocknumba.gpu_layout.shared import OFFSET

SWIZZLES = (128, 64, 32, 0)  # bytes of a row, the widest first; 0: rows as long as the minor axis
CHUNK_BYTES = 16  # what a swizzle moves as a whole
PATTERN_ROWS = 8  # after which a swizzle repeats.  Source: PTX ISA, "Swizzling Modes"
_CHUNK_BIT = log2(CHUNK_BYTES)
_ROW_BIT = 7  # chunk numbers are combined with the address bits from here on: 128-byte rows


@lru_cache(maxsize=1024)
def in_panels(
    shape: tuple[int, ...], minor_axis: int, element_bits: int, swizzle_bytes: int
) -> LinearLayout:
    """What swizzled gives, but with the chunks of every row in order.

    This is how a copy engine or a tensor core counts: it permutes the addresses at last.
    """
    assert swizzle_bytes in SWIZZLES, f"a swizzle of {swizzle_bytes} bytes"
    first_bits = {}
    place = 0
    for axis in reversed(range(len(shape))):
        first_bits[axis], place = place, place + log2(shape[axis])

    def bits(axis: int) -> gf2.Matrix:
        return tuple(1 << first_bits[axis] + i for i in range(log2(shape[axis])))

    minor = bits(minor_axis)
    row_bits = log2(swizzle_bytes * 8 // element_bits) if swizzle_bytes else len(minor)
    assert row_bits <= len(minor), f"rows of {swizzle_bytes} bytes in {shape}, {element_bits} bits"
    others = [axis for axis in reversed(range(len(shape))) if axis != minor_axis]
    rows = tuple(column for axis in others for column in bits(axis))
    columns = minor[:row_bits] + rows + minor[row_bits:]
    return LinearLayout(((OFFSET, place),), dims_of(shape), columns)


@lru_cache(maxsize=1024)
def swizzled(
    shape: tuple[int, ...], minor_axis: int, element_bits: int, swizzle_bytes: int
) -> LinearLayout:
    """The layout of a tile in panels of rows, their chunks permuted as addresses say.

    shape: of the tile; rows follow each other in C order of the other axes, panels come last.
    minor_axis: the axis that a row runs along, of at least swizzle_bytes.
    swizzle_bytes: one of SWIZZLES.  The buffer starts at a multiple of 8 * swizzle_bytes.
    """
    layout = in_panels(shape, minor_axis, element_bits, swizzle_bytes)
    if not swizzle_bytes:
        return layout
    columns = _permuted(layout.columns, element_bits, log2(swizzle_bytes // CHUNK_BYTES))
    return LinearLayout(layout.ins, layout.outs, columns)


def _permuted(columns: gf2.Matrix, element_bits: int, chunk_bits: int) -> gf2.Matrix:
    """Columns of offset bits, each bit from _ROW_BIT on also changing a bit of the chunk."""
    element_bit = log2(element_bits // 8)
    chunk, row = _CHUNK_BIT - element_bit, _ROW_BIT - element_bit
    changed = list(columns)
    for i in range(min(chunk_bits, len(columns) - row)):
        changed[row + i] ^= columns[chunk + i]
    return tuple(changed)


def widest_swizzle(extent: int, element_bits: int) -> int:
    """The widest swizzle whose rows an axis of this extent fills; 0 if there is none."""
    size_bytes = extent * element_bits // 8
    return next(swizzle for swizzle in SWIZZLES if swizzle <= size_bytes)


@lru_cache(maxsize=1024)
def recognized(layout: LinearLayout, element_bits: int) -> tuple[int, int] | None:
    """The (minor axis, swizzle bytes) of a layout that swizzled gave; None for other layouts."""
    shape = tuple(1 << bits for _, bits in reversed(layout.outs))
    for minor_axis in reversed(range(len(shape))):
        for swizzle in SWIZZLES:
            fits = swizzle <= shape[minor_axis] * element_bits // 8
            if fits and swizzled(shape, minor_axis, element_bits, swizzle) == layout:
                return minor_axis, swizzle
    return None

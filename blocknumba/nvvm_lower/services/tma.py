"""Boxes of arrays that the copy engine brings to shared memory, and back."""

from __future__ import annotations

import itertools
from functools import lru_cache

from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.registers import log2, shape_of
from blocknumba.gpu_layout.shared import offset_of
from blocknumba.gpu_layout.swizzle import in_panels, recognized
from blocknumba.nvvm_lower.elements import element_bits
from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.nvvm_lower.llvm import I32
from blocknumba.nvvm_lower.ptx import tma as ptx
from blocknumba.nvvm_lower.ptx.tma import Piece
from blocknumba.nvvm_lower.services.shared_memory import address_of
from blocknumba.tile_ir.tensor_map import TensorMap
from blocknumba.tile_ir.types import TileType


def load(emitter: Emitter, map_: str, description: TensorMap, tile: TileType, buffer: str,
         barrier: str, starts: list[str], blocks: int) -> None:
    """Begin to copy a box of an array to the buffer at a byte offset, in so many blocks.

    map_: address of the tensor map.  barrier: byte offset of the mbarrier that counts the bytes.
    """
    row = ptx.load(_pieces_of(description, tile), blocks)
    emitter.assembly(row, address_of(emitter, buffer), map_, address_of(emitter, barrier), *starts)


def store(emitter: Emitter, map_: str, description: TensorMap, tile: TileType, buffer: str,
          starts: list[str]) -> None:
    """The first warp begins to copy the buffer at a byte offset to a box of an array."""
    row = ptx.store(_pieces_of(description, tile))
    is_first = emitter.body.compare("icmp eq", I32, emitter.threads.uniform_warp, "0")
    emitter.assembly(row, address_of(emitter, buffer), map_, emitter.flag(is_first), *starts)


def _pieces_of(description: TensorMap, tile: TileType) -> tuple[Piece, ...]:
    bits = element_bits(tile.dtype)
    found = recognized(tile.layout, bits)
    assert found and found[1] == description.swizzle_bytes, f"{tile} for {description}"
    return pieces(tile.layout, bits, description.box)


@lru_cache(maxsize=256)
def pieces(layout: LinearLayout, bits: int, box: tuple[int, ...]) -> tuple[Piece, ...]:
    """The boxes that fill a buffer, panel after panel.

    layout: one that swizzled gave, of elements of so many bits.  box: extents, innermost first;
    those above 1 belong to the tile's axes above 1: the minor one, then the others from the last.
    """
    shape = shape_of(layout)
    minor_axis, swizzle = recognized(layout, bits)
    others = [axis for axis in reversed(range(len(shape))) if axis != minor_axis]
    axes = [axis for axis in (minor_axis, *others) if shape[axis] > 1]
    places = [place for place, extent in enumerate(box) if extent > 1]
    assert len(axes) == len(places), f"a box {box} for a tile {shape}"
    panels = in_panels(shape, minor_axis, bits, swizzle)
    extents = [box[place] for place in places]
    _check_order(panels, axes, extents)
    steps = [range(0, shape[axis], extent) for axis, extent in zip(axes, extents)]
    made = []
    for index in itertools.product(*reversed(steps)):
        index = index[::-1]
        offset = offset_of(panels, dict(zip(axes, index)))
        starts = dict(zip(places, index))
        made.append(Piece(offset * bits // 8, tuple(starts.get(i, 0) for i in range(len(box)))))
    return tuple(sorted(made, key=lambda piece: piece.offset_bytes))


def _check_order(panels: LinearLayout, axes: list[int], extents: list[int]) -> None:
    """A box lies in the buffer as it lies in the array: its elements one after the other."""
    place = 0
    for axis, extent in zip(axes, extents, strict=True):
        for bit in range(log2(extent)):
            at = offset_of(panels, {axis: 1 << bit})
            assert at == 1 << place + bit, f"axis {axis} of a box {extents} is not in one piece"
        place += log2(extent)

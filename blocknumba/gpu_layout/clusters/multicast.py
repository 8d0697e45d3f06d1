"""Tiles that all blocks of a program need: each block brings a portion of them, to all.

A program may be spread over the blocks of a cluster, which run the same control flow; what differs
among them is computed from cta_rank alone.  Where a tile is fetched from does not depend on
that: it is the same one in every block.

Worked example: 2 blocks need a (64, 128) tile of 16-bit elements, in two panels of 64 columns.
Each brings one of the panels, the one of its rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blocknumba.gpu_layout.layouts.registers import log2
from blocknumba.gpu_layout.layouts.shared import PATTERN_ROWS, recognized, swizzled
from blocknumba.gpu_layout.ops import cta_rank
from blocknumba.gpu_layout.placement.planner import element_bits
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.carried import carried, controls, is_loop
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import EFFECT, OPS, WRITES
from blocknumba.tile_ir.ir.types import TileType, int32


def rank_dependent(fn: Function) -> frozenset[Value]:
    """The values that may not be the same in all blocks of a program.

    Those that are made of cta_rank, and what ops with effects give.
    """
    found: set[Value] = set()
    known = -1
    while len(found) > known:
        known = len(found)
        for op in walk(fn.body):
            found.update(_differing_in(op, found))
    return frozenset(found)


def control_flow_diverges(fn: Function, differ: frozenset[Value]) -> bool:
    """Whether the blocks of a program may run different control flow.

    differ: what rank_dependent gave.
    """
    return any(value in differ for op in walk(fn.body) for value in _deciding(op))


def _deciding(op: Op) -> tuple[Value, ...]:
    """The values that decide how often the regions of an op are run."""
    if is_loop(op):
        return controls(op)
    return op.operands if op.name == "if" else ()


def _differing_in(op: Op, differ: set[Value]) -> Iterable[Value]:
    """Values that an op makes, or hands on, that differ as others do."""
    if op.opdef is cta_rank or op.opdef.has(EFFECT | WRITES):
        return op.results
    if any(value in differ for value in _deciding(op)):
        return (*op.results, *(arg for region in op.regions for arg in region.args))
    if is_loop(op):
        values = carried(op)
        groups = zip(values.args, op.results, values.initial, values.following, strict=True)
        return [value for group in groups if any(each in differ for each in group)
                for value in group[:2]]
    if op.name == "if":
        yielded = (region.terminator.operands for region in op.regions)
        return [result for result, *values in zip(op.results, *yielded, strict=True)
                if any(value in differ for value in values)]
    return op.results if any(value in differ for value in op.operands) else ()


@dataclass(frozen=True, slots=True)
class Shard:
    """What one block brings of a tile: one of as many pieces, one after the other in the buffer.

    blocks: how many there are.  tile: the type of one.
    numbering: per axis of the tile, (first bit, number of bits) of the block's rank that say which
        piece along that axis it is.
    """

    blocks: int
    tile: TileType
    numbering: tuple[tuple[int, int], ...]

    def emit_start(self, builder: Builder, rank: Value, axis: int) -> Value:
        """Where the portion of the block of a rank begins along an axis of the tile, an int32."""
        first, bits = self.numbering[axis]
        numbers = ("shr", first), ("and", (1 << bits) - 1), ("mul", self.tile.shape[axis])
        start = rank
        for name, number in numbers:
            start = builder.emit(OPS[name], start, builder.constant(number, int32))
        return start


def shard_of(tile: TileType, blocks: int) -> Shard | str:
    """How blocks divide a tile in a layout that swizzled gave, or why they cannot.

    Panels are divided first, then rows, of which the swizzle's pattern stays whole.
    """
    bits = element_bits(tile)
    found = recognized(tile.layout, bits)
    if found is None or not found[1]:
        return "the tile does not lie in rows as the copy engine permutes them"
    minor_axis, swizzle = found
    panels = tile.shape[minor_axis] * bits // 8 // swizzle
    extents = {minor_axis: panels}  # from the outermost on: so they follow each other in the buffer
    extents |= {axis: extent for axis, extent in enumerate(tile.shape) if axis != minor_axis}
    numbering, left = {}, log2(blocks)
    for axis, extent in extents.items():
        taken = min(left, log2(extent))
        left -= taken
        numbering[axis] = left, taken
    shape = tuple(extent >> numbering[axis][1] for axis, extent in enumerate(tile.shape))
    size_bytes = tile.size * bits // 8
    if left or size_bytes // blocks % (PATTERN_ROWS * swizzle):
        return f"{blocks} portions of the tile would have fewer than {PATTERN_ROWS} rows each"
    layout = swizzled(shape, minor_axis, bits, swizzle)
    return Shard(blocks, TileType(tile.dtype, shape, layout),
                   tuple(numbering[axis] for axis in range(len(shape))))

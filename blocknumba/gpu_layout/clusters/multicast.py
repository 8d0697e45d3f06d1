"""Multicast: tiles that all blocks of a cluster need are fetched once, each block a shard of them.

A program may be partitioned over the blocks of a cluster.  The blocks run the same control flow,
and the values that differ among them are computed from cta_rank.  A tile whose address does not
depend on the rank is the same in all blocks.

Worked example: 2 blocks need a (64, 128) tile of 16-bit elements, in two panels of 64 columns.
Each fetches the panel of its rank, and TMA writes it to the same offset in both:

    rank 0 fetches columns   0..63  ---> panel 0 in block 0 and in block 1
    rank 1 fetches columns  64..127 ---> panel 1 in block 0 and in block 1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blocknumba.gpu_layout.layouts.registers import log2
from blocknumba.gpu_layout.layouts.shared import PATTERN_ROWS, recognized, swizzled
from blocknumba.gpu_layout.ops import cta_rank
from blocknumba.gpu_layout.placement.planner import element_bits
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import EFFECT, OPS, WRITES
from blocknumba.tile_ir.ir.types import TileType, int32
from blocknumba.tile_ir.ir.uses import carried, controls, is_loop


def rank_dependent(fn: Function) -> frozenset[Value]:
    """The values that may differ among the blocks of a cluster.

    Those are computed from cta_rank, or are results of ops with effects.
    """
    found: set[Value] = set()
    known = -1
    while len(found) > known:
        known = len(found)
        for op in walk(fn.body):
            found.update(_differing_values(op, found))
    return frozenset(found)


def control_flow_diverges(fn: Function, differ: frozenset[Value]) -> bool:
    """Whether the blocks of a cluster may run different control flow.

    differ: the result of rank_dependent.
    """
    return any(value in differ for op in walk(fn.body) for value in _control_operands(op))


def _control_operands(op: Op) -> tuple[Value, ...]:
    """The values that decide which regions of an op run, and how often."""
    if is_loop(op):
        return controls(op)
    return op.operands if op.name == "if" else ()


def _differing_values(op: Op, differ: set[Value]) -> Iterable[Value]:
    """The results and region arguments of an op that differ, given the values that do."""
    if op.opdef is cta_rank or op.opdef.has(EFFECT | WRITES):
        return op.results
    if any(value in differ for value in _control_operands(op)):
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
    """The shard of a tile that one block fetches; shards follow each other in the buffer.

    blocks: the number of shards.  tile: the type of one shard.
    numbering: per axis of the tile, (first bit, number of bits) of the rank that are the index of
        the shard along that axis.
    """

    blocks: int
    tile: TileType
    numbering: tuple[tuple[int, int], ...]

    def emit_start(self, builder: Builder, rank: Value, axis: int) -> Value:
        """Emit the first index along an axis of the shard of a rank, an int32."""
        first, bits = self.numbering[axis]
        numbers = ("shr", first), ("and", (1 << bits) - 1), ("mul", self.tile.shape[axis])
        start = rank
        for name, number in numbers:
            start = builder.emit(OPS[name], start, builder.constant(number, int32))
        return start


def shard_of(tile: TileType, blocks: int) -> Shard | str:
    """The shards of a tile in a layout of `swizzled`, one for each block, or why there are none.

    Panels are divided first, then rows, down to whole repetitions of the swizzle pattern.
    """
    bits = element_bits(tile)
    found = recognized(tile.layout, bits)
    if found is None or not found[1]:
        return "the rows of the tile are not swizzled as TMA does it"
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
        return f"{blocks} shards of the tile would have fewer than {PATTERN_ROWS} rows each"
    layout = swizzled(shape, minor_axis, bits, swizzle)
    return Shard(blocks, TileType(tile.dtype, shape, layout),
                   tuple(numbering[axis] for axis in range(len(shape))))

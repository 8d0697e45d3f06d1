"""Boxes of arrays that TMA moves, through tensor maps that the launch encodes.

    x[m : m + 64, k : k + 128] of float16:    starts (k, m), innermost axis first
    tensor map: box of 64 x 64                swizzle of 128 bytes = 64 elements: two panels
    buffer: panel 0 (64 x 64), panel 1        two copies, counted by one mbarrier
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blocknumba.gpu_layout.clusters.multicast import Shard, shard_of
from blocknumba.gpu_layout.layouts.shared import PATTERN_ROWS, recognized, swizzled
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.planner import element_bits
from blocknumba.tile_ir.analysis.boxes import Box, BoxAxis
from blocknumba.tile_ir.ir.function import Function, Parameter, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.tensor_map import MAX_BOX, MAX_EXTENT, STRIDE_LIMIT_BYTES, TensorMap
from blocknumba.tile_ir.ir.types import PointerType, TileType, int32


@dataclass(frozen=True, slots=True)
class Map:
    """A kernel parameter that describes an array to TMA."""

    argument: str
    type: TileType
    tensor_map: TensorMap

    @property
    def parameter(self) -> Parameter:
        """The kernel's parameter."""
        return Parameter("tensor_map", self.argument, tensor_map=self.tensor_map)

    @property
    def hint(self) -> str:
        """Its name in the text of the kernel."""
        return f"{self.argument}_map"


@dataclass(frozen=True, slots=True)
class BoxCopy:
    """A tile, or a chunk of one, that TMA moves between an array and a buffer.

    axes: of the box, in the order of the map.  buffer: the type of the buffer.
    tile_starts: the first index of the chunk in the whole tile, per axis of the tile.
    shard: the piece of the buffer that this block fetches and multicasts, where the other blocks of
        the cluster fetch the rest; None where this block fetches all of it.
    """

    map: Map
    axes: tuple[BoxAxis, ...]
    buffer: TileType
    tile_starts: tuple[int, ...]
    shard: Shard | None = None

    @property
    def row_bytes(self) -> int:
        """The bytes that lie together in the array."""
        return self.map.tensor_map.box[0] * element_bits(self.buffer) // 8

    @property
    def blocks(self) -> int:
        """The number of blocks that a fetch is multicast to."""
        return 1 if self.shard is None else self.shard.blocks

    def starts(self, rebuilder: Rebuilder, rank: Value | None = None) -> list[Value]:
        """Emit the first index of the box along each axis of the map.

        rank: of this block in its cluster; needed if there is a shard.
        """
        builder, starts = rebuilder.builder, []
        for axis in self.axes:
            start, tile_axis = axis.emit_start(rebuilder), axis.tile_axis
            if tile_axis is not None:
                moved = builder.constant(self.tile_starts[tile_axis], int32)
                start = builder.emit(OPS["add"], start, moved)
            if tile_axis is not None and self.shard is not None:
                moved = self.shard.emit_start(builder, rank, tile_axis)
                start = builder.emit(OPS["add"], start, moved)
            starts.append(start)
        return starts

    def sharded(self, blocks: int) -> BoxCopy | str:
        """The same copy where each of `blocks` fetches one shard; or why they cannot."""
        shard = shard_of(self.buffer, blocks)
        if isinstance(shard, str):
            return shard
        description, extents = self.map.tensor_map, shard.tile.shape
        box = tuple(
            extent if axis.tile_axis is None else min(extent, extents[axis.tile_axis])
            for extent, axis in zip(description.box, self.axes, strict=True))
        smaller = replace(self.map, tensor_map=replace(description, box=box))
        return replace(self, map=smaller, shard=shard)

    def chunks(self, max_bytes: int) -> list[BoxCopy]:
        """The same copy in chunks of whole panels, of at most max_bytes if a panel fits that."""
        tile, bits = self.buffer, element_bits(self.buffer)
        minor_axis, swizzle = recognized(tile.layout, bits)
        panel, extent = swizzle * 8 // bits, tile.shape[minor_axis]
        row_bytes = tile.size // extent * bits // 8
        while extent > panel and row_bytes * extent > max_bytes:
            extent //= 2
        shape = (*tile.shape[:minor_axis], extent, *tile.shape[minor_axis + 1 :])
        layout = swizzled(shape, minor_axis, bits, swizzle)
        return [
            replace(
                self,
                buffer=TileType(tile.dtype, shape, layout),
                tile_starts=tuple(start * (axis == minor_axis) for axis in range(len(shape))),
            )
            for start in range(0, tile.shape[minor_axis], extent)
        ]


@dataclass(frozen=True, slots=True)
class Describable:
    """The arrays that a launch can describe to TMA.

    arguments: the names of mappable arguments.
    numbers_describe: as of LayoutOptions.
    """

    arguments: frozenset[str]
    numbers_describe: bool

    @staticmethod
    def of(fn: Function, options: LayoutOptions) -> Describable:
        """The arrays of a kernel that can be described."""
        arguments = frozenset(p.argument for p in fn.parameters if p.mappable)
        return Describable(arguments, options.numbers_describe)

    def refusal(self, box: Box) -> str | None:
        """Reason why the array of a box cannot be described; None if it can."""
        of_argument = any(number.argument == box.argument for number in box.numbers)
        if of_argument and box.argument not in self.arguments:
            return f"no tensor map can describe {box.argument}: see its address and strides"
        if not box.is_own and not self.numbers_describe:
            listed = ", ".join(sorted(number.spelled for number in box.numbers))
            return f"no tensor map can describe {box.argument} with what is given: {listed}"
        element_bytes = box.base.type.dtype.pointee.bytes
        if any(stride.factor * element_bytes >= STRIDE_LIMIT_BYTES for stride in box.strides) or (
                any(axis.bound and axis.bound.factor > MAX_EXTENT for axis in box.axes)):
            return f"{box.argument} is too large for a tensor map"
        return None


def box_copy(box: Box, buffer: TileType, as_tf32: bool = False) -> BoxCopy | str:
    """The TMA copy of a box to or from a buffer with a layout of `swizzled`, or why there is none.

    as_tf32: TMA rounds float32 elements to tf32, as the tensor cores read them.
    """
    bits = element_bits(buffer)
    found = recognized(buffer.layout, bits)
    if found is None:
        return "the layout of the tile is not one of TMA"
    minor_axis, swizzle = found
    if not swizzle:
        return "rows of the tile are shorter than 32 bytes"
    if buffer.size * bits // 8 % (PATTERN_ROWS * swizzle):
        return f"the tile has fewer than {PATTERN_ROWS} rows"  # copies would be misaligned
    if box.axes[0].tile_axis != minor_axis:
        return "the tile is transposed on its way"
    row = swizzle * 8 // bits
    extents = (row, *(min(axis.extent, MAX_BOX) for axis in box.axes[1:]))
    tensor_map = TensorMap(box.extents, box.strides, extents, swizzle, as_tf32)
    return BoxCopy(
        Map(box.argument, TileType(PointerType(buffer.dtype)), tensor_map),
        box.axes,
        buffer,
        (0,) * len(buffer.shape),
    )

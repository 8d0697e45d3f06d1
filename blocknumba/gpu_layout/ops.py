"""The ops that only the GPU-layout IR has.

At this level the layout in a tile's type says where the tile is:

    inputs of the layout    the tile is in      element at the layout's output is in
    register, lane, warp    registers           register `register` of thread (lane, warp)
    offset                  shared memory       the buffer, `offset` elements after its start
    (no layout: a scalar)   registers           every thread

No register of a thread is a copy of another one of the same thread.
"""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import REGISTER, shape_of
from blocknumba.gpu_layout.layouts.shared import OFFSET, chunk_layout
from blocknumba.gpu_layout.placement.reductions import reduction_plan
from blocknumba.gpu_layout.placement.scans import scan_plan
from blocknumba.tile_ir.analysis.affine import rule as affine_rule
from blocknumba.tile_ir.analysis.axis import AxisInfo
from blocknumba.tile_ir.analysis.axis_rules import Infos, rule as axis_rule
from blocknumba.tile_ir.analysis.polynomial import AffineExpression
from blocknumba.tile_ir.analysis.ranges import RULES, Range
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import EFFECT, PURE, attribute, op
from blocknumba.tile_ir.ir.types import DTYPES, PointerType, TileType, int32

SCOPES = ("program", "warp")


def _require_registers(name: str, x: TileType) -> None:
    require(
        isinstance(x.layout, LinearLayout) and REGISTER in dict(x.layout.ins),
        "{}: given {}, accepted a tile in registers",
        name,
        x,
    )


def _require_shared(name: str, buffer: TileType) -> None:
    require(
        isinstance(buffer.layout, LinearLayout) and OFFSET in dict(buffer.layout.ins),
        "{}: given {}, accepted a tile in shared memory",
        name,
        buffer,
    )


@op(PURE)
def cta_rank(*, blocks) -> TileType:
    """The rank of this block (CTA) in the cluster of a program: scalar int32 below blocks.

    blocks: of a cluster, a power of two above 1, the same wherever a function has this op.  In a
    function without it a program is one block.
    """
    require(blocks > 1 and not blocks & (blocks - 1),
            "cta_rank: given {} blocks, accepted a power of two above 1", blocks)
    return TileType(int32)


RULES.enter(cta_rank, lambda _, op: Range(0, attribute(op, "blocks") - 1))


@op(PURE)
def convert_layout(x, *, layout) -> TileType:
    """x in another register layout.

    layout: the result's layout (a LinearLayout), with as many warps as x's.
    How: movement.plan_move(x.layout, result.layout, bits of the dtype in memory; 64 for
    pointers).  After stage_conversions the plan is never a SharedMove.
    """
    _require_registers("convert_layout", x)
    return TileType(x.dtype, x.shape, layout)


@axis_rule(convert_layout.name)
def _(infos: Infos, op: Op) -> AxisInfo:
    return infos[op.x]


@affine_rule(convert_layout.name)
def _(_: Op, x: AffineExpression) -> AffineExpression:
    return x


@op(PURE)
def take_chunk(x, *, bits, index) -> TileType:
    """The chunk of x of a number: the elements whose packed index has these bits equal to index.

    x: tile in registers; bits: of the packed index, of registers only (see chunks.chunk_bits).
    The result has rank 1, in the layout chunks.chunk_layout(x.layout, bits).
    """
    _require_registers("take_chunk", x)
    return TileType(x.dtype, (x.size >> len(bits),), chunk_layout(x.layout, bits))


@op(PURE)
def join_chunks(*chunks, shape, layout, bits) -> TileType:
    """The tile with these chunks: take_chunk(x, bits, 0), take_chunk(x, bits, 1) and so on.

    shape, layout: of the result.
    """
    for chunk in chunks:
        _require_registers("join_chunks", chunk)
    return TileType(chunks[0].dtype, shape, layout)


@op(EFFECT)
def shared_allocate(*, dtype, shape, layout, copies=1, offset=None) -> TileType:
    """A buffer in shared memory, with undefined contents.

    dtype: its elements' name, or "ptr<name>"; shape: of the tile it can hold, (1,) for a scalar;
    layout: a shared LinearLayout.
    copies: number of buffers one after the other, a ring; `slot` selects one of them.
    offset: byte offset from the start of the program's dynamic shared memory, a multiple of 16;
    None until allocate_shared sets it.
    """
    element = PointerType(DTYPES[dtype[4:-1]]) if dtype.startswith("ptr<") else DTYPES[dtype]
    tile = TileType(element, shape, layout)
    _require_shared("shared_allocate", tile)
    require(
        offset is None or offset % 16 == 0,
        "shared_allocate: offset must be a multiple of 16, got {}",
        offset,
    )
    return tile


@op(EFFECT)
def shared_write(buffer, value) -> None:
    """Write value into buffer.

    buffer: tile in shared memory; value: tile in registers of its dtype and shape, or, for shape
    (1,), a scalar, which thread 0 writes.
    Of the copies of an element only one is written: that which registers.replication(value.layout)
    keeps.  How: shared.access(value.layout, buffer.layout, bits of the dtype in memory), which
    returns groups of registers, each written by one vector instruction.
    """
    _require_shared("shared_write", buffer)
    _require_matching(buffer, value)


@op(EFFECT)
def shared_read(buffer, *, layout) -> TileType:
    """The contents of buffer.

    buffer: tile in shared memory; layout: the result's register LinearLayout, or None for a scalar
    (of a buffer of shape (1,)), which every thread reads.
    How: shared.access(result.layout, buffer.layout, bits of the dtype in memory).
    """
    _require_shared("shared_read", buffer)
    if layout is None:
        require(buffer.shape == (1,), "shared_read: given {}, accepted one element", buffer)
        return TileType(buffer.dtype)
    return TileType(buffer.dtype, buffer.shape, layout)


@op(EFFECT)
def shared_gather(buffer, indices, *, axis) -> TileType:
    """gather(x, indices, axis) of the tile x in a buffer, in the layout of indices.

    buffer: tile in shared memory, in C order; indices: int32, of its shape but for axis; elements
    outside of the axis are 0.
    """
    _require_shared("shared_gather", buffer)
    _require_registers("shared_gather", indices)
    return indices.of(buffer.dtype)


def _require_matching(buffer: TileType, value: TileType) -> None:
    shape = value.shape or (1,)
    require(
        value.dtype == buffer.dtype and shape == buffer.shape,
        "shared_write: given {}, accepted a value of the dtype and shape of {}",
        value,
        buffer,
    )
    if not value.is_scalar:
        _require_registers("shared_write", value)


@op(EFFECT)
def shared_count(buffer, x, mask=None) -> None:
    """Add 1 to buffer[i] for each element i of x, atomically.

    buffer: int32 tile of rank 1 in shared memory, in C order.   x: int32 tile in registers;
    elements that are no index of the buffer change nothing.   mask: of x's layout: which count.
    Of the copies of an element only one counts, as in shared_write.
    """
    _require_shared("shared_count", buffer)
    _require_registers("shared_count", x)


@op(EFFECT)
def barrier(*, scope="program") -> None:
    """A barrier: memory accesses of a scope before it are visible to the whole scope after it.

    scope: "program" (all threads of the program, bar.sync 0) or "warp" (each warp by itself,
    bar.warp.sync of all 32 lanes).
    """
    require(scope in SCOPES, "barrier: scope must be one of {}, got {!r}", SCOPES, scope)


@op(PURE)
def partial_reduce(x, *, axis, kind) -> TileType:
    """The reduction of x within each warp.

    x: tile in registers; axis, kind: as of reduce.  The result has extent W along the axis: one
    partial result for each of the W warps that share it, in reduction_plan(...).partial.
    How: reduction.reduction_plan(x.layout, axis): combine groups of registers, then lanes.
    After lower_reductions the same plan is that of `reduce` and `arg_reduce`, with W = 1 and
    plan.result as the result's layout; sums and products of 16-bit floats are float32 by then.
    """
    _require_registers("partial_reduce", x)
    plan = reduction_plan(x.layout, axis)
    return TileType(x.dtype, _with_extent(x.shape, axis, plan.warps), plan.partial)


@op(PURE)
def partial_arg_reduce(x, *, axis, kind) -> tuple[TileType, TileType]:
    """The arg_reduce of x within each warp: (best values, their int32 index along the axis).

    Shapes and layouts are as of partial_reduce.  The lowest index wins ties; a NaN wins over
    numbers.
    """
    _require_registers("partial_arg_reduce", x)
    plan = reduction_plan(x.layout, axis)
    shape = _with_extent(x.shape, axis, plan.warps)
    return TileType(x.dtype, shape, plan.partial), TileType(int32, shape, plan.partial)


@op(PURE)
def finish_arg_reduce(values, indices, *, axis, kind) -> TileType:
    """The index of the best value along an axis, which is dropped.

    values, indices: results of partial_arg_reduce, gathered so that every thread holds all of the
    axis.
    The lowest index wins ties; a NaN wins over numbers.  The layout is reduction_plan(...).result.
    """
    _require_registers("finish_arg_reduce", values)
    require(
        indices == values.of(int32),
        "finish_arg_reduce: given {} and {}, accepted one layout",
        values,
        indices,
    )
    plan = reduction_plan(values.layout, axis)
    shape = values.shape[:axis] + values.shape[axis + 1 :]
    return TileType(int32, shape, plan.result if shape else None)


@op(PURE)
def partial_scan(*tiles, axis, combination, reverse=False) -> tuple[TileType, ...]:
    """The scan of each chunk by itself: prefixes of each tile, then the totals of each tile.

    tiles, axis, combination, reverse: as of scan.  Totals have one element along axis for each
    chunk, in scan_plan(...).totals.
    After lower_reductions the plan of `scan` has one chunk.
    """
    return tiles + _totals(tiles, axis)


@op(PURE)
def partial_reduce_with(*tiles, axis, combination) -> tuple[TileType, ...]:
    """The elements of each chunk combined: the totals of partial_scan.

    tiles, axis, combination: as of reduce_with, of which the plan has one chunk afterwards.
    """
    return _totals(tiles, axis)


@op(PURE)
def exclusive_scan(*tiles, axis, combination, reverse=False) -> tuple[TileType, ...]:
    """For each element the combination of those before it; the first ones are undefined.

    tiles, axis, combination, reverse: as of scan; a warp holds all of the axis.
    """
    return tiles


@op(PURE)
def finish_scan(*tiles, axis, combination, reverse=False) -> tuple[TileType, ...]:
    """Prefixes of the whole axis, from those of chunks and what comes before each chunk.

    tiles: the prefixes that partial_scan returned, then the exclusive_scan of its totals, in
    their layout; both as many.   axis, combination, reverse: as of scan.
    """
    return tiles[:len(tiles) // 2]


@op(PURE)
def sort_steps(*tiles, wires, steps, layout) -> tuple[TileType, ...]:
    """Steps of a sorting network within warps.

    tiles: as of sort.   wires: the layout whose packed index is the wire that an element is on;
    it has the registers of the tiles.   steps, layout: as of placement.sorts.SortPhase.
    The results are on the wires that are left, in `layout`.
    """
    for tile in tiles:
        _require_registers("sort_steps", tile)
    return tuple(TileType(tile.dtype, shape_of(layout), layout) for tile in tiles)


def _totals(tiles: tuple[TileType, ...], axis: int) -> tuple[TileType, ...]:
    plan = scan_plan(tiles[0].layout, axis)
    return tuple(TileType(tile.dtype, _with_extent(tile.shape, axis, plan.chunks), plan.totals)
                 for tile in tiles)


def _with_extent(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])

"""The ops that only the GPU-layout IR has.

At this level the layout of a tile type says where the tile is.  A layout with inputs register,
lane and warp is a tile in registers: thread (lane, warp) holds in register r the element at
layout(register=r, lane=lane, warp=warp); no register of a thread is a copy of another.  A layout
with the input offset is a tile in shared memory: the element at layout(offset=i) lies i elements
after the start of the buffer.  Scalars have no layout; every thread has them.
"""

from __future__ import annotations

from blocknumba.errors import require
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import REGISTER
from blocknumba.gpu_layout.layouts.shared import OFFSET
from blocknumba.gpu_layout.memory.chunks import chunk_layout
from blocknumba.gpu_layout.placement.reductions import reduction_plan
from blocknumba.tile_ir.analysis.ranges import RULES, Range
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
    """Which of the blocks that a program is spread over this one is: scalar int32 below blocks.

    blocks: a power of two above 1, the same wherever a function has this op.  A function without
    it is one of programs of one block.
    """
    require(blocks > 1 and not blocks & (blocks - 1),
            "cta_rank: given {} blocks, accepted a power of two above 1", blocks)
    return TileType(int32)


RULES[cta_rank.name] = lambda _, op: Range(0, attribute(op, "blocks") - 1)


@op(PURE)
def convert_layout(x, *, layout) -> TileType:
    """x, element for element, in another register layout.

    layout: the result's layout (a LinearLayout), with as many warps as x's.
    How to do it: movement.plan_move(x.layout, result.layout, bits of the dtype in memory; 64 for
    pointers).  After stage_conversions the plan is never a SharedMove.
    """
    _require_registers("convert_layout", x)
    return TileType(x.dtype, x.shape, layout)


@op(PURE)
def take_chunk(x, *, bits, index) -> TileType:
    """The elements of x whose packed index has bits set as the bits of index are.

    x: tile in registers; bits: of the packed index, of registers only (see chunks.chunk_bits).
    The result has rank 1, in the layout chunks.chunk_layout(x.layout, bits).
    """
    _require_registers("take_chunk", x)
    return TileType(x.dtype, (x.size >> len(bits),), chunk_layout(x.layout, bits))


@op(PURE)
def join_chunks(*parts, shape, layout, bits) -> TileType:
    """The tile that has these parts, as take_chunk(x, bits, 0), take_chunk(x, bits, 1) and so on.

    shape, layout: of the result.
    """
    for part in parts:
        _require_registers("join_chunks", part)
    return TileType(parts[0].dtype, shape, layout)


@op(EFFECT)
def shared_allocate(*, dtype, shape, layout, copies=1, offset=None) -> TileType:
    """A buffer in shared memory, with undefined contents.

    dtype: its elements' name, or "ptr<name>"; shape: of the tile it can hold, (1,) for a scalar;
    layout: a shared LinearLayout.
    copies: so many buffers one after the other, a ring; async_ops.slot picks one.
    offset: byte offset from the start of the program's dynamic shared memory, a multiple of 16;
    None until allocate_shared gives it.
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
    Of the copies of an element only the one that registers.replication(value.layout) keeps is
    written.  How: shared.access(value.layout, buffer.layout, bits of the dtype in memory), which
    gives groups of registers to be written by one vector instruction each.
    """
    _require_shared("shared_write", buffer)
    _require_held(buffer, value)


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


def _require_held(buffer: TileType, value: TileType) -> None:
    shape = value.shape or (1,)
    require(
        value.dtype == buffer.dtype and shape == buffer.shape,
        "shared_write: given {}, accepted what {} holds",
        value,
        buffer,
    )
    if not value.is_scalar:
        _require_registers("shared_write", value)


@op(EFFECT)
def barrier(*, scope="program") -> None:
    """What threads of the scope did to shared and global memory before is seen by all of it after.

    scope: "program" (all threads of the program, bar.sync 0) or "warp" (each warp by itself,
    bar.warp.sync of all 32 lanes).
    """
    require(scope in SCOPES, "barrier: scope must be one of {}, got {!r}", SCOPES, scope)


@op(PURE)
def partial_reduce(x, *, axis, kind) -> TileType:
    """The part of `reduce` that needs no other warp.

    x: tile in registers; axis, kind: as of reduce.  The result has the extent W along the axis, one
    partial result per warp that holds part of the axis, in the layout reduction_plan(...).partial.
    How: reduction.reduction_plan(x.layout, axis): combine groups of registers, then lanes.
    After lower_reductions the same plan says how to do `reduce` and `arg_reduce`, whose W then is 1
    and whose result layout is plan.result; sums and products of 16-bit floats are float32 by then.
    """
    _require_registers("partial_reduce", x)
    plan = reduction_plan(x.layout, axis)
    return TileType(x.dtype, _with_extent(x.shape, axis, plan.warps), plan.partial)


@op(PURE)
def partial_arg_reduce(x, *, axis, kind) -> tuple[TileType, TileType]:
    """The part of `arg_reduce` that needs no other warp: (best values, their int32 index on axis).

    Shapes and layouts are as of partial_reduce.  The lowest index wins ties; a NaN wins over
    numbers.
    """
    _require_registers("partial_arg_reduce", x)
    plan = reduction_plan(x.layout, axis)
    shape = _with_extent(x.shape, axis, plan.warps)
    return TileType(x.dtype, shape, plan.partial), TileType(int32, shape, plan.partial)


@op(PURE)
def finish_arg_reduce(values, indices, *, axis, kind) -> TileType:
    """The index that belongs to the best value along an axis, which is dropped.

    values, indices: what partial_arg_reduce gave, gathered so that no warp has part of the axis.
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


def _with_extent(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])

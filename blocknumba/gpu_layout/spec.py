"""The levels of the GPU-layout IR that the verifier checks: mapped, laid out, ready."""

from __future__ import annotations

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import SharedMove, plan_move
from blocknumba.gpu_layout.layouts.registers import REGISTER, dims_of, without_register_copies
from blocknumba.gpu_layout.layouts.shared import OFFSET, in_registers, register_layout
from blocknumba.gpu_layout.memory.allocate_shared import ALLOCATIONS
from blocknumba.gpu_layout.ops import (
    barrier, convert_layout, exclusive_scan, finish_arg_reduce, finish_scan, join_chunks,
    partial_arg_reduce, partial_reduce, partial_reduce_with, partial_scan, shared_allocate,
    shared_count, shared_gather, shared_read, shared_write, sort_steps, take_chunk,
)
from blocknumba.gpu_layout.placement import rules  # noqa: F401  fills the table of placements
from blocknumba.gpu_layout.placement.planner import element_bits
from blocknumba.gpu_layout.placement.reductions import is_separable, reduction_plan
from blocknumba.gpu_layout.placement.rule import placement_of
from blocknumba.gpu_layout.placement.scans import scan_plan
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import CONTROL, TERMINATOR
from blocknumba.tile_ir.ir.verifier import Level
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce
from blocknumba.tile_ir.ops.scan import reduce_with, scan

_OWN = frozenset(
    (
        barrier,
        convert_layout,
        exclusive_scan,
        finish_arg_reduce,
        finish_scan,
        join_chunks,
        partial_arg_reduce,
        partial_reduce,
        partial_reduce_with,
        partial_scan,
        shared_allocate,
        shared_count,
        shared_gather,
        shared_read,
        shared_write,
        sort_steps,
        take_chunk,
    )
)


def _has_layout(value: Value) -> str | None:
    """Check that a tile has a layout of its shape that holds every element."""
    tile = value.type
    if tile.is_scalar:
        return None if tile.layout is None else f"{tile} is a scalar with a layout"
    layout = tile.layout
    if not isinstance(layout, LinearLayout):
        return f"{tile} has no layout"
    if layout.outs != dims_of(tile.shape) or not layout.is_surjective:
        return f"{tile}: the layout is not of that shape"
    names = tuple(name for name, _ in layout.ins)
    if names == (OFFSET,):
        return None if layout.is_injective else f"{tile}: two offsets for one element"
    if REGISTER not in names:
        return f"{tile}: neither in registers nor in shared memory"
    if without_register_copies(layout) != layout:
        return f"{tile}: a thread holds copies"
    return None


def _agrees(op: Op) -> str | None:
    """Check that the layouts of operands and results are those of the op's placement."""
    if op.opdef in _OWN or op.opdef.has(TERMINATOR | CONTROL):
        return None
    tiles = [value for value in op.results + op.operands if in_registers(value.type)]
    if not tiles:
        return None
    placement = placement_of(op)
    of_result = placement.follows_result and op.results and in_registers(op.results[0].type)
    values = op.results if of_result else op.operands
    layout = next(value.type.layout for value in values if in_registers(value.type))
    if not placement.accepts(op, layout):
        return f"cannot be done in {layout}"
    wanted = placement.operands(op, layout)
    if tuple(register_layout(value.type) for value in op.operands) != wanted:
        return f"operands should be in {', '.join(map(str, wanted))}"
    made = placement.result(op, layout) if op.results else None
    if any(register_layout(value.type) != made for value in op.results):
        return f"results should be in {made}"
    return None


def _stays_in_warp(op: Op) -> str | None:
    """Check that the conversions and reductions that are left need no shared memory."""
    if op.opdef is convert_layout:
        source, made = op.x.type, op.result.type
        move = plan_move(source.layout, made.layout, element_bits(made))
        return "needs shared memory" if isinstance(move, SharedMove) else None
    if op.opdef in (reduce, arg_reduce, finish_arg_reduce):
        tile = op.values if op.opdef is finish_arg_reduce else op.x
        layout, axis = tile.type.layout, op.attrs["axis"]
        if not is_separable(layout, axis) or reduction_plan(layout, axis).warps > 1:
            return "crosses warps"
    if op.opdef in (scan, exclusive_scan, reduce_with):
        if scan_plan(op.tiles[0].type.layout, op.attrs["axis"]).chunks > 1:
            return "crosses warps"
    return None


def _has_offset(op: Op) -> str | None:
    if op.opdef in ALLOCATIONS and op.attrs.get("offset") is None:
        return "has no offset"
    return None


def _has_no_registers(value: Value) -> str | None:
    """Check that only buffers have a layout."""
    tile = value.type
    if register_layout(tile) is not None:
        return f"{tile} has registers already"
    return None


MAPPED = Level("mapped to the hardware's ops", of_value=(_has_no_registers,))
LAID_OUT = Level("layout level", of_value=(_has_layout,), of_op=(_agrees,))
READY = Level(
    "layout level, ready to be lowered",
    of_value=(_has_layout,),
    of_op=(_agrees, _stays_in_warp, _has_offset),
)

"""The pass that makes traffic through shared memory explicit."""

from __future__ import annotations

from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.movement import SharedMove, plan_move
from blocknumba.gpu_layout.ops import (
    convert_layout,
    shared_allocate,
    shared_read,
    shared_write,
)
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.planner import element_bits
from blocknumba.gpu_layout.registers import replication
from blocknumba.gpu_layout.shared import OFFSET, best_shared
from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.ir import Function, Op, Value, walk
from blocknumba.tile_ir.opdef import READS, WRITES
from blocknumba.tile_ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.types import TileType

ONE_ELEMENT = LinearLayout(((OFFSET, 0),), (("dim0", 0),), ())


def stage_conversions(fn: Function, _options: LayoutOptions) -> Function:
    """Conversions that need shared memory become an allocation, a write and a read.

    So do the results of atomics, and of volatile loads of a scalar: one thread per element does the
    access, so the threads that hold copies have to be told.

    reads: convert_layout, atomics, loads.  writes: shared_allocate, shared_write, shared_read.
    """
    used = {value for op in walk(fn.body) for value in op.operands}

    def rewrite(rebuilder: Rebuilder, op: Op) -> tuple[Value] | None:
        if op.opdef is convert_layout:
            return _conversion(rebuilder.builder, op, rebuilder[op.operands[0]])
        if op.opdef.has(READS) and op.result in used and _has_one_reader(op):
            (value,) = rebuilder.again(op)
            return (_told_to_all(rebuilder.builder, value),)
        return None

    return rebuild(fn, rewrite, folding=False)


def _conversion(builder: Builder, op: Op, x: Value) -> tuple[Value] | None:
    wanted = op.result.type
    bits = element_bits(wanted)
    move = plan_move(x.type.layout, wanted.layout, bits)
    if not isinstance(move, SharedMove):
        return None
    return (_through_shared(builder, x, move.shared, wanted, op.result.hint),)


def _has_one_reader(op: Op) -> bool:
    """Whether only one of the threads that hold an element of the result gets it from memory."""
    made = op.result.type
    if op.opdef.has(WRITES):
        masks = None if made.is_scalar else replication(made.layout)
        return masks is None or bool(masks.lane or masks.warp)
    return made.is_scalar and bool(op.attrs.get("volatile"))


def _told_to_all(builder: Builder, value: Value) -> Value:
    """value, from the thread that has each element to all that hold it."""
    wanted = value.type
    if wanted.is_scalar:
        return _through_shared(builder, value, ONE_ELEMENT, wanted, value.hint)
    shared = best_shared(wanted.layout, wanted.layout, element_bits(wanted))
    return _through_shared(builder, value, shared, wanted, value.hint)


def _through_shared(
    builder: Builder, value: Value, shared: LinearLayout, wanted: TileType, hint: str
) -> Value:
    buffer = builder.emit(
        shared_allocate, dtype=str(wanted.dtype), shape=wanted.shape or (1,), layout=shared
    )
    builder.emit(shared_write, buffer, value)
    return builder.emit(shared_read, buffer, layout=wanted.layout, hint=hint)

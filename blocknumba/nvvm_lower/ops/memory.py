"""Code of ops on global memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from blocknumba.gpu_layout.registers import contiguous_registers, replication
from blocknumba.nvvm_lower.elements import memory_type, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code, count
from blocknumba.nvvm_lower.llvm import I64
from blocknumba.nvvm_lower.services import global_memory, guarded_access
from blocknumba.nvvm_lower.services.address import element_pointer, moved_pointer
from blocknumba.nvvm_lower.services.global_memory import Hints
from blocknumba.nvvm_lower.services.guarded_access import Widths
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.ops.memory import load, offset, store
from blocknumba.tile_ir.types import int32

VECTOR_BYTES = 16  # PTX ISA, "Vectors": the widest access of one thread


@code(offset)
def _(emitter: Emitter, op: Op, pointers: Registers, counts: Registers) -> Registers:
    body, dtype = emitter.body, op.operands[1].type.dtype
    pointer = register_type(op.result.type.dtype)
    element = memory_type(op.result.type.dtype.pointee)
    pairs = zip(pointers, counts, strict=True)
    if dtype == int32:
        return [moved_pointer(body, emitter.threads, pointer, element, address, distance)
                for address, distance in pairs]
    widen = "sext" if dtype.is_signed else "zext"
    return [element_pointer(body, pointer, element, address,
                            body.convert(widen, memory_type(dtype), distance, I64))
            for address, distance in pairs]


@code(load)
def _(emitter: Emitter, op: Op, pointers: Registers, masks: Registers | None = None,
      others: Registers | None = None) -> Registers:
    dtype, registers = op.result.type.dtype, len(pointers)
    hints = Hints(attribute(op, "cache"), attribute(op, "eviction"), attribute(op, "volatile"))
    masks = masks or global_memory.always(registers)
    if hints.volatile and op.result.type.is_scalar:  # read once; passes tell the other threads
        masks = global_memory.with_predicate(emitter, masks, emitter.threads.is_first)
    others = others or global_memory.zeros(dtype, registers)
    width, guarded = access_width(emitter.axis_infos, op), guarded_width(emitter.axis_infos, op)
    if guarded <= width:
        return global_memory.load(emitter, dtype, pointers, masks, others, width, hints)
    widths = Widths(guarded, width)
    return guarded_access.load(emitter, dtype, pointers, masks, others, widths, hints)


@code(store)
def _(emitter: Emitter, op: Op, pointers: Registers, values: Registers,
      masks: Registers | None = None) -> None:
    masks = global_memory.with_predicate(
        emitter, masks or global_memory.always(len(pointers)), does_work(emitter, op.operands[0]))
    dtype, hints = op.operands[1].type.dtype, Hints(attribute(op, "cache"),
                                                    attribute(op, "eviction"))
    width, guarded = access_width(emitter.axis_infos, op), guarded_width(emitter.axis_infos, op)
    if guarded <= width:
        global_memory.store(emitter, dtype, pointers, values, masks, width, hints)
        return
    widths = Widths(guarded, width)
    guarded_access.store(emitter, dtype, pointers, values, masks, widths, hints)


def does_work(emitter: Emitter, tile: Value) -> str:
    """Whether this thread acts for its copy of a tile's elements, an i1; "" for always.

    Of threads that hold copies one acts; for a scalar, the first of the program.
    """
    if tile.type.is_scalar:
        return emitter.threads.is_first
    return emitter.threads.keeps(replication(tile.type.layout))


def access_width(infos: AxisInfos, op: Op) -> int:
    """How many neighbouring registers a load or store may move at once.

    They are neighbours in the layout and in memory, aligned, under one mask.
    """
    return _width(op, partial(infos.access_width, op.operands[0], mask_of(op)))


def guarded_width(infos: AxisInfos, op: Op) -> int:
    """How many neighbouring registers a load or store may move at once where all masks are true.

    The masks of that many are true up to one of them and false from there on.
    """
    mask = mask_of(op)
    if mask is None or op.attrs.get("volatile"):
        return 1
    return _width(op, partial(infos.guarded_width, op.operands[0], mask))


def mask_of(op: Op) -> Value | None:
    """The mask of a load or store."""
    place = 1 if op.opdef is load else 2
    return op.operands[place] if place < len(op.operands) else None


def _width(op: Op, width_along: Callable[[int], int]) -> int:
    """How many registers one access moves.  width_along: neighbours in memory along an axis."""
    pointer = op.operands[0].type
    if pointer.is_scalar:
        return 1
    widths = (min(contiguous_registers(pointer.layout, axis), width_along(axis))
              for axis in range(len(pointer.shape)))
    limit = max(1, VECTOR_BYTES // pointer.dtype.pointee.bytes)
    return min(max(widths), limit, count(pointer))

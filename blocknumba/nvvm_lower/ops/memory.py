"""Code of ops on global memory."""

from __future__ import annotations

from blocknumba.gpu_layout.registers import contiguous_registers, replication
from blocknumba.nvvm_lower.elements import memory_type, register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code, count
from blocknumba.nvvm_lower.llvm import I64
from blocknumba.nvvm_lower.services import global_memory
from blocknumba.nvvm_lower.services.address import element_pointer, moved_pointer
from blocknumba.nvvm_lower.services.global_memory import Hints
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
    return global_memory.load(emitter, dtype, pointers, masks,
                              others or global_memory.zeros(dtype, registers),
                              access_width(emitter.axis_infos, op), hints)


@code(store)
def _(emitter: Emitter, op: Op, pointers: Registers, values: Registers,
      masks: Registers | None = None) -> None:
    masks = global_memory.with_predicate(
        emitter, masks or global_memory.always(len(pointers)), does_work(emitter, op.operands[0]))
    hints = Hints(attribute(op, "cache"), attribute(op, "eviction"))
    global_memory.store(emitter, op.operands[1].type.dtype, pointers, values, masks,
                        access_width(emitter.axis_infos, op), hints)


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
    pointer = op.operands[0]
    if pointer.type.is_scalar:
        return 1
    place = 1 if op.opdef is load else 2
    mask = op.operands[place] if place < len(op.operands) else None
    widths = (min(contiguous_registers(pointer.type.layout, axis),
                  infos.access_width(pointer, mask, axis))
              for axis in range(len(pointer.type.shape)))
    limit = max(1, VECTOR_BYTES // pointer.type.dtype.pointee.bytes)
    return min(max(widths), limit, count(pointer.type))

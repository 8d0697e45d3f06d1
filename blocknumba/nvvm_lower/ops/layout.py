"""Code of the ops that only the GPU-layout IR has: layouts, shared memory, barriers."""

from __future__ import annotations

from blocknumba.gpu_layout.ops import (
    barrier,
    convert_layout,
    join_parts,
    shared_allocate,
    shared_read,
    shared_write,
    take_part,
)
from blocknumba.gpu_layout.parts import registers_of_part
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.ptx import warp as ptx
from blocknumba.nvvm_lower.services import shared_memory, shared_writes
from blocknumba.nvvm_lower.services.exchange import moved
from blocknumba.tile_ir.ir import Op
from blocknumba.tile_ir.opdef import attribute


@code(convert_layout)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    source, wanted = op.operands[0].type, op.result.type
    return moved(emitter, source.dtype, x, source.layout, wanted.layout)


@code(take_part)
def _(_emitter: Emitter, op: Op, x: Registers) -> Registers:
    layout = op.operands[0].type.layout
    return [x[i] for i in registers_of_part(layout, op.attrs["bits"], op.attrs["index"])]


@code(join_parts)
def _(_emitter: Emitter, op: Op, *parts: Registers) -> Registers:
    layout = op.result.type.layout
    found: dict[int, str] = {}
    for index, part in enumerate(parts):
        registers = registers_of_part(layout, op.attrs["bits"], index)
        found.update(zip(registers, part, strict=True))
    return [found[register] for register in range(len(found))]


@code(shared_allocate)
def _(emitter: Emitter, op: Op) -> Registers:
    """A buffer is its byte offset in shared memory."""
    offset = attribute(op, "offset")
    assert offset is not None, "shared_allocate: no pass gave an offset"
    return [str(offset)]


@code(shared_write)
def _(emitter: Emitter, op: Op, buffer: Registers, value: Registers) -> None:
    held, type_ = op.operands[0].type, op.operands[1].type
    if type_.is_scalar:
        first = emitter.threads.is_first
        shared_memory.write_scalar(emitter, type_.dtype, value[0], buffer[0], first)
        return
    shared_writes.write(emitter, type_.dtype, value, type_.layout, buffer[0], held.layout)


@code(shared_read)
def _(emitter: Emitter, op: Op, buffer: Registers) -> Registers:
    held, type_ = op.operands[0].type, op.result.type
    if type_.is_scalar:
        return [shared_memory.read_scalar(emitter, type_.dtype, buffer[0])]
    return shared_memory.read(emitter, type_.dtype, type_.layout, buffer[0], held.layout)


@code(barrier)
def _(emitter: Emitter, op: Op) -> None:
    if attribute(op, "scope") == "program":
        emitter.barrier()
    else:
        emitter.assembly(ptx.WARP_BARRIER)

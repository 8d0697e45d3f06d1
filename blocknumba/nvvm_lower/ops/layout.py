"""Code of layout conversions and shared memory: by threads, or by stmatrix, matrix by matrix."""

from __future__ import annotations

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import register_count, replication
from blocknumba.gpu_layout.layouts.shared import (
    LdmatrixAccess, access, ldmatrix_access, registers_of_chunk,
)
from blocknumba.gpu_layout.ops import (
    barrier, convert_layout, join_chunks, shared_allocate, shared_read, shared_write, take_chunk,
)
from blocknumba.nvvm_lower.elements import element_bits
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.ptx import matrix as matrix_ptx, warp as warp_ptx
from blocknumba.nvvm_lower.services import shared_memory
from blocknumba.nvvm_lower.services.address import index_at
from blocknumba.nvvm_lower.services.shared_memory import element_address, moved
from blocknumba.nvvm_lower.services.words import Dtype, pack
from blocknumba.nvvm_lower.target import Capability
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute

MATRIX_ELEMENT_BITS = 16  # PTX ISA, "stmatrix": .b16


def write(emitter: Emitter, dtype: Dtype, values: Registers, layout: LinearLayout,
          buffer: str, shared: LinearLayout) -> None:
    """Write a tile that has a register layout into the buffer at a byte offset.

    By stmatrix, where the target has it and it takes fewer instructions.
    """
    plan = _matrices(emitter, dtype, layout, shared)
    if plan is None:
        shared_memory.write(emitter, dtype, values, layout, buffer, shared)
        return
    row = matrix_ptx.store(plan.matrices, plan.transposed)
    for number, first in enumerate(range(0, len(values), plan.elements)):
        index = index_at(emitter.body, emitter.threads, plan.addresses, number)
        words = pack(emitter, dtype, values[first:first + plan.elements])
        emitter.assembly(row, element_address(emitter, buffer, index, dtype), *words)


def _matrices(emitter: Emitter, dtype: Dtype, layout: LinearLayout,
              shared: LinearLayout) -> LdmatrixAccess | None:
    """The plan by which stmatrix writes a tile; None if it cannot, or is not faster."""
    bits = element_bits(dtype)
    if bits != MATRIX_ELEMENT_BITS or not emitter.target.has(Capability.STMATRIX):
        return None
    plan = ldmatrix_access(layout, shared, bits)
    if plan is None or replication(layout):
        return None
    by_threads = access(layout, shared, bits)
    instructions = register_count(layout) // plan.elements
    wavefronts = instructions * plan.matrices * plan.degree
    worth = instructions < len(by_threads.groups) and wavefronts <= by_threads.wavefronts
    return plan if worth else None


@code(convert_layout)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    source, wanted = op.x.type, op.result.type
    return moved(emitter, source.dtype, x, source.layout, wanted.layout)


@code(take_chunk)
def _(_emitter: Emitter, op: Op, x: Registers) -> Registers:
    layout = op.x.type.layout
    return [x[i] for i in registers_of_chunk(layout, op.attrs["bits"], op.attrs["index"])]


@code(join_chunks)
def _(_emitter: Emitter, op: Op, *chunks: Registers) -> Registers:
    layout = op.result.type.layout
    found: dict[int, str] = {}
    for index, chunk in enumerate(chunks):
        registers = registers_of_chunk(layout, op.attrs["bits"], index)
        found.update(zip(registers, chunk, strict=True))
    return [found[register] for register in range(len(found))]


@code(shared_allocate)
def _(emitter: Emitter, op: Op) -> Registers:
    """A buffer is its byte offset in shared memory."""
    offset = attribute(op, "offset")
    assert offset is not None, "shared_allocate: no pass gave an offset"
    return [str(offset)]


@code(shared_write)
def _(emitter: Emitter, op: Op, buffer: Registers, value: Registers) -> None:
    held, type_ = op.buffer.type, op.value.type
    if type_.is_scalar:
        first = emitter.threads.is_first
        shared_memory.write_scalar(emitter, type_.dtype, value[0], buffer[0], first)
        return
    write(emitter, type_.dtype, value, type_.layout, buffer[0], held.layout)


@code(shared_read)
def _(emitter: Emitter, op: Op, buffer: Registers) -> Registers:
    held, type_ = op.buffer.type, op.result.type
    if type_.is_scalar:
        return [shared_memory.read_scalar(emitter, type_.dtype, buffer[0])]
    return shared_memory.read(emitter, type_.dtype, type_.layout, buffer[0], held.layout)


@code(barrier)
def _(emitter: Emitter, op: Op) -> None:
    if attribute(op, "scope") == "program":
        emitter.barrier()
    else:
        emitter.assembly(warp_ptx.WARP_BARRIER)

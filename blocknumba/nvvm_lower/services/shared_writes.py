"""Writing tiles to shared memory: by every thread for itself, or by warps, matrix by matrix."""

from __future__ import annotations

from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.registers import register_count, replication
from blocknumba.gpu_layout.shared import MatrixAccess, access, matrix_access
from blocknumba.nvvm_lower.elements import element_bits
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.ptx import matrix as ptx
from blocknumba.nvvm_lower.services import shared_memory
from blocknumba.nvvm_lower.services.address import index_at
from blocknumba.nvvm_lower.services.shared_memory import element_address
from blocknumba.nvvm_lower.services.words import Dtype, pack
from blocknumba.nvvm_lower.target import Capability

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
    row = ptx.store(plan.matrices, plan.transposed)
    for number, first in enumerate(range(0, len(values), plan.elements)):
        index = index_at(emitter.body, emitter.threads, plan.addresses, number)
        words = pack(emitter, dtype, values[first:first + plan.elements])
        emitter.assembly(row, element_address(emitter, buffer, index, dtype), *words)


def _matrices(emitter: Emitter, dtype: Dtype, layout: LinearLayout,
              shared: LinearLayout) -> MatrixAccess | None:
    """How stmatrix writes a tile; None if it cannot, or is not worth it."""
    bits = element_bits(dtype)
    if bits != MATRIX_ELEMENT_BITS or not emitter.target.has(Capability.STMATRIX):
        return None
    plan = matrix_access(layout, shared, bits)
    if plan is None or replication(layout):
        return None
    by_threads = access(layout, shared, bits)
    instructions = register_count(layout) // plan.elements
    wavefronts = instructions * plan.matrices * plan.degree
    worth = instructions < len(by_threads.groups) and wavefronts <= by_threads.wavefronts
    return plan if worth else None

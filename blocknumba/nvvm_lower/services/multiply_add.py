"""Products of tiles by multiplications and additions of each thread."""

from __future__ import annotations

from blocknumba.gpu_layout.multiply_add import MultiplyAddPlan
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.services.floats import fused_multiply_add
from blocknumba.nvvm_lower.services.shared_tile import Tile
from blocknumba.tile_ir.types import DType


def multiply_add(emitter: Emitter, plan: MultiplyAddPlan, dtype: DType, a: Tile,
                 b: Tile, sums: Registers) -> Registers:
    """sums + a @ b: for every index along the depth the outer product of a column and a row."""
    for index in range(plan.depth):
        column = {register: a.element(register + index) for register in sorted(set(plan.a_of))}
        row = {register: b.element(register + index) for register in sorted(set(plan.b_of))}
        sums = [fused_multiply_add(emitter, dtype, column[i], row[j], value)
                for i, j, value in zip(plan.a_of, plan.b_of, sums, strict=True)]
    return sums

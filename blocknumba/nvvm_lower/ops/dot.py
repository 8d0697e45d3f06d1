"""Code of products of tiles."""

from __future__ import annotations

from blocknumba.gpu_layout.dot_ops import fma_dot, mma, plan_of
from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.mma import Instruction, Pieces
from blocknumba.gpu_layout.shared import is_buffer
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.services.mma_sync import Operand, Sums, multiply
from blocknumba.nvvm_lower.services.multiply_add import multiply_add
from blocknumba.nvvm_lower.services.shared_tile import RegisterTile, SharedTile, tile_in_shared
from blocknumba.tile_ir.ir import Op
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.types import TileType


@code(mma)
def _(emitter: Emitter, op: Op, a: Registers, b: Registers, acc: Registers) -> Registers:
    plan, types = plan_of(op), [value.type for value in op.operands]
    precision = attribute(op, "precision")
    first, second = (
        _operand(emitter, pieces, type_, values, precision)
        for pieces, type_, values in zip((plan.a, plan.b), types, (a, b)))
    if attribute(op, "swapped"):
        first, second = second, first
    sums = Sums(emitter, plan.accumulator, types[2].dtype, acc)
    multiply(emitter, Instruction.parse(op.attrs["instruction"]), precision, first, second, sums)
    return sums.registers()


def _operand(emitter: Emitter, pieces: Pieces, type_: TileType, values: Registers,
             precision: str) -> Operand:
    """An operand in registers or, its only value being the offset of a buffer, in shared memory."""
    if is_buffer(type_):
        tile = tile_in_shared(emitter, type_.dtype, pieces.layout, values[0], type_.layout)
    else:
        tile = RegisterTile(emitter, type_.dtype, values)
    return Operand(emitter, pieces, type_.dtype, tile, precision)


@code(fma_dot)
def _(emitter: Emitter, op: Op, a: Registers, b: Registers, acc: Registers) -> Registers:
    plan, dtype = plan_of(op), op.result.type.dtype

    def tile(place: int, layout: LinearLayout, buffer: Registers) -> SharedTile:
        shared = op.operands[place].type.layout
        return SharedTile(emitter, dtype, layout, buffer[0], shared)

    return multiply_add(emitter, plan, dtype, tile(0, plan.a, a), tile(1, plan.b, b), acc)

"""Code of the ops that make values from nothing."""

from __future__ import annotations

from blocknumba.nvvm_lower.elements import literal, zero
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code, count
from blocknumba.nvvm_lower.llvm import UNDEF
from blocknumba.nvvm_lower.services.address import indices, special_register
from blocknumba.tile_ir.ir import Op
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.ops.create import arange, constant, num_programs, program_id, undefined

_GRID_AXES = "xyz"


@code(constant)
def _(emitter: Emitter, op: Op) -> Registers:
    return [literal(op.attrs["value"], op.result.type.dtype)]


@code(undefined)
def _(emitter: Emitter, op: Op) -> Registers:
    type_ = op.result.type
    return [zero(type_.dtype) if attribute(op, "zero") else UNDEF] * count(type_)


@code(arange)
def _(emitter: Emitter, op: Op) -> Registers:
    return indices(emitter.body, emitter.threads, op.result.type.layout, op.attrs["start"])


@code(program_id)
def _(emitter: Emitter, op: Op) -> Registers:
    return [special_register(emitter.body, f"ctaid.{_GRID_AXES[op.attrs['axis']]}")]


@code(num_programs)
def _(emitter: Emitter, op: Op) -> Registers:
    return [special_register(emitter.body, f"nctaid.{_GRID_AXES[op.attrs['axis']]}")]

"""Code of constants, ranges and program ids."""

from __future__ import annotations

from blocknumba.gpu_layout.layouts.registers import log2
from blocknumba.gpu_layout.ops import cta_rank
from blocknumba.nvvm_lower.elements import literal, zero
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code, count
from blocknumba.nvvm_lower.llvm import I32, UNDEF
from blocknumba.nvvm_lower.ptx import cluster
from blocknumba.nvvm_lower.services.address import GRID_AXES, indices, special_register
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ops.create import arange, constant, num_programs, program_id, undefined


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
    axis = op.attrs["axis"]
    return [_in_programs(emitter, emitter.block_id(axis), axis)]


@code(num_programs)
def _(emitter: Emitter, op: Op) -> Registers:
    axis = op.attrs["axis"]
    number = special_register(emitter.body, f"nctaid.{GRID_AXES[axis]}")
    return [_in_programs(emitter, number, axis)]


@code(cta_rank)
def _(emitter: Emitter, _op: Op) -> Registers:
    return list(emitter.assembly(cluster.RANK))


def _in_programs(emitter: Emitter, number: str, axis: int) -> str:
    """An index or number of blocks along a grid axis, in programs; clusters lie along x."""
    if axis or emitter.blocks == 1:
        return number
    return emitter.body.binary("lshr", I32, number, str(log2(emitter.blocks)))

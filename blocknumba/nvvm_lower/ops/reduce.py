"""Code of reductions; what lies in other warps was gathered by the passes before."""

from __future__ import annotations

from blocknumba.gpu_layout.ops import finish_arg_reduce, partial_arg_reduce, partial_reduce
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.services.address import coordinates
from blocknumba.nvvm_lower.services.reduction import arg_reduced, reduced
from blocknumba.tile_ir.ir import Op
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce


@code(reduce, partial_reduce)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    type_ = op.operands[0].type
    return reduced(emitter, type_.dtype, x, type_.layout, op.attrs["axis"], op.attrs["kind"])


@code(partial_arg_reduce)
def _(emitter: Emitter, op: Op, x: Registers) -> tuple[Registers, Registers]:
    type_, axis = op.operands[0].type, op.attrs["axis"]
    places = coordinates(emitter.body, emitter.threads, type_.layout, axis)
    return arg_reduced(emitter, type_.dtype, x, places, type_.layout, axis, op.attrs["kind"])


@code(arg_reduce)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    type_, axis = op.operands[0].type, op.attrs["axis"]
    places = coordinates(emitter.body, emitter.threads, type_.layout, axis)
    return arg_reduced(emitter, type_.dtype, x, places, type_.layout, axis, op.attrs["kind"])[1]


@code(finish_arg_reduce)
def _(emitter: Emitter, op: Op, values: Registers, places: Registers) -> Registers:
    type_ = op.operands[0].type
    return arg_reduced(emitter, type_.dtype, values, places, type_.layout, op.attrs["axis"],
                       op.attrs["kind"])[1]

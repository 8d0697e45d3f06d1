"""Code of casts and bitcasts."""

from __future__ import annotations

from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.services import casts
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ops.cast import bitcast, cast


@code(cast)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    source, to = op.x.type.dtype, op.result.type.dtype
    rounding = attribute(op, "rounding")
    return casts.cast_all(emitter, x, source, to, rounding)


@code(bitcast)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    source, to = op.x.type.dtype, op.result.type.dtype
    return [casts.bitcast(emitter, value, source, to) for value in x]

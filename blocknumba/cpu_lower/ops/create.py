"""Code of ops that make values from nothing."""

from __future__ import annotations

from blocknumba.cpu_lower.elements import Lanes, literal, uniform
from blocknumba.cpu_lower.emitter import Access, Emitter, element
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ops import create


@element(create.constant)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    return uniform(literal(op.attrs["value"], op.result.type.dtype))


@element(create.undefined)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    return uniform(literal(0, op.result.type.dtype))


@element(create.arange)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    (index,) = access[1]
    start = op.attrs["start"]
    return index if not start else emitter.index_sum(index, uniform(start))


@element(create.program_id)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    return uniform(f"%program{op.attrs['axis']}")


@element(create.num_programs)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    return uniform(f"%grid{op.attrs['axis']}")

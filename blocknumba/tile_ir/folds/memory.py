"""Folds of accesses to memory whose masks or offsets are known."""

from __future__ import annotations

from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.folds.patterns import (
    filled,
    made_by,
    number,
    same_number,
    zero_of,
)
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.ops import atomic
from blocknumba.tile_ir.ops import memory as family


@family.offset.fold
def _(builder: Builder, op: Op) -> Value | None:
    """By 0 elements; by constants, one after the other."""
    pointer, count = op.operands
    given, inner = number(count), made_by(pointer, "offset")
    if given == 0:
        return pointer
    before = number(inner.operands[1]) if given is not None and inner else None
    if before is None:
        return None
    dtype = count.type.dtype
    if not dtype.minimum <= before + given <= dtype.maximum:
        return None
    return builder.emit(op.opdef, inner.operands[0], filled(builder, count.type, before + given))


@family.load.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A mask that is always true is none; one that is never true gives `other`; 0 is implied."""
    if len(op.operands) == 1:
        return None
    pointer, mask, *other = op.operands
    known = number(mask)
    if known is True:
        return builder.emit(op.opdef, pointer, **op.attrs)
    zero = zero_of(op.result.type.dtype)
    if known is False and not attribute(op, "volatile"):
        return other[0] if other else filled(builder, op.result.type, zero)
    if other and same_number(number(other[0]), zero):
        return builder.emit(op.opdef, pointer, mask, **op.attrs)
    return None


@family.store.fold
def _(builder: Builder, op: Op) -> tuple[()] | None:
    """A mask that is always true is none; where it is never true nothing is written."""
    if len(op.operands) == 2:
        return None
    pointer, value, mask = op.operands
    known = number(mask)
    if known is True:
        builder.emit(op.opdef, pointer, value, **op.attrs)
    return None if known is None else ()


@atomic.atomic_rmw.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A mask that is always true is none; where it is never true nothing is touched."""
    if len(op.operands) == 2:
        return None
    pointer, value, mask = op.operands
    known = number(mask)
    if known is None:
        return None
    if known:
        return builder.emit(op.opdef, pointer, value, **op.attrs)
    return filled(builder, op.result.type, zero_of(op.result.type.dtype))

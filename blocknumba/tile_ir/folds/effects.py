"""Folds of control flow, dots and accesses whose conditions, bounds or masks are known."""

from __future__ import annotations

from blocknumba.tile_ir.folds.patterns import (
    filled, is_counted, made_by, number, same_number, zero_of,
)
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import OPS, attribute
from blocknumba.tile_ir.ops import control, debug, dot as dot_ops, memory, memory as memory_ops


@control.if_.fold
def _(builder: Builder, op: Op) -> tuple[Value, ...] | None:
    """An `if` whose condition is known becomes the ops of the chosen region."""
    known = number(op.condition)
    if known is None:
        return None
    region = op.regions[0 if known else 1]
    for inner in region.ops[:-1]:
        builder.append(inner)
    return region.terminator.operands


@control.if_.fold
def _(builder: Builder, op: Op) -> tuple[Value, ...] | None:
    """An `if` whose regions hold no ops becomes selects of the scalars that they yield."""
    if any(len(region.ops) > 1 for region in op.regions):
        return None
    condition = op.condition
    yielded = list(zip(*(region.terminator.operands for region in op.regions), strict=True))
    if any(x is not y and not x.type.is_scalar for x, y in yielded):
        return None
    return tuple(x if x is y else builder.emit(OPS["select"], condition, x, y)
                 for x, y in yielded)


@control.for_.fold
def _(_: Builder, op: Op) -> tuple[Value, ...] | None:
    """A `for` without iterations returns its initial values."""
    bounds = [number(value) for value in (op.start, op.stop, op.step)]
    if None in bounds or bounds[2] == 0 or len(range(*bounds)) > 0:
        return None
    return op.initial


@debug.assume.fold
def _(_: Builder, op: Op) -> tuple[()] | None:
    """An assumption that is known to hold is dropped."""
    return () if number(op.condition) is True else None


@debug.assert_.fold
def _(_: Builder, op: Op) -> tuple[()] | None:
    """An assertion that is known to hold is dropped."""
    return () if number(op.condition) is True else None


@dot_ops.dot.fold
def _(_: Builder, op: Op) -> Value | None:
    """A dot of integers with zeros is its accumulator; of floats, 0 times infinity is NaN."""
    a, b, acc = op.a, op.b, op.acc
    return acc if is_counted(a.type) and 0 in (number(a), number(b)) else None


@memory_ops.offset.fold
def _(builder: Builder, op: Op) -> Value | None:
    """By 0 elements; by constants, one after the other."""
    pointer, count = op.pointer, op.count
    given, inner = number(count), made_by(pointer, "offset")
    if given == 0:
        return pointer
    before = number(inner.count) if given is not None and inner else None
    if before is None:
        return None
    dtype = count.type.dtype
    if not dtype.minimum <= before + given <= dtype.maximum:
        return None
    return builder.emit(op.opdef, inner.pointer, filled(builder, count.type, before + given))


@memory_ops.load.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A true mask is dropped; a load with a false one is `other`; an `other` of 0 is implied."""
    if op.mask is None:
        return None
    known = number(op.mask)
    if known is True:
        return builder.emit(op.opdef, op.pointer, **op.attrs)
    zero = zero_of(op.result.type.dtype)
    if known is False and not attribute(op, "volatile"):
        return filled(builder, op.result.type, zero) if op.other is None else op.other
    if op.other is not None and same_number(number(op.other), zero):
        return builder.emit(op.opdef, op.pointer, op.mask, **op.attrs)
    return None


@memory_ops.store.fold
def _(builder: Builder, op: Op) -> tuple[()] | None:
    """A mask that is always true is none; where it is never true nothing is written."""
    if op.mask is None:
        return None
    known = number(op.mask)
    if known is True:
        builder.emit(op.opdef, op.pointer, op.value, **op.attrs)
    return None if known is None else ()


@memory.atomic_rmw.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A mask that is always true is none; where it is never true nothing is touched."""
    known = None if op.mask is None else number(op.mask)
    if known is None:
        return None
    if known:
        return builder.emit(op.opdef, op.pointer, op.value, **op.attrs)
    return filled(builder, op.result.type, zero_of(op.result.type.dtype))

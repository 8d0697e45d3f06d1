"""Folds of control flow whose conditions or bounds are known."""

from __future__ import annotations

from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.folds.patterns import number
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import OPS
from blocknumba.tile_ir.ops import control, debug


@control.if_.fold
def _(builder: Builder, op: Op) -> tuple[Value, ...] | None:
    """The region that a known condition chooses, in place."""
    known = number(op.operands[0])
    if known is None:
        return None
    region = op.regions[0 if known else 1]
    for inner in region.ops[:-1]:
        builder.append(inner)
    return region.terminator.operands


@control.if_.fold
def _(builder: Builder, op: Op) -> tuple[Value, ...] | None:
    """Regions without ops: nothing, values of which both regions yield the same, or choices."""
    if any(len(region.ops) > 1 for region in op.regions):
        return None
    (condition,) = op.operands
    yielded = list(zip(*(region.terminator.operands for region in op.regions), strict=True))
    if any(x is not y and not x.type.is_scalar for x, y in yielded):
        return None
    return tuple(x if x is y else builder.emit(OPS["select"], condition, x, y)
                 for x, y in yielded)


@control.for_.fold
def _(_: Builder, op: Op) -> tuple[Value, ...] | None:
    """No round at all: the initial values."""
    bounds = [number(value) for value in op.operands[:3]]
    if None in bounds or bounds[2] == 0 or len(range(*bounds)) > 0:
        return None
    return op.operands[3:]


@debug.assume.fold
def _(_: Builder, op: Op) -> tuple[()] | None:
    """What is known to hold need not be promised."""
    return () if number(op.operands[0]) is True else None


@debug.assert_.fold
def _(_: Builder, op: Op) -> tuple[()] | None:
    """What is known to hold need not be checked."""
    return () if number(op.operands[0]) is True else None

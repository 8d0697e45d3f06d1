"""Folds of comparisons and of choices."""

from __future__ import annotations

from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.folds.patterns import filled, is_counted, made_by, number
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import OPS
from blocknumba.tile_ir.ops import elementwise
from blocknumba.tile_ir.types import BOOL

_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_OF_EQUAL = {"eq": True, "le": True, "ge": True, "ne": False, "lt": False, "gt": False}


def constant_right(builder: Builder, op: Op) -> Value | None:
    """2 < x is x > 2."""
    x, y = op.operands
    if number(x) is None or number(y) is not None:
        return None
    return builder.emit(OPS[_MIRRORED[op.name]], y, x)


def of_equal(builder: Builder, op: Op) -> Value | None:
    """x < x is false, x <= x is true: of integers, as NaN is not equal to itself."""
    x, y = op.operands
    if x is not y or not is_counted(x.type):
        return None
    return filled(builder, op.result.type, _OF_EQUAL[op.name])


def half_open(builder: Builder, op: Op) -> Value | None:
    """x <= 7 is x < 8 and x > 7 is x >= 8: one form of each bound of an integer."""
    x, y = op.operands
    bound = number(y)
    if bound is None or not x.type.dtype.is_integer or bound == x.type.dtype.maximum:
        return None
    opdef = elementwise.lt if op.name == "le" else elementwise.ge
    return builder.emit(opdef, x, filled(builder, x.type, bound + 1))


def of_bool(builder: Builder, op: Op) -> Value | None:
    """x == True is x, x == False is not x; a bool taken as a number compares with 0 as itself."""
    x, y = op.operands
    given = number(y)
    if given is None or given not in (0, 1):
        return None
    source = x
    if x.type.dtype.kind != BOOL:
        cast = made_by(x, "cast")
        if cast is None or cast.operands[0].type.dtype.kind != BOOL:
            return None
        source = cast.operands[0]
    holds = bool(given) == (op.name == "eq")
    return source if holds else builder.emit(elementwise.invert, source)


for _name in _MIRRORED:
    OPS[_name].fold(constant_right)
    OPS[_name].fold(of_equal)
for _name in ("le", "gt"):
    OPS[_name].fold(half_open)
for _name in ("eq", "ne"):
    OPS[_name].fold(of_bool)


@elementwise.invert.fold
def _(builder: Builder, op: Op) -> Value | None:
    """not (x < y) is x >= y, of integers; of floats only == and != have an opposite."""
    inner = op.operands[0].owner
    if inner is None or inner.name not in _OPPOSITE or op.result.type.dtype.kind != BOOL:
        return None
    if inner.name not in ("eq", "ne") and not is_counted(inner.operands[0].type):
        return None
    return builder.emit(OPS[_OPPOSITE[inner.name]], *inner.operands)


@elementwise.select.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A choice that is known, or between equals, or between True and False."""
    condition, x, y = op.operands
    known = number(condition)
    if known is not None or x is y:
        return y if known is False else x
    if op.result.type.is_pointer or op.result.type.dtype.kind != BOOL:
        return None
    match number(x), number(y):
        case (True, False):
            return condition
        case (False, True):
            return builder.emit(elementwise.invert, condition)
    return None


@elementwise.select.fold
def _(builder: Builder, op: Op) -> Value | None:
    """where(not c, x, y) is where(c, y, x); a choice within a choice on one condition is made."""
    condition, x, y = op.operands
    if inverted := made_by(condition, "invert"):
        return builder.emit(op.opdef, inverted.operands[0], y, x)
    inner_x, inner_y = made_by(x, "select"), made_by(y, "select")
    if inner_x and inner_x.operands[0] is condition:
        x = inner_x.operands[1]
    if inner_y and inner_y.operands[0] is condition:
        y = inner_y.operands[2]
    if (x, y) == op.operands[1:]:
        return None
    return builder.emit(op.opdef, condition, x, y)

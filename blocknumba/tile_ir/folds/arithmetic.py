"""Folds of arithmetic and of operations on bits."""

from __future__ import annotations

import math
from collections.abc import Callable

from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.folds.patterns import (
    Number,
    filled,
    is_counted,
    made_by,
    number,
    same_number,
    wrapped,
)
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import OPS
from blocknumba.tile_ir.ops import elementwise
from blocknumba.tile_ir.types import DType, bfloat16, float16, float32, float64

ALL_ONES = "all ones"

# 2**-k is a normal number for k up to this: IEEE 754
_NORMAL_EXPONENT = {float16: 14, bfloat16: 126, float32: 126, float64: 1022}

# x op number is x; floats have -0.0 in mind: 0.0 + -0.0 is 0.0, and -0.0 - 0.0 is -0.0
_INTEGER_IDENTITIES = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1, "shl": 0, "shr": 0, "or": 0,
                       "xor": 0, "and": ALL_ONES, "power": 1}
_FLOAT_IDENTITIES = {"add": -0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}
# x op number is the second number, whatever x is
_ABSORBING = {"mul": (0, 0), "and": (0, 0), "or": (ALL_ONES, ALL_ONES), "mod": (1, 0),
              "power": (0, 1)}
# x op x, of integers and bools
_OF_EQUAL = {"sub": 0, "xor": 0, "and": None, "or": None, "minimum": None, "maximum": None}

_ASSOCIATIVE: dict[str, Callable[[int, int], int]] = {
    "add": int.__add__, "mul": int.__mul__, "and": int.__and__, "or": int.__or__,
    "xor": int.__xor__, "minimum": min, "maximum": max}


def _constant(spelling: Number | str, dtype: DType) -> Number:
    """A number of a table, as a value of a dtype."""
    return wrapped(dtype, -1 if spelling is ALL_ONES else spelling)


def constant_right(builder: Builder, op: Op) -> Value | None:
    """A constant operand of a commutative op comes second, where other folds look for it."""
    x, y = op.operands
    if number(x) is None or number(y) is not None:
        return None
    return builder.emit(op.opdef, y, x)


def identity(builder: Builder, op: Op) -> Value | None:
    """x + 0, x * 1 and their like are x; x * 0 and its like are constants."""
    x, y = op.operands
    dtype, given = op.result.type.dtype, number(y)
    if given is None:
        return None
    if dtype.is_float:
        neutral = _FLOAT_IDENTITIES.get(op.name)
        return x if neutral is not None and same_number(given, neutral) else None
    neutral = _INTEGER_IDENTITIES.get(op.name)
    if neutral is not None and given == _constant(neutral, dtype):
        return x
    if op.name in _ABSORBING:
        absorbing, result = (_constant(spelling, dtype) for spelling in _ABSORBING[op.name])
        if given == absorbing:
            return filled(builder, op.result.type, result)
    return None


def of_equal(builder: Builder, op: Op) -> Value | None:
    """x - x is 0, x & x is x."""
    x, y = op.operands
    if x is not y or not is_counted(op.result.type):
        return None
    result = _OF_EQUAL[op.name]
    return x if result is None else filled(builder, op.result.type,
                                           wrapped(op.result.type.dtype, result))


def associate(builder: Builder, op: Op) -> Value | None:
    """(x op 2) op 3 is x op (2 op 3), of integers and bools."""
    inner = made_by(op.operands[0], op.name)
    if inner is None or not is_counted(op.result.type):
        return None
    first, second = number(inner.operands[1]), number(op.operands[1])
    if first is None or second is None:
        return None
    combined = wrapped(op.result.type.dtype, _ASSOCIATIVE[op.name](int(first), int(second)))
    return builder.emit(op.opdef, inner.operands[0], filled(builder, op.result.type, combined))


for _name in ("add", "mul", "and", "or", "xor"):
    OPS[_name].fold(constant_right)
for _name in sorted(_INTEGER_IDENTITIES | _FLOAT_IDENTITIES | _ABSORBING):
    OPS[_name].fold(identity)
for _name in _OF_EQUAL:
    OPS[_name].fold(of_equal)
for _name in _ASSOCIATIVE:
    OPS[_name].fold(associate)


@elementwise.sub.fold
def _(builder: Builder, op: Op) -> Value | None:
    """x - 2 is x + -2, of signed integers: one form, which also suits the analyses."""
    x, y = op.operands
    given, dtype = number(y), op.result.type.dtype
    if given is None or not dtype.is_integer or not dtype.is_signed:
        return None
    negated = wrapped(dtype, -given)
    return builder.emit(elementwise.add, x, filled(builder, op.result.type, negated))


@elementwise.div.fold
def _(builder: Builder, op: Op) -> Value | None:
    """x / c is x * (1 / c) where c is a power of two: both are rounded once, from one value."""
    x, y = op.operands
    divisor = number(y)
    if not divisor or not math.isfinite(divisor):
        return None
    fraction, exponent = math.frexp(divisor)
    # a subnormal factor might be flushed to zero
    if abs(fraction) != 0.5 or abs(exponent - 1) > _NORMAL_EXPONENT[op.result.type.dtype]:
        return None
    return builder.emit(elementwise.mul, x, filled(builder, op.result.type, 1 / divisor))


def _log2(value: Number | None) -> int | None:
    """k where value is the int 2**k."""
    if not isinstance(value, int) or value <= 0 or value & value - 1:
        return None
    return value.bit_length() - 1


@elementwise.floordiv.fold
def _(builder: Builder, op: Op) -> Value | None:
    """x // 2**k is x >> k: both round down."""
    x, y = op.operands
    count = _log2(number(y))
    if count is None or not op.result.type.dtype.is_integer:
        return None
    return builder.emit(elementwise.shr, x, filled(builder, op.result.type, count))


@elementwise.mod.fold
def _(builder: Builder, op: Op) -> Value | None:
    """x % 2**k is x & (2**k - 1): the sign of the divisor, as Python has it."""
    x, y = op.operands
    count = _log2(number(y))
    if count is None or not op.result.type.dtype.is_integer:
        return None
    return builder.emit(elementwise.and_, x, filled(builder, op.result.type, (1 << count) - 1))


@elementwise.neg.fold
def _(_: Builder, op: Op) -> Value | None:
    """-(-x) is x."""
    inner = made_by(op.operands[0], "neg")
    return inner and inner.operands[0]


@elementwise.absolute.fold
def _(builder: Builder, op: Op) -> Value | None:
    """| |x| | is |x|, and so is |-x|; |x| of an unsigned x is x."""
    (x,) = op.operands
    if made_by(x, "absolute") or not x.type.dtype.is_signed:
        return x
    inner = made_by(x, "neg")
    return inner and builder.emit(elementwise.absolute, inner.operands[0])


@elementwise.invert.fold
def _(_: Builder, op: Op) -> Value | None:
    """~~x is x."""
    inner = made_by(op.operands[0], "invert")
    return inner and inner.operands[0]

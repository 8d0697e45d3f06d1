"""Folds of arithmetic, bits, changes of dtype, comparisons and choices."""

from __future__ import annotations

import math
from collections.abc import Callable

from blocknumba.tile_ir.folds.patterns import (
    Number, filled, is_counted, made_by, number, same_number, wrapped,
)
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import OPS, attribute
from blocknumba.tile_ir.ir.types import (
    BOOL, DType, bfloat16, float16, float32, float64, float8_e4m3fn, float8_e5m2,
)
from blocknumba.tile_ir.ops import cast as family, elementwise

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
    x, y = op.x, op.y
    if number(x) is None or number(y) is not None:
        return None
    return builder.emit(op.opdef, y, x)


def identity(builder: Builder, op: Op) -> Value | None:
    """x + 0, x * 1 and their like are x; x * 0 and its like are constants."""
    x, y = op.x, op.y
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
    x, y = op.x, op.y
    if x is not y or not is_counted(op.result.type):
        return None
    result = _OF_EQUAL[op.name]
    return x if result is None else filled(builder, op.result.type,
                                           wrapped(op.result.type.dtype, result))


def associate(builder: Builder, op: Op) -> Value | None:
    """(x op 2) op 3 is x op (2 op 3), of integers and bools."""
    inner = made_by(op.x, op.name)
    if inner is None or not is_counted(op.result.type):
        return None
    first, second = number(inner.y), number(op.y)
    if first is None or second is None:
        return None
    combined = wrapped(op.result.type.dtype, _ASSOCIATIVE[op.name](int(first), int(second)))
    return builder.emit(op.opdef, inner.x, filled(builder, op.result.type, combined))


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
    """x - 2 is x + -2, of signed integers: one canonical op, which also suits the analyses."""
    x, y = op.x, op.y
    given, dtype = number(y), op.result.type.dtype
    if given is None or not dtype.is_integer or not dtype.is_signed:
        return None
    negated = wrapped(dtype, -given)
    return builder.emit(elementwise.add, x, filled(builder, op.result.type, negated))


@elementwise.div.fold
def _(builder: Builder, op: Op) -> Value | None:
    """x / c is x * (1 / c) where c is a power of two: both are rounded once, from one value."""
    x, y = op.x, op.y
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
    x, y = op.x, op.y
    count = _log2(number(y))
    if count is None or not op.result.type.dtype.is_integer:
        return None
    return builder.emit(elementwise.shr, x, filled(builder, op.result.type, count))


@elementwise.mod.fold
def _(builder: Builder, op: Op) -> Value | None:
    """x % 2**k is x & (2**k - 1): the sign of the divisor, as Python has it."""
    x, y = op.x, op.y
    count = _log2(number(y))
    if count is None or not op.result.type.dtype.is_integer:
        return None
    return builder.emit(elementwise.and_, x, filled(builder, op.result.type, (1 << count) - 1))


@elementwise.neg.fold
def _(_: Builder, op: Op) -> Value | None:
    """-(-x) is x."""
    inner = made_by(op.x, "neg")
    return inner and inner.x


@elementwise.absolute.fold
def _(builder: Builder, op: Op) -> Value | None:
    """| |x| | is |x|, and so is |-x|; |x| of an unsigned x is x."""
    x = op.x
    if made_by(x, "absolute") or not x.type.dtype.is_signed:
        return x
    inner = made_by(x, "neg")
    return inner and builder.emit(elementwise.absolute, inner.x)


@elementwise.invert.fold
def _(_: Builder, op: Op) -> Value | None:
    """~~x is x."""
    inner = made_by(op.x, "invert")
    return inner and inner.x


# Bits of the significand, the hidden one included.  Source: IEEE 754, OCP FP8.
_SIGNIFICAND = {float64: 53, float32: 24, float16: 11, bfloat16: 8, float8_e4m3fn: 4,
                float8_e5m2: 3}
_WIDER = {float8_e4m3fn: {float16, bfloat16, float32, float64},
          float8_e5m2: {float16, bfloat16, float32, float64},
          float16: {float32, float64}, bfloat16: {float32, float64}, float32: {float64}}


def is_exact(source: DType, target: DType) -> bool:
    """Whether a cast keeps every value, so that it can be undone or skipped over."""
    if source == target or source.kind == BOOL:
        return True
    if source.is_float:
        return target in _WIDER.get(source, ())
    magnitude = source.bits - source.is_signed
    if target.is_float:
        return target in _SIGNIFICAND and magnitude <= _SIGNIFICAND[target]
    if target.kind == BOOL or source.is_signed > target.is_signed:
        return False
    return magnitude <= target.bits - target.is_signed


@family.cast.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A cast to the same dtype; a cast of a cast that lost nothing, or less than this one does."""
    x = op.x
    target = op.result.type.dtype
    if x.type.dtype == target:
        return x
    inner = made_by(x, "cast")
    if inner is None or attribute(op, "rounding") != "nearest":
        return None
    source, middle = inner.x, x.type.dtype
    integers = (source.type.dtype.is_integer and middle.is_integer and target.is_integer)
    truncated = integers and target.bits <= middle.bits
    kept = is_exact(source.type.dtype, middle) and (
        not source.type.dtype.is_integer or not middle.is_float or target.is_float
        or target == source.type.dtype)
    if not truncated and not kept:
        return None
    return builder.emit(op.opdef, source, dtype=target.name)


@family.cast.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A number taken as a bool is whether it is not 0."""
    x = op.x
    if op.result.type.dtype.kind != BOOL or not x.type.dtype.is_integer:
        return None
    return builder.emit(elementwise.ne, x, filled(builder, x.type, 0))


@family.bitcast.fold
def _(builder: Builder, op: Op) -> Value | None:
    """The bits of the bits of x are the bits of x."""
    x = op.x
    if x.type.dtype == op.result.type.dtype:
        return x
    inner = made_by(x, "bitcast")
    return inner and builder.emit(op.opdef, inner.x, dtype=op.result.type.dtype.name)


_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_WITH_ITSELF = {"eq": True, "le": True, "ge": True, "ne": False, "lt": False, "gt": False}


def mirrored(builder: Builder, op: Op) -> Value | None:
    """2 < x is x > 2."""
    x, y = op.x, op.y
    if number(x) is None or number(y) is not None:
        return None
    return builder.emit(OPS[_MIRRORED[op.name]], y, x)


def compared_with_itself(builder: Builder, op: Op) -> Value | None:
    """x < x is false, x <= x is true: of integers, as NaN is not equal to itself."""
    x, y = op.x, op.y
    if x is not y or not is_counted(x.type):
        return None
    return filled(builder, op.result.type, _WITH_ITSELF[op.name])


def half_open(builder: Builder, op: Op) -> Value | None:
    """x <= 7 is x < 8 and x > 7 is x >= 8: bounds of integers are half-open."""
    x, y = op.x, op.y
    bound = number(y)
    if bound is None or not x.type.dtype.is_integer or bound == x.type.dtype.maximum:
        return None
    opdef = elementwise.lt if op.name == "le" else elementwise.ge
    return builder.emit(opdef, x, filled(builder, x.type, bound + 1))


def of_bool(builder: Builder, op: Op) -> Value | None:
    """x == True is x, x == False is not x; a bool taken as a number compares with 0 as itself."""
    x, y = op.x, op.y
    given = number(y)
    if given is None or given not in (0, 1):
        return None
    source = x
    if x.type.dtype.kind != BOOL:
        cast = made_by(x, "cast")
        if cast is None or cast.x.type.dtype.kind != BOOL:
            return None
        source = cast.x
    holds = bool(given) == (op.name == "eq")
    return source if holds else builder.emit(elementwise.invert, source)


for _name in _MIRRORED:
    OPS[_name].fold(mirrored)
    OPS[_name].fold(compared_with_itself)
for _name in ("le", "gt"):
    OPS[_name].fold(half_open)
for _name in ("eq", "ne"):
    OPS[_name].fold(of_bool)


@elementwise.invert.fold
def _(builder: Builder, op: Op) -> Value | None:
    """not (x < y) is x >= y, of integers; of floats only == and != have an opposite."""
    inner = op.x.owner
    if inner is None or inner.name not in _OPPOSITE or op.result.type.dtype.kind != BOOL:
        return None
    if inner.name not in ("eq", "ne") and not is_counted(inner.x.type):
        return None
    return builder.emit(OPS[_OPPOSITE[inner.name]], *inner.operands)


@elementwise.select.fold
def _(builder: Builder, op: Op) -> Value | None:
    """A select whose condition is known, of equal values, or of True and False."""
    condition, x, y = op.condition, op.x, op.y
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
    """where(not c, x, y) is where(c, y, x); where(c, where(c, x, _), y) is where(c, x, y)."""
    condition, x, y = op.condition, op.x, op.y
    if inverted := made_by(condition, "invert"):
        return builder.emit(op.opdef, inverted.x, y, x)
    inner_x, inner_y = made_by(x, "select"), made_by(y, "select")
    if inner_x and inner_x.condition is condition:
        x = inner_x.x
    if inner_y and inner_y.condition is condition:
        y = inner_y.y
    if (x, y) == (op.x, op.y):
        return None
    return builder.emit(op.opdef, condition, x, y)

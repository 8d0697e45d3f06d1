"""Operators and casts of Triton's dialect."""

from __future__ import annotations

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import (
    DTYPES, DType, bool_, float32, float64, int16, int64, uint16,
)
from blocknumba.typing import promotion as weak
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.functions.elementwise import computed, symbol_of
from blocknumba.typing.functions.elementwise import truth as truth_of_number
from blocknumba.typing.functions.memory import as_pointer
from blocknumba.typing.ranges import is_nonnegative, is_position
from blocknumba.typing.triton import promotion
from blocknumba.typing.values import Number, unwrapped

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_OF_INTEGERS = ("and", "or", "xor", "shl", "shr")
_CONTRACTIBLE = ("add", "sub", "mul")
_BOOL_ARITHMETIC = {"add": "xor", "sub": "xor", "mul": "and"}  # of integers of one bit
# truncating division; floor division, which more is known of, where that is the same
_DIVISIONS = {"floordiv": "truncdiv", "mod": "truncmod"}


def settled(context: Context, value: object) -> object:
    """The value of an expression: Python's numbers of run time are scalars, floats float32."""
    if isinstance(value, Number):
        scalar = value.value
        return context.cast(scalar, float32) if scalar.type.dtype == float64 else scalar
    if type(value) is tuple:
        return tuple([settled(context, item) for item in value])
    return value


def truth(context: Context, x: object, what: str = "a condition") -> Value:
    """Whether a scalar is true; a pointer is unless it is null."""
    pointer = as_pointer(context, x)
    if pointer is not None and pointer.type.is_scalar:
        return context.emit("ne", context.emit("address", pointer), context.constant(0, int64))
    return truth_of_number(context, x, what)


def binary(context: Context, name: str, x: object, y: object) -> Value:
    """x op y of two tiles or numbers."""
    symbol = symbol_of(name)
    require_numbers(symbol, x, y)
    if name in _OF_INTEGERS:
        return _of_integers(context, name, x, y)
    if name in _DIVISIONS:
        return _divided(context, name, x, y)
    if name == "power":
        raise BlockTypeError(f"**: given {describe(x)} and {describe(y)}, accepted compile-time "
                             "constants", hint="multiply, or use tl.exp2(y * tl.log2(x)) or "
                             "libdevice.pow")
    if name == "div":
        dtype = promotion.result_dtype(x, y, divides=True)
        x, y = converted(context, symbol, x, y, dtype)
        if not dtype.is_float:
            x, y = context.cast(x, float32), context.cast(y, float32)
        return divide(context, x, y)
    if name in _COMPARISONS:  # in which a literal has the dtype of a variable
        x, y = as_value(context, x, symbol), as_value(context, y, symbol)
    dtype = promotion.result_dtype(x, y)
    if dtype == bool_ and name in _BOOL_ARITHMETIC:
        name = _BOOL_ARITHMETIC[name]
    return arithmetic(context, name, *converted(context, symbol, x, y, dtype))


def as_value(context: Context, x: object, what: str) -> Value:
    """A tile or number as a value, a literal of the dtype that a variable would have."""
    if weak.is_literal(x):
        return context.constant(x, promotion.named_dtype(x))
    return context.value(unwrapped(x), what=what)


def arithmetic(context: Context, name: str, x: Value, y: Value) -> Value:
    """An op on two values of one type; products and sums of floats may be one instruction."""
    dtype = x.type.dtype
    if context.options.contract and name in _CONTRACTIBLE and dtype in (float32, float64):
        return context.emit(name, x, y, contract=True)
    return computed(context, name, x, y)


def divide(context: Context, x: Value, y: Value, exact: bool = False) -> Value:
    """x / y of floats of one type: float32 within 2 ulps unless exact."""
    if x.type.dtype == float32 and not exact:
        return context.emit("div", x, y, approximate=True)
    return computed(context, "div", x, y)


def unary(context: Context, name: str, x: object) -> Value:
    """-x, ~x, and `not x`, which is ~x of bools."""
    if name == "not":
        if not isinstance(x, Value) or not x.type.shape or x.type.is_pointer:
            return context.emit("invert", truth(context, x, "not"))
        require(x.type.dtype == bool_, "not: given {}, accepted bools and scalars", x.type,
                hint="compare it: x == 0")
        return context.emit("invert", x)
    symbol = symbol_of(name)
    require_numbers(symbol, x)
    value = context.value(unwrapped(x))
    dtype = value.type.dtype
    require(name != "invert" or not dtype.is_float, "~: given {}, accepted integers and bools",
            describe(x))
    if name == "neg" and dtype == bool_:
        return value  # of integers of one bit
    return computed(context, name, value)


def converted(context: Context, what: str, x: object, y: object, dtype: DType) -> list[Value]:
    """Two operands in one dtype and one shape."""
    values = []
    for operand in (x, y):
        if weak.is_literal(operand):
            promotion.require_fits(operand, dtype, what)
            values.append(context.constant(operand, dtype))
        else:
            values.append(cast(context, context.value(unwrapped(operand)), dtype))
    return context.broadcast_together(values, what)


def cast(context: Context, value: Value, dtype: DType) -> Value:
    """value converted to dtype: integers of 8 bits through 16, 8-bit floats saturated."""
    own = value.type.dtype
    if own == dtype:
        return value
    if own.is_float and dtype.is_integer and dtype.bits == 8:
        return context.cast(context.cast(value, int16 if dtype.is_signed else uint16), dtype)
    if saturates(own, dtype):
        return context.emit("cast", value, dtype=dtype.name, rounding="saturate")
    return context.cast(value, dtype)


def saturates(own: DType, dtype: DType) -> bool:
    """Whether conversions from own to dtype saturate: of floats to 8-bit floats."""
    return own.is_float and weak.is_float8(dtype) and own.bits > 8


def _of_integers(context: Context, name: str, x: object, y: object) -> Value:
    """Bitwise operations and shifts."""
    symbol = symbol_of(name)
    dtype = promotion.result_dtype(x, y)
    require(not dtype.is_float, "{}: given {} and {}, accepted integers and bools", symbol,
            describe(x), describe(y))
    first, second = converted(context, symbol, x, y, dtype)
    if dtype == bool_ and name in ("shl", "shr"):
        return _and_not(context, first, second)
    if name == "shr" and dtype.kind == "uint" and promotion.dtype_of_operand(x).kind == "int":
        # the left operand's sign decides which bits come in
        signed = DTYPES[f"int{dtype.bits}"]
        moved = (context.emit("bitcast", v, dtype=signed.name) for v in (first, second))
        return context.emit("bitcast", context.emit("shr", *moved), dtype=dtype.name)
    return context.emit(name, first, second)


def _and_not(context: Context, x: Value, y: Value) -> Value:
    """x of one bit where y is 0, else 0: shifts and remainders of integers of one bit."""
    return context.emit("and", x, context.emit("invert", y))


def _divided(context: Context, name: str, x: object, y: object) -> Value:
    """x // y and x % y, with the sign of x; of floats only %."""
    symbol = symbol_of(name)
    dtype = promotion.result_dtype(x, y, divides=True)
    first, second = converted(context, symbol, x, y, dtype)
    if dtype.is_float:
        require(name == "mod", "//: given {} and {}, accepted integers", describe(x), describe(y),
                hint="use tl.floor(x / y)")
        return _float_remainder(context, first, second)
    if dtype == bool_:  # of one bit; by 0 it is 0
        return (_and_not(context, first, second) if name == "mod"
                else context.emit("and", first, second))
    known = context.nonnegative
    if dtype.kind == "int" and not all(
            is_nonnegative(v, known) and is_position(v, known) for v in (first, second)):
        name = _DIVISIONS[name]
    return context.emit(name, first, second)


def _float_remainder(context: Context, x: Value, y: Value) -> Value:
    """x - trunc(x / y) * y; of 8-bit floats in float32."""
    own = x.type.dtype
    if weak.is_float8(own):
        wide = [context.cast(value, float32) for value in (x, y)]
        return context.cast(_float_remainder(context, *wide), own)
    whole = context.emit("trunc", context.emit("div", x, y))
    return context.emit("fma", context.emit("neg", whole), y, x)

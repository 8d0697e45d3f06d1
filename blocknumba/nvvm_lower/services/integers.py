"""Arithmetic of integers with NumPy's results: floor division, wide shifts, wrapping."""

from __future__ import annotations

from blocknumba.nvvm_lower.elements import is_literal, memory_type
from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.nvvm_lower.llvm import I1, I32, I64, Body
from blocknumba.nvvm_lower.ptx.arithmetic import NEGATE_16, WIDE_PRODUCT
from blocknumba.tile_ir.ir.types import DType

_UNROLLED_POWER = 64  # up to this literal exponent a power is a chain of multiplications


def negate(emitter: Emitter, dtype: DType, x: str) -> str:
    """-x; of the lowest integer, itself.

    That of 16 bits is none that libNVVM knows: it would make instructions of it that an assembler
    gets wrong (see ptx/corrections.py).
    """
    if dtype.bits == 16 and not is_literal(x):
        return emitter.assembly(NEGATE_16, x)[0]
    return emitter.body.binary("sub", memory_type(dtype), "0", x)


def subtract(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x - y, modulo 2**bits."""
    if x == "0":
        return negate(emitter, dtype, y)
    return emitter.body.binary("sub", memory_type(dtype), x, y)


def multiply(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x * y, modulo 2**bits."""
    if "-1" in (x, y):
        return negate(emitter, dtype, x if y == "-1" else y)
    return emitter.body.binary("mul", memory_type(dtype), x, y)


def absolute(emitter: Emitter, dtype: DType, x: str) -> str:
    """|x|; of the lowest integer, itself."""
    if not dtype.is_signed:
        return x
    body, type_ = emitter.body, memory_type(dtype)
    is_negative = body.compare("icmp slt", type_, x, "0")
    return body.select(is_negative, type_, negate(emitter, dtype, x), x)


def minimum(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """The lesser."""
    return _extremum(emitter, dtype, "lt", x, y)


def maximum(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """The greater."""
    return _extremum(emitter, dtype, "gt", x, y)


def _extremum(emitter: Emitter, dtype: DType, relation: str, x: str, y: str) -> str:
    body, type_ = emitter.body, memory_type(dtype)
    opcode = f"icmp {'s' if dtype.is_signed else 'u'}{relation}"
    return body.select(body.compare(opcode, type_, x, y), type_, x, y)


def floor_divide(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """floor(x / y); 0 where y is 0; the lowest integer divided by -1 is itself."""
    body, type_ = emitter.body, memory_type(dtype)
    if (shift := _power_of_two(y)) is not None:
        return body.binary("ashr" if dtype.is_signed else "lshr", type_, x, str(shift))
    if not dtype.is_signed:
        quotient = body.binary("udiv", type_, x, _divisor(body, type_, y, "1"))
        return _zero_if_zero(body, type_, y, quotient)
    divisor = _divisor(body, type_, y, "1", "-1")
    quotient = body.binary("sdiv", type_, x, divisor)
    rest = body.binary("sub", type_, x, body.binary("mul", type_, quotient, divisor))
    less = body.binary("add", type_, quotient, "-1")
    quotient = body.select(_signs_differ(body, type_, rest, divisor), type_, less, quotient)
    if y == "-1" or not is_literal(y):
        is_minus_one = body.compare("icmp eq", type_, y, "-1")
        quotient = body.select(is_minus_one, type_, negate(emitter, dtype, x), quotient)
    return _zero_if_zero(body, type_, y, quotient)


def remainder(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x - floor(x / y) * y, of y's sign; 0 where y is 0."""
    body, type_ = emitter.body, memory_type(dtype)
    if (shift := _power_of_two(y)) is not None:
        return body.binary("and", type_, x, str((1 << shift) - 1))
    if not dtype.is_signed:
        rest = body.binary("urem", type_, x, _divisor(body, type_, y, "1"))
        return _zero_if_zero(body, type_, y, rest)
    divisor = _divisor(body, type_, y, "1", "-1")  # x % 1 is 0, and so is x % -1 and x % 0
    rest = body.binary("srem", type_, x, divisor)
    moved = body.binary("add", type_, rest, divisor)
    return body.select(_signs_differ(body, type_, rest, divisor), type_, moved, rest)


def truncating_divide(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x / y towards zero; 0 where y is 0; the lowest integer divided by -1 is itself."""
    body, type_ = emitter.body, memory_type(dtype)
    if not dtype.is_signed:
        return floor_divide(emitter, dtype, x, y)
    quotient = body.binary("sdiv", type_, x, _divisor(body, type_, y, "1", "-1"))
    if y == "-1" or not is_literal(y):
        is_minus_one = body.compare("icmp eq", type_, y, "-1")
        quotient = body.select(is_minus_one, type_, negate(emitter, dtype, x), quotient)
    return _zero_if_zero(body, type_, y, quotient)


def truncating_remainder(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x - truncating_divide(x, y) * y, of x's sign; 0 where y is 0."""
    if not dtype.is_signed:
        return remainder(emitter, dtype, x, y)
    # x % 1 is 0, and so is x % -1 and x % 0
    body, type_ = emitter.body, memory_type(dtype)
    return body.binary("srem", type_, x, _divisor(body, type_, y, "1", "-1"))


def is_power_of_two(y: str) -> bool:
    """Whether a value is the literal of a power of two."""
    return _power_of_two(y) is not None


def _power_of_two(y: str) -> int | None:
    """The exponent, if y is the literal of a power of two."""
    if not is_literal(y):
        return None
    value = int(y)
    return value.bit_length() - 1 if value > 0 and value & value - 1 == 0 else None


def _divisor(body: Body, type_: str, y: str, safe: str, *unsafe: str) -> str:
    """y, or safe where dividing by y is undefined in LLVM: y is 0 or one of unsafe."""
    if is_literal(y):
        return safe if y in ("0", *unsafe) else y
    for value in ("0", *unsafe):
        y_is_unsafe = body.compare("icmp eq", type_, y, value)
        y = body.select(y_is_unsafe, type_, safe, y)
    return y


def _zero_if_zero(body: Body, type_: str, y: str, result: str) -> str:
    if is_literal(y):
        return "0" if y == "0" else result
    return body.select(body.compare("icmp eq", type_, y, "0"), type_, "0", result)


def _signs_differ(body: Body, type_: str, rest: str, divisor: str) -> str:
    """Whether rest is not 0 and has not the divisor's sign: truncation was not the floor."""
    opposite = body.compare("icmp slt", type_, body.binary("xor", type_, rest, divisor), "0")
    is_inexact = body.compare("icmp ne", type_, rest, "0")
    return body.binary("and", I1, opposite, is_inexact)


def shift_left(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x << y; 0 when y is not in [0, bits)."""
    return _shift_or_zero(emitter, dtype, "shl", x, y)


def shift_right(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x >> y; all sign bits when y is not in [0, bits)."""
    if not dtype.is_signed:
        return _shift_or_zero(emitter, dtype, "lshr", x, y)
    body, type_, most = emitter.body, memory_type(dtype), str(dtype.bits - 1)
    if is_literal(y):
        return body.binary("ashr", type_, x, y if 0 <= int(y) < dtype.bits else most)
    is_inside = body.compare("icmp ult", type_, y, str(dtype.bits))
    return body.binary("ashr", type_, x, body.select(is_inside, type_, y, most))


def _shift_or_zero(emitter: Emitter, dtype: DType, opcode: str, x: str, y: str) -> str:
    body, type_ = emitter.body, memory_type(dtype)
    if is_literal(y):
        return body.binary(opcode, type_, x, y) if 0 <= int(y) < dtype.bits else "0"
    is_inside = body.compare("icmp ult", type_, y, str(dtype.bits))
    # a shift that is too wide has no value in LLVM: shift by a valid count, then select
    shifted = body.binary(opcode, type_, x, body.select(is_inside, type_, y, "0"))
    return body.select(is_inside, type_, shifted, "0")


def multiply_high(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """The high half of the product of two unsigned words."""
    type_ = memory_type(dtype)
    name = "llvm.nvvm.mulhi.ui" if dtype.bits == 32 else "llvm.nvvm.mulhi.ull"
    return emitter.body.call(type_, name, f"{type_} {x}", f"{type_} {y}",
                             attributes="nounwind readnone")


def product_of_words(emitter: Emitter, _: DType, x: str, y: str) -> str:
    """The product in 64 bits of two uint64 that fit into 32."""
    halves = (emitter.body.convert("trunc", I64, value, I32) for value in (x, y))
    return emitter.body.assembly(WIDE_PRODUCT, *halves)[0]


def power(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x ** y modulo 2**bits; the truncated reciprocal where y is negative."""
    body, type_ = emitter.body, memory_type(dtype)
    if is_literal(y) and 0 <= int(y) <= _UNROLLED_POWER:
        return _literal_power(body, type_, x, int(y))
    result = _call_power(body, dtype, x, y)
    if not dtype.is_signed:
        return result
    is_odd = body.compare("icmp ne", type_, body.binary("and", type_, y, "1"), "0")
    of_minus_one = body.select(is_odd, type_, "-1", "1")
    inverse = body.select(body.compare("icmp eq", type_, x, "-1"), type_, of_minus_one, "0")
    inverse = body.select(body.compare("icmp eq", type_, x, "1"), type_, "1", inverse)
    return body.select(body.compare("icmp slt", type_, y, "0"), type_, inverse, result)


def _literal_power(body: Body, type_: str, x: str, exponent: int) -> str:
    result, square = "1", x
    while exponent:
        if exponent & 1:
            result = square if result == "1" else body.binary("mul", type_, result, square)
        exponent >>= 1
        if exponent:
            square = body.binary("mul", type_, square, square)
    return result


def _call_power(body: Body, dtype: DType, x: str, y: str) -> str:
    """Call a function that squares and multiplies, one iteration per bit of y (unsigned)."""
    type_ = memory_type(dtype)
    name = f"power.{type_}"
    if body.module.defines(name):
        return body.pure(f"call {type_} @{name}({type_} {x}, {type_} {y}) nounwind readnone")
    power_body = Body(body.module)
    power_body.branch("round")
    power_body.begin_block("round")
    result, square, rest = (power_body.phi(type_) for _ in range(3))
    is_odd = power_body.compare(
        "icmp ne", type_, power_body.binary("and", type_, rest.name, "1"), "0")
    product = power_body.binary("mul", type_, result.name, square.name)
    next_result = power_body.select(is_odd, type_, product, result.name)
    next_square = power_body.binary("mul", type_, square.name, square.name)
    next_rest = power_body.binary("lshr", type_, rest.name, "1")
    for phi, first, again in ((result, "1", next_result), (square, "%x", next_square),
                              (rest, "%y", next_rest)):
        phi.add(first, "entry")
        phi.add(again, "round")
    power_body.branch_if(power_body.compare("icmp ne", type_, next_rest, "0"), "round", "done")
    power_body.begin_block("done")
    power_body.do(f"ret {type_} {next_result}")
    power_body.define(name, (f"{type_} %x", f"{type_} %y"), result=type_, linkage="internal")
    return _call_power(body, dtype, x, y)

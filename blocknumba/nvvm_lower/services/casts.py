"""Casts of elements, with the results of NumPy's astype."""

from __future__ import annotations

from blocknumba.nvvm_lower.elements import is_narrow, memory_type, register_type, zero
from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, I1, I32, I64
from blocknumba.nvvm_lower.ptx import arithmetic as ptx
from blocknumba.nvvm_lower.services import narrow_floats
from blocknumba.nvvm_lower.services.narrow_floats import narrow, to_odd, widen
from blocknumba.nvvm_lower.services.words import pack, unpack
from blocknumba.tile_ir.ir.types import (
    DType, bfloat16, bool_, float16, float32, float64, int8, uint8,
)

# The bits of 2^23 and of 2^10, whose last digit is 1 (IEEE 754): an 8-bit integer fits below
_FLOAT_OF_LAST_DIGITS, _HALF_OF_LAST_DIGITS = 0x4B000000, 0x6400
_BIAS = 128  # of signed ones
_SIGNS = 0x80808080 - (1 << 32)  # of four, as the literal of an i32

def cast_all(emitter: Emitter, values: list[str], source: DType, to: DType,
             rounding: str = "nearest") -> list[str]:
    """Elements of dtype source as dtype to.

    8-bit floats become halves two at a time first; 8-bit integers that are parts of words become
    the last digits of floats, without an instruction that converts.
    """
    if (source != to and narrow_floats.is_float8(source) and len(values) > 1
            and narrow_floats.converts_pairs(emitter)):
        values, source = _halves(emitter, source, values), float16
    if source in (int8, uint8) and to in (float16, bfloat16, float32):
        return _floats_of_bytes(emitter, values, source, to)
    return [cast(emitter, value, source, to, rounding) for value in values]


def cast(emitter: Emitter, x: str, source: DType, to: DType, rounding: str = "nearest") -> str:
    """x of dtype source as dtype to; the op `cast` says what happens outside its range."""
    if source == to:
        return x
    if to == bool_:
        return _is_not_zero(emitter, x, source)
    if source.is_float:
        convert = _float_to_float if to.is_float else _float_to_integer
        return convert(emitter, x, source, to, rounding)
    return (_integer_to_float if to.is_float else _integer_to_integer)(emitter, x, source, to)


def bitcast(emitter: Emitter, x: str, source: DType, to: DType) -> str:
    """The bits of x, of dtype source, as a dtype of the same size."""
    if source == to:
        return x
    body = emitter.body
    if source == bool_:
        return body.convert("zext", I1, x, memory_type(to))
    if to == bool_:
        return body.compare("icmp ne", memory_type(source), x, "0")
    return body.convert("bitcast", register_type(source), x, register_type(to))


def _halves(emitter: Emitter, source: DType, values: list[str]) -> list[str]:
    """8-bit floats as halves."""
    words = pack(emitter, source, values)
    pairs = words if len(values) == 2 else [
        pair for word in words for pair in emitter.assembly(ptx.UNPACK_16, word)]
    return [half for pair in pairs for half in narrow_floats.halves_of_pair(emitter, source, pair)]


def _floats_of_bytes(emitter: Emitter, values: list[str], source: DType, to: DType) -> list[str]:
    """8-bit integers as floats; halves two at a time where the two are parts of one word."""
    results: list[str] = []
    while len(results) < len(values):
        pair = values[len(results):len(results) + 2]
        parts = [emitter.parts.get(value) for value in pair]
        if to == float16 and len(pair) == 2 and all(parts) and parts[0][0] == parts[1][0]:
            (word, first), (_, second) = parts
            results += _halves_of_bytes(emitter, _biased(emitter, word, source), first, second,
                                        source)
        elif to == float16 or parts[0] is None:
            results.append(cast(emitter, pair[0], source, to))
        else:
            word, index = parts[0]
            value = _float_of_byte(emitter, _biased(emitter, word, source), index, source)
            results.append(narrow(emitter, to, value) if to == bfloat16 else value)
    return results


def _biased(emitter: Emitter, word: str, source: DType) -> str:
    """A word of four 8-bit integers, each 128 greater if they are signed: none is negative."""
    return emitter.body.binary("xor", I32, word, str(_SIGNS)) if source.is_signed else word


def _float_of_byte(emitter: Emitter, word: str, index: int, source: DType) -> str:
    """A byte of a biased word as the last digits of 2^23, minus 2^23 and the bias; exact."""
    body = emitter.body
    (bits,) = emitter.assembly(ptx.permute(index, 4, 4, 7), word, str(_FLOAT_OF_LAST_DIGITS))
    offset = _FLOAT_OF_LAST_DIGITS + (_BIAS if source.is_signed else 0)
    return body.binary("fsub", FLOAT, body.convert("bitcast", I32, bits, FLOAT),
                       body.convert("bitcast", I32, str(offset), FLOAT))


def _halves_of_bytes(emitter: Emitter, word: str, first: int, second: int,
                     source: DType) -> list[str]:
    """Two bytes of a biased word as the last digits of 2^10, minus 2^10 and the bias; exact."""
    (pair,) = emitter.assembly(ptx.permute(first, 5, second, 5), word, str(_HALF_OF_LAST_DIGITS))
    offset = _HALF_OF_LAST_DIGITS + (_BIAS if source.is_signed else 0)
    (pair,) = emitter.assembly(ptx.PAIRED["float16", "sub"], pair, str(offset << 16 | offset))
    return unpack(emitter, float16, [pair], 2)


def _is_not_zero(emitter: Emitter, x: str, source: DType) -> str:
    if not source.is_float:
        return emitter.body.compare("icmp ne", memory_type(source), x, "0")
    if is_narrow(source):
        x, source = widen(emitter, source, x), float32
    return emitter.body.compare("fcmp une", register_type(source), x, zero(source))


def _integer_to_integer(emitter: Emitter, x: str, source: DType, to: DType) -> str:
    if source == bool_:
        return emitter.body.convert("zext", I1, x, memory_type(to))
    opcode = "trunc" if to.bits < source.bits else "sext" if source.is_signed else "zext"
    result = emitter.body.convert(opcode, memory_type(source), x, memory_type(to))
    if (source.bits, to.bits) == (16, 8):
        emitter.low_bytes[result] = x
    return result


def _integer_to_float(emitter: Emitter, x: str, source: DType, to: DType) -> str:
    """Rounded once; to narrow floats through float32, which holds all their values exactly."""
    if to == bfloat16 and source.bits >= 32:
        return narrow(emitter, to, _odd_float(emitter, x, source))
    opcode = "sitofp" if source.is_signed else "uitofp"
    wide = DOUBLE if to == float64 else FLOAT
    value = emitter.body.convert(opcode, register_type(source), x, wide)
    return narrow(emitter, to, value) if is_narrow(to) else value


def _odd_float(emitter: Emitter, x: str, source: DType) -> str:
    """A 32- or 64-bit integer as a float, rounded to odd."""
    kind, type_ = f"{'s' if source.is_signed else 'u'}{source.bits}", memory_type(source)
    (value,) = emitter.assembly(ptx.FLOAT_OF_INTEGER_TOWARDS_ZERO[kind], x)
    (back,) = emitter.assembly(ptx.TRUNCATE[kind, FLOAT], value)
    return to_odd(emitter.body, value, emitter.body.compare("icmp ne", type_, back, x))


def _float_to_float(emitter: Emitter, x: str, source: DType, to: DType, rounding: str) -> str:
    body = emitter.body
    if is_narrow(source):
        x, source = widen(emitter, source, x), float32
    if is_narrow(to):
        return narrow(emitter, to, x, register_type(source), rounding)
    if source == to:
        return x
    if to == float64:
        return body.convert("fpext", FLOAT, x, DOUBLE)
    if rounding == "zero":
        return emitter.assembly(ptx.FLOAT_TOWARDS_ZERO, x)[0]
    return body.convert("fptrunc", DOUBLE, x, FLOAT)


def _float_to_integer(emitter: Emitter, x: str, source: DType, to: DType, rounding: str) -> str:
    """Truncated and saturated; NaN becomes 0."""
    if is_narrow(source):
        x, source = widen(emitter, source, x), float32
    body, wide = emitter.body, I64 if to.bits == 64 else I32
    # an unsigned dtype below 32 bits fits into int32, where it is then clamped
    sign = "s" if to.is_signed or to.bits < 32 else "u"
    type_ = register_type(source)
    (value,) = emitter.assembly(ptx.TRUNCATE[sign + wide[1:], type_], x)
    if type_ == DOUBLE or wide == I64:  # the other instructions return 0 for NaN
        is_nan = body.compare("fcmp uno", type_, x, x)
        value = body.select(is_nan, wide, "0", value)
    if to.bits >= 32:
        return value
    result = _clamped(emitter, value, to)
    emitter.limited[to, result] = value
    return result


def _clamped(emitter: Emitter, value: str, to: DType) -> str:
    """An i32 limited to what fits into a narrower dtype."""
    body = emitter.body
    for relation, bound in (("slt", to.minimum), ("sgt", to.maximum)):
        is_outside = body.compare(f"icmp {relation}", I32, value, str(bound))
        value = body.select(is_outside, I32, str(bound), value)
    return body.convert("trunc", I32, value, memory_type(to))

"""Conversions of a dot's elements: from memory to the dtype it adds in, and back.

All of them are exact but that of an accumulator to float16, which rounds to nearest, ties to even.
"""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.cpu_lower.loop_text import LoopText
from blocknumba.tile_ir.ir.types import (
    DType, bfloat16, float16, float32, float64, float8_e4m3fn, float8_e5m2, int32, int8, uint8,
)

Conversion = Callable[[LoopText, int, str], str]  # writer, lanes, value -> value

_SCALARS = {float64: "double", float32: "float", float16: "half", int32: "i32"}
_HALF_UNIT_OF_TF32, _BITS_OF_TF32, _EXPONENT = 0x1000, -0x2000, 0x7F800000
_NAN_OF_FLOAT16 = 0x7E00


def memory_scalar(dtype: DType) -> str:
    """The LLVM type of an element in memory."""
    return _SCALARS.get(dtype, f"i{dtype.bits}")


def widened(dtype: DType, wide: DType, precision: str) -> Conversion:
    """The conversion from memory to the dtype `wide`; precision: as of the op `dot`."""
    if precision == "tf32":
        return _rounded_to_tf32
    return _same if dtype == wide else _WIDENINGS[dtype]


def narrowed(text: LoopText, lanes: int, value: str, wide: DType, dtype: DType) -> str:
    """A sum of dtype `wide` as an element of an accumulator."""
    if wide == dtype:
        return value
    return _convert(text, lanes, "fptrunc", "float", value, "half")


def _type(lanes: int, scalar: str) -> str:
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def _convert(text: LoopText, lanes: int, opcode: str, source: str, value: str,
             result: str) -> str:
    return text.value(f"{opcode} {_type(lanes, source)} {value} to {_type(lanes, result)}")


def _constant(lanes: int, scalar: str, value: int | str) -> str:
    return f"{value}" if lanes == 1 else f"splat ({scalar} {value})"


def _with_constant(text: LoopText, lanes: int, opcode: str, scalar: str, value: str,
                   number: int | str) -> str:
    return text.value(f"{opcode} {_type(lanes, scalar)} {value}, "
                      f"{_constant(lanes, scalar, number)}")


def _same(text: LoopText, lanes: int, value: str) -> str:
    return value


def _from_float16(text: LoopText, lanes: int, value: str) -> str:
    return _convert(text, lanes, "fpext", "half", value, "float")


def _from_bfloat16(text: LoopText, lanes: int, value: str) -> str:
    bits = _with_constant(text, lanes, "shl", "i32",
                          _convert(text, lanes, "zext", "i16", value, "i32"), 16)
    return _convert(text, lanes, "bitcast", "i32", bits, "float")


def _from_float8_e5m2(text: LoopText, lanes: int, value: str) -> str:
    """Its bits are the upper half of a float16's."""
    bits = _with_constant(text, lanes, "shl", "i16",
                          _convert(text, lanes, "zext", "i8", value, "i16"), 8)
    return _from_float16(text, lanes, _convert(text, lanes, "bitcast", "i16", bits, "half"))


def _from_float8_e4m3fn(text: LoopText, lanes: int, value: str) -> str:
    """The float16 with the same fields is 2**8 times less, as its bias is 15, not 7."""
    bits = _convert(text, lanes, "zext", "i8", value, "i16")
    magnitude = _with_constant(text, lanes, "and", "i16", bits, 0x7F)
    fields = _with_constant(text, lanes, "shl", "i16", magnitude, 7)
    is_nan = _with_constant(text, lanes, "icmp eq", "i16", magnitude, 0x7F)
    vector, mask = _type(lanes, "i16"), _type(lanes, "i1")
    number = text.value(f"select {mask} {is_nan}, {vector} "
                        f"{_constant(lanes, 'i16', _NAN_OF_FLOAT16)}, {vector} {fields}")
    sign = _with_constant(text, lanes, "shl", "i16",
                          _with_constant(text, lanes, "and", "i16", bits, 0x80), 8)
    half = _convert(text, lanes, "bitcast", "i16", text.value(f"or {vector} {number}, {sign}"),
                    "half")
    return _with_constant(text, lanes, "fmul", "float", _from_float16(text, lanes, half), "256.0")


def _rounded_to_tf32(text: LoopText, lanes: int, value: str) -> str:
    """11 significant bits, ties away from zero; infinity and NaN as they are."""
    bits = _convert(text, lanes, "bitcast", "float", value, "i32")
    upper = _with_constant(text, lanes, "and", "i32",
                           _with_constant(text, lanes, "add", "i32", bits, _HALF_UNIT_OF_TF32),
                           _BITS_OF_TF32)
    exponent = _with_constant(text, lanes, "and", "i32", bits, _EXPONENT)
    is_finite = _with_constant(text, lanes, "icmp ne", "i32", exponent, _EXPONENT)
    vector = _type(lanes, "i32")
    kept = text.value(f"select {_type(lanes, 'i1')} {is_finite}, {vector} {upper}, "
                      f"{vector} {bits}")
    return _convert(text, lanes, "bitcast", "i32", kept, "float")


_WIDENINGS: dict[DType, Conversion] = {
    float16: _from_float16, bfloat16: _from_bfloat16, float8_e5m2: _from_float8_e5m2,
    float8_e4m3fn: _from_float8_e4m3fn,
    int8: lambda text, lanes, value: _convert(text, lanes, "sext", "i8", value, "i32"),
    uint8: lambda text, lanes, value: _convert(text, lanes, "zext", "i8", value, "i32"),
}

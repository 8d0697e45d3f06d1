"""Narrow floats (float16, bfloat16, float8): to and from float32, which they are computed in."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, HALF, I1, I8, I16, I32, Body, floating
from blocknumba.nvvm_lower.ptx import arithmetic
from blocknumba.tile_ir.types import (
    DType,
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float16,
)

FLOAT_MANTISSA, FLOAT_BIAS = 23, 127
FLOAT_INFINITY = 0x7F800000


def widen(emitter: Emitter, dtype: DType, x: str) -> str:
    """A narrow float as a float; exact."""
    body = emitter.body
    if dtype == bfloat16:
        high = body.binary("shl", I32, body.convert("zext", I16, x, I32), "16")
        return body.convert("bitcast", I32, high, FLOAT)
    if dtype == float16:
        return _float_of_half(body, x)
    wide = body.convert("zext", I8, x, I16)
    if dtype == float8_e5m2:  # the high byte of a half
        return _float_of_half(body, body.binary("shl", I16, wide, "8"))
    return _float_of_e4m3(body, wide)


def narrow(emitter: Emitter, dtype: DType, x: str, source: str = FLOAT,
           rounding: str = "nearest") -> str:
    """A float, or a double (source), as a narrow float.

    rounding: "nearest" (ties to even) or "zero".
    """
    result = _narrowed(emitter, dtype, x, source, rounding == "zero")
    if source == FLOAT and rounding == "nearest":
        emitter.rounded[dtype, result] = x
    return result


def to_odd(body: Body, x: str, is_inexact: str) -> str:
    """A float that was rounded towards zero, with an odd last bit if it is not exact.

    Rounding it once more, to at most 22 bits, gives what one rounding of the exact value does.
    Source: Boldo and Melquiond, "Emulation of FMA and Correctly Rounded Sums", IEEE TC 57(4).
    """
    sticky = body.convert("zext", I1, is_inexact, I32)
    bits = body.binary("or", I32, body.convert("bitcast", FLOAT, x, I32), sticky)
    return body.convert("bitcast", I32, bits, FLOAT)


def _float_of_double(emitter: Emitter, dtype: DType, x: str, towards_zero: bool) -> str:
    """The float that is narrowed to dtype next."""
    body = emitter.body
    if dtype != bfloat16 and not towards_zero:  # float8: rounded twice, as ml_dtypes does it
        return body.convert("fptrunc", DOUBLE, x, FLOAT)
    (value,) = emitter.assembly(arithmetic.FLOAT_TOWARDS_ZERO, x)
    if towards_zero:
        return value
    back = body.convert("fpext", FLOAT, value, DOUBLE)
    return to_odd(body, value, body.compare("fcmp une", DOUBLE, back, x))


def _narrowed(emitter: Emitter, dtype: DType, x: str, source: str, towards_zero: bool) -> str:
    body = emitter.body
    if dtype == float16:
        return _half(emitter, x, source, towards_zero)
    if source == DOUBLE:
        x = _float_of_double(emitter, dtype, x, towards_zero)
    if dtype == bfloat16:
        row = arithmetic.BFLOAT_TOWARDS_ZERO if towards_zero else arithmetic.BFLOAT
        return emitter.assembly(row, x)[0]
    return _float8(body, _FORMATS[dtype], x, towards_zero)


def _float_of_half(body: Body, x: str) -> str:
    return body.convert("fpext", HALF, body.convert("bitcast", I16, x, HALF), FLOAT)


def _float_of_e4m3(body: Body, wide: str) -> str:
    """Its bits, moved to a half's, are 2**8 times too small, subnormals included."""
    sign = body.binary("shl", I16, body.binary("and", I16, wide, "128"), "8")
    magnitude = body.binary("and", I16, wide, "127")
    bits = body.binary("or", I16, sign, body.binary("shl", I16, magnitude, "7"))
    value = body.binary("fmul", FLOAT, _float_of_half(body, bits), floating(256.0))
    is_nan = body.compare("icmp eq", I16, magnitude, "127")
    return body.select(is_nan, FLOAT, floating(float("nan")), value)


def _half(emitter: Emitter, x: str, source: str, towards_zero: bool) -> str:
    if towards_zero:
        row = (arithmetic.HALF_OF_DOUBLE_TOWARDS_ZERO if source == DOUBLE
               else arithmetic.HALF_TOWARDS_ZERO)
        return emitter.assembly(row, x)[0]
    body = emitter.body
    return body.convert("bitcast", HALF, body.convert("fptrunc", source, x, HALF), I16)


@dataclass(frozen=True, slots=True)
class _Format:
    """An 8-bit float: bits of mantissa, exponent bias, and three of its values, as bits.

    overflow: what is too big becomes this when rounded to nearest (infinity, or NaN).
    largest: the largest finite value.  bound: the least float, as bits, that is too big whatever
    the rounding.
    """

    mantissa: int
    bias: int
    overflow: int
    largest: int
    nan: int

    @property
    def shift(self) -> int:
        """How many bits of a float's mantissa are dropped."""
        return FLOAT_MANTISSA - self.mantissa

    @property
    def least_normal(self) -> int:
        """The least normal value, as bits of a float."""
        return (FLOAT_BIAS - self.bias + 1) << FLOAT_MANTISSA

    @property
    def magic(self) -> int:
        """A power of two, as bits of a float, whose last bit is the least subnormal value."""
        return (FLOAT_BIAS - self.bias + 1 + self.shift) << FLOAT_MANTISSA

    @property
    def bound(self) -> int:
        """The bits of a float that is one step above the largest value."""
        rebias = (FLOAT_BIAS - self.bias) << FLOAT_MANTISSA
        return (self.largest + 1 << self.shift) + rebias


_FORMATS = {
    float8_e5m2: _Format(mantissa=2, bias=15, overflow=0x7C, largest=0x7B, nan=0x7E),
    float8_e4m3fn: _Format(mantissa=3, bias=7, overflow=0x7F, largest=0x7E, nan=0x7F),
}


def _float8(body: Body, format_: _Format, x: str, towards_zero: bool) -> str:
    """A float as an 8-bit float, in integers: the hardware's conversion saturates."""
    bits = body.convert("bitcast", FLOAT, x, I32)
    sign = body.binary("and", I32, body.binary("lshr", I32, bits, "24"), "128")
    magnitude = body.binary("and", I32, bits, str(0x7FFFFFFF))
    is_small = body.compare("icmp ult", I32, magnitude, str(format_.least_normal))
    code = body.select(is_small, I32, _subnormal(body, format_, magnitude, towards_zero),
                       _normal(body, format_, magnitude, towards_zero))
    too_big = body.compare("icmp uge", I32, magnitude, str(format_.bound))
    code = body.select(too_big, I32, _overflow(body, format_, magnitude, towards_zero), code)
    is_nan = body.compare("icmp ugt", I32, magnitude, str(FLOAT_INFINITY))
    code = body.select(is_nan, I32, str(format_.nan), code)
    return body.convert("trunc", I32, body.binary("or", I32, code, sign), I8)


def _normal(body: Body, format_: _Format, magnitude: str, towards_zero: bool) -> str:
    rebias = (format_.bias - FLOAT_BIAS) << FLOAT_MANTISSA
    if not towards_zero:  # half of the last place, less one if it is even already
        last = body.binary("and", I32, body.binary("lshr", I32, magnitude, str(format_.shift)), "1")
        magnitude = body.binary("add", I32, magnitude, last)
        rebias += (1 << format_.shift - 1) - 1
    moved = body.binary("add", I32, magnitude, str(rebias))
    return body.binary("lshr", I32, moved, str(format_.shift))


def _subnormal(body: Body, format_: _Format, magnitude: str, towards_zero: bool) -> str:
    """Adding a big enough power of two rounds to the last place of a subnormal."""
    value = body.convert("bitcast", I32, magnitude, FLOAT)
    magic = body.convert("bitcast", I32, str(format_.magic), FLOAT)
    if towards_zero:
        total = body.call(FLOAT, "llvm.nvvm.add.rz.f", f"{FLOAT} {value}", f"{FLOAT} {magic}",
                          words="nounwind readnone")
    else:
        total = body.binary("fadd", FLOAT, value, magic)
    return body.binary("sub", I32, body.convert("bitcast", FLOAT, total, I32), str(format_.magic))


def _overflow(body: Body, format_: _Format, magnitude: str, towards_zero: bool) -> str:
    if not towards_zero:
        return str(format_.overflow)
    infinite = body.compare("icmp eq", I32, magnitude, str(FLOAT_INFINITY))
    return body.select(infinite, I32, str(format_.overflow), str(format_.largest))



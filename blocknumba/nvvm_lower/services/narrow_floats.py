"""Narrow floats (16 and 8 bits) to and from floats; 8-bit ones in pairs where hardware can."""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocknumba.nvvm_lower.emitter import Emitter, Rounded
from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, HALF, I1, I16, I32, I8, Body, floating
from blocknumba.nvvm_lower.ptx import arithmetic, arithmetic as ptx
from blocknumba.nvvm_lower.target import Capability
from blocknumba.tile_ir.ir.types import DType, bfloat16, float16, float8_e4m3fn, float8_e5m2

FLOAT_MANTISSA, FLOAT_BIAS = 23, 127
FLOAT_INFINITY = 0x7F800000


@dataclass(frozen=True, slots=True)
class _Format:
    """An 8-bit float: bits of mantissa, exponent bias, and three of its values, as bits.

    overflow: result of too large values (infinity, or NaN).  largest: the largest finite value.
    limit: a float; values not above it (e4m3), or below it (e5m2), are rounded to nearest to a
    finite value.
    """

    mantissa: int
    bias: int
    overflow: int
    largest: int
    nan: int
    limit: float

    @property
    def shift(self) -> int:
        """Number of bits of a float's mantissa that are dropped."""
        return FLOAT_MANTISSA - self.mantissa

    @property
    def least_normal(self) -> int:
        """The smallest normal value, as bits of a float."""
        return (FLOAT_BIAS - self.bias + 1) << FLOAT_MANTISSA

    @property
    def magic(self) -> int:
        """A power of two, as bits of a float, whose last bit is the smallest subnormal value."""
        return (FLOAT_BIAS - self.bias + 1 + self.shift) << FLOAT_MANTISSA

    @property
    def greatest(self) -> float:
        """The largest finite value."""
        return math.ldexp((1 << self.mantissa) + self.largest % (1 << self.mantissa),
                          (self.largest >> self.mantissa) - self.bias - self.mantissa)

    @property
    def bound(self) -> int:
        """The bits of a float that is one step above the largest value."""
        rebias = (FLOAT_BIAS - self.bias) << FLOAT_MANTISSA
        return (self.largest + 1 << self.shift) + rebias


_FORMATS = {
    float8_e5m2: _Format(mantissa=2, bias=15, overflow=0x7C, largest=0x7B, nan=0x7E,
                         limit=61440.0),
    float8_e4m3fn: _Format(mantissa=3, bias=7, overflow=0x7F, largest=0x7E, nan=0x7F, limit=464.0),
}


def is_float8(dtype: DType) -> bool:
    """Whether a dtype is a float of 8 bits."""
    return dtype in _FORMATS


def converts_pairs(emitter: Emitter) -> bool:
    """Whether the hardware converts 8-bit floats."""
    return emitter.target.has(Capability.FP8_CONVERT)


def halves_of_pair(emitter: Emitter, dtype: DType, pair: str) -> tuple[str, ...]:
    """Two 8-bit floats, an i16, as two halves; exact."""
    (word,) = emitter.assembly(ptx.HALVES_OF_FLOAT8[dtype.name], pair)
    return emitter.assembly(ptx.UNPACK_16, word)


def half_of(emitter: Emitter, dtype: DType, x: str) -> str:
    """An 8-bit float as a half; exact."""
    wide = emitter.body.convert("zext", I8, x, I16)
    if dtype == float8_e5m2:  # the high byte of a half
        return emitter.body.binary("shl", I16, wide, "8")
    if converts_pairs(emitter):
        return halves_of_pair(emitter, dtype, wide)[0]
    return _half_of_e4m3(emitter.body, wide)


def round_pair(emitter: Emitter, dtype: DType, low: str, high: str, saturates: bool = False) -> str:
    """Two floats rounded to 8-bit floats, in an i16: ties to even."""
    body, limit = emitter.body, _FORMATS[dtype].limit
    row = ptx.FLOAT8_PAIR[dtype.name]
    if saturates:
        return emitter.assembly(row, high, low)[0]
    if dtype == float8_e4m3fn:  # the instruction saturates, but keeps NaN
        low, high = (_nan_beyond(body, x, limit) for x in (low, high))
        return emitter.assembly(row, high, low)[0]
    (pair,) = emitter.assembly(row, high, low)
    for x, step in ((low, "1"), (high, "256")):  # infinity is the code after the largest number
        is_beyond = body.compare("fcmp oge", FLOAT, _magnitude(body, x), floating(limit))
        pair = body.binary("add", I16, pair, body.select(is_beyond, I16, step, "0"))
    return pair


def round_one(emitter: Emitter, dtype: DType, x: str, saturates: bool = False) -> str:
    """A float rounded to an 8-bit float, to nearest, ties to even."""
    if converts_pairs(emitter):
        pair = round_pair(emitter, dtype, x, floating(0.0), saturates)
        return emitter.body.convert("trunc", I16, pair, I8)
    if saturates:
        x = _limited(emitter.body, x, _FORMATS[dtype].greatest)
    return _round_in_integers(emitter.body, _FORMATS[dtype], x)


def _magnitude(body: Body, x: str) -> str:
    return body.call(FLOAT, "llvm.nvvm.fabs.f", f"{FLOAT} {x}", attributes="nounwind readnone")


def _nan_beyond(body: Body, x: str, limit: float) -> str:
    is_beyond = body.compare("fcmp ogt", FLOAT, _magnitude(body, x), floating(limit))
    return body.select(is_beyond, FLOAT, floating(float("nan")), x)


def _limited(body: Body, x: str, greatest: float) -> str:
    """x within [-greatest, greatest]; NaN stays."""
    for comparison, limit in (("fcmp ogt", floating(greatest)), ("fcmp olt", floating(-greatest))):
        x = body.select(body.compare(comparison, FLOAT, x, limit), FLOAT, limit, x)
    return x


def _half_of_e4m3(body: Body, wide: str) -> str:
    """Its bits, moved to a half's, are 2**8 times too small, subnormals included."""
    sign = body.binary("shl", I16, body.binary("and", I16, wide, "128"), "8")
    magnitude = body.binary("and", I16, wide, "127")
    bits = body.binary("or", I16, sign, body.binary("shl", I16, magnitude, "7"))
    small = body.convert("fpext", HALF, body.convert("bitcast", I16, bits, HALF), FLOAT)
    value = body.binary("fmul", FLOAT, small, floating(256.0))
    is_nan = body.compare("icmp eq", I16, magnitude, "127")
    value = body.select(is_nan, FLOAT, floating(float("nan")), value)
    return body.convert("bitcast", HALF, body.convert("fptrunc", FLOAT, value, HALF), I16)


def _round_in_integers(body: Body, format_: _Format, x: str) -> str:
    bits = body.convert("bitcast", FLOAT, x, I32)
    sign = body.binary("and", I32, body.binary("lshr", I32, bits, "24"), "128")
    magnitude = body.binary("and", I32, bits, str(0x7FFFFFFF))
    is_small = body.compare("icmp ult", I32, magnitude, str(format_.least_normal))
    code = body.select(is_small, I32, _subnormal(body, format_, magnitude),
                       _normal(body, format_, magnitude))
    too_big = body.compare("icmp uge", I32, magnitude, str(format_.bound))
    code = body.select(too_big, I32, str(format_.overflow), code)
    is_nan = body.compare("icmp ugt", I32, magnitude, str(FLOAT_INFINITY))
    code = body.select(is_nan, I32, str(format_.nan), code)
    return body.convert("trunc", I32, body.binary("or", I32, code, sign), I8)


def _normal(body: Body, format_: _Format, magnitude: str) -> str:
    """Half of the last place is added, less one if that is even already."""
    last = body.binary("and", I32, body.binary("lshr", I32, magnitude, str(format_.shift)), "1")
    rebias = ((format_.bias - FLOAT_BIAS) << FLOAT_MANTISSA) + (1 << format_.shift - 1) - 1
    moved = body.binary("add", I32, body.binary("add", I32, magnitude, last), str(rebias))
    return body.binary("lshr", I32, moved, str(format_.shift))


def _subnormal(body: Body, format_: _Format, magnitude: str) -> str:
    """Adding a big enough power of two rounds to the last place of a subnormal."""
    value = body.convert("bitcast", I32, magnitude, FLOAT)
    magic = body.convert("bitcast", I32, str(format_.magic), FLOAT)
    total = body.convert("bitcast", FLOAT, body.binary("fadd", FLOAT, value, magic), I32)
    return body.binary("sub", I32, total, str(format_.magic))


def widen(emitter: Emitter, dtype: DType, x: str) -> str:
    """A narrow float as a float; exact."""
    body = emitter.body
    if dtype == bfloat16:
        return body.convert("bitcast", I32, _shifted(emitter, x), FLOAT)
    return _float_of_half(body, x if dtype == float16 else half_of(emitter, dtype, x))


def _shifted(emitter: Emitter, x: str) -> str:
    """16 bits as the high half of an i32, of the word that they are in if there is one.

    A half that is taken out of its word first costs the assembler an instruction more.
    """
    body = emitter.body
    word, index = emitter.parts.get(x) or (body.convert("zext", I16, x, I32), 0)
    return body.binary("and", I32, word, str(-1 << 16)) if index else body.binary(
        "shl", I32, word, "16")


def narrow(emitter: Emitter, dtype: DType, x: str, source: str = FLOAT,
           rounding: str = "nearest") -> str:
    """A float, or a double (source), as a narrow float.

    rounding: "nearest" (ties to even); of 16 bits "zero"; of 8 bits "saturate".
    """
    result = _narrowed(emitter, dtype, x, source, rounding)
    if source == FLOAT and rounding != "zero":
        emitter.rounded[dtype, result] = Rounded(x, rounding == "saturate")
    return result


def to_odd(body: Body, x: str, is_inexact: str) -> str:
    """A float that was rounded towards zero, with an odd last bit if it is not exact.

    Rounding it once more, to at most 22 bits, gives what one rounding of the exact value does.
    Source: Boldo and Melquiond, "Emulation of FMA and Correctly Rounded Sums", IEEE TC 57(4).
    """
    sticky = body.convert("zext", I1, is_inexact, I32)
    bits = body.binary("or", I32, body.convert("bitcast", FLOAT, x, I32), sticky)
    return body.convert("bitcast", I32, bits, FLOAT)


def _float_of_double(emitter: Emitter, x: str, towards_zero: bool) -> str:
    """A double as the float that is narrowed next; to nearest, as if rounded once."""
    body = emitter.body
    (value,) = emitter.assembly(arithmetic.FLOAT_TOWARDS_ZERO, x)
    if towards_zero:
        return value
    back = body.convert("fpext", FLOAT, value, DOUBLE)
    return to_odd(body, value, body.compare("fcmp une", DOUBLE, back, x))


def _narrowed(emitter: Emitter, dtype: DType, x: str, source: str, rounding: str) -> str:
    towards_zero = rounding == "zero"
    if dtype == float16:
        return _half(emitter, x, source, towards_zero)
    if source == DOUBLE:
        x = _float_of_double(emitter, x, towards_zero)
    if dtype == bfloat16:
        row = arithmetic.BFLOAT_TOWARDS_ZERO if towards_zero else arithmetic.BFLOAT
        return emitter.assembly(row, x)[0]
    return round_one(emitter, dtype, x, rounding == "saturate")


def _float_of_half(body: Body, x: str) -> str:
    return body.convert("fpext", HALF, body.convert("bitcast", I16, x, HALF), FLOAT)


def _half(emitter: Emitter, x: str, source: str, towards_zero: bool) -> str:
    if towards_zero:
        row = (arithmetic.HALF_OF_DOUBLE_TOWARDS_ZERO if source == DOUBLE
               else arithmetic.HALF_TOWARDS_ZERO)
        return emitter.assembly(row, x)[0]
    body = emitter.body
    return body.convert("bitcast", HALF, body.convert("fptrunc", source, x, HALF), I16)

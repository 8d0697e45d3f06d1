"""Casts of vectors of lanes, with the results of NumPy's astype."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes

from blocknumba.cpu_lower.elements import is_narrow, register_type
from blocknumba.cpu_lower.vectors import FLOAT32, Vector, at_least, at_most, where
from blocknumba.tile_ir.ir.types import (
    DType, bfloat16, bool_, float16, float32, float64, float8_e4m3fn, float8_e5m2,
)


@dataclass(frozen=True, slots=True)
class Float8:
    """A format of 8 bits; values as bits.

    fraction: bits of the fraction; overflow: the code of too large values (infinity, or NaN);
    largest: the largest finite code.
    """

    fraction: int
    bias: int
    overflow: int
    largest: int
    nan: int

    @property
    def shift(self) -> int:
        """Number of bits of a float32's fraction are dropped."""
        return FLOAT32.fraction - self.fraction

    @property
    def least_normal(self) -> int:
        """The least normal value, as bits of a float32."""
        return FLOAT32.bias - self.bias + 1 << FLOAT32.fraction

    @property
    def magic(self) -> int:
        """A power of two, as bits of a float32, whose last bit is the least subnormal value."""
        return FLOAT32.bias - self.bias + 1 + self.shift << FLOAT32.fraction

    @property
    def bound(self) -> int:
        """The bits of the first float32, in steps of the format, that is too large."""
        return ((self.largest + 1 << self.shift)
                + (FLOAT32.bias - self.bias << FLOAT32.fraction))


FLOAT8 = {float8_e5m2: Float8(fraction=2, bias=15, overflow=0x7C, largest=0x7B, nan=0x7E),
          float8_e4m3fn: Float8(fraction=3, bias=7, overflow=0x7F, largest=0x7E, nan=0x7F)}
_INFINITY = 0x7F800000  # of float32


def cast(source: DType, to: DType, rounding: str, x: Vector) -> Vector:
    """x of one dtype as another; the op `cast` says what happens outside its range."""
    if source == to:
        return x
    if to == bool_:
        return _wide(source, x) != 0
    if source.is_float:
        if not to.is_float:
            return _float_to_integer(_wide(source, x), to)
        return _float_to_float(source, to, rounding, x)
    if to.is_float:
        return _integer_to_float(source, to, x)
    return _integer_to_integer(source, to, x)


def bitcast(source: DType, to: DType, x: Vector) -> Vector:
    """The bits of x as a dtype of the same size."""
    if source == bool_:
        return x if to == bool_ else x.to_unsigned("i8")
    if to == bool_:
        return x != 0
    scalar = register_type(to)
    if x.scalar == scalar:
        return x
    return x.body.emit(f"bitcast {x.typed} to {x.body.type(scalar)}", scalar)


def widen(dtype: DType, x: Vector) -> Vector:
    """A narrow float as float32; exact."""
    if dtype == bfloat16:
        return (x.to_unsigned("i32") << 16).as_float(FLOAT32)
    if dtype == float16:
        half = x.body.emit(f"bitcast {x.typed} to {x.body.type('half')}", "half")
        return x.body.emit(f"fpext {half.typed} to {x.body.type('float')}", "float")
    return _widen_float8(FLOAT8[dtype], x)


def narrow(dtype: DType, x: Vector) -> Vector:
    """A float32 as a narrow float, to nearest, ties to even."""
    body = x.body
    if dtype == float16:
        half = body.emit(f"fptrunc {x.typed} to {body.type('half')}", "half")
        return body.emit(f"bitcast {half.typed} to {body.type('i16')}", "i16")
    if dtype != bfloat16:
        return _narrow_float8(FLOAT8[dtype], x)
    bits = x.as_bits
    rounded = bits + ((bits >> 16) & 1) + 0x7FFF
    is_nan = x != x
    # a NaN whose payload is in the lower half must stay one
    return (where(is_nan, bits | 1 << 22, rounded) >> 16).to("i16")


def narrow_rounded_to_odd(dtype: DType, x: Vector, error: Vector) -> Vector:
    """x + error, a double and what its rounding lost, as a narrow float, rounded once.

    Source: Boldo and Melquiond, "Emulation of FMA and Correctly Rounded Sums", IEEE TC 57(4).
    """
    is_finite = x.body.emit(f"call {x.type} @llvm.fabs.{x.body.suffix(x.scalar)}({x.typed})",
                            x.scalar) < float("inf")
    error = where(is_finite, error, 0.0)
    return narrow(dtype, _odd_float32(_odd(x, error)))


def _odd(x: Vector, error: Vector) -> Vector:
    """A float rounded to nearest, with its error, rounded to odd instead."""
    is_inexact, bits = error != 0.0, x.as_bits
    is_beyond = is_inexact & ((error < 0.0) ^ (bits < 0))
    inward = where(is_beyond, bits - 1, bits)
    return (inward | is_inexact.to_unsigned(bits.scalar)).as_float(x.format)


def _odd_float32(x: Vector) -> Vector:
    """A double as float32, rounded to odd; infinities and NaN stay."""
    single = x.to("float")
    back = single.to("double")
    difference = where(_is_infinite(back) & (x < float("inf")) & (x > float("-inf")),
                       0.0 - back, where(_is_infinite(back), 0.0, x - back))
    difference = where(x != x, 0.0, difference)
    is_inexact, bits = difference != 0.0, single.as_bits
    is_beyond = is_inexact & ((difference < 0.0) ^ (bits < 0))
    return (where(is_beyond, bits - 1, bits) | is_inexact.to_unsigned("i32")).as_float(FLOAT32)


def _is_infinite(x: Vector) -> Vector:
    return x.body.emit(f"call {x.type} @llvm.fabs.{x.body.suffix(x.scalar)}({x.typed})",
                       x.scalar) == float("inf")


def _wide(dtype: DType, x: Vector) -> Vector:
    return widen(dtype, x) if is_narrow(dtype) else x


def _float_to_integer(x: Vector, to: DType) -> Vector:
    """Truncated and saturated; NaN becomes 0.

    LLVM's saturating conversions take the lanes apart.
    """
    unsigned, scalar = not to.is_signed, register_type(to)
    computed = scalar if to.bits >= 32 else "i32"
    lost = max(0, to.maximum.bit_length() - x.format.fraction - 1)
    highest = to.maximum >> lost << lost  # of the floats
    number = where(x > 0.0, x, 0.0) if unsigned else at_least(
        where(x == x, x, 0.0), float(to.minimum))
    inside, word = at_most(number, float(highest)), "fptosi"
    if unsigned and computed == scalar:
        word = "fptoui"
    made = x.body.emit(f"{word} {inside.typed} to {x.body.type(computed)}", computed)
    if lost:
        made = where(x > float(highest), to.maximum, made)
    return made.to(scalar)


def _float_to_float(source: DType, to: DType, rounding: str, x: Vector) -> Vector:
    if rounding == "saturate":
        greatest = float(ml_dtypes.finfo(to.numpy).max)
        wide = at_least(at_most(_wide(source, x), greatest), -greatest)
        return _nearest(float64 if source == float64 else float32, to, wide)
    nearest = _nearest(source, to, x)
    if rounding == "nearest":
        return nearest
    wide = _wide(source, x)
    back = _wide(to, nearest)
    back = back.to(wide.scalar) if back.scalar != wide.scalar else back
    is_beyond = magnitude(back) > magnitude(wide)
    bits = nearest if is_narrow(to) else nearest.as_bits
    inward = where(is_beyond, bits - 1, bits)
    return inward if is_narrow(to) else inward.as_float(nearest.format)


def magnitude(x: Vector) -> Vector:
    """x without its sign."""
    return x.body.emit(f"call {x.type} @llvm.fabs.{x.body.suffix(x.scalar)}({x.typed})", x.scalar)


def _nearest(source: DType, to: DType, x: Vector) -> Vector:
    """Rounded once to nearest, ties to even."""
    if not is_narrow(to):
        return _wide(source, x).to(register_type(to))
    if source == float64:
        return narrow(to, _odd_float32(x))
    return narrow(to, _wide(source, x))


def _integer_to_float(source: DType, to: DType, x: Vector) -> Vector:
    """Rounded once."""
    if not is_narrow(to):
        return _converted(source, x, register_type(to))
    if source.bits < 32:
        return narrow(to, _converted(source, x, "float"))
    if source.bits == 32:
        return narrow(to, _odd_float32(_converted(source, x, "double")))
    # 33 significant bits decide: the upper half, and whether any of the lower is set
    low = x & 0xFFFFFFFF
    coarse = (x - low) + where(low == 0, x.like(0), 1 << 31)
    is_small = (x >> 52) == 0
    if source.is_signed:
        is_small = is_small | (x.shift_signed(52) == -1)
    return narrow(to, _odd_float32(_converted(source, where(is_small, x, coarse), "double")))


def _converted(source: DType, x: Vector, scalar: str) -> Vector:
    word = "sitofp" if source.is_signed else "uitofp"
    return x.body.emit(f"{word} {x.typed} to {x.body.type(scalar)}", scalar)


def _integer_to_integer(source: DType, to: DType, x: Vector) -> Vector:
    scalar = register_type(to)
    if x.scalar == scalar:
        return x
    if source == bool_ or (to.bits > source.bits and not source.is_signed):
        return x.to_unsigned(scalar)
    return x.to(scalar)


def _widen_float8(format_: Float8, x: Vector) -> Vector:
    wide = x.to_unsigned("i32")
    sign, magnitude = (wide & 0x80) << 24, wide & 0x7F
    # as the bits of a float32 of another bias: subnormals come out right by the multiplication
    bits = (magnitude << format_.shift).as_float(FLOAT32)
    value = (bits * 2.0 ** (FLOAT32.bias - format_.bias)).as_bits
    special = where(magnitude == format_.overflow, wide.like(_INFINITY), 0x7FC00000)
    if format_.overflow == format_.nan:
        special = wide.like(0x7FC00000)
    is_special = magnitude > format_.largest
    return (where(is_special, special, value) | sign).as_float(FLOAT32)


def _narrow_float8(format_: Float8, x: Vector) -> Vector:
    bits = x.as_bits
    sign, magnitude = (bits >> 24) & 0x80, bits & 0x7FFFFFFF
    last = (magnitude >> format_.shift) & 1
    # half of the last place is added, less one if that is even already
    rebias = ((format_.bias - FLOAT32.bias) << FLOAT32.fraction) + (1 << format_.shift - 1) - 1
    normal = (magnitude + last + rebias) >> format_.shift
    # adding a power of two that is large enough rounds to the last place of a subnormal
    magic = magnitude.like(format_.magic)
    total = (magnitude.as_float(FLOAT32) + magic.as_float(FLOAT32)).as_bits
    code = where(magnitude < format_.least_normal, total - magic, normal)
    code = where(code > format_.largest, format_.overflow, code)
    code = where(magnitude >= format_.bound, format_.overflow, code)
    code = where(magnitude > _INFINITY, format_.nan, code)
    return (code | sign).to("i8")

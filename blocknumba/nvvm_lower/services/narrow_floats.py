"""Narrow floats (float16, bfloat16, float8): to and from float32, which they are computed in."""

from __future__ import annotations

from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, HALF, I1, I16, I32, Body
from blocknumba.nvvm_lower.ptx import arithmetic
from blocknumba.nvvm_lower.services import float8
from blocknumba.tile_ir.types import DType, bfloat16, float16


def widen(emitter: Emitter, dtype: DType, x: str) -> str:
    """A narrow float as a float; exact."""
    body = emitter.body
    if dtype == bfloat16:
        high = body.binary("shl", I32, body.convert("zext", I16, x, I32), "16")
        return body.convert("bitcast", I32, high, FLOAT)
    return _float_of_half(body, x if dtype == float16 else float8.half_of(emitter, dtype, x))


def narrow(emitter: Emitter, dtype: DType, x: str, source: str = FLOAT,
           rounding: str = "nearest") -> str:
    """A float, or a double (source), as a narrow float.

    rounding: "nearest" (ties to even) or, of 16 bits, "zero".
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


def _float_of_double(emitter: Emitter, x: str, towards_zero: bool) -> str:
    """The float that is narrowed next: to nearest, that gives what one rounding would."""
    body = emitter.body
    (value,) = emitter.assembly(arithmetic.FLOAT_TOWARDS_ZERO, x)
    if towards_zero:
        return value
    back = body.convert("fpext", FLOAT, value, DOUBLE)
    return to_odd(body, value, body.compare("fcmp une", DOUBLE, back, x))


def _narrowed(emitter: Emitter, dtype: DType, x: str, source: str, towards_zero: bool) -> str:
    if dtype == float16:
        return _half(emitter, x, source, towards_zero)
    if source == DOUBLE:
        x = _float_of_double(emitter, x, towards_zero)
    if dtype == bfloat16:
        row = arithmetic.BFLOAT_TOWARDS_ZERO if towards_zero else arithmetic.BFLOAT
        return emitter.assembly(row, x)[0]
    return float8.round_one(emitter, dtype, x)


def _float_of_half(body: Body, x: str) -> str:
    return body.convert("fpext", HALF, body.convert("bitcast", I16, x, HALF), FLOAT)


def _half(emitter: Emitter, x: str, source: str, towards_zero: bool) -> str:
    if towards_zero:
        row = (arithmetic.HALF_OF_DOUBLE_TOWARDS_ZERO if source == DOUBLE
               else arithmetic.HALF_TOWARDS_ZERO)
        return emitter.assembly(row, x)[0]
    body = emitter.body
    return body.convert("bitcast", HALF, body.convert("fptrunc", source, x, HALF), I16)

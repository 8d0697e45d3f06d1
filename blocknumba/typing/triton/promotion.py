"""Dtypes of results in Triton's dialect: the only module of it that decides them.

A number is weak only where it is known at compile time and has no name: a literal, a constexpr,
an index of static_range.  A weak number whose kind (bool < int < float) is not above that of a
tile takes the tile's dtype; all other operands, scalars too, promote as tiles do.
"""

from __future__ import annotations

import math

import numpy as np

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import (
    DType, bfloat16, bool_, dtype_of, float16, float32, float64, int32, int64, uint32, uint64,
)
from blocknumba.typing.promotion import is_float8, is_literal
from blocknumba.wording import shown

_KINDS = {"bool": 0, "int": 1, "uint": 1}
_NORMAL = (2.0 ** -126, float(np.finfo(np.float32).max))  # of float32
FLOAT_KIND = 2


def named_dtype(number: bool | int | float) -> DType:
    """The dtype of a variable that is assigned a number."""
    if isinstance(number, bool):
        return bool_
    if isinstance(number, float):
        magnitude = abs(number)
        is_normal = _NORMAL[0] <= magnitude <= _NORMAL[1]
        return float32 if is_normal or not number or not math.isfinite(number) else float64
    for dtype in (int32, uint32, int64, uint64):
        if dtype.minimum <= number <= dtype.maximum:
            return dtype
    raise BlockValueError(f"the int {shown(number)} does not fit in 64 bits")


def dtype_of_operand(operand: object) -> DType:
    """The dtype of an operand; of a weak number, the one that a variable would have."""
    if is_literal(operand):
        return named_dtype(operand)
    return operand.type.dtype if isinstance(operand, Value) else dtype_of(operand.dtype)


def result_dtype(x: object, y: object, divides: bool = False) -> DType:
    """The dtype in which an operation on two operands is done.

    divides: of / and %, which no instruction has for floats of 16 bits.
    Errors: integers of different signedness that are divided; an 8-bit float beside an integer.
    """
    for weak, other in ((x, y), (y, x)):
        if is_literal(weak) and not is_literal(other):
            dtype = dtype_of_operand(other)
            require(not is_float8(dtype), "given {} and {}, accepted floats of 16 bits and more "
                    "beside compile-time numbers", dtype, shown(weak),
                    hint="cast it with .to(...)", error=BlockTypeError)
            if _kind(dtype_of_operand(weak)) <= _kind(dtype):
                return float32 if divides and dtype in (float16, bfloat16) else dtype
    return promote(dtype_of_operand(x), dtype_of_operand(y), divides)


def promote(a: DType, b: DType, divides: bool = False) -> DType:
    """The dtype in which an operation on two dtypes is done."""
    both = {a, b}
    for wide in (float64, float32):
        if wide in both:
            return wide
    if float16 in both:
        return float32 if divides else float16
    if bfloat16 in both:
        return bfloat16 if len(both) == 1 and not divides else float32
    if is_float8(a) and is_float8(b):
        return a if a == b else float16
    require(not (a.is_float or b.is_float), "given {} and {}, accepted floats of 16 bits and more "
            "beside integers", a, b, error=BlockTypeError, hint="cast one of them with .to(...)")
    require(not divides or _is_signed(a) == _is_signed(b),
            "/, // and %: given {} and {}, accepted integers of one signedness", a, b,
            error=BlockTypeError, hint="cast one of them with .to(...)")
    return promote_integers(a, b)


def promote_integers(a: DType, b: DType) -> DType:
    """The wider of two integer dtypes; of different signedness, the unsigned if it is as wide."""
    if _is_signed(a) == _is_signed(b):
        return a if _bits(a) > _bits(b) else b
    signed, unsigned = (a, b) if _is_signed(a) else (b, a)
    return unsigned if _bits(unsigned) >= signed.bits else signed


def require_fits(number: object, dtype: DType, what: str) -> None:
    """Raise unless a weak number can be given an integer dtype."""
    if isinstance(number, float) or not dtype.is_integer:
        return
    if not dtype.minimum <= number <= dtype.maximum:
        raise BlockValueError(f"{what}: {shown(number)} is out of range for {dtype}, accepted "
                              f"{dtype.minimum} to {dtype.maximum}",
                              hint="cast the tile to a wider dtype first")


def _kind(dtype: DType) -> int:
    return _KINDS.get(dtype.kind, FLOAT_KIND)


def _bits(dtype: DType) -> int:
    return 1 if dtype == bool_ else dtype.bits


def _is_signed(dtype: DType) -> bool:
    """Bools count as unsigned integers of one bit."""
    return dtype.kind == "int"

"""Which dtype the result of an operation on different dtypes has: the only place that decides.

NumPy 2's table, on which Python literals are weak: a literal takes the dtype of the other
operand, and one that does not fit it is an error.  Where a kernel would pay dearly for NumPy's
answer, ours is another, in these cases and no others:

- A Python float literal never makes anything float64: with integers and bools it makes float32.
- A Python int literal on its own, or with bools, is int32 when it fits, else int64.
- Integers that an operation turns into floats (true division, exp, sqrt, mean ...) become
  float32; 64-bit integers become float64.  NumPy makes float64 of all of them.
- A scalar that meets a tile of another kind is weak, as a Python number is: beside a float, an
  integer scalar takes the float's dtype; beside integer tiles, a float scalar keeps its own, or
  makes float32.  The scalars of a kernel (arguments, extents, loop variables, program ids) are
  Python numbers to whoever writes it.  Two tiles follow the table: int32 and float32 make float64.
- bfloat16 stands beside float16: the two together, or bfloat16 with an integer of 16 bits or
  more, make float32.

8-bit floats are ml_dtypes': arithmetic on one kind of them gives that kind, computed in float32;
beside a float of 16 bits, an int16 or the other kind they make float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce

import numpy as np

from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.tile_ir.ir import Value
from blocknumba.tile_ir.types import (
    DType,
    bfloat16,
    bool_,
    dtype_of,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
)
from blocknumba.wording import shown

NUMBER = (bool, int, float)


def is_literal(operand: object) -> bool:
    """Whether an operand is a Python number, whose dtype is weak."""
    return isinstance(operand, NUMBER) and not isinstance(operand, np.generic)


def is_number(operand: object) -> bool:
    """Whether arithmetic can be done on an operand: a tile, a scalar, a literal."""
    return is_literal(operand) or isinstance(operand, np.generic) or (
        isinstance(operand, Value) and not operand.type.is_pointer)


def default_dtype(literal: bool | int | float) -> DType:
    """The dtype of a literal that meets nothing else."""
    if isinstance(literal, bool):
        return bool_
    if isinstance(literal, float):
        return float32
    if int32.minimum <= literal <= int32.maximum:
        return int32
    if int64.minimum <= literal <= int64.maximum:
        return int64
    raise BlockValueError(f"the int {shown(literal)} does not fit in 64 bits")


def strong_dtype(operand: object) -> DType:
    """The dtype of an operand that is not a literal."""
    return operand.type.dtype if isinstance(operand, Value) else dtype_of(operand.dtype)


def result_dtype(operands: Sequence[object]) -> DType:
    """The dtype in which an arithmetic operation on these operands is done."""
    literals = [x for x in operands if is_literal(x)]
    strong = [x for x in operands if not is_literal(x)]
    if not strong:
        return _literals_dtype(literals)
    dtype = _strong_dtype(strong)
    for literal in literals:
        dtype = _with_literal(dtype, literal)
    return dtype


def float_dtype(operands: Sequence[object]) -> DType:
    """The dtype in which an operation that makes floats is done: true division, exp ..."""
    dtype = result_dtype(operands)
    if dtype.is_float:
        return dtype
    return float64 if dtype.bits == 64 and dtype.is_integer else float32


def joined_dtype(a: DType, b: DType) -> DType:
    """The dtype of a variable that is a on one path and b on another."""
    if a.is_float != b.is_float:
        integer, floating = (b, a) if a.is_float else (a, b)
        return floating if integer is bool_ or floating.bits >= 32 else float32
    return promote(a, b)


@lru_cache(maxsize=None)
def promote(a: DType, b: DType) -> DType:
    """NumPy's promotion of two dtypes."""
    if a == b:
        return a
    if bool_ in (a, b):
        return b if a == bool_ else a
    for own, other in ((a, b), (b, a)):
        if is_float8(own):
            return _beside_float8(own, other)
    if bfloat16 in (a, b):
        other = b if a == bfloat16 else a
        return bfloat16 if other.is_integer and other.bits == 8 else (
            float32 if other.is_integer or other == float16 else other)
    return dtype_of(np.promote_types(a.numpy, b.numpy))


def is_float8(dtype: DType) -> bool:
    """Whether a dtype is a float of 8 bits."""
    return dtype.is_float and dtype.bits == 8


def computed_dtype(dtype: DType) -> DType:
    """The dtype that operations on a dtype are done in, before they are rounded to it."""
    return float32 if is_float8(dtype) else dtype


def _beside_float8(own: DType, other: DType) -> DType:
    """An 8-bit float and another dtype.   Source: ml_dtypes, what numpy.add gives."""
    if other.is_integer and other.bits != 16:
        return own if other.bits == 8 else float64
    return other if other.bits >= 32 else float32


def require_fits(literal: bool | int | float, dtype: DType, what: str = "literal") -> None:
    """Raise unless a literal can be given a dtype, as NumPy 2 does."""
    if dtype.is_float or isinstance(literal, bool):
        return
    if isinstance(literal, float):
        raise BlockTypeError(f"{what}: given the float {literal!r}, accepted an int for {dtype}")
    if dtype == bool_:
        raise BlockTypeError(f"{what}: given the int {shown(literal)}, accepted a bool")
    if not dtype.minimum <= literal <= dtype.maximum:
        raise BlockValueError(f"{what}: {shown(literal)} is out of range for {dtype}, accepted "
                              f"{dtype.minimum} to {dtype.maximum}")


def arithmetic_dtype(dtype: DType) -> DType:
    """The dtype in which //, %, ** and shifts of bools are done."""
    return int8 if dtype == bool_ else dtype


def _literals_dtype(literals: Sequence[bool | int | float]) -> DType:
    if any(isinstance(x, float) for x in literals):
        return float32
    dtypes = [default_dtype(x) for x in literals]
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = promote(dtype, other)
    return dtype


def _strong_dtype(operands: Sequence[object]) -> DType:
    floats = [strong_dtype(x) for x in operands if strong_dtype(x).is_float]
    counted = list(floats)
    for operand in operands:
        dtype = strong_dtype(operand)
        if not dtype.is_float and not (floats and dtype.is_integer and _is_scalar(operand)):
            counted.append(dtype)
    result = reduce(promote, counted)
    are_scalars = all(_is_scalar(x) for x in operands if strong_dtype(x).is_float)
    if floats and are_scalars and len(counted) > len(floats):
        own = reduce(promote, floats)
        return own if own.bits >= 32 or result.bits < 32 else float32
    return result


def _is_scalar(operand: object) -> bool:
    return not (isinstance(operand, Value) and operand.type.shape)


def _with_literal(dtype: DType, literal: bool | int | float) -> DType:
    if dtype.is_float or isinstance(literal, bool):
        return dtype
    if isinstance(literal, float):
        return float32
    return promote(bool_, default_dtype(literal)) if dtype == bool_ else dtype

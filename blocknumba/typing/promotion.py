"""Dtypes of results of operations on different dtypes: the only module that decides them.

NumPy 2's table, on which Python numbers are weak: a literal, or a number of run time, takes the
dtype of the other operand.  A literal that does not fit it is an error, as in NumPy; a number of
run time wraps, or becomes infinity.  Python numbers alone give Python numbers: floats are kept in
float64, ints in int32, or in int64 or uint64 where they do not fit.  Where a kernel would pay
dearly for NumPy's answer, ours is another, in these cases and no others:

- A Python float never makes a tile float64: with integers and bools it makes float32.
- A Python int that meets bools only is int32 when it fits, else int64.
- An int32 beside a Python int that is kept in 64 bits makes int64: positions in large arrays are
  computed so.
- Integers that an operation turns into floats (true division, exp, sqrt, mean ...) become
  float32; 64-bit integers become float64.  NumPy makes float64 of all of them.
- A scalar that meets a tile of another kind is weak, as a Python number is: beside a float, an
  integer scalar takes the float's dtype; beside integer tiles, a float scalar keeps its own, or
  makes float32.  Two tiles follow the table: int32 and float32 make float64.
- bfloat16 stands beside float16: the two together, or bfloat16 with an integer of 16 bits or
  more, make float32.

8-bit floats are ml_dtypes': arithmetic on one kind of them has that kind, computed in float32;
beside a float of 16 bits, an int16 or the other kind they make float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce

import numpy as np

from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import (
    DType, bfloat16, bool_, dtype_of, float16, float32, float64, int32, int64, int8, uint64,
)
from blocknumba.typing.values import Number
from blocknumba.wording import shown

NUMBER = (bool, int, float)


def is_literal(operand: object) -> bool:
    """Whether an operand is a Python number that is known at compile time."""
    return isinstance(operand, NUMBER) and not isinstance(operand, np.generic)


def is_number(operand: object) -> bool:
    """Whether arithmetic can be done on an operand: a tile, a scalar, a Python number."""
    return is_literal(operand) or isinstance(operand, (np.generic, Number)) or (
        isinstance(operand, Value) and not operand.type.is_pointer)


def is_weak(operand: object) -> bool:
    """Whether an operand is a Python int or float; a bool promotes as any bool does."""
    return isinstance(operand, Number) or is_literal(operand) and not isinstance(operand, bool)


def are_weak(operands: Sequence[object]) -> bool:
    """Whether operands are Python numbers only, so that what is computed of them is one."""
    return not any(isinstance(operand, Value) for operand in operands) and all(
        is_weak(operand) or isinstance(operand, bool) for operand in operands
    ) and any(map(is_weak, operands))


def weak_dtype(number: bool | int | float | Number) -> DType:
    """The dtype that a Python number is kept in while it meets nothing else."""
    if isinstance(number, Number):
        return number.dtype
    if isinstance(number, bool):
        return bool_
    if isinstance(number, float):
        return float64
    for dtype in (int32, int64, uint64):
        if dtype.minimum <= number <= dtype.maximum:
            return dtype
    raise BlockValueError(f"the int {shown(number)} does not fit in 64 bits")


def default_dtype(number: bool | int | float | Number) -> DType:
    """The dtype of a tile that is made of a Python number alone."""
    dtype = weak_dtype(number)
    return float32 if dtype.is_float else dtype


def strong_dtype(operand: object) -> DType:
    """The dtype of an operand that is not a Python number."""
    return operand.type.dtype if isinstance(operand, Value) else dtype_of(operand.dtype)


def result_dtype(operands: Sequence[object]) -> DType:
    """The dtype in which an arithmetic operation on these operands is done."""
    python, strong = [], []
    for operand in operands:
        (python if _is_python(operand) else strong).append(operand)
    if not strong:
        return reduce(joined_weak_dtype, map(weak_dtype, python))
    return reduce(_beside, python, _strong_dtype(strong))


def tile_dtype(operands: Sequence[object]) -> DType:
    """The dtype of a tile whose elements are some of these operands."""
    dtype = result_dtype(operands)
    return float32 if dtype.is_float and are_weak(operands) else dtype


def float_dtype(operands: Sequence[object]) -> DType:
    """The dtype in which an operation that makes floats is done: true division, exp ..."""
    dtype = result_dtype(operands)
    if dtype.is_float:
        return dtype
    return float64 if dtype.bits == 64 or are_weak(operands) else float32


def with_weak(dtype: DType, weak: DType) -> DType:
    """The dtype of something of a dtype beside a Python number that is kept in another."""
    if dtype.is_float or weak == bool_:
        return dtype
    if weak.is_float:
        return float32
    if dtype == bool_:
        return weak
    return int64 if dtype == int32 and weak.bits == 64 else dtype


def joined_weak_dtype(a: DType, b: DType) -> DType:
    """The dtype in which a Python number is kept that comes of two."""
    if float64 in (a, b):
        return float64
    return uint64 if uint64 in (a, b) else promote(a, b)


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
    """An 8-bit float and another dtype.   Source: ml_dtypes, the results of numpy.add."""
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


def _beside(dtype: DType, number: bool | int | float | Number) -> DType:
    """The dtype of something of a dtype beside a Python number."""
    if is_literal(number) and not isinstance(number, float) and dtype != bool_:
        return dtype  # whether it fits is seen where it is converted
    return with_weak(dtype, weak_dtype(number))


def _is_python(operand: object) -> bool:
    """Whether an operand is a Python number, known now or at run time."""
    return not isinstance(operand, Value) and (isinstance(operand, Number) or is_literal(operand))

"""Scalar arguments of a launch, converted to the dtype that the kernel takes."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace

import numpy as np

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.types import (
    DTYPES, DType, bool_, dtype_of, float64, int32, int64, uint64,
)
from blocknumba.wording import shown


@dataclass(frozen=True, slots=True)
class ScalarInfo:
    """A scalar argument of one launch.

    dtype: dtype of the kernel's parameter.
    value: a NumPy scalar of that dtype.
    weak: given as a Python int or float: in an expression it takes the dtype of the other
        operand.  Kernels are specialised on the value of such an int, not of a float.
    """

    dtype: DType
    value: np.generic
    weak: bool = False

    @property
    def bits(self) -> int:
        """The value in the low bits of a 64-bit slot, as the driver reads it."""
        return int.from_bytes(self.value.tobytes(), "little")


def scalar_info(value: object, declared: DType | None, where: str,
                 weak: bool = False) -> ScalarInfo | None:
    """Information on a scalar argument; None for a value that is not a number.

    declared: the dtype that annotates the parameter, which the value is converted to; without
        one an int is the narrowest of int32, int64 and uint64 that holds it, a float is
        float64, and a NumPy scalar keeps its dtype.
    weak: the parameter is annotated with `float`, and declared is float64.
    where: the kernel and the argument, for messages.
    Errors: BlockValueError for a value out of the dtype's range; BlockTypeError for a value of
    another kind: a float for an integer, anything but a bool for a bool.
    """
    if isinstance(value, np.generic):
        dtype = _numpy_dtype(value, where)
        if declared in (None, dtype):
            return ScalarInfo(dtype, value, weak)
    if not isinstance(value, (bool, int, float, np.generic)):
        return None
    if declared is not None:
        return replace(_converted(value, declared, where), weak=weak)
    if isinstance(value, bool):
        return ScalarInfo(bool_, np.bool_(value))
    if isinstance(value, int):
        return _python_integer(operator.index(value), where)
    return ScalarInfo(float64, np.float64(value), weak=True)


def scalar_of_array(value: np.ndarray, declared: DType, where: str,
                    weak: bool = False) -> ScalarInfo:
    """A 0-d NumPy array given for a parameter that is annotated with a dtype."""
    return scalar_info(value[()], declared, where, weak)


def _python_integer(value: int, where: str) -> ScalarInfo:
    for dtype in (int32, int64, uint64):
        if dtype.minimum <= value <= dtype.maximum:
            return ScalarInfo(dtype, dtype.numpy.type(value), weak=True)
    raise BlockValueError(f"{where}: given {shown(value)}, accepted ints that fit in 64 bits",
                          hint="pass it as a float")


def _numpy_dtype(value: np.generic, where: str) -> DType:
    try:
        return dtype_of(value.dtype)
    except BlockTypeError:
        raise BlockTypeError(f"{where}: given a scalar of {value.dtype}, "
                             f"accepted {', '.join(DTYPES)}") from None


def _converted(value: bool | int | float | np.generic, declared: DType,
               where: str) -> ScalarInfo:
    """A value in the declared dtype: floats are rounded, ints must fit."""
    is_bool = isinstance(value, (bool, np.bool_))
    is_integer = isinstance(value, (int, np.integer)) and not is_bool
    fits = is_integer if declared.is_integer else is_bool != declared.is_float
    require(fits, "{}: given {!r}, accepted {}", where, value, declared)
    if declared.is_float:
        return ScalarInfo(declared, _rounded(value, declared, where))
    value = operator.index(value) if is_integer else bool(value)
    require(declared.minimum <= value <= declared.maximum,
            "{}: given {}, accepted {} ({} to {})", where, value, declared, declared.minimum,
            declared.maximum, error=BlockValueError)
    return ScalarInfo(declared, declared.numpy.type(value))


def _rounded(value: bool | int | float | np.generic, declared: DType, where: str) -> np.generic:
    """A number as the nearest float of the declared dtype; finite numbers must stay finite."""
    try:
        with np.errstate(over="ignore"):
            rounded = declared.numpy.type(value)
    except OverflowError:  # an int beyond float64
        rounded = math.inf
    is_lost = not math.isfinite(rounded) and (isinstance(value, int) or math.isfinite(value))
    require(not is_lost,
            "{}: given {!r}, accepted numbers in the range of {}", where, value, declared,
            error=BlockValueError,
            hint="" if declared == float64 else "annotate the parameter with bn.float64")
    return rounded

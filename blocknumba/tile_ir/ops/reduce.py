"""Reductions along one axis."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import PURE, op
from blocknumba.tile_ir.ir.types import (
    FLOATS, INTEGERS, NUMBERS, DType, TileType, bool_, float8_e4m3fn, int32,
)

KINDS = {
    "sum": (np.add, NUMBERS),
    "prod": (np.multiply, NUMBERS),
    "max": (np.maximum, NUMBERS | {bool_}),
    "min": (np.minimum, NUMBERS | {bool_}),
    "fmax": (np.fmax, FLOATS),
    "fmin": (np.fmin, FLOATS),
    "and": (np.bitwise_and, INTEGERS | {bool_}),
    "or": (np.bitwise_or, INTEGERS | {bool_}),
    "xor": (np.bitwise_xor, INTEGERS | {bool_}),
}


def identity(kind: str, dtype: DType) -> bool | int | float:
    """The number that changes no result of a reduction: of "max", the least of dtype.

    kind: of KINDS.
    """
    if kind in ("sum", "or", "xor"):
        return 0
    if kind == "prod":
        return 1
    if kind in ("fmax", "fmin"):
        return math.nan
    if kind == "and":
        return dtype.maximum if dtype.kind == "uint" else True if dtype == bool_ else -1
    if dtype == bool_:
        return kind == "min"
    if dtype.is_integer:
        return dtype.minimum if kind == "max" else dtype.maximum
    greatest = float(ml_dtypes.finfo(dtype.numpy).max) if dtype == float8_e4m3fn else math.inf
    return -greatest if kind == "max" else greatest


def _require_axis(name: str, x: TileType, axis: int) -> None:
    require(0 <= axis < len(x.shape), "{}: axis must be in [0, {}), got {}", name, len(x.shape),
            axis)


@op(PURE)
def reduce(x, *, axis, kind, counts=False) -> TileType:
    """x with one axis combined by kind and dropped, in a fixed but unstated order.

    x: tile of rank >= 1 whose dtype KINDS[kind] accepts; the result has x's dtype, computed in
    float32 for float16 and bfloat16 and rounded once; integers wrap.  "max" and "min" give NaN
    if there is one, "fmax" and "fmin" only if all are; of 0.0 and -0.0 either is the greater.
    counts: the use of the result depends on the number of elements too, as in a mean; it changes
    only the reports of debug=True.
    Errors: axis out of range; a dtype that kind does not accept.
    Source: numpy.add.reduce and its like.
    """
    require(kind in KINDS, "reduce: kind must be one of {}, got {!r}", tuple(KINDS), kind)
    _require_axis(kind, x, axis)
    require(x.dtype in KINDS[kind][1], "{}: given {}, accepted {}", kind, x.dtype,
            ", ".join(sorted(map(str, KINDS[kind][1]))))
    return x.shaped(x.shape[:axis] + x.shape[axis + 1:])


@reduce.numpy
def _(x, *, axis, kind, counts=False):
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
    return KINDS[kind][0].reduce(wide, axis=axis + 1, dtype=wide.dtype).astype(x.dtype)


@op(PURE)
def arg_reduce(x, *, axis, kind) -> TileType:
    """Index along axis of the greatest or least element, int32.

    x: tile of rank >= 1 of numbers or bools; kind: "max" or "min".
    The first index wins ties; a NaN wins over numbers.
    Source: numpy.argmax, numpy.argmin.
    """
    require(kind in ("max", "min"), "arg_reduce: kind must be 'max' or 'min', got {!r}", kind)
    _require_axis(f"arg{kind}", x, axis)
    require(x.dtype in NUMBERS | {bool_}, "arg{}: given {}, accepted numbers and bools", kind,
            x.dtype)
    return TileType(int32, x.shape[:axis] + x.shape[axis + 1:])


@arg_reduce.numpy
def _(x, *, axis, kind):
    return (np.argmax if kind == "max" else np.argmin)(x, axis=axis + 1).astype(np.int32)

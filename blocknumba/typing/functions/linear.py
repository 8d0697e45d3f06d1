"""Products of matrices."""

from __future__ import annotations

from blocknumba.errors import BlockTypeError, UnsupportedError, require
from blocknumba.tile_ir.ir import Value
from blocknumba.tile_ir.opdef import OPS
from blocknumba.tile_ir.types import DType, float16, float32, float64, int32
from blocknumba.typing.context import describe
from blocknumba.typing.function import function
from blocknumba.typing.static_values import static, static_dtype

_PRECISIONS = ("ieee", "tf32", "tf32x3")


@function
def dot(context, a, b, acc=None, input_precision=None, allow_tf32=None, out_dtype=None,
        precision=None):
    """a @ b, plus acc when it is given.

    a: (M, K); b: (K, N); acc: (M, N); or the three with one more leading axis.  float16,
    bfloat16 and 8-bit operands accumulate in float32 or int32; out_dtype asks for another.
    precision, for float32: "ieee" (the default), "tf32", "tf32x3".
    Errors: shapes that do not fit; dtypes that differ.
    Source: numpy.matmul.
    """
    for name, operand in (("a", a), ("b", b)):
        require(isinstance(operand, Value) and len(operand.type.shape) in (2, 3),
                "dot: {} must be a tile of rank 2 or 3, got {}", name, describe(operand))
    _require_fitting(a, b)
    if "dot" not in OPS:
        raise UnsupportedError("dot: not in the tile IR")
    chosen = _precision(precision, input_precision, allow_tf32)
    dtype = _accumulator(a, acc, out_dtype)
    shape = (*a.type.shape[:-1], b.type.shape[-1])
    if acc is None:
        acc = context.broadcast_to(context.constant(0, dtype), shape)
    require(isinstance(acc, Value) and acc.type.shape == shape,
            "dot: acc must be of shape {}, got {}", shape, describe(acc))
    return context.emit("dot", a, b, context.cast(acc, dtype), precision=chosen)


def _require_fitting(a: Value, b: Value) -> None:
    columns, rows = a.type.shape[-1], b.type.shape[-2]
    turned = b.type.shape[-1] == columns
    require(columns == rows, "dot: a has {} columns, b has {} rows", columns, rows,
            hint=f"b is {b.type.shape}; pass b.T" if turned else "")
    require(a.type.shape[:-2] == b.type.shape[:-2], "dot: a has shape {}, b has {}, accepted one "
            "leading axis", a.type.shape, b.type.shape)
    if a.type.dtype != b.type.dtype and not a.type.dtype.bits == b.type.dtype.bits == 8:
        raise BlockTypeError(f"dot: a is {a.type.dtype}, b is {b.type.dtype}, accepted one dtype",
                             hint="cast one of them with .to(...)")


def _precision(precision: object, input_precision: object, allow_tf32: object) -> str:
    chosen = precision if precision is not None else input_precision
    if chosen is None:
        chosen = "tf32" if static("dot: allow_tf32", allow_tf32) else "ieee"
    require(static("dot: precision", chosen) in _PRECISIONS,
            "dot: precision must be one of {}, got {}", _PRECISIONS, describe(chosen))
    return chosen


def _accumulator(a: Value, acc: object, out_dtype: object) -> DType:
    if out_dtype is not None:
        return static_dtype("dot: out_dtype", out_dtype)
    if isinstance(acc, Value) and acc.type.dtype in (float16, float32, float64, int32):
        return acc.type.dtype
    dtype = a.type.dtype
    if dtype == float64:
        return float64
    return int32 if dtype.is_integer else float32



"""Products of matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir import Value
from blocknumba.tile_ir.ops.dot import PRECISIONS, accumulators
from blocknumba.tile_ir.types import DType, float32
from blocknumba.typing.context import Context, common_shape, describe
from blocknumba.typing.function import function
from blocknumba.typing.functions.shape import scalar_of
from blocknumba.typing.static_values import static, static_choice, static_dtype


@function
def dot(context, a, b, acc=None, input_precision=None, allow_tf32=None,
        max_num_imprecise_acc=None, out_dtype=None, precision=None):
    """a @ b, plus acc when it is given.

    a: (M, K); b: (K, N); acc: (M, N); leading axes are batches, and broadcast together.
    float16, bfloat16 and 8-bit floats are added up in float32, int8 and uint8 in int32, float32
    and float64 in themselves; acc or out_dtype may ask for float16, of float16.  The result has
    the dtype of the sums, or is rounded to out_dtype.
    precision (or input_precision), of float32: "ieee" (the default), "tf32", "tf32x3".
    max_num_imprecise_acc: accepted for Triton's kernels; the sums are those of the tensor cores.
    Errors: shapes that do not fit; dtypes that differ, but for two kinds of 8-bit floats or
    8-bit integers.
    Source: numpy.matmul.
    """
    chosen = _precision(precision, input_precision, allow_tf32)
    to = None if out_dtype is None else static_dtype("dot: out_dtype", out_dtype)
    return _product(context, "dot", a, b, acc, chosen, to)


@function
def matmul(context, a, b):
    """a @ b: `dot` without an accumulator; a tile of rank 1 is a row before @ and a column after.

    Source: numpy.matmul.
    """
    return _product(context, "@", a, b)


@function
def numpy_dot(context, a, b):
    """numpy.dot of two tiles of rank 1 or 2, where it is numpy.matmul.

    Errors: tiles of higher rank, of which numpy.dot pairs every matrix with every other.
    """
    for tile in (a, b):
        require(isinstance(tile, Value) and len(tile.type.shape) in (1, 2),
                "np.dot: given {}, accepted tiles of rank 1 or 2", describe(tile),
                hint="of batches of matrices, use a @ b")
    return _product(context, "np.dot", a, b)


@dataclass(frozen=True)
class _Shapes:
    """How operands of any rank are matrices.

    leading: batch axes of the result; rows, inner, columns: M, K and N.
    dropped: axes of the result, of the last two, that stand for an operand of rank 1.
    """

    leading: tuple[int, ...]
    rows: int
    inner: int
    columns: int
    dropped: tuple[int, ...]

    def matrices(self, rows: int, columns: int) -> tuple[int, ...]:
        """The shape of an operand of the op: of rank 3 only where there are batches."""
        batches = math.prod(self.leading)
        return (rows, columns) if batches == 1 else (batches, rows, columns)

    @property
    def result(self) -> tuple[int, ...]:
        last = (self.rows, self.columns)
        return (*self.leading, *(n for i, n in enumerate(last) if i not in self.dropped))


def _product(context: Context, what: str, a: object, b: object, acc: object = None,
             precision: str = "ieee", to: DType | None = None) -> Value:
    """a @ b + acc, of the dtype `to` or of that of the sums."""
    for name, operand in (("a", a), ("b", b)):
        require(isinstance(operand, Value) and operand.type.shape and not operand.type.is_pointer,
                "{}: {} must be a tile, got {}", what, name, describe(operand))
    shapes = _fitting(what, a, b)
    dtype = _sum_dtype(what, a.type.dtype, b.type.dtype, acc, to)
    left = _as_matrices(context, a, shapes, shapes.rows, shapes.inner)
    right = _as_matrices(context, b, shapes, shapes.inner, shapes.columns)
    sums = _accumulator(context, what, acc, dtype, shapes)
    result = context.emit("dot", left, right, sums,
                          precision=precision if a.type.dtype == float32 else "ieee")
    result = _reshaped(context, result, shapes.result or (1,))
    result = result if shapes.result else scalar_of(context, result)
    return result if to is None else context.cast(result, to)


def _fitting(what: str, a: Value, b: Value) -> _Shapes:
    """Errors: a's last axis is not b's first; leading axes that do not broadcast together."""
    left, right = a.type.shape, b.type.shape
    dropped = tuple(i for i, shape in enumerate((left, right)) if len(shape) == 1)
    left = (1, *left) if len(left) == 1 else left
    right = (*right, 1) if len(right) == 1 else right
    turned = right[-1] == left[-1] and len(b.type.shape) > 1
    require(left[-1] == right[-2], "{}: a has {} columns, b has {} rows", what, left[-1],
            right[-2], hint=f"b is {b.type.shape}; pass b.T" if turned else "")
    leading = common_shape([left[:-2], right[:-2]], what)
    return _Shapes(leading, left[-2], left[-1], right[-1], dropped)


def _sum_dtype(what: str, a: DType, b: DType, acc: object, to: DType | None) -> DType:
    """The dtype of the accumulator."""
    accepted = accumulators(a, b)
    if not accepted and a != b:
        raise BlockTypeError(f"{what}: a is {a}, b is {b}, accepted one dtype",
                             hint="cast one of them with .to(...)")
    require(accepted, "{}: given {}, accepted floats, int8 and uint8", what, a,
            hint="cast both, to int8 where their values fit or else to float64")
    own = acc.type.dtype if isinstance(acc, Value) else None
    if own is None:
        return to if to in accepted else accepted[0]
    require(own in accepted, "{}: acc is {}, accepted {}", what, own,
            " or ".join(map(str, accepted)))
    require(to in (None, own) or to not in accepted, "{}: acc is {} and out_dtype {}, accepted "
            "one of them for both", what, own, to)
    return own


def _as_matrices(context: Context, x: Value, shapes: _Shapes, rows: int, columns: int) -> Value:
    """An operand in the shape that the op wants of it."""
    matrix = _reshaped(context, x, (*x.type.shape[:-2], rows, columns))
    whole = context.broadcast_to(matrix, (*shapes.leading, rows, columns))
    return _reshaped(context, whole, shapes.matrices(rows, columns))


def _accumulator(context: Context, what: str, acc: object, dtype: DType,
                 shapes: _Shapes) -> Value:
    wanted = shapes.matrices(shapes.rows, shapes.columns)
    if acc is None:
        return context.broadcast_to(context.constant(0, dtype), wanted)
    require(isinstance(acc, Value) and acc.type.shape == shapes.result,
            "{}: acc must be of shape {}, got {}", what, shapes.result, describe(acc))
    return _reshaped(context, acc, wanted)


def _reshaped(context: Context, x: Value, shape: tuple[int, ...]) -> Value:
    return x if x.type.shape == shape else context.emit("reshape", x, shape=shape)


def _precision(precision: object, input_precision: object, allow_tf32: object) -> str:
    """The precision that is asked for, in one of three ways."""
    asked = [chosen for chosen in (precision, input_precision) if chosen is not None]
    if static("dot: allow_tf32", allow_tf32) and not asked:
        return "tf32"
    return static_choice("dot: precision", asked[0] if asked else "ieee", PRECISIONS)

"""Products of matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import (
    DType, bfloat16, float16, float32, float8_e4m3fn, float8_e5m2, int8, uint16, uint8,
)
from blocknumba.tile_ir.ops.dot import PRECISIONS, accumulators
from blocknumba.tile_ir.ops.shape import common_shape
from blocknumba.typing.context import Context, describe
from blocknumba.typing.function import function
from blocknumba.typing.functions.elementwise import binary, where
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

    Example:
    >>> a, b = np.float16([[1, 2], [3, 4]]), np.float16([[1, 0], [1, 1]])
    >>> bn.evaluate(bn.dot, a, b)
    array([[3., 2.],
           [7., 4.]], dtype=float32)
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
    """Operands of any rank as batches of matrices.

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


_E2M1 = "e2m1"
# format -> a dtype that has all of its numbers
_FORMATS: dict[str, DType] = {_E2M1: float8_e4m3fn, "e4m3": float8_e4m3fn, "e5m2": float8_e5m2,
                              "bf16": bfloat16, "fp16": float16}
_CODES = {8: uint8, 16: uint16}
_GROUPS = (16, 32)  # elements that share a scale; 32 in OCP MX, 16 in NVFP4

# e8m0: a byte is the exponent of a float32; 0 would be a subnormal's, and 255 is NaN
_MANTISSA_BITS, _MIN_SCALE, _NAN_SCALE, _NAN = 23, 1 << 22, 255, 0x7FC00000


@function
def dot_scaled(context, lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, acc=None,
               fast_math=False, lhs_k_pack=True, rhs_k_pack=True, out_dtype=float32):
    """(lhs * its scales) @ (rhs * its scales), plus acc when it is given, in float32.

    lhs: (M, K), rhs: (K, N), with one leading axis more or without; of format "e4m3" or "e5m2"
    (8-bit floats, or uint8 of their codes), "e2m1" (uint8, two elements each along K, or along
    the other axis where k_pack is False; the first is in the low half), "bf16" or "fp16".
    lhs_scale: (M, K / 32), rhs_scale: (N, K / 32), or K / 16: uint8 of e8m0 (2 ** (byte - 127),
    255 is NaN), int8 of the same bits, or float8_e4m3fn; None for no scales.
    fast_math: accepted for Triton's kernels.
    Elements are multiplied by their scales exactly, in bfloat16 (beside "fp16" in tf32), where
    what is outside of its range becomes infinite or loses bits.
    Source: OCP Microscaling Formats (MX) 1.0.

    Example:
    >>> ones, scales = np.ones((2, 32), bn.float8_e5m2.numpy), np.uint8([[127], [128]])
    >>> bn.evaluate(bn.dot_scaled, ones, scales, "e5m2", ones.T, None, "e5m2")
    array([[32., 32.],
           [64., 64.]], dtype=float32)
    """
    to = None if out_dtype is None else static_dtype("dot_scaled: out_dtype", out_dtype)
    require(to in (None, float32), "dot_scaled: out_dtype must be float32, got {}", to)
    left = _operand(context, "lhs", lhs, lhs_format, -1, static("lhs_k_pack", lhs_k_pack))
    right = _operand(context, "rhs", rhs, rhs_format, -2, static("rhs_k_pack", rhs_k_pack))
    dtypes = {left.dtype, right.dtype}
    if lhs_scale is None and rhs_scale is None and (
            len(dtypes) == 1 or all(dtype.bits == 8 for dtype in dtypes)):
        # as they are
        a, b = (context.cast(operand.elements, operand.dtype) for operand in (left, right))
        return dot.rule(context, a, b, acc)
    groups = [operand.group(scale) for operand, scale in ((left, lhs_scale), (right, rhs_scale))
              if scale is not None]
    require(len(set(groups)) <= 1, "dot_scaled: given scales of {} elements for lhs and of {} for "
            "rhs, accepted one number", *(groups * 2)[:2])
    common = float32 if float16 in dtypes else bfloat16
    a, b = (operand.scaled(context, scale, common)
            for operand, scale in ((left, lhs_scale), (right, rhs_scale)))
    return dot.rule(context, a, b, acc, precision="tf32" if common == float32 else "ieee")


@dataclass(frozen=True)
class _Operand:
    """A matrix without its scales.

    name: of the parameter.  elements: floats, all of them numbers of dtype.
    axis: that of K, -1 or -2.
    """

    name: str
    elements: Value
    dtype: DType
    axis: int

    def scaled(self, context: Context, scale: object, to: DType) -> Value:
        """The elements times their scales, as dtype to."""
        if scale is None:
            return context.cast(self.elements, to)
        factors = self._factors(context, scale)
        product = binary(context, "mul", context.cast(self.elements, float32), factors)
        return context.cast(product, to)

    def group(self, scale: object) -> int:
        """Number of elements that share a scale."""
        return self.elements.type.shape[self.axis] // self._scale_shape(scale)[-1]

    def _factors(self, context: Context, scale: object) -> Value:
        """The scales, of shape (rows, K / group), one for each element."""
        *batches, rows, groups = self._scale_shape(scale)
        shape, group = self.elements.type.shape, self.group(scale)
        values = _scale_values(context, self.name, scale)
        if self.axis == -2:
            order = (*range(len(batches)), len(batches) + 1, len(batches))
            values = context.emit("transpose", values, axes=order)
        axis = len(shape) + self.axis + 1
        kept = values.type.shape
        apart = context.emit("reshape", values, shape=(*kept[:axis], 1, *kept[axis:]))
        wide = context.broadcast_to(apart, (*kept[:axis], group, *kept[axis:]))
        return context.emit("reshape", wide, shape=shape)

    def _scale_shape(self, scale: object) -> tuple[int, ...]:
        """The shape of the scales, checked against that of the elements."""
        *batches, first, second = self.elements.type.shape
        rows, inner = (first, second) if self.axis == -1 else (second, first)
        accepted = [(*batches, rows, inner // group) for group in _GROUPS if group <= inner]
        require(isinstance(scale, Value) and scale.type.shape in accepted,
                "dot_scaled: {}_scale must be of shape {}, got {}", self.name,
                " or ".join(map(str, reversed(accepted))) or f"(rows, K / {_GROUPS[1]})",
                describe(scale))
        return scale.type.shape


def _operand(context: Context, name: str, given: object, format_: object, axis: int,
             is_packed_along_k: bool) -> _Operand:
    """An operand as floats."""
    kind = static_choice(f"dot_scaled: {name}_format", format_, tuple(_FORMATS))
    dtype = _FORMATS[kind]
    accepted = (uint8,) if kind == _E2M1 else (dtype, _CODES[dtype.bits])
    require(isinstance(given, Value) and given.type.dtype in accepted
            and len(given.type.shape) in (2, 3),
            "dot_scaled: {} of format {!r} must be a tile of rank 2 or 3 of {}, got {}", name, kind,
            " or ".join(map(str, accepted)), describe(given))
    if kind == _E2M1:
        elements = _unpacked(context, given, axis if is_packed_along_k else -3 - axis)
    else:
        elements = context.emit("bitcast", given, dtype=dtype.name)
    return _Operand(name, elements, dtype, axis)


def _unpacked(context: Context, pairs: Value, axis: int) -> Value:
    """The floats of e2m1 whose codes lie two to a byte along an axis."""
    low, high = binary(context, "and", pairs, 15), binary(context, "shr", pairs, 4)
    codes = context.emit("join", low, high)
    *kept, rows, columns = pairs.type.shape
    if axis == -2:
        axis = len(kept)
        codes = context.emit("transpose", codes, axes=(*range(axis + 1), axis + 2, axis + 1))
    shape = (*kept, rows, 2 * columns) if axis == -1 else (*kept, 2 * rows, columns)
    return _float_of_e2m1(context, context.emit("reshape", codes, shape=shape))


def _float_of_e2m1(context: Context, codes: Value) -> Value:
    """Codes of 4 bits as float32: moved to a half's bits they are 2**14 times too small.

    A subnormal stays one, so that no case is apart.
    """
    wide = context.cast(codes, uint16)
    magnitude = binary(context, "shl", binary(context, "and", wide, 7), 9)
    sign = binary(context, "shl", binary(context, "and", wide, 8), 12)
    bits = binary(context, "or", magnitude, sign)
    small = context.cast(context.emit("bitcast", bits, dtype=float16.name), float32)
    return binary(context, "mul", small, 2.0**14)


def _scale_values(context: Context, name: str, scale: Value) -> Value:
    """Scales as float32."""
    if scale.type.dtype == float8_e4m3fn:
        return context.cast(scale, float32)
    if scale.type.dtype == int8:
        scale = context.emit("bitcast", scale, dtype=uint8.name)
    require(scale.type.dtype == uint8, "dot_scaled: {}_scale must be uint8 or float8_e4m3fn, got "
            "{}", name, scale.type)
    bits = binary(context, "shl", context.emit("cast", scale, dtype="uint32"), _MANTISSA_BITS)
    bits = where.rule(context, binary(context, "eq", scale, 0), _MIN_SCALE, bits)
    bits = where.rule(context, binary(context, "eq", scale, _NAN_SCALE), _NAN, bits)
    return context.emit("bitcast", bits, dtype=float32.name)

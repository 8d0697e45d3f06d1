"""Functions of triton.language whose meaning depends on the dialect: rules on values.

Those that have one meaning in both dialects are the functions of `typing/functions`.
"""

from __future__ import annotations

import warnings

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import (
    DType, PointerType, bfloat16, bool_, float32, int32, int64, int8, uint32, uint64, uint8,
)
from blocknumba.tile_ir.ops.elementwise import APPROXIMATE
from blocknumba.typing import promotion as weak
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.function import BlockFunction, function
from blocknumba.typing.functions import (
    count, create, dot as dots, memory, order, reduce, scan, shape, spans, statistics,
)
from blocknumba.typing.functions.elementwise import computed
from blocknumba.typing.static_values import static, static_choice, static_dtype, static_int
from blocknumba.typing.triton import promotion
from blocknumba.typing.triton.descriptors import checked_on
from blocknumba.typing.triton.operators import (
    as_value, binary, cast as cast_value, converted, divide, saturates, unary,
)
from blocknumba.typing.values import Array, BlockPointer, BlockType, unwrapped

WARP_SIZE = 32  # Source: PTX ISA, "Machine-Specific Parameters", WARP_SZ
DOT_BITS = 256  # of K.  Source: PTX ISA, wgmma.mma_async, shapes
NO_NAN, ALL_NAN = "none", "all"  # of propagate_nan
_PRECISIONS = {"tf32": "tf32", "tf32x3": "tf32x3", "ieee": "ieee", "bf16x3": "tf32x3",
               "bf16x6": "ieee"}


# elementwise ------------------------------------------------------------------------------------

def _of_float(name: str, doc: str) -> BlockFunction:
    def rule(context, x):
        value = as_value(context, x, name)
        require(value.type.dtype.is_float, "{}: given {}, accepted floats", name, value.type,
                hint="cast it: x.to(tl.float32)")
        if APPROXIMATE in OPS[name].attributes and value.type.dtype == float32:
            return context.emit(name, value, approximate=True)
        return computed(context, name, value)

    rule.__doc__ = doc
    return BlockFunction(rule, name)


MATH = {name: _of_float(name, OPS[name].doc) for name in (
    "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil")}


@function
def abs_(context, x):
    """|x|."""
    value = as_value(context, x, "abs")
    if value.type.dtype.kind in ("uint", "bool"):
        return value
    return computed(context, "absolute", value)


@function
def sigmoid(context, x):
    """1 / (1 + exp(-x))."""
    grown = binary(context, "add", 1, MATH["exp"].rule(context, unary(context, "neg", x)))
    return binary(context, "div", 1, grown)


def _logical(name: str, op: str) -> BlockFunction:
    def rule(context, x, y):
        values = [as_value(context, operand, name) for operand in (x, y)]
        values = [value if value.type.dtype == bool_ else binary(context, "ne", value, 0)
                  for value in values]
        return context.emit(op, *context.broadcast_together(values, name))

    rule.__doc__ = f"x {op} y of bools; numbers count as != 0."
    return BlockFunction(rule, name)


logical_and, logical_or = _logical("logical_and", "and"), _logical("logical_or", "or")


@function
def where(context, condition, x, y):
    """x where condition, else y; the three are broadcast together.

    condition: bool; numbers count as != 0.   x, y: numbers, promoted; pointers of one dtype.
    """
    given = as_value(context, condition, "where")
    if given.type.dtype != bool_ and not context.is_inference:
        warnings.warn(f"where: given a condition of {given.type.dtype}, which counts as != 0; "
                      "compare it", UserWarning, stacklevel=2)
    chosen = context.cast(given, bool_)
    pointers = [memory.as_pointer(context, operand) for operand in (x, y)]
    if None not in pointers:
        values = pointers
    else:
        require_numbers("where", x, y)
        values = converted(context, "where", x, y, promotion.result_dtype(x, y))
    return context.emit("select", *context.broadcast_together([chosen, *values], "where"))


def _extreme(name: str, op: str, propagating: str) -> BlockFunction:
    def rule(context, x, y, propagate_nan=NO_NAN):
        x, y = (_widened(context, as_value(context, v, name)) for v in (x, y))
        dtype = promotion.result_dtype(x, y)
        return _extreme_of(context, op, propagating, propagate_nan,
                           *converted(context, name, x, y, dtype))

    rule.__doc__ = (f"The {'greater' if op == 'fmax' else 'lesser'}; of one that is NaN, the other "
                    "one, unless propagate_nan is PropagateNan.ALL.")
    return BlockFunction(rule, name)


def _extreme_of(context: Context, op: str, propagating: str, propagate_nan: object, x: Value,
                y: Value) -> Value:
    chosen = static_choice("propagate_nan", propagate_nan, (NO_NAN, ALL_NAN))
    is_float = x.type.dtype.is_float
    return computed(context, op if is_float and chosen == NO_NAN else propagating, x, y)


def _widened(context: Context, value: Value) -> Value:
    """A value, of bfloat16 in float32."""
    return context.cast(value, float32) if value.type.dtype == bfloat16 else value


maximum = _extreme("maximum", "fmax", "maximum")
minimum = _extreme("minimum", "fmin", "minimum")


@function
def clamp(context, x, min, max, propagate_nan=NO_NAN):  # noqa: A002
    """x limited to [min, max]; NaN becomes min, unless propagate_nan is PropagateNan.ALL."""
    low = maximum.rule(context, x, min, propagate_nan)
    return minimum.rule(context, low, max, propagate_nan)


@function
def fma(context, x, y, z):
    """x * y + z with one rounding."""
    dtype = promotion.result_dtype(x, y)
    x, y = converted(context, "fma", x, y, dtype)
    x, z = converted(context, "fma", x, z, promotion.result_dtype(x, z))
    y, z = converted(context, "fma", y, z, z.type.dtype)
    values = context.broadcast_together([x, y, z], "fma")
    if not z.type.dtype.is_float:
        return context.emit("add", context.emit("mul", *values[:2]), values[2])
    return computed(context, "fma", *values)


def _operator(name: str, op: str) -> BlockFunction:
    def rule(context, x, y, sanitize_overflow=True):
        return binary(context, op, as_value(context, x, name), as_value(context, y, name))

    rule.__doc__ = f"The operator {name}.   sanitize_overflow: of Triton's debug mode; ignored."
    return BlockFunction(rule, name)


add, sub, mul = (_operator(name, name) for name in ("add", "sub", "mul"))


@function
def fdiv(context, x, y, ieee_rounding=False):
    """x / y of floats.   ieee_rounding: correctly rounded, and not to 2 ulps."""
    dtype = promotion.result_dtype(x, y)
    require(dtype.is_float, "fdiv: given {} and {}, accepted floats", describe(x), describe(y))
    exact = static("fdiv: ieee_rounding", ieee_rounding)
    return divide(context, *converted(context, "fdiv", x, y, dtype), exact=bool(exact))


@function
def div_rn(context, x, y):
    """x / y of float32, correctly rounded."""
    dtype = promotion.result_dtype(x, y)
    return divide(context, *converted(context, "div_rn", x, y, dtype), exact=True)


@function
def sqrt_rn(context, x):
    """The square root, correctly rounded."""
    return computed(context, "sqrt", as_value(context, x, "sqrt_rn"))


@function
def umulhi(context, x, y):
    """High half of the product of two 32- or 64-bit integers taken as unsigned."""
    dtype = promotion.result_dtype(x, y)
    return context.emit("umulhi", *converted(context, "umulhi", x, y, dtype))


# tiles ------------------------------------------------------------------------------------------

@function
def cast(context, x, dtype, fp_downcast_rounding=None, bitcast=False):
    """x converted to dtype; integers saturate, 8-bit floats too.

    Pointers are converted to int64 and uint64, which are their addresses, and to other pointers,
    and these integers to pointers.
    fp_downcast_rounding, bitcast: as of blocknumba.cast.
    """
    dtype = dtype.scalar if isinstance(dtype, BlockType) else dtype
    pointer = memory.as_pointer(context, x)
    if pointer is not None or isinstance(dtype, PointerType):
        return _cast_pointer(context, x, pointer, dtype)
    rounding = static("cast: fp_downcast_rounding", fp_downcast_rounding)
    if static("cast: bitcast", bitcast) or rounding is not None:
        value, to = as_value(context, x, "cast"), static_dtype("cast", dtype)
        if rounding == "rtne" and not bitcast and saturates(value.type.dtype, to):
            return cast_value(context, value, to)
        return create.cast.rule(context, value, dtype, rounding, bitcast)
    to = static_dtype("cast", dtype)
    if weak.is_literal(x):
        return cast_value(context, as_value(context, x, "cast"), to)
    require_numbers("cast", x)
    return cast_value(context, context.value(unwrapped(x), what="cast"), to)


def _cast_pointer(context: Context, x: object, pointer: Value | None, dtype: object) -> Value:
    if isinstance(dtype, PointerType) and pointer is not None and pointer.type.dtype == dtype:
        return pointer
    number = (as_value(context, x, "cast") if pointer is None
              else context.emit("address", pointer))
    if isinstance(dtype, PointerType):
        if number.type.dtype not in (int64, uint64):
            raise BlockTypeError(f"cast: given {number.type} and {dtype}, accepted int64, uint64 "
                                 "and pointers to be pointers", hint="x_ptr.dtype is the type of "
                                 "the pointer; that of its elements is x_ptr.dtype.element_ty")
        return context.emit("pointer_at", number, dtype=dtype.pointee.name)
    to = static_dtype("cast", dtype)
    require(to in (int64, uint64, bool_), "cast: given a pointer and {}, accepted int64, uint64, "
            "bool and pointers", to)
    if to == bool_:
        zero = context.broadcast_to(context.constant(0, int64), number.type.shape)
        return context.emit("ne", number, zero)
    return context.cast(number, to)


@function
def full(context, shape, value, dtype):
    """A tile of shape whose elements are value, converted to dtype."""
    scalar = cast.rule(context, value, dtype)
    require(scalar.type.is_scalar, "full: value must be a scalar, got {}", scalar.type)
    return create.full.rule(context, shape, scalar, None)


@function
def load(context, pointer, mask=None, other=None, boundary_check=(), padding_option="",
         cache_modifier="", eviction_policy="", volatile=False):
    """As of blocknumba; pointers broadcast with mask, and other is converted as by cast.

    Block pointers are checked on the axes that boundary_check names.
    """
    pointer = checked_on("load", pointer, boundary_check)
    target, to = memory.as_pointer(context, pointer), element_dtype(pointer)
    if target is not None and isinstance(mask, Value) and target.type.shape and mask.type.shape:
        pointer, mask = context.broadcast_together([target, mask], "load: mask")
    if type(other) is int and to is not None and to.is_integer:
        other = (other - to.minimum) % (1 << to.bits) + to.minimum
    return memory.load.rule(context, pointer, mask, _element(context, pointer, other),
                            boundary_check, padding_option, cache_modifier, eviction_policy,
                            volatile)


@function
def store(context, pointer, value, mask=None, boundary_check=(), cache_modifier="",
          eviction_policy=""):
    """Write value, converted as by cast, to pointer where mask is true; as load."""
    pointer = checked_on("store", pointer, boundary_check)
    return memory.store.rule(context, pointer, _element(context, pointer, value), mask,
                             boundary_check, cache_modifier, eviction_policy)


def _element(context: Context, pointer: object, value: object) -> object:
    """value converted to the dtype of the elements at pointer; of pointers the addresses."""
    to = element_dtype(pointer)
    if to is None or not isinstance(value, Value):
        return value
    if value.type.is_pointer:
        return _cast_pointer(context, value, value, to)
    return cast_value(context, value, to)


def element_dtype(pointer: object) -> DType | None:
    """The dtype of the elements that something points to; None of what is no pointer."""
    if isinstance(pointer, Array):
        return pointer.dtype
    if isinstance(pointer, BlockPointer):
        return pointer.array.dtype
    is_pointer = isinstance(pointer, Value) and pointer.type.is_pointer
    return pointer.type.dtype.pointee if is_pointer else None


@function
def dot(context, input, other, acc=None, input_precision=None, allow_tf32=None,  # noqa: A002
        max_num_imprecise_acc=None, out_dtype=float32):
    """input @ other, plus acc when it is given.

    input_precision, of float32: "tf32" (the default), "tf32x3", "ieee"; "bf16x3" is done as
    "tf32x3" and "bf16x6" as "ieee", which are at least as exact.   allow_tf32: False for "ieee".
    out_dtype: of the result: float32, or float16 of float16; of integers it is int32.
    max_num_imprecise_acc: accepted; sums are those of the tensor cores.
    """
    limit = static("dot: max_num_imprecise_acc", max_num_imprecise_acc)
    if limit is not None and isinstance(input, Value) and weak.is_float8(input.type.dtype):
        depth = input.type.shape[-1]
        require(limit <= depth, "dot: max_num_imprecise_acc: given {}, accepted at most K, {}",
                limit, depth)
    _require_depth(input)
    given = static("dot: input_precision", input_precision)
    allowed = static("dot: allow_tf32", allow_tf32)
    require(given is None or allowed is None,
            "dot: given input_precision and allow_tf32, accepted one of them")
    chosen = given or ("ieee" if allowed is not None and not allowed else "tf32")
    precision = _PRECISIONS[static_choice("dot: input_precision", chosen, tuple(_PRECISIONS))]
    if isinstance(input, Value) and input.type.dtype in (int8, uint8):
        out_dtype = int32
    elif acc is not None:
        out_dtype = None
    return dots.dot.rule(context, input, other, acc, None, None, None, out_dtype, precision)


def _require_depth(x: object) -> None:
    """Raise for products of few elements: those that the instructions take, K * bits = 256."""
    if isinstance(x, Value) and x.type.shape and not x.type.is_pointer:
        depth, bits = x.type.shape[-1], x.type.dtype.bits
        require(depth * bits >= DOT_BITS, "dot: given K = {} of {}, accepted {} or more", depth,
                x.type.dtype, DOT_BITS // bits, hint="pad the tiles with zeros along K")


# reductions and scans ---------------------------------------------------------------------------

def _sum_dtype(name: str, value: Value, dtype: object) -> DType:
    """The dtype in which elements are added."""
    if dtype is not None:
        return static_dtype(name, dtype)
    own = value.type.dtype
    if own.is_float or own.bits >= 32 and own != bool_:
        return own
    return int32 if own.kind == "int" else uint32


@function
def sum(context, input, axis=None, keep_dims=False, dtype=None):  # noqa: A001, A002
    """The sum along axis, or of all elements: of narrow integers in int32 or uint32.

    dtype: in which elements are added; of bool, integers of one bit.
    """
    value = as_value(context, input, "sum")
    wide = cast_value(context, value, _sum_dtype("sum", value, dtype))
    if wide.type.dtype == bool_:
        return reduce.xor_sum.rule(context, wide, axis, keep_dims)
    return reduce.sum.rule(context, wide, axis, keep_dims, dtype=wide.type.dtype)


def _extreme_along(name: str, kind: str, arg: BlockFunction) -> BlockFunction:
    def rule(context, input, axis=None, return_indices=False,  # noqa: A002
             return_indices_tie_break_left=True, keep_dims=False):
        value = _widened(context, as_value(context, input, name))
        if static(f"{name}: return_indices", return_indices):
            return (_along(context, kind, value, axis, keep_dims),
                    _index(context, arg, value, axis, return_indices_tie_break_left, keep_dims))
        if value.type.dtype.bits < 32:
            value = context.cast(value, float32 if value.type.dtype.is_float else int32)
        return _along(context, kind, value, axis, keep_dims)

    rule.__doc__ = f"The {name}imum along axis, or of all elements; NaN loses."
    return BlockFunction(rule, name)


def _along(context: Context, kind: str, value: Value, axis: object, keep_dims: object) -> Value:
    """The extreme along axis but NaN."""
    return getattr(statistics, "nan" + kind).rule(context, value, axis, keep_dims=keep_dims)


def _index(context: Context, arg: BlockFunction, value: Value, axis: object, tie_break_left: object,
           keep_dims: object) -> Value:
    """The index of the extreme element that is not NaN."""
    if value.type.dtype.is_float:
        nothing = float("-inf") if arg is reduce.argmax else float("inf")
        fill = context.broadcast_to(context.constant(nothing, value.type.dtype), value.type.shape)
        value = context.emit("select", context.emit("isnan", value), fill, value)
    return arg.rule(context, value, axis, tie_break_left, keep_dims)


max = _extreme_along("max", "max", reduce.argmax)  # noqa: A001
min = _extreme_along("min", "min", reduce.argmin)  # noqa: A001


def _arg(name: str, arg: BlockFunction) -> BlockFunction:
    def rule(context, input, axis, tie_break_left=True, keep_dims=False):  # noqa: A002
        value = _widened(context, as_value(context, input, name))
        return _index(context, arg, value, axis, tie_break_left, keep_dims)

    rule.__doc__ = f"The index of the {name[3:]}imum along axis; NaN loses."
    return BlockFunction(rule, name)


argmax, argmin = _arg("argmax", reduce.argmax), _arg("argmin", reduce.argmin)


def _cumulative(name: str, base: BlockFunction, is_sum: bool) -> BlockFunction:
    def rule(context, input, axis=0, reverse=False, dtype=None):  # noqa: A002
        value = _widened(context, as_value(context, input, name))
        if is_sum:
            value = cast_value(context, value, _sum_dtype(name, value, dtype))
        if value.type.dtype == bool_:  # the product of bits
            wide = context.cast(value, int32)
            return context.cast(base.rule(context, wide, axis, reverse), bool_)
        return base.rule(context, value, axis, reverse, dtype=value.type.dtype)

    rule.__doc__ = f"The cumulative {'sum' if is_sum else 'product'} along axis."
    return BlockFunction(rule, name)


cumsum = _cumulative("cumsum", scan.cumsum, True)
cumprod = _cumulative("cumprod", scan.cumprod, False)


# order, along the last axis unless another is named ---------------------------------------------

@function
def sort(context, x, dim=None, descending=False):
    """The elements along dim in order; NaN is the greatest."""
    return order.sort.rule(context, as_value(context, x, "sort"), _last(dim), descending)


@function
def topk(context, x, k, dim=None, descending=True):
    """The k greatest elements along dim, the greatest first; the k least unless descending."""
    return order.topk.rule(context, as_value(context, x, "topk"), k, _last(dim), descending)


@function
def histogram(context, input, num_bins, mask=None):  # noqa: A002
    """As `bn.histogram`; debug=True refuses numbers beyond the bins, undefined in Triton."""
    counts = count.histogram.rule(context, input, num_bins, mask)
    count.report_beyond_bins(context, input, counts, mask)
    return counts


@function
def unsqueeze(context, x, dim):
    """x with an axis of one element more, at dim."""
    return shape.expand_dims.rule(context, x, dim)


@function
def range_(context, start, stop=None, step=1, num_stages=None, loop_unroll_factor=None,
           flatten=False, warp_specialize=None, disallow_acc_multi_buffer=False,
           disable_licm=False):
    """Python's range, of ints known at run time.

    num_stages: as of blocknumba.range; 0 is 1, and more than a loop can have are as many as it can.
    The others: hints, as of blocknumba.range.
    """
    if num_stages is not None:
        count = static_int("range: num_stages", num_stages)
        num_stages = spans.MAX_STAGES if count > spans.MAX_STAGES else count or 1
    return spans.range_.rule(context, start, stop, step, num_stages, loop_unroll_factor, flatten,
                             warp_specialize, disallow_acc_multi_buffer, disable_licm)


@function
def num_warps(context):
    """The warps of a program, which the caller has to give."""
    count = context.options.num_warps
    require(count is not None, "num_warps: the compiler chooses it after this, accepted in kernels "
            "whose caller gives it", error=BlockValueError,
            hint="pass num_warps= to the launch or to the Config")
    return count


@function
def num_threads(context):
    """The threads of a program: 32 for each of its warps, whose number the caller has to give."""
    return num_warps.rule(context) * WARP_SIZE


@function
def condition(context, arg, disable_licm=False):
    """The condition of a while loop: arg itself.   disable_licm: without effect."""
    return arg


def _last(dim: object) -> object:
    return -1 if dim is None else dim


METHODS = {
    **{name: MATH[name] for name in MATH}, "to": cast, "cast": cast, "abs": abs_, "sum": sum,
    "max": max, "min": min, "argmax": argmax, "argmin": argmin, "cumsum": cumsum,
    "cumprod": cumprod, "store": store, "sort": sort, "topk": topk, "sigmoid": sigmoid,
    "sqrt_rn": sqrt_rn, "logical_and": logical_and, "logical_or": logical_or,
    "histogram": histogram, "reduce_or": reduce.reduce_or,
}

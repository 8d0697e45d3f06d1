"""Means, variances and counts along axes, and reductions that leave NaN out."""

from __future__ import annotations

import inspect
import math

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, bool_, float32, int32
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe
from blocknumba.typing.function import BlockFunction, described, function
from blocknumba.typing.functions import reduce
from blocknumba.typing.functions.elementwise import FLOAT_FUNCTIONS, binary, where as choose
from blocknumba.typing.functions.reduce import as_tile, mask_of, reduced
from blocknumba.typing.functions.scan import cumprod, cumsum
from blocknumba.typing.static_values import static, static_axes


@function
def mean(context, x, axis=None, keep_dims=False, keepdims=False, *, where=None):
    """The mean along axis, of x's dtype; of integers float32, of those of 64 bits float64.

    where: bool, broadcast to x: which elements count; the mean of none is NaN.  Leave out those
    that were loaded outside an array: they are 0, and counted.
    Source: numpy.mean.

    Example:
    >>> bn.evaluate(bn.mean, [[1, 2], [3, 5]], axis=1)
    array([1.5, 4. ])
    """
    wide, dtype = as_floats(context, "mean", x)
    mask = mask_of(context, "mean", wide, where)
    count = _count(context, "mean", wide, axis, keep_dims or keepdims, mask)
    total = reduced(context, "sum", wide, axis, keep_dims or keepdims, mask, counts=True)
    return context.cast(binary(context, "div", total, count), dtype)


@function
def var(context, x, axis=None, keep_dims=False, keepdims=False, *, ddof=0, where=None):
    """The mean squared distance from the mean along axis.

    ddof: a number that the count is lessened by: 1 for the variance of a sample.  The result
    keeps its digits also of numbers that are nearly equal: what the mean loses when it is rounded
    is taken into account.
    where: bool, broadcast to x: which elements count; the variance of none is NaN.  Leave out
    those that were loaded outside an array: they are 0, and counted.
    Source: numpy.var.

    Example:
    >>> bn.evaluate(bn.var, [1.0, 2.0, 3.0, 4.0])
    np.float64(1.25)
    >>> bn.evaluate(bn.var, [1.0, 2.0, 3.0, 4.0], ddof=1)
    np.float64(1.6666666666666667)
    """
    result, dtype = _variance(context, "var", x, axis, keep_dims or keepdims, ddof, where)
    return context.cast(result, dtype)


@function
def std(context, x, axis=None, keep_dims=False, keepdims=False, *, ddof=0, where=None):
    """The square root of the variance along axis, as of var.

    Source: numpy.std.

    Example:
    >>> bn.evaluate(bn.std, [1.0, 3.0, 1.0, 3.0])
    np.float64(1.0)
    """
    result, dtype = _variance(context, "std", x, axis, keep_dims or keepdims, ddof, where)
    return context.cast(FLOAT_FUNCTIONS["sqrt"].rule(context, result), dtype)


@function
def welford(context, x, axis=None, keep_dims=False, keepdims=False, *, where=None):
    """(mean, m2, count) along axis: m2 is the sum of squared distances from the mean.

    Those of several parts of the data are combined by welford_combine; m2 / count is the variance.
    All three are float32, float64 of float64 and of 64-bit integers; the mean of none is 0.
    where: bool, broadcast to x: which elements count.  Leave out those that were loaded outside an
    array: they are 0, and counted.
    Source: Chan, Golub, LeVeque, "Algorithms for Computing the Sample Variance", 1983.

    Example:
    >>> bn.evaluate(bn.welford, [1.0, 2.0, 3.0, 4.0])
    (np.float64(2.5), np.float64(5.0), np.float64(4.0))
    """
    wide, _ = as_floats(context, "welford", x)
    middle, total, count = _moments(context, "welford", wide, axis, keep_dims or keepdims, where)
    dtype = wide.type.dtype
    counts = context.value(count, dtype)
    return middle, total, context.broadcast_to(counts, total.type.shape)


@function
def ptp(context, x, axis=None, keep_dims=False, keepdims=False):
    """The greatest element less the least along axis; integers wrap; NaN if there is one.

    Source: numpy.ptp.

    Example:
    >>> bn.evaluate(bn.ptp, [3, 9, 4, 5])
    np.int64(6)
    """
    tile = as_tile(context, "ptp", x)
    require(tile.type.dtype != bool_, "ptp: given {}, accepted numbers", tile.type)
    greatest, least = (reduced(context, kind, tile, axis, keep_dims or keepdims)
                       for kind in ("max", "min"))
    return binary(context, "sub", greatest, least)


@function
def count_nonzero(context, x, axis=None, keep_dims=False, keepdims=False):
    """Number of elements along axis that are not 0; NaN is not.  int32.

    Source: numpy.count_nonzero.

    Example:
    >>> bn.evaluate(bn.count_nonzero, [[0, 2], [1, 3]], axis=1)
    array([1, 2], dtype=int32)
    """
    tile = context.cast(as_tile(context, "count_nonzero", x), bool_)
    return reduced(context, "sum", context.cast(tile, int32), axis, keep_dims or keepdims)


@function
def logsumexp(context, x, axis=None, keep_dims=False, keepdims=False, *, where=None):
    """log(sum(exp(x))) along axis, without overflow; floats of 16 bits are computed in float32.

    where: bool, broadcast to x: which elements count; the result of none is -inf.  Leave out those
    that were loaded outside an array: they are 0.
    Source: scipy.special.logsumexp.

    Example:
    >>> bn.evaluate(bn.logsumexp, [1000.0, 1000.0])
    np.float64(1000.6931471805599)
    """
    wide, dtype = as_floats(context, "logsumexp", x)
    shape = _reduced_shape("logsumexp", wide, axis, keep_dims or keepdims)
    exp, log, isfinite = (FLOAT_FUNCTIONS[name].rule for name in ("exp", "log", "isfinite"))
    mask = mask_of(context, "logsumexp", wide, where)
    greatest = reduced(context, "max", wide, axis, True, mask)
    # infinite and NaN ones decide the sum, not the shift
    shift = choose.rule(context, isfinite(context, greatest), greatest, 0.0)
    shifted = exp(context, binary(context, "sub", wide, shift))
    total = reduced(context, "sum", shifted, axis, keep_dims or keepdims, mask)
    back = _shaped(context, shift, shape)
    return context.cast(binary(context, "add", log(context, total), back), dtype)


def as_floats(context: Context, name: str, x: object) -> tuple[Value, DType]:
    """x in the dtype in which means are computed, and the dtype that they are rounded to."""
    tile = as_tile(context, name, x)
    dtype = promotion.float_dtype((tile,))
    return context.cast(tile, float32 if dtype.bits < 32 else dtype), dtype


def _count(context: Context, name: str, wide: Value, axis: object, keep: object,
           mask: Value | None) -> Value | float:
    """Number of elements along axis that count, as a float."""
    if mask is None:
        return float(wide.type.size // math.prod(_reduced_shape(name, wide, axis, keep)))
    included = reduced(context, "sum", context.cast(mask, int32), axis, keep)
    return context.cast(included, wide.type.dtype)


def _moments(context: Context, name: str, wide: Value, axis: object, keep: object,
             where: object) -> tuple[Value, Value, Value | float]:
    """The mean, the sum of squared distances from it, and the count; the mean of none is 0."""
    mask = mask_of(context, name, wide, where)
    kept = _count(context, name, wide, axis, True, mask)
    divisor = kept if mask is None else binary(context, "maximum", kept, 1.0)

    def mean_of(tile: Value) -> Value:
        total = reduced(context, "sum", tile, axis, True, mask, counts=True)
        return binary(context, "div", total, divisor)

    middle = mean_of(wide)
    distance = binary(context, "sub", wide, middle)
    rest = mean_of(distance)  # what the mean lost when it was rounded
    squares = reduced(context, "sum", binary(context, "mul", distance, distance), axis, True, mask,
                      counts=True)
    lost = binary(context, "mul", binary(context, "mul", rest, rest), kept)
    total = binary(context, "maximum", binary(context, "sub", squares, lost), 0.0)
    shape = _reduced_shape(name, wide, axis, keep)
    middle, total = (_shaped(context, value, shape)
                     for value in (binary(context, "add", middle, rest), total))
    return middle, total, kept if mask is None else _shaped(context, kept, shape)


def _reduced_shape(name: str, tile: Value, axis: object, keep: object) -> tuple[int, ...]:
    """The shape of a reduction of tile along axis."""
    shape = tile.type.shape
    axes = static_axes(name, axis, len(shape))
    if static("keep_dims", keep):
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def _shaped(context: Context, value: Value, shape: tuple[int, ...]) -> Value:
    """A value whose axes of extent 1 are dropped, or put back."""
    return value if value.type.shape == shape else context.emit("reshape", value, shape=shape)


def _variance(context: Context, name: str, x: object, axis: object, keep: object, ddof: object,
              where: object, too_few: float = 0.0) -> tuple[Value, DType]:
    """The variance before it is rounded to a dtype, and that dtype.

    too_few: what it is divided by where ddof is not less than the count.
    """
    wide, dtype = as_floats(context, name, x)
    less = static(f"{name}: ddof", ddof)
    if isinstance(less, bool) or not isinstance(less, (int, float)):
        raise BlockTypeError(f"{name}: ddof: given {describe(less)}, accepted a number")
    _, total, count = _moments(context, name, wide, axis, keep, where)
    if less and isinstance(count, float):
        count = count - less if count > less else too_few
    elif less:
        freedom = binary(context, "sub", count, less)
        count = choose.rule(context, binary(context, "gt", freedom, 0), freedom, too_few)
    return binary(context, "div", total, count), dtype


# NaN left out ---------------------------------------------------------------------------------

def _numbers_of(context: Context, name: str, tile: Value, where: object) -> object:
    """A mask of the elements that count and are no NaN."""
    if not tile.type.dtype.is_float:
        return where
    is_number, mask = binary(context, "eq", tile, tile), mask_of(context, name, tile, where)
    return is_number if mask is None else binary(context, "and", is_number, mask)


@function
def nanvar(context, x, axis=None, keep_dims=False, keepdims=False, *, ddof=0, where=None):
    """The variance along axis, as of var, of the elements but NaN.

    where: bool, broadcast to x: which elements count besides; where no more than ddof do, the
    result is NaN.   Source: numpy.nanvar, without its warning.

    Example:
    >>> bn.evaluate(bn.nanvar, [1.0, np.nan, 2.0, 3.0])
    np.float64(0.6666666666666666)
    """
    where = _numbers_of(context, "nanvar", as_tile(context, "nanvar", x), where)
    result, dtype = _variance(context, "nanvar", x, axis, keep_dims or keepdims, ddof, where,
                              math.nan)
    return context.cast(result, dtype)


@function
def nanstd(context, x, axis=None, keep_dims=False, keepdims=False, *, ddof=0, where=None):
    """The square root of the variance along axis, as of nanvar.

    Source: numpy.nanstd, without its warning.

    Example:
    >>> bn.evaluate(bn.nanstd, [1.0, np.nan, 3.0, np.nan])
    np.float64(1.0)
    """
    where = _numbers_of(context, "nanstd", as_tile(context, "nanstd", x), where)
    result, dtype = _variance(context, "nanstd", x, axis, keep_dims or keepdims, ddof, where,
                              math.nan)
    return context.cast(FLOAT_FUNCTIONS["sqrt"].rule(context, result), dtype)


def _without_nan(of: BlockFunction, doc: str) -> BlockFunction:
    """A reduction of the elements that are no NaN, with the parameters of another one."""
    name = f"nan{of.__name__}"

    def rule(context, x, *arguments, where=None, **keywords):
        tile = as_tile(context, name, x)
        static_axes(name, arguments[0] if arguments else keywords.get("axis"), len(tile.type.shape))
        where = _numbers_of(context, name, tile, where)
        return of.rule(context, tile, *arguments, where=where, **keywords)

    rule.__signature__ = inspect.signature(of.rule)
    return described(rule, name, doc)


def _extreme_without_nan(of: BlockFunction, kind: str, doc: str) -> BlockFunction:
    name = f"nan{of.__name__}"

    def rule(context, x, axis=None, keep_dims=False, keepdims=False, *, initial=None, where=None):
        tile = as_tile(context, name, x)
        own = kind if tile.type.dtype.is_float else of.__name__
        return reduced(context, own, tile, axis, keep_dims or keepdims, where, initial)

    return described(rule, name, doc)


def _cumulative_without_nan(of: BlockFunction, instead: int, doc: str) -> BlockFunction:
    name = f"nan{of.__name__}"

    def rule(context, x, *arguments, **keywords):
        tile = as_tile(context, name, x)
        if tile.type.dtype.is_float:
            other = context.constant(instead, tile.type.dtype)
            tile = choose.rule(context, binary(context, "eq", tile, tile), tile, other)
        return of.rule(context, tile, *arguments, **keywords)

    rule.__signature__ = inspect.signature(of.rule)
    return described(rule, name, doc)


_WHERE = "where: bool, broadcast to x: which elements count besides"
nanmax = _extreme_without_nan(reduce.max, "fmax", """The greatest element along axis but NaN.

    where: bool, broadcast to x: which elements count; NaN where none does, of integers the least.
    initial: a number that counts too, as an element.
    Source: numpy.nanmax, without its warning.

    Example:
    >>> bn.evaluate(bn.nanmax, [1.0, np.nan, 3.0, 2.0])
    np.float64(3.0)""")
nanmin = _extreme_without_nan(reduce.min, "fmin", """The least element along axis but NaN.

    where: bool, broadcast to x: which elements count; NaN where none does, of integers the
    greatest.   initial: a number that counts too, as an element.
    Source: numpy.nanmin, without its warning.

    Example:
    >>> bn.evaluate(bn.nanmin, [1.0, np.nan, 3.0, 2.0])
    np.float64(1.0)""")
nansum = _without_nan(reduce.sum, f"""The sum along axis, as of sum, of the elements but NaN.

    {_WHERE}; the sum of none is 0.
    Source: numpy.nansum.

    Example:
    >>> bn.evaluate(bn.nansum, [1.0, np.nan, 3.0, 2.0])
    np.float64(6.0)""")
nanprod = _without_nan(reduce.prod, f"""The product along axis, as prod, of the elements but NaN.

    {_WHERE}; the product of none is 1.
    Source: numpy.nanprod.

    Example:
    >>> bn.evaluate(bn.nanprod, [1.0, np.nan, 3.0, 2.0])
    np.float64(6.0)""")
nanargmax = _without_nan(reduce.argmax, f"""Index of the greatest element along axis but NaN.

    int32.   {_WHERE}; 0 where none does.
    Source: numpy.nanargmax, which raises where all are NaN.

    Example:
    >>> bn.evaluate(bn.nanargmax, [1.0, np.nan, 3.0, 2.0])
    np.int32(2)""")
nanargmin = _without_nan(reduce.argmin, f"""Index of the least element along axis but NaN.

    int32.   {_WHERE}; 0 where none does.
    Source: numpy.nanargmin, which raises where all are NaN.

    Example:
    >>> bn.evaluate(bn.nanargmin, [np.nan, 1.0, 3.0, 2.0])
    np.int32(1)""")
nanmean = _without_nan(mean, f"""The mean along axis, as of mean, of the elements but NaN.

    {_WHERE}; the mean of none is NaN.
    Source: numpy.nanmean, without its warning.

    Example:
    >>> bn.evaluate(bn.nanmean, [1.0, np.nan, 3.0, 2.0])
    np.float64(2.0)""")
nancumsum = _cumulative_without_nan(cumsum, 0, """Sums of the elements up to each, NaN being 0.

    The rest as of cumsum.   Source: numpy.nancumsum.

    Example:
    >>> bn.evaluate(bn.nancumsum, [1.0, np.nan, 3.0, 2.0])
    array([1., 1., 4., 6.])""")
nancumprod = _cumulative_without_nan(cumprod, 1, """Products of the elements up to each.

    NaN counts as 1; the rest as of cumprod.   Source: numpy.nancumprod.

    Example:
    >>> bn.evaluate(bn.nancumprod, [1.0, np.nan, 3.0, 2.0])
    array([1., 1., 3., 6.])""")

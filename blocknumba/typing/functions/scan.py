"""Scans along an axis, and reductions by the user's own functions."""

from __future__ import annotations

import math
from collections.abc import Callable

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.types import DType, TileType, bool_, float32
from blocknumba.tile_ir.ops.control import yield_
from blocknumba.tile_ir.ops.scan import Combination, asserted, encoded
from blocknumba.typing.context import Context, describe
from blocknumba.typing.function import BlockFunction, function
from blocknumba.typing.functions.reduce import as_tile, kept_axes, sum_dtype
from blocknumba.typing.static_values import static, static_axes, static_axis, static_dtype
from blocknumba.typing.values import Function


@function
def associative_scan(context, tiles, axis, combine_fn, reverse=False):
    """Prefixes along axis of a function: element i combines the elements 0 to i.

    tiles: one, or a tuple of tiles of one shape; the result is the same, with the same dtypes.
    combine_fn: any function of two elements of each tile, the left ones first, that returns one
    of each: of (x, y), combine_fn(x0, y0, x1, y1) returns (x, y).  It must be associative, need
    not be commutative, and computes with scalars: no loads, stores or loops of run time.  Its
    asserts are checked with debug=True, of all pairs that are combined.
    reverse: suffixes: element i combines the elements from the last one down to i, the last being
    the left operand.
    Which elements are combined first is not stated: floats are rounded in another order.
    Errors: BlockTypeError for a function that returns other dtypes than it is given.
    Source: Triton's associative_scan.

    Example:
    >>> bn.evaluate(lambda x: bn.associative_scan(x, 0, lambda a, b: a * 10 + b), [1, 2, 3, 4])
    array([   1,   12,  123, 1234])
    >>> bn.evaluate(lambda x: bn.associative_scan(x, 0, bn.maximum, reverse=True), [1, 4, 2, 3])
    array([4, 4, 3, 3])
    """
    values, axis = _tiles(context, "associative_scan", tiles, axis)
    reversed_ = {"reverse": True} if static("associative_scan: reverse", reverse) else {}
    made = _combined(context, "scan", "associative_scan", combine_fn, values, axis=axis,
                     **reversed_)
    return made if isinstance(tiles, tuple) else made[0]


@function
def reduce_(context, input, axis, combine_fn, keep_dims=False, keepdims=False):  # noqa: A002
    """The elements along axis combined by a function, and the axis dropped.

    input: a tile, or a tuple of tiles of one shape; the result is the same.   axis: one,
    several, or None for all, whose elements are combined in C order.   combine_fn: as of
    associative_scan; neighbours are combined first.
    Errors: BlockTypeError for a function that returns other dtypes than it is given.
    Source: Triton's reduce; functools.reduce.

    Example:
    >>> bn.evaluate(lambda x: bn.reduce(x, 0, lambda a, b: a * b), [1, 2, 3, 4])
    np.int64(24)
    """
    values, _ = _tiles(context, "reduce", input, 0)
    shape = values[0].type.shape
    dropped = static_axes("reduce", axis, len(shape))
    along = dropped[0] if dropped else 0
    if len(dropped) != 1:
        values = tuple(_with_one_axis(context, value, dropped) for value in values)
        along = len(values[0].type.shape) - 1
    made = _combined(context, "reduce_with", "reduce", combine_fn, values, axis=along)
    results = tuple(kept_axes(context, result, shape, dropped, keep_dims or keepdims)
                    for result in made)
    return results if isinstance(input, tuple) else results[0]


def _with_one_axis(context: Context, tile: Value, axes: tuple[int, ...]) -> Value:
    """tile with several axes as its last one, in C order."""
    shape = tile.type.shape
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    if axes and kept and kept[-1] > axes[0]:
        tile = context.emit("transpose", tile, axes=(*kept, *axes))
    last = math.prod(shape[axis] for axis in axes)
    return context.emit("reshape", tile, shape=(*(shape[axis] for axis in kept), last))


def _cumulative(name: str, op: str, dtype_of_result: Callable[[DType], DType],
                doc: str) -> BlockFunction:
    combination = (((op, (0, 1), ()),), (2,))

    def rule(context, x, axis=None, reverse=False, dtype=None):
        tile = as_tile(context, name, x)
        tile = context.cast(tile, static_dtype(name, dtype) if dtype is not None
                            else dtype_of_result(tile.type.dtype))
        # narrow floats are rounded once, at the end
        narrow = tile.type.dtype.is_float and tile.type.dtype.bits < 32
        wide = context.cast(tile, float32) if narrow else tile
        (value,), along = _tiles(context, name, wide, axis)
        made = _scan(context, value, along, combination, static(f"{name}: reverse", reverse))
        return context.cast(made, tile.type.dtype)

    rule.__doc__ = doc
    return BlockFunction(rule, name)


_SHARED = """reverse: from the last element.   dtype: convert before.
    axis: None flattens the tile first, as NumPy does.
    Which elements are combined first is not stated: floats are rounded in another order.
    """
cumsum = _cumulative("cumsum", "add", sum_dtype, f"""Sums of the elements up to each, along axis.

    Integers as of sum: int8 and int16 in int32.   {_SHARED}Source: numpy.cumsum.

    Example:
    >>> bn.evaluate(bn.cumsum, [1, 2, 3, 4], axis=0)
    array([ 1,  3,  6, 10])""")
cumprod = _cumulative("cumprod", "mul", sum_dtype, f"""Products of the elements up to each.

    Integers as of sum: int8 and int16 in int32.   {_SHARED}Source: numpy.cumprod.

    Example:
    >>> bn.evaluate(bn.cumprod, [1, 2, 3, 4], axis=0)
    array([ 1,  2,  6, 24])""")
cummax = _cumulative("cummax", "maximum", lambda dtype: dtype, f"""The greatest element up to each.

    NaN from the first NaN on.   {_SHARED}Source: numpy.maximum.accumulate.

    Example:
    >>> bn.evaluate(bn.cummax, [1, 3, 2, 4], axis=0)
    array([1, 3, 3, 4])""")
cummin = _cumulative("cummin", "minimum", lambda dtype: dtype, f"""The least element up to each.

    NaN from the first NaN on.   {_SHARED}Source: numpy.minimum.accumulate.

    Example:
    >>> bn.evaluate(bn.cummin, [4, 2, 3, 1], axis=0)
    array([4, 2, 2, 1])""")


def _scan(context: Context, value: Value, axis: int, combination: Combination,
          reverse: bool) -> Value:
    reversed_ = {"reverse": True} if reverse else {}
    return context.emit("scan", value, axis=axis, combination=combination, **reversed_)


def _tiles(context: Context, name: str, given: object,
           axis: object) -> tuple[tuple[Value, ...], int]:
    """Tiles of one shape, and the axis; flattened where that is None.

    Errors: other values; tiles of different shapes; scalars.
    """
    items = given if isinstance(given, tuple) else (given,)
    require(items, "{}: given (), accepted tiles", name)
    tiles = [as_tile(context, name, item) for item in items]
    shape = tiles[0].type.shape
    require(all(tile.type.shape == shape for tile in tiles),
            "{}: given {}, accepted tiles of one shape", name, describe(tuple(tiles)))
    require(shape, "{}: given {}, accepted a tile", name, describe(given))
    if axis is not None:
        return tuple(tiles), static_axis(name, axis, len(shape))
    if len(shape) > 1:
        tiles = [context.emit("reshape", tile, shape=(tile.type.size,)) for tile in tiles]
    return tuple(tiles), 0


def _combination(context: Context, name: str, combine_fn: object,
                 tiles: tuple[Value, ...]) -> tuple[Combination, list[Op]]:
    """The function of a scan or reduction, on scalars of the tiles' dtypes, and its asserts.

    Where it has some, it combines one bool more: whether all of them held.
    Errors: what is no function; one that returns other numbers or dtypes than it is given.
    """
    region = _region(context, name, combine_fn, [tile.type.dtype for tile in tiles])
    asserts = asserted(region)
    if asserts:
        region = _region(context, name, combine_fn, [tile.type.dtype for tile in tiles], True)
    return encoded(region, checks=bool(asserts)), asserts


def _region(context: Context, name: str, combine_fn: object, dtypes: list[DType],
            checks: bool = False) -> Region:
    """The code of a function of two elements of each dtype; with checks, and of two bools."""
    is_function = callable(combine_fn) or isinstance(combine_fn, Function)
    require(is_function, "{}: combine_fn: given {}, accepted a function of two elements", name,
            describe(combine_fn))
    count, each = len(dtypes), [*dtypes, *([bool_] if checks else [])]
    with context.builder.region(*map(TileType, (*each, *each))) as (region, args):
        returned = context.call(combine_fn, [*args[:count], *args[len(each):len(each) + count]])
        results = returned if isinstance(returned, tuple) else (returned,)
        require(len(results) == count, "{}: combine_fn returns {}, accepted one value for "
                "each of {} tiles", name, describe(returned), count)
        values = [_result(context, name, *pair) for pair in zip(results, dtypes)]
        context.emit(yield_, *values, *args[count:len(each)])
    return region


def _combined(context: Context, op: str, name: str, combine_fn: object, values: tuple[Value, ...],
              **attributes: object) -> tuple[Value, ...]:
    """The results of scan or reduce_with, whose asserts are checked."""
    combination, asserts = _combination(context, name, combine_fn, values)
    if asserts:
        holds = context.broadcast_to(context.constant(True, bool_), values[0].type.shape)
        values = (*values, holds)
    made = context.emit(op, *values, combination=combination, **attributes)
    results = made if isinstance(made, tuple) else (made,)
    if not asserts:
        return results
    messages = dict.fromkeys(each.attrs["message"] for each in asserts)
    context.builder.loc = asserts[0].loc
    context.emit("assert", results[-1], message=" or ".join(messages))
    return results[:-1]


def _result(context: Context, name: str, result: object, dtype: DType) -> Value:
    """A result of a function as the dtype that it must have; numbers of Python take it."""
    if not isinstance(result, Value):
        return context.value(result, dtype, f"{name}: combine_fn")
    if result.type != TileType(dtype):
        raise BlockTypeError(f"{name}: combine_fn returns {result.type} for {dtype}, accepted "
                             f"{dtype}", hint=f"convert it: bn.cast(x, bn.{dtype})")
    return result

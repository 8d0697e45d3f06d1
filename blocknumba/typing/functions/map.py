"""Scalar functions on tiles: `bn.map`."""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.errors import require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, bool_, float32, float64
from blocknumba.tile_ir.ops.map import map_ as map_op
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe, loading_hint
from blocknumba.typing.function import function
from blocknumba.typing.values import is_constant, unwrapped

_CONSTANT = "give f the constant in a function of its own: bn.map(lambda a: f(a, CONSTANT), x)"


@function
def map_(context, f, *tiles, mask=None, other=0):
    """f of the elements of tiles, which are broadcast together; a tuple where f returns one.

    f: a function of scalars, with any control flow: a Python function, or what numba.njit,
    numba.vectorize or cuda.jit(device=True) made of one.  Numba compiles it for the dtypes of the
    tiles, which decide those of the results; floats of less than 32 bits are given to it as
    float32.  Python floats in its code are float32, or float64 where some tile is.
    mask: bool; f is not called where it is false, and the result is other: a number or a tile, or
    a tuple of one for each result.
    An element for which f raises is 0; with debug=True it stops the kernel.
    Errors: what Numba cannot compile, at its line; results that are no numbers.

    Example:
    >>> def steps(n):
    ...     count = 0
    ...     while n != 1:
    ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
    ...         count += 1
    ...     return count
    >>> bn.evaluate(lambda n: bn.map(steps, n), [1, 6, 7, 27])
    array([  0,   8,  16, 111])
    """
    for tile in tiles:
        require(promotion.is_number(tile), "map: given {}, accepted tiles and numbers",
                describe(tile), hint=_CONSTANT if is_constant(tile) else loading_hint(tile))
    dtypes = _parameters(tiles)
    operands = [context.value(tile, dtype, "map") for tile, dtype in zip(tiles, dtypes)]
    chosen = context.constant(True, bool_) if mask is None else _condition(context, mask)
    chosen, *operands = context.broadcast_together([chosen, *operands], "map")
    scalar = context.scalar_functions.get(f, dtypes, context.builder.loc)
    made = context.emit(map_op, chosen, *operands, function=scalar)
    results = made if isinstance(made, tuple) else (made,)
    if mask is not None:
        results = _elsewhere(context, chosen, results, other)
    return scalar.body.joined(results)


def _parameters(tiles: Sequence[object]) -> tuple[DType, ...]:
    """The dtypes in which f is given the elements; of Python floats, that of the tiles' floats."""
    own = [promotion.default_dtype(tile) if promotion.is_weak(tile) or promotion.is_literal(tile)
           else promotion.strong_dtype(tile) for tile in tiles]
    wide = float64 in own
    return tuple(float32 if dtype.is_float and dtype.bits < 32 else
                 float64 if wide and dtype.is_float and promotion.is_weak(tile) else dtype
                 for tile, dtype in zip(tiles, own))


def _condition(context: Context, mask: object) -> Value:
    value = context.value(unwrapped(mask), what="map: mask")
    require(value.type.dtype == bool_, "map: mask must be bool, given {}", value.type,
            hint="compare it: mask=x != 0")
    return value


def _elsewhere(context: Context, mask: Value, results: tuple[Value, ...],
               other: object) -> tuple[Value, ...]:
    """The results, with other where the mask is false."""
    others = other if isinstance(other, tuple) else (other,) * len(results)
    require(len(others) == len(results), "map: given {} values as other, accepted one, or {}: one "
            "for each result", len(others), len(results))
    found = []
    for result, value in zip(results, others):
        if promotion.is_literal(value) and value == 0:
            found.append(result)  # which the op has
            continue
        require(promotion.is_number(value), "map: given {} as other, accepted tiles and numbers",
                describe(value), hint=loading_hint(value))
        filling = context.value(value, result.type.dtype, "map: other")
        filling = context.broadcast_to(filling, result.type.shape, "map: other")
        found.append(context.emit("select", mask, result, filling))
    return tuple(found)

"""Functions of scalars over tiles in Triton's dialect: `tl.map_elementwise`.

The function is typed once, on scalars, and its steps are done on tiles; of its branches both are
computed, and one selected.  So it means what it means in a kernel, on every device.
"""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.errors import require
from blocknumba.tile_ir.ir.function import Region, Value
from blocknumba.tile_ir.ir.types import DType, TileType
from blocknumba.tile_ir.ops.control import yield_
from blocknumba.tile_ir.ops.scan import Combination, encoded
from blocknumba.typing.context import Context, describe
from blocknumba.typing.function import function
from blocknumba.typing.static_values import static_int
from blocknumba.typing.triton.operators import as_value
from blocknumba.typing.values import Function

NAME = "map_elementwise"


@function
def map_elementwise(context, scalar_fn, *args, pack=1):
    """scalar_fn of the elements of tiles, which are broadcast together; a tuple of several results.

    scalar_fn: a function of scalars, with branches, but no loads, stores or loops of run time.
    pack: it is given so many neighbours of the last axis at once: of two tiles and pack=2
    scalar_fn(x0, x1, y0, y1), and returns as many of each result.
    Errors: a function with effects; a number of results that pack does not divide.
    """
    require(callable(scalar_fn) or isinstance(scalar_fn, Function),
            "{}: given {}, accepted a function of scalars", NAME, describe(scalar_fn))
    require(args, "{}: given no tiles, accepted one or more", NAME)
    tiles = context.broadcast_together([as_value(context, arg, NAME) for arg in args], NAME)
    shape, count = tiles[0].type.shape, static_int(f"{NAME}: pack", pack)
    last = shape[-1] if shape else 1
    require(0 < count <= last and not count & count - 1, "{}: pack: given {}, accepted a power of "
            "two up to {}", NAME, count, last)
    operands = [part for tile in tiles for part in _parts(context, tile, count)]
    results = _applied(context, scalar_fn, operands)
    require(len(results) % count == 0, "{}: the function returns {} values, accepted a multiple of "
            "pack, {}", NAME, len(results), count)
    made = tuple(_whole(context, results[first:first + count], shape)
                 for first in range(0, len(results), count))
    return made if len(made) > 1 else made[0]


def _applied(context: Context, scalar_fn: object, tiles: Sequence[Value]) -> list[Value]:
    """The results of a function of scalars, as tiles."""
    steps, results = _encoded(context, scalar_fn, [tile.type.dtype for tile in tiles])
    shape, values = tiles[0].type.shape, list(tiles)
    for name, operands, attrs in steps:
        given = [values[number] for number in operands]
        if any(value.type.shape for value in given):
            given = [context.broadcast_to(value, shape) for value in given]
        values.append(context.emit(name, *given, **dict(attrs)))
    return [context.broadcast_to(values[number], shape) for number in results]


def _encoded(context: Context, scalar_fn: object, dtypes: Sequence[DType]) -> Combination:
    region = _region(context, scalar_fn, dtypes)
    return encoded(region, what=NAME)


def _region(context: Context, scalar_fn: object, dtypes: Sequence[DType]) -> Region:
    with context.builder.region(*map(TileType, dtypes)) as (region, args):
        returned = context.call(scalar_fn, args)
        results = returned if isinstance(returned, tuple) else (returned,)
        context.emit(yield_, *(as_value(context, result, NAME) for result in results))
    return region


def _parts(context: Context, tile: Value, count: int) -> list[Value]:
    """A tile's elements i, i + count, i + 2 count ... of the last axis, for each i below count."""
    if count == 1:
        return [tile]
    *outer, last = tile.type.shape
    pairs = context.emit("reshape", tile, shape=(*outer, last // 2, 2))
    even, odd = context.emit("split", pairs)
    half = [_parts(context, part, count // 2) for part in (even, odd)]
    return [part for both in zip(*half) for part in both]


def _whole(context: Context, parts: Sequence[Value], shape: tuple[int, ...]) -> Value:
    """The tile whose parts these are."""
    if len(parts) == 1:
        return parts[0]
    even, odd = (_whole(context, parts[first::2], (*shape[:-1], shape[-1] // 2))
                 for first in (0, 1))
    return context.emit("reshape", context.emit("join", even, odd), shape=shape)

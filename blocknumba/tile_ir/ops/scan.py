"""Scans, and reductions by any function: several tiles along one axis.

The function is an attribute, its combination: straight-line code on scalars, without effects.

    %s = scan %x {axis=0, combination=((("add", (0, 1), ()),), (2,))}        a cumulative sum

Scalars are numbered: first the elements of the left operands, then those of the right ones, then
the results of the steps.  A step is (name of an op, numbers of its operands, its attributes); the
last tuple holds the numbers of the results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, OPS, PURE, op
from blocknumba.tile_ir.ir.types import DType, TileType
from blocknumba.tile_ir.ops.control import yield_

Combination = tuple[tuple, tuple[int, ...]]

# combinations whose operands can be exchanged
COMMUTATIVE = frozenset(
    (((name, (0, 1), ()),), (2,)) for name in ("add", "mul", "and", "or", "xor", "maximum",
                                               "minimum", "fmax", "fmin"))
_STEPS = ("constant", "cast", "bitcast")  # besides elementwise ops


def encoded(region: Region) -> Combination:
    """A region on scalars as an attribute; both arms of an `if` are computed, and one selected.

    Errors: BlockTypeError for ops that have effects or make tiles, and for loops.
    """
    numbers: dict[Value, int] = {arg: number for number, arg in enumerate(region.args)}
    steps: list[tuple] = []

    def append(name: str, operands: Sequence[int], attrs: tuple = ()) -> int:
        steps.append((name, tuple(operands), attrs))
        return len(region.args) + len(steps) - 1

    def visit(inner: Region) -> list[int]:
        for op_ in inner.ops[:-1]:
            if op_.name == "if":
                one, other = map(visit, op_.regions)
                condition = numbers[op_.condition]
                for value, x, y in zip(op_.results, one, other, strict=True):
                    numbers[value] = append("select", (condition, x, y))
                continue
            _require_step(op_)
            numbers[op_.result] = append(op_.name, map(numbers.__getitem__, op_.operands),
                                         tuple(op_.attrs.items()))
        return [numbers[value] for value in inner.terminator.values]

    results = visit(region)
    return tuple(steps), tuple(results)


def _require_step(op_: Op) -> None:
    is_step = op_.opdef.has(ELEMENTWISE) or op_.name in _STEPS
    if not is_step or any(value.type.shape for value in op_.results):
        raise BlockTypeError(
            f"a function of a reduction or scan: given {op_.name}, accepted arithmetic on scalars",
            loc=op_.loc, hint="it combines two elements: no loads, stores, tiles or loops of "
                              "run time in it")


_REGIONS: dict[str, Region] = {}


def region_of(combination: Combination, dtypes: Sequence[DType]) -> Region:
    """The region of a combination on elements of these dtypes; its arguments are both operands'."""
    key = f"{combination!r} {' '.join(map(str, dtypes))}"
    found = _REGIONS.get(key)
    if found is None:
        found = _REGIONS[key] = _decoded(combination, dtypes)
    return found


def _decoded(combination: Combination, dtypes: Sequence[DType]) -> Region:
    steps, results = combination
    builder = Builder(folding=False)
    with builder.region(*(TileType(dtype) for dtype in (*dtypes, *dtypes))) as (region, args):
        values = list(args)
        for name, operands, attrs in steps:
            values.append(builder.emit(OPS[name], *(values[i] for i in operands), **dict(attrs)))
        builder.emit(yield_, *(values[i] for i in results))
    return region


def _require_tiles(name: str, tiles: Sequence[TileType], axis: int,
                   combination: Combination) -> None:
    first = tiles[0]
    require(all(tile.shape == first.shape and tile.layout == first.layout for tile in tiles),
            "{}: given {}, accepted tiles of one shape", name, " and ".join(map(str, tiles)))
    require(0 <= axis < len(first.shape), "{}: axis must be in [0, {}), got {}", name,
            len(first.shape), axis)
    dtypes = [tile.dtype for tile in tiles]
    made = [value.type.dtype for value in region_of(combination, dtypes).terminator.values]
    require(made == dtypes, "{}: the function returns {} for {}, accepted the dtypes that it is "
            "given", name, ", ".join(map(str, made)), ", ".join(map(str, dtypes)))


@op(PURE)
def scan(*tiles, axis, combination, reverse=False) -> tuple[TileType, ...]:
    """Inclusive prefixes along axis: element i is the combination of the elements 0 to i.

    tiles: of one shape and rank >= 1; the results have their types.  combination: an associative
    function of two elements of each tile, the left one that of lower index, as encoded.
    reverse: suffixes instead, from the last element; it is then the left operand.
    Which elements are combined first is not stated.
    Source: numpy.ufunc.accumulate; Blelloch, "Prefix Sums and Their Applications".
    """
    _require_tiles("scan", tiles, axis, combination)
    return tiles


@op(PURE)
def reduce_with(*tiles, axis, combination) -> tuple[TileType, ...]:
    """The elements along axis combined by a function, and the axis dropped.

    tiles, combination: as of scan.  Neighbours are combined, in order, the left one that of lower
    index; which pairs first is not stated.
    Source: numpy.ufunc.reduce.
    """
    _require_tiles("reduce", tiles, axis, combination)
    return tuple(tile.shaped(tile.shape[:axis] + tile.shape[axis + 1:]) for tile in tiles)


def combine(combination: Combination, left: Sequence[np.ndarray],
            right: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The combination of arrays element by element."""
    steps, results = combination
    values = [*left, *right]
    for name, operands, attrs in steps:
        values.append(OPS[name].evaluate(*(values[i] for i in operands), **dict(attrs)))
    shape = np.broadcast_shapes(*(x.shape for x in (*left, *right)))
    return [np.broadcast_to(values[i], shape) for i in results]


def _rows(tiles: Sequence[np.ndarray], axis: int) -> list[np.ndarray]:
    """Arrays of as many programs, the axis first."""
    return [np.moveaxis(tile, axis + 1, 0) for tile in np.broadcast_arrays(*tiles)]


@scan.numpy
def _(*tiles, axis, combination, reverse=False):
    rows = _rows(tiles, axis)
    order = range(len(rows[0]))[::-1] if reverse else range(len(rows[0]))
    prefixes = [np.empty_like(row) for row in rows]
    before: list[np.ndarray] | None = None
    for index in order:
        here = [row[index] for row in rows]
        before = here if before is None else combine(combination, before, here)
        for prefix, value in zip(prefixes, before, strict=True):
            prefix[index] = value
    made = tuple(np.moveaxis(prefix, 0, axis + 1) for prefix in prefixes)
    return made if len(made) > 1 else made[0]


@reduce_with.numpy
def _(*tiles, axis, combination):
    rows = _rows(tiles, axis)
    while len(rows[0]) > 1:  # neighbours: as exact as on a GPU
        rows = combine(combination, [row[::2] for row in rows], [row[1::2] for row in rows])
    made = tuple(row[0] for row in rows)
    return made if len(made) > 1 else made[0]

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
REDUCING = "a reduction or scan"


def encoded(region: Region, checks: bool = False, what: str = REDUCING) -> Combination:
    """A region on scalars as an attribute; both arms of an `if` are computed, and one selected.

    What has no effect and is not used is left out, such as a tile whose dtype alone was asked for.
    checks: the last element of both operands is a bool, and so is the last result: whether both
    are true and every assert of the region holds.  Without, there may be no assert.
    what: is combined, for messages.
    Errors: BlockTypeError for ops that have effects or make tiles, and for loops.
    """
    encoder = _Encoder(region, what, _used(region))
    count = len(region.args) // 2
    holds = encoder.append("and", (count - 1, 2 * count - 1)) if checks else None
    results, holds = encoder.visit(region, holds)
    if checks:
        results[-1] = holds
    return tuple(encoder.steps), tuple(results)


def asserted(region: Region) -> list[Op]:
    """The asserts of a region and of those in it."""
    found = []
    for op_ in region.ops:
        found += [op_] if op_.name == "assert" else []
        for inner in op_.regions:
            found += asserted(inner)
    return found


def _used(region: Region) -> set[Value]:
    """The values that a region yields, and those that they and its effects are made of."""
    found = set(region.terminator.operands)
    for op_ in reversed(region.ops[:-1]):
        for inner in op_.regions:
            found |= _used(inner)
        if not op_.opdef.has(PURE) or not found.isdisjoint(op_.results):
            found.update(op_.operands)
    return found


class _Encoder:
    """The steps of a region as it is visited.

    used: the values that are needed.   numbers: of its values.   steps: so far.
    """

    def __init__(self, region: Region, what: str, used: set[Value]):
        self._what, self._used = what, used
        self._count = len(region.args)
        self.numbers: dict[Value, int] = {arg: number for number, arg in enumerate(region.args)}
        self.steps: list[tuple] = []

    def append(self, name: str, operands: Sequence[int], attrs: tuple = ()) -> int:
        """A step; the result is its number."""
        self.steps.append((name, tuple(operands), attrs))
        return self._count + len(self.steps) - 1

    def visit(self, region: Region, holds: int | None) -> tuple[list[int], int | None]:
        """The numbers of what a region yields, and of whether all asserts hold so far."""
        for op_ in region.ops[:-1]:
            if op_.name == "if":
                holds = self._select(op_, holds)
            elif op_.name == "assert" and holds is not None:
                holds = self.append("and", (holds, self.numbers[op_.condition]))
            elif not op_.opdef.has(PURE) or not self._used.isdisjoint(op_.results):
                _require_step(op_, self._what)
                operands = map(self.numbers.__getitem__, op_.operands)
                self.numbers[op_.result] = self.append(op_.name, operands,
                                                       tuple(op_.attrs.items()))
        return [self.numbers[value] for value in region.terminator.values], holds

    def _select(self, op_: Op, holds: int | None) -> int | None:
        (one, first), (other, second) = (self.visit(arm, holds) for arm in op_.regions)
        condition = self.numbers[op_.condition]
        for value, x, y in zip(op_.results, one, other, strict=True):
            self.numbers[value] = self.append("select", (condition, x, y))
        if first == second:
            return first
        return self.append("select", (condition, first, second))


def _require_step(op_: Op, what: str) -> None:
    is_step = op_.opdef.has(ELEMENTWISE) or op_.name in _STEPS
    if not is_step or any(value.type.shape for value in op_.results):
        raise BlockTypeError(
            f"a function of {what}: given {op_.name}, accepted arithmetic on scalars",
            loc=op_.loc, hint="it computes with elements: no loads, stores, tiles or loops of "
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

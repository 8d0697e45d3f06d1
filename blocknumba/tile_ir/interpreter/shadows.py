"""In debug: shadows, the provenance of every element, followed through every op.

Each element of a value has a kind.  An element made of several has the greatest of their kinds:

    x = load p, mask        data     data     padding       (mask is false for the last)
    y = x + 1               data     data     padding       (1 is neutral)
    z = where(mask, y, 0)   data     data     neutral       (only the chosen side counts)

There are two exceptions.  An operand that decides the result alone, as False does in `and`, passes
on its own kind.  Padding that leaves an element of data unchanged, as zeros added to a sum do,
leaves data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from blocknumba.tile_ir.interpreter.affine import NEUTRAL, Shadowed, Tile, dense, origins_of
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import CONTROL, ELEMENTWISE, PURE, REARRANGES, attribute

# Kinds in ascending order.  The first is NEUTRAL: constants, indices, repetitions along an axis.
DATA = 1  # made of elements that were loaded
PADDING = 2  # not read by a load, as its mask is false and it has no `other`; or made of such
MISSING = 3  # never written

# ops that only move elements: kinds move with them
_MOVING = frozenset(("join", "split", "flip", "extract"))  # besides those that rearrange all
_REPEATING = frozenset(("splat", "broadcast"))
_REDUCING = frozenset(("reduce", "arg_reduce"))
_COMBINING = frozenset(("scan", "reduce_with"))  # by functions of several tiles
_MIXING = frozenset(("sort",))  # an element of the result is any one along the axis
# a bool that leaves the result of a logical op to the other operand
_YIELDING = {"and": True, "or": False}
# number of operands that control flow uses itself; it passes the others on
USED = {"if": 1, "for": 3, "loop": 0, "continue_if": 1}

Results = Tile | tuple[Tile, ...] | None


def run_through(op: Op, tiles: Sequence[Tile], run: Callable[..., Results]) -> Results:
    """The results of an op on operands of which some may be Shadowed.

    run: the op on tiles without shadows; control flow gets shadows too, and passes them on.
    """
    if op.opdef.has(CONTROL):
        used = USED[op.name]
        return run(*map(_bare, tiles[:used]), *tiles[used:])
    if op.name == "load":
        return _load(op, tiles, run)
    if not op.opdef.has(PURE) or not any(isinstance(tile, Shadowed) for tile in tiles):
        return run(*map(_bare, tiles))
    kinds = [kinds_of(tile) for tile in tiles]
    before = None
    if op.opdef.has(ELEMENTWISE) and _may_leave_data(kinds):
        # the op may write its result over an operand
        before = [np.array(dense(tile)) for tile in tiles]
    results = run(*map(_bare, tiles))
    given = before or tiles
    found = _kinds_of_results(op, given, kinds, results)
    origins = origins_of(tiles)
    if isinstance(results, tuple):
        return tuple(shadowed(*pair, origins) for pair in zip(results, found))
    return shadowed(results, found, origins)


def kinds_of(tile: Tile) -> np.ndarray:
    """The kinds of a value's elements: uint8 (programs or 1, *shape); axes may have extent 1."""
    if isinstance(tile, Shadowed):
        return tile.kinds
    rank = tile.ndim if isinstance(tile, np.ndarray) else len(tile.shape) + 1
    return np.full((1,) * rank, NEUTRAL, np.uint8)


def shadowed(tile: Tile, kinds: np.ndarray, origins: tuple) -> Tile:
    """A value with the kinds of its elements, unless they are neutral."""
    return Shadowed(kinds, tile, *origins) if kinds.any() else tile


def _bare(tile: Tile) -> Tile:
    return tile.tile if isinstance(tile, Shadowed) else tile


def _may_leave_data(kinds: Sequence[np.ndarray]) -> bool:
    """Whether padding and data may meet in an element."""
    return (any((k == DATA).any() for k in kinds) and any((k == PADDING).any() for k in kinds))


def _load(op: Op, tiles: Sequence[Tile], run: Callable[..., Results]) -> Tile:
    """Elements that are read are data; those read at a padding address are padding."""
    result = run(*map(_bare, tiles))
    pointer, mask, other = (*tiles, None, None)[:3]
    kinds = np.maximum(kinds_of(pointer), np.uint8(DATA))
    origins = origins_of(tiles)
    if mask is not None:
        where = dense(mask)
        unread = np.full((1,) * where.ndim, PADDING, np.uint8) if other is None else (
            kinds_of(other))
        if not where.all():
            kinds = np.where(where, kinds, unread)
        # a mask made of padding cannot say which elements are data
        kinds = np.where(kinds_of(mask) == PADDING, np.maximum(kinds, np.uint8(PADDING)), kinds)
        if other is None and (kinds == PADDING).any():
            origins = origins[0], op.loc
    return shadowed(result, kinds, origins)


def _kinds_of_results(op: Op, tiles: Sequence[Tile], kinds: list[np.ndarray],
                      results: Results) -> np.ndarray | tuple[np.ndarray, ...]:
    """The kinds of the results of a pure op on these tiles."""
    if op.name in _MOVING or op.opdef.has(REARRANGES):
        return _moved(op, kinds)
    if op.name == "gather":
        return _gathered(op, tiles, kinds)
    if op.name in _REDUCING:
        return _reduced(op, kinds[0])
    if op.name in _COMBINING:
        return _combined(op, kinds)
    if op.name == "histogram":  # counts, of what is padding too
        is_missing = reduce(np.logical_or, (
            (k == MISSING).any(axis=tuple(range(1, k.ndim))) for k in kinds))
        return np.where(is_missing, np.uint8(MISSING), np.uint8(DATA))[:, None]
    if op.name in _MIXING:
        return _mixed(op, kinds)
    if op.name == "dot":
        return _dot(op, kinds)
    if op.name == "map":
        return (_called(dense(tiles[0]), kinds),) * len(op.results)
    if op.opdef.has(ELEMENTWISE):
        return _elementwise(op, tiles, kinds, results)
    rows = (k.max(axis=tuple(range(1, k.ndim))) for k in kinds)
    row = reduce(np.maximum, rows)
    found = tuple(row.reshape(-1, *(1,) * len(value.type.shape)) for value in op.results)
    return found if len(found) > 1 else found[0]


def _moved(op: Op, kinds: list[np.ndarray]) -> np.ndarray | tuple[np.ndarray, ...]:
    """The kinds, moved; data that is repeated along an axis is neutral there."""
    if op.name in _REPEATING:
        kinds = [np.where(k == DATA, np.uint8(NEUTRAL), k) for k in kinds]
    if all(k.size == 1 for k in kinds):
        kind = max(int(k.flat[0]) for k in kinds)
        found = tuple(np.full((1,) * (len(value.type.shape) + 1), kind, np.uint8)
                      for value in op.results)
        return found if len(found) > 1 else found[0]
    full = (np.broadcast_to(k, (len(k), *value.type.shape))
            for k, value in zip(kinds, op.operands))
    return op.opdef.evaluate(*full, **op.attrs)


def _gathered(op: Op, tiles: Sequence[Tile], kinds: list[np.ndarray]) -> np.ndarray:
    """Of the element that is taken, or of its index if greater; neutral outside of the axis."""
    full = np.broadcast_to(kinds[0], (len(kinds[0]), *op.x.type.shape))
    shape = op.indices.type.shape
    indices = dense(tiles[1])
    indices = np.broadcast_to(indices, (len(indices), *shape))
    return np.maximum(op.opdef.evaluate(full, indices, **op.attrs), kinds[1])


def _reduced(op: Op, kinds: np.ndarray) -> np.ndarray:
    """Missing if one element is, else data if one is, else padding if one is."""
    axis = op.attrs["axis"] + 1
    greatest, has_data = kinds.max(axis=axis), (kinds == DATA).any(axis=axis)
    return np.where((greatest == PADDING) & has_data, np.uint8(DATA), greatest)


def _combined(op: Op, kinds: list[np.ndarray]) -> np.ndarray | tuple[np.ndarray, ...]:
    """As of a reduction, for each prefix; every result is made of all tiles."""
    axis, shape = op.attrs["axis"] + 1, op.tiles[0].type.shape
    full = [np.broadcast_to(k, (len(k), *shape)) for k in kinds]
    if op.name == "reduce_with":
        found = reduce(np.maximum, [_reduced(op, k) for k in full])
    else:
        order = slice(None, None, -1 if attribute(op, "reverse") else 1)
        greatest = _accumulated(np.maximum, reduce(np.maximum, full), axis, order)
        has_data = _accumulated(np.logical_or, reduce(np.logical_or, [k == DATA for k in full]),
                                axis, order)
        found = np.where((greatest == PADDING) & has_data, np.uint8(DATA), greatest)
    return (found,) * len(op.results) if len(op.results) > 1 else found


def _mixed(op: Op, kinds: list[np.ndarray]) -> np.ndarray | tuple[np.ndarray, ...]:
    """As of a reduction along the axis, for every element of it."""
    full = [np.broadcast_to(k, (len(k), *op.tiles[0].type.shape)) for k in kinds]
    found = np.expand_dims(reduce(np.maximum, [_reduced(op, k) for k in full]),
                           op.attrs["axis"] + 1)
    return (found,) * len(op.results) if len(op.results) > 1 else found


def _accumulated(function: np.ufunc, x: np.ndarray, axis: int, order: slice) -> np.ndarray:
    rows = np.moveaxis(x, axis, 0)
    return np.moveaxis(function.accumulate(rows[order])[order], 0, axis)


def _dot(op: Op, kinds: list[np.ndarray]) -> np.ndarray:
    """Data where a term has no padding; elsewhere the accumulator's kind."""
    a, b, acc = kinds
    missing = (a == MISSING).any(axis=-1, keepdims=True) | (b == MISSING).any(
        axis=-2, keepdims=True) | (acc == MISSING)
    if a.max() < PADDING and b.max() < PADDING:
        found = np.maximum(acc, np.uint8(max(a.max(), b.max())))
    else:
        found = np.where(has_terms(op, a, b), np.uint8(DATA),
                         np.where(acc == DATA, acc, np.uint8(PADDING)))
    return np.where(missing, np.uint8(MISSING), found)


def _called(mask: np.ndarray, kinds: list[np.ndarray]) -> np.ndarray:
    """Of a scalar function: the greatest kind of its operands; neutral where it is not called."""
    of_mask, *of_operands = kinds
    found = reduce(np.maximum, of_operands, np.uint8(NEUTRAL))
    return np.maximum(of_mask, np.where(mask, found, np.uint8(NEUTRAL)))


def has_terms(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A bool for each element of a dot: has it a term of which neither factor is padding?

    Neutral elements in a row or column of padding without data make no term.
    """
    inside = []
    for kinds, value, axis in zip((a, b), op.operands, (-1, -2)):
        is_padding = (kinds == PADDING).any(axis=axis, keepdims=True)
        has_data = (kinds == DATA).any(axis=axis, keepdims=True)
        terms = (kinds != PADDING) & (has_data | ~is_padding)
        inside.append(np.broadcast_to(terms, (len(kinds), *value.type.shape)).astype(np.float32))
    return np.matmul(*inside) > 0


def _elementwise(op: Op, tiles: Sequence[Tile], kinds: list[np.ndarray],
                 result: Tile) -> np.ndarray:
    """The greatest kind of the operands, unless the others decide what the element is."""
    if op.name == "select":
        condition, x, y = kinds
        chosen = x if x is y or not (x.any() or y.any()) else np.where(dense(tiles[0]), x, y)
        found = np.maximum(condition, chosen)
        # padding that decides for what was there: a maximum that a loop keeps
        return np.where((condition == PADDING) & (chosen == DATA), np.uint8(DATA), found)
    found = reduce(np.maximum, kinds)
    if found.max() < PADDING:
        return found
    if op.name in _YIELDING and dense(tiles[0]).dtype == bool:
        return _logical(op, tiles, kinds, found)
    if _may_leave_data(kinds):
        return _left_as_it_was(tiles, kinds, found, dense(result))
    return found


def _logical(op: Op, tiles: Sequence[Tile], kinds: list[np.ndarray],
             found: np.ndarray) -> np.ndarray:
    """Kinds of a logical op: an operand that decides the result alone passes on its kind."""
    for tile, kind in zip(tiles, kinds):
        decides = (kind < PADDING) & (dense(tile) != _YIELDING[op.name])
        found = np.where(decides, kind, found)
    return found


def _left_as_it_was(tiles: Sequence[Tile], kinds: list[np.ndarray], found: np.ndarray,
                    result: np.ndarray) -> np.ndarray:
    """Data, where data meets padding and the result is that data."""
    for tile, kind in zip(tiles, kinds):
        value = dense(tile)
        if value.dtype == result.dtype:
            unchanged = same(value, result) & (kind == DATA) & (found == PADDING)
            found = np.where(unchanged, np.uint8(DATA), found)
    return found


def same(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether elements are equal; NaN is equal to NaN."""
    return (x == y) | ((x != x) & (y != y))

"""In debug: where the elements of values come from, followed through every op.

Each element of a value is of a kind.  What is made of several elements is of the greatest of their
kinds, with two exceptions: an operand that decides the result alone, as False does in `and`; and a
padding that leaves an element of data as it is, as the zeros do that a loop adds to a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from blocknumba.tile_ir.interpreter.affine import NEUTRAL, Shadowed, Tile, dense, origins_of
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import CONTROL, ELEMENTWISE, PURE

# the kinds, in this order, beside NEUTRAL: constants, indices, and what is repeated along an axis
DATA = 1  # made of elements that were loaded
PADDING = 2  # a load did not read it, for its mask, and had no `other`; or made of such
MISSING = 3  # nobody has written it

# ops that only move elements: kinds move with them
_MOVING = frozenset(("splat", "broadcast", "reshape", "transpose", "join", "split", "flip",
                     "extract"))
_REPEATING = frozenset(("splat", "broadcast"))
_REDUCING = frozenset(("reduce", "arg_reduce"))
# a bool that leaves the result of a logical op to the other operand
_YIELDING = {"and": True, "or": False}
# operands that control flow uses itself; it hands on the others
USED = {"if": 1, "for": 3, "loop": 0, "continue_if": 1}

Results = Tile | tuple[Tile, ...] | None


def run_through(op: Op, tiles: Sequence[Tile], run: Callable[..., Results]) -> Results:
    """The results of an op on operands of which some may be Shadowed.

    run: the op on tiles that are not, unless it is control flow, which hands on what it is given.
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
    """The kinds of a value's elements, uint8 of its rank and one more; axes may have extent 1."""
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
    """Whether paddings and data meet in an element."""
    return (any((k == DATA).any() for k in kinds) and any((k == PADDING).any() for k in kinds))


def _load(op: Op, tiles: Sequence[Tile], run: Callable[..., Results]) -> Tile:
    """What is read is data; at a padding address, nothing is known of what was meant."""
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
        # a mask that was not loaded itself cannot say which elements were meant
        kinds = np.where(kinds_of(mask) == PADDING, np.maximum(kinds, np.uint8(PADDING)), kinds)
        if other is None and (kinds == PADDING).any():
            origins = origins[0], op.loc
    return shadowed(result, kinds, origins)


def _kinds_of_results(op: Op, tiles: Sequence[Tile], kinds: list[np.ndarray],
                      results: Results) -> np.ndarray | tuple[np.ndarray, ...]:
    """The kinds of the results of a pure op on these tiles."""
    if op.name in _MOVING:
        return _moved(op, kinds)
    if op.name in _REDUCING:
        return _reduced(op, kinds[0])
    if op.name == "dot":
        return _product(op, kinds)
    if op.opdef.has(ELEMENTWISE):
        return _elementwise(op, tiles, kinds, results)
    rows = (k.max(axis=tuple(range(1, k.ndim))) for k in kinds)
    row = reduce(np.maximum, rows)
    found = tuple(row.reshape(-1, *(1,) * len(value.type.shape)) for value in op.results)
    return found if len(found) > 1 else found[0]


def _moved(op: Op, kinds: list[np.ndarray]) -> np.ndarray | tuple[np.ndarray, ...]:
    """The kinds, moved; data that is repeated along an axis has no element of its own there."""
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


def _reduced(op: Op, kinds: np.ndarray) -> np.ndarray:
    """Missing if one element is, else data if one is, else padding if one is."""
    axis = op.attrs["axis"] + 1
    greatest, has_data = kinds.max(axis=axis), (kinds == DATA).any(axis=axis)
    return np.where((greatest == PADDING) & has_data, np.uint8(DATA), greatest)


def _product(op: Op, kinds: list[np.ndarray]) -> np.ndarray:
    """An element without a product of two elements that are there is the accumulator's."""
    a, b, acc = kinds
    missing = (a == MISSING).any(axis=-1, keepdims=True) | (b == MISSING).any(
        axis=-2, keepdims=True) | (acc == MISSING)
    if a.max() < PADDING and b.max() < PADDING:
        found = np.maximum(acc, np.uint8(max(a.max(), b.max())))
    else:
        found = np.where(has_products(op, a, b), np.uint8(DATA),
                         np.where(acc == DATA, acc, np.uint8(PADDING)))
    return np.where(missing, np.uint8(MISSING), found)


def has_products(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which elements of a product have a term of which neither factor is padding.

    What is neutral in a row or column of padding without data is no term.
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
    """Where an operand that is there decides the result alone, its kind is what counts."""
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

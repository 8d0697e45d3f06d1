"""In debug: the check that padding changes no reduction, dot or atomic.

    x = load p, mask      # padding where mask is false, 0 without `other`
    m = min(x)            # evaluated again with padding replaced by the identity, inf:
                          # another result is a PaddingError
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from blocknumba.errors import UNKNOWN, Loc, PaddingError
from blocknumba.tile_ir.interpreter.affine import Shadowed, Tile, dense, origins_of
from blocknumba.tile_ir.interpreter.shadows import (
    DATA, PADDING, Results, has_terms, kinds_of, same,
)
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import CONTROL, WRITES, attribute
from blocknumba.tile_ir.ops.reduce import KINDS, identity

# what users call the kinds of reductions
_NAMES = {"or": "any", "and": "all", "fmax": "nanmax", "fmin": "nanmin", "xor": "xor_sum"}
_OF_ATOMICS = {"add": "sum"}  # kinds of atomics that reductions call something else


def require_valid_addresses(op: Op, tiles: Sequence[Tile],
                            program: Callable[[int], tuple[int, int, int]]) -> None:
    """Before a store or an atomic: an address made of padding is the address of another element.

    program: the ids of a program.
    Errors: PaddingError where the mask lets one through.
    """
    if not op.opdef.has(WRITES) or op.opdef.has(CONTROL) or not _has_padding(tiles[0]):
        return
    wrong = kinds_of(tiles[0]) == PADDING
    mask = _named(op, tiles).get("mask")
    wrong = wrong if mask is None else wrong & dense(mask)
    if wrong.any():
        raise _error(op, f"{_name(op)}: the index is made of elements that no load has read", wrong,
                     tiles, program)


def require_no_padding(op: Op, tiles: Sequence[Tile], results: Results,
                       program: Callable[[int], tuple[int, int, int]]) -> None:
    """Compare the result of an op that combines elements with its result without padding.

    A reduction of padding alone is padding itself.   program: the ids of a program.
    Errors: PaddingError where they differ.
    """
    check = _CHECKS.get(op.name)
    if check is None or not any(map(_has_padding, tiles)):
        return
    found = check(op, tiles, results)
    if found is None or not found.differs.any():
        return
    message = f"{_name(op)}: elements that no load has read are counted"
    if found.without is not None:
        index = tuple(np.argwhere(found.differs)[0])
        with_, without = (np.broadcast_to(x, found.differs.shape)[index]
                          for x in (found.with_, found.without))
        message = (f"{_name(op)}: elements that no load has read change the result from {without} "
                   f"to {with_}")
    raise _error(op, message, found.differs, tiles, program)


@dataclass(frozen=True, slots=True)
class _Found:
    """Results with padding and without, and where they differ; no results where it is counted."""

    with_: np.ndarray | None
    without: np.ndarray | None
    differs: np.ndarray


def _has_padding(tile: Tile) -> bool:
    return isinstance(tile, Shadowed) and bool((tile.kinds == PADDING).any())


def _reduction(op: Op, tiles: Sequence[Tile], result: Tile) -> _Found:
    """Padding is replaced by the identity."""
    (tile,), axis = tiles, op.attrs["axis"] + 1
    kinds, value = np.broadcast_arrays(kinds_of(tile), dense(tile))
    is_padding, has_data = kinds == PADDING, (kinds == DATA).any(axis=axis)
    if _counts(op):
        return _Found(None, None, is_padding.any(axis=axis) & has_data)
    left = value.copy()
    left[is_padding] = identity(op.attrs["kind"], op.x.type.dtype)
    without = op.opdef.evaluate(left, **op.attrs)
    return _Found(dense(result), without, ~same(dense(result), without) & has_data)


def _dot(op: Op, tiles: Sequence[Tile], result: Tile) -> _Found | None:
    """Padding is replaced by zeros."""
    *factors, acc = tiles
    kinds = [kinds_of(tile) for tile in factors]
    left = [np.where(k == PADDING, dense(tile).dtype.type(0), dense(tile))
            for k, tile in zip(kinds, factors)]
    if all(same(x, dense(tile)).all() for x, tile in zip(left, factors)):
        return None
    without = op.opdef.evaluate(*left, dense(acc), **op.attrs)
    return _Found(dense(result), without,
                  ~same(dense(result), without) & has_terms(op, *kinds))


def _update(op: Op, tiles: Sequence[Tile], old: Tile) -> _Found | None:
    """An atomic update by a value of padding must leave the element as it was."""
    kind = _OF_ATOMICS.get(op.attrs["kind"], op.attrs["kind"])
    if kind not in KINDS:
        return None
    value, mask = tiles[1], _named(op, tiles).get("mask")
    new = KINDS[kind][0](dense(old), dense(value))
    differs = ~same(dense(old), new) & (kinds_of(value) == PADDING)
    return _Found(new, dense(old), differs if mask is None else differs & dense(mask))


_CHECKS = {"reduce": _reduction, "arg_reduce": _reduction, "dot": _dot, "atomic_rmw": _update}


def _counts(op: Op) -> bool:
    return op.name == "reduce" and bool(attribute(op, "counts"))


def _named(op: Op, tiles: Sequence[Tile]) -> dict[str, Tile]:
    return dict(zip(op.opdef.operands, tiles))


def _name(op: Op) -> str:
    """The user's name of an op."""
    if op.name == "reduce":
        return "mean" if _counts(op) else _NAMES.get(op.attrs["kind"], op.attrs["kind"])
    start = {"arg_reduce": "arg", "atomic_rmw": "atomic_"}.get(op.name)
    return op.name if start is None else start + op.attrs["kind"]


def _error(op: Op, message: str, wrong: np.ndarray, tiles: Sequence[Tile],
           program: Callable[[int], tuple[int, int, int]]) -> PaddingError:
    """The error of the first element that is wrong."""
    program_index, *index = map(int, np.argwhere(wrong)[0])
    where = f", element {tuple(index)}" if index else ""
    return PaddingError(f"{message}, in program {program(program_index)}{where}",
                        hint=_hint(op, origins_of(tiles)[1]))


def _hint(op: Op, load: Loc) -> str:
    file = f" of {load.file}" if load.file != op.loc.file else ""
    source = "" if load is UNKNOWN else (
        f"line {load.line}{file} loads them, and they are outside the array or masked off: ")
    remedies = {"dot": "load them with other=0 where that is meant, or use bn.where"}
    if op.name in ("reduce", "arg_reduce"):
        return source + "leave them out with where=, or load them with other="
    return source + remedies.get(op.name, "use mask= to leave them out, or load them with other=")

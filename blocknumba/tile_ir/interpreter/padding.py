"""In debug: reductions, products and atomics that elements change which no load has read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from blocknumba.errors import UNKNOWN, Loc, PaddingError
from blocknumba.tile_ir.interpreter.affine import Shadowed, Tile, dense, origins_of
from blocknumba.tile_ir.interpreter.shadows import (
    DATA,
    PADDING,
    Results,
    has_products,
    kinds_of,
    same,
)
from blocknumba.tile_ir.ir import Op
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.ops.reduce import KINDS, identity

# what users call the kinds of reductions
_NAMES = {"or": "any", "and": "all", "fmax": "nanmax", "fmin": "nanmin", "xor": "xor_sum"}
_OF_ATOMICS = {"add": "sum"}  # kinds of atomics that reductions call something else


def require_no_padding(op: Op, tiles: Sequence[Tile], results: Results,
                       program: Callable[[int], tuple[int, int, int]]) -> None:
    """Compare what an op that combines elements did with what it does without its padding.

    A reduction of padding alone is padding itself.   program: the ids of a program.
    Errors: PaddingError where they differ.
    """
    check = _CHECKS.get(op.name)
    if check is None or not any(map(_has_padding, tiles)):
        return
    message, differs = check(op, tiles, results)
    if not differs.any():
        return
    place, *index = map(int, np.argwhere(differs)[0])
    where = f", element {tuple(index)}" if index else ""
    raise PaddingError(f"{message((place, *index))}, in program {program(place)}{where}",
                       hint=_hint(op, origins_of(tiles)[1]))


# of an index: what is wrong there; where it is
Found = tuple[Callable[[tuple[int, ...]], str], np.ndarray]


def _has_padding(tile: Tile) -> bool:
    return isinstance(tile, Shadowed) and bool((tile.kinds == PADDING).any())


def _changed(name: str, result: np.ndarray, without: np.ndarray) -> Callable:
    def message(place: tuple[int, ...]) -> str:
        return (f"{name}: elements that no load has read change the result from "
                f"{without[place]} to {result[place]}")
    return message


def _reduction(op: Op, tiles: Sequence[Tile], result: Tile) -> Found:
    """Padding is replaced by the identity."""
    (tile,), axis, kind = tiles, op.attrs["axis"] + 1, op.attrs["kind"]
    kinds, value = np.broadcast_arrays(kinds_of(tile), dense(tile))
    is_padding, has_data = kinds == PADDING, (kinds == DATA).any(axis=axis)
    if op.name == "reduce" and attribute(op, "counts"):
        return (lambda _: "mean: elements that no load has read are counted",
                is_padding.any(axis=axis) & has_data)
    left = value.copy()
    left[is_padding] = identity(kind, op.operands[0].type.dtype)
    without = op.opdef.evaluate(left, **op.attrs)
    result = np.broadcast_to(dense(result), without.shape)
    name = _NAMES.get(kind, kind) if op.name == "reduce" else f"arg{kind}"
    return _changed(name, result, without), ~same(result, without) & has_data


def _product(op: Op, tiles: Sequence[Tile], result: Tile) -> Found:
    """Padding is replaced by zeros."""
    *factors, acc = tiles
    result, kinds = dense(result), [kinds_of(tile) for tile in factors]
    left = [np.where(k == PADDING, dense(tile).dtype.type(0), dense(tile))
            for k, tile in zip(kinds, factors)]
    if all(same(x, dense(tile)).all() for x, tile in zip(left, factors)):
        return _changed("dot", result, result), np.zeros(1, bool)
    without = op.opdef.evaluate(*left, dense(acc), **op.attrs)
    return (_changed("dot", result, without),
            ~same(result, without) & has_products(op, *kinds))


def _write(op: Op, tiles: Sequence[Tile], old: Tile | None) -> Found:
    """An address that is padding is another element's; a value that is padding may change one."""
    named = dict(zip(op.opdef.operands, tiles))
    mask, pointer, value = (named.get(name) for name in ("mask", "pointer", "value"))
    is_let = np.ones(1, bool) if mask is None else dense(mask)
    name = op.name if op.name != "atomic_rmw" else f"atomic_{op.attrs['kind']}"
    wrong = (kinds_of(pointer) == PADDING) & is_let
    if wrong.any() or op.name != "atomic_rmw":
        return lambda _: f"{name}: the index is made of elements that no load has read", wrong
    kind = _OF_ATOMICS.get(op.attrs["kind"], op.attrs["kind"])
    if kind not in KINDS:
        return lambda _: "", np.zeros(1, bool)
    old, value = dense(old), dense(value)
    new = KINDS[kind][0](old, value)
    is_padding = kinds_of(named["value"]) == PADDING
    return _changed(name, new, old), ~same(old, new) & is_padding & is_let


_CHECKS = {"reduce": _reduction, "arg_reduce": _reduction, "dot": _product, "store": _write,
           "atomic_rmw": _write, "atomic_cas": _write}


def _hint(op: Op, load: Loc) -> str:
    file = f" of {load.file}" if load.file != op.loc.file else ""
    source = "" if load is UNKNOWN else (
        f"line {load.line}{file} loads them, and they are outside the array or masked off: ")
    remedies = {"dot": "load them with other=0 where that is meant, or use bn.where"}
    if op.name in ("reduce", "arg_reduce"):
        return source + "leave them out with where=, or load them with other="
    return source + remedies.get(op.name, "use mask= to leave them out, or load them with other=")

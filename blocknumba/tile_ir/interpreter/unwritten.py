"""In debug: elements of values that nobody has written, followed to where a program uses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from blocknumba.errors import UNKNOWN, BlockNameError, Loc
from blocknumba.tile_ir.interpreter.affine import Tile, Undefined, dense, origin_of
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import CONTROL, ELEMENTWISE, PURE

# ops that only move elements: what is missing moves with them
_MOVING = frozenset(("splat", "broadcast", "reshape", "transpose", "join", "split", "flip",
                     "extract"))
_REDUCING = frozenset(("reduce", "arg_reduce"))
# a bool that leaves the result of a logical op to the other operand
_NEUTRAL = {"and": True, "or": False}
# operands that control flow uses itself; it hands on the others
_USED = {"if": 1, "for": 3, "loop": 0, "continue_if": 1}

Results = Tile | tuple[Tile, ...] | None


def run_through(op: Op, tiles: Sequence[Tile], run: Callable[..., Results]) -> Results:
    """What an op gives for operands of which some may be Undefined.

    run: the op on tiles that are not, unless it is control flow, which hands on what it is given.
    """
    if op.opdef.has(CONTROL) or not any(isinstance(tile, Undefined) for tile in tiles):
        return run(*tiles)
    results = run(*(tile.tile if isinstance(tile, Undefined) else tile for tile in tiles))
    if results is None:
        return None
    missing, origin = _missing_of_results(op, tiles), origin_of(tiles)
    if isinstance(results, tuple):
        return tuple(_marked(*pair, origin) for pair in zip(results, missing))
    return _marked(results, missing, origin)


def missing_use(op: Op, tiles: Sequence[Tile]) -> tuple[Value, Undefined] | None:
    """An operand of which an op with effects uses missing elements, with only those missing.

    Where there is a mask, only the elements that it lets through are used.
    """
    if op.opdef.has(PURE):
        return None
    mask, other = _named(op, tiles, "mask"), _named(op, tiles, "other")
    for value, tile in list(zip(op.operands, tiles))[:_USED.get(op.name)]:
        if not isinstance(tile, Undefined) or tile is other:
            continue
        missing = tile.missing if mask is None or tile is mask else tile.missing & dense(mask)
        if missing.any():
            return value, Undefined(missing, tile.tile, tile.origin)
    return None


def use_error(op: Op, value: Value, origin: Loc, program: tuple[int, int, int],
              index: tuple[int, ...]) -> BlockNameError:
    """The error of an op that uses a missing element, or scalar, of an operand.

    origin: where the user made it, if that is what happened.
    """
    name = value.hint or ("a tile" if index else "a value")
    if index:
        message = (f"{op.name}: element {index} of {name} is used, which nobody has written, in "
                   f"program {program}")
    elif origin is not UNKNOWN:
        message = (f"{op.name}: {name} is used, which is made of elements that nobody has written, "
                   f"in program {program}")
    else:
        message = (f"{value.hint or op.name}: a value is used that program {program} has not been "
                   "given")
    hint = "" if origin is UNKNOWN else f"they are from bn.empty in line {origin.line}"
    return BlockNameError(message, hint=hint)


def _named(op: Op, tiles: Sequence[Tile], name: str) -> Tile | None:
    """The operand of an op with a name, if it is given."""
    return dict(zip(op.opdef.operands, tiles)).get(name)


def _marked(tile: Tile, missing: np.ndarray, origin: Loc) -> Tile:
    return Undefined(missing, tile, origin) if missing.any() else tile


def _missing_of_results(op: Op, tiles: Sequence[Tile]) -> np.ndarray | tuple[np.ndarray, ...]:
    """Which elements of an op's results depend on missing ones; bool (programs or 1, *shape)."""
    masks = [tile.missing if isinstance(tile, Undefined) else np.zeros((1, *v.type.shape), bool)
             for v, tile in zip(op.operands, tiles)]
    if not op.opdef.has(PURE):
        has_other = op.name == "load" and len(tiles) == 3
        # memory is the caller's
        return masks[2] & ~dense(tiles[1]) if has_other else np.zeros(1, bool)
    if op.name in _MOVING:
        return op.opdef.evaluate(*masks, **op.attrs)
    if op.name in _REDUCING:
        return masks[0].any(axis=op.attrs["axis"] + 1)
    if op.name == "dot":
        a, b, acc = masks
        return a.any(axis=-1, keepdims=True) | b.any(axis=-2, keepdims=True) | acc
    if op.opdef.has(ELEMENTWISE):
        return _elementwise(op, [dense(tile) for tile in tiles], masks)
    rows = (mask.any(axis=tuple(range(1, mask.ndim))) for mask in masks)
    row = reduce(np.logical_or, rows)
    missing = tuple(_repeated(row, value.type.shape) for value in op.results)
    return missing if len(missing) > 1 else missing[0]


def _repeated(row: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """One bool per program, for every element of a tile."""
    return np.broadcast_to(row.reshape(-1, *(1,) * len(shape)), (len(row), *shape))


def _elementwise(op: Op, arrays: list[np.ndarray], masks: list[np.ndarray]) -> np.ndarray:
    """An element is missing if an operand's is, unless the others decide what it is."""
    if op.name == "select":
        condition, x, y = masks
        return condition | np.where(arrays[0], x, y)
    missing = reduce(np.logical_or, masks)
    if op.name in _NEUTRAL and arrays[0].dtype == bool:
        for array, mask in zip(arrays, masks):
            missing = missing & (mask | (array == _NEUTRAL[op.name]))
    return missing

"""In debug: uses of elements that nobody has written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blocknumba.errors import UNKNOWN, BlockNameError, Loc
from blocknumba.tile_ir.interpreter.affine import Shadowed, Tile, dense
from blocknumba.tile_ir.interpreter.shadows import MISSING, USED
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import PURE


def missing_use(op: Op, tiles: Sequence[Tile]) -> tuple[Value, np.ndarray, Loc] | None:
    """An operand of which an op with effects uses missing elements; which; where they are from.

    Where there is a mask, only the elements that it lets through are used.
    """
    if op.opdef.has(PURE):
        return None
    mask, other = _named(op, tiles, "mask"), _named(op, tiles, "other")
    for value, tile in list(zip(op.operands, tiles))[:USED.get(op.name)]:
        if not isinstance(tile, Shadowed) or tile is other:
            continue
        missing = tile.kinds == MISSING
        if mask is not None and tile is not mask and missing.any():
            missing = missing & dense(mask)
        if missing.any():
            return value, missing, tile.empty
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

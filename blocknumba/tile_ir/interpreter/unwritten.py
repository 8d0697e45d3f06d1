"""In debug: uses of missing elements, which nobody has written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blocknumba.errors import BlockNameError
from blocknumba.tile_ir.interpreter.affine import Shadowed, Tile, dense
from blocknumba.tile_ir.interpreter.shadows import MISSING, USED
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import PURE, attribute


def missing_use(op: Op, tiles: Sequence[Tile]) -> tuple[Value, np.ndarray, Op | None] | None:
    """Missing elements that an op with effects uses: the operand, the elements, their maker.

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
            return value, missing, tile.maker
    return None


def use_error(op: Op, value: Value, maker: Op | None, program: tuple[int, int, int],
              index: tuple[int, ...]) -> BlockNameError:
    """The error of an op that uses a missing element, or scalar, of an operand.

    maker: the op that made it.
    """
    is_empty = maker is not None and bool(attribute(maker, "zero"))
    variable = "" if maker is None else attribute(maker, "variable")
    hint = f"they are from bn.empty in line {maker.loc.line}" if is_empty else ""
    name = value.hint or ("a tile" if index else "a value")
    if variable:
        message = f"{op.name}: {variable} is used, which program {program} has not assigned"
        hint = f"assign {variable} on every path that leads here"
    elif index:
        message = (f"{op.name}: element {index} of {name} is used, which nobody has written, in "
                   f"program {program}")
    elif is_empty:
        message = (f"{op.name}: {name} is used, which is made of elements that nobody has written, "
                   f"in program {program}")
    else:
        message = (f"{value.hint or op.name}: a value is used that program {program} has not been "
                   "given")
    return BlockNameError(message, hint=hint)


def _named(op: Op, tiles: Sequence[Tile], name: str) -> Tile | None:
    """The operand of an op with a name, if it is given."""
    return dict(zip(op.opdef.operands, tiles)).get(name)

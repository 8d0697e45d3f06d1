"""The user's own PTX, element by element."""

from __future__ import annotations

from blocknumba.errors import UnsupportedError, require
from blocknumba.tile_ir.ir.opdef import EFFECT, ELEMENTWISE, op
from blocknumba.tile_ir.ir.types import DTYPES, TileType


@op(EFFECT | ELEMENTWISE)
def inline_asm(*tiles, assembly, constraints, dtypes, pack=1, pure=True) -> tuple[TileType, ...]:
    """The results of PTX for each group of `pack` elements that one thread holds.

    tiles: of one shape; dtypes: names, one for each result, which has that shape.
    assembly: the text, $0 ... being first the results' registers, then the operands'.
    constraints: their letters, results with "=": h, r, l, f, d for 16, 32, 64 bits, float, double.
    Elements of less than 32 bits are packed into 32-bit registers.
    pure: whether the text has no effect but its results.
    """
    require(tiles, "inline_asm_elementwise: given no tiles, accepted at least one")
    first = tiles[0]
    require(all(tile.shape == first.shape for tile in tiles), "inline_asm_elementwise: given {}, "
            "accepted tiles of one shape", " and ".join(map(str, tiles)))
    return tuple(first.of(DTYPES[dtype]) for dtype in dtypes)


REFUSED = "inline_asm_elementwise: PTX runs on GPUs and in the emulator, not on the CPU"


@inline_asm.interpreted
def _(machine, op, *tiles):
    raise UnsupportedError(REFUSED, loc=op.loc)

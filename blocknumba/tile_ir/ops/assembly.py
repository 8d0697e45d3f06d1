"""The user's own PTX and functions of CUDA's libdevice, element by element: for GPUs only."""

from __future__ import annotations

from blocknumba.errors import UnsupportedError, require
from blocknumba.tile_ir.ir.opdef import EFFECT, ELEMENTWISE, PURE, op
from blocknumba.tile_ir.ir.types import DTYPES, TileType, float32, float64, int32


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


@op(PURE | ELEMENTWISE)
def cuda_function(*tiles, symbol) -> TileType:
    """A function of CUDA's libdevice of each element, of the dtype of the last operand.

    tiles: of one shape, of float32 or float64; int32 those before the last may be.
    symbol: its name, without "__nv_" in front, and without the "f" at the end that names float32.
    Kernels for the CPU have what blocknumba.libdevice makes of other ops instead.
    Source: CUDA libdevice User's Guide.
    """
    require(tiles, "libdevice: given no tiles, accepted at least one")
    last = tiles[-1]
    require(last.dtype in (float32, float64), "libdevice: given {}, accepted float32 and float64",
            last)
    require(all(tile in (last, last.of(int32)) for tile in tiles), "libdevice: given {}, accepted "
            "one type", " and ".join(map(str, tiles)))
    return last


@cuda_function.interpreted
def _(machine, op, *tiles):
    raise UnsupportedError("libdevice: this code was made for a GPU", loc=op.loc)

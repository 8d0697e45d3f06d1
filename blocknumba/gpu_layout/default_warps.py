"""How many warps a program has when nobody says: enough to hold its largest tile in registers."""

from __future__ import annotations

from blocknumba.tile_ir.ir import Function, walk
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.types import TileType

# Up to FEW_WARPS a thread has 8 words, which compiles fast; beyond, 32: the reductions of a row
# meet few warps, and three or four programs still share a multiprocessor.
# Source: perf/sweep_warps.py, perf/NOTES.md
WORDS_OF_FEW = 256
FEW_WARPS = 4
WORDS_PER_WARP = 1024
MOST_WARPS = 16
LOADS_IN_FLIGHT = 3  # tiles loaded that the registers of a largest tile have room for in turn
WORD_BITS = 32


def default_num_warps(fn: Function) -> int:
    """A power of two from 1 to MOST_WARPS that grows with the largest tile.

    An element takes at least one word, as it does in a register once it is computed with.  A
    kernel that loads much more than its largest tile, as a stencil does, counts its loads.
    """
    ops = tuple(walk(fn.body))
    largest = max((_words(value.type) for op in ops for value in op.results), default=1)
    loaded = sum(_words(op.result.type) for op in ops if op.opdef is load)
    words = max(largest, loaded // LOADS_IN_FLIGHT)
    warps = max(min(words // WORDS_OF_FEW, FEW_WARPS), words // WORDS_PER_WARP, 1)
    return min(1 << warps.bit_length() - 1, MOST_WARPS)


def _words(tile: TileType) -> int:
    if tile.is_scalar or tile.is_pointer:
        return 1
    return tile.size * max(tile.dtype.bits // WORD_BITS, 1)

"""How many warps a program has when nobody says: enough to hold its largest tile in registers."""

from __future__ import annotations

from blocknumba.tile_ir.ir import Function, walk
from blocknumba.tile_ir.types import TileType

# 32 words a thread: the reductions of a row meet few warps, and three or four programs still share
# a multiprocessor.   Source: perf/sweep_warps.py, perf/NOTES.md
WORDS_PER_WARP = 1024
MOST_WARPS = 16
WORD_BITS = 32


def default_num_warps(fn: Function) -> int:
    """A power of two from 1 to MOST_WARPS: one warp per WORDS_PER_WARP of the largest tile.

    An element takes at least one word, as it does in a register once it is computed with.
    """
    words = max((_words(value.type) for op in walk(fn.body) for value in op.results), default=1)
    return min(max(words // WORDS_PER_WARP, 1), MOST_WARPS)


def _words(tile: TileType) -> int:
    if tile.is_scalar or tile.is_pointer:
        return 1
    return tile.size * max(tile.dtype.bits // WORD_BITS, 1)

"""How many warps a program has when nobody says, and how many programs should run at once."""

from __future__ import annotations

from blocknumba.gpu_layout.dots.operands import is_ieee_float32
from blocknumba.tile_ir.ir.function import Function, Op, walk
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce

# All numbers here were measured: perf/sweep_warps.py, perf/NOTES.md.
# Small programs: a thread loads 8 words, but no less than 4 of a tile, which a vector holds; that
# compiles fast, too.  Of 16 bits and less it takes more to make vectors of them.
SMALL_WORDS_PER_WARP, SMALL_NARROW_WORDS_PER_WARP = 256, 512
VECTOR_WORDS_PER_WARP = 128
SMALL_MAX_WARPS, SMALL_NARROW_MAX_WARPS = 4, 2
# Larger ones: 32 words a thread, then 64, so that the reductions of a row meet few warps.
WORDS_PER_WARP = 1024
MEDIUM_MAX_WARPS = 8
MAX_WARPS = 16
# Rows of narrow elements: 64 a thread, as many bytes as 32 words.
NARROW_WORDS_PER_WARP = 2048
LOADS_IN_FLIGHT = 3  # tiles loaded that the registers of a largest tile have room for in turn
WORD_BITS = 32
WARP_SIZE = 32
# Threads of a multiprocessor: fewer do not keep memory busy, more leave too few registers each.
RESIDENT_THREADS = 1024
LARGE_WORDS_PER_THREAD = 32  # words from which a thread needs twice the registers
# Of a product: 64 words of sums a thread, which leaves as many registers for what is multiplied;
# 128 where there would be too many warps, and of mma.sync: 64 by 64 sums of a warp read the least.
ACCUMULATOR_WORDS_PER_WARP = 2048
ROWS_PER_WARP = 16  # of an instruction; Hopper's takes 64 rows from 4 warps
LARGE_ACCUMULATOR = 64  # words from which a thread needs all the registers it can have


def default_num_warps(fn: Function, features: frozenset[str]) -> int:
    """A power of two from 1 to MAX_WARPS that grows with the largest tile.

    features: what the target can do, as of LayoutOptions.

    An element takes at least one word, as it does in a register once it is computed with.  A
    kernel that loads much more than its largest tile, as a stencil does, counts its loads; one with
    products counts their sums.
    """
    dots = [op for op in walk(fn.body) if op.opdef is dot]
    if dots:
        return max(_warps_of_dot(op, features) for op in dots)
    words = max(_largest(fn), _loaded(fn) // LOADS_IN_FLIGHT)
    if _is_narrow(fn) and _reduces(fn):
        warps = max(words // NARROW_WORDS_PER_WARP, 1)
    else:
        many = max(min(words // WORDS_PER_WARP, MEDIUM_MAX_WARPS), words // (2 * WORDS_PER_WARP))
        warps = max(_small_program_warps(fn, words), many)
    return min(1 << warps.bit_length() - 1, MAX_WARPS)


def _small_program_warps(fn: Function, words: int) -> int:
    """A power of two of warps for a small program whose largest tiles have that many words."""
    largest, loaded = _largest(fn), _loaded(fn)
    if _is_narrow(fn):
        few = min(words // SMALL_NARROW_WORDS_PER_WARP, SMALL_NARROW_MAX_WARPS)
    elif _reduces(fn):
        tiles = min(max(loaded // largest, 1), LOADS_IN_FLIGHT)
        few = min(-(-words // (SMALL_WORDS_PER_WARP * tiles)), SMALL_MAX_WARPS)
    else:
        few = min(max(loaded, words) // SMALL_WORDS_PER_WARP, largest // VECTOR_WORDS_PER_WARP,
                  MEDIUM_MAX_WARPS)
    return 1 << max(few - 1, 0).bit_length()


def resident_threads(fn: Function, num_warps: int) -> int:
    """How many threads of a multiprocessor there should be registers for."""
    threads = num_warps * WARP_SIZE
    dots = (op for op in walk(fn.body) if op.opdef is dot)
    accumulator = max((_words(op.result.type) for op in dots), default=0)
    if accumulator:
        return RESIDENT_THREADS // (2 if accumulator // threads <= LARGE_ACCUMULATOR else 4)
    words_of_thread = _largest(fn) // threads
    return RESIDENT_THREADS if words_of_thread <= LARGE_WORDS_PER_THREAD else RESIDENT_THREADS // 2


def _warps_of_dot(op: Op, features: frozenset[str]) -> int:
    """Warps for a product of tiles; beyond FEW_WARPS no more than there are rows for."""
    accumulator = op.result.type
    words, rows = _words(accumulator), accumulator.shape[-2]
    few = max(1, min(words // SMALL_WORDS_PER_WARP, SMALL_MAX_WARPS))
    by_mma = "wgmma" not in features and not is_ieee_float32(op)
    small = words // ACCUMULATOR_WORDS_PER_WARP // (2 if by_mma else 1)
    many = max(min(small, MEDIUM_MAX_WARPS), words // (2 * ACCUMULATOR_WORDS_PER_WARP))
    batches = accumulator.size // (rows * accumulator.shape[-1])
    most = max(SMALL_MAX_WARPS, batches * rows // ROWS_PER_WARP)
    return min(max(few, many), most, MAX_WARPS)


def _largest(fn: Function) -> int:
    """Words of the largest tile."""
    return max((_words(value.type) for op in walk(fn.body) for value in op.results), default=1)


def _loaded(fn: Function) -> int:
    """Words that all loads together bring."""
    return sum(_words(op.result.type) for op in walk(fn.body) if op.opdef is load)


def _reduces(fn: Function) -> bool:
    """Whether threads need each other's elements."""
    return any(op.opdef in (reduce, arg_reduce) for op in walk(fn.body))


def _is_narrow(fn: Function) -> bool:
    """Whether all tiles that are loaded have elements of less than a word."""
    loaded = [op.result.type for op in walk(fn.body) if op.opdef is load and op.result.type.shape]
    return bool(loaded) and all(tile.dtype.bits < WORD_BITS for tile in loaded)


def _words(tile: TileType) -> int:
    if tile.is_scalar or tile.is_pointer:
        return 1
    return tile.size * max(tile.dtype.bits // WORD_BITS, 1)

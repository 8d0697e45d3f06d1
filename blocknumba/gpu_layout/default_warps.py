"""The default number of warps of a program, and how many threads should be resident.

All numbers were measured: perf/sweep_warps.py, perf/NOTES.md.  A word is 32 bits of a register.

    largest tile, words   256   512  1024  2048  4096  8192 16384 32768     (one load)
    warps, elementwise      1     2     4     8     8     8     8    16
    warps, reduction        1     2     4     4     4     8     8    16
"""

from __future__ import annotations

from blocknumba.gpu_layout.dots.operands import is_ieee_float32
from blocknumba.tile_ir.ir.function import Function, Op, walk
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ir.uses import carried, is_loop
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.map import map_
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce

# Small programs: a thread loads 8 words, but no less than 4 of a tile, a vector of 16 bytes; that
# also compiles fast.  Elements of 16 bits and less need more of them for a vector.
SMALL_WORDS_PER_WARP, SMALL_NARROW_WORDS_PER_WARP = 256, 512
VECTOR_WORDS_PER_WARP = 128
SMALL_MAX_WARPS, SMALL_NARROW_MAX_WARPS = 4, 2
# Larger ones: 32 words a thread, then 64, so that few warps take part in the reduction of a row.
WORDS_PER_WARP = 1024
MEDIUM_MAX_WARPS = 8
MAX_WARPS = 16
# Reductions of narrow elements: 64 a thread, as many bytes as 32 words.
NARROW_WORDS_PER_WARP = 2048
LOADS_IN_FLIGHT = 3  # loaded tiles that fit in the registers of a largest tile, one after the other
WORD_BITS = 32
WARP_SIZE = 32
# Of a multiprocessor: fewer threads do not keep memory busy, more have too few registers each.
RESIDENT_THREADS = 1024
LARGE_WORDS_PER_THREAD = 32  # beyond this a thread needs twice the registers
# Dots: 64 accumulator words a thread, which leaves as many registers for operands; 128 where there
# would be too many warps, and with mma.sync: a warp with 64 x 64 of them reads operands the least.
ACCUMULATOR_WORDS_PER_WARP = 2048
ROWS_PER_WARP = 16  # of an instruction; wgmma takes 64 rows from 4 warps
LARGE_ACCUMULATOR = 64  # words of a thread; beyond this it needs all the registers it can have


def default_num_warps(fn: Function, features: frozenset[str]) -> int:
    """A power of two from 1 to MAX_WARPS that grows with the largest tile.

    features: as of LayoutOptions.

    An element counts as at least one word, as in a register once it takes part in arithmetic.  A
    kernel that loads much more than its largest tile, such as a stencil, counts its loads; one that
    carries tiles through a loop counts them too, as they stay in registers meanwhile; one with dots
    counts their accumulators; one that calls scalar functions has at least a thread for each
    element, up to MEDIUM_MAX_WARPS, as a thread calls them for one element after the other.
    """
    dots = [op for op in walk(fn.body) if op.opdef is dot]
    if dots:
        return max(_warps_of_dot(op, features) for op in dots)
    words = max(_largest_tile_words(fn), _loaded_words(fn) // LOADS_IN_FLIGHT) + _carried_words(fn)
    if _is_narrow(fn) and _reduces(fn):
        warps = max(words // NARROW_WORDS_PER_WARP, 1)
    else:
        large = max(min(words // WORDS_PER_WARP, MEDIUM_MAX_WARPS), words // (2 * WORDS_PER_WARP))
        warps = max(_small_warps(fn, words), large)
    warps = max(warps, min(_mapped_elements(fn) // WARP_SIZE, MEDIUM_MAX_WARPS))
    return min(1 << warps.bit_length() - 1, MAX_WARPS)


def _small_warps(fn: Function, words: int) -> int:
    """Warps of a small program whose largest tiles have this many words, a power of two."""
    largest, loaded = _largest_tile_words(fn), _loaded_words(fn)
    if _is_narrow(fn):
        warps = min(words // SMALL_NARROW_WORDS_PER_WARP, SMALL_NARROW_MAX_WARPS)
    elif _reduces(fn):
        tiles = min(max(loaded // largest, 1), LOADS_IN_FLIGHT)
        warps = min(-(-words // (SMALL_WORDS_PER_WARP * tiles)), SMALL_MAX_WARPS)
    else:
        warps = min(max(loaded, words) // SMALL_WORDS_PER_WARP, largest // VECTOR_WORDS_PER_WARP,
                    MEDIUM_MAX_WARPS)
    return 1 << max(warps - 1, 0).bit_length()


def resident_threads(fn: Function, num_warps: int) -> int:
    """The number of threads of a multiprocessor that should have registers at once."""
    threads = num_warps * WARP_SIZE
    dots = (op for op in walk(fn.body) if op.opdef is dot)
    accumulator = max((_words(op.result.type) for op in dots), default=0)
    if accumulator:
        return RESIDENT_THREADS // (2 if accumulator // threads <= LARGE_ACCUMULATOR else 4)
    words_of_thread = _largest_tile_words(fn) // threads
    return RESIDENT_THREADS if words_of_thread <= LARGE_WORDS_PER_THREAD else RESIDENT_THREADS // 2


def _warps_of_dot(op: Op, features: frozenset[str]) -> int:
    """Warps for a dot; beyond SMALL_MAX_WARPS at most one for every ROWS_PER_WARP rows."""
    accumulator = op.result.type
    words, rows = _words(accumulator), accumulator.shape[-2]
    fewest = max(1, min(words // SMALL_WORDS_PER_WARP, SMALL_MAX_WARPS))
    by_mma = "wgmma" not in features and not is_ieee_float32(op)
    small = words // ACCUMULATOR_WORDS_PER_WARP // (2 if by_mma else 1)
    large = max(min(small, MEDIUM_MAX_WARPS), words // (2 * ACCUMULATOR_WORDS_PER_WARP))
    batches = accumulator.size // (rows * accumulator.shape[-1])
    limit = max(SMALL_MAX_WARPS, batches * rows // ROWS_PER_WARP)
    return min(max(fewest, large), limit, MAX_WARPS)


def _largest_tile_words(fn: Function) -> int:
    """Words of the largest tile."""
    return max((_words(value.type) for op in walk(fn.body) for value in op.results), default=1)


def _loaded_words(fn: Function) -> int:
    """Words of all loads together."""
    return sum(_words(op.result.type) for op in walk(fn.body) if op.opdef is load)


def _carried_words(fn: Function) -> int:
    """Words of the numbers that the loop that carries most carries."""
    return max((sum(_words(value.type) for value in carried(op).args if not value.type.is_scalar)
                for op in walk(fn.body) if is_loop(op)), default=0)


def _mapped_elements(fn: Function) -> int:
    """Elements of the largest tile that a scalar function is called for."""
    return max((op.mask.type.size for op in walk(fn.body) if op.opdef is map_), default=0)


def _reduces(fn: Function) -> bool:
    """Whether a function reduces, so that threads need each other's elements."""
    return any(op.opdef in (reduce, arg_reduce) for op in walk(fn.body))


def _is_narrow(fn: Function) -> bool:
    """Whether all loaded tiles have elements smaller than a word."""
    loaded = [op.result.type for op in walk(fn.body) if op.opdef is load and op.result.type.shape]
    return bool(loaded) and all(tile.dtype.bits < WORD_BITS for tile in loaded)


def _words(tile: TileType) -> int:
    if tile.is_scalar or tile.is_pointer:
        return 1
    return tile.size * max(tile.dtype.bits // WORD_BITS, 1)

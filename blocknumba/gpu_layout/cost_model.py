"""The cost model of a program: how many warps it has, and how many programs are resident.

What decides: the words that a thread holds at once (`tile_ir/analysis/live_tiles.py`), from which
follow its registers, and from these the threads that a multiprocessor has to hide latencies with;
enough bytes in flight; few warps in a reduction.  A word is 32 bits of a register.

All numbers were measured: perf/sweep_warps.py, perf/sweep_kinds.py, perf/NOTES.md.

    largest tile, words   256   512  1024  2048  4096  8192 16384 32768     (one load)
    warps, elementwise      1     2     4     8     8     8    16    16
    warps, reduction        1     2     4     4     4     8    16    16
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blocknumba.gpu_layout.layouts.registers import WARP_SIZE
from blocknumba.gpu_layout.product_warps import MAX_WARPS, MEDIUM_MAX_WARPS, warps_of_products
from blocknumba.tile_ir.analysis.live_tiles import WORD_BITS, live_tiles, words
from blocknumba.tile_ir.analysis.products import products
from blocknumba.tile_ir.analysis.provenance import origins
from blocknumba.tile_ir.ir.function import Function, Op, walk
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, attribute
from blocknumba.tile_ir.ir.uses import carried, controls, is_computed_from, is_loop
from blocknumba.tile_ir.ops.cast import cast
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.map import map_
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.ops.order import sort
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce
from blocknumba.tile_ir.ops.scan import reduce_with

# Small programs: a thread loads 8 words, but no less than 4 of a tile, a vector of 16 bytes; that
# also compiles fast.  Elements of 16 bits and less need more of them for a vector.
SMALL_WORDS_PER_WARP, SMALL_NARROW_WORDS_PER_WARP = 256, 512
VECTOR_WORDS_PER_WARP = 128
SMALL_MAX_WARPS, SMALL_NARROW_MAX_WARPS = 4, 2
# Larger ones: 32 words that a thread holds at once are 64 registers, so that 32 warps are resident
# in two programs or more.  One program alone (32 warps) waits at each exchange: 0.6 of the speed.
WORDS_PER_WARP = 1024
# Narrow elements in few warps: 64 words, as many bytes as 32; 18 warps are then resident in so many
# programs that they are as fast as 32.
NARROW_WORDS_PER_WARP, NARROW_MAX_WARPS = 2048, 4
# What a program that reduces holds elsewhere than at exchanges: few warps meet the sooner.  A row
# of 8192 with two of float16 loaded after its sums: 3969 GB/s with 4 warps, 3468 with 8.
UNEXCHANGED_WORDS_PER_WARP = 2048
# Sorts: steps between warps go through shared memory, those within a lane cost least.  The few
# greatest of many are kept by each warp first.
SORTED_WORDS_PER_WARP, KEPT_WORDS_PER_WARP = 512, 2048
# Many ops for each element (Philox has 80) take registers for their intermediate values, and issue
# slots: 8 elements a thread.  A row of 4096: 152 us with 4 warps, 134 with 8.
MANY_OPS, MANY_OPS_WORDS_PER_WARP = 64, 256
# Windows: so many times the largest tile is loaded, at addresses that are no vectors.  A 3 x 3
# convolution: 133, 136, 172 us with 2, 4, 8 warps.
LOADS_OF_A_WINDOW = 6
# What a second loop reads again should still be in a cache: of programs with more warps fewer are
# resident.  Two passes over a group, 2048 words at a time: 184, 163, 137 us with 4, 8, 16 warps;
# over a row, 32768 narrow ones: 443, 415 with 16, 32; three over a row of 4096: 142, 148 with 4, 8.
READ_AGAIN_WORDS_PER_WARP, READ_AGAIN_MAX_WARPS = 128, 32
READ_AGAIN_NARROW_WORDS_PER_WARP = 1024
# Where a loop's bounds are loaded, programs are of unequal lengths, and the last ones are alone: of
# more warps each is done sooner.  Sums of 0 to 1023 rows, 2048 words: 70, 65, 66 us with 4, 8, 16.
UNEQUAL_WORDS_PER_WARP = 256
WARPS_OF_A_ROW = 2  # that meet so seldom that more warps do not cost
LOADS_IN_FLIGHT = 3  # loaded tiles that fit in the registers of a largest tile, one after the other
# Of a multiprocessor: fewer threads do not keep memory busy, more have too few registers each.
RESIDENT_THREADS = 1024
LARGE_WORDS_PER_THREAD = 32  # beyond this a thread needs twice the registers
# What holds no more than that at once, and what holds few narrow elements, needs fewer: 80, 32.
HELD_WORDS_PER_THREAD, HELD_RESIDENT_THREADS = 64, 768
FEW_WORDS_PER_THREAD, FEW_RESIDENT_THREADS = 24, 2048
REDUCTIONS = frozenset((reduce, arg_reduce, reduce_with))
LARGE_ACCUMULATOR = 64  # words of a thread; beyond this it needs all the registers it can have


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to compile a program: its warps, and the programs that have registers at once."""

    num_warps: int
    min_blocks: int


def attempts(fn: Function, features: frozenset[str], chosen: int | None,
             most_blocks: int) -> Iterator[Attempt]:
    """Ways to compile a function, the best first if nothing spills; the last has most registers.

    features: as of LayoutOptions.   chosen: the number of warps that the user gives.
    most_blocks: programs that a multiprocessor can hold.
    """
    num_warps = chosen or default_num_warps(fn, features)
    threads, wanted = num_warps * WARP_SIZE, resident_threads(fn, num_warps)
    usual = min(_power_of_two_below(wanted), RESIDENT_THREADS)
    for resident in (wanted, usual, usual // 2):
        yield Attempt(num_warps, min(max(resident // threads, 1), most_blocks))
    if not chosen and num_warps < MAX_WARPS:
        yield Attempt(2 * num_warps, max(usual // 2 // threads, 1))
    yield Attempt(num_warps, 1)


def default_num_warps(fn: Function, features: frozenset[str]) -> int:
    """A power of two that grows with the largest tile: up to MAX_WARPS, 32 for rows read again.

    features: as of LayoutOptions.

    An element counts as at least one word, as in a register once it takes part in arithmetic.  A
    kernel with dots counts their accumulators, one that sorts its largest tile that tile, others
    what is alive at once; one that calls scalar functions has at least a thread for each element,
    up to MEDIUM_MAX_WARPS, as a thread calls them for one element after the other.
    """
    found = products(fn)
    if found.dots:
        return int(warps_of_products(found, features))
    sorts = [op for op in walk(fn.body) if op.opdef is sort]
    if max(map(_sorted_words, sorts), default=0) >= _largest_tile_words(fn):
        return max(map(_warps_of_sort, sorts))
    warps = max(_large_warps(fn), min(_mapped_elements(fn) // WARP_SIZE, MEDIUM_MAX_WARPS))
    if not (_is_narrow(fn) and _reduces(fn)):
        warps = max(warps, _small_warps(fn))
    if _ops_of_an_element(fn) >= MANY_OPS:
        warps = max(warps, _largest_tile_size(fn) // MANY_OPS_WORDS_PER_WARP)
    if _ends_as_loaded(fn):
        warps = max(warps, min(_largest_tile_words(fn) // UNEQUAL_WORDS_PER_WARP, MEDIUM_MAX_WARPS))
    warps = min(_power_of_two_below(warps), MAX_WARPS)
    return max(warps, _warps_that_read_again(fn)) if _reads_again(fn) else warps


def _warps_that_read_again(fn: Function) -> int:
    """Warps of few programs, whose rows stay in a cache from one pass to the next."""
    each = READ_AGAIN_NARROW_WORDS_PER_WARP if _is_narrow(fn) else READ_AGAIN_WORDS_PER_WARP
    return min(_power_of_two_below(_largest_tile_words(fn) // each), READ_AGAIN_MAX_WARPS)


def _reads_again(fn: Function) -> bool:
    """Whether a program reduces few rows, and one loop after another goes over the same range."""
    rows = [op.results[0].type.size for op in walk(fn.body) if op.opdef in REDUCTIONS]
    if not rows or max(rows) > WARPS_OF_A_ROW:
        return False
    of, seen = origins(fn), set()
    for loop in (op for op in walk(fn.body) if op.name == "for"):
        found = {(controls(loop), array) for op in walk(loop.regions[0])
                 if op.opdef is load and op.result.type.shape for array in of[op.pointer]}
        if seen & found:
            return True
        seen |= found
    return False


def _ends_as_loaded(fn: Function) -> bool:
    """Whether a program loads how many iterations a loop of tiles has."""
    scalars = [op for op in walk(fn.body) if op.opdef is load and op.result.type.is_scalar]
    return any(is_computed_from(bound, op) for loop in walk(fn.body) if loop.name == "for"
               and any(op.opdef is load and op.result.type.shape for op in walk(loop.regions[0]))
               for bound in controls(loop) for op in scalars)


def _large_warps(fn: Function) -> int:
    """Warps whose threads hold what is alive at once: at exchanges, if there are any."""
    live, largest = live_tiles(fn), _largest_tile_words(fn)
    if not _reduces(fn):
        return _warps_for(max(live.held, largest), _is_narrow(fn))
    exchanged = live.exchanged or largest
    few = _warps_for(exchanged, _is_narrow(fn) and not _reduces_rows(fn, exchanged))
    if few == MEDIUM_MAX_WARPS and 2 * exchanged >= 3 * few * WORDS_PER_WARP:
        few = MAX_WARPS  # registers across an exchange cost more than warps
    return max(few, _power_of_two_below(live.packed // UNEXCHANGED_WORDS_PER_WARP))


def _warps_for(held: int, is_narrow: bool) -> int:
    """Warps that hold so many words, a power of two."""
    few = held // NARROW_WORDS_PER_WARP
    if is_narrow and few <= NARROW_MAX_WARPS:
        return _power_of_two_below(few)
    return _power_of_two_below(held // WORDS_PER_WARP)


def _small_warps(fn: Function) -> int:
    """Warps that suit a small program, a power of two.

    One that loads much more than its largest tile, such as a stencil, counts its loads; one that
    carries tiles through a loop counts them too.
    """
    largest, loaded = _largest_tile_words(fn), _loaded_words(fn)
    words = max(largest, loaded // LOADS_IN_FLIGHT) + _carried_words(fn)
    if _is_narrow(fn):
        warps = min(words // SMALL_NARROW_WORDS_PER_WARP, SMALL_NARROW_MAX_WARPS)
    elif _reduces(fn):
        tiles = min(max(loaded // largest, 1), LOADS_IN_FLIGHT)
        warps = min(-(-words // (SMALL_WORDS_PER_WARP * tiles)), SMALL_MAX_WARPS)
    else:
        most = SMALL_MAX_WARPS if _is_window(fn) else MEDIUM_MAX_WARPS
        warps = min(max(loaded, words) // SMALL_WORDS_PER_WARP, largest // VECTOR_WORDS_PER_WARP,
                    most)
    return 1 << max(warps - 1, 0).bit_length()


def resident_threads(fn: Function, num_warps: int) -> int:
    """The number of threads of a multiprocessor that should have registers at once."""
    threads = num_warps * WARP_SIZE
    dots = (op for op in walk(fn.body) if op.opdef is dot)
    accumulator = max((words(op.result.type) for op in dots), default=0)
    live = live_tiles(fn)
    if accumulator:
        is_small = max(accumulator, live.packed) // threads <= LARGE_WORDS_PER_THREAD
        if is_small and not any(map(is_loop, walk(fn.body))):
            return RESIDENT_THREADS  # nothing but other programs hides its loads
        return RESIDENT_THREADS // (2 if accumulator // threads <= LARGE_ACCUMULATOR else 4)
    largest, held = _largest_tile_words(fn) // threads, live.held // threads
    if largest > LARGE_WORDS_PER_THREAD:
        return HELD_RESIDENT_THREADS if held <= HELD_WORDS_PER_THREAD else RESIDENT_THREADS // 2
    is_few = _is_narrow(fn) and held <= FEW_WORDS_PER_THREAD and _ops_of_an_element(fn) < MANY_OPS
    return FEW_RESIDENT_THREADS if is_few else RESIDENT_THREADS


def _warps_of_sort(op: Op) -> int:
    """Warps for a sort, or for the greatest elements."""
    tile = op.tiles[0].type
    is_whole = attribute(op, "kept") == tile.shape[attribute(op, "axis")]
    each = SORTED_WORDS_PER_WARP if is_whole else KEPT_WORDS_PER_WARP
    return min(_power_of_two_below(_sorted_words(op) // each), MAX_WARPS)


def _sorted_words(op: Op) -> int:
    """Words of what a sort sorts."""
    return sum(words(tile.type) for tile in op.tiles)


def _largest_tile_size(fn: Function) -> int:
    """Elements of the largest tile."""
    return max((value.type.size for op in walk(fn.body) for value in op.results), default=1)


def _ops_of_an_element(fn: Function) -> int:
    """Operations that compute numbers as large as the largest tile, those of fewer left out."""
    size = _largest_tile_size(fn)
    return sum(op.opdef.has(ELEMENTWISE) and op.opdef is not cast
               and op.results[0].type.size == size and not op.results[0].type.is_pointer
               for op in walk(fn.body))


def _largest_tile_words(fn: Function) -> int:
    """Words of the largest tile."""
    return max((words(value.type) for op in walk(fn.body) for value in op.results), default=1)


def _loaded_words(fn: Function) -> int:
    """Words of all loads together."""
    return sum(words(op.result.type) for op in walk(fn.body) if op.opdef is load)


def _carried_words(fn: Function) -> int:
    """Words of the numbers that the loop that carries most carries."""
    return max((sum(words(value.type) for value in carried(op).args if not value.type.is_scalar)
                for op in walk(fn.body) if is_loop(op)), default=0)


def _mapped_elements(fn: Function) -> int:
    """Elements of the largest tile that a scalar function is called for."""
    return max((op.mask.type.size for op in walk(fn.body) if op.opdef is map_), default=0)


def _reduces(fn: Function) -> bool:
    """Whether a function reduces, so that threads need each other's elements."""
    return any(op.opdef in REDUCTIONS for op in walk(fn.body))


def _reduces_rows(fn: Function, exchanged: int) -> bool:
    """Whether a warp reduces rows of its own, or with one other, with so many words.

    4 rows of 2048, causal: 143 us with 4 warps, 125 with 8; 16 rows of 512: 38 and 36.
    """
    warps = _power_of_two_below(exchanged // WORDS_PER_WARP)
    rows = [op.results[0].type.size for op in walk(fn.body) if op.opdef in REDUCTIONS]
    return min(rows) > 1 and WARPS_OF_A_ROW * min(rows) >= warps


def _is_narrow(fn: Function) -> bool:
    """Whether all loaded tiles have elements smaller than a word, of which vectors are loaded."""
    loaded = [op.result.type for op in walk(fn.body) if op.opdef is load and op.result.type.shape]
    is_vectors = bool(loaded) and not _is_window(fn)
    return is_vectors and all(tile.dtype.bits < WORD_BITS for tile in loaded)


def _is_window(fn: Function) -> bool:
    """Whether a function loads the elements around each."""
    return _loaded_words(fn) >= LOADS_OF_A_WINDOW * _largest_tile_size(fn)


def _power_of_two_below(number: int) -> int:
    """The greatest power of two that is not above a number; 1 for 0."""
    return 1 << max(number, 1).bit_length() - 1

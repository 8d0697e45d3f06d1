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

from blocknumba.gpu_layout.async_copies.ops import WARPGROUP
from blocknumba.gpu_layout.async_copies.residency import MAX_REGISTERS, chained_dot_registers
from blocknumba.gpu_layout.dots.operands import is_ieee_float32
from blocknumba.gpu_layout.layouts.registers import WARP_SIZE
from blocknumba.tile_ir.analysis.live_tiles import WORD_BITS, live_tiles, words
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, attribute
from blocknumba.tile_ir.ir.uses import carried, is_computed_from, is_loop
from blocknumba.tile_ir.ops.cast import cast
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.map import map_
from blocknumba.tile_ir.ops.memory import load, store
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
MEDIUM_MAX_WARPS = 8
MAX_WARPS = 16
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
WARPS_OF_A_ROW = 2  # that meet so seldom that more warps do not cost
LOADS_IN_FLIGHT = 3  # loaded tiles that fit in the registers of a largest tile, one after the other
# Of a multiprocessor: fewer threads do not keep memory busy, more have too few registers each.
RESIDENT_THREADS = 1024
LARGE_WORDS_PER_THREAD = 32  # beyond this a thread needs twice the registers
# Dots: 64 accumulator words a thread, which leaves as many registers for operands; 128 where there
# would be too many warps, and with mma.sync: a warp with 64 x 64 of them reads operands the least.
ACCUMULATOR_WORDS_PER_WARP = 2048
WARPGROUP_SUMS = 16384  # of one warpgroup: 128 words a thread
ROWS_PER_WARP = 16  # of an instruction; wgmma takes 64 rows from 4 warps
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
    resident = max(wanted // threads, 1)
    for blocks in dict.fromkeys((resident, max(wanted // 2 // threads, 1))):
        yield Attempt(num_warps, min(blocks, most_blocks))
    if not chosen and num_warps < MAX_WARPS:
        yield Attempt(2 * num_warps, max(resident // 2, 1))
    yield Attempt(num_warps, 1)


def default_num_warps(fn: Function, features: frozenset[str]) -> int:
    """A power of two from 1 to MAX_WARPS that grows with the largest tile.

    features: as of LayoutOptions.

    An element counts as at least one word, as in a register once it takes part in arithmetic.  A
    kernel with dots counts their accumulators, one that sorts its largest tile that tile, others
    what is alive at once; one that calls scalar functions has at least a thread for each element,
    up to MEDIUM_MAX_WARPS, as a thread calls them for one element after the other.
    """
    dots = [op for op in walk(fn.body) if op.opdef is dot]
    if dots:
        return _warps_of_dots(fn, dots, features)
    sorts = [op for op in walk(fn.body) if op.opdef is sort]
    if max(map(_sorted_words, sorts), default=0) >= _largest_tile_words(fn):
        return max(map(_warps_of_sort, sorts))
    warps = max(_large_warps(fn), min(_mapped_elements(fn) // WARP_SIZE, MEDIUM_MAX_WARPS))
    if not (_is_narrow(fn) and _reduces(fn)):
        warps = max(warps, _small_warps(fn))
    if _ops_of_an_element(fn) >= MANY_OPS:
        warps = max(warps, _largest_tile_size(fn) // MANY_OPS_WORDS_PER_WARP)
    return min(_power_of_two_below(warps), MAX_WARPS)


def _warps_of_dots(fn: Function, dots: list[Op], features: frozenset[str]) -> int:
    """Warps for the dots of a function, and for what operands of dots are computed from."""
    warps = max(_warps_of_dot(op, features) for op in dots)
    computed = _power_of_two_below(_computed_words(dots) // WORDS_PER_WARP)
    if computed > WARPGROUP:
        return max(warps, min(computed, MEDIUM_MAX_WARPS))
    if _fit_one_warpgroup(fn, features) or _are_few_sums(fn, dots, features):
        return min(warps, WARPGROUP)
    return warps


def _computed_words(dots: list[Op]) -> int:
    """Words of the largest operand that a program computes from several loaded tiles.

    Such as weights of few bits with their scales: threads have more to do with them than tensor
    cores have with the sums.
    """
    loaded = {value: _loaded(value) for op in dots for value in (op.a, op.b)}
    return max((words(value.type) for value, loads in loaded.items() if len(loads) > 1), default=0)


def _loaded(value: Value) -> set[Op]:
    """The loads of tiles that a value is computed from in its region; none if from a dot too."""
    waiting, seen = [value], set()
    while waiting:
        op = waiting.pop().owner
        if op is None or op in seen:
            continue
        if op.opdef is dot:
            return set()
        seen.add(op)
        waiting += () if op.opdef is load or op.regions else op.operands
    return {op for op in seen if op.opdef is load and op.result.type.shape}


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
    if accumulator:
        return RESIDENT_THREADS // (2 if accumulator // threads <= LARGE_ACCUMULATOR else 4)
    words_of_thread = _largest_tile_words(fn) // threads
    return RESIDENT_THREADS if words_of_thread <= LARGE_WORDS_PER_THREAD else RESIDENT_THREADS // 2


def _warps_of_dot(op: Op, features: frozenset[str]) -> int:
    """Warps for a dot; beyond SMALL_MAX_WARPS at most one for every ROWS_PER_WARP rows."""
    accumulator = op.result.type
    sums, rows = words(accumulator), accumulator.shape[-2]
    fewest = max(1, min(sums // SMALL_WORDS_PER_WARP, SMALL_MAX_WARPS))
    by_mma = "wgmma" not in features and not is_ieee_float32(op)
    small = sums // ACCUMULATOR_WORDS_PER_WARP // (2 if by_mma else 1)
    large = max(min(small, MEDIUM_MAX_WARPS), sums // (2 * ACCUMULATOR_WORDS_PER_WARP))
    batches = accumulator.size // (rows * accumulator.shape[-1])
    limit = max(SMALL_MAX_WARPS, batches * rows // ROWS_PER_WARP)
    return min(max(fewest, large), limit, MAX_WARPS)


def _fit_one_warpgroup(fn: Function, features: frozenset[str]) -> bool:
    """Whether every loop chains two dots, as attention does, and one warpgroup has the registers.

    Two programs of one warpgroup overlap better than two warpgroups of one program.
    """
    loops = [[op for op in op.regions[0].ops if op.opdef is dot]
             for op in walk(fn.body) if is_loop(op)]
    chained = [dots for dots in loops if len(dots) == 2 and is_computed_from(dots[1].a, dots[0])]
    return "wgmma" in features and bool(chained) and len(chained) == len(loops) and all(
        chained_dot_registers(first.result.type, second.result.type, WARPGROUP) <= MAX_REGISTERS
        for first, second in chained)


def _are_few_sums(fn: Function, dots: list[Op], features: frozenset[str]) -> bool:
    """Whether one warpgroup holds the sums of all dots in half of its registers, and programs are
    as many as tiles: as fast as two warpgroups where TMA fetches, faster where threads copy.

    A program that stores tile after tile is one of few, often one on a multiprocessor.
    """
    sums = sum(words(op.result.type) for op in dots)
    are_wgmma = "wgmma" in features and not any(
        is_ieee_float32(op) or op.result.type.dtype.bits > WORD_BITS for op in dots)
    return are_wgmma and sums <= WARPGROUP_SUMS and not any(
        {dot, store} <= {op.opdef for op in walk(around.regions[0])}
        for around in walk(fn.body) if is_loop(around))


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

"""Estimated time of a kernel on a GPU, from the work of a program: a model to rank tiles by.

A multiprocessor runs its programs, some of them at the same time.  What takes longest decides:

    busy     multiplying, fetching or computing, whichever unit has most to do
    waiting  the latency of loads, as often as programs that run at the same time wait for it
    memory   all bytes that come from DRAM

plus what overlaps with nothing: starting, the first loads, the last stores.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from blocknumba.gpu_layout.async_copies.ops import WARPGROUP
from blocknumba.gpu_layout.async_copies.pipelining import LARGE_SHARED_STAGES
from blocknumba.gpu_layout.async_copies.residency import MAX_REGISTERS, RESIDENT_COPIES, UNIT
from blocknumba.gpu_layout.async_copies.schedule import MAX_COPIES
from blocknumba.gpu_layout.layouts.registers import WARP_SIZE
from blocknumba.gpu_layout.product_warps import warps_of_products
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.analysis.live_tiles import WORD_BITS
from blocknumba.tile_ir.analysis.work import Numbers, Task, Work
from blocknumba.tile_ir.ir.opdef import OpTable

# Multiply-adds of one multiprocessor in a cycle, times the bytes of an operand.
# Source: NVIDIA H100 Tensor Core GPU Architecture
WGMMA_RATE, MMA_RATE, FLOAT64_RATE, FLOAT32_RATE = 4096, 2048, 1024, 512
WGMMA_ROWS = 64  # of one instruction
# Of one multiprocessor in a cycle: measured on an H100 and an H200 (perf/NOTES.md)
CACHE_BYTES = 54  # from the L2 cache
DRAM_BYTES = 16
SHARED_BYTES = 128  # Source: CUDA C++ Programming Guide, "Shared Memory"
LANES = 128  # of float32 arithmetic
BESIDE = 180  # of the same, where others multiply meanwhile
SUMS = 32  # of products, converted
STORED = 12  # elements of a tile of products
# Cycles, measured too
LATENCY = 950  # of a load from memory
WARP_EXCHANGE = 100  # of one of the rows of a product, within warps
ITERATION = 1700  # of a loop that waits for its loads
EXCHANGE = 200  # of a reduction or scan between warps
START = 950  # of a program
DISPATCH = 145  # from the start of one program to that of the next
HIDDEN = 0.1  # of the time that something else takes longer than
STEP = 25  # from one iteration to the next
BASE_REGISTERS, REGISTERS_OF_WORD = 28, 2.5  # of a thread, without products
OPERAND_REGISTERS = 64  # of a thread beside its sums, with products
MIN_ROWS, MIN_COLUMNS, MIN_DEPTH = 16, 8, 16  # of a product
# Words of products of a program: of wgmma; of mma.sync; where operands need many registers, or
# warps that fetch have some
MAX_SUMS, MAX_MMA_SUMS, MAX_CRAMPED_SUMS = 170 * 256, 128 * 256, 64 * 256
READERS = 2  # threads that read one word at the same time, where each multiplies for itself
# Of a thread's loop, products whose instructions stay in the nearest cache; else it is slower
FITTING_PRODUCTS, REFETCHED = 2048, 1.06
# Warps that keep the units busy where each multiplies for itself: FMA units, and tensor cores,
# which one warp with 64 x 64 sums keeps as busy as two with half of them (see product_warps.py)
BUSY_WARPS, BUSY_TENSOR_WARPS = 8, 4
MAX_WORDS = 128 * 256  # of the tiles of a program, beyond which registers spill
NARROW_RUN = 32  # bytes of neighbours that cost as much as twice the bytes
GATHERED = 8  # elements that are no neighbours: each costs as many
# Slots of arithmetic instructions that one element takes; 1 for an op that is not here
COSTS = OpTable[int]("slots of an element, for bn.auto on GPUs", {
    "exp": 10, "exp2": 8, "log": 14, "log2": 12, "div": 10, "sqrt": 10, "rsqrt": 8, "sin": 20,
    "cos": 20, "tan": 30, "tanh": 20, "erf": 20, "power": 30, "floordiv": 12, "mod": 12,
    "truncdiv": 12, "truncmod": 12, "splat": 0, "constant": 0})
ELEMENTWISE = ("float32 ieee",)  # products without tensor cores
IMPOSSIBLE = math.inf


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts that the model asks of a GPU."""

    target: Target
    multiprocessors: int


def cycles(work: Work, programs: Numbers, machine: Machine, arrays: Mapping[str, int]) -> Numbers:
    """Estimated cycles of a launch; infinite where a program cannot be compiled well.

    work: of a program; its numbers may be arrays, of several candidates.
    programs: of the launch.   arrays: name -> bytes.
    """
    programs = np.maximum(programs, 1)
    if work.of("dot"):
        return _products(work, programs, machine, arrays)
    return _rows(work, programs, machine, arrays)


@dataclass(frozen=True, slots=True)
class _Residence:
    """The programs of a multiprocessor, of a kernel that multiplies.

    warps: of a program.   stages: of its loops.   each: programs, one after the other or not.
    resident: those that run at the same time.   possible: whether this can be compiled well.
    """

    warps: Numbers
    stages: Numbers
    each: Numbers
    resident: Numbers
    possible: Numbers

    @staticmethod
    def of(work: Work, looped: list[Task], programs: Numbers, machine: Machine) -> _Residence:
        """looped: the loads of its loops, which are fetched ahead."""
        target, dots, words = machine.target, work.of("dot"), _sums(work)
        warps = warps_of_products(work.products, target.capabilities)
        stage_bytes = _stage_bytes(looped)
        # as attention: programs of few warps share a multiprocessor
        fetches_itself = (warps <= WARPGROUP) & (
            target.has("wgmma") and bool(work.products.chains))
        most = np.where(fetches_itself, RESIDENT_COPIES,
                        MAX_COPIES if target.has("tma") else LARGE_SHARED_STAGES)
        stages = np.minimum(most, target.shared_bytes_per_block // stage_bytes)
        threads = warps * WARP_SIZE
        registers = np.minimum(words / threads + OPERAND_REGISTERS, MAX_REGISTERS)
        resident = np.minimum(
            target.shared_bytes_per_processor // (stage_bytes * np.maximum(stages, 1)),
            target.registers_per_processor // (threads * np.ceil(registers / UNIT) * UNIT))
        each = np.ceil(programs / machine.multiprocessors)
        is_cramped = target.has("tma") or any(
            task.dtype in ELEMENTWISE or task.bits == 64 for task in dots)
        possible = (stages >= 2) & (words <= np.where(
            _all_wide(dots, target), MAX_SUMS, MAX_CRAMPED_SUMS if is_cramped else MAX_MMA_SUMS))
        for task in dots:  # the least that an instruction multiplies
            _, rows, columns, depth = task.shape
            possible &= (rows >= MIN_ROWS) & (columns >= MIN_COLUMNS) & (depth >= MIN_DEPTH)
        return _Residence(warps, stages, each, np.clip(resident, 1, each), possible)


def _products(work: Work, programs: Numbers, machine: Machine,
              arrays: Mapping[str, int]) -> Numbers:
    """Cycles of a kernel that multiplies: loads of its loops are fetched ahead."""
    looped = [task for task in work.of("load") if task.loop >= 0]
    there = _Residence.of(work, looped, programs, machine)
    one = _iterations(work, looped, there, machine.target)
    ends = sum(task.elements * work.times(task) for task in work.of("store"))
    first = sum(_fetched(task) for task in work.of("load")) / CACHE_BYTES
    rest = START + LATENCY + first + ends / SUMS + ends / STORED / _tiles(work)
    total = there.each * one + np.ceil(there.each / there.resident) * rest + (
        work.unevenness - 1) * one
    memory = _memory(work, programs, machine, arrays)
    return np.where(there.possible, _overlapping(total, memory), IMPOSSIBLE)


def _overlapping(one: Numbers, other: Numbers) -> Numbers:
    """Cycles of two things that are done at the same time."""
    return np.maximum(one, other) + HIDDEN * np.minimum(one, other)


def _iterations(work: Work, looped: list[Task], there: _Residence, target: Target) -> Numbers:
    """Cycles of the loops of a program, as its share of the multiprocessor's."""
    dots, resident = work.of("dot"), there.resident
    multiplied = sum(_multiplied(task, target, there.warps) * work.times(task) for task in dots)
    busy = BUSY_WARPS if any(task.dtype in ELEMENTWISE for task in dots) else BUSY_TENSOR_WARPS
    alone = np.where(_all_wide(dots, target), 1, busy / (resident * there.warps))
    multiplied = multiplied * np.maximum(alone, 1)
    fetched = sum(_fetched(task) * work.times(task) for task in looped) / CACHE_BYTES
    computed = _computed(work) / BESIDE + WARP_EXCHANGE * sum(
        map(work.times, work.of("exchange")))
    steps = sum(work.times(task) for task in dots) / len(dots)
    waiting = steps * LATENCY / np.maximum(there.stages - 1, 1)
    # one warpgroup computes while another multiplies, unless it has several products to do in turn
    tallest = functools.reduce(np.maximum, (task.shape[1] for task in dots))
    turns = np.maximum(tallest * WARPGROUP / there.warps / WGMMA_ROWS, 1)
    groups = np.maximum(resident * there.warps / WARPGROUP / turns, 1)
    both = np.maximum(multiplied, computed) + np.minimum(multiplied, computed) / groups
    ahead = np.maximum(_overlapping(both, fetched), waiting / resident)
    # with two stages the next tile is fetched when the last one is multiplied
    in_turn = (multiplied + fetched + computed + steps * LATENCY) / resident
    one = np.where(there.stages > 2, ahead, np.maximum(ahead, in_turn))
    return one + steps * STEP / resident


def _all_wide(dots: tuple[Task, ...], target: Target) -> np.ndarray:
    """Whether four warps multiply together, everywhere."""
    return functools.reduce(np.logical_and, (_is_wide(task, target) for task in dots))


def _stage_bytes(loads: list[Task]) -> Numbers:
    """Bytes of the tiles that an iteration loads, of the loop that loads most."""
    found: Numbers = 1.0
    for loop in {task.loop for task in loads}:
        found = np.maximum(found, sum(task.elements * task.bits / 8 for task in loads
                                      if task.loop == loop and len(task.shape) > 1))
    return found


def _tiles(work: Work) -> Numbers:
    """Number of times that a program stores: a persistent one stores one tile after the other."""
    return functools.reduce(np.maximum, map(work.times, work.of("store")), 1.0)


def _rows(work: Work, programs: Numbers, machine: Machine, arrays: Mapping[str, int]) -> Numbers:
    """Cycles of a kernel without products: programs wait for what they load."""
    target, loads = machine.target, work.of("load")
    single = [task for task in loads if task.loop < 0]
    looped = [task for task in loads if task.loop >= 0]
    largest = _largest(work)
    words = np.maximum(sum(map(_words, single)), largest) + sum(map(_words, work.of("carried")))
    warps = 2.0 ** np.clip(np.floor(np.log2(np.maximum(words, 1) / 512)), 0, 3)
    warps = np.where(words > 16384, 16, warps)
    registers = BASE_REGISTERS + REGISTERS_OF_WORD * words / (warps * WARP_SIZE)
    threads = warps * WARP_SIZE
    resident = np.minimum(
        target.registers_per_processor // (registers * threads),
        np.minimum(target.blocks_per_processor, target.threads_per_processor // threads))
    each = programs / machine.multiprocessors
    resident = np.clip(resident, 1, np.ceil(each))
    turns = np.maximum(np.ceil(each / resident), 1)

    exchanges = sum(work.times(task) for task in work.of("exchange")) * EXCHANGE
    iterations = sum((work.times(task) for task in _first_of_loops(looped)), 0.0)
    waiting = START + LATENCY * bool(single) + ITERATION * iterations + exchanges
    fetched = sum(_fetched(task) * work.times(task) for task in work.of("load", "store"))
    computed = _computed(work) / LANES
    busy = np.maximum(fetched / DRAM_BYTES, computed)
    busy = np.maximum(busy, DISPATCH)
    total = np.maximum(np.ceil(each) * busy, turns * (waiting + computed / np.maximum(resident, 1)))
    spills = (words > MAX_WORDS) | (largest > MAX_WORDS)
    return np.where(spills, IMPOSSIBLE,
                    np.maximum(total, _memory(work, programs, machine, arrays)) + busy + waiting)


def _first_of_loops(tasks: list[Task]) -> list[Task]:
    """One task of each loop: what an iteration loads, it waits for once."""
    return list({task.loop: task for task in reversed(tasks)}.values())


def _memory(work: Work, programs: Numbers, machine: Machine, arrays: Mapping[str, int]) -> Numbers:
    """Cycles in which all bytes come from DRAM and go there: of an array, none twice."""
    total: dict[str, Numbers] = {}
    for task in work.of("load", "store"):
        moved = _fetched(task) * work.times(task) * programs
        total[task.array] = total.get(task.array, 0.0) + moved
    moved = sum(np.minimum(count, arrays.get(name, math.inf)) for name, count in total.items())
    return moved / DRAM_BYTES / machine.multiprocessors


def _multiplied(task: Task, target: Target, warps: Numbers) -> Numbers:
    """Cycles in which the tensor cores, or the FMA units, multiply two tiles."""
    batches, rows, columns, depth = task.shape
    size = task.bits / 8
    if task.dtype in ELEMENTWISE:
        return _multiplied_elementwise(task, warps * WARP_SIZE)
    if task.bits == 64:
        rate = FLOAT64_RATE
    else:
        rate = np.where(_is_wide(task, target), WGMMA_RATE, MMA_RATE)
    # each 64 rows read all columns from shared memory
    groups = np.ceil(rows / WGMMA_ROWS)
    read = batches * depth * size * (rows + columns * groups) / SHARED_BYTES
    return np.maximum(batches * rows * columns * depth * size / rate, read)


def _multiplied_elementwise(task: Task, threads: Numbers) -> Numbers:
    """Cycles in which the FMA units multiply two tiles: each thread a square of their sums."""
    batches, rows, columns, depth = task.shape
    own = rows * columns / threads
    read = 2 * np.sqrt(own) * threads * 4 / SHARED_BYTES / READERS
    multiplied = rows * columns * 4 / FLOAT32_RATE
    fetching = np.where(own * depth > FITTING_PRODUCTS, REFETCHED, 1)
    return batches * depth * np.maximum(multiplied * fetching, read)


def _is_wide(task: Task, target: Target) -> np.ndarray:
    """Whether four warps multiply together."""
    never = task.dtype in (*ELEMENTWISE, "float32 tf32x3") or task.bits == 64
    return np.asarray(task.shape[1] >= WGMMA_ROWS) & (target.has("wgmma") and not never)


def _sums(work: Work) -> Numbers:
    """Words of the products, and of other tiles that loops keep, of the loop that has most."""
    dots = work.of("dot")
    shapes = [(task.shape[1], task.shape[2]) for task in dots]
    others = [task for task in work.of("carried")
              if not any(_same(task.shape[-2:], shape) for shape in shapes)]
    found: Numbers = 1.0
    for loop in {task.loop for task in dots}:
        products = sum(_product_words(task) for task in dots if task.loop == loop)
        kept = sum(_words(task) for task in others if task.loop == loop)
        found = np.maximum(found, products + kept)
    return found


def _product_words(task: Task) -> Numbers:
    """Words of the sums of a product."""
    return math.prod(task.shape[:3]) * max(task.bits // WORD_BITS, 1)


def _same(x: tuple[Numbers, ...], y: tuple[Numbers, ...]) -> bool:
    return len(x) == len(y) and all(np.all(a == b) for a, b in zip(x, y))


def _words(task: Task) -> Numbers:
    return task.elements * max(task.bits / WORD_BITS, 1)


def _largest(work: Work) -> Numbers:
    """Elements of the largest tile."""
    found: Numbers = 1.0
    for task in work.tasks:
        found = np.maximum(found, task.elements)
    return found


def _fetched(task: Task) -> Numbers:
    """Bytes that a load or a store moves, as if all were neighbours."""
    size = task.bits / 8
    if task.unit < 0 or not task.shape:
        return task.inside * size * (GATHERED if task.shape else 1)
    run = np.maximum(np.minimum(task.shape[task.unit], task.limits[task.unit]), 1) * size
    return task.inside * size * (1 + NARROW_RUN / run)


def _computed(work: Work) -> Numbers:
    """Slots of arithmetic of a program."""
    return sum(task.elements * COSTS.get(task.name, 1) * max(task.bits // WORD_BITS, 1)
               * work.times(task) for task in work.of("compute", "exchange"))

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

from blocknumba.gpu_layout.cost_model import (
    ACCUMULATOR_WORDS_PER_WARP, MEDIUM_MAX_WARPS, SMALL_MAX_WARPS,
)
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.analysis.work import Numbers, Task, Work

# Multiply-adds of one multiprocessor in a cycle, times the bytes of an operand.
# Source: NVIDIA H100 Tensor Core GPU Architecture
WGMMA_RATE, MMA_RATE, FLOAT64_RATE, FLOAT32_RATE = 4096, 2048, 1024, 512
WGMMA_ROWS = 64  # of one instruction
# Of one multiprocessor in a cycle: measured on an H100 and an H200 (perf/NOTES.md)
CACHE_BYTES = 54  # from the L2 cache
DRAM_BYTES = 16
SHARED_BYTES = 128  # Source: CUDA C++ Programming Guide, "Shared Memory"
LANES = 128  # of float32 arithmetic
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
WARPGROUP = 4  # warps
MAX_STAGES, CHAINED_STAGES = 6, 2
MIN_ROWS, MIN_COLUMNS, MIN_DEPTH = 16, 8, 16  # of a product
MAX_SUMS = 170 * 256  # words of products of a program
MAX_WORDS = 128 * 256  # of the tiles of a program, beyond which registers spill
NARROW_RUN = 32  # bytes of neighbours that cost as much as twice the bytes
GATHERED = 8  # elements that are no neighbours: each costs as many
# Slots of arithmetic instructions that one element takes; 1 for an op that is not here
COSTS = {"exp": 10, "exp2": 8, "log": 14, "log2": 12, "div": 10, "truediv": 10, "sqrt": 10,
         "rsqrt": 8, "sin": 20, "cos": 20, "tan": 30, "tanh": 20, "erf": 20, "pow": 30,
         "floordiv": 12, "mod": 12, "truncdiv": 12, "truncmod": 12, "splat": 0, "constant": 0}
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


def _products(work: Work, programs: Numbers, machine: Machine,
              arrays: Mapping[str, int]) -> Numbers:
    """Cycles of a kernel that multiplies: loads of its loops are fetched ahead."""
    target, dots = machine.target, work.of("dot")
    looped = [task for task in work.of("load") if task.loop >= 0]
    words = _sums(work)
    largest = functools.reduce(np.maximum, (math.prod(task.shape[:3]) for task in dots))
    warps = 2.0 ** np.floor(np.log2(np.clip(largest / ACCUMULATOR_WORDS_PER_WARP,
                                            SMALL_MAX_WARPS, MEDIUM_MAX_WARPS)))
    stage_bytes = _stage_bytes(looped)
    most = np.where((warps <= SMALL_MAX_WARPS) & _is_chained(dots), CHAINED_STAGES, MAX_STAGES)
    stages = np.minimum(most, target.shared_bytes_per_block // stage_bytes)
    resident = np.minimum(
        target.shared_bytes_per_processor // (stage_bytes * np.maximum(stages, 1)),
        target.registers_per_processor // (words + warps * 32 * 64))
    each = np.ceil(programs / machine.multiprocessors)  # programs of a multiprocessor
    resident = np.clip(resident, 1, each)
    turns = np.ceil(each / resident)

    multiplied = sum(_multiplied(task, target) * work.times(task) for task in dots)
    fetched = sum(_fetched(task) * work.times(task) for task in looped) / CACHE_BYTES
    computed = _computed(work) / LANES + WARP_EXCHANGE * sum(
        map(work.times, work.of("exchange")))
    steps = sum(work.times(task) for task in dots) / len(dots)
    waiting = steps * LATENCY / np.maximum(stages - 1, 1)
    # one warpgroup computes while another multiplies
    groups = resident * warps / WARPGROUP
    ahead = np.maximum(np.maximum(multiplied, fetched) + computed / groups, waiting / resident)
    # with two stages the next tile is fetched when the last one is multiplied
    in_turn = (multiplied + fetched + computed + steps * LATENCY) / resident
    one = np.where(stages > 2, ahead, np.maximum(ahead, in_turn))
    one = one + steps * STEP / resident
    ends = sum(task.elements * work.times(task) for task in work.of("store"))
    first = sum(_fetched(task) for task in work.of("load")) / CACHE_BYTES
    rest = START + LATENCY + first + ends / SUMS + ends / STORED / _tiles(work)
    total = each * one + turns * rest + (work.unevenness - 1) * one
    possible = (stages >= 2) & (words <= MAX_SUMS)
    for task in dots:  # the least that an instruction multiplies
        _, rows, columns, depth = task.shape
        possible &= (rows >= MIN_ROWS) & (columns >= MIN_COLUMNS) & (depth >= MIN_DEPTH)
    memory = _memory(work, programs, machine, arrays)
    return np.where(possible, np.maximum(total, memory) + HIDDEN * np.minimum(total, memory),
                    IMPOSSIBLE)


def _is_chained(dots: tuple[Task, ...]) -> bool:
    """Whether a loop has two products, as attention: few warps then fetch for themselves."""
    loops = [task.loop for task in dots]
    return len(set(loops)) < len(loops)


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
    registers = BASE_REGISTERS + REGISTERS_OF_WORD * words / (warps * 32)
    resident = np.minimum(
        target.registers_per_processor // (registers * warps * 32),
        np.minimum(target.blocks_per_processor, target.threads_per_processor // (warps * 32)))
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


def _multiplied(task: Task, target: Target) -> Numbers:
    """Cycles in which the tensor cores, or the FMA units, multiply two tiles."""
    batches, rows, columns, depth = task.shape
    size = task.bits / 8
    if task.dtype == "float32 ieee":
        rate, is_wide = FLOAT32_RATE, np.False_
    elif task.bits == 64:
        rate, is_wide = FLOAT64_RATE, np.False_
    else:
        is_wide = np.asarray(rows >= WGMMA_ROWS) & target.has("wgmma")
        rate = np.where(is_wide, WGMMA_RATE, MMA_RATE)
    # each 64 rows read all columns from shared memory
    groups = np.ceil(rows / WGMMA_ROWS)
    read = batches * depth * size * (rows + columns * groups) / SHARED_BYTES
    return np.maximum(batches * rows * columns * depth * size / rate, read)


def _sums(work: Work) -> Numbers:
    """Words of the products, and of other tiles that loops keep, of the loop that has most."""
    dots = work.of("dot")
    shapes = [(task.shape[1], task.shape[2]) for task in dots]
    others = [task for task in work.of("carried")
              if not any(_same(task.shape[-2:], shape) for shape in shapes)]
    found: Numbers = 1.0
    for loop in {task.loop for task in dots}:
        products = sum(math.prod(task.shape[:3]) * max(task.bits // 32, 1) for task in dots
                       if task.loop == loop)
        kept = sum(_words(task) for task in others if task.loop == loop)
        found = np.maximum(found, products + kept)
    return found


def _same(x: tuple[Numbers, ...], y: tuple[Numbers, ...]) -> bool:
    return len(x) == len(y) and all(np.all(a == b) for a, b in zip(x, y))


def _words(task: Task) -> Numbers:
    return task.elements * max(task.bits / 32, 1)


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
    return sum(task.elements * COSTS.get(task.name, 1) * max(task.bits // 32, 1) * work.times(task)
               for task in work.of("compute", "exchange"))

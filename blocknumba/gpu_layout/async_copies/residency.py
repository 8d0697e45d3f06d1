"""Residency: how many programs share a multiprocessor, and how many registers a thread gets.

A multiprocessor has 65536 registers.  Three ways in which a kernel with TMA uses them:

    8 warps and a producer warp        (8 + 1, rounded up to 12 warps) x 32 x 168
    8 warps and a producer warpgroup   8 x 32 x 240 + 4 x 32 x 24         (setmaxnreg)
    three programs of 4 warps each     3 x 4 x 32 x 168                   (no producer)
    two of them                        2 x 4 x 32 x 255
    two and their producer warps       (2 x (4 + 1), rounded up to 12 warps) x 32 x 168
"""

from __future__ import annotations

from blocknumba.gpu_layout.async_copies.ops import WARPGROUP, stage, wgmma
from blocknumba.gpu_layout.dots.ops import DOTS
from blocknumba.gpu_layout.layouts.registers import WARP_SIZE
from blocknumba.gpu_layout.layouts.shared import is_buffer
from blocknumba.gpu_layout.options import RESERVED_BYTES, LayoutOptions
from blocknumba.gpu_layout.placement.planner import tile_bytes
from blocknumba.tile_ir.analysis.live_tiles import WORD_BITS
from blocknumba.tile_ir.analysis.products import Numbers, chained_dots
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.ir.uses import is_loop

REGISTERS = 65536  # of a multiprocessor.  Source: CUDA Programming Guide, compute capabilities
MAX_REGISTERS = 255  # of a thread
UNIT = 8  # the registers of a thread are a multiple of this
OTHER_REGISTERS = 30  # addresses, row maxima and sums, counters.  Measured: perf/NOTES.md
# A producer warpgroup, and two warpgroups of consumers that take what it releases: 64512 registers.
PRODUCER_REGISTERS, CONSUMER_REGISTERS, CONSUMER_WARPS = 24, 240, 8


def chained_dot_registers(first: Numbers, second: Numbers, num_warps: int) -> Numbers:
    """Registers of a thread while two dots are under way, the second of the first one's result.

    first, second: elements of the results, which may be arrays.  The first result is also held in
    half as many registers, as the operand of the second dot.
    """
    threads = num_warps * WARP_SIZE
    scores, accumulator = first // threads, second // threads
    return scores + scores // 2 + accumulator + OTHER_REGISTERS


def registers_beside_producer(num_warps: int, programs: int = 1) -> int:
    """The registers of a thread of programs with a producer warp: warps are allocated in fours."""
    groups = -(-programs * (num_warps + 1) // WARPGROUP)
    return min(MAX_REGISTERS, REGISTERS // (groups * WARPGROUP * WARP_SIZE) // UNIT * UNIT)


def registers_of_each(programs: int, num_warps: int) -> int:
    """The registers of a thread where that many programs are resident on a multiprocessor."""
    return min(MAX_REGISTERS, REGISTERS // (programs * num_warps * WARP_SIZE) // UNIT * UNIT)


def can_reallocate_registers(options: LayoutOptions) -> bool:
    """Whether a producer warpgroup can release registers to the consumers."""
    return "set_max_registers" in options.features and options.num_warps == CONSUMER_WARPS


def register_limit(options: LayoutOptions) -> int:
    """The maximum registers of a thread of a specialised kernel."""
    if can_reallocate_registers(options):
        return CONSUMER_REGISTERS
    return registers_beside_producer(options.num_warps)


# Programs that share a multiprocessor without producers.  Three come first: of two, often both
# compute, or both multiply.  Two are better than one whose dots overlap.  Measured: perf/NOTES.md
RESIDENT_PROGRAMS = (3, 2)
PAIRED_COPIES = 4  # slots of a ring with which two programs are faster than one with more
RESIDENT_COPIES = 2  # slots of a ring: other programs compute while one waits
SYSTEM_BYTES = 1024  # of shared memory that every program has.  Source: CUDA Programming Guide


def programs_to_share(fn: Function, options: LayoutOptions) -> int:
    """Number of programs that should share a multiprocessor, each fetching for itself; 0 if none.

    Those are programs of one warpgroup in which every loop chains two dots: three if they fit, two
    if two that have producers do not.  The caller records the number in the function:
    resident_programs.
    """
    if (options.num_warps != WARPGROUP or "tma" not in options.features
            or not options.producers):  # then no choice is left, and memory is for one program
        return 0
    loops = [op for op in walk(fn.body) if is_loop(op)]
    chains = [chain for loop in loops if (chain := chained_dots(
        [op for op in walk(loop.regions[0]) if op.opdef is wgmma]))]
    in_shared = any(is_buffer(second.a.type) for _, second in chains)
    if not chains or len(chains) < len(loops) or in_shared:
        return 0
    need = max(chained_dot_registers(first.result.type.size, second.result.type.size,
                                     options.num_warps) for first, second in chains)
    for programs in RESIDENT_PROGRAMS:
        if programs == 2 and need <= registers_beside_producer(options.num_warps, programs):
            break  # they share the multiprocessor in any case, and overlap their dots
        if (need <= registers_of_each(programs, options.num_warps)
                and _staged_bytes(fn) <= shared_bytes_of_each(options, programs)):
            return programs
    return 0


def pair_fits(fn: Function, options: LayoutOptions) -> bool:
    """Whether two programs, with a producer warp each, have registers on a multiprocessor."""
    sums = sum(op.result.type.size * op.result.type.dtype.bits // WORD_BITS
               for op in walk(fn.body) if op.opdef is wgmma or op.opdef in DOTS)
    need = sums // (options.num_warps * WARP_SIZE) + OTHER_REGISTERS
    return need <= registers_beside_producer(options.num_warps, 2)


def has_room_to_share(fn: Function, options: LayoutOptions) -> bool:
    """Whether programs that should share a multiprocessor fit, once all staged tiles are known."""
    programs = fn.attrs.get("resident_programs", 0)
    return bool(programs) and _staged_bytes(fn) <= shared_bytes_of_each(options, programs)


def shared_bytes_of_each(options: LayoutOptions, programs: int) -> int:
    """Shared memory for the tiles of one of the programs of a multiprocessor."""
    available = (options.shared_bytes + SYSTEM_BYTES) // programs
    return available - SYSTEM_BYTES - RESERVED_BYTES


def _staged_bytes(fn: Function) -> int:
    """Shared memory for the staged tiles of a program: loops and branches reuse the same bytes."""
    always = sum(tile_bytes(op.result.type) for op in fn.body.ops if op.opdef is stage)
    at_times = [
        sum(tile_bytes(op.result.type) for region in outer.regions for op in walk(region)
            if op.opdef is stage) * (RESIDENT_COPIES if is_loop(outer) else 1)
        for outer in fn.body.ops]
    return always + max(at_times, default=0)

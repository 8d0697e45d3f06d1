"""How many programs share a multiprocessor, and how many registers their threads have."""

from __future__ import annotations

from blocknumba.gpu_layout.async_copies.ops import WARPGROUP, stage, wgmma
from blocknumba.gpu_layout.layouts.registers import WARP_SIZE
from blocknumba.gpu_layout.layouts.shared import is_buffer
from blocknumba.gpu_layout.options import RESERVED_BYTES, LayoutOptions
from blocknumba.gpu_layout.placement.planner import tile_bytes
from blocknumba.tile_ir.ir.carried import is_loop
from blocknumba.tile_ir.ir.function import Function, Op, walk
from blocknumba.tile_ir.ir.types import TileType

REGISTERS = 65536  # of a multiprocessor.  Source: CUDA Programming Guide, compute capabilities
MOST_REGISTERS = 255  # of a thread
UNIT = 8  # a thread has a multiple of this
OTHER_REGISTERS = 30  # addresses, row maxima and sums, counters.  Measured: perf/NOTES.md
# A warpgroup that only fetches, and two that compute with what it gives away: 64512 registers.
PRODUCER_REGISTERS, SHARED_REGISTERS, SHARING_WARPS = 24, 240, 8


def products_need(first: TileType, second: TileType, num_warps: int) -> int:
    """Registers of a thread where two products are under way, the second of what the first gave.

    first, second: their results.  What the first one gave is there in half as many registers too.
    """
    threads = num_warps * WARP_SIZE
    scores, sums = first.size // threads, second.size // threads
    return scores + scores // 2 + sums + OTHER_REGISTERS


def without_sharing(num_warps: int) -> int:
    """The registers of a thread beside one warp that fetches: warps get them by fours."""
    groups = -(-(num_warps + 1) // WARPGROUP)
    return min(MOST_REGISTERS, REGISTERS // (groups * WARPGROUP * WARP_SIZE) // UNIT * UNIT)


def registers_of_each(programs: int, num_warps: int) -> int:
    """The registers of a thread where so many programs run on a multiprocessor at once."""
    return min(MOST_REGISTERS, REGISTERS // (programs * num_warps * WARP_SIZE) // UNIT * UNIT)


def can_share(options: LayoutOptions) -> bool:
    """Whether a warpgroup that fetches can give registers away."""
    return "set_max_registers" in options.features and options.num_warps == SHARING_WARPS


def register_limit(options: LayoutOptions) -> int:
    """The most registers of a thread of a specialised kernel."""
    return SHARED_REGISTERS if can_share(options) else without_sharing(options.num_warps)


PROGRAMS = 3  # that share: with two, both often compute, or both multiply.  Measured: perf/NOTES.md
COPIES = 2  # of what a loop fetches: others compute while a program waits
SYSTEM_BYTES = 1024  # of shared memory that every program has.  Source: CUDA Programming Guide


def share_processor(fn: Function, options: LayoutOptions) -> bool:
    """Whether PROGRAMS of a kernel are to share a multiprocessor, and fit.

    Those are kernels with chained products, one of a warpgroup each.  Who decides it writes it
    into the function: resident_programs.
    """
    if options.num_warps != WARPGROUP or "tma" not in options.features:
        return False
    loops = [op for op in walk(fn.body) if is_loop(op)]
    chains = [chain for loop in loops if (chain := _chain(loop))]
    if not chains or len(chains) < len(loops):
        return False
    need = max(products_need(first.result.type, second.result.type, options.num_warps)
               for first, second in chains)
    return (need <= registers_of_each(PROGRAMS, options.num_warps)
            and _staged_bytes(fn) <= room_of_each(options))


def has_room_to_share(fn: Function, options: LayoutOptions) -> bool:
    """Whether PROGRAMS that are to share a multiprocessor fit once all that they stage is known."""
    return "resident_programs" in fn.attrs and _staged_bytes(fn) <= room_of_each(options)


def room_of_each(options: LayoutOptions) -> int:
    """Shared memory for the tiles of one of PROGRAMS."""
    return (options.shared_bytes + SYSTEM_BYTES) // PROGRAMS - SYSTEM_BYTES - RESERVED_BYTES


def _staged_bytes(fn: Function) -> int:
    """Shared memory for what a program stages: loops and branches follow each other."""
    always = sum(tile_bytes(op.result.type) for op in fn.body.ops if op.opdef is stage)
    at_times = [
        sum(tile_bytes(op.result.type) for region in outer.regions for op in walk(region)
            if op.opdef is stage) * (COPIES if is_loop(outer) else 1)
        for outer in fn.body.ops]
    return always + max(at_times, default=0)


def _chain(loop: Op) -> tuple[Op, Op] | None:
    """The two products of a loop, if that is all there is and one reads what the other gave."""
    products = [op for op in walk(loop.regions[0]) if op.opdef is wgmma]
    if len(products) != 2 or is_buffer(products[1].a.type):
        return None
    return products[0], products[1]

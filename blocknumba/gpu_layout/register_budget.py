"""How many registers the threads of a specialised kernel have, and how many its products take."""

from __future__ import annotations

from blocknumba.gpu_layout.async_ops import WARPGROUP
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.registers import WARP_SIZE
from blocknumba.tile_ir.types import TileType

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

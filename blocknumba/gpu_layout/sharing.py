"""Kernels of which several programs share a multiprocessor, since one alone would leave it idle.

Where a product reads what was computed from another one, the tensor cores wait for the arithmetic
in between, unless another program multiplies meanwhile.

Blocks that a program is spread over may do so as well.  Whatever a warp waits for, in its own block
or in another one, comes earlier in what all blocks run alike than what it does next, so that the
warps that are behind all others never wait: a first warp that waits to fetch, for warps of other
blocks to release a slot, does not hold them up.
"""

from __future__ import annotations

from blocknumba.gpu_layout.async_ops import WARPGROUP, stage, wgmma
from blocknumba.gpu_layout.options import RESERVED_BYTES, LayoutOptions
from blocknumba.gpu_layout.planner import tile_bytes
from blocknumba.gpu_layout.register_budget import products_need, registers_of_each
from blocknumba.gpu_layout.shared import is_buffer
from blocknumba.tile_ir.carried import is_loop
from blocknumba.tile_ir.ir import Function, Op, walk

PROGRAMS = 3  # that share: with two, both often compute, or both multiply.  Measured: perf/NOTES.md
COPIES = 2  # of what a loop fetches: others compute while a program waits
SYSTEM_BYTES = 1024  # of shared memory that every program has.  Source: CUDA Programming Guide


def share_processor(fn: Function, options: LayoutOptions) -> bool:
    """Whether PROGRAMS of a kernel are to share a multiprocessor, and fit.

    Those are kernels with chained products, one of a warpgroup each.
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
    if len(products) != 2 or is_buffer(products[1].operands[0].type):
        return None
    return products[0], products[1]

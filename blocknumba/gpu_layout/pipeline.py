"""The way of a function through the GPU-layout IR."""

from __future__ import annotations

from dataclasses import replace

from blocknumba.gpu_layout.async_copies.pipeline_loops import pipeline_loops
from blocknumba.gpu_layout.async_copies.specialize_warps import specialize_warps
from blocknumba.gpu_layout.clusters.partition import partition_blocks
from blocknumba.gpu_layout.dots.map_dots import map_dots
from blocknumba.gpu_layout.dots.map_wgmma import map_wgmma
from blocknumba.gpu_layout.dots.rotate_dots import rotate_dots
from blocknumba.gpu_layout.memory.allocate_shared import allocate_shared
from blocknumba.gpu_layout.memory.insert_barriers import insert_barriers
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement import rules  # noqa: F401  fills the table of placements
from blocknumba.gpu_layout.placement.assign_layouts import assign_layouts
from blocknumba.gpu_layout.placement.lower_reductions import lower_reductions
from blocknumba.gpu_layout.placement.stage_conversions import stage_conversions
from blocknumba.gpu_layout.spec import LAID_OUT, MAPPED, READY
from blocknumba.tile_ir.ir import verifier
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.passes.contract import Observer, check_order, run_passes

MAX_RETRIES = 8  # where shared memory does not suffice

# From here on every op is one that the hardware has, and what engines access is in shared memory.
MAPPING_PASSES = (
    # first: what follows sees tiles as a block has them
    partition_blocks,
    # before map_dots, which takes every dot that is left
    map_wgmma,
    # after map_wgmma: it moves products apart
    rotate_dots,
    map_dots,
    # after both: what they stage is what the copy engine fetches
    specialize_warps,
    # after specialize_warps: it takes the loads that are left
    pipeline_loops,
)
# From here on every tile in registers has a layout.
PLACING_PASSES = (
    assign_layouts,
    # before staging: it makes conversions
    lower_reductions,
    stage_conversions,
    # after staging: there are no buffers before
    allocate_shared,
    # last: which buffers share bytes decides what has to wait
    insert_barriers,
)
LAYOUT_PASSES = MAPPING_PASSES + PLACING_PASSES
check_order(LAYOUT_PASSES)


def lay_out(
    fn: Function,
    options: LayoutOptions,
    *,
    verify: bool = False,
    observer: Observer | None = None,
) -> Function:
    """A function of the tile IR with layouts, shared memory and barriers: ready to be lowered.

    How much shared memory conversions take is known last: where it is too much, all is done again
    with less for the tiles in flight.
    verify: check the function after each pass.  observer: see run_passes.
    """
    laid_out = _run(fn, options, options, verify, observer)
    needed, room = laid_out.attrs.get("shared_bytes", 0), options.shared_bytes
    while needed > options.shared_bytes and room > 0:
        less = max(needed - options.shared_bytes, options.shared_bytes // MAX_RETRIES)
        room = max(0, room - less)
        laid_out = _run(fn, replace(options, shared_bytes=room), options, verify, observer)
        needed = laid_out.attrs.get("shared_bytes", 0)
    if verify:
        verifier.verify(laid_out, READY)
    return laid_out


def _run(
    fn: Function,
    mapping: LayoutOptions,
    placing: LayoutOptions,
    verify: bool,
    observer: Observer | None,
) -> Function:
    """fn after all passes.

    mapping, placing: the options of the passes that map and of those that place.
    """
    steps = (MAPPING_PASSES, mapping, MAPPED), (PLACING_PASSES, placing, LAID_OUT)
    for passes, options, level in steps:
        fn = run_passes(fn, passes, options, level=level if verify else None, observer=observer)
    return fn

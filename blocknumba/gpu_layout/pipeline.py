"""The order of the passes of the GPU-layout IR.

    tile IR  ->  mapping passes   dots to mma, wgmma or FMA; TMA and cp.async; clusters
             ->  placing passes   a layout for every tile; conversions, buffers, barriers
             ->  ready to be lowered to NVVM IR
"""

from __future__ import annotations

from dataclasses import replace

from blocknumba.gpu_layout.async_copies.pipeline_loops import pipeline_loops
from blocknumba.gpu_layout.async_copies.specialize_warps import raise_accesses, specialize_warps
from blocknumba.gpu_layout.clusters.partition import partition_blocks
from blocknumba.gpu_layout.dots.map_dots import map_dots
from blocknumba.gpu_layout.dots.map_wgmma import map_wgmma
from blocknumba.gpu_layout.dots.rotate_dots import rotate_dots
from blocknumba.gpu_layout.memory.allocate_shared import allocate_shared
from blocknumba.gpu_layout.memory.insert_barriers import insert_barriers
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement import rules  # noqa: F401  fills the table of placements
from blocknumba.gpu_layout.placement.assign_layouts import assign_layouts
from blocknumba.gpu_layout.placement.extract_in_steps import extract_in_steps
from blocknumba.gpu_layout.placement.join_accesses import join_accesses
from blocknumba.gpu_layout.placement.load_once import load_once
from blocknumba.gpu_layout.placement.lower_reductions import lower_reductions
from blocknumba.gpu_layout.placement.stage_conversions import stage_conversions
from blocknumba.gpu_layout.spec import LAID_OUT, MAPPED, READY
from blocknumba.tile_ir.ir import verifier
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.passes.contract import Observer, Pass, Pipeline, run_passes
from blocknumba.tile_ir.passes.pipeline import lower_accesses

MAX_RETRIES = 8  # with less shared memory for tiles in flight

# After these every op has an instruction, and the operands of TMA and wgmma are in shared memory.
MAPPING_PASSES = Pipeline((
    # first: later passes see the shards of one block
    partition_blocks,
    # before map_dots, which lowers every dot that is left
    map_wgmma,
    # after map_wgmma: it overlaps wgmma ops
    rotate_dots,
    map_dots,
    # before specialize_warps, which reads views; after both: TMA copies what they stage
    raise_accesses,
    specialize_warps,
    # after all that read views, before all that read addresses
    lower_accesses,
    # after lower_accesses: both read addresses
    join_accesses,
    load_once,
    # after load_once, which extracts one element of each run
    extract_in_steps,
    # after specialize_warps: cp.async for the loads that are left
    pipeline_loops,
))
# After these every tile in registers has a layout.
PLACING_PASSES = Pipeline((
    assign_layouts,
    # before stage_conversions: it adds conversions
    lower_reductions,
    stage_conversions,
    # after stage_conversions, which adds buffers
    allocate_shared,
    # last: buffers that share bytes need barriers
    insert_barriers,
), MAPPING_PASSES.written)


def layout_passes() -> tuple[Pass, ...]:
    """All passes of the GPU-layout IR, in order."""
    return (*MAPPING_PASSES, *PLACING_PASSES)


def lay_out(
    fn: Function,
    options: LayoutOptions,
    *,
    verify: bool = False,
    observer: Observer | None = None,
) -> Function:
    """A function of the tile IR with layouts, shared memory and barriers: ready to be lowered.

    The shared memory that conversions take is known last.  If it is too much, all passes run again
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

    mapping, placing: the options of MAPPING_PASSES and of PLACING_PASSES.
    """
    steps = (MAPPING_PASSES, mapping, MAPPED), (PLACING_PASSES, placing, LAID_OUT)
    for passes, options, level in steps:
        fn = run_passes(fn, passes, options, level=level if verify else None, observer=observer)
    return fn

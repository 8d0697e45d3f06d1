"""The way of a function through the GPU-layout IR."""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.gpu_layout import rules  # noqa: F401  fills the table of placements
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.passes.allocate_shared import allocate_shared
from blocknumba.gpu_layout.passes.assign_layouts import assign_layouts
from blocknumba.gpu_layout.passes.insert_barriers import insert_barriers
from blocknumba.gpu_layout.passes.lower_reductions import lower_reductions
from blocknumba.gpu_layout.passes.stage_conversions import stage_conversions
from blocknumba.tile_ir.ir import Function

Pass = Callable[[Function, LayoutOptions], Function]

PASSES: tuple[Pass, ...] = (
    assign_layouts,
    lower_reductions,  # before staging: it makes conversions
    stage_conversions,
    allocate_shared,  # after staging: there are no buffers before
    insert_barriers,  # last: which buffers share bytes decides what has to wait
)


def lay_out(fn: Function, options: LayoutOptions) -> Function:
    """A function of the tile IR with layouts, shared memory and barriers: ready to be lowered."""
    for apply in PASSES:
        fn = apply(fn, options)
    return fn

"""The passes of the tile level, in order."""

from __future__ import annotations

from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.ir.verifier import TILE
from blocknumba.tile_ir.passes.canonicalize import accumulate_dots, canonicalize
from blocknumba.tile_ir.passes.contract import Observer, Pipeline, run_passes
from blocknumba.tile_ir.passes.cse import cse, hoist_invariants
from blocknumba.tile_ir.passes.dce import dce
from blocknumba.tile_ir.passes.lower_views import lower_views
from blocknumba.tile_ir.passes.scalar_remainders import scalar_remainders
from blocknumba.tile_ir.passes.simplify_masks import simplify_masks

TILE_PASSES = Pipeline((
    canonicalize,
    # before simplify_masks: it pairs bounds of one index, which must be one value
    cse,
    # after cse: a dot that is written twice is used twice
    accumulate_dots,
    # before hoisting: remainders of scalars are the same in every iteration
    scalar_remainders,
    # before simplify_masks and hoisting: what they work on are mostly bounds and addresses
    lower_views,
    # before hoisting: what it emits for the bounds is mostly invariant
    simplify_masks,
    hoist_invariants,
    # after hoisting: ops of two loops are now in one region
    cse,
    dce,
))


def optimise(fn: Function, *, verify: bool = False, observer: Observer | None = None) -> Function:
    """The function after all machine-independent passes.

    verify: check the function after each pass.  observer: see run_passes.
    """
    return run_passes(fn, TILE_PASSES, level=TILE if verify else None, observer=observer)

"""The passes of the tile level, in order."""

from __future__ import annotations

from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.ir.verifier import TILE
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.passes.canonicalize import accumulate_dots, canonicalize
from blocknumba.tile_ir.passes.contract import Observer, Pipeline, declared, run_passes
from blocknumba.tile_ir.passes.cse import cse, hoist_invariants
from blocknumba.tile_ir.passes.dce import dce
from blocknumba.tile_ir.passes.lower_views import has_elements, has_views, lower_views
from blocknumba.tile_ir.passes.narrow_arithmetic import narrow_arithmetic
from blocknumba.tile_ir.passes.raise_pointers import lower_raised, raise_pointers
from blocknumba.tile_ir.passes.scalar_remainders import scalar_remainders
from blocknumba.tile_ir.passes.simplify_masks import simplify_masks

TILE_PASSES = Pipeline((
    canonicalize,
    # before simplify_masks: it pairs bounds of one index, which must be one value
    cse,
    # after cse: a dot that is written twice is used twice
    accumulate_dots,
    # after cse: casts of one value are one, and its range is known
    narrow_arithmetic,
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
# Passes that `optimise` does not run.  TMA moves boxes of views: `raise_accesses` of the GPU-layout
# IR raises the pointers that it may take.
OPTIONAL_PASSES = (raise_pointers,)


def optimise(fn: Function, *, keep_views: bool = False, verify: bool = False,
             observer: Observer | None = None) -> Function:
    """The function after all machine-independent passes.

    keep_views: leave the views of a function with dots to `lower_accesses`: what maps dots, and
        what gives loads to TMA, reads them.
    verify: check the function after each pass.  observer: see run_passes.
    """
    passes = tuple(TILE_PASSES)
    if keep_views and has_views(fn) and any(op.opdef is dot for op in walk(fn.body)):
        passes = tuple(pass_ for pass_ in passes if pass_ not in (lower_views, simplify_masks))
    return run_passes(fn, passes, level=TILE if verify else None, observer=observer)


@declared(reads=("ops",), writes=("ops",))
def lower_accesses(fn: Function, _: object = None) -> Function:
    """Make pointers and masks of the views that are left, and rewrite them as others are.

    Pointers that were raised are what they were, and have been rewritten before.
    """
    if not has_views(fn):
        return fn
    if not has_elements(fn):
        return lower_raised(fn)
    return run_passes(fn, TILE_PASSES[tuple(TILE_PASSES).index(lower_views):])

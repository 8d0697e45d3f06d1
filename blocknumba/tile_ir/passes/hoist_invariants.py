"""Loop-invariant code motion."""

from __future__ import annotations

from blocknumba.tile_ir.ir.carried import is_loop
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import PURE
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.passes.contract import declared


@declared(reads=("ops",), writes=("ops",))
def hoist_invariants(fn: Function, _: object = None) -> Function:
    """Move pure ops that are the same in every iteration out of loops.

    They are then computed even if the loop makes no iteration, which a pure op allows: it has no
    effect, and does not trap.  Loads stay: they may be out of bounds, or the memory may change.
    Ops in a branch of the loop stay too: most iterations may not need them.
    """
    moved: set[Op] = set()
    return rebuild(fn, lambda rebuilder, op: _moved(rebuilder, op, moved), folding=False)


def _moved(rebuilder: Rebuilder, op: Op, moved: set[Op]) -> Values | None:
    if op in moved:
        return tuple(rebuilder[result] for result in op.results)
    if is_loop(op):
        for invariant in _invariants(op.regions[0], set()):
            if invariant not in moved:
                rebuilder.op(invariant)
                moved.add(invariant)
    return None


def _invariants(region: Region, inside: set[Value]) -> list[Op]:
    """The ops of a loop's region, and of loops in it, that use nothing defined inside."""
    found = []
    inside.update(region.args)
    for op in region.ops:
        if op.opdef.has(PURE) and not op.regions and inside.isdisjoint(op.operands):
            found.append(op)
            continue
        inside.update(op.results)
        if is_loop(op):
            found += _invariants(op.regions[0], inside)
    return found

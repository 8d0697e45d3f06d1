"""Redundancy elimination: common subexpressions and loop invariants."""

from __future__ import annotations

from collections.abc import Hashable

from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import PARTIAL, PURE, READS, may_write
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.ir.uses import is_loop
from blocknumba.tile_ir.passes.contract import declared


_COMMUTATIVE = frozenset(("add", "mul", "and", "or", "xor", "eq", "ne"))


@declared(reads=("ops",), writes=("ops",))
def cse(fn: Function, _: object = None) -> Function:
    """Compute equal things once: pure ops, and loads with no write in between."""
    return _Elimination().function(fn)


class _Elimination:
    """Re-emits a function; keeps the values visible at the insertion point, by their keys."""

    def __init__(self):
        self._known: dict[Hashable, Values] = {}
        self._scopes: list[list[Hashable]] = []
        self._rebuilder = Rebuilder(self._again, folding=False)
        self._writing: set[Op] = set()
        self._epoch = 0  # loads of different epochs have a write between them

    def function(self, fn: Function) -> Function:
        self._note_writes(fn.body)
        self._scopes.append([])
        return self._rebuilder.function(fn)

    def _note_writes(self, region: Region) -> bool:
        """Remember the ops that may write memory, within their regions too."""
        found = False
        for op in region.ops:
            inside = [self._note_writes(inner) for inner in op.regions]
            if may_write(op) or any(inside):
                self._writing.add(op)
                found = True
        return found

    def _again(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        if op.regions:
            return self._with_regions(op)
        if op in self._writing:
            self._epoch += 1
            return None
        key = self._key(op, rebuilder.operands(op))
        if key is None:
            return None
        seen = self._known.get(key)
        if seen is None:
            seen = self._known[key] = rebuilder.again(op)
            self._scopes[-1].append(key)
        return seen

    def _with_regions(self, op: Op) -> Values:
        """Values of regions are forgotten after them: the regions need not have been run."""
        writes = op in self._writing
        # the writes of an iteration come before the loads of the next
        self._epoch += writes and is_loop(op)
        regions = []
        for region in op.regions:
            self._scopes.append([])
            regions.append(self._rebuilder.region(region))
            for key in self._scopes.pop():
                del self._known[key]
        self._epoch += writes
        return self._rebuilder.again(op, regions)

    def _key(self, op: Op, operands: list[Value]) -> Hashable | None:
        """Key that is equal for ops with equal results; None for an op that must stay."""
        opdef = op.opdef
        if opdef.has(PURE):
            epoch = None
        elif opdef.traits == READS and not op.attrs.get("volatile"):
            epoch = self._epoch
        else:
            return None
        if opdef.name in _COMMUTATIVE:
            operands = sorted(operands, key=id)
        attrs = tuple(sorted([(name, _exact(value)) for name, value in op.attrs.items()]))
        return opdef.name, tuple(operands), attrs, op.results[0].type, epoch


def _exact(value: object) -> Hashable:
    """An attribute, with 0.0, -0.0, 0 and False apart, and nan equal to itself."""
    return repr(value)


@declared(reads=("ops",), writes=("ops",))
def hoist_invariants(fn: Function, _: object = None) -> Function:
    """Move pure ops that are the same in every iteration out of loops.

    They are then computed even if the loop makes no iteration, which a pure op allows: it has no
    effect, and does not trap.  Loads stay: they may be out of bounds, or the memory may change.
    So do partial ops.
    Ops in a branch of the loop stay too: most iterations may not need them.
    """
    if not any(map(is_loop, walk(fn.body))):
        return fn
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
        is_total = op.opdef.has(PURE) and not op.opdef.has(PARTIAL)
        if is_total and not op.regions and inside.isdisjoint(op.operands):
            found.append(op)
            continue
        inside.update(op.results)
        if is_loop(op):
            found += _invariants(op.regions[0], inside)
    return found

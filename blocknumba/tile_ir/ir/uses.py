"""Uses of values: by ops, and by loops that carry them.

Loop-carried values: what a loop passes from iteration to iteration.

    %r = for %lo, %hi, %step, %zero : float32 (%i: int32, %acc: float32) {
      ...                  initial = %zero    args = %acc
      yield %next          following = %next  results = %r
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values


@dataclass(frozen=True, slots=True)
class Carried:
    """The loop-carried values of a loop: initial ones, region arguments, and yielded ones."""

    initial: tuple[Value, ...]
    args: tuple[Value, ...]
    following: tuple[Value, ...]


def is_loop(op: Op) -> bool:
    """Whether an op is a loop."""
    return op.name in ("for", "loop")


def carried(loop: Op) -> Carried:
    """The loop-carried values of a loop."""
    (region,), initial = loop.regions, loop.initial
    return Carried(initial, region.args[len(region.args) - len(initial):],
                   region.terminator.values)


def controls(loop: Op) -> tuple[Value, ...]:
    """Values that decide the number of iterations: bounds and step, or a condition."""
    if loop.name == "for":
        return loop.start, loop.stop, loop.step
    (region,) = loop.regions
    return (region.terminator.condition,)


def keep(rebuilder: Rebuilder, loop: Op, kept: Sequence[bool]) -> Values:
    """Re-emit a loop with some of its loop-carried values; returns the results of those.

    An argument that is dropped but still used must have a new value in the rebuilder.
    """
    (region,), builder, values = loop.regions, rebuilder.builder, carried(loop)
    counter = region.args[:1] if loop.name == "for" else ()
    args = (*counter, *compress(values.args, kept))
    with builder.region(*(a.type for a in args), hints=[a.hint for a in args]) as (copy, new_args):
        for old, new in zip(args, new_args, strict=True):
            rebuilder[old] = new
        rebuilder.ops(region.ops[:-1])
        end = region.terminator
        condition = () if loop.name == "for" else (end.condition,)
        yielded = (*condition, *compress(values.following, kept))
        builder.emit(end.opdef, *(rebuilder[value] for value in yielded))
    builder.loc = loop.loc
    bounds = controls(loop) if loop.name == "for" else ()
    operands = (*bounds, *compress(values.initial, kept))
    types = tuple(value.type for value in compress(loop.results, kept))
    made = builder.emit(loop.opdef, *(rebuilder[value] for value in operands), regions=(copy,),
                        types=types, **loop.attrs)
    return made if isinstance(made, tuple) else (made,)


class Uses:
    """Users of the values of a function, and the regions of its ops.

    The op that defines a value is in the value itself: `value.owner`.
    """

    def __init__(self, fn: Function):
        self._fn = fn
        self._users: dict[Value, list[Op]] = {}
        for op in walk(fn.body):
            for value in op.operands:
                self._users.setdefault(value, []).append(op)

    def users(self, value: Value) -> list[Op]:
        """The ops that use a value, in order; twice where it is two operands."""
        return self._users.get(value, [])

    def regions(self, op: Op) -> tuple[Region, ...]:
        """The regions that contain an op, the innermost first."""
        return self._around[op]

    def owner(self, region: Region) -> Op | None:
        """The op that owns a region; None for the body of the function."""
        return self._owner_of[region]

    def depth(self, op: Op) -> int:
        """Number of loops around an op."""
        owners = (self._owner_of[region] for region in self._around[op])
        return sum(owner is not None and is_loop(owner) for owner in owners)

    def index(self, op: Op, region: Region) -> int:
        """Index in a region of an op, or of the op of the region that contains it."""
        while self._around[op][0] is not region:
            op = self._owner_of[self._around[op][0]]
        return region.ops.index(op)

    @cached_property
    def _owner_of(self) -> dict[Region, Op | None]:
        inner = {region: op for op in walk(self._fn.body) for region in op.regions}
        return {self._fn.body: None, **inner}

    @cached_property
    def _around(self) -> dict[Op, tuple[Region, ...]]:
        found: dict[Op, tuple[Region, ...]] = {}
        waiting = [(self._fn.body,)]
        while waiting:
            regions = waiting.pop()
            for op in regions[0].ops:
                found[op] = regions
                waiting += [(inner, *regions) for inner in op.regions]
        return found


def is_computed_from(value: Value, source: Op) -> bool:
    """Whether a value is computed from a result of an op, within a region and branches in it."""
    waiting, seen = [value], set()
    while waiting:
        owner = waiting.pop().owner
        if owner is source:
            return True
        if owner is not None and owner not in seen:
            seen.add(owner)
            waiting += owner.operands
            for region in owner.regions:
                waiting += region.terminator.operands
    return False

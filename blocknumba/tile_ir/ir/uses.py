"""The use-def index of a function: which ops use a value, and in which region an op is."""

from __future__ import annotations

from functools import cached_property

from blocknumba.tile_ir.ir.carried import is_loop
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk


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

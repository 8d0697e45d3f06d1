"""The use-def index of a function: which ops use a value, and in which region an op is."""

from __future__ import annotations

from blocknumba.tile_ir.ir.carried import is_loop
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk


class Uses:
    """Users of the values of a function, and the regions of its ops.

    What makes a value is in the value itself: `value.owner`.
    """

    def __init__(self, fn: Function):
        self._users: dict[Value, list[Op]] = {}
        for op in walk(fn.body):
            for value in op.operands:
                self._users.setdefault(value, []).append(op)
        self._around: dict[Op, tuple[Region, ...]] = {}
        self._owners: dict[Region, Op | None] = {fn.body: None}
        self._note((fn.body,))

    def users(self, value: Value) -> list[Op]:
        """The ops that a value is an operand of, in order; twice where it is two operands."""
        return self._users.get(value, [])

    def regions(self, op: Op) -> tuple[Region, ...]:
        """The region that an op is in, and those around it."""
        return self._around[op]

    def owner(self, region: Region) -> Op | None:
        """The op that a region is of; None for the body of the function."""
        return self._owners[region]

    def depth(self, op: Op) -> int:
        """How many loops an op is in."""
        owners = (self._owners[region] for region in self._around[op])
        return sum(owner is not None and is_loop(owner) for owner in owners)

    def index(self, op: Op, region: Region) -> int:
        """The index in a region of an op, or of the op of the region that it is within."""
        while self._around[op][0] is not region:
            op = self._owners[self._around[op][0]]
        return region.ops.index(op)

    def _note(self, regions: tuple[Region, ...]) -> None:
        for op in regions[0].ops:
            self._around[op] = regions
            for inner in op.regions:
                self._owners[inner] = op
                self._note((inner, *regions))

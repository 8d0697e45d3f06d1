"""Where staged tiles are read, and the ops of a loop body that a value is computed by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import buffer_view, wgmma
from blocknumba.tile_ir.ir.carried import carried, is_loop
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import CONTROL, PURE, TERMINATOR


class Reads:
    """The users of values of a function, and the places of its ops."""

    def __init__(self, fn: Function):
        self._users: dict[Value, list[Op]] = {}
        for op in walk(fn.body):
            for value in op.operands:
                self._users.setdefault(value, []).append(op)
        self._around: dict[Op, tuple[Region, ...]] = {}
        self._owners: dict[Region, Op | None] = {fn.body: None}
        self._note((fn.body,))

    def users(self, value: Value) -> list[Op]:
        """The ops that a value is an operand of."""
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

    def place(self, op: Op, region: Region) -> int:
        """The index in a region of an op, or of the op of the region that it is within."""
        while self._around[op][0] is not region:
            op = self._owners[self._around[op][0]]
        return region.ops.index(op)

    def of_staged(self, stages: Iterable[Op]) -> list[Op]:
        """The ops after which staged tiles were read: the stages and the users of their buffers.

        Of a wgmma it is the wait for it.
        """
        found = list(stages)
        values = [op.result for op in found]
        while values:
            for op in self.users(values.pop()):
                if op.opdef is buffer_view:
                    values.append(op.result)
                else:
                    found += self.users(op.result) if op.opdef is wgmma else [op]
        return found

    def _note(self, regions: tuple[Region, ...]) -> None:
        for op in regions[0].ops:
            self._around[op] = regions
            for inner in op.regions:
                self._owners[inner] = op
                self._note((inner, *regions))


@dataclass(frozen=True, slots=True)
class Slice:
    """What some values of a round are computed by, from the counter and from carried values.

    ops: of the body, in order.  carried: places of the carried values that they use, or that those
    use in the round before.
    """

    ops: tuple[Op, ...]
    carried: tuple[int, ...]


def slice_of(loop: Op, values: Iterable[Value]) -> Slice | None:
    """The ops that values of a round need, and to know them in a later round; None if one of them
    is not pure."""
    (region,), own = loop.regions, carried(loop)
    reached = _reached(region, values, dict(zip(own.args, own.following, strict=True)))
    if reached is None:
        return None
    ops, args = reached
    return Slice(ops, tuple(place for place, arg in enumerate(own.args) if arg in args))


def ops_for(region: Region, values: Iterable[Value]) -> tuple[Op, ...] | None:
    """The ops of a region that values are computed by; None if one of them is not pure."""
    reached = _reached(region, values, {})
    return None if reached is None else reached[0]


def _reached(
    region: Region, values: Iterable[Value], following: Mapping[Value, Value]
) -> tuple[tuple[Op, ...], set[Value]] | None:
    """The ops of a region that values are computed by, in order, and the arguments among what they
    use; None if one of the ops is not pure.

    following: per argument, what it is in the next round, which is needed too.
    """
    inside, needed, args, todo = set(region.ops), set(), set(), list(values)
    while todo:
        value = todo.pop()
        if value in following:
            if value not in args:
                args.add(value)
                todo.append(following[value])
            continue
        op = value.owner
        if op not in inside or op in needed:
            continue
        if not _is_pure(op):
            return None
        needed.add(op)
        todo += _uses(op)
    return tuple(op for op in region.ops if op in needed), args


def _within(op: Op) -> Iterator[Op]:
    """An op and those of its regions."""
    yield op
    for region in op.regions:
        yield from walk(region)


def _is_pure(op: Op) -> bool:
    return all(inner.opdef.has(PURE | CONTROL | TERMINATOR) for inner in _within(op))


def _uses(op: Op) -> Iterator[Value]:
    for inner in _within(op):
        yield from inner.operands

"""The ops of a loop's body that a value is computed by, round for round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from blocknumba.tile_ir.carried import carried
from blocknumba.tile_ir.ir import Op, Region, Value, walk
from blocknumba.tile_ir.opdef import CONTROL, PURE, TERMINATOR


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
    own = carried(loop)
    body = loop.regions[0].ops
    inside = set(body)
    needed: set[Op] = set()
    places: set[int] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        if value in own.args:
            place = own.args.index(value)
            if place not in places:
                places.add(place)
                todo.append(own.following[place])
            continue
        op = value.owner
        if op not in inside or op in needed:
            continue
        if not _is_pure(op):
            return None
        needed.add(op)
        todo += _uses(op)
    return Slice(tuple(op for op in body if op in needed), tuple(sorted(places)))


def ops_for(region: Region, values: Iterable[Value]) -> tuple[Op, ...] | None:
    """The ops of a region that values are computed by; None if one of them is not pure."""
    inside, needed, todo = set(region.ops), set(), list(values)
    while todo:
        op = todo.pop().owner
        if op not in inside or op in needed:
            continue
        if not _is_pure(op):
            return None
        needed.add(op)
        todo += _uses(op)
    return tuple(op for op in region.ops if op in needed)


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

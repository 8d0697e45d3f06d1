"""Where consumers are done with a slot of a ring, and loops that begin a round before that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blocknumba.gpu_layout.async_ops import buffer_view, stage, wgmma, wgmma_wait
from blocknumba.gpu_layout.schedule import Group, Ring
from blocknumba.tile_ir.builder import constant_of
from blocknumba.tile_ir.carried import carried
from blocknumba.tile_ir.ir import Function, Op, Region, Value, walk


@dataclass(frozen=True, eq=False, slots=True)
class Overlap:
    """A loop in which wgmma alone touches its accumulators, so that rounds overlap.

    A round waits for the one before it, and then releases the slot that that one read.
    loop: a `for`; ring: the only one that it empties; waits: its wgmma_wait ops, in order.
    """

    loop: Op
    ring: Ring
    waits: tuple[Op, ...]

    def result(self, wait: Op) -> Value:
        """The result of the loop that a wait's value becomes."""
        place = self.loop.regions[0].terminator.operands.index(wait.result)
        return self.loop.results[place]


@dataclass(frozen=True, slots=True)
class RingUses:
    """releases: per op the rings whose slot is read once it is done.  overlaps: by loop and by
    wait; the rings in them are not in releases."""

    releases: dict[Op, tuple[Ring, ...]]
    overlaps: dict[Op, Overlap]
    late_waits: dict[Op, Overlap]


def ring_uses(fn: Function, rings: Iterable[Ring]) -> RingUses:
    """The uses of rings in a function before it is specialised."""
    users = _users(fn)
    found = RingUses({}, {}, {})
    regions = dict(_regions(fn.body, None))
    for ring, group in [(ring, group) for ring in rings for group in ring.groups]:
        region, owner = regions[group.fetches[0].stage]
        reads = _reads(group, users)
        overlap = _overlap(ring, reads, owner, users)
        if overlap is not None:
            found.overlaps[overlap.loop] = overlap
            found.late_waits.update(dict.fromkeys(overlap.waits, overlap))
            continue
        last = max(reads, key=lambda op: _place(op, region, regions))
        last = region.ops[_place(last, region, regions)]
        found.releases[last] = (*found.releases.get(last, ()), ring)
    return found


def _users(fn: Function) -> dict[Value, list[Op]]:
    users: dict[Value, list[Op]] = {}
    for op in walk(fn.body):
        for value in op.operands:
            users.setdefault(value, []).append(op)
    return users


def _regions(region: Region, owner: Op | None):
    """Per op of a region, and of those within, the region it is in and whose that is."""
    for op in region.ops:
        yield op, (region, owner)
        for inner in op.regions:
            yield from _regions(inner, op)


def _reads(group: Group, users: dict[Value, list[Op]]) -> list[Op]:
    """The ops after which a slot was read: users of its buffers, for wgmma the wait for it."""
    found = [fetch.stage for fetch in group.fetches]
    values = [fetch.stage.result for fetch in group.fetches]
    while values:
        for op in users.get(values.pop(), ()):
            if op.opdef is buffer_view:
                values.append(op.result)
            elif op.opdef is wgmma:
                found += users[op.result]
            else:
                found.append(op)
    return found


def _place(op: Op, region: Region, regions: dict[Op, tuple[Region, Op | None]]) -> int:
    """Where in a region an op is, or the op of the region that it is within."""
    while regions[op][0] is not region:
        op = regions[op][1]
    return region.ops.index(op)


def _overlap(
    ring: Ring, reads: list[Op], loop: Op | None, users: dict[Value, list[Op]]
) -> Overlap | None:
    """The overlap of the loop that a group's fetches are in, if wgmma alone reads them."""
    if loop is None or loop.name != "for" or ring.copies < 2:
        return None
    step = constant_of(loop.operands[2])
    waits = [op for op in reads if op.opdef is wgmma_wait]
    stages = [op for op in reads if op.opdef is stage]
    others = [op for op in reads if op not in waits and op not in stages]
    if others or not waits or step is None or step <= 0:
        return None
    (region,) = loop.regions
    waits = [op for op in region.ops if op in waits]
    every = [op for op in walk(region) if op.opdef is wgmma_wait]
    if waits != every or not all(_only_accumulates(op, loop, users) for op in waits):
        return None
    begun = [wait.operands[0].owner for wait in waits]
    if not all(_lasts(value, stages, region) for op in begun for value in op.operands[:2]):
        return None
    return Overlap(loop, ring, tuple(waits))


def _lasts(operand: Value, stages: list[Op], region: Region) -> bool:
    """Whether what a wgmma reads is still there in the next round: of the ring, or of no round."""
    while operand.owner is not None and operand.owner.opdef is buffer_view:
        (operand,) = operand.owner.operands
    return operand.owner in stages or operand.owner not in set(walk(region))


def _only_accumulates(wait: Op, loop: Op, users: dict[Value, list[Op]]) -> bool:
    """Whether a wgmma adds to a value that the loop carries and that nothing else in it touches."""
    begun = wait.operands[0].owner
    values, end = carried(loop), loop.regions[0].terminator
    accumulator = begun.operands[2]
    if accumulator not in values.args or users[accumulator] != [begun]:
        return False
    place = values.args.index(accumulator)
    return users[wait.result] == [end] and values.following[place] is wait.result

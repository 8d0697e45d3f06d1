"""Where consumers are done with a slot of a ring, and loops that begin a round before that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blocknumba.gpu_layout.async_ops import buffer_view, wgmma_wait
from blocknumba.gpu_layout.reads import Reads
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
    wait; the rings in them are not in releases.  read_by_threads: the rings that not only the
    tensor cores read."""

    releases: dict[Op, tuple[Ring, ...]]
    overlaps: dict[Op, Overlap]
    late_waits: dict[Op, Overlap]
    read_by_threads: set[Ring]


def ring_uses(fn: Function, rings: Iterable[Ring]) -> RingUses:
    """The uses of rings in a function before it is specialised."""
    reads = Reads(fn)
    found = RingUses({}, {}, {}, set())
    for ring, group in [(ring, group) for ring in rings for group in ring.groups]:
        stages = [fetch.stage for fetch in group.fetches]
        if any(op.opdef is not wgmma_wait and op not in stages for op in reads.of_staged(stages)):
            found.read_by_threads.add(ring)
        overlap = _overlap(ring, group, reads)
        if overlap is not None:
            found.overlaps[overlap.loop] = overlap
            found.late_waits.update(dict.fromkeys(overlap.waits, overlap))
            continue
        last = group.regions[0].ops[group.last]
        found.releases[last] = (*found.releases.get(last, ()), ring)
    return found


def _overlap(ring: Ring, group: Group, reads: Reads) -> Overlap | None:
    """The overlap of the loop that a group's fetches are in, if wgmma alone reads them."""
    loop = reads.owner(group.regions[0])
    if loop is None or loop.name != "for" or ring.copies < 2:
        return None
    step = constant_of(loop.operands[2])
    stages = [fetch.stage for fetch in group.fetches]
    read = reads.of_staged(stages)
    waits = [op for op in read if op.opdef is wgmma_wait]
    others = [op for op in read if op not in waits and op not in stages]
    if others or not waits or step is None or step <= 0:
        return None
    (region,) = loop.regions
    waits = [op for op in region.ops if op in waits]
    every = [op for op in walk(region) if op.opdef is wgmma_wait]
    if waits != every or not all(_only_accumulates(op, loop, reads) for op in waits):
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


def _only_accumulates(wait: Op, loop: Op, reads: Reads) -> bool:
    """Whether a wgmma adds to a value that the loop carries and that nothing else in it touches."""
    begun = wait.operands[0].owner
    values, end = carried(loop), loop.regions[0].terminator
    accumulator = begun.operands[2]
    if accumulator not in values.args or reads.users(accumulator) != [begun]:
        return False
    place = values.args.index(accumulator)
    return reads.users(wait.result) == [end] and values.following[place] is wait.result

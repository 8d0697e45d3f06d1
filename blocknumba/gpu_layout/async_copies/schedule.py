"""What the copy engine fetches for a program, and through which rings: a specialised kernel's plan.

A *fetch* is a staged load whose address is a box of an array.  Fetches that are used together share
a *ring*: copies of their buffers, filled and emptied in turn, with two mbarriers a copy: `full`
ends a phase when all bytes of a copy have come, `empty` when all warps have read it.  Whoever
fetches runs ahead by as many copies as there are.

Where a program is spread over blocks, each has rings of its own.  Tiles that all of them need are
fetched once: each block brings a portion, to all.  A copy of such a ring is empty when the warps of
all blocks have read theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from blocknumba.gpu_layout.async_copies.box_copies import BoxCopy, Describable, Map, box_copy
from blocknumba.gpu_layout.async_copies.ops import (
    buffer_view, shared_tile, stage, wgmma, wgmma_wait,
)
from blocknumba.gpu_layout.async_copies.reads import last_reads
from blocknumba.gpu_layout.async_copies.residency import (
    RESIDENT_COPIES, has_room_to_share, shared_bytes_of_each,
)
from blocknumba.gpu_layout.clusters.multicast import control_flow_diverges, rank_dependent
from blocknumba.gpu_layout.dots.ops import DOTS
from blocknumba.gpu_layout.layouts.shared import swizzled, widest_swizzle
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.planner import element_bits, tile_bytes
from blocknumba.tile_ir.analysis.boxes import Box, Boxes
from blocknumba.tile_ir.analysis.provenance import loaded, stored
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.carried import carried
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ir.uses import Uses
from blocknumba.tile_ir.ops.memory import load, store

MAX_COPIES = 6  # more do not hide more latency
STORED_BYTES = 64 * 1024  # of a part of a tile that is stored: 128 x 256 of 16-bit results


@dataclass(frozen=True, eq=False, slots=True)
class Fetch:
    """One tile that the copy engine brings: a `stage` of a load, and what it copies."""

    stage: Op
    copy: BoxCopy


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Fetches that arrive together, made side by side in one region.

    depth: how many loops they are in.  regions: that one, and those around it.
    first, last: the indices in the region of the first fetch, and of what reads a tile last.
    """

    fetches: tuple[Fetch, ...]
    depth: int
    regions: tuple[Region, ...]
    first: int
    last: int

    @property
    def buffers(self) -> tuple[TileType, ...]:
        """The types of their buffers."""
        return tuple(fetch.stage.result.type for fetch in self.fetches)

    def excludes(self, other: Group) -> bool:
        """Whether neither is fetched while a tile of the other is being used."""
        return not (self._surrounds(other) or other._surrounds(self))

    def _surrounds(self, other: Group) -> bool:
        """Whether a tile of this group is being used while the other is fetched."""
        if self.regions[0] not in other.regions:
            return False
        inner = other.regions[: other.regions.index(self.regions[0])]
        if not inner:
            return True
        within = next(i for i, op in enumerate(self.regions[0].ops) if inner[-1] in op.regions)
        return self.first < within <= self.last


@dataclass(eq=False, slots=True)
class Ring:
    """Copies of buffers through which groups of fetches go, one group after the other.

    groups: of the same buffers; both roles meet them in the same order.
    copies: how many of its buffers there are.
    """

    groups: list[Group]
    copies: int = 1

    @property
    def depth(self) -> int:
        """How many loops its groups are in."""
        return max(group.depth for group in self.groups)

    @property
    def buffers(self) -> tuple[TileType, ...]:
        """The types of the buffers of one copy."""
        return self.groups[0].buffers

    @property
    def size_bytes(self) -> int:
        """Of one copy of all buffers."""
        return sum(map(tile_bytes, self.buffers))

    @property
    def blocks(self) -> int:
        """How many blocks fetch for each other by way of it: 1 where each has it for itself."""
        return max(fetch.copy.blocks for group in self.groups for fetch in group.fetches)

    def takes(self, group: Group) -> bool:
        """Whether another group can go through the same copies."""
        return group.buffers == self.buffers and all(map(group.excludes, self.groups))


@dataclass(slots=True)
class Schedule:
    """What a specialised kernel does besides its ops.

    rings: in the order of their first fetch.  stores: stores that the copy engine does, in parts.
    reasons: per load or store that stays as it is, why.
    undivided: per load of a tile that all blocks need, and each fetches for itself, why.
    shares: several programs share a multiprocessor, and the copies leave room for them.
    """

    rings: list[Ring] = field(default_factory=list)
    stores: dict[Op, list[BoxCopy]] = field(default_factory=dict)
    reasons: dict[Op, str] = field(default_factory=dict)
    undivided: dict[Op, str] = field(default_factory=dict)
    shares: bool = False

    @property
    def blocks(self) -> int:
        """How many blocks fetch for each other: 1 where each does so for itself."""
        return max((ring.blocks for ring in self.rings), default=1)

    @property
    def maps(self) -> tuple[Map, ...]:
        """The tensor maps that are needed."""
        groups = [group for ring in self.rings for group in ring.groups]
        fetched = [fetch.copy.map for group in groups for fetch in group.fetches]
        stored = [parts[0].map for parts in self.stores.values()]
        return tuple(dict.fromkeys(fetched + stored))


def plan_schedule(fn: Function, options: LayoutOptions) -> Schedule:
    """Which loads and stores of a function the copy engine does; no rings if none is in a loop."""
    return _Planning(fn, options).schedule


class _Planning:
    """Finds the fetches of a function, groups them and gives them room."""

    def __init__(self, fn: Function, options: LayoutOptions):
        self._fn = fn
        self._options = options
        self._boxes = Boxes(fn)
        self._written, self._read = stored(fn), loaded(fn)
        self._describable = Describable.of(fn, options)
        self.schedule = Schedule()
        self._uses, self._blocks = Uses(fn), fn.attrs.get("cluster", 1)
        self._fetches = self._find_fetches()
        self._group()
        if any(ring.depth for ring in self.schedule.rings):
            self._find_stores()
            self._give_room()
        else:
            self._drop("nothing is fetched in a loop")

    def _drop(self, reason: str) -> None:
        """The copy engine does nothing."""
        loads = (op.x.owner for op in self._fetches)
        for op in (*loads, *self.schedule.stores):
            self.schedule.reasons.setdefault(op, reason)
        self.schedule.rings.clear()
        self.schedule.stores.clear()
        self.schedule.undivided.clear()

    def _find_fetches(self) -> dict[Op, Fetch]:
        """Per stage of a load that is a box, the fetch."""
        found = {}
        for op in walk(self._fn.body):
            source = op.x.owner if op.opdef is stage else None
            if source is None or source.opdef is not load:
                continue
            box = self._box(source)
            rounded = op.attrs.get("as_tf32", False)
            copy = box if isinstance(box, str) else box_copy(box, op.result.type, rounded)
            if isinstance(copy, str):
                self.schedule.reasons[source] = copy
            else:
                found[op] = Fetch(op, self._divided(source, copy))
        return found

    def _divided(self, source: Op, copy: BoxCopy) -> BoxCopy:
        """The copy of a load, of which each block does a portion if it is the same in all."""
        if self._blocks == 1:
            return copy
        differ = self._rank_dependent
        starts = (monomial for axis in copy.axes for monomial, _ in axis.start.terms)
        if any(atom.value in differ for monomial in starts for atom in monomial):
            return copy
        if "multicast" not in self._options.features:
            divided = "the target does not copy to several blocks at once"
        elif control_flow_diverges(self._fn, differ):
            divided = "the blocks may run different control flow"
        else:
            divided = copy.divided(self._blocks)
        if isinstance(divided, str):
            self.schedule.undivided[source] = divided
            return copy
        return divided

    @cached_property
    def _rank_dependent(self) -> frozenset[Value]:
        return rank_dependent(self._fn)

    def _box(self, op: Op) -> Box | str:
        """The box of a load or a store, or why the copy engine cannot move it."""
        if "tma" not in self._options.features:
            return "the target has no tensor maps"
        box = self._boxes.box_of(op)
        if isinstance(box, str):
            return box
        refusal = self._describable.refusal(box)
        if refusal:
            return refusal
        if box.argument in (self._written if op.opdef is load else self._read):
            return f"{box.argument} is read and written by the same kernel"
        if op.opdef is load and self._written and not self._options.arrays_are_disjoint:
            return "arrays share memory"
        if not all(self._boxes.is_plannable(axis.start) for axis in box.axes):
            return "its place depends on what was loaded"
        return box

    def _group(self) -> None:
        """Fetches of one product that are made side by side share a ring."""
        grouped: set[Op] = set()
        for op in walk(self._fn.body):
            if op.opdef is not wgmma and op.opdef not in DOTS:
                continue
            own = [_stage_of(value) for value in (op.a, op.b)]
            own = [s for s in own if s in self._fetches and s not in grouped]
            for region in dict.fromkeys(self._uses.regions(s)[0] for s in own):
                together = [s for s in own if self._uses.regions(s)[0] is region]
                grouped.update(together)
                self._add(together)
        for alone in self._fetches:
            if alone not in grouped:
                self._add([alone])

    def _add(self, stages: list[Op]) -> None:
        """Stages of one region as a group, in the first ring that takes it."""
        regions, depth = self._uses.regions(stages[0]), self._uses.depth(stages[0])
        ordered = sorted(dict.fromkeys(stages), key=regions[0].ops.index)
        last = max(self._uses.index(op, regions[0]) for op in last_reads(self._uses, ordered))
        group = Group(tuple(self._fetches[s] for s in ordered), depth, regions,
                      regions[0].ops.index(ordered[0]), last)
        for ring in self.schedule.rings:
            if ring.takes(group):
                ring.groups.append(group)
                return
        self.schedule.rings.append(Ring([group]))

    def _find_stores(self) -> None:
        """Stores of tiles that the copy engine can do."""
        for op in walk(self._fn.body):
            if op.opdef is not store or not op.value.type.shape:
                continue
            box = self._box(op)
            copy = box if isinstance(box, str) else _store_copy(box, op.value.type)
            if isinstance(copy, str):
                self.schedule.reasons[op] = copy
            else:
                self.schedule.stores[op] = copy.parts(STORED_BYTES)

    def _give_room(self) -> None:
        """As many copies as fit of the rings in the innermost loops; one of the others."""
        rings, stores = self.schedule.rings, self.schedule.stores
        deepest = max(ring.depth for ring in rings)
        inner = [ring for ring in rings if ring.depth == deepest]
        size = sum(ring.size_bytes for ring in inner)
        shares = self.schedule.shares = has_room_to_share(self._fn, self._options)
        room = shared_bytes_of_each(self._options) if shares else self._options.room_bytes
        room -= sum(ring.size_bytes for ring in rings if ring.depth < deepest)
        room -= sum(
            tile_bytes(op.result.type)
            for op in walk(self._fn.body)
            if op.opdef is stage and op not in self._fetches
        )
        if not shares:  # else what is stored takes the place of what was fetched
            room -= max((tile_bytes(parts[0].buffer) for parts in stores.values()), default=0)
        most = self._options.num_stages or (RESIDENT_COPIES if shares else MAX_COPIES)
        copies = min(most, room // size)
        if copies < 1:
            self._drop("one copy of all that a loop fetches does not fit into shared memory")
        for ring in inner:
            ring.copies = copies


def _store_copy(box: Box, tile: TileType) -> BoxCopy | str:
    """How a tile is stored, by way of a buffer with the widest rows."""
    minor_axis = box.axes[0].tile_axis
    if minor_axis is None:
        return "the tile has no axis along which the array is contiguous"
    bits = element_bits(tile)
    swizzle = widest_swizzle(tile.shape[minor_axis], bits)
    layout = swizzled(tile.shape, minor_axis, bits, swizzle)
    return box_copy(box, TileType(tile.dtype, tile.shape, layout))


def _stage_of(value: Value) -> Op | None:
    """The `stage` whose buffer an operand of a product is, or is read from; None if there is none.
    """
    while value.owner is not None and value.owner.opdef in (buffer_view, shared_tile):
        value = value.owner.buffer
    return value.owner


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
    uses = Uses(fn)
    found = RingUses({}, {}, {}, set())
    for ring, group in [(ring, group) for ring in rings for group in ring.groups]:
        stages = [fetch.stage for fetch in group.fetches]
        if any(op.opdef is not wgmma_wait and op not in stages for op in last_reads(uses, stages)):
            found.read_by_threads.add(ring)
        overlap = _overlap(ring, group, uses)
        if overlap is not None:
            found.overlaps[overlap.loop] = overlap
            found.late_waits.update(dict.fromkeys(overlap.waits, overlap))
            continue
        last = group.regions[0].ops[group.last]
        found.releases[last] = (*found.releases.get(last, ()), ring)
    return found


def _overlap(ring: Ring, group: Group, uses: Uses) -> Overlap | None:
    """The overlap of the loop that a group's fetches are in, if wgmma alone reads them."""
    loop = uses.owner(group.regions[0])
    if loop is None or loop.name != "for" or ring.copies < 2:
        return None
    step = constant_of(loop.step)
    stages = [fetch.stage for fetch in group.fetches]
    read = last_reads(uses, stages)
    waits = [op for op in read if op.opdef is wgmma_wait]
    others = [op for op in read if op not in waits and op not in stages]
    if others or not waits or step is None or step <= 0:
        return None
    (region,) = loop.regions
    waits = [op for op in region.ops if op in waits]
    every = [op for op in walk(region) if op.opdef is wgmma_wait]
    if waits != every or not all(_only_accumulates(op, loop, uses) for op in waits):
        return None
    begun = [wait.value.owner for wait in waits]
    if not all(_lasts(value, stages, region) for op in begun for value in (op.a, op.b)):
        return None
    return Overlap(loop, ring, tuple(waits))


def _lasts(operand: Value, stages: list[Op], region: Region) -> bool:
    """Whether what a wgmma reads is still there in the next round: of the ring, or of no round."""
    while operand.owner is not None and operand.owner.opdef is buffer_view:
        operand = operand.owner.buffer
    return operand.owner in stages or operand.owner not in set(walk(region))


def _only_accumulates(wait: Op, loop: Op, uses: Uses) -> bool:
    """Whether a wgmma adds to a value that the loop carries and that nothing else in it touches."""
    begun = wait.value.owner
    values, end = carried(loop), loop.regions[0].terminator
    accumulator = begun.acc
    if accumulator not in values.args or uses.users(accumulator) != [begun]:
        return False
    place = values.args.index(accumulator)
    return uses.users(wait.result) == [end] and values.following[place] is wait.result

"""Plan of a specialised kernel: what TMA fetches and stores for a program, through which rings.

A *fetch* is a staged load whose address is a box of an array.  Fetches that are used together share
a *ring*: slots, each with a copy of their buffers, filled and emptied in turn.  A slot has two
mbarriers: `full` ends a phase when all bytes of the slot have arrived, `empty` when all warps have
read them.  Whoever fetches runs ahead by as many slots as there are.

    a[m, k] --TMA--> +--------+--------+--------+
    b[k, n] --TMA--> | slot 0 | slot 1 | slot 2 |  --wgmma--> accumulator
                     +--------+--------+--------+
                       k = 0    k = 1    k = 2

Where a program is partitioned over a cluster, each block has rings of its own.  Tiles that all
blocks need are fetched once: each block fetches a shard and multicasts it.  A slot of such a ring
is empty when the warps of all blocks have read their copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from blocknumba.errors import Loc
from blocknumba.gpu_layout.async_copies.box_copies import BoxCopy, Describable, Map, box_copy
from blocknumba.gpu_layout.async_copies.ops import (
    buffer_view, shared_tile, stage, wgmma, wgmma_wait,
)
from blocknumba.gpu_layout.async_copies.overlap import late_waits
from blocknumba.gpu_layout.async_copies.pipelining import pipelining_of
from blocknumba.gpu_layout.async_copies.reads import last_reads
from blocknumba.gpu_layout.async_copies.residency import (
    PAIRED_COPIES, RESIDENT_COPIES, has_room_to_share, pair_fits, shared_bytes_of_each,
)
from blocknumba.gpu_layout.clusters.multicast import control_flow_diverges, rank_dependent
from blocknumba.gpu_layout.dots.ops import DOTS
from blocknumba.gpu_layout.layouts.shared import swizzled, widest_swizzle
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.planner import element_bits, tile_bytes
from blocknumba.tile_ir.analysis.boxes import NOT_A_VIEW, Box, Boxes
from blocknumba.tile_ir.analysis.provenance import loaded, stored
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.remarks import NOT_RAISED
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ir.uses import Uses
from blocknumba.tile_ir.ops.memory import load, store
from blocknumba.tile_ir.ops.views import elements_of
from blocknumba.tile_ir.passes.pipeline import lower_accesses

MAX_COPIES = 6  # of a ring: more do not hide more latency
OWN_COPIES = 3  # where the program's warps fetch: more cost a resident block.  perf/NOTES.md
HALF = "TMA cannot fetch the other operand of its dot, and threads can copy both"
NARROW = "its dot has tiles of short rows, which threads copy faster"
NARROW_ROW_BYTES = 64  # TMA moves 0.6 rows a cycle.  Measured on an H200: perf/NOTES.md
STORED_BYTES = 64 * 1024  # of a chunk of a stored tile: 128 x 256 of 16-bit results


@dataclass(frozen=True, eq=False, slots=True)
class Fetch:
    """One tile that TMA fetches: the `stage` of a load, and the copy of its box."""

    stage: Op
    copy: BoxCopy


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Fetches of one region that arrive together.

    depth: the number of loops around them.  regions: their region, and those around it.
    first, last: indices in their region of the first fetch, and of the op that reads a tile last.
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
        """Whether neither group is fetched while a tile of the other is in use."""
        return not (self._surrounds(other) or other._surrounds(self))

    def _surrounds(self, other: Group) -> bool:
        """Whether a tile of this group is in use while the other is fetched."""
        if self.regions[0] not in other.regions:
            return False
        inner = other.regions[: other.regions.index(self.regions[0])]
        if not inner:
            return True
        within = next(i for i, op in enumerate(self.regions[0].ops) if inner[-1] in op.regions)
        return self.first < within <= self.last


@dataclass(eq=False, slots=True)
class Ring:
    """Slots of shared memory through which groups of fetches go, one group after the other.

    groups: with the same types of buffers; both roles reach them in the same order.
    copies: the number of slots.
    """

    groups: list[Group]
    copies: int = 1

    @property
    def depth(self) -> int:
        """The number of loops around its innermost group."""
        return max(group.depth for group in self.groups)

    @property
    def buffers(self) -> tuple[TileType, ...]:
        """The types of the buffers of one slot."""
        return self.groups[0].buffers

    @property
    def size_bytes(self) -> int:
        """The bytes of one slot."""
        return sum(map(tile_bytes, self.buffers))

    @property
    def blocks(self) -> int:
        """The number of blocks that fill it together: 1 where each block fills its own."""
        return max(fetch.copy.blocks for group in self.groups for fetch in group.fetches)

    def accepts(self, group: Group) -> bool:
        """Whether another group can go through the same slots."""
        return group.buffers == self.buffers and all(map(group.excludes, self.groups))


@dataclass(slots=True)
class Schedule:
    """The TMA copies of a kernel.

    rings: in the order of their first fetch.  stores: stores that TMA does, in chunks.
    reasons: per load or store that TMA does not do, why.
    undivided: per load of a tile that all blocks need but that each fetches whole, why.
    shares: several programs share a multiprocessor, and the rings leave room for them.
    """

    rings: list[Ring] = field(default_factory=list)
    stores: dict[Op, list[BoxCopy]] = field(default_factory=dict)
    reasons: dict[Op, str] = field(default_factory=dict)
    undivided: dict[Op, str] = field(default_factory=dict)
    shares: bool = False

    @property
    def blocks(self) -> int:
        """The number of blocks that fetch for each other: 1 where each fetches for itself."""
        return max((ring.blocks for ring in self.rings), default=1)

    @property
    def maps(self) -> tuple[Map, ...]:
        """The tensor maps that are needed."""
        groups = [group for ring in self.rings for group in ring.groups]
        fetched = [fetch.copy.map for group in groups for fetch in group.fetches]
        stored = [chunks[0].map for chunks in self.stores.values()]
        return tuple(dict.fromkeys(fetched + stored))

    def drop(self, reason: str) -> None:
        """Leave all loads and stores to threads."""
        groups = (group for ring in self.rings for group in ring.groups)
        loads = [fetch.stage.x.owner for group in groups for fetch in group.fetches]
        for op in (*loads, *self.stores):
            self.reasons.setdefault(op, reason)
        self.rings.clear()
        self.stores.clear()
        self.undivided.clear()


def plan_schedule(fn: Function, options: LayoutOptions) -> Schedule:
    """Plan which loads and stores of a function TMA does; no rings if no fetch is in a loop."""
    return _Planning(fn, options).schedule


class _Planning:
    """Finds the fetches of a function, groups them into rings, and sizes the rings."""

    def __init__(self, fn: Function, options: LayoutOptions):
        self._fn = fn
        self._options = options
        self.schedule = Schedule()
        self._uses, self._blocks = Uses(fn), fn.attrs.get("cluster", 1)
        self._fetches = self._find_fetches()
        self._group()
        if any(ring.depth for ring in self.schedule.rings):
            if self._options.producers:  # else whoever called goes on with what threads stored
                self._find_stores()
            self._choose_copies()
        else:
            self.schedule.drop("nothing is fetched in a loop")

    # Analyses are made when the first staged load asks: most functions have none.

    @cached_property
    def _boxes(self) -> Boxes:
        return Boxes(self._fn)

    @cached_property
    def _not_raised(self) -> dict[tuple[str, Loc], str]:
        """Per kind and location of an access by pointers, why they are those of no view."""
        return {(remark.details["kind"], remark.loc): remark.reason
                for remark in self._fn.remarks if remark.topic == NOT_RAISED}

    @cached_property
    def _written(self) -> set[str]:
        return stored(self._fn)

    @cached_property
    def _read(self) -> set[str]:
        return loaded(self._fn)

    @cached_property
    def _describable(self) -> Describable:
        return Describable.of(self._fn, self._options)

    def _find_fetches(self) -> dict[Op, Fetch]:
        """Find the staged loads of boxes; per `stage`, the fetch."""
        found = {}
        for op in walk(self._fn.body):
            if not _loads(op):
                continue
            source = op.x.owner
            box = self._box(source)
            rounded = op.attrs.get("as_tf32", False)
            copy = box if isinstance(box, str) else box_copy(box, op.result.type, rounded)
            if isinstance(copy, str):
                self.schedule.reasons[source] = copy
            else:
                found[op] = Fetch(op, self._divided(source, copy))
        narrow = self._narrow(found)
        self.schedule.reasons.update((op.x.owner, NARROW) for op in narrow)
        found = {op: fetch for op, fetch in found.items() if op not in narrow}
        while halves := self._halves(found):  # the other operand of one may be that of another
            self.schedule.reasons.update((op.x.owner, HALF) for op in halves)
            found = {op: fetch for op, fetch in found.items() if op not in halves}
        return found

    def _narrow(self, fetches: dict[Op, Fetch]) -> set[Op]:
        """The fetches of both operands of a wgmma that threads can copy so that it overlaps, where
        rows have NARROW_ROW_BYTES or less on average.
        """
        if self._blocks > 1 or not self._options.producers:
            return set()
        found = set()
        for op in walk(self._fn.body):
            own = [stage_of(value) for value in (op.a, op.b)] if op.opdef is wgmma else ()
            if not own or not fetches.keys() >= set(own):
                continue
            copies = [fetches[stage].copy for stage in own]
            sizes = [tile_bytes(copy.buffer) for copy in copies]
            rows = sum(size // copy.row_bytes for size, copy in zip(sizes, copies, strict=True))
            if sum(sizes) <= NARROW_ROW_BYTES * rows and (
                    {stage.x.owner.loc for stage in own} <= self._overlapping):
                found.update(own)
        return found

    def _halves(self, fetches: dict[Op, Fetch]) -> set[Op]:
        """The fetches of one operand of a wgmma of which threads can copy both so that it overlaps.

        Where TMA brings one operand alone, its iterations do not overlap.
        """
        pairs = [[stage_of(value) for value in (op.a, op.b)] for op in walk(self._fn.body)
                 if op.opdef is wgmma]
        halves = {own: other for pair in pairs for own, other in (pair, pair[::-1])
                  if own in fetches and other not in fetches and _loads(other)}
        if not halves:
            return set()
        return {own for own, other in halves.items()
                if {own.x.owner.loc, other.x.owner.loc} <= self._overlapping}

    @cached_property
    def _overlapping(self) -> set[Loc]:
        """Locations of the loads that threads could copy for wgmma of which iterations overlap."""
        plan = pipelining_of(lower_accesses(self._fn), self._options)
        return {early.load.loc for pipeline in plan.pipelines if pipeline.late_waits
                for early in pipeline.loads}

    def _divided(self, source: Op, copy: BoxCopy) -> BoxCopy:
        """The copy of a load; if all blocks load the same tile, each block's shard of it."""
        if self._blocks == 1:
            return copy
        differ = self._rank_dependent
        starts = (monomial for axis in copy.axes for monomial, _ in axis.start.terms)
        if any(atom.value in differ for monomial in starts for atom in monomial):
            return copy
        if "multicast" not in self._options.features:
            sharded = "the target does not copy to several blocks at once"
        elif control_flow_diverges(self._fn, differ):
            sharded = "the blocks may run different control flow"
        else:
            sharded = copy.sharded(self._blocks)
        if isinstance(sharded, str):
            self.schedule.undivided[source] = sharded
            return copy
        return sharded

    @cached_property
    def _rank_dependent(self) -> frozenset[Value]:
        return rank_dependent(self._fn)

    def _box(self, op: Op) -> Box | str:
        """The box of a load or a store, or why TMA cannot move it."""
        if "tma" not in self._options.features:
            return "the target has no tensor maps"
        if elements_of(op.pointer) is None:
            return self._not_raised.get((op.name, op.loc), NOT_A_VIEW)
        box = self._boxes.box_of(op)
        if isinstance(box, str):
            return box
        refusal = self._describable.refusal(box)
        if refusal:
            return refusal
        if op.opdef is not load and not self._boxes.ends_whole(box):
            return f"rows of {box.argument} are not known to end at a multiple of 16 bytes"
        if box.argument in (self._written if op.opdef is load else self._read):
            return f"{box.argument} is read and written by the same kernel"
        if op.opdef is load and self._written and not self._options.arrays_are_disjoint:
            return "arrays share memory"
        if not all(self._boxes.is_plannable(axis.start) for axis in box.axes):
            return "its address depends on loaded values"
        return box

    def _group(self) -> None:
        """Put fetches of one dot and one region into one group; other fetches are groups alone."""
        grouped: set[Op] = set()
        for op in walk(self._fn.body):
            if op.opdef is not wgmma and op.opdef not in DOTS:
                continue
            own = [stage_of(value) for value in (op.a, op.b)]
            own = [s for s in own if s in self._fetches and s not in grouped]
            for region in dict.fromkeys(self._uses.regions(s)[0] for s in own):
                together = [s for s in own if self._uses.regions(s)[0] is region]
                grouped.update(together)
                self._add(together)
        for single in self._fetches:
            if single not in grouped:
                self._add([single])

    def _add(self, stages: list[Op]) -> None:
        """Add stages of one region as a group, to the first ring that accepts it."""
        regions, depth = self._uses.regions(stages[0]), self._uses.depth(stages[0])
        ordered = sorted(dict.fromkeys(stages), key=regions[0].ops.index)
        last = max(self._uses.index(op, regions[0]) for op in last_reads(self._uses, ordered))
        group = Group(tuple(self._fetches[s] for s in ordered), depth, regions,
                      regions[0].ops.index(ordered[0]), last)
        for ring in self.schedule.rings:
            if ring.accepts(group):
                ring.groups.append(group)
                return
        self.schedule.rings.append(Ring([group]))

    def _find_stores(self) -> None:
        """Find the stores of tiles that TMA can do."""
        for op in walk(self._fn.body):
            if op.opdef is not store or not op.value.type.shape:
                continue
            box = self._box(op)
            copy = box if isinstance(box, str) else _store_copy(box, op.value.type)
            if isinstance(copy, str):
                self.schedule.reasons[op] = copy
            else:
                self.schedule.stores[op] = copy.chunks(STORED_BYTES)

    def _choose_copies(self) -> None:
        """Choose the slots: one for rings outside of the innermost loops.

        Others have as many as fit; where there is nothing to fetch ahead of a loop, and two
        programs have registers, as many as fit twice.
        """
        rings, stores = self.schedule.rings, self.schedule.stores
        deepest = max(ring.depth for ring in rings)
        inner = [ring for ring in rings if ring.depth == deepest]
        size = sum(ring.size_bytes for ring in inner)
        shares = self.schedule.shares = has_room_to_share(self._fn, self._options)
        room = self._options.room_bytes
        if shares:
            room = shared_bytes_of_each(self._options, self._fn.attrs["resident_programs"])
        room -= sum(ring.size_bytes for ring in rings if ring.depth < deepest)
        room -= sum(
            tile_bytes(op.result.type)
            for op in walk(self._fn.body)
            if op.opdef is stage and op not in self._fetches
        )
        if not shares:  # else stored tiles reuse the bytes of fetched ones
            room -= max((tile_bytes(chunks[0].buffer) for chunks in stores.values()), default=0)
        most = RESIDENT_COPIES if shares else MAX_COPIES if self._options.producers else OWN_COPIES
        limit = self._options.num_stages or most
        copies = min(limit, room // size)
        if deepest == 1 and not shares and self._options.num_stages is None and pair_fits(
                self._fn, self._options):
            others = self._options.room_bytes - shared_bytes_of_each(self._options, 2)
            beside = (room - others) // size
            copies = min(copies, beside) if beside >= PAIRED_COPIES else copies
        if copies < 1:
            self.schedule.drop(
                "one copy of all that a loop fetches does not fit into shared memory")
        for ring in inner:
            ring.copies = copies


def _store_copy(box: Box, tile: TileType) -> BoxCopy | str:
    """The TMA copy that stores a tile from a buffer with the widest swizzle, or why not."""
    minor_axis = box.axes[0].tile_axis
    if minor_axis is None:
        return "the tile has no axis along which the array is contiguous"
    bits = element_bits(tile)
    swizzle = widest_swizzle(tile.shape[minor_axis], bits)
    layout = swizzled(tile.shape, minor_axis, bits, swizzle)
    return box_copy(box, TileType(tile.dtype, tile.shape, layout))


def _loads(op: Op | None) -> bool:
    """Whether an op stages what a load loaded."""
    return (op is not None and op.opdef is stage and op.x.owner is not None
            and op.x.owner.opdef is load)


def stage_of(value: Value) -> Op | None:
    """The op that put an operand of a dot into shared memory: a `stage`, if it was staged.
    """
    while value.owner is not None and value.owner.opdef in (buffer_view, shared_tile):
        value = value.owner.buffer
    return value.owner


@dataclass(frozen=True, eq=False, slots=True)
class Overlap:
    """A loop whose iterations overlap: each releases the slot that the one before read.

    loop: a `for`; ring: the only one that it reads; waits: its wgmma_wait ops, in order.
    """

    loop: Op
    ring: Ring
    waits: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class RingUses:
    """The reads of rings.

    releases: per op, the rings whose slot is released after it.
    overlaps, late_waits: overlaps by loop and by wait; their rings are not in releases.
    read_by_threads: rings that threads read, not the tensor cores alone.
    """

    releases: dict[Op, tuple[Ring, ...]]
    overlaps: dict[Op, Overlap]
    late_waits: dict[Op, Overlap]
    read_by_threads: set[Ring]


def ring_uses(fn: Function, rings: Iterable[Ring]) -> RingUses:
    """Find the uses of rings in a function that is not specialised yet."""
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
    """The overlap of the loop around a group, if only wgmma reads its tiles."""
    loop = uses.owner(group.regions[0])
    if loop is None or loop.name != "for" or ring.copies < 2:
        return None
    step = constant_of(loop.step)
    if step is None or step <= 0:
        return None
    waits = late_waits(loop, [fetch.stage for fetch in group.fetches], uses)
    return Overlap(loop, ring, waits) if waits else None

"""What each warp of a kernel does with the rings that the copy engine fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.box_copies import BoxCopy, Map
from blocknumba.gpu_layout.async_copies.ops import (
    blocks_done, buffer_shard, fence_async, mbarrier_arrive, mbarrier_expect, mbarrier_wait, slot,
    stage, tma_load, tma_store, tma_store_wait, uniform, wgmma_wait,
)
from blocknumba.gpu_layout.async_copies.schedule import Group, Overlap, Ring, RingUses
from blocknumba.gpu_layout.ops import cta_rank
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import EFFECT, OPS, TERMINATOR, WRITES
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.ir.types import TileType, int32
from blocknumba.tile_ir.ops.shape import extract

Place = tuple[Value, Value]  # in a ring: a slot, and in it a phase
DIVISIONS = ("floordiv", "mod")  # of which the assembler makes code that only it can place


@dataclass(frozen=True, slots=True)
class Buffers:
    """What a ring is in shared memory: a buffer for each fetch, and the barrier objects."""

    tiles: tuple[Value, ...]
    full: Value
    empty: Value


@dataclass(frozen=True, slots=True)
class RoleContext:
    """What both roles share: the kernel's old arguments, its tensor maps, its rings."""

    args: dict[Value, Value]
    maps: dict[Map, Value]
    buffers: dict[Ring, Buffers]


class Role(Rebuilder):
    """Re-emits a kernel as one role sees it.

    Where it stands in each ring, a slot and a phase, goes with the control flow: loops and branches
    that the ring is used in hand it on.
    """

    def __init__(self, builder: Builder, given: RoleContext):
        super().__init__()
        self.builder = builder
        self._buffers = given.buffers
        self._maps = given.maps
        self._sites = {
            fetch.stage: (ring, group, place)
            for ring in given.buffers
            for group in ring.groups
            for place, fetch in enumerate(group.fetches)
        }
        self._at: dict[Ring, Place] = {}
        self._inside: dict[Op, tuple[Ring, ...]] = {}
        self._rank: Value | None = None
        for old, new in given.args.items():
            self[old] = new

    def region_of(self, body: Region) -> Region:
        """The role's region: the body of the kernel without its return."""
        with self.builder.region() as (region, _):
            self.run(body)
            self.builder.emit(OPS["yield"])
        return region

    def run(self, body: Region) -> None:
        """The role's copy, here, of what the kernel does."""
        for ring in self._buffers:
            start = self.builder.constant(0, int32)
            self._at[ring] = start, start
        if self._blocks > 1:
            self._rank = self.builder.emit(cta_rank, blocks=self._blocks)
        self.ops(body.ops[:-1])
        self.end()

    @property
    def _blocks(self) -> int:
        """How many blocks fetch for each other."""
        return max(ring.blocks for ring in self._buffers)

    def end(self) -> None:
        """What is to be done after everything else."""

    def begin_round(self, region: Region) -> None:
        """What is to be done first in a region that hands on its rings."""

    def op(self, op: Op) -> None:
        """A copy of one op; the role's part of a fetch; a control op that hands on its rings."""
        rings = self._rings_in(op) if op.regions else ()
        if op in self._sites:
            self.builder.loc = op.loc
            self.fetch(*self._sites[op])
        elif rings:
            self._set(op, self._threaded(op, rings))
        else:
            super().op(op)
            if op.name in DIVISIONS and op.result.type == TileType(int32):
                self[op.result] = self.builder.emit(uniform, self[op.result], hint=op.result.hint)

    def fetch(self, ring: Ring, group: Group, place: int) -> None:
        """The role's part of one fetch of a group, by way of a ring."""
        raise NotImplementedError

    def _set(self, op: Op, results: Sequence[Value]) -> None:
        for old, new in zip(op.results, results, strict=True):
            new.hint = new.hint or old.hint
            self[old] = new

    def _rings_in(self, op: Op) -> tuple[Ring, ...]:
        """The rings that are used within an op."""
        if op not in self._inside:
            sites = [self._sites[o] for r in op.regions for o in walk(r) if o in self._sites]
            self._inside[op] = tuple(dict.fromkeys(ring for ring, _, _ in sites))
        return self._inside[op]

    def _threaded(self, op: Op, rings: tuple[Ring, ...]) -> Values:
        """A control op that also hands on where its rings are; its own results."""
        extra = [value for ring in rings for value in self._at[ring]]
        operands = self.operands(op)
        attrs, types = dict(op.attrs), [value.type for value in op.results + tuple(extra)]
        if "result_types" in attrs:
            attrs["result_types"] = tuple(types)
        before = dict(self._at)
        regions = []
        for region in op.regions:
            self._at = dict(before)
            regions.append(self._handing_on(region, rings, bool(region.args)))
        self.builder.loc = op.loc
        if op.regions[0].args or op.name == "loop":
            operands += extra
        made = self.builder.emit(op.opdef, *operands, regions=regions, types=tuple(types), **attrs)
        own = len(op.results)
        self._at = before
        self._enter(rings, made[own:])
        return made[:own]

    def _handing_on(self, region: Region, rings: tuple[Ring, ...], is_entered: bool) -> Region:
        """A region that hands on its rings, and that is entered with them if it is a loop's."""
        types = [arg.type for arg in region.args]
        hints = [arg.hint for arg in region.args]
        extra = [TileType(int32)] * (2 * len(rings) * is_entered)
        with self.builder.region(*types, *extra, hints=hints) as (copy, args):
            for old, new in zip(region.args, args, strict=False):
                self[old] = new
            if is_entered:
                self._enter(rings, args[len(types) :])
            self.begin_round(region)
            self.ops(region.ops[:-1])
            end = region.terminator
            self.builder.loc = end.loc
            handed = [value for ring in rings for value in self._at[ring]]
            self.builder.emit(end.opdef, *self.operands(end), *handed)
        return copy

    def _enter(self, rings: tuple[Ring, ...], values: Sequence[Value]) -> None:
        for i, ring in enumerate(rings):
            self._at[ring] = values[2 * i], values[2 * i + 1]

    def _after(self, ring: Ring, at: Place) -> Place:
        """The next slot of a ring, and in it its next phase."""
        index, phase = at
        one = self.builder.constant(1, int32)
        zero = self.builder.constant(0, int32)
        emit = self.builder.emit
        flipped = emit(OPS["xor"], phase, one)
        if ring.copies == 1:
            return index, flipped
        following = emit(OPS["add"], index, one)
        wraps = emit(OPS["eq"], following, self.builder.constant(ring.copies, int32))
        return (
            emit(OPS["select"], wraps, zero, following),
            emit(OPS["select"], wraps, flipped, phase),
        )

    def _before(self, ring: Ring, index: Value) -> Value:
        """The slot before a slot."""
        emit, constant = self.builder.emit, self.builder.constant
        is_first = emit(OPS["eq"], index, constant(0, int32))
        below = emit(OPS["sub"], index, constant(1, int32))
        return emit(OPS["select"], is_first, constant(ring.copies - 1, int32), below)

    def _fill(self, ring: Ring, group: Group, at: Place) -> None:
        """Begin all copies of a slot, once it is empty.  One warp executes this."""
        emit, buffers = self.builder.emit, self._buffers[ring]
        index, phase = at
        other = emit(OPS["xor"], phase, self.builder.constant(1, int32))
        emit(mbarrier_wait, emit(slot, buffers.empty, index), other)
        full = emit(slot, buffers.full, index)
        emit(mbarrier_expect, full, size_bytes=ring.size_bytes)
        for fetch, tile in zip(group.fetches, buffers.tiles, strict=True):
            copy, buffer = fetch.copy, emit(slot, tile, index)
            if copy.portion is not None:
                part = copy.portion.tile
                buffer = emit(buffer_shard, buffer, self._rank, shape=part.shape,
                              layout=part.layout)
            starts = copy.starts(self, self._rank)
            emit(tma_load, self._maps[copy.map], buffer, full, *starts, blocks=copy.blocks)

    def _wait_until_full(self, ring: Ring, at: Place) -> None:
        index, phase = at
        self.builder.emit(mbarrier_wait, self.builder.emit(slot, self._buffers[ring].full, index),
                          phase)


class Producer(Role):
    """The role that fetches: waits until a slot is empty, and begins its copies."""

    def op(self, op: Op) -> None:
        """A copy of one op; what has effects is the other role's."""
        if not op.regions and op.opdef.has(WRITES | EFFECT) and not op.opdef.has(TERMINATOR):
            for value in op.results:
                tile = value.type
                self[value] = self.builder.emit(
                    OPS["undefined"], dtype=str(tile.dtype), shape=tile.shape
                )
            return
        super().op(op)

    def fetch(self, ring: Ring, group: Group, place: int) -> None:
        """Begin all copies of a slot at the last of its fetches: then all places are known."""
        if place + 1 < len(group.fetches):
            return
        self._fill(ring, group, self._at[ring])
        self._at[ring] = self._after(ring, self._at[ring])


class Consumer(Role):
    """The role that computes: waits until a slot is full, and says when it has read it."""

    def __init__(
        self, builder: Builder, given: RoleContext, stores: dict[Op, list[BoxCopy]], uses: RingUses
    ):
        super().__init__(builder, given)
        self._stores = stores
        self._uses = uses
        self._held: dict[Ring, Value] = {}

    def end(self) -> None:
        """Shared memory must last until it is stored, and until no other block reaches it."""
        if self._blocks > 1:
            self.builder.emit(blocks_done)
        if self._stores:
            self.builder.emit(tma_store_wait)

    def op(self, op: Op) -> None:
        """A copy of one op, and the release of the rings that were used last by it."""
        overlap = self._uses.overlaps.get(op)
        if op in self._stores:
            self._store(op)
        elif op in self._uses.late_waits:
            self._wait_late(op)
        else:
            super().op(op)
        if overlap is not None:
            self._finish(op, overlap)
        done = self._uses.releases.get(op, ())
        if not self._uses.read_by_threads.isdisjoint(done):
            self.builder.emit(fence_async)  # the copy engine must not overtake their reads
        for ring in done:
            self._release(ring, self._held[ring])

    def fetch(self, ring: Ring, group: Group, place: int) -> None:
        """The buffer of one fetch, after waiting for all of a slot at the first."""
        if place == 0:
            self._wait_until_full(ring, self._at[ring])
            self._hold(ring)
        self._hand_out(ring, group, place)

    def _hold(self, ring: Ring) -> None:
        """The slot that the ring is at is being read from here on."""
        self._held[ring], _ = self._at[ring]
        self._at[ring] = self._after(ring, self._at[ring])

    def _hand_out(self, ring: Ring, group: Group, place: int) -> None:
        """The buffer of one fetch, of the slot that is being read."""
        staged, tile = group.fetches[place].stage.result, self._buffers[ring].tiles[place]
        self[staged] = self.builder.emit(slot, tile, self._held[ring], hint=staged.hint)

    def _release(self, ring: Ring, index: Value, condition: Value | None = None) -> None:
        operands = () if condition is None else (condition,)
        empty = self.builder.emit(slot, self._buffers[ring].empty, index)
        self.builder.emit(mbarrier_arrive, empty, *operands, blocks=ring.blocks)

    def _store(self, op: Op) -> None:
        """A store by the copy engine: stage the tile where the last store has left, and go on."""
        emit = self.builder.emit
        self.builder.loc = op.loc
        parts = self._stores[op]
        for copy in parts:
            part = emit(
                extract, self[op.value], starts=copy.tile_starts, shape=copy.buffer.shape
            )
            emit(tma_store_wait)
            buffer = emit(stage, part, layout=copy.buffer.layout)
            emit(tma_store, self._maps[copy.map], buffer, *copy.starts(self))
        if len(parts) > 1:
            emit(tma_store_wait)  # else the first part could not lie where the last one does

    # an accumulator that nothing but wgmma touches in a loop -----------------------------------
    def _wait_late(self, op: Op) -> None:
        """Wait for the round before this one, and release what it had read."""
        overlap = self._uses.late_waits[op]
        self.builder.loc = op.loc
        value, pending = self[op.value], len(overlap.waits)
        self[op.result] = self.builder.emit(wgmma_wait, value, pending=pending)
        if op is overlap.waits[-1]:
            round_, start = self[overlap.loop.regions[0].args[0]], self[overlap.loop.start]
            later = self.builder.emit(OPS["ne"], round_, start)
            self._release(overlap.ring, self._before(overlap.ring, self._held[overlap.ring]), later)

    def _finish(self, op: Op, overlap: Overlap) -> None:
        """Wait for the last round of a loop, and release what it had read."""
        for wait in overlap.waits:
            result = overlap.result(wait)
            self[result] = self.builder.emit(wgmma_wait, self[result], pending=0, hint=result.hint)
        any_round = self.builder.emit(OPS["lt"], self[op.start], self[op.stop])
        following, _ = self._at[overlap.ring]
        self._release(overlap.ring, self._before(overlap.ring, following), any_round)

"""Roles: how producers and consumers re-emit a kernel around the rings that TMA fills.

A ring position is a slot and the phase of its barriers.  It starts at (0, 0); the phase flips when
the slot wraps around.  Of a ring of 3 slots:

    position      (0,0) (1,0) (2,0) (0,1) (1,1) ...

    Producer, per fetch                        Consumer, per fetch
    wait   empty[slot] for phase ^ 1           wait   full[slot] for phase
    expect full[slot], size_bytes              read   the buffers of the slot
    tma_load the buffers of the slot           arrive at empty[slot]
    position = next                            position = next

The first wait of the producer for a slot returns at once: phase 1 of a new barrier counts as over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.box_copies import BoxCopy, Map
from blocknumba.gpu_layout.async_copies.ops import (
    blocks_done, buffer_shard, fence_async, mbarrier_arrive, mbarrier_expect, mbarrier_wait, slot,
    stage, tma_load, tma_store, tma_store_wait, uniform, wgmma_wait,
)
from blocknumba.gpu_layout.async_copies.overlap import result_of
from blocknumba.gpu_layout.async_copies.schedule import Group, Overlap, Ring, RingUses
from blocknumba.gpu_layout.ops import cta_rank
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import EFFECT, OPS, TERMINATOR, WRITES
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.ir.types import TileType, int32
from blocknumba.tile_ir.ops.shape import extract

RingPosition = tuple[Value, Value]  # a slot of a ring, and the phase of its barriers
# the assembler expands and schedules them by itself
DIVISIONS = ("floordiv", "mod", "truncdiv", "truncmod")


@dataclass(frozen=True, slots=True)
class Buffers:
    """A ring in shared memory: a buffer for each fetch, and the barrier objects."""

    tiles: tuple[Value, ...]
    full: Value
    empty: Value


@dataclass(frozen=True, slots=True)
class RoleContext:
    """The values that all roles share: arguments of the kernel, tensor maps, rings."""

    args: dict[Value, Value]
    maps: dict[Map, Value]
    buffers: dict[Ring, Buffers]


class Role(Rebuilder):
    """Re-emits a kernel as one role executes it.

    The position in each ring follows the control flow: loops that use the ring carry it, branches
    that use it yield it.
    """

    def __init__(self, builder: Builder, context: RoleContext):
        super().__init__()
        self.builder = builder
        self._buffers = context.buffers
        self._maps = context.maps
        self._sites = {
            fetch.stage: (ring, group, index)
            for ring in context.buffers
            for group in ring.groups
            for index, fetch in enumerate(group.fetches)
        }
        self._positions: dict[Ring, RingPosition] = {}
        self._rings_of_op: dict[Op, tuple[Ring, ...]] = {}
        self._rank: Value | None = None
        for old, new in context.args.items():
            self[old] = new

    def region_of(self, body: Region) -> Region:
        """The role's region: the body of the kernel without its return."""
        with self.builder.region() as (region, _):
            self.run(body)
            self.builder.emit(OPS["yield"])
        return region

    def run(self, body: Region) -> None:
        """Emit the role's copy of a kernel's body at the insertion point."""
        for ring in self._buffers:
            start = self.builder.constant(0, int32)
            self._positions[ring] = start, start
        if self._blocks > 1:
            self._rank = self.builder.emit(cta_rank, blocks=self._blocks)
        self.ops(body.ops[:-1])
        self.end()

    @property
    def _blocks(self) -> int:
        """The number of blocks that fetch for each other."""
        return max(ring.blocks for ring in self._buffers)

    def end(self) -> None:
        """Emit what follows everything else."""

    def begin_iteration(self, region: Region) -> None:
        """Emit what comes first in a region that carries ring positions."""

    def op(self, op: Op) -> None:
        """A copy of one op; the role's share of a fetch; a control op with ring positions."""
        rings = self._rings_in(op) if op.regions else ()
        if op in self._sites:
            self.builder.loc = op.loc
            self.fetch(*self._sites[op])
        elif rings:
            self._set(op, self._control_carrying(op, rings))
        else:
            super().op(op)
            if op.name in DIVISIONS and op.result.type == TileType(int32):
                self[op.result] = self.builder.emit(uniform, self[op.result], hint=op.result.hint)

    def fetch(self, ring: Ring, group: Group, fetch_index: int) -> None:
        """Emit the role's share of one fetch of a group that goes through a ring."""
        raise NotImplementedError

    def _set(self, op: Op, results: Sequence[Value]) -> None:
        for old, new in zip(op.results, results, strict=True):
            new.hint = new.hint or old.hint
            self[old] = new

    def _rings_in(self, op: Op) -> tuple[Ring, ...]:
        """The rings that are used within an op."""
        if op not in self._rings_of_op:
            sites = [self._sites[o] for r in op.regions for o in walk(r) if o in self._sites]
            self._rings_of_op[op] = tuple(dict.fromkeys(ring for ring, _, _ in sites))
        return self._rings_of_op[op]

    def _control_carrying(self, op: Op, rings: tuple[Ring, ...]) -> Values:
        """Emit a control op that also carries ring positions; return its own results."""
        extra = [value for ring in rings for value in self._positions[ring]]
        operands = self.operands(op)
        attrs, types = dict(op.attrs), [value.type for value in op.results + tuple(extra)]
        if "result_types" in attrs:
            attrs["result_types"] = tuple(types)
        before = dict(self._positions)
        regions = []
        for region in op.regions:
            self._positions = dict(before)
            regions.append(self._region_carrying(region, rings, bool(region.args)))
        self.builder.loc = op.loc
        if op.regions[0].args or op.name == "loop":
            operands += extra
        made = self.builder.emit(op.opdef, *operands, regions=regions, types=tuple(types), **attrs)
        own = len(op.results)
        self._positions = before
        self._enter(rings, made[own:])
        return made[:own]

    def _region_carrying(self, region: Region, rings: tuple[Ring, ...], is_entered: bool) -> Region:
        """A region that yields ring positions, and takes them as arguments if it is a loop's."""
        types = [arg.type for arg in region.args]
        hints = [arg.hint for arg in region.args]
        extra = [TileType(int32)] * (2 * len(rings) * is_entered)
        with self.builder.region(*types, *extra, hints=hints) as (copy, args):
            for old, new in zip(region.args, args, strict=False):
                self[old] = new
            if is_entered:
                self._enter(rings, args[len(types) :])
            self.begin_iteration(region)
            self.ops(region.ops[:-1])
            end = region.terminator
            self.builder.loc = end.loc
            yielded = [value for ring in rings for value in self._positions[ring]]
            self.builder.emit(end.opdef, *self.operands(end), *yielded)
        return copy

    def _enter(self, rings: tuple[Ring, ...], values: Sequence[Value]) -> None:
        for i, ring in enumerate(rings):
            self._positions[ring] = values[2 * i], values[2 * i + 1]

    def _next_position(self, ring: Ring, position: RingPosition) -> RingPosition:
        """The position after one: the next slot; after the last slot, slot 0 of the other phase."""
        index, phase = position
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

    def _previous_slot(self, ring: Ring, index: Value) -> Value:
        """The slot before a slot."""
        emit, constant = self.builder.emit, self.builder.constant
        is_first = emit(OPS["eq"], index, constant(0, int32))
        below = emit(OPS["sub"], index, constant(1, int32))
        return emit(OPS["select"], is_first, constant(ring.copies - 1, int32), below)

    def _fill(self, ring: Ring, group: Group, position: RingPosition) -> None:
        """Wait until a slot is empty, then begin all of its copies.  One warp executes this."""
        emit, buffers = self.builder.emit, self._buffers[ring]
        index, phase = position
        other = emit(OPS["xor"], phase, self.builder.constant(1, int32))
        emit(mbarrier_wait, emit(slot, buffers.empty, index), other)
        full = emit(slot, buffers.full, index)
        emit(mbarrier_expect, full, size_bytes=ring.size_bytes)
        for fetch, ring_tile in zip(group.fetches, buffers.tiles, strict=True):
            copy, buffer = fetch.copy, emit(slot, ring_tile, index)
            if copy.shard is not None:
                tile = copy.shard.tile
                buffer = emit(buffer_shard, buffer, self._rank, shape=tile.shape,
                              layout=tile.layout)
            starts = copy.starts(self, self._rank)
            emit(tma_load, self._maps[copy.map], buffer, full, *starts, blocks=copy.blocks)

    def _wait_until_full(self, ring: Ring, position: RingPosition) -> None:
        index, phase = position
        self.builder.emit(mbarrier_wait, self.builder.emit(slot, self._buffers[ring].full, index),
                          phase)


class Producer(Role):
    """The role that fetches: it waits until a slot is empty, and begins the copies to it."""

    def op(self, op: Op) -> None:
        """A copy of one op; ops with effects belong to the consumers."""
        if not op.regions and op.opdef.has(WRITES | EFFECT) and not op.opdef.has(TERMINATOR):
            for value in op.results:
                tile = value.type
                self[value] = self.builder.emit(
                    OPS["undefined"], dtype=str(tile.dtype), shape=tile.shape
                )
            return
        super().op(op)

    def fetch(self, ring: Ring, group: Group, fetch_index: int) -> None:
        """Begin all copies of a slot at the last of its fetches, when all addresses are known."""
        if fetch_index + 1 < len(group.fetches):
            return
        self._fill(ring, group, self._positions[ring])
        self._positions[ring] = self._next_position(ring, self._positions[ring])


class Consumer(Role):
    """The role that computes: it waits until a slot is full, reads it, and releases it."""

    def __init__(
        self, builder: Builder, context: RoleContext, stores: dict[Op, list[BoxCopy]],
        uses: RingUses,
    ):
        super().__init__(builder, context)
        self._stores = stores
        self._uses = uses
        self._held: dict[Ring, Value] = {}

    def end(self) -> None:
        """Wait until no other block reaches this one's shared memory, and until stores read it."""
        if self._blocks > 1:
            self.builder.emit(blocks_done)
        if self._stores:
            self.builder.emit(tma_store_wait)

    def op(self, op: Op) -> None:
        """A copy of one op, and the release of the slots that it read last."""
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
            self.builder.emit(fence_async)  # TMA must not overtake the reads of threads
        for ring in done:
            self._release(ring, self._held[ring])

    def fetch(self, ring: Ring, group: Group, fetch_index: int) -> None:
        """The buffer of one fetch; before the first of a group, wait for the whole slot."""
        if fetch_index == 0:
            self._wait_until_full(ring, self._positions[ring])
            self._hold(ring)
        self._bind_buffer(ring, group, fetch_index)

    def _hold(self, ring: Ring) -> None:
        """Mark the slot at the ring's position as being read, and advance the position."""
        self._held[ring], _ = self._positions[ring]
        self._positions[ring] = self._next_position(ring, self._positions[ring])

    def _bind_buffer(self, ring: Ring, group: Group, fetch_index: int) -> None:
        """Let the buffer of one fetch, in the slot being read, stand for the staged tile."""
        staged = group.fetches[fetch_index].stage.result
        tile = self._buffers[ring].tiles[fetch_index]
        self[staged] = self.builder.emit(slot, tile, self._held[ring], hint=staged.hint)

    def _release(self, ring: Ring, index: Value, condition: Value | None = None) -> None:
        operands = () if condition is None else (condition,)
        empty = self.builder.emit(slot, self._buffers[ring].empty, index)
        self.builder.emit(mbarrier_arrive, empty, *operands, blocks=ring.blocks)

    def _store(self, op: Op) -> None:
        """A store by TMA: wait until the last store has read its buffer, stage the tile, go on."""
        emit = self.builder.emit
        self.builder.loc = op.loc
        chunks = self._stores[op]
        for copy in chunks:
            chunk = emit(
                extract, self[op.value], starts=copy.tile_starts, shape=copy.buffer.shape
            )
            emit(tma_store_wait)
            buffer = emit(stage, chunk, layout=copy.buffer.layout)
            emit(tma_store, self._maps[copy.map], buffer, *copy.starts(self))
        if len(chunks) > 1:
            emit(tma_store_wait)  # so that the first chunk can lie where the last one does

    # an accumulator that nothing but wgmma touches in a loop -----------------------------------
    def _wait_late(self, op: Op) -> None:
        """Wait for the dots of the iteration before, and release the slot that they read."""
        overlap = self._uses.late_waits[op]
        self.builder.loc = op.loc
        value, pending = self[op.value], len(overlap.waits)
        self[op.result] = self.builder.emit(wgmma_wait, value, pending=pending)
        if op is overlap.waits[-1]:
            counter, start = self[overlap.loop.regions[0].args[0]], self[overlap.loop.start]
            later = self.builder.emit(OPS["ne"], counter, start)
            previous = self._previous_slot(overlap.ring, self._held[overlap.ring])
            self._release(overlap.ring, previous, later)

    def _finish(self, op: Op, overlap: Overlap) -> None:
        """Wait for the dots of a loop's last iteration, and release the slot that they read."""
        for wait in overlap.waits:
            result = result_of(wait, overlap.loop)
            self[result] = self.builder.emit(wgmma_wait, self[result], pending=0, hint=result.hint)
        has_iterations = self.builder.emit(OPS["lt"], self[op.start], self[op.stop])
        following, _ = self._positions[overlap.ring]
        self._release(overlap.ring, self._previous_slot(overlap.ring, following), has_iterations)

"""The pass that gives a kernel's fetches to a warp of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.gpu_layout.async_ops import (
    WARPGROUP,
    mbarrier_allocate,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_wait,
    pin,
    slot,
    stage,
    tma_load,
    tma_store,
    tma_store_wait,
    uniform,
    warp_roles,
    wgmma,
    wgmma_wait,
)
from blocknumba.gpu_layout.box_copies import BoxCopy, Map
from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.register_budget import (
    PRODUCER_REGISTERS,
    SHARED_REGISTERS,
    can_share,
    products_need,
    without_sharing,
)
from blocknumba.gpu_layout.ring_uses import Overlap, RingUses, ring_uses
from blocknumba.gpu_layout.schedule import Group, Ring, Schedule, plan_schedule
from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.ir import Function, Op, Region, Value, walk
from blocknumba.tile_ir.opdef import EFFECT, OPS, TERMINATOR, WRITES
from blocknumba.tile_ir.ops.shape import extract
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.passes.dce import dce
from blocknumba.tile_ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.types import TileType, int32

PRODUCER_WARPS = 1
DIVISIONS = ("floordiv", "mod")  # of which the assembler makes code that only it can place


@declared(reads=("ops",), writes=("ops",))
def specialize_warps(fn: Function, options: LayoutOptions) -> Function:
    """A producer warp runs what places the fetches, and fetches; the other warps run the rest.

    Both run the control flow of the kernel, so that they meet the same fetches in the same order;
    what they do not need is left out.  Nothing changes where the copy engine fetches nothing in a
    loop.
    """
    schedule = plan_schedule(fn, options)
    if not schedule.rings:
        return fn
    return dce(_Specializer(fn, schedule, options).function())


@dataclass(frozen=True, slots=True)
class _Buffers:
    """What a ring is in shared memory: a buffer for each fetch, and the barrier objects."""

    tiles: tuple[Value, ...]
    full: Value
    empty: Value


@dataclass(frozen=True, slots=True)
class _Given:
    """What both roles share: the kernel's old arguments, its tensor maps, its rings."""

    args: dict[Value, Value]
    maps: dict[Map, Value]
    buffers: dict[Ring, _Buffers]


class _Specializer:
    """Emits the common part of a specialised kernel, and its roles."""

    def __init__(self, fn: Function, schedule: Schedule, options: LayoutOptions):
        self._fn = fn
        self._schedule = schedule
        self._options = options
        self._builder = Builder(folding=True)

    def function(self) -> Function:
        """The specialised kernel, which has a tensor map parameter more for every map."""
        fn, builder = self._fn, self._builder
        maps = self._schedule.maps
        types = [arg.type for arg in fn.body.args] + [map_.type for map_ in maps]
        hints = [arg.hint for arg in fn.body.args] + [map_.hint for map_ in maps]
        builder.loc = fn.loc
        with builder.region(*types, hints=hints) as (body, args):
            given = _Given(
                dict(zip(fn.body.args, args, strict=False)),
                dict(zip(maps, args[len(fn.body.args) :], strict=True)),
                {ring: self._allocate(ring) for ring in self._schedule.rings},
            )
            uses = ring_uses(fn, self._schedule.rings)
            roles = (
                _Consumer(builder, given, self._schedule.stores, uses).region_of(fn.body),
                _Producer(builder, given).region_of(fn.body),
            )
            builder.loc = fn.loc
            builder.emit(warp_roles, regions=roles, **self._warps())
            builder.emit(OPS["return"])
        parameters = fn.parameters + tuple(map_.parameter for map_ in maps)
        return Function(fn.name, parameters, body, fn.loc)

    def _warps(self) -> dict[str, object]:
        """One producer, or a warpgroup whose registers the products of the program need."""
        num_warps = self._options.num_warps
        overlapping = [
            [op.result.type for op in region.ops if op.opdef is wgmma]
            for loop in walk(self._fn.body)
            for region in loop.regions
            if any(op.opdef is pin for op in region.ops)
        ]
        need = max((products_need(*pair, num_warps) for pair in overlapping), default=0)
        if need > without_sharing(num_warps) and can_share(self._options):
            registers = PRODUCER_REGISTERS, SHARED_REGISTERS
            return {"producers": WARPGROUP, "registers": registers}
        return {"producers": PRODUCER_WARPS}

    def _allocate(self, ring: Ring) -> _Buffers:
        emit, tiles = self._builder.emit, []
        for fetch, tile in zip(ring.groups[0].fetches, ring.buffers, strict=True):
            self._builder.loc = fetch.stage.loc
            tiles.append(
                emit(
                    shared_allocate,
                    dtype=str(tile.dtype),
                    shape=tile.shape,
                    layout=tile.layout,
                    copies=ring.copies,
                    hint=fetch.stage.result.hint,
                )
            )
        full = emit(mbarrier_allocate, copies=ring.copies, arrivals=1, hint="full")
        empty = emit(
            mbarrier_allocate,
            copies=ring.copies,
            arrivals=self._options.num_warps,
            hint="empty",
        )
        return _Buffers(tuple(tiles), full, empty)


class _Role(Rebuilder):
    """Re-emits a kernel as one role sees it.

    Where it stands in each ring, a slot and a phase, goes with the control flow: loops and branches
    that the ring is used in hand it on.
    """

    def __init__(self, builder: Builder, given: _Given):
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
        self._at: dict[Ring, tuple[Value, Value]] = {}
        self._inside: dict[Op, tuple[Ring, ...]] = {}
        for old, new in given.args.items():
            self[old] = new

    def region_of(self, body: Region) -> Region:
        """The role's region: the body of the kernel without its return."""
        with self.builder.region() as (region, _):
            for ring in self._buffers:
                start = self.builder.constant(0, int32)
                self._at[ring] = start, start
            self.ops(body.ops[:-1])
            self.end()
            self.builder.emit(OPS["yield"])
        return region

    def end(self) -> None:
        """What is to be done after everything else."""

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
            self.ops(region.ops[:-1])
            end = region.terminator
            self.builder.loc = end.loc
            handed = [value for ring in rings for value in self._at[ring]]
            self.builder.emit(end.opdef, *self.operands(end), *handed)
        return copy

    def _enter(self, rings: tuple[Ring, ...], values: Sequence[Value]) -> None:
        for i, ring in enumerate(rings):
            self._at[ring] = values[2 * i], values[2 * i + 1]

    def _advance(self, ring: Ring) -> None:
        """The ring's next slot, and in it its next phase."""
        index, phase = self._at[ring]
        one = self.builder.constant(1, int32)
        zero = self.builder.constant(0, int32)
        emit = self.builder.emit
        flipped = emit(OPS["xor"], phase, one)
        if ring.copies == 1:
            self._at[ring] = index, flipped
            return
        following = emit(OPS["add"], index, one)
        wraps = emit(OPS["eq"], following, self.builder.constant(ring.copies, int32))
        self._at[ring] = (
            emit(OPS["select"], wraps, zero, following),
            emit(OPS["select"], wraps, flipped, phase),
        )


class _Producer(_Role):
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
        emit, buffers = self.builder.emit, self._buffers[ring]
        index, phase = self._at[ring]
        other = emit(OPS["xor"], phase, self.builder.constant(1, int32))
        emit(mbarrier_wait, emit(slot, buffers.empty, index), other)
        full = emit(slot, buffers.full, index)
        emit(mbarrier_expect, full, size_bytes=ring.size_bytes)
        for fetch, tile in zip(group.fetches, buffers.tiles, strict=True):
            copy, buffer = fetch.copy, emit(slot, tile, index)
            emit(tma_load, self._maps[copy.map], buffer, full, *copy.starts(self))
        self._advance(ring)


class _Consumer(_Role):
    """The role that computes: waits until a slot is full, and says when it has read it."""

    def __init__(
        self, builder: Builder, given: _Given, stores: dict[Op, list[BoxCopy]], uses: RingUses
    ):
        super().__init__(builder, given)
        self._stores = stores
        self._uses = uses
        self._held: dict[Ring, Value] = {}

    def end(self) -> None:
        """Shared memory must last until it is stored."""
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
        for ring in self._uses.releases.get(op, ()):
            self._release(ring, self._held[ring])

    def fetch(self, ring: Ring, group: Group, place: int) -> None:
        """The buffer of one fetch, after waiting for all of a slot at the first."""
        emit, buffers = self.builder.emit, self._buffers[ring]
        if place == 0:
            index, phase = self._at[ring]
            emit(mbarrier_wait, emit(slot, buffers.full, index), phase)
            self._held[ring] = index
            self._advance(ring)
        staged = group.fetches[place].stage.result
        self[staged] = emit(slot, buffers.tiles[place], self._held[ring], hint=staged.hint)

    def _release(self, ring: Ring, index: Value, condition: Value | None = None) -> None:
        operands = () if condition is None else (condition,)
        self.builder.emit(
            mbarrier_arrive, self.builder.emit(slot, self._buffers[ring].empty, index), *operands
        )

    def _store(self, op: Op) -> None:
        """A store by the copy engine: stage the tile where the last store has left, and go on."""
        emit = self.builder.emit
        self.builder.loc = op.loc
        parts = self._stores[op]
        for copy in parts:
            part = emit(
                extract, self[op.operands[1]], starts=copy.tile_starts, shape=copy.buffer.shape
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
        (value,) = self.operands(op)
        self[op.result] = self.builder.emit(wgmma_wait, value, pending=len(overlap.waits))
        if op is overlap.waits[-1]:
            round_, start = self[overlap.loop.regions[0].args[0]], self[overlap.loop.operands[0]]
            later = self.builder.emit(OPS["ne"], round_, start)
            self._release(overlap.ring, self._before(overlap.ring, self._held[overlap.ring]), later)

    def _finish(self, op: Op, overlap: Overlap) -> None:
        """Wait for the last round of a loop, and release what it had read."""
        for wait in overlap.waits:
            result = overlap.result(wait)
            self[result] = self.builder.emit(wgmma_wait, self[result], pending=0, hint=result.hint)
        any_round = self.builder.emit(OPS["lt"], self[op.operands[0]], self[op.operands[1]])
        following, _ = self._at[overlap.ring]
        self._release(overlap.ring, self._before(overlap.ring, following), any_round)

    def _before(self, ring: Ring, index: Value) -> Value:
        """The slot before a slot."""
        emit, constant = self.builder.emit, self.builder.constant
        is_first = emit(OPS["eq"], index, constant(0, int32))
        below = emit(OPS["sub"], index, constant(1, int32))
        return emit(OPS["select"], is_first, constant(ring.copies - 1, int32), below)

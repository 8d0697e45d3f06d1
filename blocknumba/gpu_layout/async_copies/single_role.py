"""Single-role schedule: all warps compute, and the first warp begins TMA fetches ahead.

With rings of 2 slots, a loop fetches one iteration ahead, while its first dot is under way:

    before the loop    fetch 0
    iteration 0        wait full 0, begin dot, fetch 1, wait dot, ..., release slot 0
    iteration 1        wait full 1, begin dot, fetch 2, wait dot, ..., release slot 1

Where iterations overlap, an iteration fetches to the slot that the one before has read:

    iteration k        wait full k, begin dot k, wait dot k - 1, release its slot, fetch to it

It is for programs of one warpgroup that share a multiprocessor (residency.py), and for block
functions, which have no warps beside those of their caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.box_copies import BoxCopy
from blocknumba.gpu_layout.async_copies.ops import is_first_warp, wgmma_wait
from blocknumba.gpu_layout.async_copies.reads import Slice, ops_for, slice_of
from blocknumba.gpu_layout.async_copies.roles import Consumer, RingPosition, RoleContext
from blocknumba.gpu_layout.async_copies.schedule import Group, Overlap, Ring, RingUses, Schedule
from blocknumba.tile_ir.ir.builder import Builder, constant_of
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import int64
from blocknumba.tile_ir.ir.uses import Uses, carried


@dataclass(frozen=True, eq=False, slots=True)
class FetchingLoop:
    """A `for` that counts up, and the fetches of each iteration.

    addresses: the ops that compute the starts of the boxes, from the counter alone.
    overlap: of its iterations, if they overlap.
    """

    loop: Op
    fetched: tuple[tuple[Ring, Group], ...]
    addresses: Slice
    overlap: Overlap | None

    @property
    def distance(self) -> int:
        """The number of iterations that it fetches ahead."""
        return self.fetched[0][0].copies - 1

    @property
    def begin(self) -> Op:
        """The op before which an iteration fetches: its first dot is under way there.

        Where iterations overlap, it fetches after this op: the dots before have been waited for.
        """
        (region,) = self.loop.regions
        if self.overlap is not None:
            return self.overlap.waits[-1]
        if not self.distance:
            return region.ops[0]
        return next(op for op in region.ops if op.opdef is wgmma_wait)


def fetching_loops(fn: Function, schedule: Schedule,
                   ring_uses: RingUses) -> dict[Op, FetchingLoop] | None:
    """The loops in which a schedule fetches; None if one of them cannot fetch ahead by itself.

    Such loops are in no other loop, every iteration does all of their fetches, and the addresses
    depend on the counter, not on carried values.
    """
    uses = Uses(fn)
    fetched: dict[Op, list[tuple[Ring, Group]]] = {}
    for ring, group in ((ring, group) for ring in schedule.rings for group in ring.groups):
        if not group.depth:
            if ops_for(group.regions[0], _start_values([group])) is None:
                return None
            continue
        loop = uses.owner(group.regions[0])
        if group.depth > 1 or loop is None or loop.name != "for":
            return None
        fetched.setdefault(loop, []).append((ring, group))
    found = {}
    for loop, here in fetched.items():
        step = constant_of(loop.step)
        addresses = slice_of(loop, _start_values(group for _, group in here))
        if step is None or step <= 0 or addresses is None or addresses.carried:
            return None
        if not any(op.opdef is wgmma_wait for op in loop.regions[0].ops):
            return None
        found[loop] = FetchingLoop(loop, tuple(here), addresses, ring_uses.overlaps.get(loop))
    return found


def _start_values(groups: Iterable[Group]) -> list[Value]:
    """The scalars that the starts of fetched boxes are computed from."""
    axes = (axis for group in groups for fetch in group.fetches for axis in fetch.copy.axes)
    return [atom.value for axis in axes for monomial, _ in axis.start.terms for atom in monomial]


def _results(ops: Iterable[Op]) -> list[Value]:
    return [value for op in ops for value in op.results]


class SingleRole(Consumer):
    """Consumers whose first warp also fetches, in each iteration for a later one.

    Fetches outside of loops are waited for right before the first op that reads them.
    """

    def __init__(
        self,
        builder: Builder,
        context: RoleContext,
        stores: dict[Op, list[BoxCopy]],
        uses: RingUses,
        loops: Mapping[Op, FetchingLoop],
        users: Uses,
    ):
        super().__init__(builder, context, stores, uses)
        self._loops = loops
        self._loops_by_fetch = {fetching.begin: fetching for fetching in loops.values()}
        self._users = users
        self._due: dict[Op, list[tuple[Ring, RingPosition]]] = {}
        self._starts: dict[Ring, RingPosition] = {}
        self._begun: set[Group] = set()

    def op(self, op: Op) -> None:
        """A copy of one op; before a loop its first fetches; before a first reader the wait."""
        if op in self._loops:
            self._fetch_first(self._loops[op])
        fetching = self._loops_by_fetch.get(op)
        if fetching is not None and fetching.overlap is None:
            self._fetch_later(fetching)
        for ring, position in self._due.pop(op, ()):
            self._wait_until_full(ring, position)
        if op in self._uses.overlaps:
            self._enter_overlapping(op)
        else:
            super().op(op)
        if fetching is not None and fetching.overlap is not None:
            self._fetch_later(fetching)

    def _enter_overlapping(self, op: Op) -> None:
        """A loop whose iterations overlap, if it has iterations, and the wait for the last one.

        Accumulators that come by both ways would be copied to common registers before that wait,
        and ptxas would wait for each wgmma (its messages C7514 and C7515).
        """
        emit, before = self.builder.emit, dict(self._positions)
        rings = self._rings_in(op)
        exists = emit(OPS["lt"], self[op.start], self[op.stop])
        with self.builder.region() as (entered, _):
            super().op(op)
            after = [value for ring in rings for value in self._positions[ring]]
            emit(OPS["yield"], *(self[value] for value in op.results), *after)
        with self.builder.region() as (nothing, _):
            initial = (self[value] for value in carried(op).initial)
            emit(OPS["yield"], *initial, *(value for ring in rings for value in before[ring]))
        types = tuple(value.type for value in entered.terminator.values)
        made = emit(OPS["if"], exists, regions=(entered, nothing), result_types=types)
        number = len(op.results)
        self._set(op, made[:number])
        self._positions = before
        self._enter(rings, made[number:])

    def fetch(self, ring: Ring, group: Group, fetch_index: int) -> None:
        """The buffer of one fetch; a fetch outside of loops begins here."""
        if group.depth:
            super().fetch(ring, group, fetch_index)
            return
        if fetch_index == 0:
            for other_ring, other in self._together(ring, group):
                self._fetch_once(other_ring, other)
            due = self._due.setdefault(self._first_reader(group), [])
            due.append((ring, self._positions[ring]))
            self._hold(ring)
        self._bind_buffer(ring, group, fetch_index)

    def _together(self, ring: Ring, group: Group) -> list[tuple[Ring, Group]]:
        """The groups outside of loops to fetch now, together with one; empty if it was fetched.

        These are all groups of its region, unless two of them go through the same ring.
        """
        region = group.regions[0]
        groups = [(r, g) for r in self._buffers for g in r.groups
                  if g.regions[0] is region and g not in self._begun]
        if len({r for r, _ in groups}) < len(groups):
            groups = [(ring, group)] if group not in self._begun else []
        return groups

    def _fetch_once(self, ring: Ring, group: Group) -> None:
        """Fetch a group that is in no loop."""
        self._begun.add(group)
        addresses = ops_for(group.regions[0], _start_values([group]))
        with self.apart(_results(addresses)), self.builder.region() as (begins, _):
            self.ops(addresses)
            self._fill(ring, group, self._positions[ring])
            self.builder.emit(OPS["yield"])
        self._if(self.builder.emit(is_first_warp), begins)

    def begin_iteration(self, region: Region) -> None:
        """Note the ring positions that the iteration will fetch to."""
        self._starts = {ring: self._position_ahead(ring) for ring in self._positions}

    def _fetch_later(self, fetching: FetchingLoop) -> None:
        """In an iteration, fetch for a later one, if it exists."""
        counter = self[fetching.loop.regions[0].args[0]]
        positions = {ring: self._starts[ring] for ring, _ in fetching.fetched}
        self._fetch_iteration(fetching, counter, fetching.distance, positions)

    def _fetch_first(self, fetching: FetchingLoop) -> None:
        """Before a loop, fetch for its first iterations."""
        start = self[fetching.loop.start]
        positions = {ring: self._positions[ring] for ring, _ in fetching.fetched}
        for distance in range(fetching.distance):
            self._fetch_iteration(fetching, start, distance, positions)
            positions = {ring: self._next_position(ring, position)
                         for ring, position in positions.items()}

    def _fetch_iteration(
        self, fetching: FetchingLoop, counter: Value, distance: int,
        positions: dict[Ring, RingPosition],
    ) -> None:
        """Fetch for the iteration `distance` after that of a counter, to positions of the rings."""
        emit, loop = self.builder.emit, fetching.loop
        self.builder.loc = loop.loc
        _, stop, step = (self[value] for value in (loop.start, loop.stop, loop.step))
        ahead = distance * int(constant_of(step))
        wide = (emit(OPS["cast"], value, dtype=int64.name) for value in (stop, counter))
        exists = emit(OPS["gt"], emit(OPS["sub"], *wide), self.builder.constant(ahead, int64))
        own = loop.regions[0].args[0]
        results = _results(fetching.addresses.ops)
        with self.apart([own, *results]), self.builder.region() as (begins, _):
            self[own] = emit(OPS["add"], counter, self.builder.constant(ahead, counter.type.dtype))
            self.ops(fetching.addresses.ops)
            for ring, group in fetching.fetched:
                self._fill(ring, group, positions[ring])
            emit(OPS["yield"])
        self._if(emit(OPS["and"], exists, emit(is_first_warp)), begins)

    def _if(self, condition: Value, region: Region) -> None:
        with self.builder.region() as (otherwise, _):
            self.builder.emit(OPS["yield"])
        self.builder.emit(OPS["if"], condition, regions=(region, otherwise), result_types=())

    def _position_ahead(self, ring: Ring) -> RingPosition:
        """The position of the slot that is filled next: the one before the current slot."""
        index, phase = self._positions[ring]
        if ring.copies == 1:
            return index, phase
        emit, constant = self.builder.emit, self.builder.constant
        is_first = emit(OPS["eq"], index, constant(0, phase.type.dtype))
        flipped = emit(OPS["xor"], phase, constant(1, phase.type.dtype))
        return self._previous_slot(ring, index), emit(OPS["select"], is_first, phase, flipped)

    def _first_reader(self, group: Group) -> Op:
        """The first op of the group's region that reads a tile of it, or contains such an op."""
        region = group.regions[0]
        users = [user for fetch in group.fetches
                 for user in self._users.users(fetch.stage.result)]
        return region.ops[min(self._users.index(user, region) for user in users)]

"""The role of warps that compute and also tell the copy engine what to fetch, rounds ahead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.box_copies import BoxCopy
from blocknumba.gpu_layout.async_copies.ops import is_first_warp, wgmma_wait
from blocknumba.gpu_layout.async_copies.reads import Slice, ops_for, slice_of
from blocknumba.gpu_layout.async_copies.roles import Consumer, RoleContext, Place
from blocknumba.gpu_layout.async_copies.schedule import Group, Ring, RingUses, Schedule
from blocknumba.tile_ir.ir.builder import Builder, constant_of
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import int64
from blocknumba.tile_ir.ir.uses import Uses


@dataclass(frozen=True, eq=False, slots=True)
class FetchingLoop:
    """A `for` that counts up, and what it fetches in every round.

    places: what says where that is, from the counter alone.
    """

    loop: Op
    fetched: tuple[tuple[Ring, Group], ...]
    places: Slice

    @property
    def distance(self) -> int:
        """How many rounds ahead it fetches."""
        return self.fetched[0][0].copies - 1

    @property
    def begin(self) -> Op:
        """The op before which a round fetches: while its first product is under way."""
        (region,) = self.loop.regions
        if not self.distance:
            return region.ops[0]
        return next(op for op in region.ops if op.opdef is wgmma_wait)


def fetching_loops(fn: Function, schedule: Schedule) -> dict[Op, FetchingLoop] | None:
    """The loops in which a schedule fetches; None if one cannot fetch ahead by itself.

    That takes loops that are in no other loop, fetches that every round does, and places that
    depend on the counter, not on what else the loop carries.
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
        places = slice_of(loop, _start_values(group for _, group in here))
        if step is None or step <= 0 or places is None or places.carried:
            return None
        if not any(op.opdef is wgmma_wait for op in loop.regions[0].ops):
            return None
        found[loop] = FetchingLoop(loop, tuple(here), places)
    return found


def _start_values(groups: Iterable[Group]) -> list[Value]:
    """The scalars that the places of fetches are made of."""
    axes = (axis for group in groups for fetch in group.fetches for axis in fetch.copy.axes)
    return [atom.value for axis in axes for monomial, _ in axis.start.terms for atom in monomial]


def _results(ops: Iterable[Op]) -> list[Value]:
    return [value for op in ops for value in op.results]


class SingleRole(Consumer):
    """Consumers whose first warp fetches: in every round, what comes rounds later.

    What is fetched outside of loops is waited for where it is read first.
    """

    def __init__(
        self,
        builder: Builder,
        given: RoleContext,
        stores: dict[Op, list[BoxCopy]],
        uses: RingUses,
        loops: Mapping[Op, FetchingLoop],
        users: Uses,
    ):
        super().__init__(builder, given, stores, uses)
        self._loops = loops
        self._rounds = {fetching.begin: fetching for fetching in loops.values()}
        self._users = users
        self._due: dict[Op, list[tuple[Ring, Place]]] = {}
        self._starts: dict[Ring, Place] = {}
        self._begun: set[Group] = set()

    def op(self, op: Op) -> None:
        """A copy of one op; before a loop its first fetches; before a reader the wait for it."""
        if op in self._loops:
            self._fetch_first(self._loops[op])
        if op in self._rounds:
            self._fetch_later(self._rounds[op])
        for ring, at in self._due.pop(op, ()):
            self._wait_until_full(ring, at)
        super().op(op)

    def fetch(self, ring: Ring, group: Group, place: int) -> None:
        """The buffer of one fetch; outside of loops it is begun here."""
        if group.depth:
            super().fetch(ring, group, place)
            return
        if place == 0:
            for other_ring, other in self._together(ring, group):
                self._fetch_once(other_ring, other)
            self._due.setdefault(self._first_reader(group), []).append((ring, self._at[ring]))
            self._hold(ring)
        self._hand_out(ring, group, place)

    def _together(self, ring: Ring, group: Group) -> list[tuple[Ring, Group]]:
        """What is fetched with a group outside of loops, if it was not fetched before.

        That is all of its region, unless two groups of it go through one ring.
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
        places = ops_for(group.regions[0], _start_values([group]))
        with self.apart(_results(places)), self.builder.region() as (ours, _):
            self.ops(places)
            self._fill(ring, group, self._at[ring])
            self.builder.emit(OPS["yield"])
        self._if(self.builder.emit(is_first_warp), ours)

    def begin_round(self, region: Region) -> None:
        """A loop's round begins where its rings are now."""
        self._starts = {ring: self._ahead(ring) for ring in self._at}

    def _fetch_later(self, fetching: FetchingLoop) -> None:
        """In a round, fetch for a later one, if there is one."""
        counter = self[fetching.loop.regions[0].args[0]]
        places = {ring: self._starts[ring] for ring, _ in fetching.fetched}
        self._fetch_round(fetching, counter, fetching.distance, places)

    def _fetch_first(self, fetching: FetchingLoop) -> None:
        """What the first rounds of a loop need."""
        start = self[fetching.loop.start]
        places = {ring: self._at[ring] for ring, _ in fetching.fetched}
        for distance in range(fetching.distance):
            self._fetch_round(fetching, start, distance, places)
            places = {ring: self._after(ring, at) for ring, at in places.items()}

    def _fetch_round(
        self, fetching: FetchingLoop, counter: Value, distance: int, places: dict[Ring, Place]
    ) -> None:
        """Fetch what the round needs that is `distance` rounds after one; places: in the rings."""
        emit, loop = self.builder.emit, fetching.loop
        self.builder.loc = loop.loc
        _, stop, step = (self[value] for value in (loop.start, loop.stop, loop.step))
        ahead = distance * int(constant_of(step))
        wide = (emit(OPS["cast"], value, dtype=int64.name) for value in (stop, counter))
        exists = emit(OPS["gt"], emit(OPS["sub"], *wide), self.builder.constant(ahead, int64))
        own = loop.regions[0].args[0]
        with self.apart([own, *_results(fetching.places.ops)]), self.builder.region() as (ours, _):
            self[own] = emit(OPS["add"], counter, self.builder.constant(ahead, counter.type.dtype))
            self.ops(fetching.places.ops)
            for ring, group in fetching.fetched:
                self._fill(ring, group, places[ring])
            emit(OPS["yield"])
        self._if(emit(OPS["and"], exists, emit(is_first_warp)), ours)

    def _if(self, condition: Value, region: Region) -> None:
        with self.builder.region() as (otherwise, _):
            self.builder.emit(OPS["yield"])
        self.builder.emit(OPS["if"], condition, regions=(region, otherwise), result_types=())

    def _ahead(self, ring: Ring) -> Place:
        """Where the last of the slots is that are filled ahead: the one before that of now."""
        index, phase = self._at[ring]
        if ring.copies == 1:
            return index, phase
        emit, constant = self.builder.emit, self.builder.constant
        is_first = emit(OPS["eq"], index, constant(0, phase.type.dtype))
        flipped = emit(OPS["xor"], phase, constant(1, phase.type.dtype))
        return self._before(ring, index), emit(OPS["select"], is_first, phase, flipped)

    def _first_reader(self, group: Group) -> Op:
        """The op of the group's region that reads one of its tiles first, or within which it is."""
        region = group.regions[0]
        users = [user for fetch in group.fetches
                 for user in self._users.users(fetch.stage.result)]
        return region.ops[min(self._users.index(user, region) for user in users)]

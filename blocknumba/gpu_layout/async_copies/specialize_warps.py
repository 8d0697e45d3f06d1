"""Pass: warp specialisation.  A producer warp fetches tiles by TMA, the other warps compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blocknumba.gpu_layout.async_copies.ops import (
    WARPGROUP, mbarrier_allocate, mbarriers_ready, stage, warp_roles,
)
from blocknumba.gpu_layout.async_copies.residency import (
    CONSUMER_REGISTERS, PRODUCER_REGISTERS, can_reallocate_registers,
    registers_beside_producer,
)
from blocknumba.gpu_layout.async_copies.roles import Buffers, Consumer, Producer, RoleContext
from blocknumba.gpu_layout.async_copies.round_once import rounded_by_tma
from blocknumba.gpu_layout.async_copies.schedule import (
    Ring, RingUses, Schedule, plan_schedule, ring_uses,
)
from blocknumba.gpu_layout.async_copies.single_role import (
    FetchingLoop, SingleRole, fetching_loops,
)
from blocknumba.gpu_layout.layouts.shared import in_registers
from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.analysis.provenance import origins, stored
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, walk
from blocknumba.tile_ir.ir.opdef import OPS, attribute
from blocknumba.tile_ir.ir.remarks import (
    NOT_IN_ORDER, NOT_PARTITIONED, NOT_TMA, PRODUCERS, TMA, Remark,
)
from blocknumba.tile_ir.ir.uses import Uses
from blocknumba.tile_ir.ops.create import undefined
from blocknumba.tile_ir.ops.memory import load, store
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.passes.dce import dce
from blocknumba.tile_ir.passes.raise_pointers import is_by_pointers, raised

PRODUCER_WARPS = 1
NO_PRODUCER = "warps that compute cannot fetch ahead, and no others may"


@declared(reads=("ops",), writes=("ops",))
def raise_accesses(fn: Function, options: LayoutOptions) -> Function:
    """Find the views of pointers where TMA may move what they point to."""
    if "tma" not in options.features:
        return fn
    ops = list(walk(fn.body))
    staged = [op.x.owner for op in ops if op.opdef is stage and op.x.owner is not None
              and op.x.owner.opdef is load]
    stores = [op for op in ops if op.opdef is store] if staged else []
    return raised(fn, [op for op in (*staged, *stores) if is_by_pointers(op)])


@declared(reads=("ops",), writes=("ops",))
def specialize_warps(fn: Function, options: LayoutOptions) -> Function:
    """Split a kernel into a producer warp, which fetches, and consumer warps, which compute.

    Both roles run the control flow of the kernel, so that they reach the same fetches in the same
    order; ops that a role does not need are left out.  Where several programs share a
    multiprocessor, or no other warps may fetch, the schedule has a single role: all warps compute,
    and the first one also fetches.  The kernel stays as it is where TMA fetches nothing in a loop.
    """
    original, fn = fn, rounded_by_tma(fn, options)
    schedule = plan_schedule(fn, options)
    uses = ring_uses(fn, schedule.rings)
    is_single = schedule.shares or not options.producers
    loops = fetching_loops(fn, schedule, uses) if is_single else None
    if loops is None and not options.producers:
        schedule.drop(NO_PRODUCER)
    if schedule.rings:
        specialized = dce(_Specializer(fn, schedule, options, uses, loops).function())
        reason = _unknown_to_producer(specialized, stored(fn)) if loops is None else ""
        if not reason:
            return specialized.remarked(_remarks(fn, schedule, options))
        schedule.drop(reason)
    return original.remarked(_remarks(fn, schedule, options)).with_body(
        original.body, resident_programs=None)


def _unknown_to_producer(fn: Function, written: frozenset[str]) -> str:
    """Reason why a specialised kernel's producer cannot decide what it fetches; "" if it can.

    One warp has no tiles, which are spread over those that compute, nor what their effects return;
    what they write it might read too early.
    written: names of the arrays that the kernel may write.
    """
    (roles,) = (op for op in walk(fn.body) if op.opdef is warp_roles)
    _, producer = roles.regions
    found = origins(fn)
    for op in walk(producer):
        if any(in_registers(value.type) for value in op.results):
            return "elements of tiles decide what is fetched"
        if op.opdef is undefined:
            return "the result of an atomic or another effect decides what is fetched"
        if op.opdef is load and (attribute(op, "volatile") or found[op.pointer] & written):
            return "what is fetched depends on an array that is written or volatile"
    return ""


def _remarks(fn: Function, schedule: Schedule, options: LayoutOptions) -> Iterator[Remark]:
    """Remarks on what TMA moves, and on why it does not move the rest."""
    if "tma" not in options.features:
        yield Remark.of(NOT_TMA, fn.loc, kind="all", reason="the target has no tensor maps")
        return
    groups = (group for ring in schedule.rings for group in ring.groups)
    fetched = {fetch.stage.x.owner: fetch for group in groups for fetch in group.fetches}
    for op, fetch in fetched.items():
        yield Remark.of(TMA, op.loc, kind="load", array=fetch.copy.map.argument,
                        tile=fetch.stage.x.type.spelling, blocks=fetch.copy.blocks,
                        undivided=schedule.undivided.get(op, ""))
    for op, chunks in schedule.stores.items():
        yield Remark.of(TMA, op.loc, kind="store", array=chunks[0].map.argument,
                        tile=op.value.type.spelling, blocks=1, undivided="")
    staged = {op.x.owner for op in walk(fn.body) if op.opdef is stage}
    for op in walk(fn.body):
        is_access = op.opdef in (load, store) and op.pointer.type.shape
        if is_access and op not in fetched and op not in schedule.stores:
            reason = schedule.reasons.get(op) or _default_reason(op, staged, schedule)
            yield Remark.of(NOT_TMA, op.loc, kind=op.name, reason=reason)
    if "cluster" in fn.attrs and schedule.blocks == 1:
        yield Remark.of(NOT_PARTITIONED, fn.loc, reason="they would fetch nothing together")


def _default_reason(op: Op, staged: set[Op], schedule: Schedule) -> str:
    """Reason why TMA does not do an access for which the schedule has none of its own."""
    if op.opdef is load and op not in staged:
        return "no dot reads it"
    if schedule.rings:
        return NOT_IN_ORDER
    return "nothing is fetched in a loop"


class _Specializer:
    """Emits a specialised kernel: its rings, then its roles.

    loops: in which warps that compute fetch; None where a producer fetches.
    """

    def __init__(self, fn: Function, schedule: Schedule, options: LayoutOptions, uses: RingUses,
                 loops: Mapping[Op, FetchingLoop] | None):
        self._fn = fn
        self._schedule = schedule
        self._options = options
        self._uses, self._loops = uses, loops
        self._builder = Builder(folding=True)
        self._resident_programs = 1
        self._roles: tuple[Remark, ...] = ()

    def function(self) -> Function:
        """The specialised kernel, with one more parameter for every tensor map."""
        fn, builder = self._fn, self._builder
        maps = self._schedule.maps
        types = [arg.type for arg in fn.body.args] + [map_.type for map_ in maps]
        hints = [arg.hint for arg in fn.body.args] + [map_.hint for map_ in maps]
        builder.loc = fn.loc
        with builder.region(*types, hints=hints) as (body, args):
            context = RoleContext(
                dict(zip(fn.body.args, args, strict=False)),
                dict(zip(maps, args[len(fn.body.args) :], strict=True)),
                {ring: self._allocate(ring) for ring in self._schedule.rings},
            )
            self._emit_roles(context)
            builder.emit(OPS["return"])
        parameters = fn.parameters + tuple(map_.parameter for map_ in maps)
        specialized = fn.with_body(body, parameters, resident_programs=self._resident_programs)
        return specialized.remarked(self._roles)

    def _emit_roles(self, context: RoleContext) -> None:
        """Emit a producer and consumers, or a single role."""
        fn, builder, schedule = self._fn, self._builder, self._schedule
        uses, loops = self._uses, self._loops
        if loops is not None:
            self._resident_programs = fn.attrs.get("resident_programs", 1)
            builder.emit(mbarriers_ready, blocks=schedule.blocks)
            SingleRole(builder, context, schedule.stores, uses, loops, Uses(fn)).run(fn.body)
            return
        roles = (
            Consumer(builder, context, schedule.stores, uses).region_of(fn.body),
            Producer(builder, context).region_of(fn.body),
        )
        builder.loc = fn.loc
        warps = self._warps()
        builder.emit(warp_roles, regions=roles, blocks=schedule.blocks, **warps)
        self._roles = (Remark.of(PRODUCERS, fn.loc, warps=warps["producers"]),)

    def _warps(self) -> dict[str, object]:
        """The producers: one warp, or a warpgroup that releases registers if the dots need them."""
        num_warps, need = self._options.num_warps, self._fn.attrs.get("dot_registers", 0)
        if need > registers_beside_producer(num_warps) and can_reallocate_registers(self._options):
            registers = PRODUCER_REGISTERS, CONSUMER_REGISTERS
            return {"producers": WARPGROUP, "registers": registers}
        return {"producers": PRODUCER_WARPS}

    def _allocate(self, ring: Ring) -> Buffers:
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
            arrivals=self._options.num_warps * ring.blocks,
            hint="empty",
        )
        return Buffers(tuple(tiles), full, empty)

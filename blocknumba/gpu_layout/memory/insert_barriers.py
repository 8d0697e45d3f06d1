"""Pass: barriers between accesses of different threads to the same memory.

    shared_write %b, %x      each thread writes its elements
    barrier                  inserted: a read depends on writes of other threads
    %y = shared_read %b
    barrier                  inserted: %c has bytes of %b, which others may still be reading
    shared_write %c, %z
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from blocknumba.gpu_layout.async_copies.ops import fence_async, shared_slice, slot
from blocknumba.gpu_layout.dots.ops import DOTS
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import stays_in_warp
from blocknumba.gpu_layout.layouts.registers import replication
from blocknumba.gpu_layout.layouts.shared import is_buffer
from blocknumba.gpu_layout.memory.allocate_shared import READ_UNTIL, allocation_of, size_bytes
from blocknumba.gpu_layout.ops import (
    barrier, shared_allocate, shared_count, shared_gather, shared_read, shared_write,
)
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.tile_ir.analysis.affine import AffineExpressions
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.iteration_step import iteration_step
from blocknumba.tile_ir.analysis.provenance import Origins, origins
from blocknumba.tile_ir.ir.function import Function, Op, OpDef, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import EFFECT, READS, WRITES, attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ir.uses import is_loop
from blocknumba.tile_ir.ops.memory import atomic_cas, atomic_rmw
from blocknumba.tile_ir.passes.contract import declared

PROGRAM, WARP = "program", "warp"
RELEASES = ("release", "acq_rel")  # semantics of atomics
_OF_ONE_THREAD = (shared_allocate, shared_write)  # others do not wait for them
ORDERED_ATOMICS = ("exchange",)  # kinds of atomic_rmw whose last one wins


@dataclass(frozen=True, slots=True)
class _Access:
    """An access to memory that no barrier has followed yet.

    writes: whether it changes the memory (a read only matters to later writes).
    start, stop: bytes of shared memory; 0, 0 for global memory.
    buffer: of shared memory, the allocation; of global memory, the tile of pointers: accesses with
        equal buffer and layout are made by the same threads; None if another iteration made it.
    layout: the registers' layout; None for scalars, which one thread writes and every thread reads.
    arrays: of global memory, the arrays it may be in.
    commutes: kind of an atomic whose result is unused, if such atomics may come in any order.
    ring: the ring that the buffer is a slot of; the pass that made it orders accesses within it.
    """

    writes: bool
    start: int = 0
    stop: int = 0
    buffer: Value | None = None
    layout: LinearLayout | None = None
    arrays: Origins = frozenset()
    commutes: str = ""
    ring: Op | None = None


# Per access the widest barrier since: none (""), or one within warps.
_Pending = dict[_Access, str]


@declared(reads=("shared_memory", "offsets"), writes=("ops", "barriers"))
def insert_barriers(fn: Function, options: LayoutOptions) -> Function:
    """Insert a barrier before each access that depends on another thread's since the last barrier.

    Two accesses depend on each other if at least one writes and they may touch the same bytes: in
    shared memory by offsets, in global memory by the arrays that the pointers come from.  No
    barrier is needed where every thread depends on itself only, or between atomics that commute.
    A barrier within each warp suffices where a warp reads only what it wrote itself.  Before an
    atomic that releases there is always a barrier of all: it publishes the accesses of all threads.
    A fence that another one follows before any barrier is dropped: the later one orders as much.
    """
    found = _Finder(fn, options)
    needless = _repeated_fences(fn.body, found.barriers)

    def rewrite(rebuilder: Rebuilder, op: Op) -> tuple[Value, ...] | None:
        if op in needless:
            return ()
        scope = found.barriers.get(op)
        if scope is None:
            return None
        rebuilder.builder.emit(barrier, scope=scope)
        return rebuilder.again(op)

    return rebuild(fn, rewrite, folding=False) if found.barriers or needless else fn


def _repeated_fences(region: Region, barriers: dict[Op, str]) -> set[Op]:
    """Fences between which and the next one threads do nothing that others wait for."""
    found, last = set(), None
    for op in region.ops:
        for inner in op.regions:
            found |= _repeated_fences(inner, barriers)
        if op.opdef is fence_async:
            found.update(filter(None, (last,)))
            last = op
        elif (op.regions or op in barriers
              or op.opdef.has(EFFECT | WRITES) and op.opdef not in _OF_ONE_THREAD):
            last = None
    return found


class _Finder:
    """Finds the ops that need a barrier before them, by a walk with the pending accesses.

    barriers: the scope of the barrier before an op.
    """

    def __init__(self, fn: Function, options: LayoutOptions):
        self._function, self._disjoint = fn, options.arrays_are_disjoint
        self._origins = origins(fn)
        self._rings = {
            allocation_of(op.ring) for op in walk(fn.body) if op.opdef is slot
        }
        self._being_read: dict[OpDef, list[_Access]] = {wait: [] for wait in READ_UNTIL.values()}
        self._used = {value for op in walk(fn.body) for value in op.operands}
        self._infos = AxisInfos(fn)
        self._moves: dict[tuple[Op, Value], bool] = {}
        self._found: dict[tuple, tuple[_Pending, dict[OpDef, list[_Access]]]] = {}
        self.barriers: dict[Op, str] = {}
        self._region(fn.body, {})

    def _region(self, region: Region, pending: _Pending) -> _Pending:
        """The pending accesses after a region, from those before it."""
        for op in region.ops:
            if op.regions:
                pending = self._control(op, pending)
                continue
            if op.opdef is barrier and attribute(op, "scope") == PROGRAM:
                pending = {}
            if op.opdef in (atomic_rmw, atomic_cas) and attribute(op, "semantics") in RELEASES:
                self.barriers[op] = PROGRAM
                pending = {}
            pending = self._after(op, pending)
        return pending

    def _control(self, op: Op, pending: _Pending) -> _Pending:
        """The pending accesses after a loop or an `if`; cached for the walks of loops around it."""
        key = op, frozenset(pending.items()), tuple(map(tuple, self._being_read.values()))
        if key not in self._found:
            self._found[key] = self._through(op, pending), self._being_read
        after, being_read = self._found[key]
        self._being_read = being_read
        self._being_read = self._copied_reads()
        return after

    def _through(self, op: Op, pending: _Pending) -> _Pending:
        """Walk both regions of an `if`, or a loop.

        Where a loop needs barriers because of what was done before it, one in front of it will do.
        """
        if not is_loop(op):
            after = [self._region(region, dict(pending)) for region in op.regions]
            return {access: "" for ends in after for access in ends}
        if not pending:
            return self._iterations(op, pending)
        being_read = self._copied_reads()
        self._iterations(op, {})
        own, found = dict(self.barriers), dict(self._found)
        self._being_read = being_read
        being_read = self._copied_reads()
        after = self._iterations(op, pending)
        if all(own.get(one) == scope for one, scope in self.barriers.items() if scope == PROGRAM):
            return after
        self.barriers, self._found, self._being_read = own, found, being_read
        self.barriers[op] = PROGRAM
        return self._iterations(op, {})

    def _copied_reads(self) -> dict[OpDef, list[_Access]]:
        return {wait: [*accesses] for wait, accesses in self._being_read.items()}

    def _iterations(self, op: Op, pending: _Pending) -> _Pending:
        """Walk a loop twice, so that each iteration follows others."""
        (region,) = op.regions
        once = self._region(region, dict(pending))
        again = pending | dict.fromkeys((self._in_later_iteration(op, one) for one in once), "")
        # a `for` without iterations leaves what was pending before
        return self._region(region, dict(again)) | pending

    def _in_later_iteration(self, loop: Op, access: _Access) -> _Access:
        """An access as seen from a later iteration: buffers stay, pointers may have changed.

        Pointers that stay, or move by whole tiles of neighbours, are those of the same threads:
        what another element of the tile points to, it never will.
        """
        if access.stop or access.buffer is None:
            return access
        key = loop, access.buffer
        if key not in self._moves:
            self._moves[key] = self._moves_by_tiles(loop, access.buffer)
        return access if self._moves[key] else replace(access, buffer=None)

    def _moves_by_tiles(self, loop: Op, pointers: Value) -> bool:
        (region,) = loop.regions
        if not pointers.type.shape or pointers in _arguments(region):
            return False
        if pointers.owner not in region.ops:  # made before the loop, or in a loop within
            return pointers.owner not in set(walk(region))
        step, size = iteration_step(pointers, loop), pointers.type.size
        if step is None:
            return False
        is_run = self._infos[pointers].axes[-1].contiguity >= size  # along the last axis, so all
        return step == 0 or is_run and step % size == 0

    def _after(self, op: Op, pending: _Pending) -> _Pending:
        """The pending accesses after one op; note a barrier before it if an access needs one."""
        accesses = self._accesses(op)
        if not accesses:
            return pending
        scopes = set()
        for earlier, passed in pending.items():
            needed = {self._scope(earlier, access) for access in accesses}
            scopes |= needed - {passed}
        if PROGRAM in scopes:
            self.barriers[op] = PROGRAM
            pending = {}
        elif WARP in scopes:
            self.barriers.setdefault(op, WARP)
            pending = dict.fromkeys(pending, WARP)
        return pending | dict.fromkeys(accesses, "")

    def _accesses(self, op: Op) -> list[_Access]:
        """The accesses of an op to memory."""
        if op.opdef in (shared_read, shared_slice, shared_write):
            buffer = op.buffer
            held = op.value if op.opdef is shared_write else op.result
            access = _Access(op.opdef is shared_write, 0, 0, buffer, held.type.layout)
            return self._shared(buffer, access)
        if op.opdef is shared_gather:  # any thread may read what any other wrote
            return self._shared(op.buffer, _Access(False, buffer=op.buffer))
        if op.opdef is shared_count:
            # no layout: which thread adds to a counter is known at run time only
            return self._shared(op.buffer, _Access(True, buffer=op.buffer))
        if op.opdef in DOTS:
            buffers = [value for value in op.operands if is_buffer(value.type)]
            return [access for buffer in buffers
                    for access in self._shared(buffer, _Access(False, buffer=buffer))]
        if op.opdef in READ_UNTIL:
            buffers = [value for value in op.operands if is_buffer(value.type)]
            begun = [access for buffer in buffers
                     for access in self._shared(buffer, _Access(False))]
            self._being_read[READ_UNTIL[op.opdef]] += begun
            return begun
        if op.opdef in self._being_read and not op.attrs.get("pending"):
            # a barrier in between did not wait for these reads
            ended, self._being_read[op.opdef] = self._being_read[op.opdef], []
            return ended
        if not op.opdef.has(READS | WRITES):
            return []
        pointer = op.pointer
        return [
            _Access(
                op.opdef.has(WRITES),
                buffer=pointer,
                layout=pointer.type.layout,
                arrays=self._origins.get(pointer, frozenset()),
                commutes=self._commutes(op),
            )
        ]

    def _shared(self, buffer: Value, access: _Access) -> list[_Access]:
        """An access to a buffer with its range of bytes; for a slot, that of the whole ring."""
        allocation = allocation_of(buffer)
        start = allocation.attrs["offset"]
        ring = allocation if allocation in self._rings else None
        return [replace(access, start=start, stop=start + size_bytes(allocation), ring=ring)]

    def _commutes(self, op: Op) -> str:
        if op.opdef is not atomic_rmw or op.result in self._used:
            return ""
        return "" if op.attrs["kind"] in ORDERED_ATOMICS else op.attrs["kind"]

    def _scope(self, earlier: _Access, later: _Access) -> str:
        """The scope of the barrier that two accesses need between them; empty if none."""
        if not earlier.writes and not later.writes:
            return ""
        is_shared = bool(later.stop)
        if is_shared != bool(earlier.stop):
            return ""
        same = earlier.buffer is not None and earlier.buffer is later.buffer
        if not is_shared:
            return self._global_scope(earlier, later, same)
        if earlier.stop <= later.start or later.stop <= earlier.start:
            return ""
        if earlier.ring is not None and earlier.ring is later.ring:
            return ""
        if same and earlier.writes and later.writes and earlier.layout == later.layout:
            return ""
        return WARP if same and _within_warp(earlier, later) else PROGRAM

    def _global_scope(self, earlier: _Access, later: _Access, same: bool) -> str:
        if self._disjoint and not earlier.arrays & later.arrays:
            return ""
        if earlier.commutes and earlier.commutes == later.commutes:
            return ""
        if earlier.writes and later.writes and earlier.layout is None and later.layout is None:
            return ""  # the first thread does both
        if same and earlier.layout is not None and earlier.layout == later.layout:
            masks = replication(earlier.layout)
            if not masks.lane and not masks.warp and self._affine.differ(
                    later.buffer, bool(self._function.attrs.get("strides_are_given"))):
                return ""
        return PROGRAM

    @cached_property
    def _affine(self) -> AffineExpressions:
        return AffineExpressions(self._function)


def _arguments(region: Region) -> set[Value]:
    """Arguments of a region and of those within."""
    inner = (inner for op in walk(region) for inner in op.regions)
    return {arg for one in (region, *inner) for arg in one.args}


def _within_warp(earlier: _Access, later: _Access) -> bool:
    """Whether each thread depends on its own warp only, for two accesses to one buffer."""
    writer, reader = (earlier, later) if earlier.writes else (later, earlier)
    if writer.layout is None or reader.layout is None or reader.writes:
        return False
    return stays_in_warp(writer.layout, reader.layout)

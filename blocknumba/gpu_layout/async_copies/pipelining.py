"""Plan of software pipelining: loads that begin early with cp.async, and operands read ahead.

A dot whose operands come this way is done in k slices along its depth.  Before a slice is
multiplied, the operands of the next one are read from shared memory.  With 2 k slices:

    iteration k                                             iteration k + 1
    read k.1   mma k.0   barrier   read (k+1).0   mma k.1   read (k+1).1   mma (k+1).0   ...

So the tensor cores wait neither for a read nor at the barrier of an iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from blocknumba.gpu_layout.async_copies.ops import (
    buffer_view, shared_slice, stage, tma_store, wgmma,
)
from blocknumba.gpu_layout.async_copies.overlap import late_waits
from blocknumba.gpu_layout.async_copies.reads import Slice, slice_of
from blocknumba.gpu_layout.async_copies.residency import MAX_REGISTERS, pair_fits
from blocknumba.gpu_layout.dots.mma import WORD_BITS, Instruction, Order, mma_plan
from blocknumba.gpu_layout.dots.ops import mma
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import log2, register_count
from blocknumba.gpu_layout.layouts.shared import contiguous_run, swizzled
from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.coalescing import share_of_copier
from blocknumba.gpu_layout.placement.planner import element_bits, tile_bytes
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.provenance import Origins, origins
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Attr, Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import WRITES, attribute, may_write
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ir.uses import Uses, carried, is_loop
from blocknumba.tile_ir.ops.assembly import inline_asm
from blocknumba.tile_ir.ops.debug import assert_, check_index
from blocknumba.tile_ir.ops.memory import load

FRAGMENT_SETS = 2  # of the k slice that is multiplied, and of the next one
# Addresses, masks, counters: ptxas takes 42 to 60 of GEMMs of float16 for sm_80.
OTHER_REGISTERS = 48


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A dot that is done in k slices.

    dot: an mma of two buffers.  depth: of a k slice, in elements.
    """

    dot: Op
    depth: int

    @property
    def k_slices(self) -> int:
        """The number of k slices."""
        return self.dot.a.type.shape[-1] // self.depth

    @property
    def attrs(self) -> Mapping[str, Attr]:
        """Attributes of the mma of a k slice: its instructions keep their order along the depth."""
        return {**self.dot.attrs, "depths": _inner(self.dot, self.depth)}

    @property
    def _operands(self) -> tuple[Value, Value]:
        return self.dot.a, self.dot.b

    def slice_attrs(self, operand: int, k_slice: int) -> Mapping[str, int]:
        """The attributes of the shared_slice that reads a k slice of operand 0 or 1."""
        rank = len(self._operands[operand].type.shape)
        return {"axis": rank - 1 - operand, "start": k_slice * self.depth, "extent": self.depth}

    def slice_type(self, operand: int) -> TileType:
        """The type of a k slice of operand 0 or 1."""
        tile = self._operands[operand].type
        axis = self.slice_attrs(operand, 0)["axis"]
        return TileType(tile.dtype, (*tile.shape[:axis], self.depth, *tile.shape[axis + 1:]))


def prefetch_of(loop: Op, readers: Iterable[Op], stages: Iterable[Op]) -> Prefetch | None:
    """The dot of a loop that is done in k slices; None if there is none.

    readers: the ops that read the tiles of early loads.  stages: the ops that stage these tiles.
    """
    dot, *others = dict.fromkeys(readers) or (None,)
    if others or dot is None or dot.opdef is not mma or dot not in loop.regions[0].ops:
        return None
    known = set(stages)
    if any(_staged_by(operand) not in known for operand in (dot.a, dot.b)):
        return None
    if attribute(dot, "precision") == "tf32x3":
        return None  # it adds up several steps apart
    depth = _k_slice_depth(dot)
    if depth is None or _dot_registers(dot, depth) > MAX_REGISTERS:
        return None
    return Prefetch(dot, depth)


def previous_k_slice(dot: Op) -> Op | None:
    """The mma of the k slice before that of an mma; None if that is the first, or the whole."""
    first, acc = dot.a.owner, dot.acc.owner
    is_later = first is not None and first.opdef is shared_slice
    return acc if is_later and acc is not None and acc.opdef is mma else None


def _staged_by(operand: Value) -> Op | None:
    """The op that put an operand into shared memory."""
    while operand.owner is not None and operand.owner.opdef is buffer_view:
        operand = operand.owner.buffer
    return operand.owner


def _k_slice_depth(dot: Op) -> int | None:
    """The minimum depth of a k slice; None if that is the whole depth.

    A k slice is a range of the depth whose instructions follow each other.
    """
    bits = log2(dot.a.type.shape[-1])
    order: Order = attribute(dot, "depths") or tuple(range(bits))
    min_bits = log2(Instruction.parse(dot.attrs["instruction"]).depth)
    for inner in range(min_bits, bits):
        if sorted(order[:inner]) + list(order[inner:]) == list(range(bits)):
            return 1 << inner
    return None


def _inner(dot: Op, depth: int) -> Order:
    """The order of the depth within a k slice."""
    return attribute(dot, "depths")[:log2(depth)]


def _dot_registers(dot: Op, depth: int) -> int:
    """The registers of a thread that does a dot in k slices of a depth."""
    a, b, acc = dot.a.type, dot.b.type, dot.acc.type
    attrs = dot.attrs
    orders = attribute(dot, "rows"), attribute(dot, "columns"), _inner(dot, depth)
    plan = mma_plan(Instruction.parse(attrs["instruction"]), acc.shape, depth, attrs["warps"],
                    attrs["num_warps"], attribute(dot, "swapped"), orders)

    def words(layout: LinearLayout, tile: TileType) -> int:
        return register_count(layout) * tile.dtype.bits // WORD_BITS

    fragments = words(plan.a.layout, a) + words(plan.b.layout, b)
    return words(plan.layout, acc) + FRAGMENT_SETS * fragments + OTHER_REGISTERS


STAGES = 3  # slots of a ring by default
LARGE_SHARED_STAGES = 4  # the default with large shared memory
PAIRED_WARPS = 4  # programs of up to so many warps leave half of a multiprocessor to another one
LARGE_SHARED_BYTES = 160 * 1024
MIN_COPY_BYTES = 4  # PTX ISA, "cp.async": cp-size
VOLATILE_CACHE = ".cv"  # fetch again: another program may have written it


@dataclass(frozen=True, eq=False, slots=True)
class EarlyLoad:
    """A load that begins iterations before its tile is needed, and goes through shared memory.

    load: the op.  layouts: of the buffers it is copied to.  stages: the ops that make these buffers
    before the pass.  is_read: whether the tile is needed in registers too.
    """

    load: Op
    layouts: tuple[LinearLayout, ...]
    stages: tuple[Op, ...]
    is_read: bool

    @property
    def pointer_and_mask(self) -> tuple[Value, ...]:
        """The pointers, and the mask if there is one."""
        load = self.load
        return (load.pointer,) if load.mask is None else (load.pointer, load.mask)

    @property
    def other(self) -> Value | None:
        """The elements where the mask is false, if they are not zero."""
        other = self.load.other
        return None if other is None or _is_zero(other) else other

    @property
    def size_bytes(self) -> int:
        """The bytes of its buffers in one slot."""
        return len(self.layouts) * tile_bytes(self.load.result.type)


@dataclass(frozen=True, eq=False, slots=True)
class Pipeline:
    """A loop whose loads begin stages - 1 iterations early, or within the one before that.

    loop: a `for`.  stages: slots of every ring.
    addresses: the slice of the loads' pointers and masks.  advance: the slice of the next values of
    the carried values in it.
    is_read_by_async_proxy: whether tensor cores read the buffers, not threads alone.
    prefetch: the dot whose operands are read ahead, if there is one; then loads begin earlier.
    late_waits: the waits for wgmma if its iterations overlap; then loads begin after the last one.
    """

    loop: Op
    loads: tuple[EarlyLoad, ...]
    stages: int
    addresses: Slice
    advance: Slice
    is_read_by_async_proxy: bool
    prefetch: Prefetch | None
    late_waits: tuple[Op, ...]


@dataclass(slots=True)
class Pipelining:
    """pipelines: the pipelined loops.  reasons: per load that does not begin early, why."""

    pipelines: list[Pipeline] = field(default_factory=list)
    reasons: dict[Op, str] = field(default_factory=dict)


def pipelining_of(fn: Function, options: LayoutOptions) -> Pipelining:
    """Plan which loops of a function are pipelined, and how.

    Those are innermost loops with dots, and loops with num_stages.  num_stages as an option counts
    for innermost loops only.
    """
    return _Planning(fn, options).found


class _Planning:
    """Plans loops, inner ones first; a loop around a pipelined one is not pipelined."""

    def __init__(self, fn: Function, options: LayoutOptions):
        self._fn = fn
        self._options = options
        self._uses = Uses(fn)
        self.found = Pipelining()
        self._region(fn.body, None, 0)

    @cached_property
    def _infos(self) -> AxisInfos:
        return AxisInfos(self._fn)

    @cached_property
    def _origins(self) -> dict[Value, Origins]:
        return origins(self._fn)

    def _region(self, region: Region, loop: Op | None, taken: int) -> bool:
        """Plan the loops of a region; return whether one is pipelined.

        loop: the innermost one around the region.
        taken: bytes of shared memory that stay in use.
        """
        found = False
        for op in region.ops:
            around = op if is_loop(op) else loop
            if any([self._region(inner, around, taken) for inner in op.regions]):
                found = True
                self._refuse(self._direct_loads(op), "a loop within its loop is pipelined")
            elif op.name == "for":
                found = self._loop(op, taken) or found
            elif is_loop(op):
                self._refuse(self._direct_loads(op), "its loop does not count")
            elif loop is not None and region is not loop.regions[0] and self._is_staged(op):
                self.found.reasons[op] = "it is in a branch"
            taken += _staged_bytes(op)
        return found

    def _refuse(self, loads: Iterable[Op], reason: str) -> None:
        self.found.reasons.update(dict.fromkeys(filter(self._is_staged, loads), reason))

    def _direct_loads(self, op: Op) -> list[Op]:
        """The loads of tiles that a loop does in every iteration."""
        if not is_loop(op):
            return []
        return [o for o in op.regions[0].ops if o.opdef is load and o.result.type.shape]

    # what a tile is used for ------------------------------------------------------------------
    def _is_staged(self, op: Op) -> bool:
        """Whether an op is a load of a tile that is an operand of a dot."""
        if op.opdef is not load:
            return False
        return any(self._is_operand(user) for user in self._uses.users(op.result))

    def _is_operand(self, op: Op) -> bool:
        """Whether an op stages an operand of a dot, not a tile that TMA stores."""
        if op.opdef is not stage:
            return False
        return all(reader.opdef is not tma_store for reader in self._readers(op.result))

    def _readers(self, buffer: Value) -> Iterator[Op]:
        """The ops that read a buffer."""
        for op in self._uses.users(buffer):
            if op.opdef is buffer_view:
                yield from self._readers(op.result)
            else:
                yield op

    def _early_load(self, op: Op) -> EarlyLoad:
        users = self._uses.users(op.result)
        stages = tuple(user for user in users if self._is_operand(user))
        layouts = tuple(dict.fromkeys(user.result.type.layout for user in stages))
        layouts = layouts or (self._memory_order_layout(op),)
        return EarlyLoad(op, layouts, stages, len(stages) < len(users))

    def _memory_order_layout(self, op: Op) -> LinearLayout:
        """The layout of a buffer whose rows lie along the axis that is contiguous in memory."""
        tile = op.result.type
        axes = self._infos[op.pointer].axes
        minor = max(range(len(axes)), key=lambda axis: (
            min(axes[axis].contiguity, tile.shape[axis]), axis))
        return swizzled(tile.shape, minor, element_bits(tile), 0)

    # one loop -----------------------------------------------------------------------------------
    def _loop(self, loop: Op, taken: int) -> bool:
        """Plan one loop; return whether it is pipelined."""
        if not self._is_wanted(loop):
            return False
        loads = []
        for op in self._direct_loads(loop):
            early = self._early_load(op)
            reason = self._refusal(loop, early)
            if reason:
                self.found.reasons[op] = reason
            else:
                loads.append(early)
        loads = self._without_indices(loop, loads)
        if not loads:
            return False
        stages = self._stages(loop, loads, taken)
        if stages < 2:
            reason = "two copies of its tile do not fit into shared memory"
            self.found.reasons.update({early.load: reason for early in loads})
            return False
        addresses = self._slice(loop, [v for early in loads for v in early.pointer_and_mask])
        staged = [op for early in loads for op in early.stages]
        readers = [reader for op in staged for reader in self._readers(op.result)]
        by_async_proxy = any(reader.opdef is wgmma for reader in readers)
        is_read = any(early.is_read for early in loads)
        prefetch = None if is_read else prefetch_of(loop, readers, staged)
        self.found.pipelines.append(
            Pipeline(loop, tuple(loads), stages, addresses, self._advance(loop, addresses),
                     by_async_proxy, prefetch,
                     late_waits(loop, staged, self._uses)))
        return True

    def _without_indices(self, loop: Op, loads: list[EarlyLoad]) -> list[EarlyLoad]:
        """The loads of which no other load's address is computed: those begin with the others."""
        indices = {op for early in loads
                   for op in self._slice(loop, early.pointer_and_mask).ops if op.opdef is load}
        self.found.reasons.update(dict.fromkeys(
            (early.load for early in loads if early.load in indices),
            "the address of another load is computed from it"))
        return [early for early in loads if early.load not in indices]

    def _slice(self, loop: Op, values: Iterable[Value]) -> Slice | None:
        """The ops that compute addresses of an iteration; loads that may come early among them.

        None if there are others that are not pure, or if carried values depend on loads.
        """
        found = slice_of(loop, values,
                         lambda op: op.opdef is load and not self._stays(loop, op))
        return found if found is not None and self._advance(loop, found) is not None else None

    def _advance(self, loop: Op, addresses: Slice) -> Slice | None:
        """The ops that compute the next values of the carried values in a slice."""
        following = carried(loop).following
        return slice_of(loop, [following[index] for index in addresses.carried])

    def _is_wanted(self, loop: Op) -> bool:
        if attribute(loop, "num_stages") is not None:
            return True
        inner = [op for op in walk(loop.regions[0]) if is_loop(op)]
        within = {op for around in inner for op in walk(around.regions[0])}
        if any(self._is_operand(op) for op in walk(loop.regions[0]) if op not in within):
            return True
        return self._options.num_stages is not None and not inner

    def _requested_stages(self, loop: Op) -> int | None:
        """num_stages of the loop or of the options, if given."""
        return attribute(loop, "num_stages") or self._options.num_stages

    def _stages(self, loop: Op, loads: list[EarlyLoad], taken: int) -> int:
        """The slots of a ring: as many as wanted, as fit, and as there are iterations.

        Small programs take half of shared memory if two slots fit there; others of which two have
        registers if they lose no more than one slot.
        """
        requested = self._requested_stages(loop)
        is_large = (self._options.shared_bytes >= LARGE_SHARED_BYTES
                    and self._options.producers)  # else as where TMA fetches: schedule.OWN_COPIES
        wanted = requested or (LARGE_SHARED_STAGES if is_large else STAGES)
        early = {op for load_ in loads for op in load_.stages}
        others = sum(_staged_bytes(op) for op in walk(loop.regions[0]) if op not in early)
        room = self._options.room_bytes - taken - others
        size_bytes = sum(load_.size_bytes for load_ in loads)
        fitting = room // size_bytes
        beside = (room - self._options.shared_bytes // 2) // size_bytes
        is_small = self._options.num_warps <= PAIRED_WARPS
        if requested is None and beside > 1 and (
                is_small or beside >= wanted - 1 and pair_fits(self._fn, self._options)):
            fitting = beside
        bounds = [constant_of(value) for value in (loop.start, loop.stop, loop.step)]
        iterations = wanted if None in bounds else len(range(*map(int, bounds)))
        return min(wanted, fitting, iterations)

    # one load -----------------------------------------------------------------------------------
    def _refusal(self, loop: Op, early: EarlyLoad) -> str:
        """Reason why a load cannot begin early, or would not profit; empty if it can and would."""
        if "cp_async" not in self._options.features:
            return "the target has no asynchronous copies"
        if self._requested_stages(loop) == 1:
            return "num_stages is 1"
        op = early.load
        if early.stages and early.other is not None:
            return "what is masked is not zero"
        if min(self._copy_bytes(op, layout) for layout in early.layouts) < MIN_COPY_BYTES:
            return "its threads would copy less than 4 bytes at a time"
        reason = self._stays(loop, op)
        if not reason and self._slice(loop, early.pointer_and_mask) is None:
            return "its address depends on loaded values"
        return reason

    def _stays(self, loop: Op, op: Op) -> str:
        """Reason why a load cannot move before the other ops of an iteration; empty if it can."""
        if attribute(op, "volatile") or attribute(op, "cache") == VOLATILE_CACHE:
            return "it is volatile"
        read = self._origins[op.pointer]
        for other in walk(loop.regions[0]):
            if other.opdef in (assert_, check_index):
                return "a check comes before it"
            if "semantics" in other.opdef.attributes and attribute(other, "semantics") != "relaxed":
                return "an atomic of the loop keeps it in order"
            if other is not op and other.opdef is load and attribute(other, "volatile"):
                return "a volatile load of the loop keeps it in order"
            if other.opdef is inline_asm and may_write(other):
                return "PTX of the loop may write it"
            if not other.opdef.has(WRITES) and other.opdef is not tma_store:
                continue
            if not self._options.arrays_are_disjoint:
                return "arrays may share memory"
            written = other.map if other.opdef is tma_store else other.pointer
            common = read & self._origins[written]
            if common:
                return f"{min(common)} is written in the loop"
        return ""

    def _copy_bytes(self, op: Op, layout: LinearLayout) -> int:
        """The bytes that one copy can move: contiguous in array and buffer, under one mask."""
        pointer, tile = op.pointer, op.result.type
        width = max(
            min(contiguous_run(layout, axis), self._infos.access_width(pointer, op.mask, axis))
            for axis in range(len(tile.shape)))
        share = share_of_copier(tile.size, width, self._options.threads)
        return min(width, share) * element_bits(tile) // 8


def _staged_bytes(op: Op) -> int:
    """The shared memory that an op occupies for the ops after it."""
    if op.opdef is stage:
        return tile_bytes(op.result.type)
    if op.opdef is shared_allocate:
        return tile_bytes(op.result.type) * attribute(op, "copies")
    return 0


def _is_zero(value: Value) -> bool:
    """Whether all bits of all elements are known to be 0."""
    known = constant_of(value)
    return known is not None and not any(known.tobytes())

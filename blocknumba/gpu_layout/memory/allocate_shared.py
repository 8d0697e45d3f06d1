"""Pass: offsets of buffers in shared memory.

Buffers whose lifetimes do not overlap may share bytes.  With lifetimes in op numbers:

    op       1   2   3   4   5   6   7
    a        [-----------]                   offset 0
    b                [-------]               offset size of a
    c                        [-------]       offset 0, the bytes of a
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.async_copies.ops import (
    buffer_shard, buffer_view, mbarrier_allocate, slot, tma_load, tma_store,
    tma_store_wait, wgmma, wgmma_wait,
)
from blocknumba.gpu_layout.layouts.shared import is_buffer
from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.planner import element_bits
from blocknumba.tile_ir.ir.function import Function, Op, OpDef, Region, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ir.remarks import RING, Remark
from blocknumba.tile_ir.ir.uses import is_loop
from blocknumba.tile_ir.passes.contract import declared

ALIGNMENT = 16  # bytes; of the widest shared access
SWIZZLE_ALIGNMENT = 1024  # bytes; for the async proxy.  Source: PTX ISA, "Swizzling Modes"
ALLOCATIONS = (shared_allocate, mbarrier_allocate)
READ_UNTIL = {wgmma: wgmma_wait, tma_store: tma_store_wait}  # they read until the wait
ASYNC_PROXY_OPS = (*READ_UNTIL, tma_load)
NO_REUSE_BYTES = 4096  # below this offset buffers get bytes of their own: reuse costs a barrier


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Lifetime of a buffer: the first and the last op that use it.

    first, last: as walk counts, from 1; last is one more than there are ops if the buffer is in
        use until the end.
    """

    op: Op
    size_bytes: int
    first: int
    last: int
    alignment: int


@declared(reads=("shared_memory",), writes=("offsets",))
def allocate_shared(fn: Function, _options: LayoutOptions) -> Function:
    """Assign an offset to every allocation; buffers that are in use together do not overlap.

    What the async proxy reads is in use until the wait for it, an mbarrier until the end.  Buffers
    that are not in use together share bytes, but only once NO_REUSE_BYTES are taken: two buffers
    that do not share bytes need no barrier between them.
    """
    offsets = _offsets(lifetimes(fn))
    if not offsets:
        return fn

    def rewrite(rebuilder: Rebuilder, op: Op) -> tuple[Value] | None:
        if op.opdef not in ALLOCATIONS:
            return None
        attrs = {**op.attrs, "offset": offsets[op]}
        return (rebuilder.builder.emit(op.opdef, hint=op.result.hint, **attrs),)

    needed = max(offset + size_bytes(op) for op, offset in offsets.items())
    allocated = rebuild(fn, rewrite, folding=False)
    rings = (op for op in offsets if op.opdef is shared_allocate and attribute(op, "copies") > 1)
    return allocated.with_body(allocated.body, shared_bytes=needed).remarked(
        Remark.of(RING, op.loc, tile=op.result.type.spelling, copies=attribute(op, "copies"),
                  size_bytes=size_bytes(op)) for op in rings)


def size_bytes(allocation: Op) -> int:
    """The bytes of an allocation."""
    tile = allocation.result.type
    return tile.size * element_bits(tile) // 8 * allocation.attrs.get("copies", 1)


def allocation_of(buffer: Value) -> Op:
    """The allocation of a buffer, of a slot of a ring, or of a shard or a view of either."""
    owner = buffer.owner
    while owner.opdef in (slot, buffer_shard, buffer_view):
        owner = (owner.ring if owner.opdef is slot else owner.buffer).owner
    return owner


def lifetimes(fn: Function) -> list[Lifetime]:
    """The lifetime of each buffer of a function."""
    numbering = _Numbering()
    numbering.region(fn.body)
    numbering.finish()
    aligned = numbering.of_async_proxy
    return [
        Lifetime(op, size_bytes(op), start, numbering.last.get(op, start),
              SWIZZLE_ALIGNMENT if op in aligned else ALIGNMENT)
        for op, start in numbering.first.items()
    ]


class _Numbering:
    """Numbers the ops of a function in order.

    first, last: per allocation, the numbers of its op and of the op that uses it last.
    of_async_proxy: allocations that TMA or the tensor cores access.
    """

    def __init__(self):
        self.first: dict[Op, int] = {}
        self.last: dict[Op, int] = {}
        self.of_async_proxy: set[Op] = set()
        self._being_read: dict[OpDef, set[Op]] = {wait: set() for wait in READ_UNTIL.values()}
        self._index = 0

    def region(self, region: Region) -> None:
        """Number a region; a buffer from outside a loop is in use until the loop ends."""
        for op in region.ops:
            self._index += 1
            if op.opdef in ALLOCATIONS:
                self.first[op] = self._index
            self._use(op)
            start = self._index
            for inner in op.regions:
                self.region(inner)
            if op.regions:
                outer = [a for a, end in self.last.items() if end > start and self.first[a] < start]
                self.last.update(dict.fromkeys(outer, self._index))
            if is_loop(op):  # the next iteration begins while they are read
                self.first.update((a, start) for begun in self._being_read.values()
                                  for a in begun if self.first[a] > start)

    def finish(self) -> None:
        """Extend the lifetimes of mbarriers, and of buffers that are still being read, to the end.

        An mbarrier's bytes may hold nothing else before mbarrier.inval (PTX ISA), which needs a
        barrier; an arrival may reach them after a barrier that follows it.
        """
        mbarriers = {a for a in self.first if a.opdef is mbarrier_allocate}
        for begun in (mbarriers, *self._being_read.values()):
            self.last.update(dict.fromkeys(begun, self._index + 1))

    def _use(self, op: Op) -> None:
        buffers = [allocation_of(value) for value in op.operands if is_buffer(value.type)]
        self.last.update(dict.fromkeys(buffers, self._index))
        if op.opdef in ASYNC_PROXY_OPS:
            self.of_async_proxy.update(a for a in buffers if a.opdef is shared_allocate)
        if op.opdef in READ_UNTIL:
            self._being_read[READ_UNTIL[op.opdef]].update(buffers)
        elif op.opdef in self._being_read and not op.attrs.get("pending"):
            begun = self._being_read[op.opdef]
            self.last.update(dict.fromkeys(begun, self._index))
            begun.clear()


def _offsets(lifetimes: list[Lifetime]) -> dict[Op, int]:
    """An offset for every buffer: the next free bytes, from 0 again after NO_REUSE_BYTES."""
    offsets: dict[Op, int] = {}
    placed: list[tuple[Lifetime, int]] = []
    top = 0
    for lifetime in lifetimes:
        busy = sorted(
            (offset, offset + other.size_bytes)
            for other, offset in placed
            if other.last >= lifetime.first
        )
        if top + lifetime.size_bytes > NO_REUSE_BYTES:
            top = 0
        offset = _gap(busy, top, lifetime)
        offsets[lifetime.op] = offset
        placed.append((lifetime, offset))
        top = _aligned(offset + lifetime.size_bytes, ALIGNMENT)
    return offsets


def _gap(busy: list[tuple[int, int]], start: int, lifetime: Lifetime) -> int:
    """The lowest offset from start on where a buffer does not touch busy bytes."""
    offset = _aligned(start, lifetime.alignment)
    for low, high in busy:
        if low < offset + lifetime.size_bytes and offset < high:
            offset = _aligned(high, lifetime.alignment)
    return offset


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment

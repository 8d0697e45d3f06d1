"""The pass that lowers conversions through shared memory to writes and reads of buffers.

    %y = convert_layout %x     ->     %b = shared_allocate
                                      shared_write %b, %x
                                      %y = shared_read %b         insert_barriers adds the barrier

What is known of integers, bools and pointers would end at a buffer; a `hint` after it says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from blocknumba.gpu_layout.async_copies.ops import (
    ONE_ELEMENT, buffer_view, fence_async, shared_tile, stage, tma_store, wgmma,
)
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import SharedMove, plan_move
from blocknumba.gpu_layout.layouts.registers import log2, replication
from blocknumba.gpu_layout.layouts.shared import best_shared, chunk_bits, chunk_layout, in_order
from blocknumba.gpu_layout.ops import (
    convert_layout, join_chunks, shared_allocate, shared_gather, shared_read, shared_write,
    take_chunk,
)
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.gathers import gather_plan
from blocknumba.gpu_layout.placement.planner import element_bits
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import PURE, READS, WRITES
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.types import FLOAT, TileType
from blocknumba.tile_ir.ops.debug import hint
from blocknumba.tile_ir.ops.gather import gather
from blocknumba.tile_ir.passes.contract import declared

STAGING = (stage, shared_tile)
CONVERSION_CHUNK_BYTES = 1 << 14  # larger conversions go in chunks, where possible
READ_BY_ENGINES = (wgmma, tma_store)


@declared(reads=("layouts",), writes=("ops", "shared_memory"))
def stage_conversions(fn: Function, _options: LayoutOptions) -> Function:
    """Lower conversions that need shared memory to an allocation, a write and a read.

    A gather that no shuffles do becomes a write and a `shared_gather`; conversions of what it
    reads are left out, as it reads from any layout.
    `stage` becomes the first two, with a fence if TMA or wgmma will read the buffer, and
    `shared_tile` the last.  The results of atomics, and of volatile loads, are
    broadcast the same way: one thread per element does the access, others hold copies of it.

    Independent conversions and broadcasts are grouped, so that one barrier serves them all;
    volatile loads are issued one after the other before it.  A conversion larger than
    CONVERSION_CHUNK_BYTES goes chunk by chunk, if every thread holds elements of every chunk.
    """
    used = {value for op in walk(fn.body) for value in op.operands}
    broadcast = {
        op
        for op in walk(fn.body)
        if op.opdef.has(READS) and not used.isdisjoint(op.results) and _has_one_accessor(op)
    }
    gathers = {op for op in walk(fn.body) if op.opdef is gather and _is_through_memory(op)}
    if not broadcast and not gathers and not any(
            _needs_shared(op) or op.opdef in STAGING for op in walk(fn.body)):
        return fn
    return _Stager(fn, broadcast, gathers).function(fn)


class _Stager(Rebuilder):
    """Rebuilder that lowers conversions through shared memory.

    broadcast: ops whose results go from one thread to all.
    gathers: those that read a buffer.
    """

    def __init__(self, fn: Function, broadcast: set[Op], gathers: set[Op]):
        super().__init__(folding=False)
        self._fn = fn
        self._broadcast, self._gathers = broadcast, gathers
        self._read_by_engines = _read_by_engines(fn)
        self._needless = _needless(fn, gathers)
        self._buffers: dict[Value, Value] = {}

    @cached_property
    def _infos(self) -> AxisInfos:
        return AxisInfos(self._fn)

    def ops(self, ops: Sequence[Op]) -> None:
        """Emit ops again, conversions through shared memory in groups."""
        outer, self._buffers = self._buffers, dict(self._buffers)
        self._emit_groups(ops)
        self._buffers = outer

    def _emit_groups(self, ops: Sequence[Op]) -> None:
        for step in _grouped(ops, self._needless, self._broadcast):
            if step.is_exchange:
                self._exchange(step.ops)
            elif step.ops[0] not in self._needless:
                self.op(step.ops[0])

    def op(self, op: Op) -> None:
        """Emit one op again; what is broadcast is only accessed."""
        if op.opdef is stage:
            self._stage(op)
            return
        if op in self._gathers:
            self._gather(op)
            return
        if op.opdef is shared_tile:
            self.builder.loc = op.loc
            buffer, tile = self[op.buffer], op.result
            self[tile] = _read(self.builder, buffer, tile.type, tile.hint)
            return
        super().op(op)

    def _stage(self, op: Op) -> None:
        """Write a tile into a new buffer, for threads, TMA or wgmma to read."""
        self.builder.loc = op.loc
        self[op.result] = _written(self.builder, self[op.x], op.attrs["layout"])
        if op.result in self._read_by_engines:
            self.builder.emit(fence_async)

    def _gather(self, op: Op) -> None:
        """Read a tile by indices from a buffer; gathers from one tile share it."""
        self.builder.loc = op.loc
        source = op.x.owner.x if op.x.owner in self._needless else op.x
        if source not in self._buffers:
            self._buffers[source] = _written(self.builder, self[source],
                                             in_order(source.type.layout))
        self[op.result] = self.builder.emit(
            shared_gather, self._buffers[source], self[op.indices], axis=op.attrs["axis"],
            hint=op.result.hint)

    def _exchange(self, group: Sequence[Op]) -> None:
        """Write what a group converts and broadcasts, then read the results."""
        buffers = {}
        for op in group:
            self.builder.loc = op.loc
            if op in self._broadcast:
                value = self[op.result]
                buffers[op] = _written(self.builder, value, _round_trip_layout(value.type))
                continue
            x, bits = self[op.x], _bits_of_chunks(op)
            if bits:
                self._convert_in_chunks(x, op, bits)
                continue
            move = plan_move(x.type.layout, op.result.type.layout, element_bits(x.type))
            buffers[op] = _written(self.builder, x, move.shared)
        for op, buffer in buffers.items():
            self.builder.loc = op.loc
            read = _read(self.builder, buffer, op.result.type, op.result.hint)
            self[op.result] = read if op in self._broadcast else self._hinted(read, op.result)

    def _hinted(self, read: Value, converted: Value) -> Value:
        """The tile that was read from a buffer, with what is known of the converted one."""
        dtype = converted.type.dtype
        if not converted.type.is_pointer and dtype.kind == FLOAT:
            return read
        axes = self._infos[converted].axes
        known = {"divisibility": tuple(axis.divisibility for axis in axes),
                 "contiguity": tuple(axis.contiguity for axis in axes),
                 "constancy": tuple(axis.constancy for axis in axes)}
        told = {name: numbers for name, numbers in known.items() if max(numbers) > 1}
        return self.builder.emit(hint, read, hint=converted.hint, **told) if told else read

    def _convert_in_chunks(self, x: Value, op: Op, bits: tuple[int, ...]) -> None:
        """Write and read a tile chunk by chunk.

        Two buffers alternate: one is written while the other is read, with one barrier a chunk.
        """
        emit, made, chunks = self.builder.emit, op.result.type, []
        needed = chunk_layout(made.layout, bits)
        move = plan_move(chunk_layout(x.type.layout, bits), needed, element_bits(x.type))
        buffers: dict[int, Value] = {}
        for index in range(1 << len(bits)):
            chunk = emit(take_chunk, x, bits=bits, index=index)
            if not isinstance(move, SharedMove):
                chunks.append(emit(convert_layout, chunk, layout=needed))
                continue
            parity = index % 2
            if parity not in buffers:
                buffers[parity] = _allocated(self.builder, chunk.type, move.shared)
            emit(shared_write, buffers[parity], chunk)
            chunks.append(emit(shared_read, buffers[parity], layout=needed))
        self[op.result] = emit(join_chunks, *chunks, shape=made.shape, layout=made.layout,
                               bits=bits, hint=op.result.hint)


def _bits_of_chunks(op: Op) -> tuple[int, ...]:
    """The index bits that number the chunks of a conversion; () if it is done at once."""
    tile = op.result.type
    size_bytes = tile.size * element_bits(tile) // 8
    needed = log2(max(1, size_bytes // CONVERSION_CHUNK_BYTES))
    return chunk_bits(op.x.type.layout, tile.layout, needed) if needed else ()


@dataclass(frozen=True, slots=True)
class _Step:
    """An op, or with is_exchange the conversions and broadcasts that one barrier serves."""

    ops: tuple[Op, ...]
    is_exchange: bool = False


def _grouped(ops: Sequence[Op], needless: set[Op], broadcast: set[Op]) -> Iterator[_Step]:
    """ops one by one, but independent exchanges through shared memory in one group.

    Pure ops that depend on an exchange are held back, so that later ones join its group,
    until an op comes that is not pure.  Pure ops that do not depend on it go before it, as do
    volatile loads, which are broadcast; an atomic may acquire for all threads, so that what follows
    it waits for its broadcast.
    needless: conversions that join no group; what reads them waits for what they read.
    """
    exchanges: list[Op] = []
    waiting: list[Op] = []
    dependent: set[Value] = set()
    for op in ops:
        is_access = op in broadcast
        depends = any(value in dependent for value in op.operands)
        joins = is_access and not depends and not op.opdef.has(WRITES)
        if not joins and not op.opdef.has(PURE) or any(e.opdef.has(WRITES) for e in exchanges):
            yield from _released(exchanges, waiting, needless, broadcast)
            exchanges, waiting, dependent, depends = [], [], set(), False
        if is_access or not depends and (op in needless or not _needs_shared(op)):
            yield _Step((op,))
            if not is_access:
                continue
        (waiting if depends else exchanges).append(op)
        dependent.update(op.results)
    yield from _released(exchanges, waiting, needless, broadcast)


def _released(exchanges: list[Op], waiting: list[Op], needless: set[Op],
              broadcast: set[Op]) -> Iterator[_Step]:
    """A group of exchanges, then the ops held back for it, grouped in turn."""
    if exchanges:
        yield _Step(tuple(exchanges), is_exchange=True)
    if waiting:
        yield from _grouped(waiting, needless, broadcast)


def _is_through_memory(op: Op) -> bool:
    """Whether a gather reads a buffer."""
    x = op.x.type
    return gather_plan(op.result.type.layout, x.shape, op.attrs["axis"], x.dtype.bits) is None


def _needless(fn: Function, gathers: set[Op]) -> set[Op]:
    """Conversions that nothing reads but gathers from buffers."""
    others = {value for op in walk(fn.body) for value in op.operands
              if op not in gathers or value is not op.x}
    return {op.x.owner for op in gathers if op.x.owner is not None
            and op.x.owner.opdef is convert_layout and op.x not in others}


def _needs_shared(op: Op) -> bool:
    if op.opdef is not convert_layout:
        return False
    source, destination = op.x.type, op.result.type
    move = plan_move(source.layout, destination.layout, element_bits(source))
    return isinstance(move, SharedMove)


def _read_by_engines(fn: Function) -> set[Value]:
    """The buffers, and views of them, that TMA or wgmma read."""
    read_by_engines: set[Value] = set()
    for op in reversed(tuple(walk(fn.body))):
        if op.opdef in READ_BY_ENGINES:
            read_by_engines.update(op.operands)
        elif op.opdef is buffer_view and op.result in read_by_engines:
            read_by_engines.update(op.operands)
    return read_by_engines


def _has_one_accessor(op: Op) -> bool:
    """Whether only one of the threads that hold an element of the result accesses memory."""
    made = op.result.type
    if not op.opdef.has(WRITES) and not op.attrs.get("volatile"):
        return False
    masks = None if made.is_scalar else replication(made.layout)
    return masks is None or bool(masks.lane or masks.warp)


def _round_trip_layout(tile: TileType) -> LinearLayout:
    """The shared layout through which a tile returns to its own layout."""
    if tile.is_scalar:
        return ONE_ELEMENT
    return best_shared(tile.layout, tile.layout, element_bits(tile))


def _written(builder: Builder, value: Value, shared: LinearLayout) -> Value:
    """A new buffer that holds a value."""
    buffer = _allocated(builder, value.type, shared)
    builder.emit(shared_write, buffer, value)
    return buffer


def _allocated(builder: Builder, tile: TileType, shared: LinearLayout) -> Value:
    """A new buffer for a tile."""
    return builder.emit(
        shared_allocate, dtype=str(tile.dtype), shape=tile.shape or (1,), layout=shared
    )


def _read(builder: Builder, buffer: Value, needed: TileType, hint: str) -> Value:
    """The contents of a buffer, as a tile of the needed type."""
    return builder.emit(shared_read, buffer, layout=needed.layout, hint=hint)

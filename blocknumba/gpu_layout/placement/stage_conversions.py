"""The pass that makes traffic through shared memory explicit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blocknumba.gpu_layout.async_copies.ops import (
    ONE_ELEMENT, buffer_view, fence_async, shared_tile, stage, tma_store, wgmma,
)
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import SharedMove, plan_move
from blocknumba.gpu_layout.layouts.registers import log2, replication
from blocknumba.gpu_layout.layouts.shared import best_shared
from blocknumba.gpu_layout.memory.chunks import chunk_bits, chunk_layout
from blocknumba.gpu_layout.ops import (
    convert_layout, join_chunks, shared_allocate, shared_read, shared_write, take_chunk,
)
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.planner import element_bits
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import PURE, READS, WRITES
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.passes.contract import declared

STAGING = (stage, shared_tile)
CONVERSION_CHUNK_BYTES = 1 << 14  # of a conversion, where it can be done in parts
READ_BY_ENGINES = (wgmma, tma_store)


@declared(reads=("layouts",), writes=("ops", "shared_memory"))
def stage_conversions(fn: Function, _options: LayoutOptions) -> Function:
    """Conversions that need shared memory become an allocation, a write and a read.

    `stage` becomes the first two, with a fence where an engine will read, and `shared_tile` the
    last.  So do the results of atomics, and of volatile loads of a scalar: one thread per element
    does the access, so the threads that hold copies have to be told.  Conversions that do not
    depend on each other are done together, so that one barrier serves them all.  What is larger
    than CONVERSION_CHUNK_BYTES goes part by part, if every thread holds some of every part.
    """
    used = {value for op in walk(fn.body) for value in op.operands}
    broadcast = {
        op
        for op in walk(fn.body)
        if op.opdef.has(READS) and not used.isdisjoint(op.results) and _has_one_accessor(op)
    }
    if not broadcast and not any(_needs_shared(op) or op.opdef in STAGING for op in walk(fn.body)):
        return fn
    return _Stager(broadcast, _read_by_engines(fn)).function(fn)


class _Stager(Rebuilder):
    """Re-emits a function.

    told: ops whose results go from one thread to all.
    seen: buffers that the tensor cores or the copy engine read.
    """

    def __init__(self, broadcast: set[Op], read_by_engines: set[Value]):
        super().__init__(folding=False)
        self._broadcast = broadcast
        self._read_by_engines = read_by_engines

    def ops(self, ops: Sequence[Op]) -> None:
        """Copies of ops, conversions through shared memory grouped."""
        for group in _grouped(ops):
            if _needs_shared(group[0]):
                self._convert(group)
            else:
                self.op(group[0])

    def op(self, op: Op) -> None:
        """A copy of one op; its result read back by all threads if it must be told."""
        if op.opdef is stage:
            self._stage(op)
            return
        if op.opdef is shared_tile:
            self.builder.loc = op.loc
            buffer, tile = self[op.buffer], op.result
            self[tile] = _read(self.builder, buffer, tile.type, tile.hint)
            return
        super().op(op)
        if op in self._broadcast:
            value = self[op.result]
            buffer = _written(self.builder, value, _own_shared(value.type))
            self[op.result] = _read(self.builder, buffer, value.type, op.result.hint)

    def _stage(self, op: Op) -> None:
        """Write a tile into a buffer of its own, for threads or for engines."""
        self.builder.loc = op.loc
        self[op.result] = _written(self.builder, self[op.x], op.attrs["layout"])
        if op.result in self._read_by_engines:
            self.builder.emit(fence_async)

    def _convert(self, group: Sequence[Op]) -> None:
        """Write what a group of conversions moves, then read it."""
        buffers = []
        for op in group:
            self.builder.loc = op.loc
            x, bits = self[op.x], _bits_of_chunks(op)
            if bits:
                self._convert_in_chunks(x, op, bits)
                continue
            move = plan_move(x.type.layout, op.result.type.layout, element_bits(x.type))
            buffers.append(_written(self.builder, x, move.shared))
        whole = [op for op in group if not _bits_of_chunks(op)]
        for op, buffer in zip(whole, buffers, strict=True):
            self.builder.loc = op.loc
            self[op.result] = _read(self.builder, buffer, op.result.type, op.result.hint)

    def _convert_in_chunks(self, x: Value, op: Op, bits: tuple[int, ...]) -> None:
        """Write and read one part of a tile after the other.

        Two buffers take turns: while one is read the other is written, behind one barrier.
        """
        emit, made, parts = self.builder.emit, op.result.type, []
        wanted = chunk_layout(made.layout, bits)
        move = plan_move(chunk_layout(x.type.layout, bits), wanted, element_bits(x.type))
        buffers: dict[int, Value] = {}
        for index in range(1 << len(bits)):
            part = emit(take_chunk, x, bits=bits, index=index)
            if not isinstance(move, SharedMove):
                parts.append(emit(convert_layout, part, layout=wanted))
                continue
            parity = index % 2
            if parity not in buffers:
                buffers[parity] = _allocated(self.builder, part.type, move.shared)
            emit(shared_write, buffers[parity], part)
            parts.append(emit(shared_read, buffers[parity], layout=wanted))
        self[op.result] = emit(join_chunks, *parts, shape=made.shape, layout=made.layout, bits=bits,
                               hint=op.result.hint)


def _bits_of_chunks(op: Op) -> tuple[int, ...]:
    """The bits that the parts of a conversion differ in; none if it is done at once."""
    tile = op.result.type
    size_bytes = tile.size * element_bits(tile) // 8
    wanted = log2(max(1, size_bytes // CONVERSION_CHUNK_BYTES))
    return chunk_bits(op.x.type.layout, tile.layout, wanted) if wanted else ()


def _grouped(ops: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    """ops one by one, but conversions through shared memory together where nothing is between.

    What depends on a conversion waits until an op comes that cannot pass it, being not pure; what
    does not depend on it goes before.
    """
    together: list[Op] = []
    waiting: list[Op] = []
    late: set[Value] = set()
    for op in ops:
        if not op.opdef.has(PURE):
            yield from _released(together, waiting)
            together, waiting, late = [], [], set()
            yield (op,)
            continue
        depends = any(value in late for value in op.operands)
        if not depends and not _needs_shared(op):
            yield (op,)
            continue
        (waiting if depends else together).append(op)
        late.update(op.results)
    yield from _released(together, waiting)


def _released(together: list[Op], waiting: list[Op]) -> Iterator[tuple[Op, ...]]:
    """A group of conversions, then what waited for it, grouped in turn."""
    if together:
        yield tuple(together)
    if waiting:
        yield from _grouped(waiting)


def _needs_shared(op: Op) -> bool:
    if op.opdef is not convert_layout:
        return False
    source, destination = op.x.type, op.result.type
    move = plan_move(source.layout, destination.layout, element_bits(source))
    return isinstance(move, SharedMove)


def _read_by_engines(fn: Function) -> set[Value]:
    """The buffers, and views of them, that the tensor cores or the copy engine read."""
    read_by_engines: set[Value] = set()
    for op in reversed(tuple(walk(fn.body))):
        if op.opdef in READ_BY_ENGINES:
            read_by_engines.update(op.operands)
        elif op.opdef is buffer_view and op.result in read_by_engines:
            read_by_engines.update(op.operands)
    return read_by_engines


def _has_one_accessor(op: Op) -> bool:
    """Whether only one of the threads that hold an element of the result gets it from memory."""
    made = op.result.type
    if op.opdef.has(WRITES):
        masks = None if made.is_scalar else replication(made.layout)
        return masks is None or bool(masks.lane or masks.warp)
    return made.is_scalar and bool(op.attrs.get("volatile"))


def _own_shared(tile: TileType) -> LinearLayout:
    """The shared layout through which a tile goes back to its own layout."""
    if tile.is_scalar:
        return ONE_ELEMENT
    return best_shared(tile.layout, tile.layout, element_bits(tile))


def _written(builder: Builder, value: Value, shared: LinearLayout) -> Value:
    """A new buffer with a value in it."""
    buffer = _allocated(builder, value.type, shared)
    builder.emit(shared_write, buffer, value)
    return buffer


def _allocated(builder: Builder, tile: TileType, shared: LinearLayout) -> Value:
    """A new buffer for a tile."""
    return builder.emit(
        shared_allocate, dtype=str(tile.dtype), shape=tile.shape or (1,), layout=shared
    )


def _read(builder: Builder, buffer: Value, wanted: TileType, hint: str) -> Value:
    """What is in a buffer, as a tile of that type."""
    return builder.emit(shared_read, buffer, layout=wanted.layout, hint=hint)

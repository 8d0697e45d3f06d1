"""The pass that gives buffers in shared memory their places."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.gpu_layout.ops import shared_allocate
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.planner import element_bits
from blocknumba.tile_ir.ir import Function, Op, Region, Value, walk
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.rebuild import Rebuilder, rebuild

ALIGNMENT = 16  # bytes; of the widest shared access
SPREAD_BYTES = 4096  # small buffers get places of their own up to here: reuse costs a barrier


@dataclass(frozen=True, slots=True)
class _Life:
    """A buffer: its size, and the ops between which it is in use, numbered in program order."""

    op: Op
    size_bytes: int
    first: int
    last: int


@declared(reads=("shared_memory",), writes=("offsets",))
def allocate_shared(fn: Function, _options: LayoutOptions) -> Function:
    """Every shared_allocate gets an offset; buffers that are in use together do not overlap.

    Buffers that are not in use together share bytes, but only once SPREAD_BYTES are taken: two
    that do not share need no barrier between them.
    """
    offsets = _places(_lives(fn))
    if not offsets:
        return fn

    def rewrite(rebuilder: Rebuilder, op: Op) -> tuple[Value] | None:
        if op.opdef is not shared_allocate:
            return None
        attrs = {**op.attrs, "offset": offsets[op]}
        return (rebuilder.builder.emit(shared_allocate, hint=op.result.hint, **attrs),)

    return rebuild(fn, rewrite, folding=False)


def size_bytes(allocation: Op) -> int:
    """The bytes of a shared_allocate."""
    tile = allocation.result.type
    return tile.size * element_bits(tile) // 8


def shared_bytes(fn: Function) -> int:
    """The shared memory a program needs, after allocate_shared; 0 if it uses none."""
    ends = [
        op.attrs["offset"] + size_bytes(op) for op in walk(fn.body) if op.opdef is shared_allocate
    ]
    return max(ends, default=0)


def _lives(fn: Function) -> list[_Life]:
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    _number(fn.body, 0, first, last)
    return [
        _Life(value.owner, size_bytes(value.owner), start, last.get(value, start))
        for value, start in first.items()
    ]


def _number(region: Region, at: int, first: dict[Value, int], last: dict[Value, int]) -> int:
    """Number the ops of a region; a buffer from outside a loop is in use until the loop ends."""
    for op in region.ops:
        at += 1
        if op.opdef is shared_allocate:
            first[op.result] = at
        for value in op.operands:
            if value in first:
                last[value] = at
        start = at
        for inner in op.regions:
            at = _number(inner, at, first, last)
        if op.regions:
            outer = [v for v, end in last.items() if end > start and first[v] < start]
            last.update(dict.fromkeys(outer, at))
    return at


def _places(lives: list[_Life]) -> dict[Op, int]:
    """An offset for every buffer: the next free bytes, from the start again after SPREAD_BYTES."""
    offsets: dict[Op, int] = {}
    placed: list[tuple[_Life, int]] = []
    top = 0
    for life in lives:
        busy = sorted(
            (offset, offset + other.size_bytes)
            for other, offset in placed
            if other.last >= life.first
        )
        if top + life.size_bytes > SPREAD_BYTES:
            top = 0
        offset = _gap(busy, top, life.size_bytes)
        offsets[life.op] = offset
        placed.append((life, offset))
        top = _aligned(offset + life.size_bytes)
    return offsets


def _gap(busy: list[tuple[int, int]], start: int, size: int) -> int:
    """The lowest offset from start on where size bytes do not touch busy ones."""
    offset = start
    for low, high in busy:
        if low < offset + size and offset < high:
            offset = _aligned(high)
    return offset


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT

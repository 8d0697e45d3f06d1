"""Layouts for what is computed of tiles that are broadcast, which prefers none by itself.

A tile keeps its place along its own axes.  The axis that it is broadcast along lies in registers,
so that a thread has all of it, or first in lanes and warps that would hold copies:

    x   256x4      register:1.2;lane:4..64;warp:128.256      of a thread: one row
    x[:, None, :] > x[:, :, None]      register:1.2.4.8;lane:16..256;warp:512.1024
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from blocknumba.gpu_layout.layouts import registers
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import LANE, REGISTER, WARP, dims_of, log2
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE
from blocknumba.tile_ir.ops.shape import broadcast, reshape

MAX_OPS = 32  # between an op and the tiles that are broadcast for it
MAX_REGISTERS = 128  # of a tile, in one thread


def spreads(
    values: tuple[Value, ...], preferred: Callable[[Value], LinearLayout | None]
) -> tuple[LinearLayout, ...]:
    """The layouts that keep in place what the values are broadcast from.

    values: tiles of one shape, operands of an op.   preferred: the preferred layout of a value.
    """
    found = dict.fromkeys(layout for layout in _spread(values, preferred, set())
                          if registers.register_count(layout) <= MAX_REGISTERS)
    return tuple(found)


def _spread(values: tuple[Value, ...], preferred: Callable[[Value], LinearLayout | None],
            seen: set[Value]) -> Iterator[LinearLayout]:
    for value in values:
        op = value.owner
        if value in seen or len(seen) == MAX_OPS or op is None or op.regions:
            continue
        seen.add(value)
        shape = value.type.shape
        if op.opdef.has(ELEMENTWISE):
            same = tuple(x for x in op.operands if x.type.shape == shape)
            yield from _spread(same, preferred, seen)
        elif op.opdef is reshape and op.x.type.shape:
            for layout in _spread((op.x,), preferred, seen):
                yield registers.reshape(layout, shape)
        elif op.opdef is broadcast:
            own = preferred(op.x)
            for layout in _spread((op.x,), preferred, seen) if own is None else (own,):
                yield from _broadcast(layout, op.x.type.shape, shape)


def _broadcast(layout: LinearLayout, old: tuple[int, ...], new: tuple[int, ...]
               ) -> Iterator[LinearLayout]:
    """Of a tile of extents 1 that become those of `new`: in registers, and where copies lie."""
    added, first_bit = [], 0
    for axis in reversed(range(len(new))):
        bits = log2(new[axis])
        if old[axis] != new[axis]:
            added += [1 << first_bit + bit for bit in range(bits)]
        first_bit += bits
    moved = layout.with_outs(dims_of(new))
    yield moved.with_columns(REGISTER, tuple(added) + moved[REGISTER])
    left = list(added)
    for name in (WARP, LANE):
        # the highest bits first: those of the outermost axis
        columns = tuple(column or (left.pop() if left else 0) for column in reversed(moved[name]))
        moved = moved.with_columns(name, columns[::-1])
    if len(left) < len(added):
        yield moved.with_columns(REGISTER, tuple(left) + moved[REGISTER])

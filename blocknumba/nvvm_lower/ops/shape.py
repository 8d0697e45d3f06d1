"""Code of ops that rearrange elements: registers are renamed, or moved within a warp."""

from __future__ import annotations

from blocknumba.gpu_layout.layouts import gf2, registers as layouts
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import LANE, REGISTER, WARP
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code, count
from blocknumba.nvvm_lower.services.shared_memory import moved, shifted
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ops.shape import (
    broadcast, extract, flip, join, reshape, splat, split, transpose,
)


@code(splat)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    return x * count(op.result.type)


@code(broadcast)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    old = op.x.type
    kept = tuple(bits if old.shape[int(name[3:])] > 1 else 0 for name, bits in
                 op.result.type.layout.outs)
    wanted = _projected(op.result.type.layout, kept, old.layout)
    return moved(emitter, old.dtype, x, old.layout, wanted)


@code(reshape)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    old, new = op.x.type, op.result.type
    if old.is_scalar or new.is_scalar:
        assert len(x) == count(new) == 1, f"reshape: {old} to {new}"
        return x
    return moved(emitter, old.dtype, x, old.layout, layouts.reshape(new.layout, old.shape))


@code(transpose)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    old, axes = op.x.type, op.attrs["axes"]
    wanted = layouts.transpose(op.result.type.layout, layouts.inverse_axes(axes))
    return moved(emitter, old.dtype, x, old.layout, wanted)


@code(join)
def _(emitter: Emitter, op: Op, x: Registers, y: Registers) -> Registers:
    """The lowest index bit of the result chooses between x and y."""
    type_, joined = op.x.type, op.result.type.layout
    assert not any(column & 1 for column in joined[LANE] + joined[WARP]), f"join in {joined}"
    wanted = LinearLayout(joined.ins, type_.layout.outs,
                          tuple(column >> 1 for column in joined.columns))
    sides = [moved(emitter, type_.dtype, side, type_.layout, wanted) for side in (x, y)]
    parity = gf2.images(tuple(column & 1 for column in joined[REGISTER]))
    return [sides[side][register] for register, side in enumerate(parity)]


@code(split)
def _(emitter: Emitter, op: Op, x: Registers) -> tuple[Registers, Registers]:
    """The lowest index bit of the operand chooses the result."""
    type_ = op.x.type
    halves = []
    for side, result in enumerate(op.results):
        turned = shifted(emitter, type_.dtype, x, type_.layout, side)
        wanted = LinearLayout(result.type.layout.ins, type_.layout.outs,
                              tuple(column << 1 for column in result.type.layout.columns))
        halves.append(moved(emitter, type_.dtype, turned, type_.layout, wanted))
    return tuple(halves)


@code(flip)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    """Extents are powers of two, so i becomes i ^ (extent - 1)."""
    type_, axis = op.x.type, op.attrs["axis"]
    distance = (type_.shape[axis] - 1) * _step(type_.shape, axis)
    turned = shifted(emitter, type_.dtype, x, type_.layout, distance)
    return moved(emitter, type_.dtype, turned, type_.layout, op.result.type.layout)


@code(extract)
def _(emitter: Emitter, op: Op, x: Registers) -> Registers:
    """Starts are multiples of the result's extents, so index i of x is start ^ (i - start)."""
    type_, result = op.x.type, op.result.type
    distance = sum(start * _step(type_.shape, axis)
                   for axis, start in enumerate(op.attrs["starts"]))
    turned = shifted(emitter, type_.dtype, x, type_.layout, distance)
    wanted = result.layout.with_outs(type_.layout.outs)
    return moved(emitter, type_.dtype, turned, type_.layout, wanted)


def _step(shape: tuple[int, ...], axis: int) -> int:
    """The distance of neighbours along an axis, in C order."""
    step = 1
    for extent in shape[axis + 1:]:
        step *= extent
    return step


def _projected(layout: LinearLayout, kept: tuple[int, ...], old: LinearLayout) -> LinearLayout:
    """The layout without the axes that were broadcast: the operand's elements in each thread.

    kept: per output dimension its bits, or 0 where the operand has extent 1.
    """
    moves, bit, packed = [], 0, 0
    for bits, (_, all_bits) in zip(kept, layout.outs, strict=True):
        if bits:
            moves.append((bit, (1 << bits) - 1, packed))
        bit, packed = bit + all_bits, packed + bits
    columns = tuple(sum((column >> at & mask) << to for at, mask, to in moves)
                    for column in layout.columns)
    return LinearLayout(layout.ins, old.outs, columns)

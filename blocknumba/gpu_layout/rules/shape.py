"""Placement of ops that rearrange elements: the layout follows, and no register moves."""

from __future__ import annotations

from blocknumba.gpu_layout import gf2, registers
from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.placement import Layouts, Placement, nowhere, place
from blocknumba.gpu_layout.registers import LANE, REGISTER, WARP
from blocknumba.tile_ir.ir import Op
from blocknumba.tile_ir.ops.shape import (
    broadcast,
    extract,
    flip,
    join,
    reshape,
    split,
    splat,
    transpose,
)


def _no_tiles(op: Op, _layout: LinearLayout) -> Layouts:
    return (None,) * len(op.operands)


def _broadcast_operands(op: Op, layout: LinearLayout) -> Layouts:
    old, new = op.operands[0].type.shape, op.result.type.shape
    axes = tuple(axis for axis, extent in enumerate(old) if extent != new[axis])
    return (registers.collapse(layout, axes),)


def _reshape_operands(op: Op, layout: LinearLayout) -> Layouts:
    shape = op.operands[0].type.shape
    return (registers.reshape(layout, shape) if shape else None,)


def _reshape_natural(op: Op, homes: Layouts) -> LinearLayout | None:
    (home,) = homes
    shape = op.result.type.shape
    return registers.reshape(home, shape) if home is not None and shape else None


def _reshape_result(op: Op, layout: LinearLayout) -> LinearLayout | None:
    """Scalars have no layout."""
    return layout if op.result.type.shape else None


def _transpose_operands(op: Op, layout: LinearLayout) -> Layouts:
    return (registers.transpose(layout, registers.inverse_axes(op.attrs["axes"])),)


def _transpose_natural(op: Op, homes: Layouts) -> LinearLayout | None:
    (home,) = homes
    return registers.transpose(home, op.attrs["axes"]) if home is not None else None


def _join_operands(op: Op, layout: LinearLayout) -> Layouts:
    half = registers.split(layout)
    return (half, half)


def _join_natural(_op: Op, homes: Layouts) -> LinearLayout | None:
    home = homes[0] if homes[0] is not None else homes[1]
    return registers.join(home) if home is not None else None


def _join_accepts(_op: Op, layout: LinearLayout) -> bool:
    return registers.can_split(layout)


def _join_fallback(op: Op, num_warps: int) -> LinearLayout:
    return registers.join(registers.in_rows(op.operands[0].type.shape, num_warps))


def _split_operands(_op: Op, layout: LinearLayout) -> Layouts:
    return (registers.join(layout),)


def _split_natural(_op: Op, homes: Layouts) -> LinearLayout | None:
    (home,) = homes
    return registers.split(home) if home is not None and registers.can_split(home) else None


def _extract_operands(op: Op, layout: LinearLayout) -> Layouts:
    """The part's layout, and what lies outside it in further registers of the same thread."""
    old, part = op.operands[0].type.shape, op.result.type.shape
    outs = registers.dims_of(old)
    wide = layout.with_outs(outs)
    place_, added = 0, ()
    for axis in reversed(range(len(old))):
        bits, inner = registers.log2(old[axis]), registers.log2(part[axis])
        added += tuple(1 << place_ + bit for bit in range(inner, bits))
        place_ += bits
    return (wide.with_columns(REGISTER, wide[REGISTER] + added),)


def _extract_natural(op: Op, homes: Layouts) -> LinearLayout | None:
    """Where the part is held already, if every thread holds some of it."""
    (home,) = homes
    return registers.part(home, op.result.type.shape) if home is not None else None


def flip_source(layout: LinearLayout, axis: int) -> int | None:
    """Where `flip` along an axis finds its elements: a packed (register, lane) to xor with.

    None if the axis lies across warps.
    """
    mask, place_ = 0, 0
    for name, bits in layout.outs:
        if name == f"dim{axis}":
            mask = ((1 << bits) - 1) << place_
        place_ += bits
    if any(column & mask for column in layout[WARP]):
        return None
    return gf2.solve(layout[REGISTER] + layout[LANE], mask)


def _flip_fallback(op: Op, num_warps: int) -> LinearLayout:
    return registers.within_warps(op.result.type.shape, op.attrs["axis"], num_warps)


def _flip_accepts(op: Op, layout: LinearLayout) -> bool:
    return flip_source(layout, op.attrs["axis"]) is not None


place(splat, Placement(operands=_no_tiles, natural=nowhere, slots=0))
place(broadcast, Placement(operands=_broadcast_operands, natural=nowhere, slots=0))
place(
    reshape,
    Placement(
        operands=_reshape_operands, result=_reshape_result, natural=_reshape_natural, slots=0
    ),
)
place(
    transpose, Placement(operands=_transpose_operands, natural=_transpose_natural, slots=0)
)
place(
    join,
    Placement(
        operands=_join_operands,
        natural=_join_natural,
        accepts=_join_accepts,
        fallback=_join_fallback,
        slots=0,
    ),
)
place(split, Placement(operands=_split_operands, natural=_split_natural, slots=0))
place(extract, Placement(operands=_extract_operands, natural=_extract_natural, slots=0))
place(flip, Placement(accepts=_flip_accepts, fallback=_flip_fallback, slots=2))

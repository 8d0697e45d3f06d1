"""Plans of reductions: which registers and lanes combine, and what is left for other warps.

Example: 512 elements in register:1.2;lane:4..64;warp:128.256, reduced over their axis.

    groups       one group of registers 0 1 2 3             3 additions in a thread
    lane_masks   1 2 4 8 16                                 5 butterfly shuffles
    warps        4 partial results, one in each warp        through shared memory
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import (
    LANE, REGISTER, WARP, dims_of, drop_axis, log2, shape_of,
)

# A thread that combines the partial results of 16 warps reads four vectors; with shuffles it reads
# one, and there are half as many instructions.
MANY_WARP_BITS, VECTOR_BITS = 4, 2


@dataclass(frozen=True, slots=True)
class ReductionPlan:
    """Steps of the reduction of a tile in one layout along one axis.

    groups: per register of the result the registers of the operand that it combines, in the order
        of their index along the axis.
    lane_masks: then, for each mask in turn, combine with the value of lane ^ mask.  Afterwards all
        these lanes hold the same bits, since both partners combine the same two values.
    warps: partial results that are left, in different warps; 1 if the reduction is complete.
    partial: the layout of the partial results: the operand's shape with extent `warps` along the
        axis.
    gathered: the layout of the same shape in which every warp that keeps a result holds all its
        partial results (equal to partial if warps is 1): few in registers, one vector of many,
        where lanes that would hold copies can hold the others.
    result: the layout of the complete result, without the axis.
    """

    groups: tuple[tuple[int, ...], ...]
    lane_masks: tuple[int, ...]
    warps: int
    partial: LinearLayout
    gathered: LinearLayout
    result: LinearLayout


def registers_rise(layout: LinearLayout, axis: int) -> bool:
    """Whether registers in the order of a plan's groups are so in every thread.

    They are not where a lane decides a bit of the index that a register decides too.
    """
    mask, own, others = _axis_mask(layout, axis), 0, 0
    for column in layout["register"]:
        own |= column & mask
    for name, _ in layout.ins:
        for column in layout[name] if name != "register" else ():
            others |= column & mask
    return not own & others


def is_separable(layout: LinearLayout, axis: int) -> bool:
    """Whether every column lies along the axis or across it, not both, as a reduction needs."""
    mask = _axis_mask(layout, axis)
    return all(column & mask in (0, column) for column in layout.columns)


@lru_cache(maxsize=1024)
def reduction_plan(layout: LinearLayout, axis: int) -> ReductionPlan:
    """The plan for a layout that is_separable along the axis.

    Lanes and warps that hold copies along the axis are not combined: only bits that raise the
    rank along the axis take part.
    """
    assert is_separable(layout, axis), f"{layout} mixes axis {axis} with others"
    mask = _axis_mask(layout, axis)
    echelon = gf2.Echelon()
    for column in layout[REGISTER]:
        echelon.add(column & mask)
    lane_masks = tuple(
        1 << bit for bit, column in enumerate(layout[LANE]) if echelon.add(column & mask)[0]
    )
    combined = tuple(column & mask for column in layout[REGISTER] + layout[LANE])
    warp = tuple(column & mask for column in layout[WARP])
    distinct = gf2.extension(combined, warp)
    inside = len(combined)
    on_axis = tuple(gf2.solve(combined + distinct, column) >> inside for column in warp)
    partial, gathered = _partial_layouts(layout, axis, on_axis, len(distinct))
    return ReductionPlan(
        _groups(layout, mask),
        lane_masks,
        1 << len(distinct),
        partial,
        gathered,
        drop_axis(layout, axis),
    )


def _axis_mask(layout: LinearLayout, axis: int) -> int:
    first_bit = 0
    for name, bits in layout.outs:
        if name == f"dim{axis}":
            return ((1 << bits) - 1) << first_bit
        first_bit += bits
    raise AssertionError(f"{layout} has no axis {axis}")


def _groups(layout: LinearLayout, mask: int) -> tuple[tuple[int, ...], ...]:
    """Registers grouped by index across the axis, each group in order along it."""
    along = across = 0
    for bit, column in enumerate(layout[REGISTER]):
        if column & mask:
            along |= 1 << bit
        else:
            across |= 1 << bit
    position = gf2.images(layout[REGISTER])
    groups: dict[int, list[int]] = {}
    for register in range(len(position)):
        groups.setdefault(register & across, []).append(register)
    return tuple(
        tuple(sorted(group, key=lambda register: position[register] & mask))
        for group in groups.values()
    )


def _partial_layouts(
    layout: LinearLayout, axis: int, on_axis: gf2.Matrix, warp_bits: int
) -> tuple[LinearLayout, LinearLayout]:
    """The layouts of the partial results: in their warps, and gathered in registers.

    on_axis: per warp bit the index of the partial result that it selects.
    """
    shape = shape_of(layout)
    kept = drop_axis(layout, axis)
    extended = (*shape[:axis], 1 << warp_bits, *shape[axis + 1 :])
    step_bits = sum(log2(extent) for extent in shape[axis + 1 :])
    low = (1 << step_bits) - 1

    def widen(column: int) -> int:
        return column & low | (column >> step_bits) << step_bits + warp_bits

    register, lane, warp = (tuple(map(widen, kept[dim])) for dim in (REGISTER, LANE, WARP))
    placed = tuple(w | index << step_bits for w, index in zip(warp, on_axis))
    along = tuple(1 << step_bits + bit for bit in range(warp_bits))
    outs = dims_of(extended)

    def of(register: gf2.Matrix, lane: gf2.Matrix, warp: gf2.Matrix) -> LinearLayout:
        ins = ((REGISTER, len(register)), (LANE, len(lane)), (WARP, len(warp)))
        return LinearLayout(ins, outs, register + lane + warp)

    held = warp_bits if warp_bits < MANY_WARP_BITS or lane.count(0) < warp_bits else VECTOR_BITS
    others = iter(along[held:])
    spread = tuple(column or next(others, 0) for column in lane)
    return of(register, lane, placed), of(along[:held] + register, spread, warp)

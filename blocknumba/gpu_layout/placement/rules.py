"""The placement of every op: the layouts that it requires of its operands, and its result's."""

from __future__ import annotations

from blocknumba.gpu_layout.async_copies.ops import (
    async_copy, pin, shared_slice, shared_tile, stage, wgmma, wgmma_wait,
)
from blocknumba.gpu_layout.dots.ops import fma_dot, mma, plan_of
from blocknumba.gpu_layout.dots.wgmma import accumulator_layout, operand_layout
from blocknumba.gpu_layout.layouts import gf2, registers
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import move_cost
from blocknumba.gpu_layout.layouts.registers import (
    LANE, REGISTER, WARP, drop_axis, in_rows, register_count, shape_of, warp_count,
)
from blocknumba.gpu_layout.layouts.shared import contiguous_run, in_registers
from blocknumba.gpu_layout.ops import cta_rank
from blocknumba.gpu_layout.placement.gathers import gather_plan
from blocknumba.gpu_layout.placement.coalescing import VECTOR_BYTES
from blocknumba.gpu_layout.placement.reductions import is_separable, reduction_plan
from blocknumba.gpu_layout.placement.rule import (
    PLACEMENTS, Layouts, Placement, in_rows_of_operand, no_preference,
)
from blocknumba.gpu_layout.placement.scans import (
    SHUFFLE_SLOTS, is_ordered, scan_plan, scan_slots,
)
from blocknumba.gpu_layout.placement.sorts import (
    can_sort, preferred_for_sorting, sort_plan, sorting_layout,
)
from blocknumba.tile_ir.analysis.live_tiles import WORD_BITS
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ops.cast import bitcast, cast
from blocknumba.tile_ir.ops.create import arange, constant, num_programs, program_id, undefined
from blocknumba.tile_ir.ops.debug import assert_, assume, check_index, print_
from blocknumba.tile_ir.ops.gather import gather
from blocknumba.tile_ir.ops.memory import atomic_cas, atomic_rmw, load, store
from blocknumba.tile_ir.ops.order import histogram, sort
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce
from blocknumba.tile_ir.ops.scan import reduce_with, scan
from blocknumba.tile_ir.ops.shape import (
    broadcast, extract, flip, join, reshape, splat, split, transpose,
)

MAX_HELD = 64  # elements of a tile in one thread, for parts of it: more would leave no registers

# Issue slots of one warp per register, where it is not 1.
_SLOTS = {
    8: "exp exp2 log log2 rsqrt",
    16: "div sqrt log10 sin cos mod floordiv truncdiv truncmod popc clz ffs umulhi",
    40: "expm1 log1p cbrt tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot erf erfc",
    80: "power gamma lgamma nextafter map",  # of a map nothing is known but that it has a reason
}

for _slots, _names in _SLOTS.items():
    for _name in _names.split():
        PLACEMENTS.enter(OPS[_name], Placement(slots=_slots))


PLACEMENTS.enter(cast, Placement(slots=2))
PLACEMENTS.enter(bitcast, Placement(slots=0))


for _opdef in (arange, cta_rank, constant, num_programs, program_id, undefined):
    PLACEMENTS.enter(_opdef, Placement(preferred=no_preference, slots=0))


for _opdef in (load, store):
    PLACEMENTS.enter(_opdef, Placement())


for _opdef in (atomic_cas, atomic_rmw):
    PLACEMENTS.enter(_opdef, Placement())


def _print_operands(op: Op, layout: LinearLayout) -> Layouts:
    """The op's layout for tiles of its shape, C order for others, None for scalars."""
    layouts: list[LinearLayout | None] = []
    for value in op.operands:
        shape = value.type.shape
        if not shape:
            layouts.append(None)
        elif shape == shape_of(layout):
            layouts.append(layout)
        else:
            layouts.append(in_rows(shape, warp_count(layout)))
    return tuple(layouts)


for _opdef in (assert_, assume, check_index):
    PLACEMENTS.enter(_opdef, Placement())
PLACEMENTS.enter(print_, Placement(operands=_print_operands))


def _planned_layout(op: Op, _: Layouts | int) -> LinearLayout:
    return plan_of(op).layout


def _accepts_planned(op: Op, layout: LinearLayout) -> bool:
    return layout == plan_of(op).layout


def _mma_operands(op: Op, layout: LinearLayout) -> Layouts:
    """Fragments for operands in registers; warps along the other axis hold copies."""
    plan, (a, b) = plan_of(op), (op.a, op.b)
    return (
        plan.a.layout if in_registers(a.type) else None,
        plan.b.layout if in_registers(b.type) else None,
        layout,
    )


def _fma_operands(_op: Op, layout: LinearLayout) -> Layouts:
    return None, None, layout


for _opdef, _dot_operands in ((mma, _mma_operands), (fma_dot, _fma_operands)):
    PLACEMENTS.enter(
        _opdef,
        Placement(operands=_dot_operands, preferred=_planned_layout, accepts=_accepts_planned,
                  fallback=_planned_layout),
    )


def _reduce_result(op: Op, layout: LinearLayout) -> LinearLayout | None:
    """The op's layout without the axis; None for a scalar result."""
    if op.results[0].type.is_scalar:
        return None
    return drop_axis(layout, op.attrs["axis"])


def _reduce_accepts(op: Op, layout: LinearLayout) -> bool:
    return is_separable(layout, op.attrs["axis"])


def _reduce_slots(op: Op, layout: LinearLayout) -> int:
    """Two for each element, those of shuffles, and what it takes to gather from other warps."""
    plan = reduction_plan(layout, op.attrs["axis"])
    slots = 2 * register_count(layout)
    slots += len(plan.groups) * len(plan.lane_masks) * (2 + SHUFFLE_SLOTS)
    if plan.warps > 1:
        slots += move_cost(plan.partial, plan.gathered, op.x.type.dtype.bits)
    return slots


for _opdef in (reduce, arg_reduce):
    PLACEMENTS.enter(
        _opdef,
        Placement(
            result=_reduce_result,
            accepts=_reduce_accepts,
            fallback=in_rows_of_operand,
            follows_result=False,
            slots_in=_reduce_slots,
        ),
    )


def _is_ordered(op: Op, layout: LinearLayout) -> bool:
    return is_ordered(layout, op.attrs["axis"])


def _in_rows_of_tiles(op: Op, num_warps: int) -> LinearLayout:
    return in_rows(op.tiles[0].type.shape, num_warps)


def _scan_slots(op: Op, layout: LinearLayout) -> int:
    words = sum(max(1, tile.type.dtype.bits // WORD_BITS) for tile in op.tiles)
    steps, _ = op.attrs["combination"]
    return scan_slots(scan_plan(layout, op.attrs["axis"]), register_count(layout), words,
                      max(words, len(steps)), op.opdef is scan)


PLACEMENTS.enter(scan, Placement(accepts=_is_ordered, fallback=_in_rows_of_tiles,
                                 slots_in=_scan_slots))
PLACEMENTS.enter(
    reduce_with,
    Placement(
        result=_reduce_result,
        accepts=_is_ordered,
        fallback=_in_rows_of_tiles,
        follows_result=False,
        slots_in=_scan_slots,
    ),
)


def _can_sort(op: Op, layout: LinearLayout) -> bool:
    return can_sort(layout, op.attrs["axis"])


def _sorted_result(op: Op, layout: LinearLayout) -> LinearLayout:
    return sort_plan(layout, op.attrs["axis"], op.attrs["kept"])[-1].layout


def _sort_preferred(op: Op, layouts: Layouts) -> LinearLayout | None:
    layout = next((layout for layout in layouts if layout is not None), None)
    return layout and preferred_for_sorting(layout, op.attrs["axis"])


def _sort_fallback(op: Op, num_warps: int) -> LinearLayout:
    return sorting_layout(op.tiles[0].type.shape, op.attrs["axis"], num_warps)


PLACEMENTS.enter(
    sort,
    Placement(
        result=_sorted_result,
        preferred=_sort_preferred,
        accepts=_can_sort,
        fallback=_sort_fallback,
        follows_result=False,
        slots=100,
    ),
)


def _bins_in_rows(op: Op, layout: LinearLayout) -> LinearLayout:
    return in_rows(op.result.type.shape, warp_count(layout))


PLACEMENTS.enter(
    histogram,
    Placement(result=_bins_in_rows, fallback=in_rows_of_operand, follows_result=False, slots=8),
)


def _in_shared(_op: Op, _layout: LinearLayout) -> None:
    """None: the result is in shared memory, and has no layout in registers."""
    return None


def _wgmma_preferred(op: Op, _layouts: Layouts) -> LinearLayout:
    return accumulator_layout(op.result.type.shape, op.attrs["num_warps"])


def _wgmma_fallback(op: Op, num_warps: int) -> LinearLayout:
    return accumulator_layout(op.result.type.shape, num_warps)


def _wgmma_accepts(op: Op, layout: LinearLayout) -> bool:
    return layout == _wgmma_fallback(op, warp_count(layout))


def _wgmma_operands(op: Op, layout: LinearLayout) -> Layouts:
    """Fragments for operand a if it is in registers; the op's layout for the accumulator."""
    a = op.a.type
    first = operand_layout(a.shape, a.dtype, warp_count(layout)) if in_registers(a) else None
    return (first, None, layout)


def _in_vectors_of_buffer(op: Op, num_warps: int) -> LinearLayout:
    """Rows of the buffer, in vectors: of a tile that prefers nothing it is written the fastest."""
    tile, shared = op.x.type, op.attrs["layout"]
    runs = [contiguous_run(shared, axis) for axis in range(len(tile.shape))]
    order = tuple(sorted(reversed(range(len(runs))), key=runs.__getitem__, reverse=True))
    share = max(1, tile.size // (num_warps * registers.WARP_SIZE))
    vector = min(runs[order[0]], max(1, 8 * VECTOR_BYTES // tile.dtype.bits), share)
    return registers.blocked(tile.shape, order, vector, num_warps)


PLACEMENTS.enter(
    stage,
    Placement(result=_in_shared, follows_result=False, fallback=_in_vectors_of_buffer),
)
for _opdef in (shared_tile, shared_slice):
    PLACEMENTS.enter(_opdef, Placement(preferred=no_preference))
for _opdef in (async_copy, pin):
    PLACEMENTS.enter(_opdef, Placement())
PLACEMENTS.enter(
    wgmma,
    Placement(
        operands=_wgmma_operands,
        preferred=_wgmma_preferred,
        accepts=_wgmma_accepts,
        fallback=_wgmma_fallback,
        slots=0,
    ),
)
# registers of a dot in flight cannot be moved: it is waited for in the layout it was started in
PLACEMENTS.enter(wgmma_wait, Placement(accepts=_wgmma_accepts, fallback=_wgmma_fallback, slots=0))


def _no_tiles(op: Op, _layout: LinearLayout) -> Layouts:
    return (None,) * len(op.operands)


def _broadcast_operands(op: Op, layout: LinearLayout) -> Layouts:
    old, new = op.x.type.shape, op.result.type.shape
    axes = tuple(axis for axis, extent in enumerate(old) if extent != new[axis])
    return (registers.collapse(layout, axes),)


def _reshape_operands(op: Op, layout: LinearLayout) -> Layouts:
    shape = op.x.type.shape
    return (registers.reshape(layout, shape) if shape else None,)


def _reshape_preferred(op: Op, layouts: Layouts) -> LinearLayout | None:
    (layout,) = layouts
    shape = op.result.type.shape
    return registers.reshape(layout, shape) if layout is not None and shape else None


def _reshape_result(op: Op, layout: LinearLayout) -> LinearLayout | None:
    """The op's layout; None for a scalar result."""
    return layout if op.result.type.shape else None


def _transpose_operands(op: Op, layout: LinearLayout) -> Layouts:
    return (registers.transpose(layout, registers.inverse_axes(op.attrs["axes"])),)


def _transpose_preferred(op: Op, layouts: Layouts) -> LinearLayout | None:
    (layout,) = layouts
    return registers.transpose(layout, op.attrs["axes"]) if layout is not None else None


def _join_operands(op: Op, layout: LinearLayout) -> Layouts:
    half = registers.split(layout)
    return (half, half)


def _join_preferred(_op: Op, layouts: Layouts) -> LinearLayout | None:
    layout = layouts[0] if layouts[0] is not None else layouts[1]
    return registers.join(layout) if layout is not None else None


def _join_accepts(_op: Op, layout: LinearLayout) -> bool:
    return registers.can_split(layout)


def _join_fallback(op: Op, num_warps: int) -> LinearLayout:
    return registers.join(registers.in_rows(op.x.type.shape, num_warps))


def _split_operands(_op: Op, layout: LinearLayout) -> Layouts:
    return (registers.join(layout),)


def _split_preferred(_op: Op, layouts: Layouts) -> LinearLayout | None:
    (layout,) = layouts
    return registers.split(layout) if layout is not None and registers.can_split(layout) else None


def _extract_operands(op: Op, layout: LinearLayout) -> Layouts:
    """The subtile's layout; elements outside it are in further registers of the same thread."""
    old, subtile = op.x.type.shape, op.result.type.shape
    outs = registers.dims_of(old)
    wide = layout.with_outs(outs)
    first_bit, added = 0, ()
    for axis in reversed(range(len(old))):
        bits, inner = registers.log2(old[axis]), registers.log2(subtile[axis])
        added += tuple(1 << first_bit + bit for bit in range(inner, bits))
        first_bit += bits
    return (wide.with_columns(REGISTER, wide[REGISTER] + added),)


def _extract_preferred(op: Op, layouts: Layouts) -> LinearLayout | None:
    """The layout in which the subtile is held already, if every thread holds elements of it."""
    (layout,) = layouts
    return registers.subtile(layout, op.result.type.shape) if layout is not None else None


def _extract_accepts(op: Op, layout: LinearLayout) -> bool:
    """Whether threads hold no more of x than MAX_HELD elements, or than x spread over all of them.

    Of a small part that every thread holds, each would hold all of x.
    """
    (wide,) = _extract_operands(op, layout)
    threads = 1 << len(layout[LANE]) + len(layout[WARP])
    return 1 << len(wide[REGISTER]) <= max(MAX_HELD, op.x.type.size // threads)


def _gather_operands(op: Op, layout: LinearLayout) -> Layouts:
    """By shuffles, every warp needs what its threads may ask for; else x may be in any layout."""
    x, axis = op.x.type, op.attrs["axis"]
    plan = gather_plan(layout, x.shape, axis, x.dtype.bits)
    if plan is not None:
        return plan.source, layout
    same = x.shape == op.indices.type.shape
    return layout if same else in_rows(x.shape, warp_count(layout)), layout


def _gather_preferred(_op: Op, layouts: Layouts) -> LinearLayout | None:
    return layouts[1]


def flip_source(layout: LinearLayout, axis: int) -> int | None:
    """The packed (register, lane) whose xor flips an axis: where `flip` finds its elements.

    None if the axis lies across warps.
    """
    mask, first_bit = 0, 0
    for name, bits in layout.outs:
        if name == f"dim{axis}":
            mask = ((1 << bits) - 1) << first_bit
        first_bit += bits
    if any(column & mask for column in layout[WARP]):
        return None
    return gf2.solve(layout[REGISTER] + layout[LANE], mask)


def _flip_fallback(op: Op, num_warps: int) -> LinearLayout:
    return registers.within_warps(op.result.type.shape, op.attrs["axis"], num_warps)


def _flip_accepts(op: Op, layout: LinearLayout) -> bool:
    return flip_source(layout, op.attrs["axis"]) is not None


PLACEMENTS.enter(splat, Placement(operands=_no_tiles, preferred=no_preference, slots=0))
PLACEMENTS.enter(
    broadcast, Placement(operands=_broadcast_operands, preferred=no_preference, slots=0)
)
PLACEMENTS.enter(
    reshape,
    Placement(
        operands=_reshape_operands, result=_reshape_result, preferred=_reshape_preferred, slots=0
    ),
)
PLACEMENTS.enter(
    transpose, Placement(operands=_transpose_operands, preferred=_transpose_preferred, slots=0)
)
PLACEMENTS.enter(
    join,
    Placement(
        operands=_join_operands,
        preferred=_join_preferred,
        accepts=_join_accepts,
        fallback=_join_fallback,
        slots=0,
    ),
)
PLACEMENTS.enter(split, Placement(operands=_split_operands, preferred=_split_preferred, slots=0))
PLACEMENTS.enter(
    extract,
    Placement(
        operands=_extract_operands,
        preferred=_extract_preferred,
        accepts=_extract_accepts,
        slots=0,
    ),
)
PLACEMENTS.enter(flip, Placement(accepts=_flip_accepts, fallback=_flip_fallback, slots=2))
PLACEMENTS.enter(
    gather, Placement(operands=_gather_operands, preferred=_gather_preferred, slots=4)
)

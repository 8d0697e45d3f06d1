"""The pass that splits reductions, scans and sorts across warps.

    %s = reduce %x      ->    %p = partial_reduce %x        within threads and warps
    4 warps hold the axis     %g = convert_layout %p        all 4 partial results to every thread
                              %s = reduce %g                within threads

    %s = scan %x        ->    %p, %t = partial_scan %x      within warps; %t: their totals
                              %g = convert_layout %t        to each warp
                              %e = exclusive_scan %g        what comes before each total
                              %b = convert_layout %e        back to the warps
                              %s = finish_scan %p, %b       within threads

    %s = sort %x        ->    %a = sort_steps %x            phase after phase, each within warps
                              %b = convert_layout %a
                              %s = sort_steps %b

    %h = histogram %x   ->    %b = shared_allocate          counters, which are set to 0
                              shared_count %b, %x           atomically
                              %h = shared_read %b
"""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import WARP, drop_axis, within_warps
from blocknumba.gpu_layout.layouts.shared import in_order
from blocknumba.gpu_layout.ops import (
    convert_layout, exclusive_scan, finish_arg_reduce, finish_scan, partial_arg_reduce,
    partial_reduce, partial_reduce_with, partial_scan, shared_allocate, shared_count, shared_read,
    shared_write, sort_steps,
)
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.reductions import ReductionPlan, reduction_plan
from blocknumba.gpu_layout.placement.scans import ScanPlan, scan_plan
from blocknumba.gpu_layout.placement.sorts import sort_plan
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ops.cast import cast
from blocknumba.tile_ir.ops.create import constant
from blocknumba.tile_ir.ops.order import histogram, sort
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce
from blocknumba.tile_ir.ops.scan import reduce_with, scan
from blocknumba.tile_ir.ops.shape import splat
from blocknumba.tile_ir.passes.contract import declared

_LOWERED = (reduce, arg_reduce, scan, reduce_with, sort, histogram)
ACCUMULATED = ("sum", "prod")  # kinds that would lose bits in 16-bit floats


@declared(reads=("layouts",), writes=("ops", "layouts"))
def lower_reductions(fn: Function, _options: LayoutOptions) -> Function:
    """Reduce within threads and warps, gather the partial results, reduce them within threads.

    So every reduction that is left stays within a warp, and only convert_layout crosses warps.
    Sums and products of 16-bit floats are accumulated in float32.
    """
    if not any(op.opdef in _LOWERED for op in walk(fn.body)):
        return fn
    return rebuild(fn, _rewrite, folding=False)


def _rewrite(rebuilder: Rebuilder, op: Op) -> tuple[Value, ...] | None:
    if op.opdef is reduce:
        return (_reduce(rebuilder.builder, op, rebuilder[op.x]),)
    if op.opdef is arg_reduce:
        return (_arg_reduce(rebuilder.builder, op, rebuilder[op.x]),)
    if op.opdef is sort:
        return _sort(rebuilder.builder, op, [rebuilder[tile] for tile in op.tiles])
    if op.opdef is histogram:
        operands = [rebuilder[value] for value in op.operands]
        return (_histogram(rebuilder.builder, op, *operands),)
    if op.opdef not in (scan, reduce_with):
        return None
    tiles = [rebuilder[tile] for tile in op.tiles]
    plan = scan_plan(tiles[0].type.layout, op.attrs["axis"])
    if plan.chunks == 1:
        return None
    lower = _scan if op.opdef is scan else _reduce_with
    return lower(rebuilder.builder, op, tiles, plan)


def _reduce(builder: Builder, op: Op, x: Value) -> Value:
    narrow = x.type.dtype
    widened = narrow.is_float and narrow.bits == 16 and op.attrs["kind"] in ACCUMULATED
    if widened:
        x = builder.emit(cast, x, dtype="float32")
    plan = reduction_plan(x.type.layout, op.attrs["axis"])
    if plan.warps > 1:
        partial = builder.emit(partial_reduce, x, **op.attrs)
        x = builder.emit(convert_layout, partial, layout=plan.gathered)
    made = _result_type(op, plan, x)
    result = builder.emit(reduce, x, types=(made,), hint=op.result.hint, **op.attrs)
    return builder.emit(cast, result, dtype=narrow.name) if widened else result


def _arg_reduce(builder: Builder, op: Op, x: Value) -> Value:
    plan = reduction_plan(x.type.layout, op.attrs["axis"])
    hint = op.result.hint
    if plan.warps == 1:
        return builder.emit(arg_reduce, x, types=(op.result.type,), hint=hint, **op.attrs)
    partial = builder.emit(partial_arg_reduce, x, **op.attrs)
    gathered = [builder.emit(convert_layout, value, layout=plan.gathered) for value in partial]
    return builder.emit(finish_arg_reduce, *gathered, hint=hint, **op.attrs)


def _scan(builder: Builder, op: Op, tiles: list[Value], plan: ScanPlan) -> tuple[Value, ...]:
    made = builder.emit(partial_scan, *tiles, **op.attrs)
    prefixes, totals = made[:len(tiles)], made[len(tiles):]
    before = builder.emit(exclusive_scan, *_to_each_warp(builder, op, totals), **op.attrs)
    back = [builder.emit(convert_layout, value, layout=plan.totals) for value in _values(before)]
    return _values(builder.emit(finish_scan, *prefixes, *back, hint=op.results[0].hint,
                                **op.attrs))


def _reduce_with(builder: Builder, op: Op, tiles: list[Value], _: ScanPlan) -> tuple[Value, ...]:
    totals = _values(builder.emit(partial_reduce_with, *tiles, **op.attrs))
    gathered = _to_each_warp(builder, op, totals)
    within = gathered[0].type.layout
    wanted = tuple(result.type for result in op.results)
    kept = [tile.layout and drop_axis(within, op.attrs["axis"]) for tile in wanted]
    types = tuple(TileType(tile.dtype, tile.shape, layout) for tile, layout in zip(wanted, kept))
    made = _values(builder.emit(reduce_with, *gathered, types=types, **op.attrs))
    return tuple(value if tile.is_scalar
                 else builder.emit(convert_layout, value, layout=tile.layout)
                 for value, tile in zip(made, wanted))


def _sort(builder: Builder, op: Op, tiles: list[Value]) -> tuple[Value, ...]:
    axis, kept = op.attrs["axis"], op.attrs["kept"]
    for phase in sort_plan(tiles[0].type.layout, axis, kept):
        if phase.is_moved:
            tiles = [builder.emit(convert_layout, tile, layout=phase.wires) for tile in tiles]
        tiles = _values(builder.emit(sort_steps, *tiles, wires=phase.wires, steps=phase.steps,
                                     layout=phase.layout))
    return tuple(tiles)


def _histogram(builder: Builder, op: Op, x: Value, *mask: Value) -> Value:
    made = op.result.type
    zero = builder.emit(constant, value=0, dtype=made.dtype.name)
    zeros = builder.emit(splat, zero, shape=made.shape, types=(made,))
    counters = builder.emit(shared_allocate, dtype=made.dtype.name, shape=made.shape,
                            layout=in_order(made.layout))
    builder.emit(shared_write, counters, zeros)
    builder.emit(shared_count, counters, x, *mask)
    return builder.emit(shared_read, counters, layout=made.layout, hint=op.result.hint)


def _to_each_warp(builder: Builder, op: Op, totals: Sequence[Value]) -> list[Value]:
    """Totals in a layout in which a warp holds all of the axis."""
    first = totals[0].type
    layout = within_warps(first.shape, op.attrs["axis"], 1 << len(first.layout[WARP]))
    return [builder.emit(convert_layout, total, layout=layout) for total in totals]


def _values(made: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    return made if isinstance(made, tuple) else (made,)


def _result_type(op: Op, plan: ReductionPlan, x: Value) -> TileType:
    shape = op.result.type.shape
    layout: LinearLayout | None = plan.result if shape else None
    return TileType(x.type.dtype, shape, layout)

"""The pass that splits reductions across warps.

    %s = reduce %x      ->    %p = partial_reduce %x        within threads and warps
    4 warps hold the axis     %g = convert_layout %p        all 4 partial results to every thread
                              %s = reduce %g                within threads
"""

from __future__ import annotations

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.ops import (
    convert_layout, finish_arg_reduce, partial_arg_reduce, partial_reduce,
)
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.placement.reductions import ReductionPlan, reduction_plan
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.rebuild import Rebuilder, rebuild
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.ops.cast import cast
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce
from blocknumba.tile_ir.passes.contract import declared

ACCUMULATED = ("sum", "prod")  # kinds that would lose bits in 16-bit floats


@declared(reads=("layouts",), writes=("ops", "layouts"))
def lower_reductions(fn: Function, _options: LayoutOptions) -> Function:
    """Reduce within threads and warps, gather the partial results, reduce them within threads.

    So every reduction that is left stays within a warp, and only convert_layout crosses warps.
    Sums and products of 16-bit floats are accumulated in float32.
    """
    if not any(op.opdef in (reduce, arg_reduce) for op in walk(fn.body)):
        return fn
    return rebuild(fn, _rewrite, folding=False)


def _rewrite(rebuilder: Rebuilder, op: Op) -> tuple[Value] | None:
    if op.opdef is reduce:
        return (_reduce(rebuilder.builder, op, rebuilder[op.x]),)
    if op.opdef is arg_reduce:
        return (_arg_reduce(rebuilder.builder, op, rebuilder[op.x]),)
    return None


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


def _result_type(op: Op, plan: ReductionPlan, x: Value) -> TileType:
    shape = op.result.type.shape
    layout: LinearLayout | None = plan.result if shape else None
    return TileType(x.type.dtype, shape, layout)

"""Placement of reductions: where the operand is; the result keeps what lies across the axis."""

from __future__ import annotations

from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.placement import Placement, in_rows_of_operand, place
from blocknumba.gpu_layout.reduction import is_separable
from blocknumba.gpu_layout.registers import drop_axis
from blocknumba.tile_ir.ir import Op
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce


def _result(op: Op, layout: LinearLayout) -> LinearLayout | None:
    """Scalars have no layout."""
    if op.result.type.is_scalar:
        return None
    return drop_axis(layout, op.attrs["axis"])


def _accepts(op: Op, layout: LinearLayout) -> bool:
    return is_separable(layout, op.attrs["axis"])


for _opdef in (reduce, arg_reduce):
    place(
        _opdef,
        Placement(
            result=_result,
            accepts=_accepts,
            fallback=in_rows_of_operand,
            inverts=False,
            slots=2,
        ),
    )

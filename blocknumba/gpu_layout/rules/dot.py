"""Placement of products: the accumulator in fragments of the instruction, or in blocks of threads.

A dot of the tile IR has no placement: map_dots turns it into one of these.
"""

from __future__ import annotations

from blocknumba.gpu_layout.dot_ops import fma_dot, mma, plan_of
from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.placement import Layouts, Placement, place
from blocknumba.gpu_layout.shared import in_registers
from blocknumba.tile_ir.ir import Op


def _planned(op: Op, _: Layouts | int) -> LinearLayout:
    return plan_of(op).layout


def _accepts(op: Op, layout: LinearLayout) -> bool:
    return layout == plan_of(op).layout


def _matrix_operands(op: Op, layout: LinearLayout) -> Layouts:
    """Operands in registers are in fragments; warps along the other axis hold copies."""
    plan, (a, b, _) = plan_of(op), op.operands
    return (
        plan.a.layout if in_registers(a.type) else None,
        plan.b.layout if in_registers(b.type) else None,
        layout,
    )


def _arithmetic_operands(_op: Op, layout: LinearLayout) -> Layouts:
    return None, None, layout


for _opdef, _operands in ((mma, _matrix_operands), (fma_dot, _arithmetic_operands)):
    place(
        _opdef,
        Placement(operands=_operands, natural=_planned, accepts=_accepts, fallback=_planned),
    )

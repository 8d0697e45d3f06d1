"""Placement of ops for the programmer: where their operands are."""

from __future__ import annotations

from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.placement import Layouts, Placement, place
from blocknumba.gpu_layout.registers import in_rows, shape_of, warp_count
from blocknumba.tile_ir.ir import Op
from blocknumba.tile_ir.ops.debug import assert_, assume, check_index, print_


def _print_operands(op: Op, layout: LinearLayout) -> Layouts:
    """Tiles of the layout's shape in it, others in rows; scalars have none."""
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
    place(_opdef, Placement())
place(print_, Placement(operands=_print_operands))

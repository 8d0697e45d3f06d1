"""Placement of copies and products that go on while a program does."""

from __future__ import annotations

from blocknumba.gpu_layout.async_ops import (
    async_copy,
    pin,
    shared_part,
    shared_tile,
    stage,
    wgmma,
    wgmma_wait,
)
from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.placement import Layouts, Placement, nowhere, place
from blocknumba.gpu_layout.registers import warp_count
from blocknumba.gpu_layout.shared import in_registers
from blocknumba.gpu_layout.wgmma import accumulator_layout, operand_layout
from blocknumba.tile_ir.ir import Op


def _in_shared(_op: Op, _layout: LinearLayout) -> None:
    """The result is in shared memory: it has no layout in registers."""
    return None


def _products(op: Op, _homes: Layouts) -> LinearLayout:
    return accumulator_layout(op.result.type.shape, op.attrs["num_warps"])


def _of_warps(op: Op, num_warps: int) -> LinearLayout:
    return accumulator_layout(op.result.type.shape, num_warps)


def _is_accumulator(op: Op, layout: LinearLayout) -> bool:
    return layout == _of_warps(op, warp_count(layout))


def _product_operands(op: Op, layout: LinearLayout) -> Layouts:
    """The first operand, where it is in registers, and the accumulator."""
    a = op.operands[0].type
    first = operand_layout(a.shape, a.dtype, warp_count(layout)) if in_registers(a) else None
    return (first, None, layout)


place(stage, Placement(result=_in_shared, inverts=False))
for _opdef in (shared_tile, shared_part):
    place(_opdef, Placement(natural=nowhere))
for _opdef in (async_copy, pin):
    place(_opdef, Placement())
place(
    wgmma,
    Placement(
        operands=_product_operands,
        natural=_products,
        accepts=_is_accumulator,
        fallback=_of_warps,
        slots=0,
    ),
)
# what is under way cannot be moved: it is waited for where it is
place(wgmma_wait, Placement(accepts=_is_accumulator, fallback=_of_warps, slots=0))

"""Plans of gathers within a tile: by shuffles where a warp has all of the axis, or through memory.

A gather of 64 elements in 8 columns, indices in 2 registers of 32 lanes, the axis in lane bits 0-2:

    source lane   = lane, with the index in bits 0-2     one shuffle for each register
    x with 16 elements along the axis: their highest bit is a register, two shuffles and a select
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import SHARED_LATENCY, SHUFFLE_LATENCY
from blocknumba.gpu_layout.layouts.registers import (
    LANE, REGISTER, WARP, dims_of, from_columns, in_rows, log2, register_count,
    shape_of, warp_count,
)


@dataclass(frozen=True, slots=True)
class LaneGather:
    """A gather by shuffles.

    source: the layout of x, in which each warp has all elements that its threads may ask for.
    lane_bits: bit i of an index is that bit of the source lane; higher bits select a register.
    rows: for each register of the indices, the first register of x in its row.
    step: registers of x from one of a row to the next.
    candidates: registers of x in a row.
    """

    source: LinearLayout
    lane_bits: tuple[int, ...]
    rows: tuple[int, ...]
    step: int
    candidates: int

    def cost(self, element_bits: int) -> int:
        """Issue slots: shuffles of every candidate, and selects between them."""
        registers = len(self.rows) * self.candidates * max(1, element_bits // 32)
        shuffles = registers if self.lane_bits else 0
        return shuffles + registers + (SHUFFLE_LATENCY if shuffles else 0)


def row_layout(layout: LinearLayout, shape: tuple[int, ...], axis: int) -> LinearLayout:
    """The first element of the row of each element: a map to packed indices of a tile of a shape.

    layout: of the indices, whose shape is the same but for the axis.
    """
    parts = [_moved(column, layout, shape, axis) for column in layout.columns]
    return LinearLayout(layout.ins, dims_of(shape), tuple(row for row, _ in parts))


@lru_cache(maxsize=1024)
def lane_gather(layout: LinearLayout, shape: tuple[int, ...], axis: int) -> LaneGather | None:
    """The gather by shuffles from a tile of a shape; None if some bit is both of axis and row.

    layout: of the indices.
    """
    parts = [_moved(column, layout, shape, axis) for column in layout.columns]
    if any(row and along for row, along in parts):
        return None
    rows = LinearLayout(layout.ins, dims_of(shape), tuple(row for row, _ in parts))
    own = [bit for bit, column in enumerate(rows[REGISTER]) if column]
    free = [bit for bit, column in enumerate(rows[LANE]) if not column]
    step = 1
    for extent in shape[axis + 1:]:
        step *= extent
    along = [step << bit for bit in range(log2(shape[axis]))]
    in_lanes = min(len(free), len(along))
    lanes = list(rows[LANE])
    for bit, column in zip(free, along):
        lanes[bit] = column
    registers = (*(rows[REGISTER][bit] for bit in own), *along[in_lanes:])
    source = from_columns(shape, registers, tuple(lanes), rows[WARP])
    if len(gf2.independent(registers)) < len(registers) or not source.is_surjective:
        return None
    first = tuple(sum((register >> bit & 1) << place for place, bit in enumerate(own))
                  for register in range(register_count(layout)))
    return LaneGather(source, tuple(free[:in_lanes]), first, 1 << len(own),
                      1 << len(along) - in_lanes)


def gather_plan(layout: LinearLayout, shape: tuple[int, ...], axis: int,
                element_bits: int) -> LaneGather | None:
    """The gather by shuffles if it costs less than one through shared memory.

    Of copies that warps would hold of x, as many as there are elements for all threads are free.
    """
    plan = lane_gather(layout, shape, axis)
    if plan is None:
        return None
    spread = register_count(in_rows(shape, warp_count(layout)))
    words = max(1, element_bits // 32)
    through_shared = SHARED_LATENCY + words * (spread + 2 * register_count(layout))
    copies = register_count(plan.source) - spread
    return plan if plan.cost(element_bits) + words * 2 * copies <= through_shared else None


def _moved(column: int, layout: LinearLayout, shape: tuple[int, ...],
           axis: int) -> tuple[int, int]:
    """The row of a packed index, as an index of a tile of a shape, and the index's part of axis."""
    row, along, own_bit, bit = 0, 0, 0, 0
    own = shape_of(layout)
    for a in reversed(range(len(shape))):
        bits = log2(own[a])
        part = column >> own_bit & (1 << bits) - 1
        if a == axis:
            along = part
        else:
            row |= part << bit
        own_bit, bit = own_bit + bits, bit + log2(shape[a])
    return row, along

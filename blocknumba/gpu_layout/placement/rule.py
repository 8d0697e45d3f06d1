"""Placement: how the layouts of an op's operands and results depend on each other.

Every op on tiles has one layout, the op's layout, from which those of its operands and results
follow.  For most ops it is the layout of the result; for reductions, that of the operand:

    op                    op's layout L    operands                 result
    add x, y              any              L, L                     L
    broadcast x           any              L, collapsed             L
    transpose x           any              L, transposed back       L
    reduce x over axis    separable        L                        L without the axis
    wgmma a, b, acc       the accumulator  (fragments), none, L     L

rules.py holds one table entry per op.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import in_rows, register_count
from blocknumba.gpu_layout.layouts.shared import in_registers
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, OpTable

Layouts = tuple[LinearLayout | None, ...]


def same_for_tiles(op: Op, layout: LinearLayout) -> Layouts:
    """Every tile in registers in the op's layout; scalars and buffers have none."""
    return tuple(layout if in_registers(value.type) else None for value in op.operands)


def same_layout(_op: Op, layout: LinearLayout) -> LinearLayout:
    """The op's layout."""
    return layout


def first_preferred(_op: Op, layouts: Layouts) -> LinearLayout | None:
    """The preferred layout of the first operand that has one."""
    return next((layout for layout in layouts if layout is not None), None)


def no_preference(_op: Op, _layouts: Layouts) -> None:
    """None: the op is done in the layouts in which its result is required."""
    return None


def in_rows_of_first_tile(op: Op, num_warps: int) -> LinearLayout:
    """C order, of the first tile among results and operands."""
    tiles = (value.type.shape for value in op.results + op.operands if value.type.shape)
    return in_rows(next(tiles), num_warps)


def in_rows_of_operand(op: Op, num_warps: int) -> LinearLayout:
    """C order, of the first operand."""
    return in_rows(op.x.type.shape, num_warps)


def always(_op: Op, _layout: LinearLayout) -> bool:
    """True: the op can be done in every layout."""
    return True


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement of one op.

    operands: (op, op's layout) -> the layout that it requires of each operand, None for scalars.
    result: (op, op's layout) -> the layout of every tile result.
    preferred: (op, preferred layouts of the operands) -> the op's layout that suits them, or None.
    accepts: (op, layout) -> whether the op can be done in it.
    fallback: (op, number of warps) -> a layout that it can be done in.
    follows_result: whether the op's layout is its result's, so that the op can be done in whatever
        layout the result is required in.
    slots: issue slots of one warp per register.   Source: throughput of instructions, CUDA
        Programming Guide, 'Arithmetic Instructions'.
    slots_in: (op, layout) -> issue slots of one warp, where they depend on more of the layout.
    """

    operands: Callable[[Op, LinearLayout], Layouts] = same_for_tiles
    result: Callable[[Op, LinearLayout], LinearLayout | None] = same_layout
    preferred: Callable[[Op, Layouts], LinearLayout | None] = first_preferred
    accepts: Callable[[Op, LinearLayout], bool] = always
    fallback: Callable[[Op, int], LinearLayout] = in_rows_of_first_tile
    follows_result: bool = True
    slots: int = 1
    slots_in: Callable[[Op, LinearLayout], int] | None = None

    def cost(self, op: Op, layout: LinearLayout) -> int:
        """Issue slots of one warp of an op in a layout."""
        if self.slots_in is not None:
            return self.slots_in(op, layout)
        return self.slots * register_count(layout)


PLACEMENTS = OpTable[Placement]("placement (rules.py)")
_ELEMENTWISE = Placement()


def placement_of(op: Op) -> Placement:
    """The placement of an op; elementwise ops need no entry."""
    placement = PLACEMENTS.get(op.name)
    if placement is None:
        assert op.opdef.has(ELEMENTWISE), f"{op.name} has no placement"
        return _ELEMENTWISE
    return placement

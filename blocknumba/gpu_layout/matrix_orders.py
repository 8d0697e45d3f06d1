"""In which order the rows, the columns and the depth of tiles go into matrix instructions.

A sum is the same in any order of the depth, if both operands have it; and any row of a tile may be
any row of an instruction, if the accumulator has it there too.  So the orders are free, and are
chosen such that operands are read from shared memory by wide accesses without bank conflicts.  The
natural ones suit ldmatrix, which reads 16-bit elements either way round, and others along the
depth only.  Where it cannot read an operand, neighbours in memory should be in one thread, hence in
several instructions, and the lanes of an instruction in different chunks of 16 bytes.

Elements of 64 bits go into instructions as they were read.  An instruction takes an operand from
consecutive registers, as a wide access gives them: what such an access reads should be neighbours
in the fragment too, or is moved once more.  Narrower elements are packed or rounded anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.mma import NATURAL, WORD_BITS, MatrixPlan, Order, Orders, Pieces
from blocknumba.gpu_layout.movement import move_cost
from blocknumba.gpu_layout.registers import REGISTER, log2
from blocknumba.gpu_layout.shared import (
    BANK_BYTES,
    VECTOR_BYTES,
    SharedAccess,
    access,
    matrix_access,
)

LANE_ROWS = 3  # bits of the index of a row that are lanes
LANE_DEPTHS = 2  # bits of the index along the depth that are lanes


@dataclass(frozen=True, slots=True)
class Source:
    """Where an operand comes from.

    layout: in shared memory or, of what was computed from a product, in registers.
    is_along_depth: whether neighbours in shared memory are neighbours along the depth.
    fixed: whether its rows keep their order.
    """

    layout: LinearLayout
    is_along_depth: bool = True
    fixed: bool = False


def best_orders(
    plan: Callable[[Orders], MatrixPlan], a: Source, b: Source, element_bits: int
) -> Orders:
    """The orders in which both operands are read in the least time; the natural ones of equals.

    plan: the plan of the product with given orders.
    """
    of_rows, of_columns, depth = plan(NATURAL).extents
    found: dict[Orders, float] = {}
    for depths in _depth_orders(log2(depth), element_bits):
        rows = min(
            _side_orders(of_rows, a, element_bits),
            key=lambda order: _cost(plan((order, (), depths)).a, a, element_bits),
        )
        columns = min(
            _side_orders(of_columns, b, element_bits),
            key=lambda order: _cost(plan(((), order, depths)).b, b, element_bits),
        )
        orders = rows, columns, depths
        found[orders] = operands_cost(plan(orders), a, b, element_bits)
    return min(found, key=found.get)


def operands_cost(plan: MatrixPlan, a: Source, b: Source, element_bits: int) -> float:
    """Issue slots of one warp to have both operands of a product in registers."""
    return _cost(plan.a, a, element_bits) + _cost(plan.b, b, element_bits)


def _depth_orders(bits: int, element_bits: int) -> tuple[Order, ...]:
    """Candidates for the depth: lanes along its lowest bits, or along those after the next one."""
    in_word = log2(max(1, 8 * BANK_BYTES // element_bits))
    if bits < in_word + LANE_DEPTHS + 1:
        return ((),)
    lowest = (*range(in_word), in_word + 1, in_word + 2)
    return (), _completed(lowest, bits)


def _side_orders(extent: int, source: Source, element_bits: int) -> tuple[Order, ...]:
    """Candidates for rows or columns.

    Along the depth, different rows should be in different chunks.  Across it, neighbours that
    one access reads go to several instructions, and lanes lie along the bits above.
    """
    bits = log2(extent)
    if source.fixed or bits < LANE_ROWS:
        return ((),)
    if source.is_along_depth:
        return (), _completed((1, 2, 0), bits), _completed((2, 0, 1), bits)
    most = min(log2(8 * VECTOR_BYTES // element_bits), bits - LANE_ROWS)
    turned = (_completed((i, i + 1, i + 2), bits) for i in range(1, most + 1))
    return (), *turned


def _completed(lowest: tuple[int, ...], bits: int) -> Order:
    """All bits, these first."""
    return (*lowest, *(bit for bit in range(bits) if bit not in lowest))


def _cost(pieces: Pieces, source: Source, element_bits: int) -> float:
    """Issue slots of one warp to have an operand: instructions, wavefronts and moves."""
    layout = pieces.layout
    if REGISTER in dict(source.layout.ins):
        return move_cost(source.layout, layout, element_bits)
    by_matrices = matrix_access(layout, source.layout, element_bits)
    if by_matrices is not None:
        instructions = 1 << by_matrices.addresses.bits(REGISTER)
        return instructions * (1 + by_matrices.matrices * by_matrices.degree)
    read = access(layout, source.layout, element_bits)
    return len(read.groups) + read.wavefronts + _moves(pieces, read)


def _moves(pieces: Pieces, read: SharedAccess) -> int:
    """Words that are not read where the instruction takes them."""
    words = read.element_bits // WORD_BITS
    if words <= 1 or pieces.size == 1:
        return 0
    misplaced = (group for group in read.groups
                 if group != tuple(range(group[0], group[0] + read.vector)))
    return words * sum(map(len, misplaced))

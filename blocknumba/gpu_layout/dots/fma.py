"""Dots by plain arithmetic (FMA): which elements each thread multiplies.

A thread holds a block of the accumulator.  For every index k it adds the outer product of a column
of a and a row of b, which it reads from shared memory:

              b[k, cols]
              . . . .
    a[rows,k] * * * *       one thread's block of the accumulator, here 2 x 4:
              * * * *       2 + 4 elements read for 8 multiplications
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import (
    LANE, LANE_BITS, REGISTER, WARP, FreeBits, from_columns, log2, shape_of,
)

COLUMN_LANE_BITS = 3  # eight lanes read neighbours of a row of b: 128 bytes at 16 bytes each


@lru_cache(maxsize=256)
def accumulator_layout(
    shape: tuple[int, ...], num_warps: int, vectors: tuple[int, int]
) -> LinearLayout:
    """The layout of an accumulator (M, N) or (batches, M, N).

    vectors: how many neighbours along M and along N a thread should have, because one access of
    an operand reads that many.  Eight lanes lie along N.  Warps go along the axis on which the
    block of a thread would otherwise be longer.
    """
    free = FreeBits(shape)
    *batch, rows, columns = range(len(shape))
    warp_bits = log2(num_warps)
    own_bits = max(0, len(free) - warp_bits - LANE_BITS)
    register = free.take((columns,), min(log2(vectors[1]), own_bits))
    of_columns = len(register)
    register += free.take((rows,), min(log2(vectors[0]), own_bits - of_columns))
    of_rows = len(register) - of_columns
    lane = free.take((columns,), COLUMN_LANE_BITS)
    lane += free.take((rows, columns, *batch), LANE_BITS - len(lane))
    warp = free.take(tuple(batch), warp_bits)
    while len(warp) < warp_bits and free.left(rows) + free.left(columns):
        longer = rows if of_rows + free.left(rows) >= of_columns + free.left(columns) else columns
        warp += free.take((longer, rows, columns), 1)
    register += free.take((columns, rows, *batch), len(free))
    return from_columns(
        shape,
        register,
        lane + (0,) * (LANE_BITS - len(lane)),
        warp + (0,) * (warp_bits - len(warp)),
    )


@dataclass(frozen=True, slots=True)
class FmaPlan:
    """The registers of a and b that a thread multiplies for every register of the accumulator.

    a, b: layouts of (..., M, K) and (..., K, N): the elements that a thread reads, all of K.
    layout: of the accumulator (..., M, N).  depth: K.
    a_of, b_of: per register of the accumulator the registers of a and b at k = 0.  The register
        at k is k more.
    """

    a: LinearLayout
    b: LinearLayout
    layout: LinearLayout
    depth: int
    a_of: tuple[int, ...]
    b_of: tuple[int, ...]


@lru_cache(maxsize=256)
def fma_plan(accumulator: LinearLayout, depth: int) -> FmaPlan:
    """The plan of one dot.

    accumulator: a layout each of whose columns lies along one axis.
    """
    *batch, rows, columns = shape_of(accumulator)
    row_bits, column_bits, depth_bits = log2(rows), log2(columns), log2(depth)

    def of_a(column: int) -> int:
        """The packed index in (..., M, K) of a packed index in (..., M, N)."""
        return column >> column_bits << depth_bits

    def of_b(column: int) -> int:
        """The packed index in (..., K, N): the bits of K lie between those of N and M."""
        inner, outer = column & columns - 1, column >> column_bits + row_bits
        return inner | outer << column_bits + depth_bits

    along = tuple(1 << bit for bit in range(depth_bits))
    a, a_of = _operand((*batch, rows, depth), accumulator, of_a, along)
    along = tuple(column << column_bits for column in along)
    b, b_of = _operand((*batch, depth, columns), accumulator, of_b, along)
    return FmaPlan(a, b, accumulator, depth, a_of, b_of)


def _operand(
    shape: tuple[int, ...], accumulator: LinearLayout, image: Callable[[int], int],
    along: gf2.Matrix,
) -> tuple[LinearLayout, tuple[int, ...]]:
    """The layout of an operand, registers along K first, and its registers at k = 0."""
    across = tuple(map(image, accumulator[REGISTER]))
    kept = tuple(filter(None, across))
    layout = from_columns(shape, along + kept, tuple(map(image, accumulator[LANE])),
                          tuple(map(image, accumulator[WARP])))
    moves = tuple(1 << len(along) + kept.index(column) if column else 0 for column in across)
    return layout, tuple(gf2.images(moves))

"""Plans of scans, and of reductions by any function: elements stay in order.

The bits of the index along the axis are taken from the lowest up.  Below the first bit that lies
across warps, elements are combined within a warp: a run of register bits one after the other, a
run of lane bits by exchanges.  These elements are a chunk.  What chunks combine to is a tile of
its own, the totals, which is scanned within one warp; at last each chunk takes in those before it.

    1024 elements in register:1.2;lane:4..64;warp:128.256;register:512

    chunks     128 elements: 4 in a thread, 32 threads                          8 of them
    totals     tile<8>, in warp:1.2;register:4
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import LANE, REGISTER, WARP, dims_of, shape_of

SHUFFLE_SLOTS = 4  # CUDA Programming Guide, 'Arithmetic Instructions': 32 lanes a cycle, adds 128


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Order in which the elements along an axis are combined.

    runs: runs of bits of one kind, from the lowest bit of the index up: (REGISTER or LANE, the
        bits of the register or lane number).
    chunks: along the axis; 1 if a warp holds all of it.
    totals: the layout of what chunks combine to: the operand's shape with extent `chunks` along
        the axis.  Threads of a chunk hold copies.
    """

    runs: tuple[tuple[str, tuple[int, ...]], ...]
    chunks: int
    totals: LinearLayout


def axis_bits(layout: LinearLayout, axis: int) -> tuple[int, int]:
    """The first bit of an axis in packed indices, and the number of its bits."""
    first_bit = 0
    for name, bits in layout.outs:
        if name == f"dim{axis}":
            return first_bit, bits
        first_bit += bits
    raise AssertionError(f"{layout} has no axis {axis}")


def is_ordered(layout: LinearLayout, axis: int) -> bool:
    """Whether each bit of the index along an axis is one bit of a register, lane or warp number."""
    first, bits = axis_bits(layout, axis)
    mask = (1 << bits) - 1 << first
    along = [column & mask for column in layout.columns if column & mask]
    return (all(column & ~mask == 0 and column.bit_count() == 1 for column in layout.columns
                if column & mask) and len(set(along)) == len(along))


@lru_cache(maxsize=1024)
def scan_plan(layout: LinearLayout, axis: int) -> ScanPlan:
    """The plan for a layout that is_ordered along the axis."""
    first, bits = axis_bits(layout, axis)
    held = dict(_holders(layout))
    order = [held[1 << first + bit] for bit in range(bits)]
    inside = next((i for i, (dim, _) in enumerate(order) if dim == WARP), bits)
    runs = tuple((dim, tuple(bit for _, bit in run))
                 for dim, run in groupby(order[:inside], key=lambda pair: pair[0]))
    return ScanPlan(runs, 1 << bits - inside, _totals(layout, axis, inside))


def scan_slots(plan: ScanPlan, registers: int, words: int, steps: int,
               keeps_prefixes: bool = True) -> int:
    """Issue slots of one warp that scans by a plan, or without prefixes reduces.

    registers: of a tile, per thread.  words: of 32 bits, of one element of each tile.  steps: of
    the combination of two.
    """
    groups, taken_in, slots = registers, registers * (steps + words) * keeps_prefixes, 0
    for dim, bits in plan.runs:
        if dim == REGISTER:
            groups >>= len(bits)
            slots += groups * ((1 << len(bits)) - 1) * steps
            continue
        exchanges = len(bits) + 1 + keeps_prefixes
        slots += groups * (len(bits) * (steps + words) + exchanges * SHUFFLE_SLOTS * words)
        slots += taken_in
    return slots + (taken_in if plan.chunks > 1 else 0)


def _holders(layout: LinearLayout) -> Iterator[tuple[int, tuple[str, int]]]:
    """Column -> the bit that it is the column of."""
    for dim in (REGISTER, LANE, WARP):
        for bit, column in enumerate(layout[dim]):
            if column:
                yield column, (dim, bit)


def _totals(layout: LinearLayout, axis: int, inside: int) -> LinearLayout:
    """The layout without the lowest bits of an axis; their threads hold copies."""
    first, _ = axis_bits(layout, axis)
    low, dropped = (1 << first) - 1, (1 << inside) - 1 << first

    shape = shape_of(layout)
    outs = dims_of((*shape[:axis], shape[axis] >> inside, *shape[axis + 1:]))

    def shifted(column: int) -> int:
        if column & dropped:
            return 0
        return column & low | (column >> first + inside) << first
    register = tuple(shifted(c) for c in layout[REGISTER] if not c & dropped)
    lane, warp = (tuple(map(shifted, layout[dim])) for dim in (LANE, WARP))
    ins = ((REGISTER, len(register)), (LANE, len(lane)), (WARP, len(warp)))
    return LinearLayout(ins, outs, register + lane + warp)

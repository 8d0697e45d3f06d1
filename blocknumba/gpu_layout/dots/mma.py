"""mma.sync, the matrix instruction of a warp: which element each register of each lane holds.

mma.sync computes (rows, depth) @ (depth, 8) + (rows, 8).  Its shapes differ in size, but their
fragments have one pattern.  The accumulator of m16n8k16; L4:2 is register 2 of lane 4:

    column     0      1      2      3    ..   6      7
    row 0    L0:0   L0:1   L1:0   L1:1   ..  L3:0   L3:1
    row 1    L4:0   L4:1   L5:0   L5:1   ..  L7:0   L7:1
    ..
    row 7    L28:0  L28:1  L29:0  L29:1  ..  L31:0  L31:1
    row 8    L0:2   L0:3   L1:2   L1:3   ..  L3:2   L3:3
    ..

- Accumulator: register bit 0 and lane bits 0 and 1 lie along the columns, lane bits 2 to 4 along
  eight rows, a further register bit along the other eight.
- Operands: lane bits 2 to 4 lie along eight rows (of b: columns).  Neighbours along the depth fill
  a 32-bit word, lane bits 0 and 1 are the next bits of the depth, and further register bits are
  the other eight rows, then the rest of the depth.

A tile is cut into fragments; those of one warp lie side by side.  Where a tile is smaller than a
fragment, rows and columns beyond it are copies of those within, and elements beyond its depth
count as zeros.
Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and its siblings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import from_columns, log2, shape_of
from blocknumba.tile_ir.ir.types import (
    DType, bfloat16, float16, float32, float64, float8_e4m3fn, float8_e5m2, int32, int8, uint8,
)

Order = tuple[int, ...]  # of the bits of an index, lowest first; () for the natural order
Orders = tuple[Order, Order, Order]  # along M, N and K
NATURAL: Orders = ((), (), ())

COLUMNS = 8  # of every shape
WORD_BITS = 32  # of a register; 64-bit elements have registers of their own
_COLUMN_BITS = 3

OPERAND_KINDS: dict[DType, str] = {
    float16: "f16", bfloat16: "bf16", float32: "tf32", float64: "f64",
    float8_e4m3fn: "e4m3", float8_e5m2: "e5m2", int8: "s8", uint8: "u8"}
ACCUMULATOR_KINDS: dict[DType, str] = {
    float16: "f16", float32: "f32", float64: "f64", int32: "s32"}
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64,
         "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}

# kind of the first operand -> (feature, rows, depth), the best first.
# Source: PTX ISA, "mma", Syntax and Target ISA Notes.
_SHAPES: dict[str, tuple[tuple[str, int, int], ...]] = {
    **dict.fromkeys(("f16", "bf16"), (("mma", 16, 16), ("mma", 16, 8))),
    "tf32": (("mma", 16, 8), ("mma", 16, 4)),
    **dict.fromkeys(("s8", "u8"), (("mma", 16, 32), ("mma", 16, 16))),
    **dict.fromkeys(("e4m3", "e5m2"), (("fp8_mma", 16, 32), ("fp8_mma", 16, 16))),
    "f64": (("float64_mma", 16, 16), ("float64_mma", 16, 8), ("float64_mma", 16, 4),
            ("mma", 8, 4)),
}
_NAME = re.compile(r"m(\d+)n8k(\d+)\.(\w+)\.(\w+)\.(\w+)")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One shape of mma.sync.

    rows, depth: its size; there are always 8 columns.
    accumulator, a, b: kinds of elements, as PTX names them.
    """

    rows: int
    depth: int
    accumulator: str
    a: str
    b: str

    def __str__(self) -> str:
        return f"m{self.rows}n{COLUMNS}k{self.depth}.{self.accumulator}.{self.a}.{self.b}"

    @property
    def operand_bits(self) -> int:
        """Bits of an element of either operand in a register."""
        return _BITS[self.a]

    @staticmethod
    @lru_cache(maxsize=256)
    def parse(name: str) -> Instruction:
        """The instruction that str wrote."""
        rows, depth, accumulator, a, b = _NAME.fullmatch(name).groups()
        return Instruction(int(rows), int(depth), accumulator, a, b)


def instruction_for(
    a: DType, b: DType, accumulator: DType, depth: int, features: frozenset[str]
) -> Instruction | None:
    """The deepest instruction that a depth fills, else the shallowest; None if there is none."""
    kind = OPERAND_KINDS[a]
    shapes = [shape for feature, *shape in _SHAPES[kind] if feature in features]
    if not shapes:
        return None
    rows, fitting = next((shape for shape in shapes if shape[1] <= depth), shapes[-1])
    return Instruction(rows, fitting, ACCUMULATOR_KINDS[accumulator], kind, OPERAND_KINDS[b])


@dataclass(frozen=True, slots=True)
class Fragment:
    """Layout of the matrix of one instruction: the element that each register of each lane holds.

    register, lane: per bit, minor first, the bit of an axis that it selects: (axis, bit).
    sizes: bits of each of the two axes.
    Example: the lanes of an accumulator are ((1, 1), (1, 2), (0, 0), (0, 1), (0, 2)).
    """

    register: tuple[tuple[int, int], ...]
    lane: tuple[tuple[int, int], ...]
    sizes: tuple[int, int]


@lru_cache(maxsize=64)
def operand_fragment(rows: int, depth: int, element_bits: int) -> Fragment:
    """The fragment of an operand: axis 0 is its rows (of b: columns), axis 1 the depth."""
    element = log2(max(1, WORD_BITS // element_bits))
    row_bits, depth_bits = log2(rows), log2(depth)
    inside = tuple((1, bit) for bit in range(element))
    upper_rows = tuple((0, bit) for bit in range(_COLUMN_BITS, row_bits))
    rest = tuple((1, bit) for bit in range(element + 2, depth_bits))
    lane = ((1, element), (1, element + 1), *((0, bit) for bit in range(_COLUMN_BITS)))
    return Fragment(inside + upper_rows + rest, lane, (row_bits, depth_bits))


@lru_cache(maxsize=4)
def accumulator_fragment(rows: int) -> Fragment:
    """The fragment of an accumulator: axis 0 is its rows, axis 1 its columns."""
    row_bits = log2(rows)
    register = ((1, 0), *((0, bit) for bit in range(_COLUMN_BITS, row_bits)))
    lane = ((1, 1), (1, 2), *((0, bit) for bit in range(_COLUMN_BITS)))
    return Fragment(register, lane, (row_bits, _COLUMN_BITS))


@dataclass(frozen=True, slots=True)
class FragmentedTile:
    """A tile cut into fragments.

    layout: of the tile, in registers.  The fragments of a warp are numbered (batch, along axis 0 of
        the fragment, along axis 1), the last one fastest.
    counts: fragments of a warp along each of the three.
    size: registers of a whole fragment.
    kept: mask of the bits of a register number that select elements of the tile; the other bits
        select copies.
    zero_register, zero_lane: masks of the bits beyond the depth of an operand: where one is set,
        the element counts as zero.
    """

    layout: LinearLayout
    counts: tuple[int, int, int]
    size: int
    kept: int
    zero_register: int
    zero_lane: int

    def registers(self, batch: int, first: int, second: int) -> tuple[int | None, ...]:
        """Per register of one fragment the register of the layout; None for a zero."""
        index = (batch * self.counts[1] + first) * self.counts[2] + second
        start = index << self.kept.bit_count()
        return tuple(
            None if number & self.zero_register else start | _compressed(number, self.kept)
            for number in range(self.size)
        )


def _compressed(value: int, mask: int) -> int:
    """The bits of value that mask selects, packed together."""
    packed, position = 0, 0
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            packed |= (value >> bit & 1) << position
            position += 1
    return packed


@dataclass(frozen=True, slots=True)
class MmaPlan:
    """The fragments of the three tiles of a dot.

    a, b, accumulator: tiles (..., M, K), (..., K, N) and (..., M, N).
    """

    a: FragmentedTile
    b: FragmentedTile
    accumulator: FragmentedTile

    @property
    def layout(self) -> LinearLayout:
        """The layout of the accumulator."""
        return self.accumulator.layout

    @property
    def extents(self) -> tuple[int, int, int]:
        """M, N and K."""
        *_, rows, columns = shape_of(self.layout)
        return rows, columns, shape_of(self.a.layout)[-1]


@lru_cache(maxsize=256)
def mma_plan(
    instruction: Instruction, shape: tuple[int, ...], depth: int, warps: tuple[int, int, int],
    num_warps: int, swapped: bool, orders: Orders = NATURAL,
) -> MmaPlan:
    """The plan of one dot.

    shape: of the accumulator, (M, N) or (batches, M, N); depth: K.
    warps: how many lie along the batches, M and N.  If num_warps is larger than their product, the
        other warps hold copies.
    swapped: compute b.T @ a.T, so that the rows of the instruction lie along N.
    orders: of the rows, the columns and the depth of the tiles in instructions (see map_dots).
    """
    *batch, rows, columns = shape
    of_a, of_b = (COLUMNS, instruction.rows) if swapped else (instruction.rows, COLUMNS)
    bits = instruction.operand_bits
    last = len(shape) - 1  # N; before it M; K is the last axis of a and the one before it of b
    split = _WarpSplit(warps, num_warps, rank=len(shape))
    of_batch, (m, n, k) = ((),) * len(batch), orders
    return MmaPlan(
        _fragmented((*batch, rows, depth), operand_fragment(of_a, instruction.depth, bits),
                (last - 1, last), split.over(last - 1, None), (*of_batch, m, k), padded=True),
        _fragmented((*batch, depth, columns), operand_fragment(of_b, instruction.depth, bits),
                (last, last - 1), split.over(None, last), (*of_batch, k, n), padded=True),
        _fragmented(shape, accumulator_fragment(instruction.rows),
                (last, last - 1) if swapped else (last - 1, last), split.over(last - 1, last),
                (*of_batch, m, n)),
    )


@dataclass(frozen=True, slots=True)
class _WarpSplit:
    """The bits of a warp's number: those along N first, then M, then batches."""

    warps: tuple[int, int, int]
    num_warps: int
    rank: int

    def over(self, row_axis: int | None, column_axis: int | None) -> tuple[int | None, ...]:
        """Per bit of a warp's number the axis of a tile that it lies along; None for copies."""
        of_batch, of_rows, of_columns = map(log2, self.warps)
        bits = (column_axis,) * of_columns + (row_axis,) * of_rows + (0,) * of_batch
        return bits + (None,) * (log2(self.num_warps) - len(bits))


def _fragmented(
    shape: tuple[int, ...], fragment: Fragment, axes: tuple[int, int],
    warp_axes: tuple[int | None, ...], orders: tuple[Order, ...], padded: bool = False,
) -> FragmentedTile:
    """A tile cut into fragments.

    axes: of the tile, along which axes 0 and 1 of the fragment lie.
    warp_axes: per bit of a warp's number the axis that it lies along.
    orders: of the bits of each axis.
    padded: whether elements beyond axis 1 count as zeros.
    """
    columns = _Columns(shape, orders)
    inside = tuple(columns.of(axes[along], bit) for along, bit in fragment.register)
    lane = tuple(columns.of(axes[along], bit) for along, bit in fragment.lane)
    own = {axis: columns.bits(axis) - warp_axes.count(axis) for axis in range(len(shape))}
    warp = tuple(
        0 if axis is None else columns.of(axis, own[axis] + warp_axes[:position].count(axis))
        for position, axis in enumerate(warp_axes)
    )
    repeats = [(axes[1], fragment.sizes[1]), (axes[0], fragment.sizes[0])]
    repeats += [(0, 0)] * (len(shape) - 2)
    further = [tuple(columns.of(axis, bit) for bit in range(start, own[axis]))
               for axis, start in repeats]
    second, first, batch = (1 << len(bits) for bits in (*further, ())[:3])
    return FragmentedTile(
        from_columns(shape, tuple(filter(None, inside)) + sum(further, ()), lane, warp),
        (batch, first, second),
        1 << len(inside),
        _mask(inside),
        _zeros(fragment.register, inside) if padded else 0,
        _zeros(fragment.lane, lane) if padded else 0,
    )


class _Columns:
    """The columns of layouts of one shape: per bit of an axis the packed index that it adds.

    orders: per axis the order of the bits of its index; () for the natural one.
    """

    def __init__(self, shape: tuple[int, ...], orders: tuple[Order, ...]):
        self._bits = tuple(map(log2, shape))
        self._orders = tuple(order or tuple(range(bits))
                             for order, bits in zip(orders, self._bits, strict=True))

    def bits(self, axis: int) -> int:
        """Bits of an axis."""
        return self._bits[axis]

    def of(self, axis: int, bit: int) -> int:
        """The column of one bit; 0 beyond the axis."""
        if bit >= self._bits[axis]:
            return 0
        return 1 << sum(self._bits[axis + 1:]) + self._orders[axis][bit]


def _mask(bits: Iterable[object]) -> int:
    """The mask of the true ones among bits, minor first."""
    return sum(1 << position for position, bit in enumerate(bits) if bit)


def _zeros(bits: tuple[tuple[int, int], ...], columns: tuple[int, ...]) -> int:
    """The mask of the bits that lie along axis 1 but beyond its end."""
    return _mask(along == 1 and not column for (along, _), column in zip(bits, columns))


def warp_grid(
    num_warps: int, extents: tuple[int, int, int], minimum: tuple[int, int, int], along_rows: bool
) -> tuple[int, int, int]:
    """Numbers of warps along the batches, M and N that read the least of the operands.

    extents: batches, M, N.  minimum: of these, for one warp.
    along_rows: put as many along M as possible, so that a warp has whole rows.
    """
    batches = min(num_warps, extents[0])
    rows_limit, columns_limit = (max(1, e // m) for e, m in zip(extents[1:], minimum[1:]))
    left = min(num_warps // batches, rows_limit * columns_limit)
    choices = [
        (rows, left // rows)
        for rows in (1 << bit for bit in range(log2(left) + 1))
        if rows <= rows_limit and left // rows <= columns_limit
    ]

    def operands(choice: tuple[int, int]) -> tuple[int, int]:
        read = extents[1] // choice[0] + extents[2] // choice[1]
        return (0 if along_rows else read), -choice[0]

    return batches, *min(choices, key=operands)

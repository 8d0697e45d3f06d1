"""wgmma on Hopper's tensor cores: accumulators in registers, operands in shared memory.

A warpgroup (four warps) multiplies (64, K) by (K, N).  Warpgroups are laid along M as far as
possible, then along N.  Each executes instructions of 64 rows, up to 256 columns and 32 bytes
of K.

    (256, 128) by 8 warps:   warpgroup 0: rows 0..127      each: 2 instructions of 64 x 128
                             warpgroup 1: rows 128..255    for every 32 bytes of K

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Operation using wgmma".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from blocknumba.gpu_layout.async_copies.ops import WARPGROUP
from blocknumba.gpu_layout.async_copies.residency import REGISTERS
from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import WARP_SIZE, from_columns, log2
from blocknumba.gpu_layout.layouts.shared import in_panels, is_buffer, offset_of, recognized
from blocknumba.tile_ir.ir.types import DType, TileType, float32, float64
from blocknumba.tile_ir.ops.dot import accumulators

ROWS, MAX_COLUMNS, MIN_COLUMNS = 64, 256, 8  # of an instruction
DEPTH_BYTES = 32  # of a row of the first operand of an instruction
WORD_BITS = 32  # of a register
FREE_MAJOR_BITS = 16  # operands of this size may be contiguous along M or N
MAX_ACCUMULATOR_REGISTERS = 128  # of a thread, which has at most 255 registers
# Registers of a thread besides its accumulator: with fewer ptxas rejects the instruction.
OTHER_REGISTERS = 26


@dataclass(frozen=True, slots=True)
class WarpgroupTiling:
    """Tiling of (M, N) by warpgroups and instructions; all fields are log2.

    group_rows, group_columns: warpgroups along M and along N.
    copies: warpgroups that hold copies, since no rows or columns are left for them.
    repeat_rows, repeat_columns: instructions of one warpgroup along M and along N.
    columns: of one instruction.
    """

    group_rows: int
    group_columns: int
    copies: int
    repeat_rows: int
    repeat_columns: int
    columns: int


@lru_cache(maxsize=256)
def warpgroup_tiling(rows: int, columns: int, num_warps: int) -> WarpgroupTiling:
    """The tiling of an accumulator of rows x columns."""
    groups = log2(num_warps // WARPGROUP)
    row_bits, column_bits = log2(rows // ROWS), log2(columns)
    group_rows = min(groups, row_bits)
    group_columns = min(groups - group_rows, max(0, column_bits - log2(MIN_COLUMNS)))
    left = column_bits - group_columns
    one = min(left, log2(MAX_COLUMNS))
    return WarpgroupTiling(group_rows, group_columns, groups - group_rows - group_columns,
                           row_bits - group_rows, left - one, one)


def depth_of(dtype: DType) -> int:
    """K of one instruction."""
    return DEPTH_BYTES * 8 // dtype.bits


@lru_cache(maxsize=256)
def accumulator_layout(shape: tuple[int, int], num_warps: int) -> LinearLayout:
    """The layout of an (M, N) accumulator.

    Register bits: two neighbours in a row; the row 8 further down; 8, 16, .. columns further on;
    then further instructions, columns first.
    Source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts", wgmma D fragment.
    """
    rows, columns = shape
    tiling = warpgroup_tiling(rows, columns, num_warps)
    column, row = _axis_bits(columns, 0), _axis_bits(rows, log2(columns))
    own = len(column) - tiling.group_columns
    repeats = row[6:6 + tiling.repeat_rows]
    register = (column[0], row[3], *column[3:own], *repeats)
    lane = (*column[1:3], *row[:3])
    warp = (*row[4:6], *row[6 + tiling.repeat_rows:], *column[own:], *(0,) * tiling.copies)
    return from_columns(shape, register, lane, warp)


@lru_cache(maxsize=256)
def operand_layout(shape: tuple[int, int], dtype: DType, num_warps: int) -> LinearLayout:
    """The layout of an (M, K) operand a in registers.

    Register bits: neighbours in a row that fill a word; the row 8 further down; the other half of
    the depth; then further depths, then further instructions.
    Source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts", wgmma A fragment.
    """
    rows, depth = shape
    tiling = warpgroup_tiling(rows, 1, num_warps)
    inner = log2(WORD_BITS // dtype.bits)
    k, row = _axis_bits(depth, 0), _axis_bits(rows, log2(depth))
    repeats = row[6:6 + tiling.repeat_rows]
    register = (*k[:inner], row[3], *k[inner + 2:], *repeats)
    lane = (*k[inner:inner + 2], *row[:3])
    warp = (*row[4:6], *row[6 + tiling.repeat_rows:], *(0,) * tiling.copies)
    return from_columns(shape, register, lane, warp)


def _axis_bits(extent: int, first: int) -> gf2.Matrix:
    return tuple(1 << first + bit for bit in range(log2(extent)))


def refusal(a: TileType, b: TileType, acc: TileType, precision: str, num_warps: int) -> str:
    """Reason why wgmma cannot do a dot; "" if it can.

    a: (M, K), b: (K, N), acc: (M, N); the layouts of those in shared memory are checked too.
    """
    if len(a.shape) != 2:
        return "its operands are batched"
    (rows, depth), columns = a.shape, b.shape[1]
    if a.dtype == float64 or acc.dtype not in accumulators(a.dtype, b.dtype):
        return f"wgmma does not multiply {a.dtype} by {b.dtype} in {acc.dtype}"
    if a.dtype == float32 and precision != "tf32":
        return f"wgmma rounds float32 to tf32, and the precision is {precision}"
    if num_warps % WARPGROUP:
        return f"wgmma needs a multiple of {WARPGROUP} warps, and there are {num_warps}"
    if rows < ROWS or columns < MIN_COLUMNS or depth < depth_of(a.dtype):
        return (f"wgmma multiplies at least ({ROWS}, {depth_of(a.dtype)}) by "
                f"({depth_of(a.dtype)}, {MIN_COLUMNS}), given {a.shape} by {b.shape}")
    tiling = warpgroup_tiling(rows, columns, num_warps)
    if tiling.copies:
        return f"{num_warps} warps are too many for a result of {acc.shape}"
    threads = num_warps * WARP_SIZE
    most = min(MAX_ACCUMULATOR_REGISTERS, REGISTERS // threads - OTHER_REGISTERS)
    if rows * columns * acc.dtype.bits // WORD_BITS > most * threads:
        return f"{num_warps} warps have too few registers for a result of {acc.shape}"
    sides = ((a, 0), (b, 1))
    return next((reason for tile, axis in sides if is_buffer(tile)
                 and (reason := _buffer_refusal(tile, axis))), "")


def _buffer_refusal(tile: TileType, axis: int) -> str:
    """Reason why wgmma cannot read an operand from its buffer; "" if it can.   axis: of M or N."""
    found = recognized(tile.layout, tile.dtype.bits)
    if found is None or not found[1]:
        return f"{tile} is not in rows of 32 bytes or more"
    if found[0] == axis and tile.dtype.bits != FREE_MAJOR_BITS:
        return f"{tile} is not contiguous along K"
    return ""


@dataclass(frozen=True, slots=True)
class SharedOperand:
    """The address pattern by which wgmma reads an operand from its buffer.

    panels: the buffer's layout before chunks are permuted.   axis: of M or N.
    element_bytes, swizzle_bytes: of the buffer.
    is_transposed: contiguous along M or N, not K.
    """

    panels: LinearLayout
    axis: int
    element_bytes: int
    swizzle_bytes: int
    is_transposed: bool

    @staticmethod
    def of(tile: TileType, axis: int) -> SharedOperand:
        """The pattern of a tile in shared memory; axis: of M or N."""
        minor_axis, swizzle = recognized(tile.layout, tile.dtype.bits)
        panels = in_panels(tile.shape, minor_axis, tile.dtype.bits, swizzle)
        return SharedOperand(panels, axis, tile.dtype.bytes, swizzle, minor_axis == axis)

    def offset_bytes(self, row: int, depth: int) -> int:
        """The offset of an element from the start of the buffer, before chunks are permuted.

        row: its index along M or N; depth: along K.
        """
        index = {self.axis: row, 1 - self.axis: depth}
        return offset_of(self.panels, index) * self.element_bytes

    @property
    def stride_bytes(self) -> int:
        """From eight rows, of swizzle_bytes each, to the next eight."""
        return 8 * self.swizzle_bytes

    @property
    def leading_bytes(self) -> int:
        """From one panel along M or N to the next; where K is contiguous it does not matter."""
        width = self.swizzle_bytes // self.element_bytes
        is_wide = self.is_transposed and self.panels.bits(f"dim{self.axis}") > log2(width)
        return self.offset_bytes(width, 0) if is_wide else 16

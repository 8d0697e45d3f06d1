"""Layouts of tiles in registers: constructors, and how they follow the shape of a tile.

A register layout maps (register, lane, warp) to the axes of a tile.  Its outputs are packed last
axis first, so a packed output is the element's index in C order: reshape keeps every column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import Dims, LinearLayout

REGISTER, LANE, WARP = "register", "lane", "warp"
LANE_BITS = 5  # CUDA Programming Guide, 'SIMT Architecture': a warp is 32 lanes
WARP_SIZE = 1 << LANE_BITS
MAX_WARPS = 32  # of a block: 1024 threads.  Source: CUDA Programming Guide, compute capabilities


def log2(size: int) -> int:
    """The exponent of a power of two."""
    assert size > 0 and size & size - 1 == 0, f"{size} is not a power of two"
    return size.bit_length() - 1


def dims_of(shape: tuple[int, ...]) -> Dims:
    """The output dimensions of a tile: its axes, last first."""
    return tuple((f"dim{axis}", log2(shape[axis])) for axis in reversed(range(len(shape))))


def shape_of(layout: LinearLayout) -> tuple[int, ...]:
    """The shape of the tile of a layout."""
    return tuple(1 << bits for _, bits in reversed(layout.outs))


def register_count(layout: LinearLayout) -> int:
    """The number of registers of a thread."""
    return 1 << layout.bits(REGISTER)


def warp_count(layout: LinearLayout) -> int:
    """The number of warps."""
    return 1 << layout.bits(WARP)


def from_columns(
    shape: tuple[int, ...], register: gf2.Matrix, lane: gf2.Matrix, warp: gf2.Matrix
) -> LinearLayout:
    """The layout with these columns, each a C-order element index."""
    ins = ((REGISTER, len(register)), (LANE, len(lane)), (WARP, len(warp)))
    return LinearLayout(ins, dims_of(shape), register + lane + warp)


@lru_cache(maxsize=1024)
def blocked(
    shape: tuple[int, ...],
    order: tuple[int, ...],
    vector: int,
    num_warps: int,
    warp_order: tuple[int, ...] | None = None,
) -> LinearLayout:
    """Vectors along order[0] in one thread, then across lanes, then across warps, then again.

    The first row of a (.., 256) tile, order (1, 0), vector 2, 2 warps; L1:0 is lane 1, register 0:

        column   0 1    2 3    ..  62 63    64 65   ..  128 129   ..
        warp 0   L0:0,1 L1:0,1 ..  L31:0,1          ..  L0:2,3    ..
        warp 1                              L0:0,1  ..            ..

    shape: of the tile, which is covered exactly.  order: axes, fastest first.
    vector: elements of one thread that are neighbours along order[0]; fewer if the axis is shorter.
    warp_order: the axes that warps are laid along, first choice first; `order` by default.

    In a tile with fewer elements than threads, the threads left over hold copies.  In a larger one,
    the remaining bits are registers, so that the first vectors of all threads are one contiguous
    run.
    """
    free = FreeBits(shape)
    register = free.take(order[:1], log2(vector))
    lane = free.take(order, LANE_BITS)
    warp_bits = log2(num_warps)
    warp = free.take(warp_order or order, warp_bits)
    warp += free.take(order, warp_bits - len(warp))
    register += free.take(order, len(free))
    lane += (0,) * (LANE_BITS - len(lane))
    warp += (0,) * (warp_bits - len(warp))
    return from_columns(shape, register, lane, warp)


def in_rows(shape: tuple[int, ...], num_warps: int) -> LinearLayout:
    """The layout of tiles without preference: C order, neighbours in consecutive lanes."""
    return blocked(shape, tuple(reversed(range(len(shape)))), 1, num_warps)


def within_warps(shape: tuple[int, ...], axis: int, num_warps: int) -> LinearLayout:
    """A layout in which every warp holds whole rows along an axis, as copies if it must."""
    others = tuple(other for other in reversed(range(len(shape))) if other != axis)
    layout = blocked(shape, (axis, *others), 1, num_warps, others)
    along = collapse(layout, others)
    if not any(along[WARP]):
        return layout
    return blocked(shape, (axis, *others), 1, 1).with_columns(WARP, (0,) * log2(num_warps))


class FreeBits:
    """The index bits of a tile that are not assigned to an input bit yet."""

    def __init__(self, shape: tuple[int, ...]):
        first_bit, self._bits = 0, {}
        for axis in reversed(range(len(shape))):
            bits = log2(shape[axis])
            self._bits[axis] = list(range(first_bit, first_bit + bits))
            first_bit += bits

    def __len__(self) -> int:
        return sum(map(len, self._bits.values()))

    def left(self, axis: int) -> int:
        """The number of free bits of an axis."""
        return len(self._bits[axis])

    def take(self, axes: tuple[int, ...], count: int) -> gf2.Matrix:
        """Up to count columns, the lowest bits of the first axes first."""
        columns = []
        for axis in axes:
            bits = self._bits[axis]
            while bits and len(columns) < count:
                columns.append(1 << bits.pop(0))
        return tuple(columns)


def reshape(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    """The layout of the same elements, in C order, in another shape."""
    return LinearLayout(layout.ins, dims_of(shape), layout.columns)


def transpose(layout: LinearLayout, axes: tuple[int, ...]) -> LinearLayout:
    """The layout after NumPy's transpose(axes): axis i of the result is axis axes[i]."""
    shape = shape_of(layout)
    moved = layout.with_outs(
        tuple((f"dim{axis}", log2(shape[axis])) for axis in reversed(axes))
    )
    return reshape(moved, tuple(shape[axis] for axis in axes))


def inverse_axes(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that undo transpose(axes)."""
    return tuple(axes.index(axis) for axis in range(len(axes)))


def collapse(layout: LinearLayout, axes: tuple[int, ...]) -> LinearLayout:
    """The layout of a tile with extent 1 along axes: threads that differed there hold copies.

    Copies within one thread are dropped.
    """
    shape = shape_of(layout)
    kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    keep_mask, first_bit = 0, 0
    for axis in reversed(range(len(shape))):
        bits = log2(shape[axis])
        if axis not in axes:
            keep_mask |= ((1 << bits) - 1) << first_bit
        first_bit += bits
    masked = LinearLayout(
        layout.ins, layout.outs, tuple(column & keep_mask for column in layout.columns)
    )
    outs = dims_of(kept)
    columns = tuple(_compressed(column, keep_mask) for column in masked.columns)
    return without_register_copies(LinearLayout(layout.ins, outs, columns))


def _compressed(value: int, mask: int) -> int:
    """The bits of value that mask selects, packed together."""
    packed, first_bit = 0, 0
    while mask:
        low = mask & -mask
        if value & low:
            packed |= 1 << first_bit
        first_bit += 1
        mask ^= low
    return packed


def subtile(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout | None:
    """The layout of an aligned subtile, in which threads keep the elements that they have.

    shape: of the subtile.  None where threads or warps differ in which subtile they hold.
    """
    removed, first_bit = 0, 0
    for axis in reversed(range(len(shape))):
        inner, bits = log2(shape[axis]), log2(shape_of(layout)[axis])
        removed |= (1 << first_bit + bits) - (1 << first_bit + inner)
        first_bit += bits
    register = tuple(column for column in layout[REGISTER] if not column & removed)
    left_out = [column for column in layout[REGISTER] if column & removed]
    threads = layout[LANE] + layout[WARP]
    if any(column & removed for column in threads) or any(c & ~removed for c in left_out):
        return None
    kept = ~removed & (1 << first_bit) - 1
    columns = [_compressed(column, kept) for column in register + threads]
    lanes = len(register) + LANE_BITS
    return from_columns(shape, tuple(columns[: len(register)]),
                        tuple(columns[len(register) : lanes]), tuple(columns[lanes:]))


def drop_axis(layout: LinearLayout, axis: int) -> LinearLayout:
    """The layout of a tile reduced over an axis, which is dropped."""
    collapsed = collapse(layout, (axis,))
    shape = shape_of(collapsed)
    return reshape(collapsed, shape[:axis] + shape[axis + 1 :])


def join(layout: LinearLayout) -> LinearLayout:
    """The layout of two tiles joined along a new last axis: the lowest register bit selects."""
    shape = shape_of(layout)
    shifted = tuple(column << 1 for column in layout.columns)
    wide = LinearLayout(layout.ins, dims_of((*shape, 2)), shifted)
    return wide.with_columns(REGISTER, (1, *wide[REGISTER]))


def split(layout: LinearLayout) -> LinearLayout:
    """The layout of either half of a tile split along its last axis, of extent 2.

    The last axis must be a register bit of its own (see can_split).
    """
    assert can_split(layout), f"{layout} does not hold the last axis in registers"
    shape = shape_of(layout)
    halves = tuple(column for column in layout[REGISTER] if column != 1)
    columns = tuple(column >> 1 for column in halves + layout[LANE] + layout[WARP])
    ins = ((REGISTER, len(halves)), *layout.ins[1:])
    return LinearLayout(ins, dims_of(shape[:-1]), columns)


def can_split(layout: LinearLayout) -> bool:
    """Whether a register bit is the last axis, of extent 2, and no other bit touches it."""
    odd = [column for column in layout.columns if column & 1]
    return odd == [1] and 1 in layout[REGISTER]


def without_register_copies(layout: LinearLayout) -> LinearLayout:
    """The layout with the fewest registers that hold the same elements in every thread."""
    return layout.with_columns(REGISTER, gf2.independent(layout[REGISTER]))


@dataclass(frozen=True, slots=True)
class Replication:
    """The copy of an element that counts: that where every masked bit is 0.

    register, lane, warp: masks.  Each element has exactly one such copy, so a store or an atomic
    is executed once if registers with `number & register` are skipped and threads with
    `lane_id & lane or warp_id & warp` do nothing.
    """

    register: int
    lane: int
    warp: int

    def __bool__(self) -> bool:
        return bool(self.register or self.lane or self.warp)


@lru_cache(maxsize=1024)
def replication(layout: LinearLayout) -> Replication:
    """The bits of each input dimension that only select copies, registers kept before threads."""
    echelon = gf2.Echelon()
    masks = []
    for name in (REGISTER, LANE, WARP):
        mask = 0
        for bit, column in enumerate(layout[name]):
            if not echelon.add(column)[0]:
                mask |= 1 << bit
        masks.append(mask)
    return Replication(*masks)


def contiguous_registers(layout: LinearLayout, axis: int) -> int:
    """The number of registers from 0 on that are neighbours along an axis in every thread.

    A run is aligned to its own length along that axis.
    """
    shape = shape_of(layout)
    step = 1
    for extent in shape[axis + 1 :]:
        step *= extent
    bits = 0
    registers = layout[REGISTER]
    limit = log2(shape[axis])
    while bits < len(registers) and bits < limit and registers[bits] == step << bits:
        bits += 1
    low = sum(step << bit for bit in range(bits))
    others = registers[bits:] + layout[LANE] + layout[WARP]
    while bits and any(column & low for column in others):
        bits -= 1
        low ^= step << bits
        others += (step << bits,)
    return 1 << bits

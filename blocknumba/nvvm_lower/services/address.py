"""Index arithmetic: thread coordinates, indices of elements, and offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import LANE, LANE_BITS, REGISTER, WARP, Replication
from blocknumba.nvvm_lower.llvm import I32, I64, Body, integer
from blocknumba.nvvm_lower.ptx.warp import HELD, UNIFORM
from blocknumba.tile_ir.analysis.ranges import Range
from blocknumba.tile_ir.ir.types import int32

SREG = "llvm.nvvm.read.ptx.sreg."
SREG_ATTRIBUTES = "nounwind readnone"
GRID_AXES = "xyz"

Binary = Callable[[str, str, str, str], str]  # operation, type and operands: the result


@dataclass(frozen=True, slots=True)
class Sum:
    """An int32 as base + constant, modulo 2**32.

    exact: the sum does not wrap, so it may be widened term by term.
    """

    base: str
    constant: int
    exact: bool


class Threads:
    """The coordinates of this thread in its program.

    Everything is written where it is first needed and reused after that.
    sums: values that are another value plus a constant.  The registers of an index tile have one
        base, so that the addresses made from them are one register and immediate offsets.
    holds: whether the bases of addresses in loops stay in registers; otherwise libNVVM may compute
        them again in every iteration.
    """

    def __init__(self, body: Body, num_warps: int, holds: bool = False):
        self._body = body
        self._num_warps = num_warps
        self._holds = holds
        self.sums: dict[str, Sum] = {}

    @property
    def thread(self) -> str:
        """Index of this thread, lane in the low bits, warp above."""
        return special_register(self._body, "tid.x")

    @property
    def lane(self) -> str:
        if self._num_warps == 1:
            return self.thread
        return self._body.binary("and", I32, self.thread, str((1 << LANE_BITS) - 1))

    @property
    def warp(self) -> str:
        if self._num_warps == 1:
            return "0"
        return self._body.binary("lshr", I32, self.thread, str(LANE_BITS))

    @property
    def uniform_warp(self) -> str:
        """Index of this warp, which the assembler knows to be uniform in the warp."""
        warp = self._body.at_entry(f"lshr {I32} {self._thread_at_entry}, {LANE_BITS}")
        return self._body.at_entry(UNIFORM.call([warp]))

    @property
    def is_first(self) -> str:
        """Whether this is the first thread of the program, an i1."""
        return self._body.compare("icmp eq", I32, self.thread, "0")

    def image(self, matrix: gf2.Matrix) -> str:
        """matrix @ thread, an i32; column i belongs to bit i of the thread index."""
        return image_of(self._body.binary, matrix, self.thread)

    def held_image(self, matrix: gf2.Matrix) -> str:
        """image, for an access that may be in a loop."""
        if not self._holds or not any(matrix):
            return self.image(matrix)
        image = image_of(self._binary_at_entry, matrix, self._thread_at_entry)
        return self._body.at_entry(HELD.call([image]))

    @property
    def _thread_at_entry(self) -> str:
        self._body.module.declare(SREG + "tid.x", I32, (), SREG_ATTRIBUTES)
        return self._body.at_entry(f"call {I32} @{SREG}tid.x()")

    def _binary_at_entry(self, operation: str, type_: str, x: str, y: str) -> str:
        return self._body.at_entry(f"{operation} {type_} {x}, {y}")

    def parity(self, mask: int) -> str:
        """Whether an odd number of the masked bits of the thread index are set, an i1."""
        body = self._body
        if mask & mask - 1 == 0:
            chosen = body.binary("and", I32, self.thread, str(mask))
            return body.compare("icmp ne", I32, chosen, "0")
        bits = tuple(mask >> bit & 1 for bit in range(mask.bit_length()))
        return body.convert("trunc", I32, self.image(bits), "i1")

    def has_none(self, mask: int) -> str:
        """Whether none of the masked bits of the thread index is set, an i1."""
        chosen = self._body.binary("and", I32, self.thread, str(mask))
        return self._body.compare("icmp eq", I32, chosen, "0")

    def keeps(self, copies: Replication) -> str:
        """Whether this thread acts for all that hold copies, an i1; empty for always."""
        mask = copies.lane | copies.warp << LANE_BITS
        return self.has_none(mask) if mask else ""


def special_register(body: Body, name: str) -> str:
    """A special register of the hardware, "tid.x" or "ctaid.y"."""
    return body.call(I32, SREG + name, attributes=SREG_ATTRIBUTES)


def indices(body: Body, threads: Threads, layout: LinearLayout, start: int = 0,
            held: bool = False) -> list[str]:
    """Per register of this thread its index by the layout, packed, plus start; i32 values.

    held: for accesses that may be in a loop, as Threads.held_image.
    """
    base, reached = _of_threads(threads, layout, held)
    found = [_index(body, threads, base, reached, image)
             for image in gf2.images(layout[REGISTER])]
    if not start:
        return found
    bounds = Range(start, start + (1 << layout.out_bits) - 1)
    return [added(body, threads, index, str(start), bounds) for index in found]


def index_at(body: Body, threads: Threads, layout: LinearLayout, register: int,
             origin: int = 0, held: bool = False) -> str:
    """The index of one register of this thread by the layout, packed, xor origin; an i32.

    held: as of indices.
    """
    base, reached = _of_threads(threads, layout, held)
    return _index(body, threads, base, reached, gf2.apply(layout[REGISTER], register) ^ origin)


def _of_threads(threads: Threads, layout: LinearLayout, held: bool) -> tuple[str, int]:
    """The index of register 0 of this thread by the layout, and the bits that threads reach."""
    columns = layout[LANE] + layout[WARP]
    reached = 0
    for column in columns:
        reached |= column
    return threads.held_image(columns) if held else threads.image(columns), reached


def _index(body: Body, threads: Threads, base: str, reached: int, image: int) -> str:
    """base xor image; bits that threads do not reach come last, to become immediate offsets."""
    if base == "0":
        return str(image)
    turned, constant = image & reached, image & ~reached
    if turned:
        base = body.binary("xor", I32, base, str(turned))
    if not constant:
        return base
    index = body.binary("or", I32, base, str(constant))  # LLVM takes it for an addition
    threads.sums[index] = Sum(base, constant, exact=True)
    return index


def added(body: Body, threads: Threads, x: str, y: str, bounds: Range) -> str:
    """x + y of int32, the constants in them last.

    bounds: of the exact sum, which may leave int32.
    """
    first, second = (threads.sums.get(value, _as_sum(value)) for value in (x, y))
    constant = first.constant + second.constant
    base = _plus(body, first.base, second.base)
    if not constant:
        return base
    total = _plus(body, base, integer(constant, 32))
    if base != "0":
        exact = first.exact and second.exact and all(
            int32.minimum <= bound <= int32.maximum  # the sum, and the base by itself
            for bound in (bounds.low, bounds.high, bounds.low - constant, bounds.high - constant))
        threads.sums[total] = Sum(base, constant, exact)
    return total


def moved_pointer(body: Body, threads: Threads, pointer: str, element: str, address: str,
                  distance: str, is_narrow: bool = False) -> str:
    """address, of LLVM type pointer to element, moved by distance, an int32, of elements.

    is_narrow: as of the op offset.
    """
    known = threads.sums.get(distance)
    if known is None or not (known.exact or is_narrow):
        wide = body.convert("sext", I32, distance, I64)
        return element_pointer(body, pointer, element, address, wide)
    base = body.convert("sext", I32, known.base, I64)
    lead = element_pointer(body, pointer, element, address, base)
    return element_pointer(body, pointer, element, lead, str(known.constant))


def element_pointer(body: Body, pointer: str, element: str, address: str, distance: str) -> str:
    """address, of LLVM type pointer to element, moved by distance, an i64, of elements."""
    return body.pure(f"getelementptr {element}, {pointer} {address}, {I64} {distance}")


def coordinates(body: Body, threads: Threads, layout: LinearLayout, axis: int) -> list[str]:
    """Per register of this thread its index along one axis; i32 values."""
    bit = 0
    for name, bits in layout.outs:
        if name == f"dim{axis}":
            mask = (1 << bits) - 1
            columns = tuple(column >> bit & mask for column in layout.columns)
            return indices(body, threads, LinearLayout(layout.ins, ((name, bits),), columns))
        bit += bits
    raise AssertionError(f"{layout} has no axis {axis}")


def _as_sum(value: str) -> Sum:
    return Sum(value, 0, True) if value.startswith("%") else Sum("0", int(value), True)


def _plus(body: Body, x: str, y: str) -> str:
    if "0" in (x, y):
        return y if x == "0" else x
    return body.binary("add", I32, x, y)


def image_of(binary: Binary, matrix: gf2.Matrix, value: str) -> str:
    """matrix @ value by a few masked shifts of value; binary writes the instructions.

    Every set bit (row, column) of the matrix moves bit `column` of value to `row`.  Bits with one
    distance row - column are one shift, so a layout made of runs costs one or two.
    """
    masks: dict[int, int] = {}
    for bit, column in enumerate(matrix):
        for row in range(column.bit_length()):
            if column >> row & 1:
                masks[row - bit] = masks.get(row - bit, 0) | 1 << bit
    total, reached = "0", 0
    for distance, mask in sorted(masks.items()):
        moved = _shifted(binary, binary("and", I32, value, str(mask)), distance)
        rows = mask << distance if distance >= 0 else mask >> -distance
        if total != "0":
            moved = binary("xor" if reached & rows else "or", I32, total, moved)
        total, reached = moved, reached | rows
    return total


def _shifted(binary: Binary, value: str, distance: int) -> str:
    if not distance:
        return value
    return binary("shl" if distance > 0 else "lshr", I32, value, str(abs(distance)))

"""Code of sorting networks, between exchanges through shared memory; counters of histograms."""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import LANE, LANE_BITS, REGISTER, replication
from blocknumba.gpu_layout.ops import shared_count, sort_steps
from blocknumba.gpu_layout.placement.sorts import COMPARE, TAKE
from blocknumba.nvvm_lower.elements import register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import I1, I32
from blocknumba.nvvm_lower.ptx import atomic as ptx
from blocknumba.nvvm_lower.services.shared_memory import element_address, from_lane_xor
from blocknumba.nvvm_lower.services.words import WORD_BITS
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.types import DType

Element = tuple[str, ...]  # one register of each tile


class _Network:
    """The elements of a tile on their wires, one for each register.

    numbers: of the registers that are left, in the layout.
    """

    def __init__(self, emitter: Emitter, dtypes: Sequence[DType], elements: Sequence[Element],
                 wires: LinearLayout):
        self._emitter, self._dtypes, self._wires = emitter, dtypes, wires
        self.elements = dict(enumerate(elements))

    def run(self, kind: str, mask: int) -> None:
        """One step."""
        top = 1 << mask.bit_length() - 1
        if kind == COMPARE:
            self._compare(mask, self._held(REGISTER, top), self._held(LANE, top))
            return
        held = self._held(REGISTER, top)
        lower = {number: x for number, x in self.elements.items() if not number & held}
        if kind != TAKE:
            register, lane = self._partner(mask)
            others = self._partners(lower, register, lane)
            lower = {number: self._least(x, others[number]) for number, x in lower.items()}
        self.elements = lower

    def _held(self, dim: str, bit: int) -> int:
        """The bits of a register or lane number that a bit of the wire is held by."""
        return sum(1 << number for number, column in enumerate(self._wires[dim]) if column == bit)

    def _partner(self, mask: int) -> tuple[int, int]:
        """The masks of the register and of the lane that hold the wire ^ mask."""
        bits = self._wires.bits(REGISTER)
        location = gf2.solve(self._wires[REGISTER] + self._wires[LANE], mask)
        assert location is not None, f"wires ^ {mask} lie across warps"
        return location & (1 << bits) - 1, location >> bits

    def _partners(self, numbers: Sequence[int], register: int, lane: int) -> dict[int, Element]:
        """The elements that these registers are compared with."""
        if not lane:
            return {number: self.elements[number ^ register] for number in numbers}
        return {number: tuple(from_lane_xor(self._emitter, dtype, x, lane)
                              for dtype, x in zip(self._dtypes, self.elements[number ^ register]))
                for number in numbers}

    def _compare(self, mask: int, in_register: int, in_lane: int) -> None:
        register, lane = self._partner(mask)
        if in_register and not lane:
            for number in [n for n in self.elements if not n & in_register]:
                self._order(number, number ^ register)
            return
        others = self._partners(tuple(self.elements), register, lane)
        if in_register:
            self.elements = {
                number: (self._greatest if number & in_register else self._least)(
                    x, others[number]) for number, x in self.elements.items()}
            return
        is_upper = self._emitter.threads.parity(in_lane)
        self.elements = {number: self._one(is_upper, x, others[number])
                         for number, x in self.elements.items()}

    @property
    def _is_word(self) -> bool:
        """Whether an element is one word, of which there is a minimum instruction."""
        return len(self._dtypes) == 1 and self._dtypes[0].bits <= WORD_BITS

    def _order(self, lower: int, upper: int) -> None:
        """Exchange two registers of this thread unless they are in order."""
        x, y = self.elements[lower], self.elements[upper]
        if self._is_word:
            self.elements[lower], self.elements[upper] = self._least(x, y), self._greatest(x, y)
            return
        is_less = self._less(y, x)
        self.elements[lower] = self._chosen(is_less, y, x)
        self.elements[upper] = self._chosen(is_less, x, y)

    def _least(self, x: Element, y: Element) -> Element:
        return self._chosen(self._less(y, x), y, x)

    def _greatest(self, x: Element, y: Element) -> Element:
        return self._chosen(self._less(x, y), y, x)

    def _one(self, is_upper: str, x: Element, y: Element) -> Element:
        """The greater element where is_upper, an i1, holds, else the lesser one."""
        body = self._emitter.body
        return self._chosen(body.binary("xor", I1, self._less(y, x), is_upper), y, x)

    def _less(self, x: Element, y: Element) -> str:
        """Whether x comes before y: by the first tile, of equal ones by the next."""
        body, found = self._emitter.body, ""
        for dtype, a, b in reversed(tuple(zip(self._dtypes, x, y))):
            type_ = register_type(dtype)
            less = body.compare(f"icmp {'slt' if dtype.is_signed else 'ult'}", type_, a, b)
            if found:
                tie = body.binary("and", I1, body.compare("icmp eq", type_, a, b), found)
                less = body.binary("or", I1, less, tie)
            found = less
        return found

    def _chosen(self, condition: str, x: Element, y: Element) -> Element:
        body = self._emitter.body
        return tuple(body.select(condition, register_type(dtype), *pair)
                     for dtype, *pair in zip(self._dtypes, x, y))


@code(sort_steps)
def _(emitter: Emitter, op: Op, *tiles: Registers) -> tuple[Registers, ...]:
    wires = op.attrs["wires"]
    assert wires.bits(LANE) == LANE_BITS
    network = _Network(emitter, [tile.type.dtype for tile in op.tiles], list(zip(*tiles)), wires)
    for kind, mask in op.attrs["steps"]:
        network.run(kind, mask)
    return tuple(map(list, zip(*network.elements.values())))


@code(shared_count)
def _(emitter: Emitter, op: Op, buffer: Registers, x: Registers, *mask: Registers) -> None:
    body, bins = emitter.body, op.buffer.type.size
    acts = emitter.threads.keeps(replication(op.x.type.layout))
    add = ptx.reduce(ptx.Update("add", "u32", "cta", "shared"))
    for number, index in enumerate(x):
        counts = emitter.both(acts, body.compare("icmp ult", I32, index, str(bins)))
        if mask:
            counts = emitter.both(counts, mask[0][number])
        address = element_address(emitter, buffer[0], index, op.buffer.type.dtype)
        emitter.assembly(add, address, emitter.flag(counts), "1")

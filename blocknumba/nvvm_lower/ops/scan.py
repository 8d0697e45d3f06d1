"""Code of scans, and of reductions by any function, within each warp.

Elements are combined in order.  What a group of registers and lanes combines to is its total:

    run of registers    a running total takes in one group after the other
    run of lanes        butterfly: the lower half of the lanes is the left operand

    4 elements in a thread, 2 lanes:     lane 0: a b c d          lane 1: e f g h
    registers                            a ab abc abcd            e ef efg efgh
    lanes: what comes before             -                        abcd
    result                               a ab abc abcd            abcde abcdef ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import REGISTER
from blocknumba.gpu_layout.ops import (
    exclusive_scan, finish_scan, partial_reduce_with, partial_scan,
)
from blocknumba.gpu_layout.placement.scans import ScanPlan, axis_bits, scan_plan
from blocknumba.nvvm_lower.elements import register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import I1, I32
from blocknumba.nvvm_lower.services.address import coordinates
from blocknumba.nvvm_lower.services.shared_memory import from_lane_xor
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops.scan import COMMUTATIVE, reduce_with, region_of, scan

Element = tuple[str, ...]  # one register of each tile
ALWAYS = "true"


class _Combiner:
    """Emits the combination of elements, and what chooses between them."""

    def __init__(self, emitter: Emitter, op: Op):
        tiles = op.tiles if op.opdef is not finish_scan else op.tiles[:len(op.tiles) // 2]
        self.emitter = emitter
        self.dtypes: list[DType] = [tile.type.dtype for tile in tiles]
        self._region = region_of(op.attrs["combination"], self.dtypes)
        self._commutes = op.attrs["combination"] in COMMUTATIVE

    def __call__(self, left: Element, right: Element) -> Element:
        for arg, register in zip(self._region.args, (*left, *right), strict=True):
            self.emitter.values[arg] = [register]
        return tuple(made[0] for made in self.emitter.run(self._region))

    def of_pair(self, is_second: str, mine: Element, other: Element) -> Element:
        """The combination of this lane's element and its partner's, in order of the lanes.

        is_second: an i1: whether this lane comes second.
        """
        if self._commutes:
            return self(mine, other)
        return self(self.select(is_second, other, mine), self.select(is_second, mine, other))

    def select(self, condition: str, x: Element, y: Element) -> Element:
        """x where condition, an i1, holds, else y."""
        body = self.emitter.body
        return tuple(body.select(condition, register_type(dtype), *pair)
                     for dtype, *pair in zip(self.dtypes, x, y))

    def from_lane_xor(self, element: Element, mask: int) -> Element:
        """The element of lane ^ mask."""
        return tuple(from_lane_xor(self.emitter, dtype, value, mask)
                     for dtype, value in zip(self.dtypes, element))

    def either(self, x: str, y: str) -> str:
        """The disjunction of two i1."""
        return ALWAYS if ALWAYS in (x, y) else self.emitter.body.binary("or", I1, x, y)


@dataclass(slots=True)
class _Prefix:
    """Prefix of a register so far.

    value: None until something came before it, in an exclusive scan.
    holds: an i1: whether value is defined in this thread.
    """

    value: Element | None
    holds: str = ALWAYS


class _WarpScan:
    """Elements of a tile in a warp, combined along an axis in order.

    prefixes: per register.  totals: per group of registers that are combined, by the lowest one.
    """

    def __init__(self, combine: _Combiner, elements: Sequence[Element], reverse: bool,
                 exclusive: bool, keeps_prefixes: bool = True):
        self._combine, self._reverse, self._keeps = combine, reverse, keeps_prefixes
        self.totals: dict[int, Element] = dict(enumerate(elements))
        self.prefixes = [_Prefix(None if exclusive else element) for element in elements]
        self._members = {register: [register] for register in self.totals}

    def run(self, plan: ScanPlan) -> None:
        """Combine the elements of each chunk of a plan."""
        for dim, bits in plan.runs:
            if dim == REGISTER:
                self._registers(bits)
            else:
                self._lanes(bits)

    def _registers(self, bits: tuple[int, ...]) -> None:
        """Combine groups of registers whose numbers differ in some bits, in order of the bits."""
        steps = gf2.images(tuple(1 << bit for bit in bits))
        order = steps[::-1] if self._reverse else steps
        for first in [r for r in self.totals if not r & steps[-1]]:
            running = self.totals[first | order[0]]
            for step in order[1:]:
                group = first | step
                total = self._combine(running, self.totals[group])
                self._precede(running, ALWAYS, group, total)
                running = total
            groups = [first | step for step in steps]
            self._members[first] = [r for group in groups for r in self._members.pop(group)]
            for group in groups:
                del self.totals[group]
            self.totals[first] = running

    def _lanes(self, bits: tuple[int, ...]) -> None:
        """Combine the totals of lanes whose numbers differ in some bits, in order of the bits."""
        combine = self._combine
        for group, total in self.totals.items():
            before, holds = total, "false"
            for bit in bits:
                other = combine.from_lane_xor(total, 1 << bit)
                is_later = self._later(bit)
                if self._keeps:
                    more = other if holds == "false" else combine.select(
                        holds, combine(other, before), other)
                    before = combine.select(is_later, more, before)
                    holds = is_later if holds == "false" else combine.either(holds, is_later)
                total = combine.of_pair(is_later, total, other)
            if self._keeps:
                self._precede(before, holds, group)
            self.totals[group] = total

    def _later(self, bit: int) -> str:
        """Whether this lane comes after its partner, whose number differs in a bit; an i1."""
        emitter = self._combine.emitter
        masked = emitter.body.binary("and", I32, emitter.threads.lane, str(1 << bit))
        return emitter.body.compare(f"icmp {'eq' if self._reverse else 'ne'}", I32, masked, "0")

    def _precede(self, before: Element, holds: str, group: int,
                 total: Element | None = None) -> None:
        """Put an element before a group of registers.

        holds: whether there is one, in this thread.  total: what the group combines to with it.
        """
        if not self._keeps:
            return
        members = self._members[group]
        for register in members:
            prefix, known = self.prefixes[register], None
            if total is not None and len(members) == 1 and prefix.value is self.totals[group]:
                known = total
            self.prefixes[register] = self._after(before, holds, prefix, known)

    def _after(self, before: Element, holds: str, prefix: _Prefix,
               known: Element | None) -> _Prefix:
        combine = self._combine
        if prefix.value is None:
            return _Prefix(before, holds)
        made = combine(before, prefix.value) if known is None else known
        if prefix.holds != ALWAYS:
            made = combine.select(prefix.holds, made, before)
        if holds != ALWAYS:
            made = combine.select(holds, made, prefix.value)
        return _Prefix(made, combine.either(holds, prefix.holds))

    def results(self) -> tuple[Registers, ...]:
        """The registers of each tile: prefixes; what is undefined is the element itself."""
        values = [self.totals[min(self.totals)] if prefix.value is None else prefix.value
                  for prefix in self.prefixes]
        return tuple(map(list, zip(*values)))

    def totals_of(self) -> tuple[Registers, ...]:
        """The registers of each tile of totals, one per group."""
        return tuple(map(list, zip(*(self.totals[group] for group in sorted(self.totals)))))


def _scanned(emitter: Emitter, op: Op, tiles: Sequence[Registers], *, exclusive: bool = False,
             keeps_prefixes: bool = True) -> _WarpScan:
    layout, axis = op.tiles[0].type.layout, op.attrs["axis"]
    reverse = "reverse" in op.opdef.attributes and attribute(op, "reverse")
    made = _WarpScan(_Combiner(emitter, op), list(zip(*tiles)), reverse, exclusive, keeps_prefixes)
    made.run(scan_plan(layout, axis))
    return made


@code(scan)
def _(emitter: Emitter, op: Op, *tiles: Registers) -> tuple[Registers, ...]:
    return _scanned(emitter, op, tiles).results()


@code(exclusive_scan)
def _(emitter: Emitter, op: Op, *tiles: Registers) -> tuple[Registers, ...]:
    return _scanned(emitter, op, tiles, exclusive=True).results()


@code(partial_scan)
def _(emitter: Emitter, op: Op, *tiles: Registers) -> tuple[Registers, ...]:
    made = _scanned(emitter, op, tiles)
    return made.results() + made.totals_of()


@code(reduce_with, partial_reduce_with)
def _(emitter: Emitter, op: Op, *tiles: Registers) -> tuple[Registers, ...]:
    return _scanned(emitter, op, tiles, keeps_prefixes=False).totals_of()


@code(finish_scan)
def _(emitter: Emitter, op: Op, *tiles: Registers) -> tuple[Registers, ...]:
    """The first chunk is as it is; the others take in what comes before them."""
    combine, half = _Combiner(emitter, op), len(tiles) // 2
    layout, axis = op.tiles[0].type.layout, op.attrs["axis"]
    chunk_of = _chunks_of_registers(layout, axis)
    totals, body = op.tiles[-1].type, emitter.body
    indices = coordinates(body, emitter.threads, totals.layout, axis)
    first = totals.shape[axis] - 1 if attribute(op, "reverse") else 0
    has_before = [body.compare("icmp ne", I32, index, str(first)) for index in indices]
    befores, made = list(zip(*tiles[half:])), []
    for register, prefix in enumerate(zip(*tiles[:half])):
        chunk = chunk_of[register]
        made.append(combine.select(has_before[chunk], combine(befores[chunk], prefix), prefix))
    return tuple(map(list, zip(*made)))


def _chunks_of_registers(layout: LinearLayout, axis: int) -> list[int]:
    """Per register of a tile the register of its totals that belongs to it."""
    first, bits = axis_bits(layout, axis)
    inside = bits - (scan_plan(layout, axis).chunks - 1).bit_length()
    dropped = (1 << inside) - 1 << first
    weights, kept = [], 0
    for column in layout[REGISTER]:
        weights.append(0 if column & dropped else 1 << kept)
        kept += not column & dropped
    return gf2.images(tuple(weights))

"""Code of scans, and of reductions by any function, within each warp.

Elements are combined in order.  What a group of registers and lanes combines to is its total:

    run of registers    a running total takes in one group after the other
    run of lanes        log2(lanes) steps; step i takes in what is 2**i lanes before

    4 elements in a thread, 2 lanes:     lane 0: a b c d          lane 1: e f g h
    registers                            a ab abc abcd            e ef efg efgh
    lanes: inclusive                     abcd                     abcdefgh
    lanes: what comes before             -                        abcd
    result                               a ab abc abcd            abcde abcdef ...

Where operands can be exchanged, a step is that of a butterfly, which has the total in every lane;
else the total is the last lane's.  A reduction gathers in the first lane: it selects nothing.
Source: Kogge, Stone, "A Parallel Algorithm for the Efficient Solution of a General Class of
Recurrence Equations"; Hillis, Steele, "Data Parallel Algorithms".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

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
from blocknumba.nvvm_lower.services.shared_memory import (
    from_lane, from_lane_before, from_lane_xor,
)
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
        self.commutes = op.attrs["combination"] in COMMUTATIVE

    def __call__(self, left: Element, right: Element) -> Element:
        for arg, register in zip(self._region.args, (*left, *right), strict=True):
            self.emitter.values[arg] = [register]
        return tuple(made[0] for made in self.emitter.run(self._region))

    def select(self, condition: str, x: Element, y: Element) -> Element:
        """x where condition, an i1, holds, else y."""
        if ALWAYS == condition:
            return x
        body = self.emitter.body
        return tuple(body.select(condition, register_type(dtype), *pair)
                     for dtype, *pair in zip(self.dtypes, x, y))

    def moved(self, move: Callable[..., str], element: Element, *where: object) -> Element:
        """An element of another lane, by a service that moves a register."""
        return tuple(move(self.emitter, dtype, value, *where)
                     for dtype, value in zip(self.dtypes, element))

    def either(self, x: str, y: str) -> str:
        """The disjunction of two i1."""
        return ALWAYS if ALWAYS in (x, y) else self.emitter.body.binary("or", I1, x, y)


class _Lanes:
    """Lanes whose numbers differ in some neighbouring bits, in the order of a scan."""

    def __init__(self, emitter: Emitter, bits: tuple[int, ...], reverse: bool):
        self._emitter, self._reverse = emitter, reverse
        self._first, self._end = 1 << bits[0], 2 << bits[-1]
        self.distances = [1 << bit for bit in bits]

    def before(self, combine: _Combiner, element: Element, distance: int) -> Element:
        """The element of the lane a distance before; this lane's where there is none."""
        return combine.moved(from_lane_before, element, distance, self._end, self._reverse)

    def after(self, combine: _Combiner, element: Element, distance: int) -> Element:
        """The element of the lane a distance after; this lane's where there is none."""
        return combine.moved(from_lane_before, element, distance, self._end, not self._reverse)

    def has_before(self, distance: int) -> str:
        """Whether a lane is a distance before; an i1."""
        body = self._emitter.body
        place = body.binary("and", I32, self._emitter.threads.lane, str(self._end - 1))
        if self._reverse:
            return body.compare("icmp ult", I32, place, str(self._end - distance))
        return body.compare("icmp uge", I32, place, str(distance))

    def is_later(self, distance: int) -> str:
        """Whether this lane comes after the one whose number differs in a bit; an i1."""
        body = self._emitter.body
        masked = body.binary("and", I32, self._emitter.threads.lane, str(distance))
        return body.compare(f"icmp {'eq' if self._reverse else 'ne'}", I32, masked, "0")

    def of_end(self, combine: _Combiner, element: Element, last: bool) -> Element:
        """The element of the last lane, or of the first one."""
        body, lane, mask = self._emitter.body, self._emitter.threads.lane, self._end - self._first
        end = (body.binary("or", I32, lane, str(mask)) if last != self._reverse
               else body.binary("and", I32, lane, str(~mask)))
        return combine.moved(from_lane, element, end)


def _neighbours(bits: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Runs of bits each of which is one above the one before it."""
    for _, run in groupby(enumerate(bits), key=lambda pair: pair[1] - pair[0]):
        yield tuple(bit for _, bit in run)


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
                continue
            for run in _neighbours(bits):
                self._lanes(_Lanes(self._combine.emitter, run, self._reverse))

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

    def _lanes(self, lanes: _Lanes) -> None:
        """Combine the totals of lanes, in order."""
        combined = (self._exchanged if self._combine.commutes
                    else self._shifted if self._keeps else self._gathered)
        for group, total in self.totals.items():
            inclusive, everything = combined(lanes, total)
            if self._keeps:
                distance = lanes.distances[0]
                before = lanes.before(self._combine, inclusive, distance)
                self._precede(before, lanes.has_before(distance), group, inclusive)
            self.totals[group] = everything

    def _exchanged(self, lanes: _Lanes, total: Element) -> tuple[Element, Element]:
        """The prefix of each lane and the total of all of them, in any order."""
        combine, inclusive = self._combine, total
        for distance in lanes.distances:
            other = combine.moved(from_lane_xor, total, distance)
            if self._keeps:
                inclusive = combine.select(lanes.is_later(distance), combine(other, inclusive),
                                           inclusive)
            total = combine(total, other)
        return inclusive, total

    def _shifted(self, lanes: _Lanes, inclusive: Element) -> tuple[Element, Element]:
        """The same in order of the lanes."""
        combine = self._combine
        for distance in lanes.distances:
            before = lanes.before(combine, inclusive, distance)
            inclusive = combine.select(lanes.has_before(distance), combine(before, inclusive),
                                       inclusive)
        return inclusive, lanes.of_end(combine, inclusive, last=True)

    def _gathered(self, lanes: _Lanes, total: Element) -> tuple[Element, Element]:
        """The total of all lanes, in order; what the first lane holds is right."""
        for distance in lanes.distances:
            total = self._combine(total, lanes.after(self._combine, total, distance))
        return total, lanes.of_end(self._combine, total, last=False)

    def _precede(self, before: Element, holds: str, group: int, total: Element) -> None:
        """Put an element before a group of registers.

        holds: whether there is one, in this thread.  total: what the group combines to with it,
        or without it where there is none.
        """
        if not self._keeps:
            return
        for register in self._members[group]:
            prefix = self.prefixes[register]
            ends_group = prefix.value is self.totals[group]
            self.prefixes[register] = (_Prefix(total) if ends_group
                                       else self._after(before, holds, prefix))

    def _after(self, before: Element, holds: str, prefix: _Prefix) -> _Prefix:
        combine = self._combine
        if prefix.value is None:
            return _Prefix(before, holds)
        made = combine.select(prefix.holds, combine(before, prefix.value), before)
        return _Prefix(combine.select(holds, made, prefix.value),
                       combine.either(holds, prefix.holds))

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

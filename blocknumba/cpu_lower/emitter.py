"""The emitter: tiles that are computed element by element, where a loop nest asks for them.

A tile is lazy: nothing is emitted for `%y = exp %x` until a nest (a store, a reduction, a product)
asks for its element at some coordinates. One of the coordinates may be that of the lanes:

    nest of a store of shape (4, 64), 16 lanes along axis 1

      for i in range(4):
        for j in range(0, 64, 16):           coordinates (i, j + lane)
          %x at (i, j + lane)                one load of 16 elements
          %y at (i, j + lane)                exp of a vector
          store

What is dear and asked for by several nests is kept in a buffer (see plans/planning.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from blocknumba.cpu_lower.bounds import clamped
from blocknumba.cpu_lower.elements import Lanes, uniform
from blocknumba.cpu_lower.lane_writer import Buffer, Coordinates, LaneWriter
from blocknumba.cpu_lower.plans.planning import ROOTS, Plan
from blocknumba.cpu_lower.plans.private_copies import private_copies
from blocknumba.cpu_lower.plans.rows_in_turn import RowsInTurn
from blocknumba.cpu_lower.target import CpuTarget
from blocknumba.cpu_lower.writer import UNLIKELY, Module
from blocknumba.tile_ir.ir.function import Function, Op, OpDef, Region, Value
from blocknumba.tile_ir.ir.opdef import TERMINATOR, OpTable
from blocknumba.tile_ir.ops.map import HostCode

Access = tuple[Value, Coordinates]
Element = Callable[..., Lanes]  # (emitter, op, access, operands) -> its element
Operands = Callable[..., list[Access]]  # (emitter, op, access) -> what it needs

ELEMENTS = OpTable[Element]("code of an element for CPUs")
OPERANDS: dict[str, Operands] = {}  # of ops that need other elements than their own coordinates
MOVING: set[str] = set()  # ops whose operands' elements are not at the coordinates of the result
root = ROOTS
MAX_STACK_BYTES = 1 << 16  # of buffers; what is more lies on the heap


def element(*opdefs: OpDef, operands: Operands | None = None,
            moves: bool = True) -> Callable[[Element], Element]:
    """Decorator: the code of one element of pure ops.

    operands: which elements of the operands it needs, where those are not simply the ones at the
        coordinates of the result.  moves: whether their coordinates are others.
    """
    def register(function: Element) -> Element:
        if operands is not None:
            OPERANDS.update((opdef.name, operands) for opdef in opdefs)
            if moves:
                MOVING.update(opdef.name for opdef in opdefs)
        return ELEMENTS(*opdefs)(function)
    return register


@dataclass(slots=True)
class Known:
    """Facts that hold where the code is being written; a branch begins with a copy.

    scalars: the names of scalars.  buffers: tiles in memory.  elements: those that were computed,
    by value and coordinates.  unmasked: masks that are true throughout, and clamps of indices that
    change none.
    """

    scalars: dict[Value, str] = field(default_factory=dict)
    buffers: dict[Value, Buffer] = field(default_factory=dict)
    elements: dict[Access, Lanes] = field(default_factory=dict)
    unmasked: frozenset[Value] = frozenset()

    def copy(self) -> Known:
        return Known(dict(self.scalars), dict(self.buffers), dict(self.elements), self.unmasked)


@dataclass(frozen=True, slots=True)
class Failure:
    """A reason for which a program stops.

    kind: "assert", "step" (of a range, which must not be 0) or "memory"; op: None for memory.
    """

    kind: str
    op: Op | None


class Emitter(LaneWriter):
    """The state of the lowering of one function.

    copies: of arrays, that atomic ops add to instead.
    nearby: of pointers at constant distances from each other, the last one that was written.
    in_turn: how rows of programs take turns; row: then the coordinates of the present one.
    filling: values that the present nest stores to their buffers as it computes them.
    linked: scalar functions that the code calls, by the symbols that it calls them by.
    """

    def __init__(self, fn: Function, target: CpuTarget, module: Module, *, disjoint: bool,
                 fastmath: bool = False):
        super().__init__(module)
        self.function, self.target, self.fastmath = fn, target, fastmath
        self.plan = Plan(fn, target, disjoint)
        self.copies = private_copies(fn, disjoint)
        self.nearby: dict[object, Value] = {}
        self.in_turn: RowsInTurn | None = None
        self.row: dict[int, Lanes] = {}
        self.known = Known()
        self.filling: frozenset[Value] = frozenset()
        self.failures: list[Failure] = [Failure("memory", None)]
        self.versions = 0  # regions that were written twice
        self.prints: list[Op] = []
        self.linked: dict[str, HostCode] = {}

    # elements -----------------------------------------------------------------------------------
    def scalar(self, value: Value) -> str:
        """The name of a scalar."""
        return self.known.scalars[value]

    def at(self, value: Value, coordinates: Coordinates) -> Lanes:
        """The element of a value at coordinates; what it needs is computed first."""
        elements = self.known.elements
        needs: dict[Access, list[Access]] = {}  # coordinates are computed once
        waiting = [(value, coordinates)]
        while waiting:
            access = waiting[-1]
            if access in elements:
                waiting.pop()
                continue
            found = self._at_hand(access)
            if found is None:
                needed = needs.get(access)
                if needed is None:
                    needed = needs[access] = self.operands_at(*access)
                missing = [other for other in needed if other not in elements]
                if missing:
                    waiting += reversed(missing)
                    continue
                operands = [elements[other] for other in needed]
                found = operands[0] if access[0] in self.known.unmasked else ELEMENTS[
                    access[0].owner.name](self, access[0].owner, access, operands)
            elements[access] = found
            if access[0] in self.filling:
                self.keep(access[0], access[1], found)
            waiting.pop()
        return elements[value, coordinates]

    def _at_hand(self, access: Access) -> Lanes | None:
        """An element that need not be computed: a scalar, or one that lies in a buffer."""
        value, coordinates = access
        if not value.type.shape:
            return uniform(self.known.scalars[value])
        if value in self.known.unmasked and value not in self.plan.clamps:
            return uniform("true")
        buffer = self.known.buffers.get(value)
        if buffer is None or value in self.filling:
            return None
        return self.read(value.type, buffer, coordinates)

    def operands_at(self, value: Value, coordinates: Coordinates) -> list[Access]:
        """The elements of operands of which an element is made."""
        if value in self.known.unmasked:
            return [(clamped(value.owner), coordinates)] if value in self.plan.clamps else []
        operands = OPERANDS.get(value.owner.name)
        if operands is not None:
            return operands(self, value.owner, (value, coordinates))
        return [(operand, coordinates if operand.type.shape else ())
                for operand in value.owner.operands]

    def ahead(self, accesses: Sequence[Access], index: str) -> None:
        """Compute, before the innermost loop, what does not depend on its counter."""
        waiting, seen = list(accesses), set()
        while waiting:
            access = waiting.pop()
            value, coordinates = access
            if access in seen or not value.type.shape:
                continue
            seen.add(access)
            if all(x.name != index for x in coordinates):
                if not self.plan.is_free(value):
                    self.at(value, coordinates)
            elif value not in self.known.buffers and (
                    value.owner.name not in MOVING or value.owner.name in ("broadcast", "splat")):
                waiting += self.operands_at(value, coordinates)

    def keep(self, value: Value, coordinates: Coordinates, x: Lanes,
             buffer: Buffer | None = None) -> None:
        """Store an element to a value's buffer."""
        to = self.place(value.type.dtype, buffer or self.known.buffers[value], coordinates)
        self.store(value.type.dtype, to, x)

    # nests --------------------------------------------------------------------------------------
    @contextmanager
    def inside(self, lanes: int = 0) -> Iterator[None]:
        """A block whose elements are not known after it.  lanes: of its nest."""
        before, known = self.lanes, self.known.elements
        self.known.elements, self.lanes = dict(known), lanes or before
        try:
            yield
        finally:
            self.lanes, self.known.elements = before, known

    def nest(self, shape: tuple[int, ...], axis: int | None, lanes: int,
             body: Callable[[Coordinates], None],
             reads: Callable[[Coordinates], Sequence[Access]] = lambda coordinates: (),
             together: int = 1) -> None:
        """Run body(coordinates) for all elements of a shape, lanes of them at once along an axis.

        axis: that of the lanes, innermost; None for one lane.
        reads: what the body asks for; of it, what the innermost loop leaves alone is computed
            before it.
        together: vectors that the body takes in one go.
        """
        with self.inside(lanes):
            self.known.elements = {}
            order = [a for a in range(len(shape)) if a != axis and a not in self.row]
            order += [] if axis is None else [axis]
            self._loops(shape, axis, order, dict(self.row), body, reads, together)

    def _loops(self, shape: tuple[int, ...], axis: int | None, order: list[int],
               found: dict[int, Lanes], body: Callable, reads: Callable, together: int) -> None:
        if not order:
            body(tuple(found[a] for a in range(len(shape))))
            return
        current, *rest = order
        index = self.writer.name()
        own = Lanes(index, 1 if current == axis and self.lanes > 1 else 0)
        step = self.lanes * together if current == axis else 1
        if step > 1:
            self.align(index)
        if not rest and len(shape) > 1:
            full = {**found, current: own}
            self.ahead(reads(tuple(full[a] for a in range(len(shape)))), index)

        def run(_: str) -> None:
            with self.inside():
                self._loops(shape, axis, rest, {**found, current: own}, body, reads,
                            together)
        self.writer.loop(shape[current], step, run, index=index)

    def lanes_of(self, values: Sequence[Value], **options: object) -> tuple[int | None, int]:
        """Axis and number of the lanes of a nest; options: those of Plan.lanes_of."""
        return self.plan.lanes_of(values, self.known.buffers, **options)

    def materialise(self, value: Value, into: Buffer | None = None) -> Buffer:
        """Compute a tile into a buffer, unless it is there; `into`: a buffer to copy it to."""
        present = self.known.buffers.get(value)
        if present is not None and into is None:
            return present
        shape = value.type.shape
        axis, lanes = self.lanes_of([value], to_rows=into is not None)
        filled = self.prepare([value], shape, axis)
        buffer = into or self.known.buffers.get(value) or self.buffer(value.type, axis)
        filling = self.filling

        def body(coordinates: Coordinates) -> None:
            x = self.at(value, coordinates)
            if value not in self.filling or into is not None:
                self.keep(value, coordinates, x, buffer)

        self.filling = filled
        self.nest(shape, axis, lanes, body, lambda coordinates: [(value, coordinates)])
        self.filling = filling
        if into is None:
            self.known.buffers[value] = buffer
        return buffer

    def write(self, value: Value, buffer: Buffer) -> None:
        """Compute a tile into some memory."""
        self.materialise(value, buffer)

    def reads_in_place(self, value: Value, places: frozenset[str]) -> bool:
        """Whether an element of a value needs no elements of some buffers but those beside it.

        places: the addresses of the buffers.
        """
        waiting, seen = [(value, True)], set()
        while waiting:
            access = waiting.pop()
            found, aligned = access
            if access in seen or not found.type.shape:
                continue
            seen.add(access)
            buffer = self.known.buffers.get(found)
            if buffer is not None:
                if buffer.address in places and not aligned:
                    return False
                continue
            if self.plan.is_shared(found) and not aligned:
                continue  # it is computed before the nest
            inner = aligned and found.owner.name not in MOVING
            waiting += [(operand, inner) for operand in found.owner.operands]
        return True

    def prepare(self, values: Sequence[Value], shape: tuple[int, ...],
                axis: int | None) -> frozenset[Value]:
        """Before a nest: compute what it would compute several times or out of order.

        Returns the values that the nest stores to their buffers as it meets them, once each.
        """
        filled: dict[Value, None] = {}  # in an order that is the same each time
        order: list[Value] = []
        seen: dict[Value, bool] = {}
        waiting = [(value, True) for value in values]
        while waiting:
            value, aligned = waiting.pop()
            aligned = aligned and value.type.shape == shape
            if (not value.type.shape or value in self.known.buffers
                    or seen.get(value) is not None and (aligned or not seen[value])):
                continue
            seen[value] = aligned
            if self.plan.is_shared(value):
                if not aligned:
                    order.append(value)
                    continue
                filled[value] = None
            inner = aligned and value.owner.name not in MOVING
            waiting += [(operand, inner) for operand in value.owner.operands]
        for value in reversed(order):
            self.materialise(value)
        # what was materialised, and what it needed, is there now
        missing = [value for value in filled if value not in self.known.buffers]
        self.known.buffers |= {value: self.buffer(value.type, axis) for value in missing}
        return frozenset(missing)

    @contextmanager
    def filled_by(self, values: Sequence[Value], shape: tuple[int, ...],
                  axis: int | None) -> Iterator[None]:
        """A nest over a shape that reads values."""
        filled = self.prepare(values, shape, axis)
        outer, self.filling = self.filling, filled
        try:
            yield
        finally:
            self.filling = outer

    # regions ------------------------------------------------------------------------------------
    def run(self, region: Region) -> Op:
        """Write the ops of a region, up to its terminator, which is returned."""
        for op in region.ops:
            if op.opdef.has(TERMINATOR):
                continue
            if op.name in ROOTS:
                for value in self.plan.needed_before(op):
                    self.materialise(value)
                ROOTS[op.name](self, op)
                continue
            for value in op.results:
                if not value.type.shape:
                    self.known.scalars[value] = self.compute_scalar(value)
                elif self.plan.is_eager(value):
                    self.materialise(value)
        return region.terminator

    def compute_scalar(self, value: Value) -> str:
        """The name of a scalar that an op makes."""
        needed = self.operands_at(value, ())
        operands = [self.at(*access) for access in needed]
        return ELEMENTS[value.owner.name](self, value.owner, (value, ()), operands).name

    def fail_if(self, condition: str, failure: Failure, element_index: str = "0") -> None:
        """Stop the program, with an error, if an i1 holds."""
        if failure not in self.failures:  # a region may be written twice
            self.failures.append(failure)
        number = self.failures.index(failure) + 1
        with self.writer.only_if(condition, UNLIKELY):
            self.writer.do(f"store i64 {self._first_axis_fastest()}, ptr %record, align 8")
            place = self.writer.assign("getelementptr inbounds i64, ptr %record, i64 1")
            self.writer.do(f"store i64 {element_index}, ptr {place}, align 8")
            self.writer.do(f"store i32 {number}, ptr %status")
            self.writer.branch("exit")
            self.writer.begin(self.writer.label("unreachable"))

    def _first_axis_fastest(self) -> str:
        """The number of the program where the first axis of the grid runs fastest, an i64."""
        number = "0"
        for axis in (2, 1, 0):
            own = self.writer.convert("zext", "i32", f"%program{axis}", "i64")
            number = self.writer.add(
                self.writer.multiply(number, f"%wide{axis}", "i64"), own, "i64")
        return number

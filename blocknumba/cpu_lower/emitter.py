"""The emitter: tiles that are computed element by element, where a loop nest asks for them.

A tile is lazy: nothing is emitted for `%y = exp %x` until a nest (a store, a reduction, a product)
asks for its element at some coordinates. One of the coordinates may be that of the lanes:

    nest of a store of shape (4, 64), 16 lanes along axis 1

      for i in range(4):
        for j in range(0, 64, 16):           coordinates (i, j + lane)
          %x at (i, j + lane)                one load of 16 elements
          %y at (i, j + lane)                exp of a vector
          store

What is dear and asked for by several nests is kept in a buffer (see planning.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from blocknumba.cpu_lower.elements import (
    Lanes, literal, memory_type, register_type, size_bytes, uniform,
)
from blocknumba.cpu_lower.planning import Plan
from blocknumba.cpu_lower.target import CpuTarget
from blocknumba.cpu_lower.writer import (
    UNLIKELY, Module, Writer, is_number, suffix, vector,
)
from blocknumba.tile_ir.ir.function import Function, Op, OpDef, Region, Value
from blocknumba.tile_ir.ir.opdef import OPS, TERMINATOR
from blocknumba.tile_ir.ir.remarks import Remark
from blocknumba.tile_ir.ir.types import DType, PointerType, TileType

Coordinates = tuple[Lanes, ...]
Access = tuple[Value, Coordinates]
Element = Callable[..., Lanes]  # (emitter, op, access, operands) -> its element
Operands = Callable[..., list[Access]]  # (emitter, op, access) -> what it needs
Root = Callable[..., None]  # (emitter, op)

ELEMENTS: dict[str, Element] = {}
OPERANDS: dict[str, Operands] = {}  # of ops that need other elements than their own coordinates
MOVING: set[str] = set()  # ops whose operands' elements are not at the coordinates of the result
ROOTS: dict[str, Root] = {}
MAX_STACK_BYTES = 1 << 16  # of buffers; what is more lies on the heap
ALIGNMENT = 64


def element(*opdefs: OpDef, operands: Operands | None = None,
            moves: bool = True) -> Callable[[Element], Element]:
    """Decorator: the code of one element of pure ops.

    operands: which elements of the operands it needs, where those are not simply the ones at the
        coordinates of the result.  moves: whether their coordinates are others.
    """
    def register(function: Element) -> Element:
        for opdef in opdefs:
            assert OPS[opdef.name] is opdef and opdef.name not in ELEMENTS, f"{opdef.name} twice"
            ELEMENTS[opdef.name] = function
            if operands is not None:
                OPERANDS[opdef.name] = operands
                if moves:
                    MOVING.add(opdef.name)
        return function
    return register


def root(*opdefs: OpDef) -> Callable[[Root], Root]:
    """Decorator: the code of ops that run where they stand, in order."""
    def register(function: Root) -> Root:
        for opdef in opdefs:
            assert OPS[opdef.name] is opdef and opdef.name not in ROOTS, f"{opdef.name} twice"
            ROOTS[opdef.name] = function
        return function
    return register


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tile in memory.

    address: of its first element; strides: elements from one to the next, for each axis.
    """

    address: str
    strides: tuple[int, ...]

    def is_row_major(self, shape: tuple[int, ...]) -> bool:
        """Whether the elements of a tile of a shape lie in C order, without gaps."""
        size = 1
        for extent, stride in zip(reversed(shape), reversed(self.strides)):
            if stride != size:
                return False
            size *= extent
        return True


@dataclass(slots=True)
class Known:
    """What is known where the code is being written; a branch begins with a copy.

    scalars: the names of scalars.  buffers: tiles in memory.  elements: those that were computed,
    by value and coordinates.  unmasked: masks that are true throughout.
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


class Emitter:
    """The state of the lowering of one function.

    lanes: of the nest that is being written; 1 outside nests.
    filling: values that the present nest stores to their buffers as it computes them.
    """

    def __init__(self, fn: Function, target: CpuTarget, module: Module, *, disjoint: bool):
        self.function, self.target, self.module = fn, target, module
        self.writer = Writer(module)
        self.plan = Plan(fn, target, disjoint)
        self.known = Known()
        self.lanes = 1
        self.filling: frozenset[Value] = frozenset()
        self.failures: list[Failure] = [Failure("memory", None)]
        self.versions = 0  # regions that were written twice
        self.prints: list[Op] = []
        self.remarks: list[Remark] = []
        self.buffer_bytes = self.most_buffer_bytes = 0
        self._aligned: set[str] = set()

    # types --------------------------------------------------------------------------------------
    def type(self, dtype: DType | PointerType, lanes: int) -> str:
        """The LLVM type of a number of elements in registers."""
        return vector(register_type(dtype), lanes)

    def names(self, dtype: DType | PointerType, elements: Sequence[Lanes]) -> tuple[list[str], int]:
        """The names of elements of one dtype and their number of lanes: 1 if all are uniform."""
        lanes = 1 if all(x.is_uniform for x in elements) else self.lanes
        return [self.dense(dtype, x, lanes) for x in elements], lanes

    def dense(self, dtype: DType | PointerType, x: Lanes, lanes: int | None = None) -> str:
        """The name of a vector, or of a scalar for one lane."""
        lanes = self.lanes if lanes is None else lanes
        if x.step is None or lanes == 1:
            return x.name
        scalar, writer = register_type(dtype), self.writer
        if x.is_uniform:
            return writer.splat(scalar, x.name, lanes)
        counter = "i64" if scalar == "ptr" else scalar
        steps = self._steps(counter, str(x.step), lanes)
        type_ = vector(counter, lanes)
        if scalar == "ptr":
            memory = memory_type(dtype.pointee)
            return writer.assign(f"getelementptr {memory}, ptr {x.name}, {type_} {steps}")
        base = writer.splat(scalar, x.name, lanes)
        return writer.assign(f"add {type_} {base}, {steps}")

    def _steps(self, scalar: str, step: str, lanes: int) -> str:
        """0, step, 2 * step, ..."""
        if is_number(step):
            return "<" + ", ".join(f"{scalar} {lane * int(step)}" for lane in range(lanes)) + ">"
        iota = "<" + ", ".join(f"{scalar} {lane}" for lane in range(lanes)) + ">"
        type_ = vector(scalar, lanes)
        return self.writer.assign(f"mul {type_} {self.writer.splat(scalar, step, lanes)}, {iota}")

    def function_call(self, dtype: DType | PointerType, symbol: str, definition: str,
                      arguments: Sequence[tuple[str, str]], lanes: int) -> str:
        """Call a function of the module, adding it."""
        self.module.add(symbol, definition)
        written = ", ".join(f"{type_} {value}" for type_, value in arguments)
        return self.writer.assign(f"call {self.type(dtype, lanes)} @{symbol}({written})")

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
                    needed = needs[access] = self._needed(access)
                missing = [other for other in needed if other not in elements]
                if missing:
                    waiting += reversed(missing)
                    continue
                found = ELEMENTS[access[0].owner.name](
                    self, access[0].owner, access, [elements[other] for other in needed])
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
        buffer = self.known.buffers.get(value)
        if buffer is None or value in self.filling:
            return None
        return self.read(value.type, buffer, coordinates)

    def _needed(self, access: Access) -> list[Access]:
        value, coordinates = access
        operands = OPERANDS.get(value.owner.name)
        if operands is not None:
            return operands(self, value.owner, access)
        return [(operand, coordinates if operand.type.shape else ())
                for operand in value.owner.operands if operand not in self.known.unmasked]

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
                waiting += self._needed(access)

    # buffers ------------------------------------------------------------------------------------
    def buffer(self, type_: TileType, fastest: int | None = None) -> Buffer:
        """New memory for a tile.  fastest: the axis whose elements are side by side."""
        shape = type_.shape
        order = [axis for axis in range(len(shape)) if axis != fastest]
        if fastest is not None:
            order.append(fastest)
        strides, size = [0] * len(shape), 1
        for axis in reversed(order):
            strides[axis] = size
            size *= shape[axis]
        start = self.buffer_bytes
        self.buffer_bytes += -(-size * size_bytes(type_.dtype) // ALIGNMENT) * ALIGNMENT
        self.most_buffer_bytes = max(self.most_buffer_bytes, self.buffer_bytes)
        address = self.writer.assign(f"getelementptr inbounds i8, ptr %scratch, i64 {start}")
        return Buffer(address, tuple(strides))

    def offset(self, strides: Sequence[int], coordinates: Coordinates) -> Lanes:
        """The index of an element in a buffer, an i32."""
        total = uniform(0)
        for x, stride in zip(coordinates, strides):
            total = self.index_sum(total, self.index_product(x, stride))
        return total

    def index_sum(self, x: Lanes, y: Lanes) -> Lanes:
        """The sum of two indices, which does not overflow."""
        if isinstance(x.step, int) and isinstance(y.step, int):
            return Lanes(self.writer.add(x.name, y.name), x.step + y.step)
        names = self.dense_index(x), self.dense_index(y)
        return Lanes(self.writer.assign(f"add {vector('i32', self.lanes)} {names[0]}, {names[1]}"))

    def index_product(self, x: Lanes, factor: int) -> Lanes:
        """An index times a number."""
        if isinstance(x.step, int):
            return Lanes(self.writer.multiply(x.name, str(factor)), x.step * factor)
        if factor == 1:
            return x
        type_ = vector("i32", self.lanes)
        return Lanes(self.writer.assign(f"mul {type_} {x.name}, splat (i32 {factor})"))

    def dense_index(self, x: Lanes) -> str:
        """The name of a vector of indices."""
        if x.step is None or self.lanes == 1:
            return x.name
        steps = self._steps("i32", str(x.step), self.lanes)
        type_ = vector("i32", self.lanes)
        base = self.writer.splat("i32", x.name, self.lanes)
        return base if x.step == 0 else self.writer.assign(f"add {type_} {base}, {steps}")

    def index_split(self, x: Lanes, size: int) -> tuple[Lanes, Lanes]:
        """Quotient and remainder of an index by a power of two."""
        writer = self.writer
        if x.is_uniform:
            return uniform(writer.divide(x.name, size)), uniform(writer.remainder(x.name, size))
        if x.step == 1 and size % self.lanes == 0 and self.is_aligned(x):
            return (uniform(writer.divide(x.name, size)),
                    Lanes(writer.remainder(x.name, size), 1))
        name, type_ = self.dense_index(x), vector("i32", self.lanes)
        shift, mask = size.bit_length() - 1, size - 1
        return (Lanes(writer.assign(f"lshr {type_} {name}, splat (i32 {shift})")),
                Lanes(writer.assign(f"and {type_} {name}, splat (i32 {mask})")))

    def align(self, index: str) -> None:
        """Declare an index a multiple of the number of lanes."""
        self._aligned.add(index)

    def is_aligned(self, x: Lanes) -> bool:
        """Whether the first lane's index is known to be a multiple of the number of lanes."""
        return x.name in self._aligned or (is_number(x.name) and int(x.name) % self.lanes == 0)

    def read(self, type_: TileType, buffer: Buffer, coordinates: Coordinates) -> Lanes:
        """Elements of a tile in memory."""
        from_ = self.place(type_.dtype, buffer, coordinates)
        return self.load(type_.dtype, from_, aligned=True)

    def keep(self, value: Value, coordinates: Coordinates, x: Lanes,
             buffer: Buffer | None = None) -> None:
        """Store an element to a value's buffer."""
        to = self.place(value.type.dtype, buffer or self.known.buffers[value], coordinates)
        self.store(value.type.dtype, to, x)

    def place(self, dtype: DType | PointerType, buffer: Buffer, coordinates: Coordinates) -> Lanes:
        """The addresses of elements of a buffer."""
        index, memory = self.offset(buffer.strides, coordinates), memory_type(dtype)
        if index.step is None:
            type_ = vector("i32", self.lanes)
            return Lanes(self.writer.assign(f"getelementptr inbounds {memory}, ptr "
                                            f"{buffer.address}, {type_} {index.name}"))
        if index.name == "0":
            return Lanes(buffer.address, index.step)
        return Lanes(self.writer.assign(f"getelementptr inbounds {memory}, ptr {buffer.address}, "
                                        f"i32 {index.name}"), index.step)

    # memory -------------------------------------------------------------------------------------
    def load(self, dtype: DType | PointerType, pointer: Lanes, mask: Lanes | None = None,
             other: Lanes | None = None, aligned: bool = False, flags: str = "") -> Lanes:
        """The elements at addresses; where the mask is false, other (0 if None), unread."""
        if mask is not None and mask.is_uniform:
            return self._load_if(dtype, pointer, mask.name, other, flags)
        memory, writer = memory_type(dtype), self.writer
        align = f"align {size_bytes(dtype)}"
        if pointer.is_uniform and mask is None:
            got = writer.assign(f"load {flags}{memory}, ptr {pointer.name}, {align}")
            return Lanes(self._from_memory(dtype, got, 1), 0)
        lanes = self.lanes
        type_ = vector(memory, lanes)
        if pointer.step == 1 and mask is None:
            got = writer.assign(f"load {flags}{type_}, ptr {pointer.name}, {align}")
        else:
            got = self._load_lanes(dtype, pointer, mask, other)
        return Lanes(self._from_memory(dtype, got, lanes))

    def _load_lanes(self, dtype: DType | PointerType, pointer: Lanes, mask: Lanes | None,
                    other: Lanes | None) -> str:
        """A load with a mask, or of elements that are not side by side."""
        memory, lanes, size = memory_type(dtype), self.lanes, size_bytes(dtype)
        type_, masks = vector(memory, lanes), vector("i1", lanes)
        condition = "splat (i1 true)" if mask is None else mask.name
        rest = "zeroinitializer" if other is None else self._to_memory(
            dtype, self.dense(dtype, other), lanes)
        name = suffix(memory, lanes)
        if pointer.step == 1:
            return self.writer.call(
                type_, f"llvm.masked.load.{name}.p0", ("ptr", f"align {size} {pointer.name}"),
                (masks, condition), (type_, rest))
        pointers = self.dense(PointerType(dtype), pointer)
        return self.writer.call(
            type_, f"llvm.masked.gather.{name}.{suffix('ptr', lanes)}",
            (vector("ptr", lanes), f"align {size} {pointers}"), (masks, condition), (type_, rest))

    def _load_if(self, dtype: DType | PointerType, pointer: Lanes, condition: str,
                 other: Lanes | None, flags: str) -> Lanes:
        """A load of all lanes or of none."""
        is_scalar = pointer.is_uniform and (other is None or other.is_uniform)
        lanes = 1 if is_scalar else self.lanes
        type_ = self.type(dtype, lanes)
        if other is None:
            rest = literal(0, dtype) if lanes == 1 else "zeroinitializer"
        else:
            rest = self.dense(dtype, other, lanes)
        name = self.writer.choose(condition, type_, lambda: self.dense(
            dtype, self.load(dtype, pointer, flags=flags), lanes), rest)
        return Lanes(name, 0 if is_scalar else None)

    def store(self, dtype: DType | PointerType, pointer: Lanes, x: Lanes,
              mask: Lanes | None = None) -> None:
        """Store elements to addresses, where the mask is true."""
        if mask is not None and mask.is_uniform:
            with self.writer.only_if(mask.name):
                self.store(dtype, pointer, x)
            return
        memory, size = memory_type(dtype), size_bytes(dtype)
        if pointer.is_uniform and (mask is None and x.is_uniform):
            value = self._to_memory(dtype, x.name, 1)
            self.writer.do(f"store {memory} {value}, ptr {pointer.name}, align {size}")
            return
        lanes = self.lanes
        type_ = vector(memory, lanes)
        value = self._to_memory(dtype, self.dense(dtype, x), lanes)
        if pointer.step == 1 and mask is None:
            self.writer.do(f"store {type_} {value}, ptr {pointer.name}, align {size}")
            return
        condition = "splat (i1 true)" if mask is None else mask.name
        masks, name = vector("i1", lanes), suffix(memory, lanes)
        if pointer.step == 1:
            self.writer.call("void", f"llvm.masked.store.{name}.p0", (type_, value),
                             ("ptr", f"align {size} {pointer.name}"), (masks, condition))
            return
        pointers = self.dense(PointerType(dtype), pointer)
        self.writer.call("void", f"llvm.masked.scatter.{name}.{suffix('ptr', lanes)}",
                         (type_, value), (vector("ptr", lanes), f"align {size} {pointers}"),
                         (masks, condition))

    def _from_memory(self, dtype: DType | PointerType, x: str, lanes: int) -> str:
        if register_type(dtype) != "i1":
            return x
        zero = "0" if lanes == 1 else "zeroinitializer"
        return self.writer.assign(f"icmp ne {vector('i8', lanes)} {x}, {zero}")

    def _to_memory(self, dtype: DType | PointerType, x: str, lanes: int) -> str:
        if register_type(dtype) != "i1":
            return x
        return self.writer.convert("zext", vector("i1", lanes), x, vector("i8", lanes))

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
            order = [a for a in range(len(shape)) if a != axis] + ([] if axis is None else [axis])
            self._loops(shape, axis, order, {}, body, reads, together)

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

    def materialise(self, value: Value, into: Buffer | None = None) -> Buffer:
        """Compute a tile into a buffer, unless it is there; `into`: a buffer to copy it to."""
        present = self.known.buffers.get(value)
        if present is not None and into is None:
            return present
        shape = value.type.shape
        axis, lanes = self.plan.lanes_of([value])
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

    def copy(self, type_: TileType, source: Buffer, target: Buffer) -> None:
        """Copy a tile from one buffer of the usual order to another."""
        size = type_.size * size_bytes(type_.dtype)
        self.writer.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", target.address),
                         ("ptr", source.address), ("i64", str(size)), ("i1", "false"))

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
        filled: set[Value] = set()
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
                (filled.add if aligned else order.append)(value)
                if not aligned:
                    continue
            inner = aligned and value.owner.name not in MOVING
            waiting += [(operand, inner) for operand in value.owner.operands]
        for value in reversed(order):
            filled.discard(value)
            self.materialise(value)
        for value in filled:
            self.known.buffers[value] = self.buffer(value.type, axis)
        return frozenset(filled)

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
        needed = self._needed((value, ()))
        operands = [self.at(*access) for access in needed]
        return ELEMENTS[value.owner.name](self, value.owner, (value, ()), operands).name

    def fail_if(self, condition: str, failure: Failure, element_index: str = "0") -> None:
        """Stop the program, with an error, if an i1 holds."""
        self.failures.append(failure)
        with self.writer.only_if(condition, UNLIKELY):
            self.writer.do("store i64 %program, ptr %record, align 8")
            place = self.writer.assign("getelementptr inbounds i64, ptr %record, i64 1")
            self.writer.do(f"store i64 {element_index}, ptr {place}, align 8")
            self.writer.do(f"store i32 {len(self.failures)}, ptr %status")
            self.writer.branch("exit")
            self.writer.begin(self.writer.label("unreachable"))

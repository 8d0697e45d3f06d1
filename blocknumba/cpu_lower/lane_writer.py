"""Vectors of lanes in a function: elements in registers, indices, buffers, loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.cpu_lower import strided
from blocknumba.cpu_lower.elements import (
    Lanes, literal, memory_type, register_type, size_bytes, uniform,
)
from blocknumba.cpu_lower.writer import Module, Writer, is_number, suffix, vector
from blocknumba.tile_ir.ir.types import DType, PointerType, TileType

Coordinates = tuple[Lanes, ...]
ALIGNMENT = 64  # of buffers: a cache line


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


class LaneWriter:
    """Writes the instructions of one function on elements of a number of lanes.

    lanes: of the nest that is being written; 1 outside nests.
    buffer_bytes, most_buffer_bytes: that buffers take now, and at most.
    """

    def __init__(self, module: Module):
        self.module, self.writer = module, Writer(module)
        self.lanes = 1
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
        elif strided.is_small(pointer.step) and mask is None and not flags:
            got = strided.load(writer, memory, size_bytes(dtype), lanes, pointer.name,
                               pointer.step)
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
            return self.writer.choose(self._any(condition), type_, lambda: self.writer.call(
                type_, f"llvm.masked.load.{name}.p0", ("ptr", f"align {size} {pointer.name}"),
                (masks, condition), (type_, rest)), rest)
        pointers = self.dense(PointerType(dtype), pointer)
        return self.writer.call(
            type_, f"llvm.masked.gather.{name}.{suffix('ptr', lanes)}",
            (vector("ptr", lanes), f"align {size} {pointers}"), (masks, condition), (type_, rest))

    def _any(self, mask: str) -> str:
        """Whether a mask, the name of a vector of i1, is true in any lane.

        An access of no lane at all, beyond the end of an array, is slow where its page is nobody's:
        processors then take the exception, and drop it.
        """
        return self.writer.call("i1", f"llvm.vector.reduce.or.{suffix('i1', self.lanes)}",
                                (vector("i1", self.lanes), mask))

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
        if strided.is_small(pointer.step) and mask is None:
            strided.store(self.writer, memory, size, lanes, pointer.name, pointer.step, value)
            return
        condition = "splat (i1 true)" if mask is None else mask.name
        masks, name = vector("i1", lanes), suffix(memory, lanes)
        if pointer.step == 1:
            with self.writer.only_if(self._any(condition)):
                self.writer.call("void", f"llvm.masked.store.{name}.p0", (type_, value),
                                 ("ptr", f"align {size} {pointer.name}"), (masks, condition))
            return
        pointers = self.dense(PointerType(dtype), pointer)
        self.writer.call("void", f"llvm.masked.scatter.{name}.{suffix('ptr', lanes)}",
                         (type_, value), (vector("ptr", lanes), f"align {size} {pointers}"),
                         (masks, condition))

    def store_side_by_side(self, dtype: DType | PointerType,
                           stores: Sequence[Sequence[Lanes]]) -> bool:
        """Store elements that fill memory together, if they do; whether they did.

        stores: (pointer, value, and the mask if there is one) of each, in the order in memory.
        """
        pointers = [pointer for pointer, *_ in stores]
        if any(len(own) > 2 for own in stores) or any(
                pointer.step != len(stores) for pointer in pointers) or self.lanes == 1:
            return False
        values = [self._to_memory(dtype, self.dense(dtype, value), self.lanes)
                  for _, value in stores]
        strided.store_all(self.writer, memory_type(dtype), size_bytes(dtype), self.lanes,
                          pointers[0].name, values)
        return True

    def _from_memory(self, dtype: DType | PointerType, x: str, lanes: int) -> str:
        if register_type(dtype) != "i1":
            return x
        zero = "0" if lanes == 1 else "zeroinitializer"
        return self.writer.assign(f"icmp ne {vector('i8', lanes)} {x}, {zero}")

    def _to_memory(self, dtype: DType | PointerType, x: str, lanes: int) -> str:
        if register_type(dtype) != "i1":
            return x
        return self.writer.convert("zext", vector("i1", lanes), x, vector("i8", lanes))

    def copy(self, type_: TileType, source: Buffer, target: Buffer) -> None:
        """Copy a tile from one buffer of the usual order to another."""
        size = type_.size * size_bytes(type_.dtype)
        self.writer.call("void", "llvm.memcpy.p0.p0.i64", ("ptr", target.address),
                         ("ptr", source.address), ("i64", str(size)), ("i1", "false"))

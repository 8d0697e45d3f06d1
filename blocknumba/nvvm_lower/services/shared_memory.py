"""Exchange of elements between threads: through shared memory, and within warps."""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.movement import RegisterMove, Select, ShuffleMove, plan_move
from blocknumba.gpu_layout.layouts.registers import LANE_BITS, REGISTER, replication
from blocknumba.gpu_layout.layouts.shared import (
    LdmatrixAccess, SharedAccess, access, ldmatrix_access,
)
from blocknumba.nvvm_lower.elements import element_bits, register_type, zero
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import I32, I8, SHARED, pointer, vector
from blocknumba.nvvm_lower.ptx import matrix as matrix_ptx, memory as memory_ptx, warp as ptx
from blocknumba.nvvm_lower.services.address import index_at
from blocknumba.nvvm_lower.services.words import (
    WORD_BITS, Dtype, Words, of_words, pack, shuffle_type, to_words, unpack, words_of,
)
from blocknumba.tile_ir.ir.types import DType


def write(emitter: Emitter, dtype: Dtype, values: Registers, layout: LinearLayout,
          buffer: str, shared: LinearLayout) -> None:
    """Write a tile that has a register layout into the buffer at a byte offset.

    Of threads that hold copies one writes.
    """
    plan = access(layout, shared, element_bits(dtype))
    predicate = emitter.threads.keeps(replication(layout))
    for group, index in zip(plan.groups, leaders(emitter, plan), strict=True):
        write_vector(emitter, dtype, buffer, index, [values[register] for register in group],
                     predicate)


def read(emitter: Emitter, dtype: Dtype, layout: LinearLayout, buffer: str,
         shared: LinearLayout) -> Registers:
    """The tile in the buffer at a byte offset, in a register layout."""
    plan = access(layout, shared, element_bits(dtype))
    values: dict[int, str] = {}
    for group, index in zip(plan.groups, leaders(emitter, plan), strict=True):
        loaded = read_vector(emitter, dtype, buffer, index, plan.vector)
        values.update(zip(group, loaded, strict=True))
    return [values[register] for register in range(len(values))]


def read_vector(emitter: Emitter, dtype: Dtype, buffer: str, index: str, count: int) -> Registers:
    """Elements side by side in the buffer at a byte offset, from the one of an index on."""
    address = _address(emitter, buffer, index, dtype)
    loaded = _read_words(emitter, address, words_of(dtype, count))
    return unpack(emitter, dtype, loaded, count)


def write_vector(emitter: Emitter, dtype: Dtype, buffer: str, index: str, values: Registers,
                 predicate: str) -> None:
    """Write elements side by side where predicate, "" or an i1, holds; buffer, index: as above."""
    packed = pack(emitter, dtype, values)
    _write_words(emitter, _address(emitter, buffer, index, dtype), packed,
                 words_of(dtype, len(values)), predicate)


def write_scalar(emitter: Emitter, dtype: Dtype, value: str, buffer: str, predicate: str) -> None:
    """Write one element where predicate, "" or an i1, holds."""
    write_vector(emitter, dtype, buffer, "0", [value], predicate)


def read_scalar(emitter: Emitter, dtype: Dtype, buffer: str) -> str:
    """The element in the buffer at a byte offset."""
    loaded = _read_words(emitter, _address(emitter, buffer, "0", dtype), words_of(dtype, 1))
    return unpack(emitter, dtype, loaded, 1)[0]


def address_of(emitter: Emitter, buffer: str) -> str:
    """The address of the buffer at a byte offset, the i32 that inline PTX takes."""
    start = emitter.body.convert("ptrtoint", pointer("[0 x i8]", SHARED), emitter.shared_memory,
                                 I32)
    return start if buffer == "0" else emitter.body.binary("add", I32, start, buffer)


def element_address(emitter: Emitter, buffer: str, index: str, dtype: Dtype) -> str:
    """The address of an element of the buffer at a byte offset, as address_of."""
    address = _address(emitter, buffer, index, dtype)
    return emitter.body.convert("ptrtoint", pointer(I8, SHARED), address, I32)


def leaders(emitter: Emitter, plan: SharedAccess) -> Registers:
    """Per group the offset of its first element, in elements."""
    return [index_at(emitter.body, emitter.threads, plan.offsets, group[0])
            for group in plan.groups]


def _address(emitter: Emitter, buffer: str, index: str, dtype: Dtype) -> str:
    """The address of an element of the buffer at a byte offset, as an i8 pointer."""
    body, size_bytes = emitter.body, element_bits(dtype) // 8
    base = body.pure(f"getelementptr [0 x i8], {pointer('[0 x i8]', SHARED)} "
                     f"{emitter.shared_memory}, i32 0, i32 {buffer}")
    known = emitter.threads.sums.get(index)
    if known is None:
        return _moved(emitter, base, body.binary("mul", I32, index, str(size_bytes)))
    # the constant last: accesses that differ in it alone share a register
    moved = _moved(emitter, base, body.binary("mul", I32, known.base, str(size_bytes)))
    return _moved(emitter, moved, str(known.constant * size_bytes))


def _moved(emitter: Emitter, address: str, distance_bytes: str) -> str:
    """An i8 pointer to shared memory, moved."""
    type_ = pointer(I8, SHARED)
    return emitter.body.pure(f"getelementptr i8, {type_} {address}, i32 {distance_bytes}")


def _write_words(emitter: Emitter, address: str, packed: list[str], words: Words,
                 predicate: str) -> None:
    body = emitter.body
    if predicate:
        row = memory_ptx.Access("shared", words.type, words.count, predicated=True)
        if row.register != row.word:
            packed = [body.convert("zext", row.word, word, row.register) for word in packed]
        number = body.convert("ptrtoint", pointer(I8, SHARED), address, I32)
        emitter.assembly(memory_ptx.store(row), number, emitter.flag(predicate), *packed)
        return
    type_, value = words.type, packed[0]
    if words.count > 1:
        type_, value = vector(words.type, words.count), "undef"
        for i, word in enumerate(packed):
            value = body.pure(f"insertelement {type_} {value}, {words.type} {word}, i32 {i}")
    address = body.convert("bitcast", pointer(I8, SHARED), address, pointer(type_, SHARED))
    body.do(f"store {type_} {value}, {pointer(type_, SHARED)} {address}, align {_bytes(words)}")


def _read_words(emitter: Emitter, address: str, words: Words) -> list[str]:
    body = emitter.body
    type_ = words.type if words.count == 1 else vector(words.type, words.count)
    address = body.convert("bitcast", pointer(I8, SHARED), address, pointer(type_, SHARED))
    loaded = body.assign(f"load {type_}, {pointer(type_, SHARED)} {address}, "
                         f"align {_bytes(words)}")
    if words.count == 1:
        return [loaded]
    return [body.pure(f"extractelement {type_} {loaded}, i32 {i}") for i in range(words.count)]


def _bytes(words: Words) -> int:
    return words.count * memory_ptx.WORD_BITS[words.type] // 8


def elements_of_word(dtype: DType) -> int:
    """Number of elements in a word."""
    return max(1, WORD_BITS // dtype.bits)


def word_type(dtype: DType) -> str:
    """The LLVM type of a word: that of the bits, but of a float64 itself."""
    return I32 if dtype.bits <= WORD_BITS else register_type(dtype)


def _word(emitter: Emitter, dtype: DType, values: Sequence[str]) -> str:
    """The word of elements."""
    (word,) = pack(emitter, dtype, list(values))
    return emitter.body.convert("bitcast", words_of(dtype, len(values)).type, word,
                                word_type(dtype))


class Tile:
    """A tile whose registers are asked for: one by one, or as words.

    A word has 32 bits, or the size of an element.
    """

    def __init__(self, emitter: Emitter, dtype: DType):
        self._emitter, self._dtype = emitter, dtype

    def element(self, register: int) -> str:
        """One register."""
        raise NotImplementedError

    def word(self, register: int) -> str:
        """The word that begins with a register."""
        stop = register + elements_of_word(self._dtype)
        return _word(self._emitter, self._dtype, [self.element(i) for i in range(register, stop)])

    def padded_word(self, registers: Sequence[int | None]) -> str:
        """The word of these registers, with zeros for None."""
        nothing = zero(self._dtype)
        return _word(self._emitter, self._dtype,
                     [nothing if i is None else self.element(i) for i in registers])


class RegisterTile(Tile):
    """A tile that is in registers already."""

    def __init__(self, emitter: Emitter, dtype: DType, values: Registers):
        super().__init__(emitter, dtype)
        self._values = values

    def element(self, register: int) -> str:
        """One register."""
        return self._values[register]


class SharedTile(Tile):
    """A tile in the buffer at a byte offset, as the registers of a layout.

    origin: offset of its first element, where the tile is a subset of the buffer.
    """

    def __init__(self, emitter: Emitter, dtype: DType, layout: LinearLayout, buffer: str,
                 shared: LinearLayout, origin: int = 0):
        super().__init__(emitter, dtype)
        self._buffer, self._origin = buffer, origin
        self._plan = access(layout, shared, dtype.bits)
        self._groups = {register: group for group in self._plan.groups for register in group}
        self._values: dict[int, str] = {}

    def element(self, register: int) -> str:
        """One register; it is read together with its neighbours in memory."""
        if register not in self._values:
            group = self._groups[register]
            index = index_at(self._emitter.body, self._emitter.threads, self._plan.offsets,
                             group[0], self._origin, held=True)
            read = read_vector(self._emitter, self._dtype, self._buffer, index, len(group))
            self._values.update(zip(group, read, strict=True))
        return self._values[register]


class MatrixTile(Tile):
    """A tile in the buffer at a byte offset, read by ldmatrix; origin: as of a SharedTile."""

    def __init__(self, emitter: Emitter, dtype: DType, plan: LdmatrixAccess, buffer: str,
                 origin: int = 0):
        super().__init__(emitter, dtype)
        self._plan, self._buffer, self._origin = plan, buffer, origin
        self._words: dict[int, tuple[str, ...]] = {}

    def element(self, register: int) -> str:
        """One register, taken out of its word."""
        count = elements_of_word(self._dtype)
        word = self.word(register - register % count)
        type_ = words_of(self._dtype, count).type
        word = self._emitter.body.convert("bitcast", I32, word, type_)
        return unpack(self._emitter, self._dtype, [word], count)[register % count]

    def word(self, register: int) -> str:
        """The word that begins with a register; it is read together with those beside it."""
        number, bit = divmod(register, self._plan.elements)
        if number not in self._words:
            self._words[number] = self._read(number)
        return self._words[number][bit // elements_of_word(self._dtype)]

    def _read(self, number: int) -> tuple[str, ...]:
        emitter, plan = self._emitter, self._plan
        index = index_at(emitter.body, emitter.threads, plan.addresses, number, self._origin,
                         held=True)
        address = element_address(emitter, self._buffer, index, self._dtype)
        return emitter.assembly(matrix_ptx.load(plan.matrices, plan.transposed), address)


def tile_in_shared(emitter: Emitter, dtype: DType, layout: LinearLayout, buffer: str,
                   shared: LinearLayout, origin: int = 0) -> Tile:
    """The tile in the buffer at a byte offset, read by ldmatrix where that is possible.

    origin: offset of its first element, where the tile is a subset of the buffer.
    """
    plan = ldmatrix_access(layout, shared, dtype.bits)
    if plan is not None:
        return MatrixTile(emitter, dtype, plan, buffer, origin)
    return SharedTile(emitter, dtype, layout, buffer, shared, origin)


def from_lane_xor(emitter: Emitter, dtype: Dtype, value: str, mask: int) -> str:
    """The element of this register in lane ^ mask."""
    row = ptx.shuffle("bfly", shuffle_type(dtype), mask)
    words = to_words(emitter, dtype, value)
    return of_words(emitter, dtype, [emitter.assembly(row, word)[0] for word in words])


def from_lane_before(emitter: Emitter, dtype: Dtype, value: str, distance: int, width: int,
                     reverse: bool = False) -> str:
    """The element of this register in lane - distance, or + distance, of each width lanes.

    What lies outside of them is this lane's own.
    """
    row = ptx.shuffle("down" if reverse else "up", shuffle_type(dtype), distance, width)
    words = to_words(emitter, dtype, value)
    return of_words(emitter, dtype, [emitter.assembly(row, word)[0] for word in words])


def from_lane(emitter: Emitter, dtype: Dtype, value: str, lane: str) -> str:
    """The element of this register in a lane, an i32 that may differ from thread to thread."""
    row = ptx.shuffle_from(shuffle_type(dtype))
    words = to_words(emitter, dtype, value)
    return of_words(emitter, dtype, [emitter.assembly(row, word, lane)[0] for word in words])


def moved(emitter: Emitter, dtype: Dtype, values: Registers, source: LinearLayout,
          wanted: LinearLayout) -> Registers:
    """A tile in layout source converted to layout wanted, without shared memory.

    wanted may hold elements several times, or only some of them.
    """
    if source == wanted:
        return values
    plan = plan_move(source, wanted, element_bits(dtype))
    if isinstance(plan, RegisterMove):
        return [values[register] for register in plan.sources]
    assert isinstance(plan, ShuffleMove), f"{source} to {wanted} needs shared memory"
    offered = _selected(emitter, dtype, values, plan.before)
    received = _shuffled(emitter, dtype, offered, plan)
    return _selected(emitter, dtype, received, plan.after)


def shifted(emitter: Emitter, dtype: Dtype, values: Registers, layout: LinearLayout,
            distance: int) -> Registers:
    """The tile in which element i is element i ^ distance of values (packed indices)."""
    location = gf2.solve(layout.columns, distance)
    assert location is not None, f"{layout} does not hold every element"
    register_bits = layout.bits(REGISTER)
    register, thread = location & (1 << register_bits) - 1, location >> register_bits
    assert not thread >> LANE_BITS, f"{layout} shifted by {distance} needs shared memory"
    turned = [values[i ^ register] for i in range(len(values))]
    if not thread:
        return turned
    return [from_lane_xor(emitter, dtype, value, thread) for value in turned]


def _selected(emitter: Emitter, dtype: Dtype, values: Registers,
              selects: tuple[Select, ...]) -> Registers:
    type_ = register_type(dtype)
    for select in selects:
        is_on = emitter.threads.parity(select.thread_mask)
        values = [emitter.body.select(is_on, type_, values[i ^ select.register_xor], value)
                  for i, value in enumerate(values)]
    return values


def _shuffled(emitter: Emitter, dtype: Dtype, offered: Registers, plan: ShuffleMove) -> Registers:
    """Step 2 of a ShuffleMove; equal steps are one shuffle."""
    if plan.stays_in_lane:
        return [offered[step.register] for step in plan.rounds]
    base = emitter.threads.image(plan.source_lane)
    received: dict[object, str] = {}
    for step in plan.rounds:
        if step not in received:
            lane = (emitter.body.binary("xor", I32, base, str(step.lane_xor)) if step.lane_xor
                    else base)
            received[step] = from_lane(emitter, dtype, offered[step.register], lane)
    return [received[step] for step in plan.rounds]

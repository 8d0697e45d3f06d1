"""Tiles in the program's shared memory."""

from __future__ import annotations

from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.registers import replication
from blocknumba.gpu_layout.shared import SharedAccess, access
from blocknumba.nvvm_lower.elements import element_bits
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import I8, I32, SHARED, pointer, vector
from blocknumba.nvvm_lower.ptx import memory as ptx
from blocknumba.nvvm_lower.services.address import index_at
from blocknumba.nvvm_lower.services.words import Dtype, Words, pack, unpack, words_of


def write(emitter: Emitter, dtype: Dtype, values: Registers, layout: LinearLayout,
          buffer: str, shared: LinearLayout) -> None:
    """Write a tile that has a register layout into the buffer at a byte offset.

    Of threads that hold copies one writes.
    """
    plan = access(layout, shared, element_bits(dtype))
    predicate = emitter.threads.keeps(replication(layout))
    for group, index in zip(plan.groups, _leaders(emitter, plan), strict=True):
        packed = pack(emitter, dtype, [values[register] for register in group])
        words = words_of(dtype, plan.vector)
        _write_words(emitter, _address(emitter, buffer, index, dtype), packed, words, predicate)


def read(emitter: Emitter, dtype: Dtype, layout: LinearLayout, buffer: str,
         shared: LinearLayout) -> Registers:
    """The tile in the buffer at a byte offset, in a register layout."""
    plan = access(layout, shared, element_bits(dtype))
    values: dict[int, str] = {}
    for group, index in zip(plan.groups, _leaders(emitter, plan), strict=True):
        loaded = read_vector(emitter, dtype, buffer, index, plan.vector)
        values.update(zip(group, loaded, strict=True))
    return [values[register] for register in range(len(values))]


def read_vector(emitter: Emitter, dtype: Dtype, buffer: str, index: str, count: int) -> Registers:
    """Elements side by side in the buffer at a byte offset, from the one of an index on."""
    address = _address(emitter, buffer, index, dtype)
    loaded = _read_words(emitter, address, words_of(dtype, count))
    return unpack(emitter, dtype, loaded, count)


def write_scalar(emitter: Emitter, dtype: Dtype, value: str, buffer: str, predicate: str) -> None:
    """Write one element where predicate, "" or an i1, holds."""
    packed = pack(emitter, dtype, [value])
    _write_words(emitter, _address(emitter, buffer, "0", dtype), packed, words_of(dtype, 1),
                 predicate)


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


def _leaders(emitter: Emitter, plan: SharedAccess) -> Registers:
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
        row = ptx.Access("shared", words.type, words.count, predicated=True)
        if row.register != row.word:
            packed = [body.convert("zext", row.word, word, row.register) for word in packed]
        number = body.convert("ptrtoint", pointer(I8, SHARED), address, I32)
        emitter.assembly(ptx.store(row), number, emitter.flag(predicate), *packed)
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
    return words.count * ptx.WORD_BITS[words.type] // 8

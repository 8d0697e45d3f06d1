"""Packing of neighbouring elements into the 32-bit words that accesses move."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.nvvm_lower.elements import element_bits, is_narrow, register_type
from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.nvvm_lower.llvm import FLOAT, I1, I32, I64, I8
from blocknumba.nvvm_lower.ptx import arithmetic as ptx
from blocknumba.nvvm_lower.services import narrow_floats
from blocknumba.tile_ir.ir.types import (
    DType, PointerType, bfloat16, bool_, float16, int16, uint16,
)

Dtype = DType | PointerType
BYTES_OF_WORD = 4
WORD_BITS = 32  # narrower elements are moved in words of this size, if there are enough of them
_PAIR = {float16: ptx.HALF_PAIR, bfloat16: ptx.BFLOAT_PAIR}


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one access: count words of an LLVM type, elements in each."""

    type: str
    count: int
    elements: int


def words_of(dtype: Dtype, vector: int) -> Words:
    """The words that hold vector neighbouring elements."""
    bits = element_bits(dtype)
    if isinstance(dtype, PointerType):
        return Words(I64, vector, 1)
    if bits >= WORD_BITS:
        return Words(register_type(dtype), vector, 1)
    word_bits = min(WORD_BITS, bits * vector)
    return Words(f"i{word_bits}", bits * vector // word_bits, word_bits // bits)


def pack(emitter: Emitter, dtype: Dtype, values: list[str]) -> list[str]:
    """The words that hold elements."""
    words = words_of(dtype, len(values))
    if isinstance(dtype, PointerType):
        pointer = register_type(dtype)
        return [emitter.body.convert("ptrtoint", pointer, value, I64) for value in values]
    if dtype == bool_:
        values = [emitter.body.convert("zext", I1, value, I8) for value in values]
    if words.elements == 1:
        return values
    groups = [values[i:i + words.elements] for i in range(0, len(values), words.elements)]
    return [emitter.packed.get(tuple(group)) or _packed(emitter, dtype, words.type, group)
            for group in groups]


def unpack(emitter: Emitter, dtype: Dtype, words: list[str], vector: int) -> list[str]:
    """The elements that words hold."""
    body, shape = emitter.body, words_of(dtype, vector)
    if isinstance(dtype, PointerType):
        return [body.convert("inttoptr", I64, word, register_type(dtype)) for word in words]
    if shape.elements == 1:
        values = words
    elif dtype.bits == 16:
        values = [half for word in words for half in emitter.assembly(ptx.UNPACK_16, word)]
    else:
        values = [_byte(emitter, shape.type, word, index)
                  for word in words for index in range(shape.elements)]
    if dtype == bool_:
        return [body.compare("icmp ne", I8, value, "0") for value in values]
    if shape.elements > 1:
        for i, word in enumerate(words):
            inside = values[i * shape.elements:(i + 1) * shape.elements]
            emitter.packed[tuple(inside)] = word
            if shape.type == I32:
                emitter.parts.update(
                    (value, (word, index)) for index, value in enumerate(inside))
    return values


def _packed(emitter: Emitter, dtype: DType, type_: str, group: list[str]) -> str:
    """The word that holds elements; those that were just made of wider ones are so in pairs."""
    if dtype.bits == 16:
        return _packed_pair(emitter, dtype, *group)
    if len(group) == BYTES_OF_WORD:
        found = _of_limited(emitter, dtype, group) or _of_low_bytes(emitter, group)
        if found is not None:
            return found
    sources = [emitter.rounded.get((dtype, value)) for value in group]
    if all(sources) and narrow_floats.converts_pairs(emitter) and (
            len({source.saturates for source in sources}) == 1):
        values = [source.value for source in sources]
        pairs = [narrow_floats.round_pair(emitter, dtype, *values[i:i + 2], sources[0].saturates)
                 for i in range(0, len(values), 2)]
        return pairs[0] if len(pairs) == 1 else emitter.assembly(ptx.PACK_16, *pairs)[0]
    origins = [emitter.parts.get(value) for value in group]
    if len(group) == BYTES_OF_WORD and all(origins):
        return _gathered(emitter, origins)
    return _packed_bytes(emitter, type_, group)


def _of_limited(emitter: Emitter, dtype: DType, group: list[str]) -> str | None:
    """The word of four integers that were just limited to 8 bits; None of others."""
    wide = [emitter.limited.get((dtype, value)) for value in group]
    if not all(wide):
        return None
    row = ptx.LIMITED_BYTES[dtype.name]
    (high,) = emitter.assembly(row, wide[3], wide[2], "0")
    return emitter.assembly(row, wide[1], wide[0], high)[0]


def _of_low_bytes(emitter: Emitter, group: list[str]) -> str | None:
    """The word of the low bytes of four integers that were just limited to 16 bits."""
    for dtype in (int16, uint16):
        wide = [emitter.limited.get((dtype, emitter.low_bytes.get(value))) for value in group]
        if all(wide):
            row = ptx.LIMITED_PAIR[dtype.name]
            (low,), (high,) = (emitter.assembly(row, wide[i + 1], wide[i]) for i in (0, 2))
            return emitter.assembly(ptx.permute(0, 2, 4, 6), low, high)[0]
    return None


def _gathered(emitter: Emitter, sources: list[tuple[str, int]]) -> str:
    """The word whose bytes are those of four (word, index) pairs."""
    low, i = _side_by_side(emitter, *sources[:2])
    high, j = _side_by_side(emitter, *sources[2:])
    return emitter.assembly(ptx.permute(i, i + 1, 4 + j, 5 + j), low, high)[0]


def _side_by_side(emitter: Emitter, first: tuple[str, int],
                  second: tuple[str, int]) -> tuple[str, int]:
    """A word that has the bytes of two (word, index) pairs side by side, and their index in it.

    Two with the same index come with their neighbours, which another word probably needs: a block
    of 4 by 4 bytes is transposed in eight instructions, not in twelve.
    """
    (x, a), (y, b) = first, second
    if a != b:
        return emitter.assembly(ptx.permute(a, 4 + b, a, 4 + b), x, y)[0], 0
    even = a & ~1
    return emitter.assembly(ptx.permute(even, 4 + even, even + 1, 5 + even), x, y)[0], 2 * (a & 1)


def _packed_pair(emitter: Emitter, dtype: DType, low: str, high: str) -> str:
    """Two 16-bit elements in a word; two that were just rounded are rounded together."""
    if is_narrow(dtype):
        sources = [emitter.rounded.get((dtype, value)) for value in (low, high)]
        if all(sources):
            return emitter.assembly(_PAIR[dtype], sources[1].value, sources[0].value)[0]
    wide = [emitter.limited.get((dtype, value)) for value in (high, low)]
    if all(wide):
        return emitter.assembly(ptx.LIMITED_PAIR[dtype.name], *wide)[0]
    return emitter.assembly(ptx.PACK_16, low, high)[0]


def _packed_bytes(emitter: Emitter, type_: str, values: list[str]) -> str:
    body = emitter.body
    word = body.convert("zext", I8, values[0], type_)
    for index, value in enumerate(values[1:], 1):
        moved = body.binary("shl", type_, body.convert("zext", I8, value, type_), str(8 * index))
        word = body.binary("or", type_, word, moved)
    return word


def _byte(emitter: Emitter, type_: str, word: str, index: int) -> str:
    moved = emitter.body.binary("lshr", type_, word, str(8 * index)) if index else word
    return emitter.body.convert("trunc", type_, moved, I8)


def to_words(emitter: Emitter, dtype: Dtype, value: str) -> list[str]:
    """One element as the 32-bit words (i32 or float) that shuffles move."""
    body = emitter.body
    if isinstance(dtype, PointerType) or dtype.bits == 64:
        type_ = register_type(dtype)
        opcode = "ptrtoint" if isinstance(dtype, PointerType) else "bitcast"
        return list(emitter.assembly(ptx.UNPACK_32, body.convert(opcode, type_, value, I64)))
    if register_type(dtype) == FLOAT:
        return [value]
    return [body.convert("zext", register_type(dtype), value, I32)]


def of_words(emitter: Emitter, dtype: Dtype, words: list[str]) -> str:
    """The element of the words of to_words."""
    body = emitter.body
    if isinstance(dtype, PointerType) or dtype.bits == 64:
        (value,) = emitter.assembly(ptx.PACK_32, *words)
        opcode = "inttoptr" if isinstance(dtype, PointerType) else "bitcast"
        return body.convert(opcode, I64, value, register_type(dtype))
    if register_type(dtype) == FLOAT:
        return words[0]
    return body.convert("trunc", I32, words[0], register_type(dtype))


def shuffle_type(dtype: Dtype) -> str:
    """The LLVM type of the words of to_words."""
    is_float = isinstance(dtype, DType) and register_type(dtype) == FLOAT
    return FLOAT if is_float else I32

"""Values that control flow hands on: narrow elements go in words, which saves registers.

A phi of 16 bits takes a register of 32, and its neighbours would be packed anew in every round.
"""

from __future__ import annotations

from blocknumba.nvvm_lower.elements import register_type
from blocknumba.nvvm_lower.emitter import Emitter, Registers, count
from blocknumba.nvvm_lower.services.words import WORD_BITS, pack, unpack, words_of
from blocknumba.tile_ir.types import DType, TileType


def handed_type(type_: TileType) -> str:
    """The LLVM type of each word of a value."""
    in_word = _in_word(type_)
    return register_type(type_.dtype) if in_word == 1 else words_of(type_.dtype, in_word).type


def to_hand_on(emitter: Emitter, type_: TileType, registers: Registers) -> Registers:
    """The words of a value."""
    in_word = _in_word(type_)
    if in_word == 1:
        return registers
    return [word for i in range(0, len(registers), in_word)
            for word in pack(emitter, type_.dtype, registers[i:i + in_word])]


def handed_on(emitter: Emitter, type_: TileType, words: Registers) -> Registers:
    """The registers of a value that came as words."""
    in_word = _in_word(type_)
    if in_word == 1:
        return words
    return [value for word in words for value in unpack(emitter, type_.dtype, [word], in_word)]


def _in_word(type_: TileType) -> int:
    """How many elements go in a word."""
    narrow = isinstance(type_.dtype, DType) and 8 <= type_.dtype.bits < WORD_BITS
    if type_.is_scalar or not narrow:
        return 1
    in_word = WORD_BITS // type_.dtype.bits
    return in_word if count(type_) % in_word == 0 else 1

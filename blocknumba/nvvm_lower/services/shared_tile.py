"""A tile in shared memory that is read piece by piece, each piece when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.gpu_layout.linear_layout import LinearLayout
from blocknumba.gpu_layout.shared import MatrixAccess, access, matrix_access
from blocknumba.nvvm_lower.elements import register_type, zero
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import I32
from blocknumba.nvvm_lower.ptx import matrix as ptx
from blocknumba.nvvm_lower.services.address import index_at
from blocknumba.nvvm_lower.services.shared_memory import element_address, read_vector
from blocknumba.nvvm_lower.services.words import WORD_BITS, pack, unpack, words_of
from blocknumba.tile_ir.types import DType


def elements_of_word(dtype: DType) -> int:
    """How many elements make a word."""
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

    origin: where its first element is, of a part of a buffer.
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

    def __init__(self, emitter: Emitter, dtype: DType, plan: MatrixAccess, buffer: str,
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
        number, place = divmod(register, self._plan.elements)
        if number not in self._words:
            self._words[number] = self._read(number)
        return self._words[number][place // elements_of_word(self._dtype)]

    def _read(self, number: int) -> tuple[str, ...]:
        emitter, plan = self._emitter, self._plan
        index = index_at(emitter.body, emitter.threads, plan.addresses, number, self._origin,
                         held=True)
        address = element_address(emitter, self._buffer, index, self._dtype)
        return emitter.assembly(ptx.load(plan.matrices, plan.transposed), address)


def tile_in_shared(emitter: Emitter, dtype: DType, layout: LinearLayout, buffer: str,
                   shared: LinearLayout, origin: int = 0) -> Tile:
    """The tile in the buffer at a byte offset, read word by word in the quickest way.

    origin: where its first element is, of a part of a buffer.
    """
    plan = matrix_access(layout, shared, dtype.bits)
    if plan is not None:
        return MatrixTile(emitter, dtype, plan, buffer, origin)
    return SharedTile(emitter, dtype, layout, buffer, shared, origin)

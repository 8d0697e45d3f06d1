"""Products of tiles by the matrix instruction of warps."""

from __future__ import annotations

import itertools

from blocknumba.gpu_layout.mma import Instruction, Pieces
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, I32, floating
from blocknumba.nvvm_lower.ptx import matrix as ptx
from blocknumba.nvvm_lower.services.shared_tile import Tile, elements_of_word, word_type
from blocknumba.nvvm_lower.services.words import pack, unpack
from blocknumba.tile_ir.types import DType

Fragment = tuple[str, ...]
Place = tuple[int, int, int]  # of a fragment: number in the batch, along axis 0, along axis 1

_ZEROS = {I32: "0", DOUBLE: floating(0.0)}
_INFINITY = str(0x7F800000)  # bits of a float
_MAGNITUDE = str(0x7FFFFFFF)
# Which parts of the operands are multiplied, the least products first.  With "tf32x3" the parts are
# the rounded number, what is missing of it, and the rounded number if it is finite: what is missing
# is multiplied by nothing else, since infinity times what is missing would spoil the sum.
_PRODUCTS = {"ieee": ((0, 0),), "tf32": ((0, 0),), "tf32x3": ((1, 2), (2, 1), (0, 0))}


class Operand:
    """The fragments of an operand, read and rounded as they are needed.

    precision: as of `dot`.
    """

    def __init__(self, emitter: Emitter, pieces: Pieces, dtype: DType, tile: Tile,
                 precision: str):
        self._emitter, self._pieces, self._tile = emitter, pieces, tile
        self._dtype, self._precision = dtype, precision
        self._elements = elements_of_word(dtype)

    def along(self, axis: int) -> range:
        """The numbers of fragments along an axis: 0 the batches, 1 the rows, 2 the depth."""
        return range(self._pieces.counts[axis])

    def parts(self, place: Place) -> tuple[Fragment, ...]:
        """The fragments that stand for a fragment; _PRODUCTS says how they are multiplied."""
        registers = self._pieces.registers(*place)
        starts = range(0, len(registers), self._elements)
        words = [self._word(registers[i:i + self._elements]) for i in starts]
        if self._precision == "ieee":
            return (tuple(words),)
        if self._precision == "tf32":
            return (tuple(_rounded(self._emitter, word) for word in words),)
        return tuple(zip(*(_split(self._emitter, word) for word in words), strict=True))

    def _word(self, registers: tuple[int | None, ...]) -> str:
        """A word of a fragment, with zeros beyond the depth of the tile."""
        type_ = word_type(self._dtype)
        nothing = _ZEROS[type_]
        first = registers[0]
        if all(register is None for register in registers):
            return nothing
        if None not in registers:
            word = self._tile.word(first)
        else:
            word = self._tile.padded_word(registers)
        if not self._pieces.zero_lane:
            return word
        is_within = self._emitter.threads.has_none(self._pieces.zero_lane)
        return self._emitter.body.select(is_within, type_, word, nothing)


class Sums:
    """The fragments of an accumulator."""

    def __init__(self, emitter: Emitter, pieces: Pieces, dtype: DType, values: Registers):
        self._emitter, self._pieces, self._dtype = emitter, pieces, dtype
        self._elements = elements_of_word(dtype)
        self.fragments: dict[Place, Fragment] = {
            place: tuple(word for group in self._groups(place)
                         for word in pack(emitter, dtype, [values[i] for i in group]))
            for place in itertools.product(*map(range, pieces.counts))}

    def registers(self) -> Registers:
        """The sums in the registers of the accumulator's layout."""
        found: dict[int, str] = {}
        for place, fragment in self.fragments.items():
            for group, word in zip(self._groups(place), fragment, strict=True):
                values = unpack(self._emitter, self._dtype, [word], self._elements)
                for register, value in zip(group, values, strict=True):
                    found.setdefault(register, value)  # those after the first are copies
        return [found[register] for register in range(len(found))]

    def _groups(self, place: Place) -> list[tuple[int, ...]]:
        registers = self._pieces.registers(*place)
        return [registers[i:i + self._elements]
                for i in range(0, len(registers), self._elements)]


def multiply(emitter: Emitter, instruction: Instruction, precision: str, a: Operand, b: Operand,
             sums: Sums) -> None:
    """Add a @ b to sums.

    a, b: the first and the second operand of the instruction.  Each fragment is read once.
    """
    row = ptx.multiply(instruction.rows, instruction.depth, instruction.accumulator,
                       instruction.a, instruction.b)
    for batch, step in itertools.product(a.along(0), a.along(2)):
        firsts = [a.parts((batch, i, step)) for i in a.along(1)]
        seconds = [b.parts((batch, j, step)) for j in b.along(1)]
        for (i, first), (j, second) in itertools.product(enumerate(firsts), enumerate(seconds)):
            place = (batch, i, j)
            for x, y in _PRODUCTS[precision]:
                sums.fragments[place] = emitter.assembly(row, *first[x], *second[y],
                                                         *sums.fragments[place])


def _rounded(emitter: Emitter, word: str) -> str:
    """The bits of a float32 with 11 significant bits."""
    (rounded,) = emitter.assembly(ptx.ROUND_TO_TF32, emitter.body.convert("bitcast", I32, word,
                                                                          FLOAT))
    return rounded


def _split(emitter: Emitter, word: str) -> tuple[str, str, str]:
    """A float32 rounded to 11 significant bits, what is missing, and the first if it is finite.

    What is missing is rounded likewise; nothing is missing of infinities and NaN.  Numbers that
    round to infinity are infinite.
    """
    body = emitter.body
    high = _rounded(emitter, word)
    x, rounded = (body.convert("bitcast", I32, bits, FLOAT) for bits in (word, high))
    magnitude = body.binary("and", I32, high, _MAGNITUDE)
    is_finite = body.compare("icmp ult", I32, magnitude, _INFINITY)
    rest = body.convert("bitcast", FLOAT, body.binary("fsub", FLOAT, x, rounded), I32)
    missing = _rounded(emitter, body.select(is_finite, I32, rest, "0"))
    return high, missing, body.select(is_finite, I32, high, "0")

"""Code of dots that run in threads or warps: fused multiply-adds, and mma instructions."""

from __future__ import annotations

import itertools
import math

from blocknumba.gpu_layout.async_copies.pipelining import previous_k_slice
from blocknumba.gpu_layout.dots.fma import FmaPlan
from blocknumba.gpu_layout.dots.mma import Instruction, FragmentedTile
from blocknumba.gpu_layout.dots.ops import fma_dot, mma, plan_of
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.shared import is_buffer
from blocknumba.nvvm_lower.emitter import Emitter, Registers, code
from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, I32, floating
from blocknumba.nvvm_lower.ptx import matrix as ptx
from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.services.floats import fused_multiply_add, rounded_to_tf32
from blocknumba.nvvm_lower.services.shared_memory import (
    RegisterTile, SharedTile, Tile, elements_of_word, tile_in_shared, word_type,
)
from blocknumba.nvvm_lower.services.words import pack, unpack
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.remarks import DOT, Remark
from blocknumba.tile_ir.ir.types import DType, TileType


def multiply_add(emitter: Emitter, plan: FmaPlan, dtype: DType, a: Tile,
                 b: Tile, acc: Registers) -> Registers:
    """acc + a @ b: for every index along the depth the outer product of a column and a row."""
    for index in range(plan.depth):
        column = {register: a.element(register + index) for register in sorted(set(plan.a_of))}
        row = {register: b.element(register + index) for register in sorted(set(plan.b_of))}
        acc = [fused_multiply_add(emitter, dtype, column[i], row[j], value)
                for i, j, value in zip(plan.a_of, plan.b_of, acc, strict=True)]
    return acc


Fragment = tuple[str, ...]
Terms = tuple[Fragment, ...]
FragmentIndex = tuple[int, int, int]  # of a fragment: in the batch, along axis 0, along axis 1

_ZEROS = {I32: "0", DOUBLE: floating(0.0)}
# Of tf32: half a unit in the last place of a float's bits, the bits that it has, and the smallest
# number that would round to infinity.
_HALF_UNIT, _TF32_BITS = str(0x1000), str(-0x2000)
_TOO_LARGE = floating(math.ldexp(2.0 - 2.0**-11, 127))
_WITHOUT_TOP_OF_EXPONENT = str(~0x40000000)  # infinity becomes 1
# Terms of operands that are multiplied with "tf32x3", smallest first; _split makes the terms.
_SPLIT_TERMS = ((1, 0), (0, 1), (0, 0))
_STEPS = 2  # along the depth, that tensor cores add up before their sum is rounded


class Operand:
    """The fragments of an operand; they are read and rounded when they are needed.

    precision: as of `dot`.
    """

    def __init__(self, emitter: Emitter, pieces: FragmentedTile, dtype: DType, tile: Tile,
                 precision: str):
        self._emitter, self._pieces, self._tile = emitter, pieces, tile
        self._dtype, self._precision = dtype, precision
        self._elements = elements_of_word(dtype)

    def along(self, axis: int) -> range:
        """Indices of fragments along an axis: 0 the batches, 1 the rows, 2 the depth."""
        return range(self._pieces.counts[axis])

    def terms(self, index: FragmentIndex) -> Terms:
        """The terms whose sum is a fragment: two with "tf32x3" (see _split), else one."""
        registers = self._pieces.registers(*index)
        starts = range(0, len(registers), self._elements)
        words = [self._word(registers[i:i + self._elements]) for i in starts]
        if self._precision == "ieee":
            return (tuple(words),)
        if self._precision == "tf32":
            return (tuple(self._rounded(word) for word in words),)
        return tuple(zip(*(_split(self._emitter, word) for word in words), strict=True))

    def _rounded(self, word: str) -> str:
        x = self._emitter.body.convert("bitcast", I32, word, FLOAT)
        return rounded_to_tf32(self._emitter, x)

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


class Accumulator:
    """The fragments of an accumulator."""

    def __init__(self, emitter: Emitter, pieces: FragmentedTile, dtype: DType, values: Registers):
        self._emitter, self._pieces, self._dtype = emitter, pieces, dtype
        self._elements = elements_of_word(dtype)
        self.fragments: dict[FragmentIndex, Fragment] = {
            index: tuple(word for group in self._groups(index)
                         for word in pack(emitter, dtype, [values[i] for i in group]))
            for index in itertools.product(*map(range, pieces.counts))}

    def registers(self) -> Registers:
        """The elements in the registers of the accumulator's layout."""
        found: dict[int, str] = {}
        for index, fragment in self.fragments.items():
            for group, word in zip(self._groups(index), fragment, strict=True):
                values = unpack(self._emitter, self._dtype, [word], self._elements)
                for register, value in zip(group, values, strict=True):
                    found.setdefault(register, value)  # those after the first are copies
        return [found[register] for register in range(len(found))]

    def _groups(self, index: FragmentIndex) -> list[tuple[int, ...]]:
        registers = self._pieces.registers(*index)
        return [registers[i:i + self._elements]
                for i in range(0, len(registers), self._elements)]


def multiply(emitter: Emitter, instruction: Instruction, precision: str, a: Operand, b: Operand,
             acc: Accumulator) -> None:
    """Add a @ b to an accumulator.

    a, b: the first and the second operand of the instruction.  Each fragment is read once.
    """
    row = ptx.multiply(instruction.rows, instruction.depth, instruction.accumulator,
                       instruction.a, instruction.b)
    if precision == "tf32x3":
        _multiply_split(emitter, row, a, b, acc)
        return
    for batch, step in itertools.product(a.along(0), a.along(2)):
        firsts = [a.terms((batch, i, step)) for i in a.along(1)]
        seconds = [b.terms((batch, j, step)) for j in b.along(1)]
        for (i, (first,)), (j, (second,)) in itertools.product(enumerate(firsts),
                                                               enumerate(seconds)):
            index = (batch, i, j)
            acc.fragments[index] = emitter.assembly(row, *first, *second, *acc.fragments[index])


def _multiply_split(emitter: Emitter, row: Assembly, a: Operand, b: Operand,
                    acc: Accumulator) -> None:
    """Add a @ b to an accumulator, of numbers that are split into terms.

    Tensor cores truncate their sums, always in one direction, which costs more bits than the
    small terms have.  So they add a few steps only, from zero, and instructions that round add
    the results to the accumulator.
    """
    for batch, first in itertools.product(a.along(0), a.along(2)[::_STEPS]):
        steps = a.along(2)[first:first + _STEPS]
        lefts = [[a.terms((batch, i, step)) for step in steps] for i in a.along(1)]
        for j in b.along(1):
            right = [b.terms((batch, j, step)) for step in steps]
            column = _dots(emitter, row, lefts, right)
            for i, added in enumerate(column):
                index = (batch, i, j)
                acc.fragments[index] = tuple(
                    emitter.body.binary("fadd", FLOAT, total, word)
                    for total, word in zip(acc.fragments[index], added, strict=True))


def _dots(emitter: Emitter, row: Assembly, lefts: list[list[Terms]],
          right: list[Terms]) -> list[Fragment]:
    """Each left @ right, of a few steps, the smallest products of terms first.

    The lefts take turns, since an instruction waits for the previous one with its accumulator.
    """
    totals = [(floating(0.0),) * len(row.results) for _ in lefts]
    for (x, y), step in itertools.product(_SPLIT_TERMS, range(len(right))):
        totals = [emitter.assembly(row, *left[step][x], *right[step][y], *total)
                  for left, total in zip(lefts, totals, strict=True)]
    return totals


def _split(emitter: Emitter, word: str) -> tuple[str, str]:
    """A float32 as the sum of two terms that tensor cores take, the larger one first.

    The first is rounded to 11 significant bits.  The rest has 12, and tensor cores truncate it to
    11: rounding it would lose as much.  Infinity is 1 and infinity, NaN a number and NaN: then no
    product of terms is infinity times 0 or has the wrong sign.  Numbers that would round to
    infinity are split likewise, with 11 bits left.
    """
    body = emitter.body
    x = body.convert("bitcast", I32, word, FLOAT)
    size = body.call(FLOAT, "llvm.nvvm.fabs.f", f"{FLOAT} {x}", attributes="nounwind readnone")
    high = body.select(
        body.compare("fcmp olt", FLOAT, size, _TOO_LARGE), I32,
        body.binary("add", I32, word, _HALF_UNIT),
        body.binary("and", I32, word, _WITHOUT_TOP_OF_EXPONENT))
    high = body.binary("and", I32, high, _TF32_BITS)
    missing = body.binary("fsub", FLOAT, x, body.convert("bitcast", I32, high, FLOAT))
    return high, body.convert("bitcast", FLOAT, missing, I32)


def remark_dot(emitter: Emitter, op: Op, instruction: str, continues: bool = False) -> None:
    """Remark the instruction of a dot; continues: it adds another k slice to the previous one."""
    a, b, acc = op.a.type, op.b.type, op.acc.type
    emitter.remarks.append(Remark.of(
        DOT, op.loc, extents=(*acc.shape, a.shape[-1]), dtypes=(str(a.dtype), str(b.dtype)),
        acc=str(acc.dtype), instruction=instruction, continues=continues))


@code(mma)
def _(emitter: Emitter, op: Op, a: Registers, b: Registers, acc: Registers) -> Registers:
    remark_dot(emitter, op, f"mma {op.attrs['instruction']}", previous_k_slice(op) is not None)
    plan, types = plan_of(op), (op.a.type, op.b.type)
    precision, rounded = attribute(op, "precision"), attribute(op, "rounded")
    first, second = (
        _operand(emitter, pieces, type_, values, "ieee" if number in rounded else precision)
        for number, (pieces, type_, values) in enumerate(zip((plan.a, plan.b), types, (a, b))))
    if attribute(op, "swapped"):
        first, second = second, first
    accumulator = Accumulator(emitter, plan.accumulator, op.acc.type.dtype, acc)
    multiply(emitter, Instruction.parse(op.attrs["instruction"]), precision, first, second,
             accumulator)
    return accumulator.registers()


def _operand(emitter: Emitter, pieces: FragmentedTile, type_: TileType, values: Registers,
             precision: str) -> Operand:
    """An operand in registers or, its only value being the offset of a buffer, in shared memory."""
    if is_buffer(type_):
        tile = tile_in_shared(emitter, type_.dtype, pieces.layout, values[0], type_.layout)
    else:
        tile = RegisterTile(emitter, type_.dtype, values)
    return Operand(emitter, pieces, type_.dtype, tile, precision)


@code(fma_dot)
def _(emitter: Emitter, op: Op, a: Registers, b: Registers, acc: Registers) -> Registers:
    remark_dot(emitter, op, "multiply-add")
    plan, dtype = plan_of(op), op.result.type.dtype

    def tile(operand: Value, layout: LinearLayout, buffer: Registers) -> SharedTile:
        return SharedTile(emitter, dtype, layout, buffer[0], operand.type.layout)

    return multiply_add(emitter, plan, dtype, tile(op.a, plan.a, a), tile(op.b, plan.b, b), acc)

"""The register block of a dot on the CPU: the part of the product in registers, and its code.

    accumulators: rows x vectors            one step along the depth:
                                            1. load `vectors` vectors of a row of b
        b[k, j ... j + vectors * lanes]     2. for each row, repeat a[i, k] in all lanes
      a  +----------------------------+     3. multiply and add into each accumulator
    [i,k]|  acc[i, j ...]             |
         +----------------------------+

Accumulators stay in registers along the whole depth.  There must be enough of them to hide the
latency of a multiply-add, and few enough to leave registers for b and a.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.cpu_lower.loop_text import Index, LoopText
from blocknumba.cpu_lower.writer import suffix, vector

UNROLLED = 4  # steps along the depth in one iteration
_MAX_VECTORS = 8  # of a block of one row


@dataclass(frozen=True)
class VectorUnit:
    """The vector registers of a processor.

    bits: of one.  registers: how many there are.  rows: of a register block that is at least two
    vectors wide.  Measured: 8 x 2 reaches 95 % of the peak of AVX-512; with more rows, the
    addresses of rows no longer fit the integer registers.
    """

    name: str
    bits: int
    registers: int
    rows: int


AVX512 = VectorUnit("avx512f", 512, 32, 8)
AVX2 = VectorUnit("avx2", 256, 16, 6)
NEON = VectorUnit("neon", 128, 32, 8)
SSE2 = VectorUnit("sse2", 128, 16, 6)


@dataclass(frozen=True)
class Blocking:
    """A partition of a product of (M, K) and (K, N) into register blocks.

    lanes: of a vector.  vectors: across a block.  rows: of a block; the last `short_blocks` of the
    `blocks` that M makes have one row less.
    """

    lanes: int
    vectors: int
    rows: int
    blocks: int
    short_blocks: int

    @property
    def width(self) -> int:
        """Columns of a block."""
        return self.lanes * self.vectors


def blocking(unit: VectorUnit, element_bits: int, rows: int, columns: int) -> Blocking:
    """The register blocks of a product of rows x columns, powers of two; element_bits: of sums."""
    lanes = min(columns, unit.bits // element_bits)
    across = columns // lanes
    budget = unit.registers // 2
    most = unit.rows if across > 1 else 8
    blocks = math.ceil(rows / most)
    tall = math.ceil(rows / blocks)
    fitting = 1 << (max(2, budget // tall).bit_length() - 1)
    vectors = min(across, fitting, _MAX_VECTORS)
    return Blocking(lanes, vectors, tall, blocks, blocks * tall - rows)


@dataclass(frozen=True)
class Arithmetic:
    """Elements that are multiplied and added.

    scalar: LLVM type.  size_bytes: of one.
    """

    scalar: str
    size_bytes: int

    def vector(self, lanes: int) -> str:
        """The type of a vector; of one lane, the scalar."""
        return vector(self.scalar, lanes)

    def zero(self, lanes: int) -> str:
        """0 in all lanes."""
        if lanes > 1:
            return "zeroinitializer"
        return "0" if self.scalar.startswith("i") else "0.0"

    def add(self, text: LoopText, lanes: int, x: str, y: str) -> str:
        """x + y."""
        word = "add" if self.scalar.startswith("i") else "fadd"
        return text.assign(f"{word} {self.vector(lanes)} {x}, {y}")

    def multiply_add(self, text: LoopText, lanes: int, x: str, y: str, total: str) -> str:
        """total + x * y; of floats, rounded once where the processor can."""
        type_ = self.vector(lanes)
        if self.scalar.startswith("i"):
            return text.assign(f"add {type_} {total}, {text.assign(f'mul {type_} {x}, {y}')}")
        intrinsic = f"llvm.fmuladd.{suffix(self.scalar, lanes)}"
        return text.call(type_, intrinsic, (type_, x), (type_, y), (type_, total))


@dataclass(frozen=True)
class Strided:
    """A matrix in memory, contiguous along its rows: address of the first element, bytes a row."""

    base: str
    row_bytes: Index

    def row(self, text: LoopText, index: Index) -> str:
        """The address of a row."""
        return text.address(self.base, text.product(index, self.row_bytes))


def multiply_block(text: LoopText, arithmetic: Arithmetic, block: Blocking, rows: int, depth: int,
                   a: Strided, b: Strided, accumulators: list[str]) -> list[str]:
    """Accumulators of one register block, after a @ b is added.

    a: (rows, depth), b: (depth, block.width), both of the arithmetic's elements.
    accumulators: rows x block.vectors vectors, row after row.
    """
    lanes, size, type_ = block.lanes, arithmetic.size_bytes, arithmetic.vector(block.lanes)
    lines = [a.row(text, row) for row in range(rows)]

    def step(k: str, totals: Sequence[str]) -> list[str]:
        line = b.row(text, k)
        right = [text.load(type_, text.address(line, v * lanes * size), size)
                 for v in range(block.vectors)]
        offset = text.product(k, size)
        made = []
        for row, start in enumerate(lines):
            element = text.load(arithmetic.scalar, text.address(start, offset), size)
            left = text.splat(arithmetic.scalar, element, lanes)
            made += [arithmetic.multiply_add(text, lanes, left, right[v],
                                             totals[row * block.vectors + v])
                     for v in range(block.vectors)]
        return made

    unrolled = min(UNROLLED, depth)

    def steps(k: str, *totals: str) -> list[str]:
        for ahead in range(unrolled):
            totals = step(text.sum(k, ahead), totals)
        return totals

    return text.each(depth, unrolled, steps, [(type_, total) for total in accumulators])

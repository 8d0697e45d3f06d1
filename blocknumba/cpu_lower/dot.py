"""Dots on the CPU: a function of LLVM IR text that adds a @ b to an accumulator in memory.

    a, in place or copied
      rows [ K           ]                 for each block of rows of a
           [ ...         ]
    b, copied into panels that are as wide as a register block
      [K x width] [K x width] ...            for each panel of b
                                               accumulators in registers along all of K
                                               (micro_kernel.py)

All of b is copied before the first block: then it is read along its rows, which the processor
prefetches, and no two of its rows meet in one set of a cache.  The copy stays in the second cache,
a block of rows of a in the first.  A b of which the copy is too large for that, or that stays where
it is, is the outer loop instead.  Both operands may have any strides.
Speed: about OpenBLAS's, with tiles of (256, 512, 128) float32 or (512, 256, 128) float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from blocknumba.cpu_lower import casts
from blocknumba.cpu_lower.elements import memory_type
from blocknumba.cpu_lower.loop_text import Index, LoopText
from blocknumba.cpu_lower.micro_kernel import (
    Arithmetic, Strided, VectorUnit, blocking, multiply_block,
)
from blocknumba.cpu_lower.packing import Panels, Source, pack
from blocknumba.cpu_lower.vectors import FLOAT32, Vector, where
from blocknumba.cpu_lower.writer import vector
from blocknumba.tile_ir.ir.types import DType, float32, float64, int32

CACHE_LINE = 64  # bytes
SCRATCH_ALIGNMENT = CACHE_LINE
# Measured with matrices of 256 to 2048 rows, whose rows meet in few sets of the caches.
_FEW_BLOCKS = 2  # of rows, for which copying b costs more than it saves
_MANY_PANELS = 8  # of b, for which copying a costs less than coming back to it as often in place
_NEAR_BYTES = 1 << 19  # of a copy that stays in the second cache beside what is read and written
_MAX_FETCHED = 4  # lines of a row by one block: each is an instruction
_HALF_UNIT_OF_TF32, _BITS_OF_TF32, _EXPONENT = 0x1000, 0xFFFFE000, 0x7F800000  # of float32
_PARAMETERS = ("ptr noalias readonly %a, i64 %a_batch, i64 %a_row, i64 %a_column, "
               "ptr noalias readonly %b, i64 %b_batch, i64 %b_row, i64 %b_column, "
               "ptr noalias %acc, ptr noalias %scratch")


@dataclass(frozen=True)
class Product:
    """acc += a @ b for each of `batches`; a: (rows, depth), b: (depth, columns), powers of two.

    a, b, acc: dtypes, as of the op `dot`; precision: as of the op.
    """

    a: DType
    b: DType
    acc: DType
    rows: int
    depth: int
    columns: int
    batches: int = 1
    precision: str = "ieee"

    @property
    def transposed(self) -> Product:
        """acc.T += b.T @ a.T, of the same elements."""
        return replace(self, a=self.b, b=self.a, rows=self.columns, columns=self.rows)


@dataclass(frozen=True)
class DotFunction:
    """A function of LLVM IR.

    text: its definition, of `define internal void @symbol(parameters)`; the parameters are

        ptr a, i64 a_batch, i64 a_row, i64 a_column     address of a[0, 0, 0] and strides in bytes
        ptr b, i64 b_batch, i64 b_row, i64 b_column
        ptr acc                                         (batches, rows, columns), dense
        ptr scratch                                     scratch_bytes, aligned to 64, of this call

    Elements of a, b and acc are aligned to their size, and acc and scratch overlap nothing else.
    An operand is fastest where a's columns, or b's, are contiguous, in place or in a buffer.
    """

    symbol: str
    text: str
    scratch_bytes: int


def dot_function(symbol: str, product: Product, unit: VectorUnit) -> DotFunction:
    """The function that adds a product, for a processor with these vectors."""
    writer = _Writer(product, unit)
    return DotFunction(symbol, writer.text.function(symbol, _PARAMETERS, "nounwind"),
                       writer.scratch_bytes)


@dataclass(frozen=True)
class _Operand:
    """An operand in memory: names of its address and of its strides, and its dtype."""

    dtype: DType
    base: str
    batch_bytes: str
    row_bytes: str
    column_bytes: str

    @property
    def transposed(self) -> _Operand:
        return replace(self, row_bytes=self.column_bytes, column_bytes=self.row_bytes)


class _Writer:
    """Writes the body of a dot's function."""

    def __init__(self, product: Product, unit: VectorUnit):
        a, b = (_Operand(dtype, f"%{name}", f"%{name}_batch", f"%{name}_row", f"%{name}_column")
                for name, dtype in (("a", product.a), ("b", product.b)))
        if product.columns == 1:  # a column would leave all lanes but one idle
            product, a, b = product.transposed, b.transposed, a.transposed
        self.text = LoopText()
        self.scratch_bytes = 0
        self._product, self._a, self._b = product, a, b
        self._wide = _wide(product.acc)
        self._arithmetic = Arithmetic(memory_type(self._wide), self._wide.bytes)
        self._lanes = unit.bits // self._wide.bits
        self._block = blocking(unit, self._wide.bits, product.rows, product.columns)
        self._scratch_of_a = self._reserve(product.rows * product.depth)
        self._scratch_of_b = self._reserve(product.depth * product.columns)
        self.text.each(product.batches, 1, self._write_batch)

    def _reserve(self, elements: int) -> int:
        """The offset of new scratch memory."""
        offset = self.scratch_bytes
        size = elements * self._wide.bytes
        self.scratch_bytes += -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        return offset

    # operands -------------------------------------------------------------------------------------
    def _source(self, operand: _Operand, batch: Index) -> Source:
        base = self.text.address(operand.base, self.text.product(batch, operand.batch_bytes))
        return Source(base, operand.row_bytes, operand.column_bytes,
                      memory_type(operand.dtype), operand.dtype.bytes,
                      self._widened(operand.dtype))

    def _widened(self, dtype: DType) -> Callable[[Vector], Vector]:
        """The conversion of an operand's elements."""
        if self._product.precision == "tf32":
            return _rounded_to_tf32
        return lambda x: casts.cast(dtype, self._wide, "nearest", x)

    def _is_readable(self, operand: _Operand) -> bool:
        """Whether elements need no conversion."""
        return operand.dtype == self._wide and self._product.precision != "tf32"

    @property
    def _is_b_copied(self) -> bool:
        """Whether b is copied even if its rows are contiguous."""
        return self._block.blocks > _FEW_BLOCKS or not self._is_readable(self._b)

    @property
    def _is_b_near(self) -> bool:
        """Whether all of b's copy stays near the processor while rows of a pass."""
        size_bytes = self._product.depth * self._product.columns * self._wide.bytes
        return self._is_b_copied and size_bytes <= _NEAR_BYTES

    def _left(self, batch: Index) -> Strided:
        """a with contiguous rows."""
        product, size = self._product, self._wide.bytes
        source = self._source(self._a, batch)
        copy = Panels(self.text.address("%scratch", self._scratch_of_a), product.rows,
                      product.depth, product.depth, product.depth * size, 0)

        def packed() -> list[str]:
            pack(self.text, self._arithmetic, self._lanes, source, copy)
            return [copy.base, str(copy.line_bytes)]

        comes_back = (not self._is_b_near
                      and product.columns // self._block.width >= _MANY_PANELS)
        if comes_back or not self._is_readable(self._a):
            return Strided(packed()[0], copy.line_bytes)
        contiguous = self.text.equal(source.step_bytes, size)
        base, row_bytes = self.text.either(
            contiguous, lambda: [source.base, source.line_bytes], packed, ("ptr", "i64"))
        return Strided(base, row_bytes)

    def _right(self, batch: Index) -> tuple[Strided, Index]:
        """The first panel of b, with contiguous rows, and the bytes from one panel to the next."""
        product, size, width = self._product, self._wide.bytes, self._block.width
        source = self._source(self._b, batch)
        copy = Panels(self.text.address("%scratch", self._scratch_of_b), product.depth,
                      product.columns, width, width * size, product.depth * width * size)

        def packed() -> list[str]:
            pack(self.text, self._arithmetic, self._lanes, source, copy)
            return [copy.base, str(copy.line_bytes), str(copy.panel_bytes)]

        if self._is_b_copied:
            return Strided(packed()[0], copy.line_bytes), copy.panel_bytes
        base, row_bytes, panel_bytes = self.text.either(
            self.text.equal(source.step_bytes, size),
            lambda: [source.base, source.line_bytes, str(width * size)], packed,
            ("ptr", "i64", "i64"))
        return Strided(base, row_bytes), panel_bytes

    # the product ----------------------------------------------------------------------------------
    def _write_batch(self, batch: str) -> None:
        product, block, text = self._product, self._block, self.text
        left = self._left(batch)
        right, panel_bytes = self._right(batch)
        row_bytes = product.columns * product.acc.bytes
        sums = text.address("%acc", text.product(batch, product.rows * row_bytes))
        tall = (block.blocks - block.short_blocks) * block.rows

        def block_at(count: int, first: str, number: str) -> None:
            """The block of `count` rows from row `first` of a, by panel `number` of b."""
            own = Strided(text.address(right.base, text.product(number, panel_bytes)),
                          right.row_bytes)
            column = text.address(sums, text.product(number, block.width * product.acc.bytes))
            if self._is_b_near:
                self._fetch_rows(left, text.sum(first, count), count, number)
            self._write_block(count, Strided(left.row(text, first), left.row_bytes), own,
                              Strided(column, row_bytes).row(text, first))

        def each_block(body: Callable[[int, str], None]) -> None:
            if tall:
                text.each(tall, block.rows, lambda first: body(block.rows, first))
            if block.short_blocks:
                text.each(product.rows - tall, block.rows - 1,
                          lambda row: body(block.rows - 1, text.sum(row, tall)))

        def each_panel(body: Callable[[str], None]) -> None:
            text.each(product.columns // block.width, 1, body)

        if self._is_b_near:
            each_block(lambda count, first: each_panel(
                lambda number: block_at(count, first, number)))
        else:
            each_panel(lambda number: each_block(
                lambda count, first: block_at(count, first, number)))

    def _fetch_rows(self, a: Strided, first: str, count: int, number: str) -> None:
        """Fetch rows of a that come next: the share of a panel of b, so that all panels share.

        Where there are more panels than lines, the last ones fetch what is behind the tile: the
        next tile along the depth.  Where there are few panels, they fetch where the rows begin.
        """
        product, text = self._product, self.text
        lines = product.depth * self._wide.bytes // CACHE_LINE
        share = min(max(1, lines * self._block.width // product.columns), _MAX_FETCHED)
        start = text.product(number, share * CACHE_LINE)
        for row in range(count):
            line = text.address(a.row(text, text.sum(first, row)), start)
            for ahead in range(share):
                text.prefetch(text.address(line, ahead * CACHE_LINE))

    def _write_block(self, rows: int, a: Strided, b: Strided, sums: str) -> None:
        """Add one register block.  rows: of it; sums: address of its first element.

        The products do not wait for the sums, which come last, and are fetched meanwhile.
        """
        product, block, text, arithmetic = self._product, self._block, self.text, self._arithmetic
        size, lanes = product.acc.bytes, block.lanes
        places = [text.address(sums, (row * product.columns + v * lanes) * size)
                  for row in range(rows) for v in range(block.vectors)]
        for row in range(rows):
            for start in range(0, block.width * size, CACHE_LINE):
                text.prefetch_to_write(text.address(sums, row * product.columns * size + start))
        totals = multiply_block(text, arithmetic, block, rows, product.depth, a, b,
                                [arithmetic.zero(lanes)] * len(places))
        type_ = vector(memory_type(product.acc), lanes)
        for place, total in zip(places, totals, strict=True):
            before = self._cast(product.acc, self._wide, text.load(type_, place, size))
            after = arithmetic.add(text, lanes, before, total)
            text.store(type_, self._cast(self._wide, product.acc, after), place, size)

    def _cast(self, source: DType, to: DType, name: str) -> str:
        """A vector of sums as another dtype."""
        x = self.text.vector(self._block.lanes, memory_type(source), name)
        return casts.cast(source, to, "nearest", x).name


def _rounded_to_tf32(x: Vector) -> Vector:
    """11 significant bits, ties away from zero; infinity and NaN as they are."""
    bits = x.as_bits
    rounded = (bits + _HALF_UNIT_OF_TF32) & _BITS_OF_TF32
    return where((bits & _EXPONENT) == _EXPONENT, bits, rounded).as_float(FLOAT32)


def _wide(acc: DType) -> DType:
    """The dtype in which a dot multiplies and adds."""
    return acc if acc in (float64, int32) else float32

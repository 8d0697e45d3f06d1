"""Kernels that copy tiles of x to out, in both dialects, and the arguments that they are for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import blocknumba as bn
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.ir.types import (
    Argument, ArrayArgument, ScalarArgument, dtype_of, int32, int64,
)
from blocknumba.tile_ir.ir.verifier import TILE
from blocknumba.tile_ir.passes.contract import run_passes
from blocknumba.tile_ir.passes.lower_views import has_views, lower_views
from blocknumba.tile_ir.passes.pipeline import TILE_PASSES, optimise
from blocknumba.tile_ir.passes.simplify_masks import simplify_masks
from blocknumba.typing.frontend import build

ROWS, COLUMNS, STRIDE = 37, 72, 80  # of the matrix x; its rows are padded


@dataclass(frozen=True)
class Case:
    """A kernel with what it is launched with.

    function: parameters x and out, then numbers.
    shape, strides: of x, in elements.  numbers: further arguments, int32 unless they are int64.
    alignment: of the arrays, in bytes.  wide: positions have 64 bits.
    positive: whether it is known that numbers are.
    views: whether its accesses are left as they are on views.
    """

    function: object
    grid: tuple[int, int, int] = (3, 3, 1)
    shape: tuple[int, ...] = (ROWS, COLUMNS)
    strides: tuple[int, ...] = (STRIDE, 1)
    numbers: dict[str, int] = field(default_factory=dict)
    dtype: str = "float16"
    alignment: int = 16
    wide: bool = False
    positive: bool = False
    views: bool = False

    def __str__(self) -> str:
        return self.function.__name__ + "-views" * self.views

    def arrays(self) -> dict[str, np.ndarray]:
        """x with a different number in every element, and out, of the same shape, with zeros."""
        reach = 1 + sum((n - 1) * abs(s) for n, s in zip(self.shape, self.strides))
        memory = (np.arange(reach) % 2039).astype(self.dtype)
        start = sum((n - 1) * -s for n, s in zip(self.shape, self.strides) if s < 0)
        strides = [step * memory.itemsize for step in self.strides]
        x = np.ndarray(self.shape, memory.dtype, memory, start * memory.itemsize, strides)
        return {"x": x, "out": np.zeros((*self.shape[:-1], STRIDE), self.dtype)}

    def kernel(self) -> Function:
        """Its optimised tile IR."""
        arguments: dict[str, Argument] = {
            name: ArrayArgument(
                dtype_of(self.dtype), tuple(s if s in (0, 1) else None for s in strides),
                (None,) * len(strides), self.alignment, tuple(map(_power, strides)), (), self.wide)
            for name, strides in (("x", self.strides), ("out", self._out_strides))}
        for name, number in self.numbers.items():
            dtype = int64 if isinstance(number, np.int64) else int32
            arguments[name] = ScalarArgument(dtype, 1 if number == 1 else None, _power(number),
                                             1 if self.positive else None)
        built = build(self.function, arguments)
        if not (self.views and has_views(built)):
            return optimise(built, verify=True)
        passes = (p for p in TILE_PASSES if p not in (lower_views, simplify_masks))
        return run_passes(built, passes, level=TILE)

    def run(self, fn: Function) -> np.ndarray:
        """out after a launch."""
        arguments = {**self.arrays(), **self.numbers}
        names = {parameter.argument for parameter in fn.parameters}
        run(fn, self.grid, {name: np.int32(value) if isinstance(value, int) else value
                            for name, value in arguments.items() if name in names})
        return arguments["out"]

    @property
    def _out_strides(self) -> tuple[int, ...]:
        out = self.arrays()["out"]
        return tuple(step // out.itemsize for step in out.strides)


def _power(number: int) -> int:
    """The power of two up to 16 that divides a number."""
    return int(number & -number & 15) or 16


# the array dialect ----------------------------------------------------------------------------

def spans(x, out):
    r, c = bn.block(0, 16), bn.block(1, 32)
    out[r, c] = x[r, c]


def loop_of_spans(x, out):
    r = bn.block(0, 16)
    for c in bn.spans(x.shape[1], 32):
        out[r, c] = x[r, c]


def persistent(x, out):
    for r, c in bn.persistent(x.shape, (16, 32)):
        out[r, c] = x[r, c]


def slices(x, out):
    m, n = bn.program_id(0) * 16, bn.program_id(1) * 32
    out[m : m + 16, n : n + 32] = x[m : m + 16, n : n + 32]


def tiles_of_indices(x, out):
    r, c = bn.program_id(0) * 16 + bn.arange(0, 16), bn.program_id(1) * 32 + bn.arange(0, 32)
    out[r[:, None], c] = x[r[:, None], c]


def transposed_view(x, out):
    r, c = bn.block(0, 16), bn.block(1, 32)
    out[r, c] = bn.trans(x.T[c, r])


def before_the_array(x, out):
    r, c = bn.block(0, 16), bn.block(1, 32)
    out[r, c] = x[r + -20, c + -16]


def rows_from(x, out, start):
    r, c = bn.span(start, 16), bn.block(1, 32)
    out[bn.block(0, 16), c] = x[r, c]


def one_column_further(x, out):
    r, c = bn.block(0, 16), bn.block(1, 32)
    out[r, c] = x[r, c + 1]


def batch_of_matrices(x, out):
    r, c = bn.block(0, 16), bn.block(1, 32)
    out[bn.program_id(2), r, c] = x[bn.program_id(2), r, c]


def matrix_within(x, out):
    r, c = bn.block(0, 16), bn.block(1, 32)
    out[r, bn.program_id(2), c] = x[r, bn.program_id(2), c]


def view_of_a_matrix(x, out):
    r, c = bn.block(0, 16), bn.block(1, 32)
    b = bn.program_id(2)
    out[b, r, c] = x[b][r, c]


def second_matrix(x, out):
    r, c = bn.block(0, 16), bn.block(1, 32)
    out[0, r, c] = x[1, r, c]


def rows_from_the_end(x, out):
    r, c = bn.block(0, 16), bn.block(1, 32)
    out[r, c] = x[::-1][r, c]


def gathered_rows(x, out):
    c = bn.block(1, 32)
    rows = bn.block(0, 16).index * 3 % 7
    out[bn.block(0, 16), c] = x[rows[:, None], c.index[None, :]]


def one_row(x, out):
    c = bn.block(1, 32)
    out[bn.program_id(0), c] = x[bn.program_id(0), c]


def narrow_rows(x, out):
    r, c = bn.block(0, 16), bn.block(1, 4)
    out[r, c] = x[r, c]


# the pointer dialect --------------------------------------------------------------------------

def _copied(out, tile, rows, columns):
    """Store a tile where no other program does."""
    inside = (rows[:, None] < 37) & (columns[None, :] < 72)
    bn.store(out + rows[:, None] * 80 + columns[None, :], tile, mask=inside)


def masked(x, out, M, N, stride):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    _copied(out, bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside), rows, columns)


def column_major(x, out, M, N, stride):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    inside = (columns[:, None] < N) & (rows[None, :] < M)
    tile = bn.load(x + (columns[:, None] + rows[None, :] * stride), mask=inside, other=0.0)
    _copied(out, tile.T, rows, columns)


def advancing(x, out, M, N, stride):
    rows, columns = bn.program_id(0) * 16 + bn.arange(0, 16), bn.arange(0, 32)
    pointers = x + rows[:, None] * stride + columns[None, :]
    for k in range(0, bn.cdiv(N, 32)):
        inside = (rows[:, None] < M) & (columns[None, :] < N - k * 32)
        _copied(out, bn.load(pointers, mask=inside, other=0.0), rows, columns + k * 32)
        pointers += 32


def advancing_rows(x, out, M, N, stride):
    rows, columns = bn.arange(0, 16), bn.program_id(1) * 32 + bn.arange(0, 32)
    pointers = x + rows[:, None] * stride + columns[None, :]
    for k in range(0, M, 16):
        inside = (rows[:, None] + k < M) & (columns[None, :] < N)
        _copied(out, bn.load(pointers, mask=inside), rows + k, columns)
        pointers += 16 * stride


def backwards(x, out, M, N, stride):
    rows, columns = bn.program_id(0) * 16 + bn.arange(0, 16), bn.arange(0, 32)
    pointers = x + rows[:, None] * stride + columns[None, :] + 64
    for k in range(64, -1, -32):
        inside = (rows[:, None] < M) & (columns[None, :] < N - k)
        _copied(out, bn.load(pointers, mask=inside), rows, columns + k)
        pointers -= 32


def unmasked(x, out, stride):
    rows, columns = bn.program_id(0) * 4 + bn.arange(0, 4), bn.arange(0, 64)
    _copied(out, bn.load(x + rows[:, None] * stride + columns[None, :]), rows, columns)


def unmasked_columns(x, out, M, stride):
    rows, columns = bn.program_id(0) * 16 + bn.arange(0, 16), bn.arange(0, 64)
    tile = bn.load(x + rows[:, None] * stride + columns[None, :], mask=rows[:, None] < M)
    _copied(out, tile, rows, columns)


def padded_columns(x, out, M, stride):
    rows, columns = bn.program_id(0) * 16 + bn.arange(0, 16), bn.arange(0, 128)
    inside = (rows[:, None] < M) & (columns[None, :] < 72)
    tile = bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside)
    _copied(out, tile, rows, columns)


def strides_that_are_numbers(x, out, M):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    inside = (rows[:, None] < M) & (columns[None, :] < 72)
    _copied(out, bn.load(x + rows[:, None] * 80 + columns[None, :], mask=inside), rows, columns)


def parts_of_rows(x, out, M, N, stride, part):
    bn.assume(part > 0)
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    first = bn.program_id(1) * part
    for k in range(0, part, 8):
        columns = first + k + bn.arange(0, 8)
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        tile = bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside)
        _copied(out, tile, rows, columns)


def grouped_programs(x, out, M, N, stride):
    program = bn.program_id(0)
    per_group = bn.cdiv(N, 32) * 2
    first = program // per_group * 2
    size = min(bn.cdiv(M, 16) - first, 2)
    rows = (first + program % per_group % size) * 16 + bn.arange(0, 16)
    columns = program % per_group // size * 32 + bn.arange(0, 32)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    _copied(out, bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside), rows, columns)


def heads(x, out, H, S, stride):
    """x: (batch, head, row, column) with numbers as strides of the first two."""
    z, h = bn.program_id(1) // H, bn.program_id(1) % H
    first = z.to(bn.int64) * (2 * 40 * stride) + h.to(bn.int64) * (40 * stride)
    rows, columns = bn.program_id(0) * 16 + bn.arange(0, 16), bn.arange(0, 64)
    offsets = rows[:, None] * stride + columns[None, :]
    inside = (rows < S)[:, None] & (columns < 64)[None, :]
    tile = bn.load(x + first + offsets, mask=inside)
    bn.store(out + first + offsets, tile, mask=inside)


def hinted(x, out, M, N, stride, step):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * max(step - step % 3, 0) + bn.arange(0, 8)
    columns = bn.max_contiguous(bn.multiple_of(columns, 8), 8)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    stride = bn.multiple_of(stride, 8)
    _copied(out, bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside), rows, columns)


def counted_by_while(x, out, M, N, stride):
    rows, k = bn.program_id(0) * 16 + bn.arange(0, 16), 0
    while k < N:
        columns = k + bn.arange(0, 32)
        inside = (rows[:, None] < M) & (columns[None, :] >= 0) & (columns[None, :] < N)
        tile = bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside)
        _copied(out, tile, rows, columns)
        k = bn.multiple_of(k + 32, 32)


def advancing_by_while(x, out, M, N, stride):
    rows, columns, k = bn.program_id(0) * 16 + bn.arange(0, 16), bn.arange(0, 32), 0
    pointers = x + rows[:, None] * stride + columns[None, :]
    while k < N:
        inside = (rows[:, None] < M) & (columns[None, :] + k < N)
        _copied(out, bn.load(pointers, mask=inside), rows, columns + k)
        pointers += 32
        k += 32


def own_extents(x, out, stride):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    inside = (rows[:, None] < x.shape[0]) & (columns[None, :] < x.shape[1])
    _copied(out, bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside), rows, columns)


def own_strides(x, out):
    rows = bn.program_id(0) * 4 + bn.arange(0, 4)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    pointers = x + rows[:, None] * x.strides[0] + columns[None, :]
    _copied(out, bn.load(pointers, mask=columns[None, :] < x.shape[1]), rows, columns)


def wrapped_rows(x, out, M, stride):
    rows = (bn.program_id(0) * 16 + bn.arange(0, 16)) % M
    columns = bn.arange(0, 64)
    _copied(out, bn.load(x + rows[:, None] * stride + columns[None, :]), rows, columns)


def less_than_the_array(x, out, M, N, stride):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    inside = (rows[:, None] < M - 1) & (columns[None, :] < N)
    _copied(out, bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside), rows, columns)


def all_or_nothing(x, out, M, N, stride):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    inside = (rows[:, None] < M) & (columns[None, :] < N) & (bn.program_id(0) * 2 < N)
    _copied(out, bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside), rows, columns)


def filled_with_ones(x, out, M, N, stride):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tile = bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside, other=1.0)
    _copied(out, tile, rows, columns)


def left_neighbours(x, out, M, N, stride):
    rows = bn.program_id(0) * 16 + 1 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 - 8 + bn.arange(0, 32)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tile = bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside)
    _copied(out, tile, rows, columns + 8)


def moved_by_the_counter(x, out, M, stride):
    rows, columns = bn.program_id(0) * 16 + bn.arange(0, 16), bn.arange(0, 8)
    pointers = x + rows[:, None] * stride + columns[None, :]
    for k in range(3):
        _copied(out, bn.load(pointers, mask=rows[:, None] < M), rows, columns + k * 8)
        pointers += k * 8


def repeated_row(x, out, N):
    rows, columns = bn.program_id(0) * 16 + bn.arange(0, 16), bn.arange(0, 64)
    pointers = x + rows[:, None] * 0 + columns[None, :]
    _copied(out, bn.load(pointers, mask=columns[None, :] < N), rows, columns)


def checked_by_a_tile(x, out, M, N, stride):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    inside = (rows[:, None] < M) & (columns[None, :] < N) & (rows[:, None] != 3)
    _copied(out, bn.load(x + rows[:, None] * stride + columns[None, :], mask=inside), rows, columns)


def strided_columns(x, out, M, N, stride, step):
    rows = bn.program_id(0) * 16 + bn.arange(0, 16)
    columns = bn.program_id(1) * 32 + bn.arange(0, 32)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tile = bn.load(x + rows[:, None] * stride + columns[None, :] * step, mask=inside)
    _copied(out, tile, rows, columns)


def sixty_four_bit_rows(x, out, stride):
    rows, columns = bn.program_id(0).to(bn.int64) * 4 + bn.arange(0, 4), bn.arange(0, 64)
    tile = bn.load(x + rows[:, None] * stride + columns[None, :])
    _copied(out, tile, rows, columns)

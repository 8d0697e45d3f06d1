"""Cases of scans, and of reductions by functions: exact in any order, and some not commutative."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from blocknumba.tile_ir.ir.types import FLOATS, INTEGERS, DType, bool_, float32, int32, int64

from case import Case, covers, one_op_case
from elementwise_cases import element

SHAPES = ((1,), (2,), (8,), (64,), (256,), (2048,), (4, 8), (16, 1), (64, 32), (2, 4, 8),
          (2, 4, 2, 4))
FEW_SHAPES = ((64,), (4, 8))

# name -> (operands of one side, combination)
ONE = {name: (((name, (0, 1), ()),), (2,)) for name in
       ("add", "mul", "maximum", "minimum", "fmax", "fmin", "and", "or", "xor")}
# maps x -> a * x + b, the left one first: (a, b), (c, d) to (a * c, b * c + d)
AFFINE = (("mul", (0, 2), ()), ("mul", (1, 2), ()), ("add", (5, 3), ())), (4, 6)
# the greatest element and its index, the first on ties
GREATEST = (("gt", (2, 0), ()), ("select", (4, 2, 0), ()), ("select", (4, 3, 1), ())), (5, 6)
# the last element that is not 0
LAST = (("constant", (), (("value", 0), ("dtype", "int32"))), ("ne", (1, 2), ()),
        ("select", (3, 1, 0), ())), (4,)


def _values(dtype: DType, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Elements whose combinations are exact in any order."""
    generator = np.random.default_rng(sum(shape))
    if dtype == bool_:
        return generator.random(shape) < 0.3
    if name == "mul":
        x = np.where(generator.random(shape) < 0.02, 2, 1)
        return (x * generator.choice([1, -1] if dtype.is_signed else [1], shape)).astype(
            dtype.numpy)
    low = -9 if dtype.is_signed else 0
    x = generator.integers(low, 9, shape).astype(dtype.numpy)
    if dtype.is_float and name in ("maximum", "minimum", "fmax", "fmin") and x.size > 4:
        x.flat[x.size // 2] = np.nan
    return x


def _row(step: Callable, columns: Sequence[Sequence], reverse: bool) -> list[list]:
    """The prefixes of one row: columns hold its elements, one of each tile."""
    rows = list(zip(*columns))
    rows = rows[::-1] if reverse else rows
    found = [rows[0]]
    for row in rows[1:]:
        found.append(step(found[-1], row))
    found = found[::-1] if reverse else found
    return [list(column) for column in zip(*found)]


def _prefixes(step: Callable, tiles: Sequence[np.ndarray], axis: int,
              reverse: bool) -> list[np.ndarray]:
    rows = [np.moveaxis(tile, axis, -1) for tile in tiles]
    made = [np.empty(row.shape, row.dtype) for row in rows]
    for index in np.ndindex(rows[0].shape[:-1]):
        for out, column in zip(made, _row(step, [row[index].tolist() for row in rows], reverse)):
            out[index] = np.array(column).astype(out.dtype)
    return [np.moveaxis(out, -1, axis) for out in made]


def _wrapping(dtype: DType) -> Callable[[int], int]:
    bits = dtype.bits
    return lambda x: (x + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _affine(dtype: DType) -> Callable:
    wrap = _wrapping(dtype)
    return lambda f, g: (wrap(f[0] * g[0]), wrap(f[1] * g[0] + g[1]))


def _greatest(a: tuple, b: tuple) -> tuple:
    return b if b[0] > a[0] else a


def _last(a: tuple, b: tuple) -> tuple:
    return b if b[0] != 0 else a


def _dtypes(name: str) -> list[DType]:
    if name in ("and", "or", "xor"):
        return sorted(INTEGERS | {bool_}, key=str)
    if name in ("fmax", "fmin"):
        return sorted((d for d in FLOATS if d.bits > 8), key=str)
    return sorted((d for d in INTEGERS | FLOATS if d.bits > 8 or not d.is_float), key=str)


def _problems() -> Iterator[tuple[str, tuple, Callable, list[np.ndarray]]]:
    """(title, combination, the same on Python's numbers, tiles)."""
    for name, combination in ONE.items():
        for dtype in _dtypes(name):
            shapes = SHAPES if (name, dtype) == ("add", float32) else FEW_SHAPES
            for shape in shapes:
                step = (lambda a, b, n=name, d=dtype: (element(n, d, a[0], b[0]),))
                yield f"{name}-{dtype}", combination, step, [_values(dtype, name, shape)]
    generator = np.random.default_rng(3)
    for shape in SHAPES:
        for dtype in (int32, int64):
            tiles = [generator.integers(-9, 9, shape).astype(dtype.numpy) for _ in range(2)]
            yield f"affine-{dtype}", AFFINE, _affine(dtype), tiles
        indices = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        tiles = [generator.integers(-9, 9, shape).astype(np.float32), indices]
        yield "greatest", GREATEST, _greatest, tiles
        sparse = generator.integers(-3, 9, shape) * (generator.random(shape) < 0.3)
        yield "last", LAST, _last, [sparse.astype(np.int32)]


@covers("scan")
def scan_cases() -> Iterator[Case]:
    for title, combination, step, tiles in _problems():
        for axis in range(tiles[0].ndim):
            for reverse in (False, True):
                expected = _prefixes(step, tiles, axis, reverse)
                yield one_op_case(
                    "scan", f"{title}-{tiles[0].shape}-{axis}-{reverse}", tiles, expected,
                    axis=axis, combination=combination, reverse=reverse, signed_zeros=False)


@covers("reduce_with")
def reduce_with_cases() -> Iterator[Case]:
    for title, combination, step, tiles in _problems():
        for axis in range(tiles[0].ndim):
            rows = _prefixes(step, tiles, axis, reverse=False)
            expected = [np.take(row, -1, axis) for row in rows]
            yield one_op_case("reduce_with", f"{title}-{tiles[0].shape}-{axis}", tiles, expected,
                              axis=axis, combination=combination, signed_zeros=False)

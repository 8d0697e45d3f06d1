"""Tiles that need no array: affine integers, boxes of a mask, and repeated scalars.

A value of the interpreter is one of
  ndarray   (programs or 1, *tile shape); a leading length of 1 says that all programs agree;
  Affine    an integer or pointer, scalar or tile: start + sum of step * index;
  Box       a bool tile that is true in one box of indices;
  Uniform   a tile of any dtype whose elements are all equal;
  Shadowed  in debug, a value of any of these with the kinds of its elements (shadows.py).
Arithmetic on Affine, Box and Uniform costs a few Python ints for a whole chunk of programs.  All
are immutable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from blocknumba.errors import UNKNOWN, Loc
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.types import INTEGERS

# sums and differences of two numbers below it stay exact in int64
EXACT = 1 << 61


@dataclass(slots=True, eq=False)
class Start:
    """One integer per program: base + gap * index + rows[index].

    index: of the program among those that run in step.
    rows: int64 (count,), or None; count: 1 when all programs agree, and then only base counts.
    """

    base: int
    gap: int = 0
    rows: np.ndarray | None = None
    count: int = 1

    def column(self) -> np.ndarray:
        """The integers, int64 (count,)."""
        if self.count == 1:
            return np.array([self.base], np.int64)
        column = np.full(self.count, self.base) if self.rows is None else self.rows + self.base
        if self.gap:
            column = np.arange(self.count, dtype=np.int64) * self.gap + column
        return column

    def plus(self, other: Start, sign: int = 1) -> Start:
        """self + sign * other."""
        rows = self.rows
        if other.rows is not None:
            rows = sign * other.rows if rows is None else rows + sign * other.rows
        return Start(self.base + sign * other.base, self.gap + sign * other.gap, rows,
                     max(self.count, other.count))

    def times(self, factor: int) -> Start:
        rows = None if self.rows is None else self.rows * factor
        return Start(self.base * factor, self.gap * factor, rows, self.count)

    def chosen(self, indices: np.ndarray) -> Start:
        """The integers of the programs at some indices."""
        if self.count == 1:
            return self
        column = self.column()[indices]
        return Start(int(column[0])) if len(column) == 1 else Start(0, 0, column, len(column))


@dataclass(slots=True, eq=False)
class Affine:
    """The integers start[program] + sum(steps[axis] * index[axis]), which all fit dtype.

    steps: one per axis, 0 on axes of extent 1.
    low, high: no element is outside them.
    """

    start: Start
    steps: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    low: int
    high: int

    @property
    def is_uniform(self) -> bool:
        """Whether all elements of a program's tile are equal."""
        return not any(self.steps)

    @property
    def is_constant(self) -> bool:
        """Whether all elements of all programs are equal, to start.base."""
        return self.start.count == 1 and not any(self.steps)

    def dense(self) -> np.ndarray:
        """The elements as an array."""
        if not self.shape:
            return self.start.column().astype(self.dtype)
        column = self.start.column().reshape(-1, *(1,) * len(self.shape))
        if self.is_uniform:
            return np.broadcast_to(column.astype(self.dtype), (len(column), *self.shape))
        return (column + self._pattern()).astype(self.dtype)

    def _pattern(self) -> np.ndarray:
        """The elements less start, int64 of shape (1, *shape)."""
        total = np.zeros((1, *self.shape), np.int64)
        for axis, (step, extent) in enumerate(zip(self.steps, self.shape)):
            if step:
                along = np.arange(extent, dtype=np.int64) * step
                total += along.reshape(-1, *(1,) * (len(self.shape) - axis - 1))
        return total


Bound = tuple[int | np.ndarray, int | np.ndarray]


@dataclass(slots=True, eq=False)
class Box:
    """True where bounds[axis][0] <= index[axis] < bounds[axis][1] on every axis.

    bounds: per axis two numbers within [0, extent], each an int when all programs agree, else
    int64 (programs,); or None when the axis is not restricted.
    """

    bounds: tuple[Bound | None, ...]
    shape: tuple[int, ...]

    dtype = np.dtype(bool)

    @property
    def is_full(self) -> bool:
        return not any(self.bounds)

    def limits(self) -> list[np.ndarray]:
        """The bounds that differ between programs."""
        return [b for bound in self.bounds if bound for b in bound if isinstance(b, np.ndarray)]

    def dense(self) -> np.ndarray:
        """The mask as an array."""
        rank = len(self.shape)
        result = np.ones((1,) * (rank + 1), bool)
        for axis, bound in enumerate(self.bounds):
            if bound is not None:
                low, high = (np.reshape(b, (-1, *(1,) * rank)) for b in bound)
                index = np.arange(self.shape[axis]).reshape(-1, *(1,) * (rank - axis - 1))
                result = result & (low <= index) & (index < high)
        return np.broadcast_to(result, (len(result), *self.shape))


@dataclass(slots=True, eq=False)
class Uniform:
    """element[program] at every index.

    element: (programs or 1,).
    """

    element: np.ndarray
    shape: tuple[int, ...]

    def dense(self) -> np.ndarray:
        """The elements as an array."""
        return np.broadcast_to(self.thin(), (len(self.element), *self.shape))

    def thin(self) -> np.ndarray:
        """An array that broadcasts to all the elements."""
        return self.element.reshape(-1, *(1,) * len(self.shape))


NEUTRAL = 0


@dataclass(slots=True, eq=False)
class Shadowed:
    """In debug: a value with the kinds of its elements, which shadows.py names.

    kinds: uint8 (programs or 1, *tile shape), where any extent may be 1 instead.
    tile: the value; missing elements may have any bits.
    maker: the `undefined` op that made the missing elements.
    load: the load that has not read the padding.
    """

    kinds: np.ndarray
    tile: Tile
    maker: Op | None = None
    load: Loc = UNKNOWN

    def dense(self) -> np.ndarray:
        """The elements of the value."""
        return dense(self.tile)


Tile = np.ndarray | Affine | Box | Uniform | Shadowed


def origins_of(tiles: Iterable[Tile]) -> tuple[Op | None, Loc]:
    """The first maker of missing elements and the first load of padding among tiles."""
    shadows = [tile for tile in tiles if isinstance(tile, Shadowed)]
    return (next((s.maker for s in shadows if s.maker is not None), None),
            next((s.load for s in shadows if s.load is not UNKNOWN), UNKNOWN))


def as_uniform(tile: Tile) -> Uniform | None:
    """A scalar, or a tile known to be uniform, as a Uniform; None for anything else."""
    if isinstance(tile, np.ndarray):
        return Uniform(tile, ()) if tile.ndim == 1 else None
    if isinstance(tile, Uniform):
        return tile
    if isinstance(tile, Affine) and tile.is_uniform:
        return Uniform(tile.start.column().astype(tile.dtype), tile.shape)
    return None


def dense(tile: Tile) -> np.ndarray:
    """Any value as an array."""
    return tile if isinstance(tile, np.ndarray) else tile.dense()


def row_count(tile: Tile) -> int:
    """Leading length of a value: the number of programs, or 1 where they agree."""
    if isinstance(tile, np.ndarray):
        return len(tile)
    if isinstance(tile, Affine):
        return tile.start.count
    if isinstance(tile, Uniform):
        return len(tile.element)
    return max(map(len, tile.limits()), default=1)


def as_affine(tile: Tile) -> Affine | None:
    """An integer scalar, or an Affine, as an Affine; None for anything else."""
    if isinstance(tile, Affine):
        return tile
    if not isinstance(tile, np.ndarray) or tile.ndim != 1 or tile.dtype.kind not in "iu":
        return None
    if len(tile) == 1:
        return constant(int(tile[0]), tile.dtype)
    low, high = int(tile.min()), int(tile.max())
    start = Start(0, 0, tile.astype(np.int64), len(tile))
    return bounded(start, (), (), tile.dtype, low, high)


def constant(number: int, dtype: np.dtype) -> Affine | None:
    """An integer scalar on which all programs agree."""
    return bounded(Start(number), (), (), dtype, number, number)


def bounded(start: Start, steps: tuple[int, ...], shape: tuple[int, ...], dtype: np.dtype,
            low: int, high: int) -> Affine | None:
    """An Affine, unless an element might wrap around in dtype."""
    minimum, maximum = _LIMITS[dtype]
    if low < minimum or high > maximum:
        return None
    return Affine(start, steps, shape, dtype, low, high)


def _limits(dtype: np.dtype) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return max(int(limits.min), 1 - EXACT), min(int(limits.max), EXACT - 1)


_LIMITS = {dtype.numpy: _limits(dtype.numpy) for dtype in INTEGERS}


def choose(tile: Tile, indices: np.ndarray) -> Tile:
    """The tiles of the programs at some indices."""
    if isinstance(tile, np.ndarray):
        return tile if len(tile) == 1 else tile[indices]
    if isinstance(tile, Affine):
        return Affine(tile.start.chosen(indices), tile.steps, tile.shape, tile.dtype, tile.low,
                      tile.high)
    if isinstance(tile, Uniform):
        return Uniform(choose(tile.element, indices), tile.shape)
    if isinstance(tile, Shadowed):
        kinds, rest = choose(tile.kinds, indices), choose(tile.tile, indices)
        return Shadowed(kinds, rest, tile.maker, tile.load) if kinds.any() else rest
    bounds = (bound and tuple(b[indices] if isinstance(b, np.ndarray) else b for b in bound)
              for bound in tile.bounds)
    return Box(tuple(bounds), tile.shape)


def merge(count: int, groups: Sequence[tuple[np.ndarray, Tile]]) -> Tile:
    """The tiles of count programs from those of disjoint groups of them: (indices, tile)."""
    tiles = [tile for _, tile in groups]
    first = tiles[0]
    if any(isinstance(t, Shadowed) for t in tiles):
        return _merge_shadowed(count, groups)
    if all(isinstance(t, Affine) and t.steps == first.steps for t in tiles):
        rows = merge(count, [(indices, t.start.column()) for indices, t in groups])
        return Affine(Start(0, 0, rows, count), first.steps, first.shape, first.dtype,
                      min(t.low for t in tiles), max(t.high for t in tiles))
    if all(isinstance(t, Uniform) for t in tiles):
        return Uniform(merge(count, [(indices, t.element) for indices, t in groups]), first.shape)
    arrays = [dense(tile) for tile in tiles]
    result = np.empty((count, *arrays[0].shape[1:]), arrays[0].dtype)
    for (indices, _), array in zip(groups, arrays):
        result[indices] = array
    return result


def _merge_shadowed(count: int, groups: Sequence[tuple[np.ndarray, Tile]]) -> Shadowed:
    """merge, where some tiles are Shadowed."""
    tiles = [tile for _, tile in groups]
    whole = merge(count, [(p, t.tile if isinstance(t, Shadowed) else t) for p, t in groups])
    shape = whole.shape[1:] if isinstance(whole, np.ndarray) else whole.shape
    kinds = np.zeros((count, *shape), np.uint8)
    for indices, tile in groups:
        kinds[indices] = tile.kinds if isinstance(tile, Shadowed) else NEUTRAL
    if (kinds == kinds.flat[0]).all():
        kinds = kinds[(slice(0, 1),) * kinds.ndim].copy()
    return Shadowed(kinds, whole, *origins_of(tiles))

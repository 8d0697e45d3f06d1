"""Tiles that need no array: integers affine in the index, and masks that are boxes.

A value of the interpreter is one of
  ndarray  (programs or 1, *tile shape); a leading length of 1 says that all programs agree;
  Affine   an integer tile, or a tile of pointers, base + sum of step * index;
  Box      a bool tile that is true in one box of indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from blocknumba.tile_ir.ir import Op

# sums and differences of two numbers below it stay exact in int64
_EXACT = 1 << 61


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """The integers base[program] + sum(steps[axis] * index[axis]), which all fit dtype.

    base: int64 (programs or 1,); steps: one per axis, 0 on axes of extent 1.
    low, high: no element is outside them.
    """

    base: np.ndarray
    steps: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    low: int
    high: int

    @property
    def is_uniform(self) -> bool:
        """Whether all elements of a program's tile are equal."""
        return not any(self.steps)

    def dense(self) -> np.ndarray:
        """The elements as an array."""
        if self.is_uniform:
            column = self.base.astype(self.dtype).reshape(-1, *(1,) * len(self.shape))
            return np.broadcast_to(column, (len(self.base), *self.shape))
        return (self.base.reshape(-1, *(1,) * len(self.shape)) + self.pattern()).astype(self.dtype)

    def pattern(self) -> np.ndarray:
        """The elements less base, int64 of shape (1, *shape)."""
        total = np.zeros((1, *self.shape), np.int64)
        for axis, (step, extent) in enumerate(zip(self.steps, self.shape)):
            if step:
                along = np.arange(extent, dtype=np.int64) * step
                total += along.reshape(-1, *(1,) * (len(self.shape) - axis - 1))
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """True where bounds[axis][0][program] <= index[axis] < bounds[axis][1][program] on every axis.

    bounds: per axis two int64 arrays (programs or 1,) within [0, extent], or None when the axis
    is not restricted.
    """

    bounds: tuple[tuple[np.ndarray, np.ndarray] | None, ...]
    shape: tuple[int, ...]

    @property
    def is_full(self) -> bool:
        return not any(self.bounds)

    def dense(self) -> np.ndarray:
        """The mask as an array."""
        rank = len(self.shape)
        result = np.ones((1,) * (rank + 1), bool)
        for axis, bound in enumerate(self.bounds):
            if bound is not None:
                low, high = (b.reshape(-1, *(1,) * rank) for b in bound)
                index = np.arange(self.shape[axis]).reshape(-1, *(1,) * (rank - axis - 1))
                result = result & (low <= index) & (index < high)
        return np.broadcast_to(result, (len(result), *self.shape))


Tile = np.ndarray | Affine | Box


def dense(tile: Tile) -> np.ndarray:
    """Any value as an array."""
    return tile if isinstance(tile, np.ndarray) else tile.dense()


def as_affine(tile: Tile) -> Affine | None:
    """An integer scalar or an Affine as an Affine; None for anything else."""
    if isinstance(tile, Affine):
        return tile
    if not isinstance(tile, np.ndarray) or tile.ndim != 1 or tile.dtype.kind not in "iu":
        return None
    if len(tile) == 1:
        low = high = int(tile[0])
    else:
        low, high = int(tile.min()), int(tile.max())
    if not -_EXACT < low <= high < _EXACT:
        return None
    return Affine(tile.astype(np.int64), (), (), tile.dtype, low, high)


def choose(tile: Tile, chosen: np.ndarray) -> Tile:
    """The tiles of some programs: chosen are their places."""
    if isinstance(tile, np.ndarray):
        return tile if len(tile) == 1 else tile[chosen]
    if isinstance(tile, Affine):
        return replace(tile, base=choose(tile.base, chosen))
    bounds = (b and (choose(b[0], chosen), choose(b[1], chosen)) for b in tile.bounds)
    return replace(tile, bounds=tuple(bounds))


def merge(count: int, parts: Sequence[tuple[np.ndarray, Tile]]) -> Tile:
    """The tiles of count programs from those of disjoint parts of them: (places, tiles)."""
    tiles = [tile for _, tile in parts]
    first = tiles[0]
    if all(isinstance(t, Affine) and t.steps == first.steps for t in tiles):
        base = merge(count, [(chosen, t.base) for chosen, t in parts])
        return replace(first, base=base, low=min(t.low for t in tiles),
                       high=max(t.high for t in tiles))
    arrays = [dense(tile) for tile in tiles]
    result = np.empty((count, *arrays[0].shape[1:]), arrays[0].dtype)
    for (chosen, _), array in zip(parts, arrays):
        result[chosen] = array
    return result


# operations on affine tiles -------------------------------------------------------------------

Rule = Callable[..., Tile | None]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: how the ops of these names work on Affine and Box operands.

    The rule takes (op, *tiles) and returns None where the result has no such form.
    """

    def declare(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return declare


def _bounded(base: np.ndarray, steps: tuple[int, ...], shape: tuple[int, ...], dtype: np.dtype,
             low: int, high: int) -> Affine | None:
    """An Affine, unless an element might wrap around in dtype."""
    limits = np.iinfo(dtype)
    if low < max(limits.min, 1 - _EXACT) or high > min(limits.max, _EXACT - 1):
        return None
    return Affine(base, steps, shape, dtype, low, high)


@rule("arange")
def _(op: Op) -> Affine:
    start, size = op.attrs["start"], op.attrs["size"]
    return Affine(np.array([start]), (int(size > 1),), (size,), np.dtype(np.int32), start,
                  start + size - 1)


@rule("add", "offset")
def _add(op: Op, x: Tile, y: Tile) -> Affine | None:
    x, y = as_affine(x), as_affine(y)
    if x is None or y is None:
        return None
    steps = tuple(a + b for a, b in zip(x.steps, y.steps))
    return _bounded(x.base + y.base, steps, x.shape, x.dtype, x.low + y.low, x.high + y.high)


@rule("sub")
def _(op: Op, x: Tile, y: Tile) -> Affine | None:
    x, y = as_affine(x), as_affine(y)
    if x is None or y is None:
        return None
    steps = tuple(a - b for a, b in zip(x.steps, y.steps))
    return _bounded(x.base - y.base, steps, x.shape, x.dtype, x.low - y.high, x.high - y.low)


@rule("mul")
def _(op: Op, x: Tile, y: Tile) -> Affine | None:
    x, y = as_affine(x), as_affine(y)
    if x is None or y is None:
        return None
    if not y.is_uniform:
        x, y = y, x
    if not y.is_uniform or not (len(y.base) == 1 or x.is_uniform):
        return None
    factor = int(y.base[0])
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    if max(map(abs, corners)) >= _EXACT:
        return None
    steps = tuple(s and s * factor for s in x.steps)
    return _bounded(x.base * y.base, steps, x.shape, x.dtype, min(corners), max(corners))


@rule("mod")
def _(op: Op, x: Tile, y: Tile) -> Affine | None:
    x, y = as_affine(x), as_affine(y)
    # only where it changes nothing: the wrapped row offsets of a matrix that needs no wrapping
    return x if x is not None and y is not None and 0 <= x.low and x.high < y.low else None


@rule("cast")
def _(op: Op, x: Tile) -> Affine | None:
    x = as_affine(x)
    dtype = op.result.type.dtype
    if x is None or not dtype.is_integer:
        return None
    return _bounded(x.base, x.steps, x.shape, dtype.numpy, x.low, x.high)


@rule("hint")
def _(op: Op, x: Tile) -> Tile | None:
    return x if isinstance(x, Affine) else None


# comparisons and masks ------------------------------------------------------------------------

# x ? y  is  sign * (x - y) + shift < 0
_COMPARISONS = {"lt": (1, 0), "le": (1, -1), "gt": (-1, 0), "ge": (-1, -1)}


@rule(*_COMPARISONS)
def _(op: Op, x: Tile, y: Tile) -> Box | None:
    x, y = as_affine(x), as_affine(y)
    if x is None or y is None:
        return None
    sign, shift = _COMPARISONS[op.name]
    steps = tuple(sign * (a - b) for a, b in zip(x.steps, y.steps))
    moving = [axis for axis, step in enumerate(steps) if step]
    if len(moving) > 1:
        return None
    axis = moving[0] if moving else 0
    low, high = _negative_range(sign * (x.base - y.base) + shift, steps[axis], x.shape[axis])
    bounds = [None] * len(x.shape)
    if low.max() > 0 or high.min() < x.shape[axis]:
        bounds[axis] = low, high
    return Box(tuple(bounds), x.shape)


def _negative_range(base: np.ndarray, step: int, extent: int) -> tuple[np.ndarray, np.ndarray]:
    """The range of i in [0, extent) where base + step * i < 0."""
    low, high = np.zeros_like(base), np.full_like(base, extent)
    if step > 0:
        high = np.clip(-(base // step), 0, extent)
    elif step < 0:
        low = np.clip(base // -step + 1, 0, extent)
    else:
        high = np.where(base < 0, extent, 0)
    return low, high


@rule("and")
def _(op: Op, x: Tile, y: Tile) -> Box | None:
    if not (isinstance(x, Box) and isinstance(y, Box)):
        return None
    return Box(tuple(_intersection(a, b) for a, b in zip(x.bounds, y.bounds)), x.shape)


def _intersection(a: tuple | None, b: tuple | None) -> tuple | None:
    if a is None or b is None:
        return a or b
    return np.maximum(a[0], b[0]), np.minimum(a[1], b[1])


@rule("select")
def _(op: Op, condition: Tile, x: Tile, y: Tile) -> Tile | None:
    return x if isinstance(condition, Box) and condition.is_full else None


# shapes ---------------------------------------------------------------------------------------

@rule("splat")
def _(op: Op, x: Tile) -> Tile | None:
    shape = op.attrs["shape"]
    if x.dtype == bool and shape:
        high = np.where(x, shape[0], 0)
        bound = None if x.all() else (np.zeros_like(high), high)
        return Box((bound, *(None,) * (len(shape) - 1)), shape)
    x = as_affine(x)
    return x and replace(x, steps=(0,) * len(shape), shape=shape)


@rule("broadcast")
def _(op: Op, x: Tile) -> Tile | None:
    shape = op.attrs["shape"]
    if isinstance(x, Affine):
        return replace(x, shape=shape)
    if isinstance(x, Box):
        return Box(tuple(b and _stretched(b, n, m) for b, n, m in zip(x.bounds, x.shape, shape)),
                   shape)
    return None


def _stretched(bound: tuple, extent: int, wide: int) -> tuple:
    """The bounds of an axis that was repeated from extent to wide."""
    if extent == wide:
        return bound
    high = np.where(bound[1] > bound[0], wide, 0)
    return np.zeros_like(high), high


@rule("reshape")
def _(op: Op, x: Tile) -> Tile | None:
    shape = op.attrs["shape"]
    if isinstance(x, Affine):
        steps = _reshaped_steps(x.steps, x.shape, shape)
        return steps and replace(x, steps=steps, shape=shape)
    if not isinstance(x, Box) or any(b for b, n in zip(x.bounds, x.shape) if n == 1):
        return None
    if [n for n in x.shape if n > 1] != [n for n in shape if n > 1]:
        return None
    long = iter([b for b, n in zip(x.bounds, x.shape) if n > 1])
    return Box(tuple(next(long) if n > 1 else None for n in shape), shape)


def _reshaped_steps(steps: tuple[int, ...], shape: tuple[int, ...],
                    wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """The steps in another shape: for new axes of extent 1, and for one axis that is divided."""
    long = [s for s, n in zip(steps, shape) if n > 1]
    if [n for n in shape if n > 1] == [n for n in wanted if n > 1]:
        remaining = iter(long)
        return tuple(next(remaining) if n > 1 else 0 for n in wanted)
    if len(long) > 1 and any(long):
        return None
    step, result = (long or [0])[0], []
    for extent in reversed(wanted):
        result.append(step if extent > 1 else 0)
        step *= extent
    return tuple(reversed(result))


@rule("transpose")
def _(op: Op, x: Tile) -> Tile | None:
    axes, shape = op.attrs["axes"], op.result.type.shape
    if isinstance(x, Affine):
        return replace(x, steps=tuple(x.steps[a] for a in axes), shape=shape)
    if isinstance(x, Box):
        return Box(tuple(x.bounds[a] for a in axes), shape)
    return None


@rule("extract")
def _(op: Op, x: Tile) -> Affine | None:
    if not isinstance(x, Affine):
        return None
    shape = op.attrs["shape"]
    start = sum(s * step for s, step in zip(op.attrs["starts"], x.steps))
    steps = tuple(step if n > 1 else 0 for step, n in zip(x.steps, shape))
    return replace(x, base=x.base + start, steps=steps, shape=shape)

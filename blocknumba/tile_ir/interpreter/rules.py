"""Rules of ops on Affine, Box and Uniform tiles whose results are such tiles too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.tile_ir.interpreter.affine import (
    EXACT, Affine, Bound, Box, Start, Tile, Uniform, as_affine, bounded, constant,
)
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import OpTable

# (op, *tiles) -> a tile; None where the op has to be evaluated on arrays
Rule = Callable[..., Tile | None]
rule = RULES = OpTable[Rule]("interpretation of affine tiles")


# integers -------------------------------------------------------------------------------------

@rule("constant")
def _(op: Op) -> Affine | None:
    dtype = op.result.type.dtype
    return constant(op.attrs["value"], dtype.numpy) if dtype.is_integer else None


@rule("arange")
def _(op: Op) -> Affine:
    start, size = op.attrs["start"], op.attrs["size"]
    return Affine(Start(start), (int(size > 1),), (size,), np.dtype(np.int32), start,
                  start + size - 1)


@rule("add", "offset")
def _(op: Op, x: Tile, y: Tile) -> Affine | None:
    x, y = as_affine(x), as_affine(y)
    if x is None or y is None:
        return None
    steps = tuple([a + b for a, b in zip(x.steps, y.steps)])
    return bounded(x.start.plus(y.start), steps, x.shape, x.dtype, x.low + y.low, x.high + y.high)


@rule("sub")
def _(op: Op, x: Tile, y: Tile) -> Affine | None:
    x, y = as_affine(x), as_affine(y)
    if x is None or y is None:
        return None
    steps = tuple([a - b for a, b in zip(x.steps, y.steps)])
    return bounded(x.start.plus(y.start, -1), steps, x.shape, x.dtype, x.low - y.high,
                   x.high - y.low)


@rule("mul")
def _(op: Op, x: Tile, y: Tile) -> Affine | None:
    x, y = as_affine(x), as_affine(y)
    if x is None or y is None:
        return None
    if not y.is_constant:
        x, y = y, x
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    low, high = min(corners), max(corners)
    if max(-low, high) >= EXACT:
        return None
    if y.is_constant:
        factor = y.start.base
        return bounded(x.start.times(factor), tuple([s * factor for s in x.steps]), x.shape,
                       x.dtype, low, high)
    if not (x.is_uniform and y.is_uniform):
        return None
    product = x.start.column() * y.start.column()
    return bounded(Start(0, 0, product, len(product)), x.steps, x.shape, x.dtype, low, high)


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
    return bounded(x.start, x.steps, x.shape, dtype.numpy, x.low, x.high)


@rule("hint")
def _(op: Op, x: Tile) -> Tile:
    return x


# comparisons and masks ------------------------------------------------------------------------

# x ? y  is  sign * (x - y) + shift < 0
_COMPARISONS = {"lt": (1, 0), "le": (1, -1), "gt": (-1, 0), "ge": (-1, -1)}


@rule(*_COMPARISONS)
def _(op: Op, x: Tile, y: Tile) -> Box | np.ndarray | None:
    x, y = as_affine(x), as_affine(y)
    if x is None or y is None:
        return None
    sign, shift = _COMPARISONS[op.name]
    highest = x.high - y.low if sign > 0 else y.high - x.low
    if highest + shift < 0:
        return Box((None,) * len(x.shape), x.shape) if x.shape else np.ones(1, bool)
    if not x.shape:
        return None
    steps = [sign * (a - b) for a, b in zip(x.steps, y.steps)]
    moving = [axis for axis, step in enumerate(steps) if step]
    if len(moving) > 1:
        return None
    axis = moving[0] if moving else 0
    start = x.start.plus(y.start, -1)
    base = start.base if start.count == 1 else start.column()
    bounds = [None] * len(x.shape)
    bounds[axis] = _negative_range(sign * base + shift, steps[axis], x.shape[axis])
    return Box(tuple(bounds), x.shape)


def _negative_range(base: int | np.ndarray, step: int, extent: int) -> Bound | None:
    """The range of i in [0, extent) where base + step * i < 0; None when that is all of it."""
    low, high = 0, extent
    if step > 0:
        high = _clip(-(base // step), extent)
    elif step < 0:
        low = _clip(base // -step + 1, extent)
    else:
        high = extent * (base < 0)
    whole = _all_equal(low, 0) and _all_equal(high, extent)
    return None if whole else (low, high)


def _all_equal(x: int | np.ndarray, y: int) -> bool:
    return x == y if isinstance(x, int) else bool((x == y).all())


def _clip(x: int | np.ndarray, extent: int) -> int | np.ndarray:
    return _minimum(_maximum(x, 0), extent)


def _minimum(x: int | np.ndarray, y: int | np.ndarray) -> int | np.ndarray:
    return min(x, y) if isinstance(x, int) and isinstance(y, int) else np.minimum(x, y)


def _maximum(x: int | np.ndarray, y: int | np.ndarray) -> int | np.ndarray:
    return max(x, y) if isinstance(x, int) and isinstance(y, int) else np.maximum(x, y)


@rule("and")
def _(op: Op, x: Tile, y: Tile) -> Box | None:
    if not (isinstance(x, Box) and isinstance(y, Box)):
        return None
    return Box(tuple([_intersection(a, b) for a, b in zip(x.bounds, y.bounds)]), x.shape)


def _intersection(a: Bound | None, b: Bound | None) -> Bound | None:
    if a is None or b is None:
        return a or b
    return _maximum(a[0], b[0]), _minimum(a[1], b[1])


@rule("select")
def _(op: Op, condition: Tile, x: Tile, y: Tile) -> Tile | None:
    return x if isinstance(condition, Box) and condition.is_full else None


# shapes ---------------------------------------------------------------------------------------

@rule("splat")
def _(op: Op, x: Tile) -> Tile | None:
    shape = op.attrs["shape"]
    if not shape:
        return x
    integer = as_affine(x)
    if integer is not None:
        return Affine(integer.start, (0,) * len(shape), shape, integer.dtype, integer.low,
                      integer.high)
    if x.dtype != bool:
        return Uniform(x, shape)
    bound = None
    if not x.all():
        bound = 0, (0 if not x.any() else np.where(x, shape[0], 0))
    return Box((bound, *(None,) * (len(shape) - 1)), shape)


@rule("broadcast")
def _(op: Op, x: Tile) -> Tile | None:
    shape = op.attrs["shape"]
    if isinstance(x, Affine):
        return Affine(x.start, x.steps, shape, x.dtype, x.low, x.high)
    if isinstance(x, Uniform):
        return Uniform(x.element, shape)
    if isinstance(x, Box):
        return Box(tuple([b and _stretched(b, n, m) for b, n, m in zip(x.bounds, x.shape, shape)]),
                   shape)
    return None


def _stretched(bound: Bound, extent: int, wide: int) -> Bound:
    """The bounds of an axis that was repeated from extent to wide."""
    return bound if extent == wide else (0, wide * np.greater(bound[1], bound[0]).astype(int))


@rule("reshape")
def _(op: Op, x: Tile) -> Tile | None:
    shape = op.attrs["shape"]
    if isinstance(x, Affine):
        steps = _reshaped_steps(x.steps, x.shape, shape)
        return None if steps is None else Affine(x.start, steps, shape, x.dtype, x.low, x.high)
    if isinstance(x, Uniform):
        return Uniform(x.element, shape) if shape else x.element
    if not isinstance(x, Box) or any(b for b, n in zip(x.bounds, x.shape) if n == 1):
        return None
    if [n for n in x.shape if n > 1] != [n for n in shape if n > 1]:
        return None
    long = iter([b for b, n in zip(x.bounds, x.shape) if n > 1])
    return Box(tuple([next(long) if n > 1 else None for n in shape]), shape) if shape else None


def _reshaped_steps(steps: tuple[int, ...], shape: tuple[int, ...],
                    wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """The steps in another shape: for new axes of extent 1, and for one axis that is divided."""
    long = [s for s, n in zip(steps, shape) if n > 1]
    if [n for n in shape if n > 1] == [n for n in wanted if n > 1]:
        remaining = iter(long)
        return tuple([next(remaining) if n > 1 else 0 for n in wanted])
    if len(long) > 1 and any(long):
        return None
    step, result = long[0], []
    for extent in reversed(wanted):
        result.append(step if extent > 1 else 0)
        step *= extent
    return tuple(reversed(result))


@rule("transpose")
def _(op: Op, x: Tile) -> Tile | None:
    axes, shape = op.attrs["axes"], op.result.type.shape
    if isinstance(x, Affine):
        return Affine(x.start, tuple([x.steps[a] for a in axes]), shape, x.dtype, x.low, x.high)
    if isinstance(x, Uniform):
        return Uniform(x.element, shape)
    if isinstance(x, Box):
        return Box(tuple([x.bounds[a] for a in axes]), shape)
    return None


@rule("extract")
def _(op: Op, x: Tile) -> Tile | None:
    shape = op.attrs["shape"]
    if isinstance(x, Uniform):
        return Uniform(x.element, shape)
    if not isinstance(x, Affine):
        return None
    first = sum(s * step for s, step in zip(op.attrs["starts"], x.steps))
    steps = tuple([step if n > 1 else 0 for step, n in zip(x.steps, shape)])
    return Affine(x.start.plus(Start(first)), steps, shape, x.dtype, x.low, x.high)

"""Cases of gathers: every dtype, along every axis, with indices outside of it too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blocknumba.tile_ir.ir.types import (
    DTYPES, DType, bool_, float16, float32, float64, int16, int64, int8, uint32,
)

from case import Case, covers, one_op_case

# shape of the tile, axis, extent of the indices along it
SHAPES = (
    ((1,), 0, 1), ((1,), 0, 64), ((2,), 0, 2), ((16,), 0, 1024), ((32,), 0, 32), ((64,), 0, 64),
    ((64,), 0, 8), ((128,), 0, 512), ((1024,), 0, 1024), ((2048,), 0, 256), ((256,), 0, 2048),
    ((4, 8), 0, 4), ((4, 8), 1, 8), ((4, 8), 1, 32), ((64, 32), 0, 64), ((64, 32), 1, 32),
    ((32, 64), 1, 16), ((32, 64), 0, 128), ((1, 64), 0, 4), ((64, 1), 1, 8), ((2, 256), 1, 256),
    ((256, 2), 0, 256), ((4, 8, 16), 0, 4), ((4, 8, 16), 1, 16), ((4, 8, 16), 2, 4),
    ((2, 1, 4, 8), 2, 2), ((2, 2, 2, 2, 2, 2), 3, 8), ((2, 1, 2, 2, 2, 1, 2, 4), 7, 4),
    ((2, 2, 2, 2, 2, 2, 2, 2), 0, 2),
)
FEW = (((64,), 0, 64), ((16,), 0, 256), ((8, 16), 1, 32), ((8, 16), 0, 8))


def _tile(dtype: DType, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Bits of any kind: gathers look at none of them."""
    if dtype == bool_:
        return generator.random(shape) < 0.5
    bits = generator.integers(0, 1 << 16, (*shape, 4), np.uint16)
    found = bits[..., :max(1, dtype.bits // 16)].copy().view(f"u{max(2, dtype.bits // 8)}")[..., 0]
    found = found.astype(f"u{dtype.bits // 8}").view(dtype.numpy)
    if not dtype.is_float:
        return found
    with np.errstate(invalid="ignore"):  # signalling NaNs
        numbers = found.astype(np.float64)
    return np.where(np.isfinite(numbers), found, np.ones((), dtype.numpy)).astype(dtype.numpy)


def _taken(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """Element by element, in Python."""
    made = np.zeros(indices.shape, x.dtype)
    for place in np.ndindex(indices.shape):
        index = int(indices[place])
        if 0 <= index < x.shape[axis]:
            made[place] = x[(*place[:axis], index, *place[axis + 1:])]
    return made


def _case(dtype: DType, shape: tuple[int, ...], axis: int, extent: int, kind: str) -> Case:
    generator = np.random.default_rng(sum(shape) + 7 * axis + extent)
    x = _tile(dtype, shape, generator)
    size = (*shape[:axis], extent, *shape[axis + 1:])
    low, high = (0, shape[axis]) if kind == "inside" else (-2, shape[axis] + 3)
    indices = generator.integers(low, high, size).astype(np.int32)
    if kind == "far":
        indices[generator.random(size) < 0.2] = np.iinfo(np.int32).min
        indices[generator.random(size) < 0.2] = np.iinfo(np.int32).max
    title = f"{dtype}-{'x'.join(map(str, shape))}-{axis}-{extent}-{kind}"
    return one_op_case("gather", title, [x, indices], [_taken(x, indices, axis)], axis=axis)


@covers("gather")
def gather_cases() -> Iterator[Case]:
    for shape, axis, extent in SHAPES:
        yield _case(float32, shape, axis, extent, "inside")
        yield _case(float32, shape, axis, extent, "far")
    for dtype in DTYPES.values():
        for shape, axis, extent in FEW:
            yield _case(dtype, shape, axis, extent, "around")
    for dtype in (float64, int64, float16, int8, int16, uint32):
        yield _case(dtype, (512,), 0, 512, "inside")

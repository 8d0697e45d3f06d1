"""Cases of sorting, all counts of elements that are kept, ties, several keys; of histograms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blocknumba.tile_ir.ir.types import int32
from blocknumba.tile_ir.ops.order import SORTED

from case import Case, covers, one_op_case

SHAPES = ((1,), (2,), (8,), (64,), (256,), (2048,), (4, 8), (16, 1), (64, 32), (2, 64, 4),
          (2, 4, 2, 8))
FEW_SHAPES = ((64,), (512,), (32, 16))


def _least(tiles: list[np.ndarray], axis: int, kept: int) -> list[np.ndarray]:
    """The least elements by Python's own comparison of tuples."""
    rows = [np.moveaxis(tile, axis, -1) for tile in tiles]
    shape = (*rows[0].shape[:-1], kept)
    made = [np.empty(shape, tile.dtype) for tile in tiles]
    for index in np.ndindex(shape[:-1]):
        row = sorted(zip(*(tile[index].tolist() for tile in rows)))[:kept]
        for out, column in zip(made, zip(*row)):
            out[index] = column
    return [np.moveaxis(out, -1, axis) for out in made]


def _values(dtype: np.dtype, shape: tuple[int, ...], spread: int | None) -> np.ndarray:
    """Numbers of the whole range of a dtype, or a few of them, so that there are ties."""
    generator = np.random.default_rng(sum(shape))
    limits = np.iinfo(dtype)
    if spread is not None:
        return generator.integers(0, spread, shape).astype(dtype)
    x = generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x.flat[0], x.flat[-1] = limits.max, limits.min
    return x


def _counts(extent: int) -> list[int]:
    if extent > 512:
        return [extent]
    every = [1 << bit for bit in range(extent.bit_length())]
    return sorted({every[0], every[len(every) // 2], every[-1]})


@covers("sort")
def sort_cases() -> Iterator[Case]:
    for dtype in SORTED:
        for shape in SHAPES if dtype == int32 else FEW_SHAPES:
            keys = _values(dtype.numpy, shape, None)
            ties = _values(dtype.numpy, shape, 5)
            index = np.random.default_rng(1).permutation(keys.size).astype(np.int32).reshape(shape)
            for axis in range(len(shape)):
                for kept in _counts(shape[axis]):
                    for name, tiles in (("keys", [keys if kept > 1 else ties]),
                                        ("pairs", [ties, index])):
                        yield one_op_case("sort", f"{dtype}-{name}-{shape}-{axis}-{kept}", tiles,
                                          _least(tiles, axis, kept), axis=axis, kept=kept)


@covers("histogram")
def histogram_cases() -> Iterator[Case]:
    generator = np.random.default_rng(5)
    for shape in SHAPES:
        for bins in (1, 16, 128, 1024):
            spread = np.int32(generator.choice([1, bins, 2 * bins]))
            x = generator.integers(-spread // 4, spread, shape).astype(np.int32)
            x.flat[0] = generator.choice([0, bins, -1, 2**31 - 1, -2**31])
            mask = generator.random(shape) < 0.7
            for name, tiles in (("all", [x]), ("masked", [x, mask])):
                counted = x[mask] if name == "masked" else x.ravel()
                expected = np.array([np.count_nonzero(counted == number)
                                     for number in range(bins)], np.int32)
                yield one_op_case("histogram", f"{shape}-{bins}-{name}", tiles, [expected],
                                  bins=bins)

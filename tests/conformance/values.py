"""Operands worth trying: the edges of every dtype."""

from __future__ import annotations

import itertools
import math

import numpy as np

from blocknumba.tile_ir.ir.types import DType

_FLOATS = (0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.0, 0.1, 0.7, 100.0, 1000.0, math.inf)


def edges(dtype: DType) -> np.ndarray:
    """The edge values of a dtype, 1-D."""
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.is_integer:
        return np.array(sorted(_integers(dtype)), dtype.numpy)
    words = np.arange(1 << min(dtype.bits, 16), dtype=f"u{min(dtype.bits, 16) // 8}")
    if dtype.bits == 8:
        return words.view(dtype.numpy)
    with np.errstate(over="ignore"):
        plain = np.array([*_FLOATS, *(-x for x in _FLOATS), math.nan]).astype(dtype.numpy)
    return np.concatenate([plain, np.array(_extremes(dtype), f"u{dtype.bytes}").view(dtype.numpy)])


def _integers(dtype: DType) -> set[int]:
    near = {0, 1, 2, 3, 5, 7, 100, dtype.bits - 1, dtype.bits, dtype.bits + 1}
    high = {dtype.maximum, dtype.maximum - 1, dtype.maximum // 2, dtype.maximum // 2 + 1}
    low = {dtype.minimum, dtype.minimum + 1, -1, -2, -3, -7, -dtype.bits, dtype.minimum // 2}
    return {x for x in near | high | low if dtype.minimum <= x <= dtype.maximum}


def _extremes(dtype: DType) -> list[int]:
    """Bits of the least subnormal and normal numbers, the largest, and 1's neighbours."""
    fraction = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype.name]
    infinite = (1 << dtype.bits - 1) - (1 << fraction)
    one = (infinite >> 1) & ~((1 << fraction) - 1)
    sign = 1 << dtype.bits - 1
    positive = [1, 2, (1 << fraction) - 1, 1 << fraction, infinite - 1, one - 1, one + 1]
    return [*positive, *(bits | sign for bits in positive)]


def padded(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Arrays of one length, repeated to the next power of two."""
    size = 1 << (len(arrays[0]) - 1).bit_length()
    return [np.resize(array, size) for array in arrays]


def operands(dtype: DType, count: int, seed: int = 0) -> list[np.ndarray]:
    """count operands of a power-of-two length: edges against edges, and random bits or sizes."""
    values = edges(dtype)
    generator = np.random.default_rng(seed)
    if count > 1 and len(values) > 64:
        values = generator.choice(values, 64, replace=False)
    if count > 2:
        rows = generator.integers(0, len(values), (1000, count))
    else:
        rows = np.array(list(itertools.product(range(len(values)), repeat=count)))
    columns = [np.concatenate([values[rows[:, i]], random(dtype, generator, 100)])
               for i in range(count)]
    return padded(columns)


def random(dtype: DType, generator: np.random.Generator, size: int) -> np.ndarray:
    """Random values: integers of any bits, floats of sizes from 1/1000 to 1000."""
    if dtype.is_float:
        scale = 10.0 ** generator.uniform(-3, 3, size)
        return (generator.choice([-1, 1], size) * scale).astype(dtype.numpy)
    return generator.integers(dtype.minimum, dtype.maximum, size, dtype.numpy, endpoint=True)

"""What products of matrices are in more than enough precision, and how far off they may be."""

from __future__ import annotations

import numpy as np

from blocknumba.tile_ir.ir.types import DTYPES, dtype_of
from blocknumba.tile_ir.ops.dot import PRODUCT_ERROR, sum_error

# (dtype of a, dtype of b, dtype of acc, precision): every kind of product
KINDS = [
    ("float16", "float16", "float32", "ieee"), ("float16", "float16", "float16", "ieee"),
    ("bfloat16", "bfloat16", "float32", "ieee"),
    *((a, b, "float32", "ieee") for a in ("float8_e4m3fn", "float8_e5m2")
      for b in ("float8_e4m3fn", "float8_e5m2")),
    *((a, b, "int32", "ieee") for a in ("int8", "uint8") for b in ("int8", "uint8")),
    *(("float32", "float32", "float32", precision) for precision in ("ieee", "tf32", "tf32x3")),
    ("float64", "float64", "float64", "ieee")]


def random_matrix(generator: np.random.Generator, shape: tuple[int, ...],
                  dtype: str) -> np.ndarray:
    """Integers of any value, or floats around 1 of both signs.

    Of float32 none is a tie of tf32: older targets round those away from zero, newer ones to even.
    """
    to = DTYPES[dtype]
    if to.is_integer:
        return generator.integers(to.minimum, to.maximum, shape, to.numpy, endpoint=True)
    found = generator.standard_normal(shape).astype(to.numpy)
    if dtype == "float32":
        bits = found.view(np.uint32)
        bits += bits % 0x2000 == 0x1000
    return found


def as_tf32(x: np.ndarray) -> np.ndarray:
    """Finite numbers with 11 significant bits, ties away from zero, as float64."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.trunc(fraction * 2048 + np.copysign(0.5, fraction)) / 2048, exponent)


def exact_dot(a: np.ndarray, b: np.ndarray, acc: np.ndarray, precision: str = "ieee") -> np.ndarray:
    """a @ b + acc: of integers modulo 2**32, of floats as long double or float64."""
    if acc.dtype == np.int32:
        return (a.astype(np.int64) @ b.astype(np.int64) + acc).astype(np.int32)
    wide = np.longdouble if acc.dtype == np.float64 else np.float64
    left, right = (as_tf32(x) if precision == "tf32" else x.astype(wide) for x in (a, b))
    return left @ right + acc.astype(wide)


def error_bound(a: np.ndarray, b: np.ndarray, acc: np.ndarray,
                precision: str = "ieee") -> np.ndarray:
    """How far each element may be off, as the op `dot` says."""
    if acc.dtype == np.int32:
        return np.zeros(acc.shape)
    magnitude = exact_dot(np.abs(a), np.abs(b), np.abs(acc), precision).astype(np.float64)
    error = (a.shape[-1] + 2) * sum_error(dtype_of(a.dtype), dtype_of(acc.dtype))
    return (error + PRODUCT_ERROR[precision]) * magnitude


def assert_close(found: np.ndarray, expected: np.ndarray, bound: np.ndarray) -> None:
    """Every element is as near as it must be."""
    distance = np.abs(found.astype(expected.dtype) - expected)
    worst = np.unravel_index(np.argmax(distance - bound), distance.shape)
    assert (distance <= bound).all(), (
        f"{worst}: {found[worst]!r}, must be {expected[worst]!r} up to {bound[worst]!r}")

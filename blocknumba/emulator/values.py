"""PTX types: their widths, their NumPy dtypes, and how bits in a register are read as them."""

from __future__ import annotations

import ml_dtypes
import numpy as np

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}

# The dtype whose arithmetic the type has.  Packed types are read as their container.
DTYPES: dict[str, np.dtype] = {
    **{f"{letter}{8 * size}": np.dtype(dtype)
       for letter, table in (("u", _UNSIGNED), ("b", _UNSIGNED), ("s", _SIGNED))
       for size, dtype in table.items()},
    "pred": np.dtype(np.bool_),
    "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16), "tf32": np.dtype(np.float32),
    "f16x2": np.dtype(np.uint32), "bf16x2": np.dtype(np.uint32),
    "u16x2": np.dtype(np.uint32), "s16x2": np.dtype(np.uint32),
    "f32x2": np.dtype(np.uint64),
    "e4m3x2": np.dtype(np.uint16), "e5m2x2": np.dtype(np.uint16),
}
FLOATS = frozenset(("f16", "bf16", "f32", "f64"))


def dtype_of(type_: str) -> np.dtype:
    """The NumPy dtype of a PTX type."""
    return DTYPES[type_]


def container_of(type_: str) -> np.dtype:
    """The dtype in which a register of this type keeps its bits: unsigned, or bool."""
    dtype = DTYPES[type_]
    return dtype if dtype == np.bool_ else np.dtype(_UNSIGNED[dtype.itemsize])


def literal(value: int | float, bits: int, type_: str) -> np.ndarray:
    """A literal as a type's dtype, of shape (1,).

    bits: the width of a literal that states its own bits, else 0.
    """
    dtype = DTYPES[type_]
    if bits:
        stated = np.array([value], np.uint64).astype(_UNSIGNED[bits // 8])
        as_float = stated.view(np.float32 if bits == 32 else np.float64)
        if dtype.itemsize * 8 == bits:
            return stated.view(dtype)
        return as_float.astype(dtype)
    if type_ in FLOATS:
        return np.array([value], np.float64).astype(dtype)
    if dtype == np.bool_:
        return np.array([bool(value)])
    mask = (1 << 8 * dtype.itemsize) - 1
    return np.array([int(value) & mask], np.uint64).astype(
        _UNSIGNED[dtype.itemsize]).view(dtype)

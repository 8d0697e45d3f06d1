"""The elements of matrices that tensor cores multiply."""

from __future__ import annotations

import ml_dtypes
import numpy as np

DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
          "tf32": np.dtype(np.float32), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
          "e5m2": np.dtype(ml_dtypes.float8_e5m2), "s8": np.dtype(np.int8),
          "u8": np.dtype(np.uint8), "s32": np.dtype(np.int32), "f32": np.dtype(np.float32),
          "f64": np.dtype(np.float64)}


def random_matrix(shape, kind, seed):
    """Small integers, exact in every kind of element."""
    low = 0 if kind[0] == "u" else -4
    return np.random.default_rng(seed).integers(low, 5, shape).astype(DTYPES[kind])

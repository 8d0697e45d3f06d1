"""The arithmetic of tensor cores: what they add up is aligned and truncated."""

from __future__ import annotations

import numpy as np

from blocknumba.emulator.fragments import ELEMENTS
from blocknumba.emulator.rounding import fma_exactly

_TF32_MASK = np.uint32(0xFFFFE000)  # the bits of f32 that tf32 has
# Bits after the leading one that are kept of what is added up in f32, those of Hopper.
# Source: Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores" (arXiv 2512.07004); of
# 8-bit floats: DeepSeek-V3 Technical Report (arXiv 2412.19437), section 3.3.2.
_FRACTION_BITS = {"tf32": 25, "f16": 25, "bf16": 25, "e4m3": 13, "e5m2": 13}
_BLOCK_BYTES = 32  # of a row of operands, whose products are added up at once; of Hopper


def multiply(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str,
             saturates: bool = False) -> np.ndarray:
    """a @ b + c in c's dtype.

    a: (..., M, K), b: (..., K, N), c: (..., M, N).   kind: of the elements of a.
    saturates: integers are clamped; otherwise they wrap around.
    Products are exact.  Sums in f32 are truncated, sums in f16 are rounded once, and sums in f64
    after every product.
    """
    if c.dtype.kind in "iu":
        exact = np.rint(a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
        exact = exact + c
        return (np.clip(exact, -2**31, 2**31 - 1) if saturates else exact).astype(c.dtype)
    if kind == "f64":
        return _fused(a, b, c)
    left, right, total = _wide(a, kind), _wide(b, kind), c.astype(np.float64)
    if kind in _FRACTION_BITS and c.dtype == np.float32:
        depth = _BLOCK_BYTES // ELEMENTS[kind].itemsize
        for first in range(0, left.shape[-1], depth):
            block = slice(first, first + depth)
            total = _added(left[..., block], right[..., block, :], total, _FRACTION_BITS[kind])
        return total.astype(np.float32)
    return (left @ right + total).astype(c.dtype)


def _fused(left: np.ndarray, right: np.ndarray, total: np.ndarray) -> np.ndarray:
    """left @ right + total by fused multiplications and additions, in order along the depth.

    Source: PTX ISA, "mma", Semantics: the precision of .f64 is that of fma; it states no order.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        for k in range(left.shape[-1]):
            terms = np.broadcast_arrays(left[..., :, k, None], right[..., k, None, :], total)
            added, _ = fma_exactly(*(term.ravel() for term in terms))
            total = added.reshape(total.shape)
    return total


def _wide(matrix: np.ndarray, kind: str) -> np.ndarray:
    if kind == "tf32":
        matrix = (matrix.view(np.uint32) & _TF32_MASK).view(np.float32)
    if matrix.dtype.itemsize < 4 and matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float32)
    return matrix.astype(np.float64)


def _added(left: np.ndarray, right: np.ndarray, addend: np.ndarray,
           fraction_bits: int) -> np.ndarray:
    """left @ right + addend as numbers of f32, in float64.

    Products and addend are cut off so many bits after the leading one of the largest, and so is
    their sum, at the last bit of f32.  Infinities and NaN are those of the sum.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        exact = left @ right + addend
        lefts, rights = _magnitudes(left), _magnitudes(right)
        largest = _magnitudes(addend)
        for k in range(left.shape[-1]):
            np.maximum(largest, lefts[..., :, k, None] * rights[..., k, None, :], out=largest)
        unit = np.where(largest > 0, largest, 1.0) * 2.0**-fraction_bits
        steps = np.trunc(addend / unit)
        for k in range(left.shape[-1]):
            steps += np.trunc(left[..., :, k, None] * right[..., k, None, :] / unit)
        return np.where(np.isfinite(exact), _toward_zero(steps * unit), exact)


def _magnitudes(x: np.ndarray) -> np.ndarray:
    """The powers of two below the numbers; of 0, infinities and NaN something finite."""
    _, exponents = np.frexp(x)
    return np.where(x == 0, 0.0, np.ldexp(1.0, exponents - 1))


def _toward_zero(x: np.ndarray) -> np.ndarray:
    """float64 as numbers of f32, truncated; what is too large is infinite."""
    near = x.astype(np.float32)
    below = np.where(np.abs(near) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    return np.where(np.isfinite(near), below, near).astype(np.float64)

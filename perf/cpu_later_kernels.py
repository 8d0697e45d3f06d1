"""Kernels for the CPU device that were written after the others were tuned; cpu_later_cases.py.

The constants of `hashes` are those of Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", 2014.
"""

from __future__ import annotations

import blocknumba as bn

STEP = bn.constexpr(0x9E3779B97F4A7C15)
FIRST, SECOND = bn.constexpr(0xBF58476D1CE4E5B9), bn.constexpr(0x94D049BB133111EB)


@bn.jit(device="cpu")
def edges(x, out, R: bn.constexpr, C: bn.constexpr):
    """Sobel's filter; borders repeat."""
    r, c = bn.block(0, R), bn.block(1, C)
    i, j = r.index[:, None], c.index[None, :]
    above, below = bn.maximum(i - 1, 0), bn.minimum(i + 1, x.shape[0] - 1)
    left, right = bn.maximum(j - 1, 0), bn.minimum(j + 1, x.shape[1] - 1)
    across = (x[above, right] + 2 * x[i, right] + x[below, right]
              - x[above, left] - 2 * x[i, left] - x[below, left])
    down = (x[below, left] + 2 * x[below, j] + x[below, right]
            - x[above, left] - 2 * x[above, j] - x[above, right])
    out[r, c] = bn.sqrt(across * across + down * down)


@bn.jit(device="cpu")
def running_maximum(x, out, B: bn.constexpr):
    """Of rows; float64."""
    i, c = bn.program_id(0), bn.span(0, B)
    out[i, c] = bn.cummax(x[i, c], 0)


@bn.jit(device="cpu")
def hashes(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    z = x[r] + STEP
    z = (z ^ (z >> 30)) * FIRST
    z = (z ^ (z >> 27)) * SECOND
    out[r] = z ^ (z >> 31)


@bn.jit(device="cpu")
def hue_saturation_value(rgb, out, B: bn.constexpr):
    """(N, 3) each."""
    i = bn.block(0, B)
    r, g, b = rgb[i, 0], rgb[i, 1], rgb[i, 2]
    value = bn.maximum(bn.maximum(r, g), b)
    chroma = value - bn.minimum(bn.minimum(r, g), b)
    divisor = bn.where(chroma > 0, chroma, 1.0)
    hue = bn.where(value == r, (g - b) / divisor,
                   bn.where(value == g, 2 + (b - r) / divisor, 4 + (r - g) / divisor)) / 6
    out[i, 0] = bn.where(hue < 0, hue + 1, hue)
    out[i, 1] = bn.where(value > 0, chroma / value, 0.0)
    out[i, 2] = value


@bn.jit(device="cpu")
def upper_case(text, out, B: bn.constexpr):
    """Of ASCII, uint8."""
    r = bn.block(0, B)
    letter = text[r]
    out[r] = bn.where((letter >= 97) & (letter <= 122), letter - 32, letter)


@bn.jit(device="cpu")
def packed_bits(x, out, B: bn.constexpr):
    """(N, 8) of 0 and 1, uint8; the first is a byte's highest bit."""
    r = bn.block(0, B)
    byte = bn.zeros(B, bn.uint8)
    for k in bn.static_range(8):
        byte = byte | (x[r, k] << (7 - k))
    out[r] = byte


@bn.jit(device="cpu")
def haar(x, out, B: bn.constexpr):
    """Means and half the differences of N pairs, N a multiple of B: a half of the result each."""
    r, half = bn.block(0, B), x.shape[0] // 2
    a, b = x[2 * r.index], x[2 * r.index + 1]
    out[r] = (a + b) * 0.5
    out[r + half] = (a - b) * 0.5


@bn.jit(device="cpu")
def cholesky(a, out, B: bn.constexpr):
    """Of (N, 4, 4), float64."""
    r = bn.block(0, B)
    for j in bn.static_range(4):
        for i in bn.static_range(4):
            if i < j:
                out[r, i, j] = 0.0
    p = bn.sqrt(a[r, 0, 0])
    q, s, t = a[r, 1, 0] / p, a[r, 2, 0] / p, a[r, 3, 0] / p
    u = bn.sqrt(a[r, 1, 1] - q * q)
    v, w = (a[r, 2, 1] - s * q) / u, (a[r, 3, 1] - t * q) / u
    x = bn.sqrt(a[r, 2, 2] - s * s - v * v)
    y = (a[r, 3, 2] - t * s - w * v) / x
    out[r, 0, 0], out[r, 1, 0], out[r, 2, 0], out[r, 3, 0] = p, q, s, t
    out[r, 1, 1], out[r, 2, 1], out[r, 3, 1] = u, v, w
    out[r, 2, 2], out[r, 3, 2] = x, y
    out[r, 3, 3] = bn.sqrt(a[r, 3, 3] - t * t - w * w - y * y)

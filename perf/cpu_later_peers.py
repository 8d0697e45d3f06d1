"""The peers of cpu_later_kernels.py: Numba's loops over rows."""

from __future__ import annotations

import math

import numpy as np
from numba import prange

f32, u64 = np.float32, np.uint64


def edges(x, out):
    rows, columns = x.shape
    for i in prange(rows):
        above, below = max(i - 1, 0), min(i + 1, rows - 1)
        for j in range(columns):
            left, right = max(j - 1, 0), min(j + 1, columns - 1)
            across = (x[above, right] + 2 * x[i, right] + x[below, right]
                      - x[above, left] - 2 * x[i, left] - x[below, left])
            down = (x[below, left] + 2 * x[below, j] + x[below, right]
                    - x[above, left] - 2 * x[above, j] - x[above, right])
            out[i, j] = math.sqrt(across * across + down * down)


def running_maximum(x, out):
    for r in prange(x.shape[0]):
        most = x[r, 0]
        for c in range(x.shape[1]):
            if x[r, c] > most:
                most = x[r, c]
            out[r, c] = most


def hashes(x, out):
    for i in prange(x.size):
        z = x[i] + u64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> u64(30))) * u64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> u64(27))) * u64(0x94D049BB133111EB)
        out[i] = z ^ (z >> u64(31))


def hue_saturation_value(rgb, out):
    for i in prange(rgb.shape[0]):
        r, g, b = rgb[i, 0], rgb[i, 1], rgb[i, 2]
        value = max(max(r, g), b)
        chroma = value - min(min(r, g), b)
        divisor = chroma if chroma > 0 else f32(1)
        if value == r:
            hue = (g - b) / divisor
        elif value == g:
            hue = f32(2) + (b - r) / divisor
        else:
            hue = f32(4) + (r - g) / divisor
        hue /= f32(6)
        out[i, 0] = hue + f32(1) if hue < 0 else hue
        out[i, 1] = chroma / value if value > 0 else f32(0)
        out[i, 2] = value


def upper_case(text, out):
    for i in prange(text.size):
        letter = text[i]
        out[i] = letter - 32 if 97 <= letter <= 122 else letter


def packed_bits(x, out):
    for i in prange(x.shape[0]):
        byte = np.uint8(0)
        for k in range(8):
            byte |= x[i, k] << (7 - k)
        out[i] = byte


def haar(x, out):
    half = x.size // 2
    for i in prange(half):
        out[i] = (x[2 * i] + x[2 * i + 1]) * f32(0.5)
        out[i + half] = (x[2 * i] - x[2 * i + 1]) * f32(0.5)


def cholesky(a, out):
    for n in prange(a.shape[0]):
        for i in range(4):
            for j in range(i + 1):
                rest = a[n, i, j]
                for k in range(j):
                    rest -= out[n, i, k] * out[n, j, k]
                out[n, i, j] = math.sqrt(rest) if i == j else rest / out[n, j, j]
            for j in range(i + 1, 4):
                out[n, i, j] = 0.0

"""The peers of cpu_user_kernels.py: Numba's loops over rows."""

from __future__ import annotations

import math

import numpy as np
from numba import get_num_threads, prange

f32 = np.float32
EPSILON = f32(1e-5)


def argmax_of_rows(x, out):
    for r in prange(x.shape[0]):
        best = 0
        for c in range(1, x.shape[1]):
            if x[r, c] > x[r, best]:
                best = c
        out[r] = best


def batch_norm(x, gamma, beta, out):
    """Columns are divided among the threads."""
    rows, columns = x.shape
    parts = get_num_threads()
    width = -(-columns // parts)
    for part in prange(parts):
        start, stop = part * width, min(columns, (part + 1) * width)
        mean, scale = np.zeros(stop - start, f32), np.zeros(stop - start, f32)
        for r in range(rows):
            for c in range(start, stop):
                mean[c - start] += x[r, c]
        mean /= f32(rows)
        for r in range(rows):
            for c in range(start, stop):
                centred = x[r, c] - mean[c - start]
                scale[c - start] += centred * centred
        for c in range(start, stop):
            scale[c - start] = gamma[c] / math.sqrt(scale[c - start] / f32(rows) + EPSILON)
        for r in range(rows):
            for c in range(start, stop):
                out[r, c] = (x[r, c] - mean[c - start]) * scale[c - start] + beta[c]


def pairwise(x, y, out):
    for i in prange(x.shape[0]):
        for j in range(y.shape[0]):
            total = f32(0)
            for k in range(x.shape[1]):
                difference = x[i, k] - y[j, k]
                total += difference * difference
            out[i, j] = math.sqrt(total)


def nearest(x, centres, out):
    for r in prange(x.shape[0]):
        least, best = f32(np.inf), 0
        for k in range(centres.shape[0]):
            total = f32(0)
            for a in range(x.shape[1]):
                difference = x[r, a] - centres[k, a]
                total += difference * difference
            if total < least:
                least, best = total, k
        out[r] = best


def moving_average(x, out):
    for r in prange(out.size):
        total = f32(0)
        for k in range(8):
            total += x[r + k]
        out[r] = total / f32(8)


def prefix_sums(x, out):
    for r in prange(x.shape[0]):
        total = f32(0)
        for c in range(x.shape[1]):
            total += x[r, c]
            out[r, c] = total


def clipped(x, y, out):
    for r in prange(x.size):
        a, b = x[r], y[r]
        z = a * f32(2) - b if a > b else b * f32(0.5)
        if abs(z) < f32(0.1):
            z = f32(0)
        out[r] = min(max(z, f32(-1)), f32(1))


def quantise(x, out, scales):
    for r in prange(x.shape[0]):
        largest = f32(0)
        for c in range(x.shape[1]):
            largest = max(largest, abs(x[r, c]))
        scale = largest / f32(127)
        scales[r] = scale
        for c in range(x.shape[1]):
            out[r, c] = np.int8(np.rint(x[r, c] / scale))


def complex_products(a, b, out):
    for r in prange(a.shape[0]):
        x, y, u, v = a[r, 0], a[r, 1], b[r, 0], b[r, 1]
        out[r, 0] = x * u - y * v
        out[r, 1] = x * v + y * u


def rotate(points, matrix, out):
    for r in prange(points.shape[0]):
        x, y, z = points[r, 0], points[r, 1], points[r, 2]
        for k in range(3):
            out[r, k] = matrix[k, 0] * x + matrix[k, 1] * y + matrix[k, 2] * z


def convolution(x, weights, out):
    for r in prange(out.shape[0]):
        for c in range(out.shape[1]):
            total = f32(0)
            for a in range(5):
                for b in range(5):
                    total += weights[a, b] * x[r + a, c + b]
            out[r, c] = total


def embedding(table, index, out):
    for r in prange(index.size):
        for c in range(table.shape[1]):
            out[r, c] = table[index[r], c]


def haversine(first, second, out):
    for r in prange(out.size):
        p, q = first[0, r], second[0, r]
        a = math.sin((q - p) / 2)**2 + math.cos(p) * math.cos(q) * math.sin(
            (second[1, r] - first[1, r]) / 2)**2
        out[r] = 12742.0 * math.asin(math.sqrt(a))


def transpose(x, out):
    """By squares of 32, which stay in a cache."""
    rows, columns = x.shape
    for block in prange(-(-rows // 32)):
        for other in range(-(-columns // 32)):
            for r in range(block * 32, min(rows, block * 32 + 32)):
                for c in range(other * 32, min(columns, other * 32 + 32)):
                    out[c, r] = x[r, c]


def variance(x, out):
    size = x.shape[1]
    for r in prange(x.shape[0]):
        total = 0.0
        for c in range(size):
            total += x[r, c]
        mean, total = total / size, 0.0
        for c in range(size):
            total += (x[r, c] - mean)**2
        out[r] = total / size


def gravity(position, out):
    for i in prange(position.shape[0]):
        ax, ay, az = f32(0), f32(0), f32(0)
        for j in range(position.shape[0]):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            square = dx * dx + dy * dy + dz * dz + f32(0.01)
            weight = f32(1) / (math.sqrt(square) * square)
            ax += dx * weight
            ay += dy * weight
            az += dz * weight
        out[i, 0], out[i, 1], out[i, 2] = ax, ay, az


def life(x, out):
    """The border, where nothing lives, apart."""
    rows, columns = x.shape
    for r in prange(1, rows - 1):
        for c in range(1, columns - 1):
            around = (x[r - 1, c - 1] + x[r - 1, c] + x[r - 1, c + 1] + x[r, c - 1] + x[r, c + 1]
                      + x[r + 1, c - 1] + x[r + 1, c] + x[r + 1, c + 1])
            out[r, c] = (around == 3) | ((x[r, c] == 1) & (around == 2))
    out[0], out[-1], out[:, 0], out[:, -1] = 0, 0, 0, 0


def sorted_rows(x, out):
    for r in prange(x.shape[0]):
        out[r] = np.sort(x[r])

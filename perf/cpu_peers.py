"""The peers of cpu_kernels.py: NumPy, and Numba's loops over rows without temporaries.

Each function of PEERS is compiled with and without fastmath; the faster one counts.
"""

from __future__ import annotations

import math

import numpy as np
from numba import get_num_threads, prange
from numpy.lib.stride_tricks import sliding_window_view

f32 = np.float32
EPSILON = f32(1e-5)


def add(x, y, out):
    for i in prange(x.size):
        out[i] = x[i] + y[i]


def softmax(x, out):
    for r in prange(x.shape[0]):
        largest = x[r, 0]
        for c in range(x.shape[1]):
            largest = max(largest, x[r, c])
        total = f32(0)
        for c in range(x.shape[1]):
            out[r, c] = math.exp(x[r, c] - largest)
            total += out[r, c]
        for c in range(x.shape[1]):
            out[r, c] /= total


def layernorm(x, weight, bias, out):
    size = f32(x.shape[1])
    for r in prange(x.shape[0]):
        total, squares = f32(0), f32(0)
        for c in range(x.shape[1]):
            total += x[r, c]
        mean = total / size
        for c in range(x.shape[1]):
            squares += (x[r, c] - mean) * (x[r, c] - mean)
        scale = f32(1) / math.sqrt(squares / size + EPSILON)
        for c in range(x.shape[1]):
            out[r, c] = (x[r, c] - mean) * scale * weight[c] + bias[c]


def rms_norm(x, weight, out):
    size = f32(x.shape[1])
    for r in prange(x.shape[0]):
        squares = f32(0)
        for c in range(x.shape[1]):
            squares += x[r, c] * x[r, c]
        scale = f32(1) / math.sqrt(squares / size + EPSILON)
        for c in range(x.shape[1]):
            out[r, c] = x[r, c] * scale * weight[c]


def gelu(x, out):
    for i in prange(x.size):
        v = x[i]
        inner = f32(0.7978845608) * (v + f32(0.044715) * v * v * v)
        out[i] = f32(0.5) * v * (f32(1) + math.tanh(inner))


def black_scholes(price, strike, years, call, put, rate, volatility):
    for i in prange(price.size):
        s, k, t = price[i], strike[i], years[i]
        spread = volatility * math.sqrt(t)
        d1 = (math.log(s / k) + (rate + f32(0.5) * volatility * volatility) * t) / spread
        first, second = f32(0), f32(0)
        for number in range(2):
            d = d1 - f32(number) * spread
            m = f32(1) / (f32(1) + f32(0.2316419) * abs(d))
            tail = m * (f32(0.31938153) + m * (f32(-0.356563782) + m * (f32(1.781477937) + m * (
                f32(-1.821255978) + m * f32(1.330274429)))))
            tail = tail * f32(0.3989422804) * math.exp(f32(-0.5) * d * d)
            tail = f32(1) - tail if d > 0 else tail
            if number == 0:
                first = tail
            else:
                second = tail
        discounted = k * math.exp(-rate * t)
        call[i] = s * first - discounted * second
        put[i] = discounted * (f32(1) - second) - s * (f32(1) - first)


def heat_step(now, then, rate):
    """Outside is 0: the borders are done apart, so that the inner loop has no branch."""
    rows, columns = now.shape
    for r in prange(rows):
        if 0 < r < rows - 1:
            for c in range(1, columns - 1):
                around = now[r - 1, c] + now[r + 1, c] + now[r, c - 1] + now[r, c + 1]
                then[r, c] = now[r, c] + rate * (around - f32(4) * now[r, c])
        for c in range(0, columns, columns - 1 if 0 < r < rows - 1 else 1):
            around = f32(0)
            if r > 0:
                around += now[r - 1, c]
            if r < rows - 1:
                around += now[r + 1, c]
            if c > 0:
                around += now[r, c - 1]
            if c < columns - 1:
                around += now[r, c + 1]
            then[r, c] = now[r, c] + rate * (around - f32(4) * now[r, c])


def median(image, out):
    """The inside of the picture; its border is left alone."""
    for r in prange(1, image.shape[0] - 1):
        up, here, down = image[r - 1], image[r], image[r + 1]
        for q in range(1, image.shape[1] - 1):
            a, b, d = up[q - 1], here[q - 1], down[q - 1]
            a, b = min(a, b), max(a, b)
            b, d = min(b, d), max(b, d)
            a, b = min(a, b), max(a, b)
            e, f, g = up[q], here[q], down[q]
            e, f = min(e, f), max(e, f)
            f, g = min(f, g), max(f, g)
            e, f = min(e, f), max(e, f)
            h, i, j = up[q + 1], here[q + 1], down[q + 1]
            h, i = min(h, i), max(h, i)
            i, j = min(i, j), max(i, j)
            h, i = min(h, i), max(h, i)
            x, z = max(max(a, e), h), min(min(d, g), j)
            y = max(min(b, f), min(max(b, f), i))
            out[r, q] = max(min(x, y), min(max(x, y), z))


def mandelbrot(counts, left, top, pixel, limit):
    for r in prange(counts.shape[0]):
        cy = f32(top + f32(r) * pixel)
        for c in range(counts.shape[1]):
            cx = f32(left + f32(c) * pixel)
            x, y, count = f32(0), f32(0), 0
            while x * x + y * y <= f32(4) and count < limit:
                x, y = x * x - y * y + cx, f32(2) * x * y + cy
                count += 1
            counts[r, c] = count


def histogram(x, counts):
    parts = get_num_threads()
    found = np.zeros((parts, counts.size), np.int32)
    size = -(-x.size // parts)
    for part in prange(parts):
        own = np.zeros(counts.size, np.int32)
        for i in range(part * size, min(x.size, (part + 1) * size)):
            own[x[i]] += 1
        found[part] = own
    for part in range(parts):
        counts += found[part]


def csr_product(starts, columns, values, x, out):
    for r in prange(out.size):
        total = f32(0)
        for k in range(starts[r], starts[r + 1]):
            total += values[k] * x[columns[k]]
        out[r] = total


def small_products(x, w, out):
    for b in prange(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(w.shape[2]):
                out[b, i, j] = 0
            for k in range(x.shape[2]):
                for j in range(w.shape[2]):
                    out[b, i, j] += x[b, i, k] * w[b, k, j]


def gray(rgb, out):
    for r in prange(rgb.shape[0]):
        for c in range(rgb.shape[1]):
            out[r, c] = np.uint8(f32(0.299) * f32(rgb[r, c, 0]) + f32(0.587) * f32(
                rgb[r, c, 1]) + f32(0.114) * f32(rgb[r, c, 2]))


def column_sums(x, out):
    blocks = get_num_threads()
    width = -(-x.shape[1] // blocks)
    for b in prange(blocks):
        stop = min(x.shape[1], (b + 1) * width)
        out[b * width:stop] = 0
        for r in range(x.shape[0]):
            for c in range(b * width, stop):
                out[c] += x[r, c]


class OfNumPy:
    """The same in NumPy, in the dtype that it is given."""

    @staticmethod
    def softmax(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    @staticmethod
    def layernorm(x, weight, bias):
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        return centred / np.sqrt(variance + EPSILON) * weight + bias

    @staticmethod
    def rms_norm(x, weight):
        return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * weight

    @staticmethod
    def gelu(x):
        return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    @staticmethod
    def _normal_distribution(d):
        k = 1 / (1 + 0.2316419 * np.abs(d))
        tail = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (
            -1.821255978 + k * 1.330274429))))
        tail = tail * 0.3989422804 * np.exp(-0.5 * d * d)
        return np.where(d > 0, 1 - tail, tail)

    @staticmethod
    def black_scholes(s, k, t, rate, volatility):
        spread = volatility * np.sqrt(t)
        d1 = (np.log(s / k) + (rate + 0.5 * volatility * volatility) * t) / spread
        first, second = map(OfNumPy._normal_distribution, (d1, d1 - spread))
        discounted = k * np.exp(-rate * t)
        return s * first - discounted * second, discounted * (1 - second) - s * (1 - first)

    @staticmethod
    def heat_step(now, rate):
        wide = np.pad(now, 1)
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        return now + rate * (around - 4 * now)

    @staticmethod
    def median(image):
        windows = sliding_window_view(image, (3, 3)).reshape(*(n - 2 for n in image.shape), 9)
        return np.partition(windows, 4, axis=2)[..., 4]

    @staticmethod
    def mandelbrot(shape, left, top, pixel, limit):
        rows, columns = (np.arange(n).astype(pixel.dtype) for n in shape)
        cx, cy = (left + columns * pixel)[None, :], (top + rows * pixel)[:, None]
        x, y = np.zeros(shape, pixel.dtype), np.zeros(shape, pixel.dtype)
        count, inside = np.zeros(shape, np.int32), np.ones(shape, bool)
        with np.errstate(all="ignore"):
            for _ in range(limit):
                x, y = x * x - y * y + cx, 2 * x * y + cy
                count += inside
                inside &= x * x + y * y <= 4
        return count

    @staticmethod
    def csr_product(starts, columns, values, x):
        return np.add.reduceat(values * x[columns], starts[:-1])

    @staticmethod
    def gray(rgb):
        return (rgb @ np.array([0.299, 0.587, 0.114], f32)).astype(np.uint8)

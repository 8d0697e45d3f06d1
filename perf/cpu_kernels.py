"""Kernels for the CPU device, written as a user of the array dialect would; compare_cpu.py.

All are of float32 unless they say otherwise.
"""

from __future__ import annotations

import blocknumba as bn

EPSILON = bn.constexpr(1e-5)


@bn.jit(device="cpu")
def add(x, y, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] + y[r]


@bn.jit(device="cpu")
def softmax(x, out, B: bn.constexpr):
    i, c = bn.program_id(0), bn.span(0, B)
    out[i, c] = bn.softmax(x[i, c], 0, where=c.index < x.shape[1])


@bn.jit(device="cpu")
def layernorm(x, weight, bias, out, B: bn.constexpr):
    i, c = bn.program_id(0), bn.span(0, B)
    row, size = x[i, c], x.shape[1]
    centred = bn.where(c.index < size, row - bn.sum(row, 0) / size, 0.0)
    scale = bn.rsqrt(bn.sum(centred * centred, 0) / size + EPSILON)
    out[i, c] = centred * scale * weight[c] + bias[c]


@bn.jit(device="cpu")
def rms_norm(x, weight, out, B: bn.constexpr):
    i, c = bn.program_id(0), bn.span(0, B)
    row = x[i, c]
    out[i, c] = row * bn.rsqrt(bn.sum(row * row, 0) / x.shape[1] + EPSILON) * weight[c]


@bn.jit(device="cpu")
def gelu(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    v = x[r]
    out[r] = 0.5 * v * (1 + bn.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


def normal_distribution(d):
    """The cumulative normal distribution.  Source: Abramowitz and Stegun, 26.2.17."""
    k = 1 / (1 + 0.2316419 * bn.abs(d))
    tail = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (
        -1.821255978 + k * 1.330274429))))
    tail = tail * 0.3989422804 * bn.exp(-0.5 * d * d)
    return bn.where(d > 0, 1 - tail, tail)


@bn.jit(device="cpu")
def black_scholes(price, strike, years, call, put, rate, volatility, B: bn.constexpr):
    r = bn.block(0, B)
    s, k, t = price[r], strike[r], years[r]
    spread = volatility * bn.sqrt(t)
    d1 = (bn.log(s / k) + (rate + 0.5 * volatility * volatility) * t) / spread
    first, second = normal_distribution(d1), normal_distribution(d1 - spread)
    discounted = k * bn.exp(-rate * t)
    call[r] = s * first - discounted * second
    put[r] = discounted * (1 - second) - s * (1 - first)


@bn.jit(device="cpu")
def heat_step(now, then, rate, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    here = now[r, c]
    around = now[r + -1, c] + now[r + 1, c] + now[r, c + -1] + now[r, c + 1]
    then[r, c] = here + rate * (around - 4 * here)


def ordered(a, b):
    return bn.minimum(a, b), bn.maximum(a, b)


def median_of_three(a, b, c):
    return bn.maximum(bn.minimum(a, b), bn.minimum(bn.maximum(a, b), c))


def ordered_three(a, b, c):
    a, b = ordered(a, b)
    b, c = ordered(b, c)
    a, b = ordered(a, b)
    return a, b, c


@bn.jit(device="cpu")
def median(image, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """uint8; outside the picture is 0."""
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    a, b, d = ordered_three(image[r + -1, c + -1], image[r, c + -1], image[r + 1, c + -1])
    e, f, g = ordered_three(image[r + -1, c], image[r, c], image[r + 1, c])
    h, i, j = ordered_three(image[r + -1, c + 1], image[r, c + 1], image[r + 1, c + 1])
    lows, highs = bn.maximum(bn.maximum(a, e), h), bn.minimum(bn.minimum(d, g), j)
    out[r, c] = median_of_three(lows, median_of_three(b, f, i), highs)


@bn.jit(device="cpu")
def mandelbrot(counts, left, top, pixel, LIMIT: bn.constexpr, B: bn.constexpr):
    """int32 counts: iterations until a point leaves the circle of radius 2."""
    i, c = bn.program_id(1), bn.block(0, B)
    cx, cy = left + c.index.to(bn.float32) * pixel, top + i * pixel
    x, y = bn.zeros(B, bn.float32), bn.zeros(B, bn.float32)
    count, step = bn.zeros(B, bn.int32), 0
    inside = x * x + y * y <= 4
    while step < LIMIT and bn.any(inside):
        x, y = x * x - y * y + cx, 2 * x * y + cy
        count += inside.to(bn.int32)
        inside = inside & (x * x + y * y <= 4)
        step += 1
    counts[i, c] = count


@bn.jit(device="cpu")
def histogram(x, counts, B: bn.constexpr, BINS: bn.constexpr):
    """uint8 to int32 counts."""
    b, found = bn.span(0, BINS), bn.zeros(BINS, bn.int32)
    for r in bn.grid_spans(x.shape[0], B):
        found += bn.histogram(x[r].to(bn.int32), BINS, mask=r.index < x.shape[0])
    bn.atomic_add(counts.at[b], found)


@bn.jit(device="cpu")
def csr_product(starts, columns, values, x, out, B: bn.constexpr):
    i = bn.program_id(0)
    stop, total = starts[i + 1], bn.zeros(B, bn.float32)
    for start in range(starts[i], stop, B):
        k = start + bn.arange(B)
        inside = k < stop
        column = bn.load(columns.at[k], inside)
        total += bn.load(values.at[k], inside) * bn.load(x.at[column], inside)
    out[i] = bn.sum(total, 0)


@bn.jit(device="cpu")
def small_products(x, w, out, B: bn.constexpr, N: bn.constexpr):
    """out[i] = x[i] @ w[i] of matrices of at most N x N; B of them a program."""
    b, r = bn.block(0, B), bn.span(0, N)
    out[b, r, r] = x[b, r, r] @ w[b, r, r]


@bn.jit(device="cpu")
def gray(rgb, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """uint8, (height, width, 3) to (height, width)."""
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    red, green, blue = tuple(rgb[r, c, k].to(bn.float32) for k in range(3))
    out[r, c] = (0.299 * red + 0.587 * green + 0.114 * blue).to(bn.uint8)


@bn.jit(device="cpu")
def column_sums(x, out, ROWS: bn.constexpr, B: bn.constexpr):
    c, total = bn.block(0, B), bn.zeros(B, bn.float32)
    for r in bn.spans(x.shape[0], ROWS):
        total += bn.sum(x[r, c], 0)
    out[c] = total

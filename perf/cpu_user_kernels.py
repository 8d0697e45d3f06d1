"""More kernels for the CPU device, of the kinds that users of NumPy write; cpu_user_cases.py.

None was written for what the compiler does well.  All are of float32 unless they say otherwise.
"""

from __future__ import annotations

import blocknumba as bn

EPSILON = bn.constexpr(1e-5)
LOW = bn.constexpr(-3e38)


@bn.jit(device="cpu")
def argmax_of_rows(x, out, B: bn.constexpr):
    i, c = bn.program_id(0), bn.span(0, B)
    out[i] = bn.argmax(bn.where(c.index < x.shape[1], x[i, c], LOW), 0)


@bn.jit(device="cpu")
def batch_norm(x, gamma, beta, out, R: bn.constexpr, C: bn.constexpr):
    """Of columns: three passes over all rows."""
    c, size = bn.block(0, C), x.shape[0]
    total, squares = bn.zeros(C, bn.float32), bn.zeros(C, bn.float32)
    for r in bn.spans(size, R):
        total += bn.sum(x[r, c], 0)
    mean = total / size
    for r in bn.spans(size, R):
        centred = bn.where(r.index[:, None] < size, x[r, c] - mean, 0.0)
        squares += bn.sum(centred * centred, 0)
    scale = bn.rsqrt(squares / size + EPSILON) * gamma[c]
    for r in bn.spans(size, R):
        out[r, c] = (x[r, c] - mean) * scale + beta[c]


@bn.jit(device="cpu")
def pairwise(x, y, out, M: bn.constexpr, N: bn.constexpr):
    """Distances of points, (M, K) and (N, K)."""
    i, j = bn.block(0, M), bn.block(1, N)
    total = bn.zeros((M, N), bn.float32)
    for k in range(x.shape[1]):
        difference = x[i, k][:, None] - y[j, k][None, :]
        total += difference * difference
    out[i, j] = bn.sqrt(total)


@bn.jit(device="cpu")
def nearest(x, centres, out, B: bn.constexpr, K: bn.constexpr):
    """The assignment of k-means; int32."""
    r, k = bn.block(0, B), bn.span(0, K)
    total = bn.zeros((B, K), bn.float32)
    for a in range(x.shape[1]):
        difference = x[r, a][:, None] - centres[k, a][None, :]
        total += difference * difference
    out[r] = bn.argmin(total, 1)


@bn.jit(device="cpu")
def moving_average(x, out, W: bn.constexpr, B: bn.constexpr):
    r = bn.block(0, B)
    total = x[r]
    for k in range(1, W):
        total += x[r + k]
    out[r] = total / W


@bn.jit(device="cpu")
def prefix_sums(x, out, B: bn.constexpr):
    i, c = bn.program_id(0), bn.span(0, B)
    out[i, c] = bn.cumsum(x[i, c], 0)


@bn.jit(device="cpu")
def clipped(x, y, out, B: bn.constexpr):
    r = bn.block(0, B)
    a, b = x[r], y[r]
    z = bn.where(a > b, a * 2 - b, b * 0.5)
    out[r] = bn.clamp(bn.where(bn.abs(z) < 0.1, 0.0, z), -1.0, 1.0)


@bn.jit(device="cpu")
def quantise(x, out, scales, B: bn.constexpr):
    """Rows to int8."""
    i, c = bn.program_id(0), bn.span(0, B)
    row = x[i, c]
    scale = bn.max(bn.abs(row), 0) / 127
    scales[i] = scale
    out[i, c] = bn.rint(row / scale).to(bn.int8)


@bn.jit(device="cpu")
def complex_products(a, b, out, B: bn.constexpr):
    """Pairs, (N, 2): real and imaginary part."""
    r = bn.block(0, B)
    x, y, u, v = a[r, 0], a[r, 1], b[r, 0], b[r, 1]
    out[r, 0] = x * u - y * v
    out[r, 1] = x * v + y * u


@bn.jit(device="cpu")
def rotate(points, matrix, out, B: bn.constexpr):
    """(N, 3) by a 3 x 3 matrix."""
    r = bn.block(0, B)
    x, y, z = points[r, 0], points[r, 1], points[r, 2]
    for k in bn.static_range(3):
        out[r, k] = matrix[k, 0] * x + matrix[k, 1] * y + matrix[k, 2] * z


@bn.jit(device="cpu")
def convolution(x, weights, out, R: bn.constexpr, C: bn.constexpr):
    """5 x 5, by shifts."""
    r, c = bn.block(0, R), bn.block(1, C)
    total = bn.zeros((R, C), bn.float32)
    for a in bn.static_range(5):
        for b in bn.static_range(5):
            total += weights[a, b] * x[r + a, c + b]
    out[r, c] = total


@bn.jit(device="cpu")
def embedding(table, index, out, B: bn.constexpr):
    i, c = bn.program_id(0), bn.span(0, B)
    out[i, c] = table[index[i], c]


@bn.jit(device="cpu")
def haversine(first, second, out, B: bn.constexpr):
    """Great-circle distances in float64; latitudes and longitudes, (2, N) each."""
    r = bn.block(0, B)
    p, q = first[0, r], second[0, r]
    a = bn.sin((q - p) / 2)**2 + bn.cos(p) * bn.cos(q) * bn.sin(
        (second[1, r] - first[1, r]) / 2)**2
    out[r] = 12742.0 * bn.asin(bn.sqrt(a))


@bn.jit(device="cpu")
def transpose(x, out, B: bn.constexpr):
    r, c = bn.block(0, B), bn.block(1, B)
    out[c, r] = x[r, c].T


@bn.jit(device="cpu")
def variance(x, out, B: bn.constexpr):
    """Of rows; float64."""
    i, c, size = bn.program_id(0), bn.span(0, B), x.shape[1]
    row = x[i, c]
    centred = bn.where(c.index < size, row - bn.sum(row, 0) / size, 0.0)
    out[i] = bn.sum(centred * centred, 0) / size


@bn.jit(device="cpu")
def gravity(position, out, M: bn.constexpr, N: bn.constexpr):
    """Accelerations of (N, 3) bodies of one mass."""
    i = bn.block(0, M)
    x, y, z = position[i, 0], position[i, 1], position[i, 2]
    ax, ay, az = bn.zeros(M, bn.float32), bn.zeros(M, bn.float32), bn.zeros(M, bn.float32)
    for j in bn.spans(position.shape[0], N):
        dx = position[j, 0][None, :] - x[:, None]
        dy = position[j, 1][None, :] - y[:, None]
        dz = position[j, 2][None, :] - z[:, None]
        square = dx * dx + dy * dy + dz * dz + 0.01
        inside = (j.index < position.shape[0])[None, :]
        weight = bn.where(inside, bn.rsqrt(square) / square, 0.0)
        ax += bn.sum(dx * weight, 1)
        ay += bn.sum(dy * weight, 1)
        az += bn.sum(dz * weight, 1)
    out[i, 0], out[i, 1], out[i, 2] = ax, ay, az


@bn.jit(device="cpu")
def life(x, out, R: bn.constexpr, C: bn.constexpr):
    """The game of life, uint8; outside is 0."""
    r, c = bn.block(0, R), bn.block(1, C)
    here, up, down = x[r, c], r + -1, r + 1
    around = (x[up, c + -1] + x[up, c] + x[up, c + 1] + x[r, c + -1] + x[r, c + 1]
              + x[down, c + -1] + x[down, c] + x[down, c + 1])
    out[r, c] = ((around == 3) | ((here == 1) & (around == 2))).to(bn.uint8)


@bn.jit(device="cpu")
def sorted_rows(x, out, R: bn.constexpr, B: bn.constexpr):
    r, c = bn.block(0, R), bn.span(0, B)
    out[r, c] = bn.sort(x[r, c], 1)

"""Kernels over tiles: products, attention, order, random numbers, functions over elements."""

import numpy as np
from triton_kinds.case import case, floats, poison

import blocknumba.triton as triton
import blocknumba.triton.language as tl


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            ACTIVATION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + k[None, :], (rows[:, None] < M) & (k[None, :] < K),
                       other=0.0)
        right = tl.load(b + k[:, None] * N + columns[None, :],
                        (k[:, None] < K) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(left, right, acc)
    if ACTIVATION == "relu":
        acc = tl.maximum(acc, 0.0)
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(tl.float16),
             (rows[:, None] < M) & (columns[None, :] < N))


@case(product, (2, 2), error=2e-3, BM=16, BN=16, BK=16, ACTIVATION="relu")
def a_product(generator):
    a, b = (floats(generator, *shape).astype(np.float16) for shape in ((30, 40), (40, 20)))
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
    return [a, b, poison(30, 20, dtype=np.float16), 30, 20, 40], {2: expected}


@triton.jit
def attention(q, k, v, out, scale, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + d)
    greatest = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        columns = start + tl.arange(0, BN)
        keys = tl.load(k + columns[:, None] * D + d)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
        scores = tl.where(rows[:, None] >= columns[None, :], scores, float("-inf"))
        here = tl.maximum(greatest, tl.max(scores, 1))
        weights = tl.exp(scores - here[:, None])
        kept = tl.exp(greatest - here)
        total = total * kept + tl.sum(weights, 1)
        values = tl.load(v + columns[:, None] * D + d)
        acc = tl.dot(weights, values, acc * kept[:, None], input_precision="ieee")
        greatest = here
    tl.store(out + rows[:, None] * D + d, acc / total[:, None])


@case(attention, (2,), error=1e-4, BM=16, BN=16, D=16)
def causal_attention(generator):
    q, k, v = (floats(generator, 32, 16) for _ in range(3))
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * 0.25
    scores[np.triu_indices(32, 1)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return [q, k, v, poison(32, 16), 0.25, 32], {3: weights / weights.sum(1, keepdims=True) @ v}


@triton.jit
def ordered(x, out, greatest, BLOCK: tl.constexpr, K: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), tl.sort(value, descending=True))
    tl.store(greatest + tl.arange(0, K), tl.topk(value, K))
    tl.store(greatest + K, tl.argmax(value, axis=0))


@case(ordered, (1,), BLOCK=64, K=8)
def sorted_elements(generator):
    x = generator.permutation(64).astype(np.float32)
    falling = np.sort(x)[::-1]
    return [x, poison(64), poison(9)], {1: falling, 2: np.append(falling[:8], x.argmax())}


@triton.jit
def rearranged(x, indices, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    found = tl.gather(value, tl.load(indices + i), axis=0)
    both = tl.cat(found, tl.flip(value), can_reorder=True)
    tl.store(out + tl.arange(0, 2 * BLOCK), tl.sort(both))
    tl.store(out + 2 * BLOCK + tl.arange(0, 2 * BLOCK), tl.interleave(found, value))


@case(rearranged, (1,), BLOCK=32)
def gathered_elements(generator):
    x, indices = floats(generator, 32), generator.integers(0, 32, 32).astype(np.int32)
    found = x[indices]
    expected = [np.sort(np.concatenate([found, x])), np.stack([found, x], 1).ravel()]
    return [x, indices, poison(128)], {2: np.concatenate(expected)}


@triton.jit
def histogrammed(x, out, BINS: tl.constexpr, BLOCK: tl.constexpr):
    counts = tl.histogram(tl.load(x + tl.arange(0, BLOCK)), BINS)
    tl.store(out + tl.arange(0, BINS), counts)


@case(histogrammed, (1,), BINS=16, BLOCK=128)
def a_histogram(generator):
    x = generator.integers(0, 16, 128).astype(np.int32)
    return [x, poison(16, dtype=np.int32)], {1: np.bincount(x, minlength=16)}


@triton.jit
def dropped(x, out, kept, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keeps = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keeps, tl.load(x + i) / (1 - p), 0.0))
    tl.store(kept + i, tl.rand(seed, i))


@case(dropped, (2,), BLOCK=64)
def dropped_elements(generator):
    x, kept = np.zeros(128, np.float32), poison(128)
    return [x, poison(128), kept, 0.25, 7], {1: np.zeros(128)}


@triton.jit
def clipped(x, low):
    if x < low:
        return low, 1
    if x > 10:
        return x * 0 + 10, 1
    return x, 0


@triton.jit
def limited(x, out, flags, low, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value, flag = tl.map_elementwise(clipped, tl.load(x + i), low)
    tl.store(out + i, value)
    tl.store(flags + i, flag)


@case(limited, (1,), BLOCK=64)
def a_function_of_elements(generator):
    x = generator.integers(-50, 50, 64).astype(np.int32)
    return [x, poison(64, dtype=np.int32), poison(64, dtype=np.int32), -5], {
        1: np.clip(x, -5, 10), 2: (x < -5) | (x > 10)}


@triton.aggregate
class Online:
    greatest: tl.tensor
    total: tl.tensor

    @triton.jit
    def joined(self, x):
        greatest = tl.maximum(self.greatest, x)
        return Online(greatest, self.total * tl.exp(self.greatest - greatest)
                      + tl.exp(x - greatest))


@triton.jit
def logsumexp_of_columns(x, out, rows, N: tl.constexpr):
    i = tl.arange(0, N)
    state = Online(tl.load(x + i), tl.full([N], 1, tl.float32))
    for row in range(1, rows):
        state = state.joined(tl.load(x + row * N + i))
    tl.store(out + i, tl.log(state.total) + state.greatest)


@case(logsumexp_of_columns, (1,), error=1e-5, N=32)
def an_aggregate(generator):
    x = floats(generator, 9, 32)
    return [x, poison(32), 9], {1: np.log(np.exp(x.astype(np.float64)).sum(0))}


@triton.jit
def layer_norm_backward(dy, x, w, dx, dw, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask, weight = column < n, tl.load(w + column, mask=column < n, other=0)
    gradient = tl.zeros([BLOCK], tl.float32)
    for row in range(ROWS):
        value = tl.load(x + row * n + column, mask, other=0)
        upstream = tl.load(dy + row * n + column, mask, other=0)
        mean = tl.sum(value, 0) / n
        centred = tl.where(mask, value - mean, 0.0)
        rstd = tl.rsqrt(tl.sum(centred * centred, 0) / n + 1e-5)
        normal, scaled = centred * rstd, upstream * weight
        c1, c2 = tl.sum(normal * scaled, 0) / n, tl.sum(scaled, 0) / n
        tl.store(dx + row * n + column, (scaled - (normal * c1 + c2)) * rstd, mask)
        gradient += upstream * normal
    tl.store(dw + column, gradient, mask)


@case(layer_norm_backward, (1,), error=1e-4, BLOCK=64, ROWS=3)
def a_backward_pass(generator):
    dy, x, w = floats(generator, 3, 50), floats(generator, 3, 50), floats(generator, 50)
    wide = x.astype(np.float64)
    rstd = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    normal, scaled = (wide - wide.mean(1, keepdims=True)) * rstd, dy.astype(np.float64) * w
    inner = normal * (normal * scaled).mean(1, keepdims=True) + scaled.mean(1, keepdims=True)
    return [dy, x, w, poison(3, 50), poison(50), 50], {
        3: (scaled - inner) * rstd, 4: (dy * normal).sum(0)}


@triton.jit
def convolved(x, weights, out, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    for tap in tl.static_range(WIDTH):
        place = i + tap - WIDTH + 1
        acc += tl.load(weights + tap) * tl.load(x + place, (place >= 0) & (place < n), other=0.0)
    tl.store(out + i, acc * tl.sigmoid(acc), mask=i < n)


@case(convolved, (2,), error=1e-5, WIDTH=4, BLOCK=64)
def a_causal_convolution(generator):
    x, weights = floats(generator, 100), floats(generator, 4)
    sums = np.convolve(x.astype(np.float64), weights[::-1])[:100]
    return [x, weights, poison(100), 100], {2: sums / (1 + np.exp(-sums))}


@triton.jit
def quantized(x, out, scales, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    scale = tl.max(tl.abs(value), 0) / 127
    tl.store(out + i, tl.floor(value / scale + 0.5).to(tl.int8))
    tl.store(scales + tl.program_id(0), scale)


@case(quantized, (4,), error=1e-6, BLOCK=64)
def quantized_blocks(generator):
    x = generator.integers(-127, 128, (4, 64)).astype(np.float32)
    x[:, 0] = 127
    return [x, poison(256, dtype=np.int8), poison(4)], {1: x.ravel(), 2: np.ones(4)}


@triton.jit
def int8_product(a, b, c, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    i, k = tl.arange(0, SIZE), tl.arange(0, DEPTH)
    left = tl.load(a + i[:, None] * DEPTH + k[None, :])
    right = tl.load(b + k[:, None] * SIZE + i[None, :])
    tl.store(c + i[:, None] * SIZE + i[None, :], tl.dot(left, right))


@case(int8_product, (1,), SIZE=16, DEPTH=32)
def a_product_of_int8(generator):
    a, b = (generator.integers(-128, 128, shape).astype(np.int8) for shape in ((16, 32), (32, 16)))
    return [a, b, poison(16, 16, dtype=np.int32)], {2: a.astype(np.int32) @ b.astype(np.int32)}

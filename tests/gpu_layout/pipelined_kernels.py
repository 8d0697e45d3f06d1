"""Kernels with loops whose loads can begin early, and what NumPy makes of their arguments.

A case's function returns the arguments of a launch in which loops make `iterations` iterations,
the output last, and what should be in the output then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import blocknumba as bn
import blocknumba.language as tl


@dataclass(frozen=True)
class Case:
    """A kernel and its launches.

    loads: how many of its loads begin early.  grid: of a launch.  tolerance: of the output.
    min_iterations: 1 where none would take arrays without elements, of which strides are not known.
    """

    kernel: object
    arguments: Callable[[int], tuple[tuple, np.ndarray]]
    constants: dict[str, object]
    loads: int
    grid: tuple[int, ...] = (1,)
    options: dict[str, object] = field(default_factory=dict)
    tolerance: float = 1e-3
    min_iterations: int = 0


def numbers(seed: int, *shape: int, dtype: object = np.float16) -> np.ndarray:
    """Numbers of which a few add up exactly in float32, and nearly so in float16."""
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 8).astype(dtype)


# loads that threads use as they are ------------------------------------------------------------
@bn.jit
def row_sums(x, out, B: bn.constexpr, STAGES: bn.constexpr):
    """Sums of rows, in pieces; the last piece is masked."""
    row = bn.program_id(0)
    acc = bn.zeros((B,), bn.float32)
    for piece in bn.spans(x.shape[1], B, num_stages=STAGES):
        acc += x[row, piece]
    out[row] = bn.sum(acc)


def row_sums_arguments(iterations):
    x = numbers(1, 2, max(128 * iterations - 16, 0), dtype=np.float32)
    return (x, np.zeros(2, np.float32)), x.sum(1)


@bn.jit
def softmax(x, n_rows, n_cols, out, B: bn.constexpr):
    """Rows by a grid-stride loop whose step is known at run time; masked elements are not 0."""
    first, step = tl.program_id(0), tl.num_programs(0)
    for row in tl.range(first, n_rows, step, num_stages=3):
        columns = tl.arange(0, B)
        mask = columns < n_cols
        values = tl.load(x + row * n_cols + columns, mask=mask, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * n_cols + columns, powers / tl.sum(powers, axis=0), mask=mask)


def softmax_arguments(iterations):
    x = numbers(2, max(2 * iterations - 1, 0), 240, dtype=np.float32)
    powers = np.exp(x)
    expected = powers / powers.sum(1, keepdims=True)
    return (x, *x.shape, np.zeros_like(x)), expected


@bn.jit
def backwards(x, start, stop, step, out, B: bn.constexpr):
    """Blocks of an array that a counter which may run down chooses, of which the order matters."""
    lanes = bn.arange(0, B)
    acc = bn.zeros((B,), bn.float32)
    for i in bn.range(start, stop, step, num_stages=4):
        acc = acc * 0.5 + bn.load(x + (i * B + lanes))
    bn.store(out + lanes, acc)


def backwards_arguments(iterations):
    x = numbers(3, 16 * 128, dtype=np.float32)
    start, step = 14, -3
    stop = start + step * iterations + 1 if iterations else start
    expected = np.zeros(128, np.float32)
    for i in range(start, stop, step):
        expected = expected * np.float32(0.5) + x[i * 128:(i + 1) * 128]
    return (x, start, stop, step, np.zeros(128, np.float32)), expected


@bn.jit
def up_to_the_limit(x, start, stop, step, out, B: bn.constexpr):
    """A counter that would overflow one step after its last iteration."""
    lanes = bn.arange(0, B)
    acc = bn.zeros((B,), bn.int32)
    for i in bn.range(start, stop, step, num_stages=3):
        acc += bn.load(x + ((i - start) // step * B + lanes))
    bn.store(out + lanes, acc)


def up_to_the_limit_arguments(iterations):
    x = np.arange(max(iterations, 1) * 128, dtype=np.int32)
    stop, step = 2**31 - 1, 2**28 + 1
    start = stop - step * iterations
    expected = x.reshape(-1, 128)[:iterations].sum(0, dtype=np.int32)
    return (x, start, stop, step, np.zeros(128, np.int32)), expected


# operands of dots ------------------------------------------------------------------------------
@bn.jit
def matmul(a, b, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """A product; the last iteration may be masked."""
    m, n = bn.block(0, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), bn.float32)
    for k in bn.spans(a.shape[1], BK):
        acc += a[m, k] @ b[k, n]
    out[m, n] = acc


def matmul_arguments(iterations):
    k = max(32 * iterations - 16, 0)
    a, b = numbers(4, 64, k), numbers(5, k, 64)
    out = np.zeros((64, 64), np.float32)
    return (a, b, out), a.astype(np.float32) @ b.astype(np.float32)


@bn.jit
def walking_matmul(a, b, M, N, K, stride_a, stride_b, out, BM: bn.constexpr, BN: bn.constexpr,
                   BK: bn.constexpr):
    """A product by pointers that walk along K; rows beyond M are read from its start."""
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    a_places = a + rows[:, None] * stride_a + steps[None, :]
    b_places = b + steps[:, None] * stride_b + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a_tile = tl.load(a_places, mask=steps[None, :] < K - k * BK, other=0.0)
        b_tile = tl.load(b_places, mask=steps[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a_tile, b_tile, acc)
        a_places += BK
        b_places += BK * stride_b
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    addresses = out + rows[:, None] * N + columns[None, :]
    tl.store(addresses, acc, mask=rows[:, None] < M)


def walking_matmul_arguments(iterations):
    k = max(32 * iterations - 16, 0)
    a, b = numbers(6, 48, k), numbers(7, k, 64)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    return (a, b, 48, 64, k, k, 64, np.zeros((48, 64), np.float32)), expected


@bn.jit
def gated(x, gate, up, scale, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """Two products of one operand, and a tile that is not an operand at all."""
    m, n = bn.block(0, BM), bn.block(1, BN)
    one, other = bn.zeros((BM, BN), bn.float32), bn.zeros((BM, BN), bn.float32)
    for k in bn.spans(x.shape[1], BK, num_stages=2):
        tile = x[m, k]
        one += tile @ gate[k, n]
        other += (tile @ up[k, n]) * scale[k.start // BK, n][None, :]
    out[m, n] = one * other


def gated_arguments(iterations):
    k = 32 * iterations
    x, gate, up = numbers(8, 32, k), numbers(9, k, 64), numbers(10, k, 64)
    scale = numbers(11, max(iterations, 1), 64, dtype=np.float32)
    wide = [array.astype(np.float32) for array in (x, gate, up)]
    other = np.zeros((32, 64), np.float32)
    for i in range(iterations):
        k_ = slice(32 * i, 32 * i + 32)
        other += wide[0][:, k_] @ wide[2][k_] * scale[i]
    out = np.zeros((32, 64), np.float32)
    return (x, gate, up, scale, out), wide[0] @ wide[1] * other


@bn.jit
def attention_like(q, k, v, out, BM: bn.constexpr, BN: bn.constexpr, D: bn.constexpr):
    """Blocks of q by an outer loop, and by an inner one products of them with blocks of k and v."""
    d = bn.span(0, D)
    for m in bn.spans(q.shape[0], BM):
        rows = q[m, d]
        acc = bn.zeros((BM, D), bn.float32)
        for n in bn.spans(k.shape[0], BN):
            scores = rows @ k[n, d].T
            acc += scores.to(bn.float16) @ v[n, d]
        out[m, d] = acc


def attention_like_arguments(iterations):
    length = 32 * iterations
    q, k, v = numbers(12, 96, 16), numbers(13, length, 16), numbers(14, length, 16)
    scores = (q.astype(np.float32) @ k.astype(np.float32).T).astype(np.float16)
    out = np.zeros((96, 16), np.float32)
    return (q, k, v, out), scores.astype(np.float32) @ v.astype(np.float32)


@bn.jit
def dequantized(a, b, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """A product of which one operand is computed from what is loaded."""
    m, n = bn.block(0, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), bn.float32)
    for k in bn.spans(a.shape[1], BK):
        acc += a[m, k] @ b[k, n].to(bn.float16)
    out[m, n] = acc


def dequantized_arguments(iterations):
    a = numbers(15, 32, 32 * iterations)
    b = np.random.default_rng(16).integers(-4, 5, (32 * iterations, 64)).astype(np.int8)
    out = np.zeros((32, 64), np.float32)
    return (a, b, out), a.astype(np.float32) @ b.astype(np.float32)


@bn.jit
def running(a, b, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """A product that every iteration stores, by way of shared memory."""
    m, n = bn.block(0, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), bn.float32)
    for k in bn.spans(a.shape[1], BK):
        acc += a[m, k] @ b[k, n]
        out[bn.span(k.start // BK * BM, BM), n] = acc


def running_arguments(iterations):
    a, b = numbers(19, 64, 32 * iterations), numbers(20, 32 * iterations, 64)
    terms = [a[:, k:k + 32].astype(np.float32) @ b[k:k + 32].astype(np.float32)
             for k in range(0, 32 * iterations, 32)]
    return (a, b, np.zeros((64 * iterations, 64), np.float32)), np.cumsum(terms, 0).reshape(-1, 64)


@bn.jit
def gathered(a, b, table, count, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """A product of rows of b that a table names."""
    m, n, k = bn.arange(0, BM), bn.arange(0, BN), bn.arange(0, BK)
    acc = bn.zeros((BM, BN), bn.float32)
    for start in range(0, count, BK):
        inside = start + k < count
        rows = bn.load(table + (start + k), mask=inside, other=0)
        a_tile = bn.load(a + (m[:, None] * count + (start + k)[None, :]), mask=inside[None, :])
        acc += a_tile @ bn.load(b + (rows[:, None] * BN + n[None, :]), mask=inside[:, None])
    bn.store(out + (m[:, None] * BN + n[None, :]), acc)


def gathered_arguments(iterations):
    count = max(32 * iterations - 16, 0)
    a, b = numbers(21, 32, count), numbers(22, 50, 64)
    table = np.random.default_rng(23).integers(0, 50, count).astype(np.int32)
    expected = a.astype(np.float32) @ b[table].astype(np.float32)
    return (a, b, table, count, np.zeros((32, 64), np.float32)), expected


# on Hopper -------------------------------------------------------------------------------------
@bn.jit
def half_by_pointers(a, b, columns: bn.constexpr, out, BM: bn.constexpr, BN: bn.constexpr,
                     BK: bn.constexpr):
    """A product of which TMA fetches one operand, but cannot fetch the other."""
    m, n = bn.block(0, BM), bn.block(1, BN)
    wrapped = n.index % columns
    acc = bn.zeros((BM, BN), bn.float32)
    for k in bn.spans(a.shape[1], BK):
        addresses = b + (k.index[:, None] * columns + wrapped[None, :])
        tile = bn.load(addresses, mask=(k.index < a.shape[1])[:, None])
        acc += a[m, k] @ tile
    out[m, n] = acc


def half_by_pointers_arguments(iterations):
    k = max(32 * iterations - 16, 0)
    a, b = numbers(17, 64, k), numbers(18, k, 96)  # no multiple of BN: tiles may wrap around
    out = np.zeros((64, 64), np.float32)
    return (a, b, 96, out), a.astype(np.float32) @ b[:, :64].astype(np.float32)


PRODUCT = {"BM": 64, "BN": 64, "BK": 32}
NARROW_PRODUCT = {"BM": 32, "BN": 64, "BK": 32}
CASES = (
    *(Case(row_sums, row_sums_arguments, {"B": 128, "STAGES": stages}, 1, grid=(2,))
      for stages in (2, 3, 4)),
    Case(softmax, softmax_arguments, {"B": 256}, 1, grid=(2,)),
    Case(backwards, backwards_arguments, {"B": 128}, 1),
    Case(up_to_the_limit, up_to_the_limit_arguments, {"B": 128}, 1),
    *(Case(matmul, matmul_arguments, PRODUCT, 2, options={"num_stages": stages},
            min_iterations=1)
      for stages in (2, 3, 5)),
    Case(walking_matmul, walking_matmul_arguments, PRODUCT, 2),
    Case(gated, gated_arguments, NARROW_PRODUCT, 4, min_iterations=1),
    Case(attention_like, attention_like_arguments, {"BM": 32, "BN": 32, "D": 16}, 2,
         tolerance=5e-2),
    Case(running, running_arguments, PRODUCT, 2, min_iterations=1),
    Case(dequantized, dequantized_arguments, NARROW_PRODUCT, 2, min_iterations=1),
    Case(gathered, gathered_arguments, NARROW_PRODUCT, 2),
)
HOPPER_CASES = (
    Case(walking_matmul, walking_matmul_arguments, PRODUCT, 2),
    Case(half_by_pointers, half_by_pointers_arguments, PRODUCT, 1),
)

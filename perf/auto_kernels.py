"""Kernels whose tiles the compiler chooses, for bench_auto.py and bench_auto_cpu.py."""

from __future__ import annotations

import blocknumba as bn


@bn.jit
def matmul(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[1], BK):
        sums += x[m, k] @ w[k, n]
    out[m, n] = sums


@bn.jit
def matmul_batched(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    i, m, n = bn.program_id(2), bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(x.shape[2], BK):
        sums += x[i, m, k] @ w[i, k, n]
    out[i, m, n] = sums


@bn.jit
def softmax(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    rows, columns = bn.block(0, ROWS), bn.span(0, COLUMNS)
    tile = x[rows, columns].to(bn.float32)
    tile = bn.where(columns.index[None, :] < x.shape[1], tile, float("-inf"))
    weights = bn.exp(tile - bn.max(tile, axis=1, keepdims=True))
    out[rows, columns] = weights / bn.sum(weights, axis=1, keepdims=True)


@bn.jit
def layernorm(x, weight, bias, out, eps, ROWS: bn.constexpr, BLOCK: bn.constexpr):
    """In two passes over the columns of some rows."""
    rows, size = bn.block(0, ROWS), x.shape[1]
    sums, squares = bn.zeros((ROWS, BLOCK)), bn.zeros((ROWS, BLOCK))
    for columns in bn.spans(size, BLOCK):
        tile = x[rows, columns].to(bn.float32)
        sums += tile
        squares += tile * tile
    mean = bn.sum(sums, axis=1) / size
    scale = 1 / bn.sqrt(bn.sum(squares, axis=1) / size - mean * mean + eps)
    for columns in bn.spans(size, BLOCK):
        tile = (x[rows, columns] - mean[:, None]) * scale[:, None]
        out[rows, columns] = tile * weight[columns] + bias[columns]


@bn.jit
def transpose(x, out, BM: bn.constexpr, BN: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    out[n, m] = x[m, n].T


@bn.jit
def column_sums(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    columns = bn.block(0, COLUMNS)
    sums = bn.zeros((ROWS, COLUMNS))
    for rows in bn.spans(x.shape[0], ROWS):
        sums += x[rows, columns]
    out[columns] = bn.sum(sums, axis=0)


@bn.jit
def add(x, y, out, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    out[r] = x[r] + y[r]


@bn.jit
def gelu(x, out, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    tile = x[r].to(bn.float32)
    out[r] = 0.5 * tile * (1 + bn.erf(tile * 0.7071067811865476))

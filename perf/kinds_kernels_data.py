"""Kernels that move data in Triton's spelling: positions, gathers, scatters, few bits, order."""

import triton
import triton.language as tl


@triton.jit
def rope(x_ptr, cos_ptr, sin_ptr, positions, heads, HEADS: tl.constexpr, HALF: tl.constexpr):
    """In place, halves of a head rotated; a program does all heads of a token."""
    token = tl.program_id(0).to(tl.int64)
    head, d = tl.arange(0, HEADS), tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token % positions * HALF + d)
    sin = tl.load(sin_ptr + token % positions * HALF + d)
    at = x_ptr + token * heads * HALF * 2 + head[:, None] * HALF * 2 + d[None, :]
    mask = (head < heads)[:, None]
    x = tl.load(at, mask=mask, other=0).to(tl.float32)
    y = tl.load(at + HALF, mask=mask, other=0).to(tl.float32)
    tl.store(at, x * cos[None, :] - y * sin[None, :], mask=mask)
    tl.store(at + HALF, y * cos[None, :] + x * sin[None, :], mask=mask)


@triton.jit
def transpose(x_ptr, out_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    mask = (r < rows)[:, None] & (c < columns)[None, :]
    x = tl.load(x_ptr + r[:, None] * columns + c[None, :], mask=mask)
    tl.store(out_ptr + c[:, None] * rows + r[None, :], tl.trans(x), mask=tl.trans(mask))


@triton.jit
def embedding(ids_ptr, table_ptr, out_ptr, n_ids, n, IDS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * IDS + tl.arange(0, IDS)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i, mask=i < n_ids, other=0)
    mask = (i < n_ids)[:, None] & (c < n)[None, :]
    x = tl.load(table_ptr + ids[:, None] * n + c[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + i[:, None] * n + c[None, :], x, mask=mask)


@triton.jit
def embedding_backward(dy_ptr, ids_ptr, dtable_ptr, n_ids, n, IDS: tl.constexpr,
                       BLOCK: tl.constexpr):
    i = tl.program_id(0) * IDS + tl.arange(0, IDS)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i, mask=i < n_ids, other=0)
    mask = (i < n_ids)[:, None] & (c < n)[None, :]
    dy = tl.load(dy_ptr + i[:, None] * n + c[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(dtable_ptr + ids[:, None] * n + c[None, :], dy, mask=mask)


@triton.jit
def kv_write(k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, n, page, BLOCK: tl.constexpr):
    """Rows of a token to its slot of a paged cache; a slot below zero is padding."""
    token = tl.program_id(0)
    slot = tl.load(slots_ptr + token)
    if slot >= 0:
        at = tl.arange(0, BLOCK)
        to = slot // page * page * n + slot % page * n + at
        k = tl.load(k_ptr + token * n + at, mask=at < n)
        v = tl.load(v_ptr + token * n + at, mask=at < n)
        tl.store(k_cache_ptr + to, k, mask=at < n)
        tl.store(v_cache_ptr + to, v, mask=at < n)


@triton.jit
def jagged_sum(x_ptr, starts_ptr, out_ptr, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    part = tl.program_id(0)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    start, stop = tl.load(starts_ptr + part), tl.load(starts_ptr + part + 1)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(start, stop, ROWS):
        r = first + tl.arange(0, ROWS)
        mask = (r < stop)[:, None] & (c < n)[None, :]
        total += tl.load(x_ptr + r[:, None] * n + c[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + part * n + c, tl.sum(total, axis=0), mask=c < n)


@triton.jit
def histogram(x_ptr, out_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Whole blocks are counted, then added by atomics."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x_ptr + at), BINS)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts, sem="relaxed")


@triton.jit
def quantise_int8(x_ptr, q_ptr, scale_ptr, rows, ROWS: tl.constexpr, D: tl.constexpr):
    """A scale for each block of rows of a head; rounded half away from zero."""
    block, head = tl.program_id(0), tl.program_id(1)
    r = block * ROWS + tl.arange(0, ROWS)
    at = head.to(tl.int64) * rows * D + r[:, None] * D + tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + at, mask=(r < rows)[:, None], other=0).to(tl.float32)
    scale = tl.max(tl.abs(x)) / 127 + 1e-8
    q = x / scale
    q += 0.5 * tl.where(q >= 0, 1, -1)
    tl.store(q_ptr + at, q.to(tl.int8), mask=(r < rows)[:, None])
    tl.store(scale_ptr + head * tl.num_programs(0) + block, scale)


@triton.jit
def quantise_fp8(x_ptr, q_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    start = row.to(tl.int64) * n
    x = tl.load(x_ptr + start + at, mask=at < n, other=0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-10) / 448.0
    q = tl.minimum(tl.maximum(x / scale, -448.0), 448.0)
    tl.store(q_ptr + start + at, q.to(q_ptr.dtype.element_ty), mask=at < n)
    tl.store(scale_ptr + row, scale)


@triton.jit
def dequantise_int4(q_ptr, scale_ptr, zero_ptr, out_ptr, n, group, ROWS: tl.constexpr,
                    COLUMNS: tl.constexpr):
    """Words of 8 rows, a scale and a zero for each group of rows of a column."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    q = tl.load(q_ptr + r[:, None] // 8 * n + c[None, :])
    at = r[:, None] // group * n + c[None, :]
    scale, zero = tl.load(scale_ptr + at), tl.load(zero_ptr + at)
    four = (q >> (r % 8 * 4)[:, None]) & 15
    tl.store(out_ptr + r[:, None] * n + c[None, :], four * scale - zero)


@triton.jit
def cumsum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0) * n, tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + at, mask=at < n, other=0.0)
    tl.store(out_ptr + row + at, tl.cumsum(x, axis=0), mask=at < n)


@triton.jit
def sort(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0) * n, tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + at, mask=at < n, other=float("inf"))
    tl.store(out_ptr + row + at, tl.sort(x), mask=at < n)


@triton.jit
def topk(x_ptr, out_ptr, n, TOP: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=-float("inf"))
    tl.store(out_ptr + row * TOP + tl.arange(0, TOP), tl.topk(x, TOP))


@triton.jit
def block_softmax(x_ptr, starts_ptr, out_ptr, scale, SIDE: tl.constexpr, MOST: tl.constexpr):
    """Rows over all blocks of a row of a block-sparse matrix, SIDE x SIDE each."""
    line, row = tl.program_id(0), tl.program_id(1)
    start = tl.load(starts_ptr + line)
    blocks = tl.load(starts_ptr + line + 1) - start
    i = tl.arange(0, MOST * SIDE)
    at = (start + i // SIDE).to(tl.int64) * SIDE * SIDE + row * SIDE + i % SIDE
    mask = i // SIDE < blocks
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32) * scale
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + at, e / tl.sum(e, axis=0), mask=mask)

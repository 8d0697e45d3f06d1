"""More kinds in Triton's spelling: indexed sums, rope, causal conv1d, paged decode."""

import triton
import triton.language as tl


@triton.jit
def index_add(out_ptr, index_ptr, x_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    """Scaled rows are added where the index says, by atomics in float32."""
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    to = tl.load(index_ptr + row).to(tl.int64)
    x = tl.load(x_ptr + row * n + at, mask=at < n).to(tl.float32)
    scale = tl.load(scale_ptr + at, mask=at < n).to(tl.float32)
    tl.atomic_add(out_ptr + to * n + at, x * scale, mask=at < n)


@triton.jit
def rope_interleaved(x_ptr, cos_ptr, sin_ptr, positions, heads, HEADS: tl.constexpr,
                     HALF: tl.constexpr):
    """In place, neighbours of a head rotated."""
    token = tl.program_id(0).to(tl.int64)
    head, d = tl.arange(0, HEADS), tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token % positions * HALF + d)[None, :]
    sin = tl.load(sin_ptr + token % positions * HALF + d)[None, :]
    at = x_ptr + token * heads * HALF * 2 + head[:, None] * HALF * 2 + 2 * d[None, :]
    mask = (head < heads)[:, None]
    x = tl.load(at, mask=mask, other=0).to(tl.float32)
    y = tl.load(at + 1, mask=mask, other=0).to(tl.float32)
    tl.store(at, x * cos - y * sin, mask=mask)
    tl.store(at + 1, y * cos + x * sin, mask=mask)


@triton.jit
def conv1d(x_ptr, w_ptr, b_ptr, out_ptr, n, channels, WIDTH: tl.constexpr, T: tl.constexpr,
           C: tl.constexpr):
    """Each channel by itself, causal, then silu; channels are neighbours."""
    t = tl.program_id(0) * T + tl.arange(0, T)
    c = tl.program_id(1) * C + tl.arange(0, C)
    base = tl.program_id(2).to(tl.int64) * n * channels
    mask = (t < n)[:, None] & (c < channels)[None, :]
    total = tl.zeros((T, C), tl.float32)
    total += tl.load(b_ptr + c, mask=c < channels, other=0.0).to(tl.float32)[None, :]
    for i in tl.static_range(WIDTH):
        past = t + i - (WIDTH - 1)
        x = tl.load(x_ptr + base + past[:, None] * channels + c[None, :],
                    mask=mask & (past >= 0)[:, None], other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c * WIDTH + i, mask=c < channels, other=0.0).to(tl.float32)
        total += x * w[None, :]
    total = total * tl.sigmoid(total)
    tl.store(out_ptr + base + t[:, None] * channels + c[None, :], total, mask=mask)


@triton.jit
def paged_decode(q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, out_ptr, lse_ptr, scale, pages,
                 kv_heads, PAGE: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr,
                 N: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr):
    """One token a sequence, GROUP heads for each of keys, a part of the keys a program."""
    sequence, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths_ptr + sequence)
    each = tl.cdiv(tl.cdiv(length, SPLITS), N) * N
    start = split * each
    stop = tl.minimum(start + each, length)
    head, d = tl.arange(0, ROWS), tl.arange(0, D)
    heads = sequence * kv_heads * GROUP + kv_head * GROUP + head
    real = head < GROUP
    q = tl.load(q_ptr + heads[:, None] * D + d[None, :], mask=real[:, None], other=0.0)
    greatest = tl.full((ROWS,), -1e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    out = tl.zeros((ROWS, D), tl.float32)
    for first in range(start, stop, N):
        now = first + tl.arange(0, N)
        inside = now < stop
        page = tl.load(table_ptr + sequence * pages + now // PAGE, mask=inside, other=0)
        slot = (page.to(tl.int64) * PAGE + now % PAGE) * kv_heads + kv_head
        k = tl.load(k_ptr + slot[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        s = tl.where(inside[None, :], tl.dot(q, k) * scale, -float("inf"))
        new = tl.maximum(greatest, tl.max(s, 1))
        factor, p = tl.exp(greatest - new), tl.exp(s - new[:, None])
        v = tl.load(v_ptr + slot[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        out = out * factor[:, None] + tl.dot(p.to(v.dtype), v)
        total = total * factor + tl.sum(p, 1)
        greatest = new
    at = heads * SPLITS + split
    tl.store(out_ptr + at[:, None] * D + d[None, :], out / total[:, None], mask=real[:, None])
    tl.store(lse_ptr + at, greatest + tl.log(total), mask=real)


@triton.jit
def merge_splits(parts_ptr, lse_ptr, out_ptr, SPLITS: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(0)
    split, d = tl.arange(0, SPLITS), tl.arange(0, D)
    lse = tl.load(lse_ptr + head * SPLITS + split)
    weight = tl.exp(lse - tl.max(lse, 0))
    parts = tl.load(parts_ptr + (head * SPLITS + split)[:, None] * D + d[None, :])
    out = tl.sum(parts * weight[:, None], 0) / tl.sum(weight, 0)
    tl.store(out_ptr + head * D + d, out.to(tl.float16))

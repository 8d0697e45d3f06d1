"""More attention in Triton's spelling: gradients, grouped queries, scores of int8."""

import triton
import triton.language as tl


@triton.jit
def attention_keys_backward(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, n,
                            scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Gradients of N keys and values, over all queries.  n is a multiple of M and of N."""
    head = tl.program_id(1)
    base, d = head.to(tl.int64) * n * D, tl.arange(0, D)
    at = base + (tl.program_id(0) * N + tl.arange(0, N))[:, None] * D + d[None, :]
    k, v = tl.load(k_ptr + at), tl.load(v_ptr + at)
    dk, dv = tl.zeros((N, D), tl.float32), tl.zeros((N, D), tl.float32)
    scale2 = scale * 1.4426950408889634
    for start in range(0, n, M):
        rows = start + tl.arange(0, M)
        q = tl.load(q_ptr + base + rows[:, None] * D + d[None, :])
        do = tl.load(do_ptr + base + rows[:, None] * D + d[None, :])
        lse = tl.load(lse_ptr + head * n + rows) * 1.4426950408889634
        delta = tl.load(delta_ptr + head * n + rows)
        p = tl.exp2(tl.dot(k, tl.trans(q)) * scale2 - lse[None, :])
        dv += tl.dot(p.to(do.dtype), do)
        dp = tl.dot(v, tl.trans(do))
        ds = p * (dp - delta[None, :])
        dk += tl.dot(ds.to(q.dtype), q)
    tl.store(dk_ptr + at, (dk * scale).to(tl.float16))
    tl.store(dv_ptr + at, dv.to(tl.float16))


@triton.jit
def attention_queries_backward(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, n, scale,
                               M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Gradients of M queries, over all keys.  n is a multiple of M and of N."""
    head = tl.program_id(1)
    base, d = head.to(tl.int64) * n * D, tl.arange(0, D)
    rows = tl.program_id(0) * M + tl.arange(0, M)
    at = base + rows[:, None] * D + d[None, :]
    q, do = tl.load(q_ptr + at), tl.load(do_ptr + at)
    lse = tl.load(lse_ptr + head * n + rows) * 1.4426950408889634
    delta = tl.load(delta_ptr + head * n + rows)
    dq = tl.zeros((M, D), tl.float32)
    scale2 = scale * 1.4426950408889634
    for start in range(0, n, N):
        now = start + tl.arange(0, N)
        k = tl.load(k_ptr + base + now[:, None] * D + d[None, :])
        v = tl.load(v_ptr + base + now[:, None] * D + d[None, :])
        p = tl.exp2(tl.dot(q, tl.trans(k)) * scale2 - lse[:, None])
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq += tl.dot(ds.to(k.dtype), k)
    tl.store(dq_ptr + at, (dq * scale).to(tl.float16))


@triton.jit
def attention_grouped(q_ptr, k_ptr, v_ptr, out_ptr, n, heads, kv_heads, scale, M: tl.constexpr,
                      N: tl.constexpr, D: tl.constexpr, GROUP: tl.constexpr):
    """Tokens one after another, of each all heads; GROUP heads of queries share keys."""
    batch, head = tl.program_id(2).to(tl.int64), tl.program_id(1)
    d, columns = tl.arange(0, D), tl.arange(0, N)
    rows = tl.program_id(0) * M + tl.arange(0, M)
    q_at = (batch * n * heads + head) * D + rows[:, None] * heads * D + d[None, :]
    base = (batch * n * kv_heads + head // GROUP) * D
    q = tl.load(q_ptr + q_at, mask=rows[:, None] < n, other=0.0)
    k_at = k_ptr + base + columns[None, :] * kv_heads * D + d[:, None]
    v_at = v_ptr + base + columns[:, None] * kv_heads * D + d[None, :]
    greatest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    for first in range(0, n, N):
        seen = first + columns < n
        k = tl.load(k_at, mask=seen[None, :], other=0.0)
        s = tl.where(seen[None, :], tl.dot(q, k) * (scale * 1.4426950408889634), -float("inf"))
        new = tl.maximum(greatest, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        factor = tl.exp2(greatest - new)
        total = total * factor + tl.sum(p, 1)
        v = tl.load(v_at, mask=seen[:, None], other=0.0)
        out = tl.dot(p.to(v.dtype), v, out * factor[:, None])
        greatest = new
        k_at += N * kv_heads * D
        v_at += N * kv_heads * D
    tl.store(out_ptr + q_at, (out / total[:, None]).to(tl.float16), mask=rows[:, None] < n)


@triton.jit
def attention_int8(q_ptr, q_scale_ptr, k_ptr, k_scale_ptr, v_ptr, out_ptr, n, M: tl.constexpr,
                   N: tl.constexpr, D: tl.constexpr):
    """Queries and keys of int8 with a scale for each block; the logarithm's base is 2."""
    head = tl.program_id(1)
    base, d = head.to(tl.int64) * n * D, tl.arange(0, D)
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    q = tl.load(q_ptr + base + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0)
    q_scale = tl.load(q_scale_ptr + head * tl.cdiv(n, M) + tl.program_id(0))
    k_scale_at = k_scale_ptr + head * tl.cdiv(n, N)
    k_at = k_ptr + base + columns[None, :] * D + d[:, None]
    v_at = v_ptr + base + columns[:, None] * D + d[None, :]
    greatest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    for first in range(0, n, N):
        seen = columns < n - first
        k = tl.load(k_at, mask=seen[None, :], other=0)
        k_scale = tl.load(k_scale_at)
        s = tl.dot(q, k).to(tl.float32) * (q_scale * k_scale)
        s = tl.where(seen[None, :], s, -float("inf"))
        new = tl.maximum(greatest, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        factor = tl.exp2(greatest - new)
        total = total * factor + tl.sum(p, 1)
        v = tl.load(v_at, mask=seen[:, None], other=0.0)
        out = tl.dot(p.to(v.dtype), v, out * factor[:, None])
        greatest = new
        k_at += N * D
        k_scale_at += 1
        v_at += N * D
    tl.store(out_ptr + base + rows[:, None] * D + d[None, :],
             (out / total[:, None]).to(tl.float16), mask=rows[:, None] < n)

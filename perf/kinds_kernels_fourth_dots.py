"""Kernels with dots in Triton's spelling, of the fourth set: products and attention."""

import triton
import triton.language as tl


@triton.jit
def gemm_split_k(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
                 SPLITS: tl.constexpr):
    """Programs that share a tile take every SPLITS-th part of the depth, and add."""
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    d = tl.program_id(2) * K + tl.arange(0, K)
    a_at = a_ptr + r[:, None] * k + d[None, :]
    b_at = b_ptr + d[:, None] * n + c[None, :]
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, tl.cdiv(k, K * SPLITS)):
        left = k - start * K * SPLITS
        a = tl.load(a_at, mask=(r < m)[:, None] & (d < left)[None, :], other=0.0)
        b = tl.load(b_at, mask=(d < left)[:, None] & (c < n)[None, :], other=0.0)
        total = tl.dot(a, b, total)
        a_at += K * SPLITS
        b_at += K * SPLITS * n
    tl.atomic_add(c_ptr + r[:, None] * n + c[None, :], total,
                  mask=(r < m)[:, None] & (c < n)[None, :], sem="relaxed")


@triton.jit
def gemm_descriptors(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr,
                     K: tl.constexpr, GROUP: tl.constexpr):
    """b is given by columns; programs walk over tiles, in groups of rows."""
    a = tl.make_tensor_descriptor(a_ptr, shape=[m, k], strides=[k, 1], block_shape=[M, K])
    b = tl.make_tensor_descriptor(b_ptr, shape=[n, k], strides=[k, 1], block_shape=[N, K])
    c = tl.make_tensor_descriptor(c_ptr, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    tiles_m, tiles_n = tl.cdiv(m, M), tl.cdiv(n, N)
    in_group = GROUP * tiles_n
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        first = tile // in_group * GROUP
        size = min(tiles_m - first, GROUP)
        row = (first + tile % size) * M
        column = tile % in_group // size * N
        total = tl.zeros((M, N), tl.float32)
        for i in range(tl.cdiv(k, K)):
            total = tl.dot(a.load([row, i * K]), b.load([column, i * K]).T, total)
        c.store([row, column], total.to(tl.float16))


@triton.jit
def gemm_fp8_blocks(a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, m, n, k, M: tl.constexpr,
                    N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    """b by columns.  A scale for each row and K of depth of a, for each N columns and K of b."""
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, M), tl.cdiv(n, N)
    in_group = GROUP * tiles_n
    first = program // in_group * GROUP
    size = min(tiles_m - first, GROUP)
    tile_n = program % in_group // size
    r = (first + program % size) * M + tl.arange(0, M)
    c = tile_n * N + tl.arange(0, N)
    d = tl.arange(0, K)
    parts = tl.cdiv(k, K)
    a_at = a_ptr + (r % m)[:, None] * k + d[None, :]
    b_at = b_ptr + (c % n)[None, :] * k + d[:, None]
    a_scale_at = a_scale_ptr + (r % m) * parts
    b_scale_at = b_scale_ptr + tile_n * parts
    total = tl.zeros((M, N), tl.float32)
    for i in range(0, parts):
        a = tl.load(a_at, mask=d[None, :] < k - i * K, other=0.0)
        b = tl.load(b_at, mask=d[:, None] < k - i * K, other=0.0)
        scale = tl.load(a_scale_at + i) * tl.load(b_scale_at + i)
        total += tl.dot(a, b) * scale[:, None]
        a_at += K
        b_at += K
    tl.store(c_ptr + r[:, None] * n + c[None, :], total.to(tl.bfloat16),
             mask=(r < m)[:, None] & (c < n)[None, :])


@triton.jit
def gemm_swiglu(x_ptr, gate_ptr, up_ptr, out_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr,
                K: tl.constexpr):
    """silu(x gate) * (x up): two products of one operand."""
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    d = tl.arange(0, K)
    gates, ups = tl.zeros((M, N), tl.float32), tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        is_row = (r < m)[:, None] & (start + d < k)[None, :]
        is_column = (start + d < k)[:, None] & (c < n)[None, :]
        at = (start + d)[:, None] * n + c[None, :]
        x = tl.load(x_ptr + r[:, None] * k + (start + d)[None, :], mask=is_row, other=0.0)
        gates = tl.dot(x, tl.load(gate_ptr + at, mask=is_column, other=0.0), gates)
        ups = tl.dot(x, tl.load(up_ptr + at, mask=is_column, other=0.0), ups)
    out = gates * tl.sigmoid(gates) * ups
    tl.store(out_ptr + r[:, None] * n + c[None, :], out.to(out_ptr.dtype.element_ty),
             mask=(r < m)[:, None] & (c < n)[None, :])


@triton.jit
def gemm_symmetric(x_ptr, out_ptr, m, k, M: tl.constexpr, K: tl.constexpr):
    """x times its transpose: tiles up to the diagonal, stored twice."""
    tile, other = tl.program_id(0), tl.program_id(1)
    if tile < other:
        return
    r, c = tile * M + tl.arange(0, M), other * M + tl.arange(0, M)
    d = tl.arange(0, K)
    total = tl.zeros((M, M), tl.float32)
    for start in range(0, k, K):
        inside = start + d < k
        a = tl.load(x_ptr + r[:, None] * k + (start + d)[None, :],
                    mask=(r < m)[:, None] & inside[None, :], other=0.0)
        b = tl.load(x_ptr + c[:, None] * k + (start + d)[None, :],
                    mask=(c < m)[:, None] & inside[None, :], other=0.0)
        total = tl.dot(a, tl.trans(b), total)
    out = total.to(out_ptr.dtype.element_ty)
    mask = (r < m)[:, None] & (c < m)[None, :]
    tl.store(out_ptr + r[:, None] * m + c[None, :], out, mask=mask)
    if tile > other:
        tl.store(out_ptr + c[None, :] * m + r[:, None], out, mask=mask)


@triton.jit
def linear_logsumexp(x_ptr, w_ptr, part_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr,
                     K: tl.constexpr):
    """Logits of M tokens and N words, w by rows; only the log of their sums leaves the program."""
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    d = tl.arange(0, K)
    x_at = x_ptr + r[:, None] * k + d[None, :]
    w_at = w_ptr + c[None, :].to(tl.int64) * k + d[:, None]
    logits = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        x = tl.load(x_at, mask=(r < m)[:, None] & (d < k - start)[None, :], other=0.0)
        w = tl.load(w_at, mask=(d < k - start)[:, None] & (c < n)[None, :], other=0.0)
        logits = tl.dot(x, w, logits)
        x_at += K
        w_at += K
    logits = tl.where((c < n)[None, :], logits, -float("inf"))
    most = tl.max(logits, axis=1)
    lse = most + tl.log(tl.sum(tl.exp(logits - most[:, None]), axis=1))
    tl.store(part_ptr + tl.program_id(1) * m + r, lse, mask=r < m)


@triton.jit
def decode_latent(q_ptr, cache_ptr, out_ptr, lse_ptr, n, heads, splits, scale, H: tl.constexpr,
                  N: tl.constexpr, LATENT: tl.constexpr, ROPE: tl.constexpr):
    """One query a head, one key for all heads; values are the first LATENT numbers of keys."""
    sequence, part = tl.program_id(0), tl.program_id(2)
    width = LATENT + ROPE
    h = tl.program_id(1) * H + tl.arange(0, H)
    d, e = tl.arange(0, LATENT), LATENT + tl.arange(0, ROPE)
    q_row = q_ptr + (sequence * heads + h)[:, None] * width
    q, q_rope = tl.load(q_row + d[None, :]), tl.load(q_row + e[None, :])
    cache = cache_ptr + sequence.to(tl.int64) * n * width
    size = tl.cdiv(n, splits)
    begin = part * size
    end = tl.minimum(begin + size, n)
    most = tl.full((H,), -float("inf"), tl.float32)
    total = tl.zeros((H,), tl.float32)
    out = tl.zeros((H, LATENT), tl.float32)
    for start in range(begin, end, N):
        t = start + tl.arange(0, N)
        k = tl.load(cache + t[None, :] * width + d[:, None], mask=(t < end)[None, :], other=0.0)
        k_rope = tl.load(cache + t[None, :] * width + e[:, None], mask=(t < end)[None, :],
                         other=0.0)
        s = tl.dot(q, k)
        s += tl.dot(q_rope, k_rope)
        s = tl.where((t < end)[None, :], s * scale, -float("inf"))
        new = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        kept = tl.exp(most - new)
        total = total * kept + tl.sum(p, axis=1)
        out = out * kept[:, None] + tl.dot(p.to(k.dtype), tl.trans(k))
        most = new
    row = (sequence * heads + h) * splits + part
    tl.store(out_ptr + row[:, None] * LATENT + d[None, :], out / total[:, None])
    tl.store(lse_ptr + row, most + tl.log(total))


@triton.jit
def attention_window(q_ptr, k_ptr, v_ptr, out_ptr, n, window, scale, cap, M: tl.constexpr,
                     N: tl.constexpr, D: tl.constexpr):
    """Each position sees itself and the window before it; scores are capped by a tanh."""
    base = tl.program_id(1).to(tl.int64) * n * D
    first = tl.program_id(0) * M
    r, d = first + tl.arange(0, M), tl.arange(0, D)
    q = tl.load(q_ptr + base + r[:, None] * D + d[None, :], mask=(r < n)[:, None], other=0.0)
    most = tl.full((M,), -1e30, tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    begin = tl.maximum(first - window, 0) // N * N
    for start in range(begin, tl.minimum(first + M, n), N):
        c = start + tl.arange(0, N)
        k = tl.load(k_ptr + base + c[None, :] * D + d[:, None], mask=(c < n)[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        s = cap * (2 * tl.sigmoid(2 * (s / cap)) - 1)
        back = r[:, None] - c[None, :]
        s = tl.where((back >= 0) & (back <= window), s, -float("inf"))
        new = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        kept = tl.exp(most - new)
        total = total * kept + tl.sum(p, axis=1)
        v = tl.load(v_ptr + base + c[:, None] * D + d[None, :], mask=(c < n)[:, None], other=0.0)
        out = tl.dot(p.to(v.dtype), v, out * kept[:, None])
        most = new
    tl.store(out_ptr + base + r[:, None] * D + d[None, :],
             (out / total[:, None]).to(out_ptr.dtype.element_ty), mask=(r < n)[:, None])


@triton.jit
def attention_bias(q_ptr, k_ptr, v_ptr, bias_ptr, out_ptr, n, heads, scale, M: tl.constexpr,
                   N: tl.constexpr, D: tl.constexpr):
    """Scores of each head get a matrix that all rows of a batch share."""
    of = tl.program_id(1)
    base = of.to(tl.int64) * n * D
    r, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    bias_at = bias_ptr + (of % heads) * n * n + r[:, None] * n
    q = tl.load(q_ptr + base + r[:, None] * D + d[None, :], mask=(r < n)[:, None], other=0.0)
    most = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        c = start + tl.arange(0, N)
        k = tl.load(k_ptr + base + c[:, None] * D + d[None, :], mask=(c < n)[:, None], other=0.0)
        bias = tl.load(bias_at + c[None, :], mask=(r < n)[:, None] & (c < n)[None, :], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale + bias.to(tl.float32)
        s = tl.where((c < n)[None, :], s, -float("inf"))
        new = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        kept = tl.exp(most - new)
        total = total * kept + tl.sum(p, axis=1)
        v = tl.load(v_ptr + base + c[:, None] * D + d[None, :], mask=(c < n)[:, None], other=0.0)
        out = out * kept[:, None]
        out += tl.dot(p.to(v.dtype), v)
        most = new
    tl.store(out_ptr + base + r[:, None] * D + d[None, :],
             (out / total[:, None]).to(out_ptr.dtype.element_ty), mask=(r < n)[:, None])


@triton.jit
def attention_blocks(q_ptr, k_ptr, v_ptr, blocks_ptr, counts_ptr, out_ptr, n, most_blocks, scale,
                     M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Of keys only the blocks that a list names for each block of queries; n is whole blocks."""
    base = tl.program_id(1).to(tl.int64) * n * D
    block = tl.program_id(0)
    r, d = block * M + tl.arange(0, M), tl.arange(0, D)
    q = tl.load(q_ptr + base + r[:, None] * D + d[None, :])
    most = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    factor = scale * 1.44269504
    for i in range(tl.load(counts_ptr + block)):
        c = tl.load(blocks_ptr + block * most_blocks + i) * N + tl.arange(0, N)
        k = tl.load(k_ptr + base + c[None, :] * D + d[:, None])
        v = tl.load(v_ptr + base + c[:, None] * D + d[None, :])
        s = tl.dot(q, k) * factor
        new = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        kept = tl.exp2(most - new)
        total = total * kept + tl.sum(p, axis=1)
        out = tl.dot(p.to(v.dtype), v, out * kept[:, None])
        most = new
    tl.store(out_ptr + base + r[:, None] * D + d[None, :],
             (out / total[:, None]).to(out_ptr.dtype.element_ty))


@triton.jit
def attention_jagged(q_ptr, k_ptr, v_ptr, starts_ptr, out_ptr, heads, most, scale,
                     M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """silu of scores instead of a softmax, causal; sequences lie one after another."""
    sequence, head = tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts_ptr + sequence)
    n = tl.load(starts_ptr + sequence + 1) - begin
    first = tl.program_id(0) * M
    if first >= n:
        return
    r, d = first + tl.arange(0, M), tl.arange(0, D)
    row = heads * D
    base = begin.to(tl.int64) * row + head * D
    q = tl.load(q_ptr + base + r[:, None] * row + d[None, :], mask=(r < n)[:, None], other=0.0)
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, tl.minimum(first + M, n), N):
        c = start + tl.arange(0, N)
        k = tl.load(k_ptr + base + c[None, :] * row + d[:, None], mask=(c < n)[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        p = s * tl.sigmoid(s) / most
        p = tl.where(r[:, None] >= c[None, :], p, 0.0)
        v = tl.load(v_ptr + base + c[:, None] * row + d[None, :], mask=(c < n)[:, None], other=0.0)
        out += tl.dot(p.to(v.dtype), v)
    tl.store(out_ptr + base + r[:, None] * row + d[None, :], out.to(out_ptr.dtype.element_ty),
             mask=(r < n)[:, None])

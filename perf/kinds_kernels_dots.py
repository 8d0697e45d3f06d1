"""Kernels with dots in Triton's spelling: products, few-bit weights, convolutions, attention."""

import triton
import triton.language as tl


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
         stride_cn, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    """Tiles in groups of rows; rows and columns beyond the end wrap around."""
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, M), tl.cdiv(n, N)
    in_group = GROUP * tiles_n
    first = program // in_group * GROUP
    size = min(tiles_m - first, GROUP)
    tile_m = first + program % in_group % size
    tile_n = program % in_group // size
    rows = (tile_m * M + tl.arange(0, M)) % m
    columns = (tile_n * N + tl.arange(0, N)) % n
    depth = tl.arange(0, K)
    a_at = a_ptr + rows[:, None] * stride_am + depth[None, :] * stride_ak
    b_at = b_ptr + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((M, N), tl.float32)
    for i in range(0, tl.cdiv(k, K)):
        a = tl.load(a_at, mask=depth[None, :] < k - i * K, other=0.0)
        b = tl.load(b_at, mask=depth[:, None] < k - i * K, other=0.0)
        total = tl.dot(a, b, total)
        a_at += K * stride_ak
        b_at += K * stride_bk
    rows = tile_m * M + tl.arange(0, M)
    columns = tile_n * N + tl.arange(0, N)
    c_at = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_at, total.to(tl.float16), mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def gemm_masked(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr,
                K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        depth = start + tl.arange(0, K)
        a = tl.load(a_ptr + rows[:, None] * k + depth[None, :],
                    mask=(rows[:, None] < m) & (depth[None, :] < k), other=0.0)
        b = tl.load(b_ptr + depth[:, None] * n + columns[None, :],
                    mask=(depth[:, None] < k) & (columns[None, :] < n), other=0.0)
        total += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total.to(c_ptr.dtype.element_ty),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def gemm_batched(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr,
                 K: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    a_at = a_ptr + batch * m * k + rows[:, None] * k + depth[None, :]
    b_at = b_ptr + batch * k * n + depth[:, None] * n + columns[None, :]
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        a = tl.load(a_at, mask=(rows[:, None] < m) & (depth[None, :] < k - start), other=0.0)
        b = tl.load(b_at, mask=(depth[:, None] < k - start) & (columns[None, :] < n), other=0.0)
        total = tl.dot(a, b, total)
        a_at += K
        b_at += K * n
    tl.store(c_ptr + batch * m * n + rows[:, None] * n + columns[None, :],
             total.to(tl.float16), mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def gemm_grouped(a_ptr, b_ptr, c_ptr, starts_ptr, groups, n, k, M: tl.constexpr,
                 N: tl.constexpr, K: tl.constexpr):
    """Rows of a from starts[g] to starts[g + 1] times b[g]; programs walk over all tiles."""
    tile = tl.program_id(0)
    before = 0
    tiles_n = tl.cdiv(n, N)
    for group in range(groups):
        start = tl.load(starts_ptr + group)
        stop = tl.load(starts_ptr + group + 1)
        tiles = tl.cdiv(stop - start, M) * tiles_n
        while tile >= before and tile < before + tiles:
            rows = start + (tile - before) // tiles_n * M + tl.arange(0, M)
            columns = (tile - before) % tiles_n * N + tl.arange(0, N)
            depth = tl.arange(0, K)
            a_at = a_ptr + rows[:, None] * k + depth[None, :]
            b_at = b_ptr + group.to(tl.int64) * k * n + depth[:, None] * n + columns[None, :]
            total = tl.zeros((M, N), tl.float32)
            for _ in range(0, tl.cdiv(k, K)):
                a = tl.load(a_at, mask=rows[:, None] < stop, other=0.0)
                total += tl.dot(a, tl.load(b_at))
                a_at += K
                b_at += K * n
            tl.store(c_ptr + rows[:, None] * n + columns[None, :], total.to(tl.float16),
                     mask=rows[:, None] < stop)
            tile += tl.num_programs(0)
        before += tiles


@triton.jit
def gemm_int8(a_ptr, b_ptr, c_ptr, row_scale_ptr, column_scale_ptr, m, n, k, M: tl.constexpr,
              N: tl.constexpr, K: tl.constexpr):
    """b is given by columns."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    a_at = a_ptr + rows[:, None] * k + depth[None, :]
    b_at = b_ptr + depth[:, None] + columns[None, :] * k
    total = tl.zeros((M, N), tl.int32)
    for start in range(0, k, K):
        a = tl.load(a_at, mask=(rows[:, None] < m) & (depth[None, :] < k - start), other=0)
        b = tl.load(b_at, mask=(depth[:, None] < k - start) & (columns[None, :] < n), other=0)
        total += tl.dot(a, b, out_dtype=tl.int32)
        a_at += K
        b_at += K
    row_scale = tl.load(row_scale_ptr + rows, mask=rows < m, other=0.0)
    column_scale = tl.load(column_scale_ptr + columns, mask=columns < n, other=0.0)
    c = total.to(tl.float32) * row_scale[:, None] * column_scale[None, :]
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], c.to(tl.float16),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def gemm_int4(a_ptr, q_ptr, scale_ptr, zero_ptr, c_ptr, m, n, k, group, M: tl.constexpr,
              N: tl.constexpr, K: tl.constexpr, SPLIT: tl.constexpr):
    """Words of 8 rows of weights; parts of the depth are added by atomics in float16."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.program_id(2) * K + tl.arange(0, K)
    shift = depth % 8 * 4
    total = tl.zeros((M, N), tl.float32)
    for i in range(0, tl.cdiv(k, K * SPLIT)):
        now = depth + i * K * SPLIT
        a = tl.load(a_ptr + rows[:, None] * k + now[None, :], mask=rows[:, None] < m, other=0.0)
        q = tl.load(q_ptr + now[:, None] // 8 * n + columns[None, :])
        at = now[:, None] // group * n + columns[None, :]
        scale = tl.load(scale_ptr + at)
        zero = tl.load(zero_ptr + at)
        b = (((q >> shift[:, None]) & 15) * scale - zero).to(tl.float16)
        total = tl.dot(a, b, total)
    tl.atomic_add(c_ptr + rows[:, None] * n + columns[None, :], total.to(tl.float16),
                  mask=rows[:, None] < m)


@triton.jit
def gemm_fp8(a_ptr, b_ptr, c_ptr, m, n, k, scale, M: tl.constexpr, N: tl.constexpr,
             K: tl.constexpr, SPLIT: tl.constexpr):
    """b is given by columns; parts of the depth are added by atomics in float16."""
    rows = (tl.program_id(0) * M + tl.arange(0, M)) % m
    columns = (tl.program_id(1) * N + tl.arange(0, N)) % n
    depth = tl.program_id(2) * K + tl.arange(0, K)
    a_at = a_ptr + rows[:, None] * k + depth[None, :]
    b_at = b_ptr + depth[:, None] + columns[None, :] * k
    total = tl.zeros((M, N), tl.float32)
    for _ in range(0, tl.cdiv(k, K * SPLIT)):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total)
        a_at += K * SPLIT
        b_at += K * SPLIT
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    tl.atomic_add(c_ptr + rows[:, None] * n + columns[None, :], (total * scale).to(tl.float16),
                  mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def conv2d(x_ptr, w_ptr, out_ptr, images, channels, height, width, features, M: tl.constexpr,
           N: tl.constexpr, K: tl.constexpr):
    """3 x 3 with a border of zeros, as a product of gathered pixels; images by channels."""
    pixel = tl.program_id(0) * M + tl.arange(0, M)
    feature = tl.program_id(1) * N + tl.arange(0, N)
    image = pixel // (height * width)
    y, x = pixel // width % height, pixel % width
    total = tl.zeros((M, N), tl.float32)
    for tap in range(9):
        v, u = y + tap // 3 - 1, x + tap % 3 - 1
        inside = (image < images) & (v >= 0) & (v < height) & (u >= 0) & (u < width)
        for start in range(0, channels, K):
            c = start + tl.arange(0, K)
            at = ((image[:, None] * channels + c[None, :]) * height + v[:, None]) * width
            a = tl.load(x_ptr + at + u[:, None],
                        mask=inside[:, None] & (c[None, :] < channels), other=0.0)
            w = tl.load(w_ptr + (feature[None, :] * channels + c[:, None]) * 9 + tap,
                        mask=(c[:, None] < channels) & (feature[None, :] < features), other=0.0)
            total += tl.dot(a, w)
    at = (image[:, None] * features + feature[None, :]) * height * width
    tl.store(out_ptr + at + (pixel % (height * width))[:, None], total.to(tl.float16),
             mask=(image[:, None] < images) & (feature[None, :] < features))


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, n, scale, M: tl.constexpr, N: tl.constexpr,
              D: tl.constexpr, CAUSAL: tl.constexpr):
    """Heads one after another, n x D each."""
    start = tl.program_id(0) * M
    base = tl.program_id(1).to(tl.int64) * n * D
    rows, columns, d = start + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    q = tl.load(q_ptr + base + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0.0)
    greatest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    scale2 = scale * 1.4426950408889634
    stop = tl.minimum(start + M, n) if CAUSAL else n
    for first in range(0, stop, N):
        now = first + columns
        k = tl.load(k_ptr + base + now[None, :] * D + d[:, None], mask=now[None, :] < n, other=0.0)
        s = tl.dot(q, k) * scale2
        seen = now[None, :] < n
        if CAUSAL:
            seen = seen & (now[None, :] <= rows[:, None])
        s = tl.where(seen, s, -float("inf"))
        new = tl.maximum(greatest, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        factor = tl.exp2(greatest - new)
        total = total * factor + tl.sum(p, 1)
        v = tl.load(v_ptr + base + now[:, None] * D + d[None, :], mask=now[:, None] < n, other=0.0)
        out = out * factor[:, None]
        out = tl.dot(p.to(v.dtype), v, out)
        greatest = new
    out = out / total[:, None]
    tl.store(out_ptr + base + rows[:, None] * D + d[None, :], out.to(tl.float16),
             mask=rows[:, None] < n)
    lse = (greatest + tl.log2(total)) * 0.6931471805599453
    tl.store(lse_ptr + tl.program_id(1) * n + rows, lse, mask=rows < n)

"""Memory-bound kernels in Triton's spelling, a third set: drawn and timed before a look at code."""

import triton
import triton.language as tl


@triton.jit
def index_select(x_ptr, index_ptr, out_ptr, rows, n, chosen, M: tl.constexpr, N: tl.constexpr):
    """Columns that the index names."""
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    index = tl.load(index_ptr + c, mask=c < chosen, other=0)
    mask = (r < rows)[:, None] & (c < chosen)[None, :]
    x = tl.load(x_ptr + r[:, None] * n + index[None, :], mask=mask)
    tl.store(out_ptr + r[:, None] * chosen + c[None, :], x, mask=mask)


@triton.jit
def cumsum_middle(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    """Along the middle axis of (batch, m, n), M rows at a time."""
    c = tl.program_id(0) * N + tl.arange(0, N)
    base = tl.program_id(1).to(tl.int64) * m * n
    carried = tl.zeros((N,), tl.float32)
    for start in range(0, m, M):
        r = start + tl.arange(0, M)
        mask = (r < m)[:, None] & (c < n)[None, :]
        at = base + r[:, None] * n + c[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        tl.store(out_ptr + at, tl.cumsum(x, axis=0) + carried[None, :], mask=mask)
        carried += tl.sum(x, axis=0)


@triton.jit
def merge_moments(mean_a, squares_a, count_a, mean_b, squares_b, count_b):
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    difference = mean_b - mean_a
    return (mean_a + difference * share,
            squares_a + squares_b + difference * difference * count_a * share, count)


@triton.jit
def var_mean(x_ptr, var_ptr, mean_ptr, n, correction, BLOCK: tl.constexpr):
    """Welford's moments: of a thread's elements in the loop, of all at its end."""
    row = tl.program_id(0).to(tl.int64)
    mean = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < n
        x = tl.load(x_ptr + row * n + at, mask=mask, other=0.0)
        more = count + 1
        difference = x - mean
        new = mean + difference / more
        squares = tl.where(mask, squares + difference * (x - new), squares)
        mean = tl.where(mask, new, mean)
        count = tl.where(mask, more, count)
    mean, squares, count = tl.reduce((mean, squares, count), 0, merge_moments)
    tl.store(var_ptr + row, squares / (count - correction))
    tl.store(mean_ptr + row, mean)


@triton.jit
def group_norm_backward(dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, groups, pixels,
                        CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """A program does one group of one image, all of its pixels."""
    of = tl.program_id(0)
    group = of % groups
    c = tl.arange(0, CHANNELS)
    at = tl.arange(0, BLOCK)
    mask = (at < pixels)[None, :]
    start = (of.to(tl.int64) * CHANNELS + c)[:, None] * pixels + at[None, :]
    mean, rstd = tl.load(mean_ptr + of), tl.load(rstd_ptr + of)
    w = tl.load(w_ptr + group * CHANNELS + c)[:, None]
    dy = tl.load(dy_ptr + start, mask=mask, other=0).to(tl.float32) * w
    x = tl.load(x_ptr + start, mask=mask, other=0).to(tl.float32)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    count = CHANNELS * pixels
    along = tl.sum(dy * normal) / count
    mean_of_dy = tl.sum(dy) / count
    tl.store(dx_ptr + start, rstd * (dy - normal * along - mean_of_dy), mask=mask)


@triton.jit
def conv_depthwise(x_ptr, w_ptr, b_ptr, out_ptr, channels, height, width, SIDE: tl.constexpr,
                   ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    plane = tl.program_id(2)
    channel = plane % channels
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32) + tl.load(b_ptr + channel).to(tl.float32)
    for i in tl.static_range(SIDE):
        for j in tl.static_range(SIDE):
            y = r[:, None] + i - SIDE // 2
            x = c[None, :] + j - SIDE // 2
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            pixel = tl.load(x_ptr + (plane * height + y) * width + x, mask=inside, other=0.0)
            weight = tl.load(w_ptr + (channel * SIDE + i) * SIDE + j)
            total += pixel.to(tl.float32) * weight.to(tl.float32)
    mask = (r < height)[:, None] & (c < width)[None, :]
    tl.store(out_ptr + (plane * height + r[:, None]) * width + c[None, :], total, mask=mask)


@triton.jit
def repeat_rows(x_ptr, ends_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Each row as often as its counts say, whose sums are given."""
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    stop = tl.load(ends_ptr + row)
    start = tl.load(ends_ptr + row - 1, mask=row > 0, other=0)
    x = tl.load(x_ptr + row * n + c, mask=c < n)
    for to in range(start, stop):
        tl.store(out_ptr + to.to(tl.int64) * n + c, x, mask=c < n)


@triton.jit
def triu(x_ptr, out_ptr, rows, n, diagonal, M: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    for start in range(0, n, N):
        c = start + tl.arange(0, N)[None, :]
        mask = (r < rows) & (c < n)
        x = tl.load(x_ptr + r * n + c, mask=mask, other=0.0)
        tl.store(out_ptr + r * n + c, tl.where(r + diagonal <= c, x, 0.0), mask=mask)


@triton.jit
def masked_fill(x_ptr, mask_ptr, out_ptr, value, heads, squared, size, BLOCK: tl.constexpr):
    """A mask of (batch, n, n) for scores of (batch, heads, n, n)."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    of = at // (heads * squared) * squared + at % squared
    x = tl.load(x_ptr + at, mask=mask)
    fills = tl.load(mask_ptr + of, mask=mask) != 0
    tl.store(out_ptr + at, tl.where(fills, value, x), mask=mask)


@triton.jit
def nonzero(x_ptr, sums_ptr, out_ptr, size, n, BLOCK: tl.constexpr):
    """Row and column of what is not zero; sums say how many are so until each element."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    to = tl.load(sums_ptr + at, mask=mask, other=1) - 1
    found = (tl.load(x_ptr + at, mask=mask, other=0) != 0) & mask
    tl.store(out_ptr + to * 2, at // n, mask=found)
    tl.store(out_ptr + to * 2 + 1, at % n, mask=found)


@triton.jit
def index_put(out_ptr, index_ptr, x_ptr, size, BLOCK: tl.constexpr):
    """Elements are added where the index says."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to = tl.load(index_ptr + at, mask=at < size, other=0)
    x = tl.load(x_ptr + at, mask=at < size, other=0.0)
    tl.atomic_add(out_ptr + to, x, mask=at < size, sem="relaxed")


@triton.jit
def dropout_add_rms(x_ptr, residual_ptr, w_ptr, sum_ptr, out_ptr, n, p, seed, epsilon,
                    BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    mask = c < n
    at = row * n + c
    x = tl.load(x_ptr + at, mask=mask, other=0).to(tl.float32)
    x = tl.where(tl.rand(seed, at) > p, x / (1 - p), 0.0)
    x += tl.load(residual_ptr + at, mask=mask, other=0).to(tl.float32)
    tl.store(sum_ptr + at, x, mask=mask)
    rstd = tl.rsqrt(tl.sum(tl.where(mask, x * x, 0.0), axis=0) / n + epsilon)
    w = tl.load(w_ptr + c, mask=mask, other=0).to(tl.float32)
    tl.store(out_ptr + at, x * rstd * w, mask=mask)


@triton.jit
def quantise_tokens(x_ptr, q_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + c, mask=c < n, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-10) / 127
    q = x * (1 / scale)
    q = tl.where(q >= 0, tl.floor(q + 0.5), tl.ceil(q - 0.5)).to(tl.int8)
    tl.store(q_ptr + row * n + c, q, mask=c < n)
    tl.store(scale_ptr + row, scale)


@triton.jit
def rope_backward(dq_ptr, dk_ptr, cos_ptr, sin_ptr, positions, q_heads, k_heads,
                  Q_HEADS: tl.constexpr, K_HEADS: tl.constexpr, HALF: tl.constexpr):
    """In place, all heads of a token; the angle's other direction."""
    token = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token % positions * HALF + d)[None, :]
    sin = tl.load(sin_ptr + token % positions * HALF + d)[None, :]
    q, k = tl.arange(0, Q_HEADS)[:, None], tl.arange(0, K_HEADS)[:, None]
    q_at = dq_ptr + token * q_heads * HALF * 2 + q * HALF * 2 + d[None, :]
    k_at = dk_ptr + token * k_heads * HALF * 2 + k * HALF * 2 + d[None, :]
    a = tl.load(q_at, mask=q < q_heads, other=0).to(sin.dtype)
    e = tl.load(k_at, mask=k < k_heads, other=0).to(sin.dtype)
    b = tl.load(q_at + HALF, mask=q < q_heads, other=0).to(sin.dtype)
    f = tl.load(k_at + HALF, mask=k < k_heads, other=0).to(sin.dtype)
    tl.store(q_at, a * cos + b * sin, mask=q < q_heads)
    tl.store(q_at + HALF, b * cos - a * sin, mask=q < q_heads)
    tl.store(k_at, e * cos + f * sin, mask=k < k_heads)
    tl.store(k_at + HALF, f * cos - e * sin, mask=k < k_heads)


@triton.jit
def logsumexp_chunks(logits_ptr, target_ptr, part_ptr, loss_ptr, n, chunks, softcap,
                     BLOCK: tl.constexpr):
    """Log sums of chunks of a row of capped logits; the first chunk's program gets the target's."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    c = chunk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * n + c, mask=c < n, other=-float("inf")).to(tl.float32)
    x = softcap * (2 * tl.sigmoid(2 * (x / softcap)) - 1)
    x = tl.where(c < n, x, -float("inf"))
    greatest = tl.max(x, axis=0)
    part = greatest + tl.log(tl.sum(tl.exp(x - greatest), axis=0))
    if chunk == 0:
        target = tl.load(target_ptr + row)
        if target >= 0:
            y = tl.load(logits_ptr + row * n + target).to(tl.float32)
            tl.store(loss_ptr + row, -softcap * (2 * tl.sigmoid(2 * (y / softcap)) - 1))
        else:
            tl.store(loss_ptr + row, 0.0)
    tl.store(part_ptr + row * chunks + chunk, part)


@triton.jit
def kth_by_bits(x_ptr, out_ptr, n, k, BLOCK: tl.constexpr):
    """The k-th greatest of each row of positive floats: its bits, from the highest down."""
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + c, mask=c < n, other=0.0)
    bits = x.to(tl.int32, bitcast=True)
    found = 0
    for i in range(31):
        tried = found | (1 << (30 - i))
        count = tl.sum((bits >= tried).to(tl.int32), axis=0)
        found = tl.where(count >= k, tried, found)
    at_least = bits >= found
    tl.store(out_ptr + row * n + c, tl.where(at_least, x, 0.0), mask=c < n)


@triton.jit
def log_softmax_middle(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    """Along the middle axis of (batch, m, n), in two passes of M rows at a time."""
    c = tl.program_id(0) * N + tl.arange(0, N)
    base = tl.program_id(1).to(tl.int64) * m * n
    greatest = tl.full((M, N), -float("inf"), tl.float32)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, m, M):
        r = start + tl.arange(0, M)
        mask = (r < m)[:, None] & (c < n)[None, :]
        x = tl.load(x_ptr + base + r[:, None] * n + c[None, :], mask=mask,
                    other=-float("inf")).to(tl.float32)
        new = tl.maximum(greatest, x)
        finite = new == -float("inf")
        total = tl.where(finite, total, total * tl.exp(greatest - new) + tl.exp(x - new))
        greatest = new
    most = tl.max(greatest, axis=0)
    log = tl.log(tl.sum(total * tl.exp(greatest - most[None, :]), axis=0)) + most
    for start in range(0, m, M):
        r = start + tl.arange(0, M)
        mask = (r < m)[:, None] & (c < n)[None, :]
        at = base + r[:, None] * n + c[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + at, x - log[None, :], mask=mask)


@triton.jit
def max_pool_indices(x_ptr, out_ptr, index_ptr, height, width, out_height, out_width,
                     SIDE: tl.constexpr, STRIDE: tl.constexpr, ROWS: tl.constexpr,
                     COLUMNS: tl.constexpr):
    """The greatest of each window, and where it is in its plane."""
    plane = tl.program_id(0)
    across = tl.cdiv(out_width, COLUMNS)
    r = tl.program_id(1) // across * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) % across * COLUMNS + tl.arange(0, COLUMNS)
    greatest = tl.full((ROWS, COLUMNS), -float("inf"), tl.float32)
    index = tl.full((ROWS, COLUMNS), -1, tl.int64)
    x_plane = x_ptr + plane.to(tl.int64) * height * width
    for i in tl.static_range(SIDE):
        for j in tl.static_range(SIDE):
            y = r[:, None] * STRIDE + i - SIDE // 2
            x = c[None, :] * STRIDE + j - SIDE // 2
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            at = y * width + x
            value = tl.load(x_plane + at, mask=inside, other=-float("inf")).to(tl.float32)
            is_greater = value > greatest
            greatest = tl.where(is_greater, value, greatest)
            index = tl.where(is_greater & inside, at, index)
    mask = (r < out_height)[:, None] & (c < out_width)[None, :]
    to = plane.to(tl.int64) * out_height * out_width + r[:, None] * out_width + c[None, :]
    tl.store(out_ptr + to, greatest, mask=mask)
    tl.store(index_ptr + to, index, mask=mask)


@triton.jit
def adam_clipped(p_ptr, g_ptr, m_ptr, v_ptr, step_ptr, norm_ptr, rate, beta1, beta2, epsilon,
                 limit, n, BLOCK: tl.constexpr):
    """16-bit weights and gradients, which are clipped by their norm; the step is in memory."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    step = tl.load(step_ptr)
    clip = tl.minimum(limit / (tl.load(norm_ptr) + 1e-6), 1.0)
    g = tl.load(g_ptr + at, mask=mask, other=0).to(tl.float32) * clip
    m = tl.load(m_ptr + at, mask=mask, other=0.0)
    v = tl.load(v_ptr + at, mask=mask, other=0.0)
    m += (1 - beta1) * (g - m)
    v = beta2 * v + (1 - beta2) * g * g
    correction1 = 1 - tl.exp2(step * tl.log2(beta1))
    correction2 = 1 - tl.exp2(step * tl.log2(beta2))
    denominator = tl.sqrt(v) / tl.sqrt(correction2) + epsilon
    p = tl.load(p_ptr + at, mask=mask, other=0).to(tl.float32)
    p -= rate / correction1 * m / denominator
    tl.store(p_ptr + at, p, mask=mask)
    tl.store(m_ptr + at, m, mask=mask)
    tl.store(v_ptr + at, v, mask=mask)


@triton.jit
def weight_norm(v_ptr, g_ptr, out_ptr, norm_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    """Rows scaled to the norms g, in two passes."""
    r = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    squares = tl.zeros((M, N), tl.float32)
    for start in range(0, n, N):
        c = start + tl.arange(0, N)[None, :]
        v = tl.load(v_ptr + r * n + c, mask=(r < m) & (c < n), other=0.0).to(tl.float32)
        squares += v * v
    norm = tl.sqrt(tl.sum(squares, axis=1) + 1e-12)[:, None]
    tl.store(norm_ptr + r, norm, mask=r < m)
    g = tl.load(g_ptr + r, mask=r < m, other=0.0).to(tl.float32)
    for start in range(0, n, N):
        c = start + tl.arange(0, N)[None, :]
        mask = (r < m) & (c < n)
        v = tl.load(v_ptr + r * n + c, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + r * n + c, v / norm * g, mask=mask)


@triton.jit
def concatenate(a_ptr, b_ptr, out_ptr, size, a_width, b_width, BLOCK: tl.constexpr):
    """Rows of a, then of b, after another: a flat index, two masked loads."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    width = a_width + b_width
    column, row = at % width, at // width
    is_a = column < a_width
    a = tl.load(a_ptr + row * a_width + column, mask=mask & is_a, other=0.0)
    b = tl.load(b_ptr + row * b_width + (column - a_width), mask=mask & (column >= a_width),
                other=0.0)
    tl.store(out_ptr + at, tl.where(is_a, a, b), mask=mask)


@triton.jit
def causal_softmax(x_ptr, out_ptr, n, scale, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of scores up to the diagonal; what lies beyond it becomes 0."""
    base = tl.program_id(1).to(tl.int64) * n * n
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    sees = (c <= r) & (c < n)
    x = tl.load(x_ptr + base + r * n + c, mask=sees, other=-float("inf")).to(tl.float32) * scale
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + base + r * n + c, e / tl.sum(e, axis=1)[:, None], mask=(r < n) & (c < n))


@triton.jit
def huber_sum(x_ptr, y_ptr, out_ptr, n, delta, BLOCK: tl.constexpr):
    """A fixed number of programs, each with its share of the elements."""
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0).to(tl.float32)
        y = tl.load(y_ptr + at, mask=at < n, other=0).to(tl.float32)
        d = tl.abs(x - y)
        total += tl.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))
    tl.atomic_add(out_ptr, tl.sum(total, axis=0))

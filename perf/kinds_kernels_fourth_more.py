"""The rest of the memory-bound kernels of the fourth set."""

import triton
import triton.language as tl


@triton.jit
def jagged_to_padded(x_ptr, starts_ptr, out_ptr, most, n, padding, ROWS: tl.constexpr,
                     BLOCK: tl.constexpr):
    """Parts of different lengths as rows of one array, the rest filled."""
    part = tl.program_id(2)
    start, stop = tl.load(starts_ptr + part), tl.load(starts_ptr + part + 1)
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + (start + r).to(tl.int64) * n + c, mask=(start + r < stop) & (c < n),
                other=padding)
    tl.store(out_ptr + (part.to(tl.int64) * most + r) * n + c, x, mask=(r < most) & (c < n))


@triton.jit
def csr_times_dense(starts_ptr, columns_ptr, values_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A row of a sparse matrix times a dense one: the rows of it that the columns name."""
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    start, stop = tl.load(starts_ptr + row), tl.load(starts_ptr + row + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(start, stop):
        column = tl.load(columns_ptr + i)
        value = tl.load(values_ptr + i)
        total += value * tl.load(x_ptr + column * n + c, mask=c < n, other=0.0)
    tl.store(out_ptr + row * n + c, total, mask=c < n)


@triton.jit
def nbody(x_ptr, y_ptr, z_ptr, mass_ptr, ax_ptr, ay_ptr, az_ptr, n, softening,
          M: tl.constexpr, N: tl.constexpr):
    """Accelerations of M bodies by all, N at a time."""
    i = tl.program_id(0) * M + tl.arange(0, M)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    z = tl.load(z_ptr + i, mask=i < n, other=0.0)
    ax, ay, az = tl.zeros((M,), tl.float32), tl.zeros((M,), tl.float32), tl.zeros((M,), tl.float32)
    for start in range(0, n, N):
        j = start + tl.arange(0, N)
        dx = tl.load(x_ptr + j, mask=j < n, other=0.0)[None, :] - x[:, None]
        dy = tl.load(y_ptr + j, mask=j < n, other=0.0)[None, :] - y[:, None]
        dz = tl.load(z_ptr + j, mask=j < n, other=0.0)[None, :] - z[:, None]
        mass = tl.load(mass_ptr + j, mask=j < n, other=0.0)[None, :]
        inverse = tl.rsqrt(dx * dx + dy * dy + dz * dz + softening)
        pull = mass * inverse * inverse * inverse
        ax += tl.sum(pull * dx, axis=1)
        ay += tl.sum(pull * dy, axis=1)
        az += tl.sum(pull * dz, axis=1)
    tl.store(ax_ptr + i, ax, mask=i < n)
    tl.store(ay_ptr + i, ay, mask=i < n)
    tl.store(az_ptr + i, az, mask=i < n)


@triton.jit
def heat_3d(x_ptr, out_ptr, depth, height, width, rate, Y: tl.constexpr, X: tl.constexpr):
    """A step of the heat equation; the faces stay as they are."""
    x = tl.program_id(0) * X + tl.arange(0, X)[None, :]
    y = tl.program_id(1) * Y + tl.arange(0, Y)[:, None]
    z = tl.program_id(2)
    plane = height * width
    at = (z * height + y) * width + x
    inside = (y < height) & (x < width)
    inner = (z > 0) & (z < depth - 1) & (y > 0) & (y < height - 1) & (x > 0) & (x < width - 1)
    centre = tl.load(x_ptr + at, mask=inside, other=0.0)
    total = tl.load(x_ptr + at - 1, mask=inner, other=0.0)
    total += tl.load(x_ptr + at + 1, mask=inner, other=0.0)
    total += tl.load(x_ptr + at - width, mask=inner, other=0.0)
    total += tl.load(x_ptr + at + width, mask=inner, other=0.0)
    total += tl.load(x_ptr + at - plane, mask=inner, other=0.0)
    total += tl.load(x_ptr + at + plane, mask=inner, other=0.0)
    new = tl.where(inner, centre + rate * (total - 6.0 * centre), centre)
    tl.store(out_ptr + at, new, mask=inside)


@triton.jit
def nms_bits(boxes_ptr, out_ptr, n, words, M: tl.constexpr, W: tl.constexpr):
    """Which later boxes overlap a box by more than a half, 32 in a word."""
    i = tl.program_id(0) * M + tl.arange(0, M)
    w = tl.program_id(1) * W + tl.arange(0, W)
    bit = tl.arange(0, 32)
    j = w[:, None] * 32 + bit[None, :]
    box, other = boxes_ptr + i * 4, boxes_ptr + j * 4
    x0 = tl.load(box, mask=i < n, other=0.0)[:, None, None]
    y0 = tl.load(box + 1, mask=i < n, other=0.0)[:, None, None]
    x1 = tl.load(box + 2, mask=i < n, other=0.0)[:, None, None]
    y1 = tl.load(box + 3, mask=i < n, other=0.0)[:, None, None]
    u0 = tl.load(other, mask=j < n, other=0.0)[None, :, :]
    v0 = tl.load(other + 1, mask=j < n, other=0.0)[None, :, :]
    u1 = tl.load(other + 2, mask=j < n, other=0.0)[None, :, :]
    v1 = tl.load(other + 3, mask=j < n, other=0.0)[None, :, :]
    wide = tl.maximum(tl.minimum(x1, u1) - tl.maximum(x0, u0), 0.0)
    tall = tl.maximum(tl.minimum(y1, v1) - tl.maximum(y0, v0), 0.0)
    common = wide * tall
    union = (x1 - x0) * (y1 - y0) + (u1 - u0) * (v1 - v0) - common
    is_hit = (2 * common > union) & (j[None, :, :] > i[:, None, None])
    packed = tl.sum(is_hit.to(tl.int32) << bit[None, None, :], axis=2)
    tl.store(out_ptr + i[:, None] * words + w[None, :], packed,
             mask=(i < n)[:, None] & (w < words)[None, :])


@triton.jit
def greater(a, i, b, j):
    """The greater value and its index; the later one of those that are equal."""
    is_later = b >= a
    return tl.where(is_later, b, a), tl.where(is_later, j, i)


@triton.jit
def cummax(x_ptr, out_ptr, index_ptr, n, BLOCK: tl.constexpr):
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + c, mask=c < n, other=-float("inf"))
    most, index = tl.associative_scan((x, c), 0, greater)
    tl.store(out_ptr + row * n + c, most, mask=c < n)
    tl.store(index_ptr + row * n + c, index, mask=c < n)


@triton.jit
def weighted_histogram(x_ptr, weight_ptr, out_ptr, n, bins, BLOCK: tl.constexpr):
    """Of numbers in [0, 1)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    weight = tl.load(weight_ptr + at, mask=at < n, other=0.0)
    tl.atomic_add(out_ptr + (x * bins).to(tl.int32), weight, mask=at < n, sem="relaxed")


@triton.jit
def grid_sample(x_ptr, grid_ptr, out_ptr, channels, height, width, pixels, BLOCK: tl.constexpr):
    """Bilinear at points of [-1, 1], zeros beyond the image; all channels of BLOCK points."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image = tl.program_id(1)
    mask = p < pixels
    x = tl.load(grid_ptr + (image * pixels + p) * 2, mask=mask, other=0.0)
    y = tl.load(grid_ptr + (image * pixels + p) * 2 + 1, mask=mask, other=0.0)
    x = ((x + 1) * width - 1) / 2
    y = ((y + 1) * height - 1) / 2
    left, top = tl.floor(x), tl.floor(y)
    right_part, low_part = x - left, y - top
    x0, y0 = left.to(tl.int32), top.to(tl.int32)
    has_left, has_right = mask & (x0 >= 0) & (x0 < width), mask & (x0 >= -1) & (x0 < width - 1)
    has_top, has_low = (y0 >= 0) & (y0 < height), (y0 >= -1) & (y0 < height - 1)
    at = y0 * width + x0
    for c in range(channels):
        plane = x_ptr + (image * channels + c) * height * width + at
        a = tl.load(plane, mask=has_left & has_top, other=0.0)
        b = tl.load(plane + 1, mask=has_right & has_top, other=0.0)
        d = tl.load(plane + width, mask=has_left & has_low, other=0.0)
        e = tl.load(plane + width + 1, mask=has_right & has_low, other=0.0)
        upper = a + (b - a) * right_part
        lower = d + (e - d) * right_part
        tl.store(out_ptr + (image * channels + c) * pixels + p, upper + (lower - upper) * low_part,
                 mask=mask)


@triton.jit
def kv_dequantise(q_ptr, scale_ptr, table_ptr, out_ptr, pages, heads, PAGE: tl.constexpr,
                  D: tl.constexpr):
    """int8 pages of a cache, which a table names, as one bfloat16 array."""
    place, head, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    page = tl.load(table_ptr + sequence * pages + place).to(tl.int64)
    t, d = tl.arange(0, PAGE), tl.arange(0, D)
    row = (page * PAGE + t) * heads + head
    q = tl.load(q_ptr + row[:, None] * D + d[None, :]).to(tl.float32)
    scale = tl.load(scale_ptr + row).to(tl.float32)
    to = ((sequence * pages + place).to(tl.int64) * PAGE + t) * heads + head
    tl.store(out_ptr + to[:, None] * D + d[None, :], (q * scale[:, None]).to(tl.bfloat16))


@triton.jit
def modulate(x_ptr, shift_ptr, scale_ptr, out_ptr, tokens, n, epsilon, BLOCK: tl.constexpr):
    """Layer norm without weights; each image scales and shifts its own tokens."""
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    mask, image = c < n, row // tokens
    x = tl.load(x_ptr + row * n + c, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    x = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n + epsilon)
    scale = tl.load(scale_ptr + image * n + c, mask=mask, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + image * n + c, mask=mask, other=0.0).to(tl.float32)
    y = x * rstd * (1 + scale) + shift
    tl.store(out_ptr + row * n + c, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def adam_8bit(p_ptr, g_ptr, m_ptr, v_ptr, m_scale_ptr, v_scale_ptr, groups, rate, beta1, beta2,
              epsilon, correction1, correction2, ROWS: tl.constexpr, GROUP: tl.constexpr):
    """Moments of 8 bits, scaled by the greatest of each group."""
    group = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    has, mask = group < groups, (group < groups)[:, None]
    p = tl.load(p_ptr + at, mask=mask, other=0.0)
    g = tl.load(g_ptr + at, mask=mask, other=0.0).to(tl.float32)
    m_scale = tl.load(m_scale_ptr + group, mask=has, other=0.0)[:, None]
    v_scale = tl.load(v_scale_ptr + group, mask=has, other=0.0)[:, None]
    m = tl.load(m_ptr + at, mask=mask, other=0).to(tl.float32) * m_scale
    v = tl.load(v_ptr + at, mask=mask, other=0).to(tl.float32) * v_scale
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    p -= rate * (m / correction1) / (tl.sqrt(v / correction2) + epsilon)
    m_scale = tl.maximum(tl.max(tl.abs(m), axis=1), 1e-20) / 127
    v_scale = tl.maximum(tl.max(v, axis=1), 1e-20) / 255
    tl.store(p_ptr + at, p, mask=mask)
    tl.store(m_ptr + at, tl.floor(m / m_scale[:, None] + 0.5).to(tl.int8), mask=mask)
    tl.store(v_ptr + at, tl.floor(v / v_scale[:, None] + 0.5).to(tl.uint8), mask=mask)
    tl.store(m_scale_ptr + group, m_scale, mask=has)
    tl.store(v_scale_ptr + group, v_scale, mask=has)


@triton.jit
def gemv(w_ptr, x_ptr, out_ptr, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + c, mask=c < n, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + r[:, None].to(tl.int64) * n + c[None, :],
                    mask=(r < m)[:, None] & (c < n)[None, :], other=0.0)
        total += w.to(tl.float32) * x[None, :]
    tl.store(out_ptr + r, tl.sum(total, axis=1).to(out_ptr.dtype.element_ty), mask=r < m)


@triton.jit
def searchsorted(edges_ptr, x_ptr, out_ptr, count, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """How many of the sorted edges are less, by halving."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    low = tl.zeros((BLOCK,), tl.int32)
    high = tl.zeros((BLOCK,), tl.int32) + count
    for _ in range(STEPS):
        middle = (low + high) // 2
        edge = tl.load(edges_ptr + middle, mask=low < high, other=float("inf"))
        goes_up = (low < high) & (edge < x)
        high = tl.where((low < high) & (edge >= x), middle, high)
        low = tl.where(goes_up, middle + 1, low)
    tl.store(out_ptr + at, low, mask=at < n)

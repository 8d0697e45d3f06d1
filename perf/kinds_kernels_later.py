"""Memory-bound kernels in Triton's spelling, drawn after the others had been tuned for."""

import triton
import triton.language as tl


@triton.jit
def batch_norm(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, rstd_ptr, batch, channels, pixels, epsilon,
               BLOCK: tl.constexpr):
    """A program normalises one channel of all images, of at most BLOCK pixels each."""
    channel = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < pixels
    total = 0.0
    squares = 0.0
    for image in range(batch):
        x = tl.load(x_ptr + (image * channels + channel) * pixels + at, mask=mask, other=0)
        x = x.to(tl.float32)
        total += tl.sum(x)
        squares += tl.sum(x * x)
    count = batch * pixels
    mean = total / count
    rstd = tl.rsqrt(squares / count - mean * mean + epsilon)
    tl.store(mean_ptr + channel, mean)
    tl.store(rstd_ptr + channel, rstd)
    scale = rstd * tl.load(w_ptr + channel)
    shift = tl.load(b_ptr + channel) - mean * scale
    for image in range(batch):
        start = (image * channels + channel) * pixels
        x = tl.load(x_ptr + start + at, mask=mask, other=0).to(tl.float32)
        tl.store(out_ptr + start + at, x * scale + shift, mask=mask)


@triton.jit
def instance_norm(x_ptr, out_ptr, pixels, epsilon, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * pixels
    at = tl.arange(0, BLOCK)
    mask = at < pixels
    x = tl.load(x_ptr + start + at, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / pixels
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / pixels
    tl.store(out_ptr + start + at, centred / tl.sqrt(variance + epsilon), mask=mask)


@triton.jit
def bias_gelu_dropout(x_ptr, bias_ptr, out_ptr, size, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    x += tl.load(bias_ptr + at % n, mask=mask).to(tl.float32)
    gelu = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    kept = tl.rand(seed, at) > p
    tl.store(out_ptr + at, tl.where(kept, gelu / (1 - p), 0.0), mask=mask)


@triton.jit
def rope_positions(x_ptr, cos_ptr, sin_ptr, positions_ptr, tokens, heads, TOKENS: tl.constexpr,
                   HEADS: tl.constexpr, HALF: tl.constexpr):
    """In place, rows of the caches by the positions of tokens; a tile of tokens and heads."""
    t = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    d = tl.arange(0, HALF)
    position = tl.load(positions_ptr + t, mask=t < tokens, other=0)
    row = position[:, None, None] * HALF + d[None, None, :]
    is_token = (t < tokens)[:, None, None]
    cos = tl.load(cos_ptr + row, mask=is_token, other=0.0)
    sin = tl.load(sin_ptr + row, mask=is_token, other=0.0)
    at = t[:, None, None] * heads * HALF * 2 + h[None, :, None] * HALF * 2 + d[None, None, :]
    mask = is_token & (h < heads)[None, :, None]
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    y = tl.load(x_ptr + at + HALF, mask=mask, other=0.0)
    tl.store(x_ptr + at, x * cos - y * sin, mask=mask)
    tl.store(x_ptr + at + HALF, x * sin + y * cos, mask=mask)


@triton.jit
def top_p(logits_ptr, out_ptr, stride, n, p, temperature, BLOCK: tl.constexpr):
    """Probabilities of falling logits, of which those beyond a sum of p are zero."""
    start = tl.program_id(0).to(tl.int64) * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(logits_ptr + start + at, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp((x - tl.max(x, axis=0)) / temperature)
    probability = e / tl.sum(e, axis=0)
    before = tl.cumsum(probability, axis=0) - probability
    kept = tl.where(before < p, probability, 0.0)
    tl.store(out_ptr + start + at, kept / tl.sum(kept, axis=0), mask=mask)


@triton.jit
def add_in_segment(flag_a, a, flag_b, b):
    return flag_a | flag_b, tl.where(flag_b != 0, b, a + b)


@triton.jit
def segment_sums(x_ptr, segment_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Sums of runs of equal segments; the last of a run in a block adds it."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    segment = tl.load(segment_ptr + at, mask=mask, other=-1)
    before = tl.load(segment_ptr + at - 1, mask=mask & (at > 0), other=-1)
    after = tl.load(segment_ptr + at + 1, mask=at + 1 < n, other=-1)
    starts = (segment != before).to(tl.int32)
    _, total = tl.associative_scan((starts, x), 0, add_in_segment)
    is_last = (segment != after) | (at % BLOCK == BLOCK - 1)
    tl.atomic_add(out_ptr + segment, total, mask=mask & is_last, sem="relaxed")


@triton.jit
def transpose_bytes(x_ptr, out_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * columns + c[None, :],
                mask=(r < rows)[:, None] & (c < columns)[None, :])
    tl.store(out_ptr + c[None, :] * rows + r[:, None], x,
             mask=(r < rows)[:, None] & (c < columns)[None, :])


@triton.jit
def pixel_shuffle(x_ptr, out_ptr, size, channels, height, width, FACTOR: tl.constexpr,
                  BLOCK: tl.constexpr):
    """(images, channels * FACTOR ** 2, height, width) to larger images of channels."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    column = at % (width * FACTOR)
    row = at // (width * FACTOR) % (height * FACTOR)
    plane = at // (width * FACTOR) // (height * FACTOR)
    channel, image = plane % channels, plane // channels
    source = channel * FACTOR * FACTOR + row % FACTOR * FACTOR + column % FACTOR
    where = ((image * channels * FACTOR * FACTOR + source) * height + row // FACTOR) * width
    tl.store(out_ptr + at, tl.load(x_ptr + where + column // FACTOR, mask=mask), mask=mask)


@triton.jit
def cubic(d):
    """The weight of a pixel at distance d, with a = -0.75."""
    d = tl.abs(d)
    near = (1.25 * d - 2.25) * d * d + 1
    far = ((-0.75 * d + 3.75) * d - 6) * d + 3
    return tl.where(d <= 1, near, tl.where(d < 2, far, 0.0))


@triton.jit
def bicubic(x_ptr, out_ptr, height, width, out_height, out_width, scale_y, scale_x,
            BLOCK: tl.constexpr):
    """A program makes a part of a row of one image; pixels beyond an edge are those at it."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, image = tl.program_id(1), tl.program_id(2)
    mask = column < out_width
    y = (row + 0.5) * scale_y - 0.5
    x = (column + 0.5) * scale_x - 0.5
    top, left = tl.floor(y), tl.floor(x)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(4):
        r = top + (i - 1)
        line = tl.minimum(tl.maximum(r, 0.0), height - 1.0).to(tl.int32)
        of_row = tl.zeros((BLOCK,), tl.float32)
        for j in tl.static_range(4):
            c = left + (j - 1)
            at = tl.minimum(tl.maximum(c, 0.0), width - 1.0).to(tl.int32)
            pixel = tl.load(x_ptr + (image * height + line) * width + at, mask=mask, other=0.0)
            of_row += pixel * cubic(x - c)
        total += of_row * cubic(y - r)
    tl.store(out_ptr + (image * out_height + row) * out_width + column, total, mask=mask)


@triton.jit
def argmax(x_ptr, out_ptr, value_ptr, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row.to(tl.int64) * n + at, mask=at < n, other=-float("inf"))
    value, index = tl.max(x, axis=0, return_indices=True)
    tl.store(out_ptr + row, index)
    tl.store(value_ptr + row, value)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def reverse_products(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0) * n, tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + at, mask=at < n, other=1.0)
    tl.store(out_ptr + row + at, tl.associative_scan(x, 0, multiply, reverse=True), mask=at < n)


@triton.jit
def layer_norm_of_rows(x_ptr, w_ptr, b_ptr, out_ptr, rows, n, epsilon, ROWS: tl.constexpr,
                       BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)
    mask = (r < rows)[:, None] & (c < n)[None, :]
    at = r[:, None] * n + c[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0).to(tl.float32)
    mean = tl.sum(x, axis=1) / n
    centred = tl.where(mask, x - mean[:, None], 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=1) / n + epsilon)
    w = tl.load(w_ptr + c, mask=c < n, other=0).to(tl.float32)
    b = tl.load(b_ptr + c, mask=c < n, other=0).to(tl.float32)
    tl.store(out_ptr + at, centred * rstd[:, None] * w[None, :] + b[None, :], mask=mask)


@triton.jit
def strided_copy(x_ptr, out_ptr, rows, columns, x_row, x_column, out_row, out_column,
                 M: tl.constexpr, N: tl.constexpr):
    """Arrays of any strides; only arguments say which is contiguous."""
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    mask = (r < rows)[:, None] & (c < columns)[None, :]
    x = tl.load(x_ptr + r[:, None] * x_row + c[None, :] * x_column, mask=mask)
    tl.store(out_ptr + r[:, None] * out_row + c[None, :] * out_column, x, mask=mask)


@triton.jit
def dequantise_rows(q_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    start = row.to(tl.int64) * n
    scale = tl.load(scale_ptr + row) * (1.0 / 127)
    q = tl.load(q_ptr + start + at, mask=at < n)
    tl.store(out_ptr + start + at, q * scale, mask=at < n)


@triton.jit
def nll_loss(logs_ptr, target_ptr, weight_ptr, loss_ptr, rows, n, ignored, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = tl.load(target_ptr + r, mask=r < rows, other=ignored)
    counts = target != ignored
    log = tl.load(logs_ptr + r.to(tl.int64) * n + target, mask=counts, other=0.0)
    weight = tl.load(weight_ptr + target, mask=counts, other=0.0)
    tl.store(loss_ptr + r, -log * weight, mask=r < rows)


@triton.jit
def embedding_bag(ids_ptr, starts_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Means of rows of a table; a program does one bag."""
    bag, c = tl.program_id(0), tl.arange(0, BLOCK)
    start, stop = tl.load(starts_ptr + bag), tl.load(starts_ptr + bag + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(start, stop):
        row = tl.load(ids_ptr + i).to(tl.int64)
        total += tl.load(table_ptr + row * n + c, mask=c < n, other=0).to(tl.float32)
    tl.store(out_ptr + bag * n + c, total / (stop - start), mask=c < n)


@triton.jit
def upsample(x_ptr, out_ptr, size, height, width, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    column = at % (width * FACTOR) // FACTOR
    row = at // (width * FACTOR) % (height * FACTOR) // FACTOR
    plane = at // (width * FACTOR * height * FACTOR)
    x = tl.load(x_ptr + (plane * height + row) * width + column, mask=mask)
    tl.store(out_ptr + at, x, mask=mask)


@triton.jit
def max_pool(x_ptr, out_ptr, height, width, out_height, out_width, SIDE: tl.constexpr,
             STRIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    plane = tl.program_id(2)
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    greatest = tl.full((ROWS, COLUMNS), -float("inf"), tl.float32)
    for i in tl.static_range(SIDE):
        y = r[:, None] * STRIDE + i - SIDE // 2
        for j in tl.static_range(SIDE):
            x = c[None, :] * STRIDE + j - SIDE // 2
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            value = tl.load(x_ptr + (plane * height + y) * width + x, mask=inside,
                            other=-float("inf"))
            greatest = tl.maximum(greatest, value)
    mask = (r < out_height)[:, None] & (c < out_width)[None, :]
    tl.store(out_ptr + (plane * out_height + r[:, None]) * out_width + c[None, :], greatest,
             mask=mask)


@triton.jit
def softmax_of_columns(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    """Over the middle axis of (batch, m, n)."""
    r, c = tl.arange(0, M), tl.program_id(0) * N + tl.arange(0, N)
    at = tl.program_id(1) * m * n + r[:, None] * n + c[None, :]
    mask = (r < m)[:, None] & (c < n)[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0)[None, :])
    tl.store(out_ptr + at, e / tl.sum(e, axis=0)[None, :], mask=mask)


@triton.jit
def select(x_ptr, keep_ptr, starts_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Elements that are kept, close together; starts are counts of the blocks before."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.load(keep_ptr + at, mask=at < n, other=0)
    x = tl.load(x_ptr + at, mask=at < n)
    to = tl.load(starts_ptr + tl.program_id(0)) + tl.cumsum(keep.to(tl.int32), axis=0) - 1
    tl.store(out_ptr + to, x, mask=keep != 0)

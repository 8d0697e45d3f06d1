"""Memory-bound kernels in Triton's spelling: activations, an optimiser, rows, norms, losses."""

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask),
             mask=mask)


@triton.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    kept = tl.rand(seed, at) > p
    tl.store(out_ptr + at, tl.where(kept, x / (1 - p), 0.0), mask=mask)


@triton.jit
def dropout_mask(x_ptr, keep_ptr, out_ptr, n, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    keep = tl.load(keep_ptr + at, mask=mask)
    tl.store(out_ptr + at, tl.where(keep != 0, x / (1 - p), 0.0), mask=mask)


@triton.jit
def swiglu_forward(gate_ptr, up_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    gate = tl.load(gate_ptr + row + at, mask=mask, other=0).to(tl.float32)
    up = tl.load(up_ptr + row + at, mask=mask, other=0)
    silu = gate * tl.sigmoid(gate)
    tl.store(out_ptr + row + at, silu.to(up.dtype) * up, mask=mask)


@triton.jit
def swiglu_backward(dout_ptr, gate_ptr, up_ptr, stride, n, BLOCK: tl.constexpr):
    """The gradients take the places of gate and up."""
    row = tl.program_id(0).to(tl.int64) * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    dout = tl.load(dout_ptr + row + at, mask=mask, other=0).to(tl.float32)
    gate = tl.load(gate_ptr + row + at, mask=mask, other=0).to(tl.float32)
    up = tl.load(up_ptr + row + at, mask=mask, other=0).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    silu = gate * sigmoid
    dgate = dout * up * (silu * (1 - sigmoid) + sigmoid)
    tl.store(gate_ptr + row + at, dgate, mask=mask)
    tl.store(up_ptr + row + at, dout * silu, mask=mask)


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def geglu_forward(gate_ptr, up_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    gate = tl.load(gate_ptr + row + at, mask=mask, other=0).to(tl.float32)
    up = tl.load(up_ptr + row + at, mask=mask, other=0)
    inner = 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)
    gelu = 0.5 * gate * (1 + tanh(inner))
    tl.store(out_ptr + row + at, gelu.to(up.dtype) * up, mask=mask)


@triton.jit
def geglu_backward(dout_ptr, gate_ptr, up_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    dout = tl.load(dout_ptr + row + at, mask=mask, other=0).to(tl.float32)
    gate = tl.load(gate_ptr + row + at, mask=mask, other=0).to(tl.float32)
    up = tl.load(up_ptr + row + at, mask=mask, other=0).to(tl.float32)
    square = gate * gate
    t = tanh(0.7978845608028654 * (gate + 0.044715 * gate * square))
    slope = 0.7978845608028654 * (1 + 3 * 0.044715 * square)
    dgelu = 0.5 * (1 + t) + 0.5 * gate * (1 - t * t) * slope
    tl.store(gate_ptr + row + at, dout * up * dgelu, mask=mask)
    tl.store(up_ptr + row + at, dout * 0.5 * gate * (1 + t), mask=mask)


@triton.jit
def adamw(p_ptr, g_ptr, m_ptr, v_ptr, copy_ptr, n, rate, beta1, beta2, epsilon, decay,
          correction1, correction2, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    p = tl.load(p_ptr + at, mask=mask)
    g = tl.load(g_ptr + at, mask=mask)
    m = tl.load(m_ptr + at, mask=mask) * beta1 + g * (1 - beta1)
    v = tl.load(v_ptr + at, mask=mask) * beta2 + g * g * (1 - beta2)
    step = (m / correction1) / (tl.sqrt(v / correction2) + epsilon)
    p = p * (1 - rate * decay) - rate * step
    tl.store(p_ptr + at, p, mask=mask)
    tl.store(m_ptr + at, m, mask=mask)
    tl.store(v_ptr + at, v, mask=mask)
    tl.store(copy_ptr + at, p.to(tl.bfloat16), mask=mask)


@triton.jit
def softmax(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + row + at, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row + at, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def softmax_persistent(x_ptr, out_ptr, stride, rows, n, BLOCK: tl.constexpr,
                       STAGES: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * stride + at, mask=mask, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * stride + at, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def log_softmax_backward(y_ptr, dy_ptr, dx_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    y = tl.load(y_ptr + row + at, mask=mask, other=-float("inf")).to(tl.float32)
    dy = tl.load(dy_ptr + row + at, mask=mask, other=0).to(tl.float32)
    tl.store(dx_ptr + row + at, dy - tl.exp(y) * tl.sum(dy, axis=0), mask=mask)


@triton.jit
def layer_norm_forward(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, rstd_ptr, stride, n, epsilon,
                       BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row.to(tl.int64) * stride
    out_ptr += row.to(tl.int64) * stride
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < n, other=0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0).to(tl.float32)
        x = tl.where(at < n, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + epsilon)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < n
        w = tl.load(w_ptr + at, mask=mask)
        b = tl.load(b_ptr + at, mask=mask)
        x = tl.load(x_ptr + at, mask=mask, other=0).to(tl.float32)
        tl.store(out_ptr + at, (x - mean) * rstd * w + b, mask=mask)


@triton.jit
def layer_norm_backward(dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr,
                        lock_ptr, stride, n, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of one group add to the same sums, under a lock; a count says who is first."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    start = row.to(tl.int64) * stride
    x = tl.load(x_ptr + start + at, mask=mask, other=0).to(tl.float32)
    dy = tl.load(dy_ptr + start + at, mask=mask, other=0).to(tl.float32)
    w = tl.load(w_ptr + at, mask=mask).to(tl.float32)
    mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    scaled = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(normal * scaled, axis=0) / n
    c2 = tl.sum(scaled, axis=0) / n
    tl.store(dx_ptr + start + at, (scaled - (normal * c1 + c2)) * rstd, mask=mask)
    dw, db = dy * normal, dy
    group = row % GROUPS
    lock = lock_ptr + group
    count = lock + GROUPS
    dw_at, db_at = dw_ptr + group * n + at, db_ptr + group * n + at
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        dw += tl.load(dw_at, mask=mask)
        db += tl.load(db_at, mask=mask)
    tl.store(dw_at, dw, mask=mask)
    tl.store(db_at, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def column_sums(dw_ptr, db_ptr, dw_out, db_out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    dw = tl.zeros((ROWS, COLUMNS), tl.float32)
    db = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, m, ROWS):
        r = start + tl.arange(0, ROWS)
        mask = (r[:, None] < m) & (c[None, :] < n)
        at = r[:, None] * n + c[None, :]
        dw += tl.load(dw_ptr + at, mask=mask, other=0.0)
        db += tl.load(db_ptr + at, mask=mask, other=0.0)
    tl.store(dw_out + c, tl.sum(dw, axis=0), mask=c < n)
    tl.store(db_out + c, tl.sum(db, axis=0), mask=c < n)


@triton.jit
def rms_norm_forward(x_ptr, w_ptr, out_ptr, rstd_ptr, stride, n, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = row.to(tl.int64) * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + start + at, mask=mask, other=0).to(tl.float32)
    w = tl.load(w_ptr + at, mask=mask, other=0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + epsilon)
    tl.store(rstd_ptr + row, rstd)
    tl.store(out_ptr + start + at, (x * rstd).to(w.dtype) * w, mask=mask)


@triton.jit
def rms_norm_residual(x_ptr, residual_ptr, w_ptr, out_ptr, stride, n, epsilon,
                      BLOCK: tl.constexpr):
    """The sum takes the place of the residual."""
    start = tl.program_id(0).to(tl.int64) * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + start + at, mask=mask, other=0).to(tl.float32)
    x += tl.load(residual_ptr + start + at, mask=mask, other=0).to(tl.float32)
    tl.store(residual_ptr + start + at, x, mask=mask)
    w = tl.load(w_ptr + at, mask=mask, other=0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + epsilon)
    tl.store(out_ptr + start + at, x * rstd * w, mask=mask)


@triton.jit
def rms_norm_backward(dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, stride, rows, n,
                      rows_each, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    w = tl.load(w_ptr + at, mask=mask, other=0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in range(program * rows_each, min((program + 1) * rows_each, rows)):
        start = row * stride
        x = tl.load(x_ptr + start + at, mask=mask, other=0).to(tl.float32)
        dy = tl.load(dy_ptr + start + at, mask=mask, other=0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        m = dy * w
        dx = rstd * m - rstd * rstd * rstd / n * tl.sum(m * x, axis=0) * x
        dw += dy * (x * rstd)
        tl.store(dx_ptr + start + at, dx, mask=mask)
    tl.store(dw_ptr + program * n + at, dw, mask=mask)


@triton.jit
def group_norm(x_ptr, w_ptr, b_ptr, out_ptr, size, pixels, groups, epsilon,
               BLOCK: tl.constexpr):
    """A program normalises one group of one image: size numbers, channels of `pixels` each."""
    program = tl.program_id(0)
    group = program % groups
    start = program.to(tl.int64) * size
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + at, mask=at < size, other=0.0)
        total += x
        squares += x * x
    mean = tl.sum(total, axis=0) / size
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / size - mean * mean + epsilon)
    channels = size // pixels
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        mask = at < size
        channel = group * channels + at // pixels
        x = tl.load(x_ptr + start + at, mask=mask, other=0.0)
        w = tl.load(w_ptr + channel, mask=mask)
        b = tl.load(b_ptr + channel, mask=mask)
        tl.store(out_ptr + start + at, (x - mean) * rstd * w + b, mask=mask)


@triton.jit
def cross_entropy(logits_ptr, target_ptr, loss_ptr, stride, n, scale, BLOCK: tl.constexpr):
    """Loss of a row in chunks, then its gradient in the place of the logits."""
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * stride
    target = tl.load(target_ptr + row)
    hit = tl.load(logits_ptr + target).to(tl.float32)
    greatest = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + at, mask=at < n, other=-float("inf")).to(tl.float32)
        now = tl.maximum(greatest, tl.max(x))
        total = total * tl.exp(greatest - now) + tl.sum(tl.exp(x - now))
        greatest = now
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + at, mask=at < n, other=-float("inf")).to(tl.float32)
        d = tl.exp(x - greatest) / total
        d = tl.where(at == target, d - 1.0, d) * scale
        tl.store(logits_ptr + at, d, mask=at < n)
    tl.debug_barrier()
    tl.store(loss_ptr + row, greatest + tl.log(total) - hit)


@triton.jit
def kl(log_q_ptr, p_ptr, loss_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < n
        log_q = tl.load(log_q_ptr + row + at, mask=mask, other=0.0)
        p = tl.load(p_ptr + row + at, mask=mask, other=0.0)
        total += p * (tl.log(tl.maximum(p, 1e-10)) - log_q)
    tl.store(loss_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def jsd(log_q_ptr, log_p_ptr, loss_ptr, dx_ptr, stride, n, beta, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < n
        x = tl.load(log_q_ptr + row + at, mask=mask, other=-float("inf"))
        y = tl.load(log_p_ptr + row + at, mask=mask, other=-float("inf"))
        q, p = tl.exp(x), tl.exp(y)
        middle = beta * p + (1 - beta) * q
        log_middle = tl.log(middle)
        loss = beta * p * (y - log_middle) + (1 - beta) * q * (x - log_middle)
        tl.store(loss_ptr + row + at, loss, mask=mask)
        tl.store(dx_ptr + row + at, (1 - beta) * q * (x - log_middle), mask=mask)

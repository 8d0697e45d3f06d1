"""Memory-bound kernels in Triton's spelling, a fourth set: models, graphs, physics and more."""

import triton
import triton.language as tl


@triton.jit
def token_shift(x_ptr, mix_ptr, out_ptr, tokens, steps, n, PARTS: tl.constexpr,
                BLOCK: tl.constexpr):
    """Each token mixed with the one before it, once for each part."""
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + c, mask=c < n, other=0.0).to(tl.float32)
    before = tl.load(x_ptr + (row - 1) * n + c, mask=(c < n) & (row % steps > 0), other=0.0)
    step = before.to(tl.float32) - x
    for i in tl.static_range(PARTS):
        mix = tl.load(mix_ptr + i * n + c, mask=c < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + (i * tokens + row) * n + c, x + step * mix, mask=c < n)


@triton.jit
def selective_scan(u_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, d_ptr, out_ptr, steps, n,
                   STATE: tl.constexpr, BLOCK: tl.constexpr):
    """A state of (BLOCK, STATE) through all steps of a sequence."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.arange(0, STATE)
    row = tl.program_id(1).to(tl.int64) * steps
    inside = column < n
    a = tl.load(a_ptr + column[:, None] * STATE + s[None, :], mask=inside[:, None], other=0.0)
    skip = tl.load(d_ptr + column, mask=inside, other=0.0)
    state = tl.zeros((BLOCK, STATE), tl.float32)
    for _ in range(steps):
        u = tl.load(u_ptr + row * n + column, mask=inside, other=0.0).to(tl.float32)
        dt = tl.load(dt_ptr + row * n + column, mask=inside, other=0.0).to(tl.float32)
        dt = tl.where(dt > 20.0, dt, tl.log(1.0 + tl.exp(dt)))
        b = tl.load(b_ptr + row * STATE + s).to(tl.float32)
        c = tl.load(c_ptr + row * STATE + s).to(tl.float32)
        state = state * tl.exp(dt[:, None] * a) + (dt * u)[:, None] * b[None, :]
        y = tl.sum(state * c[None, :], axis=1) + u * skip
        tl.store(out_ptr + row * n + column, y, mask=inside)
        row += 1


@triton.jit
def then(a, x, b, y):
    """h -> a h + x, then h -> b h + y."""
    return a * b, x * b + y


@triton.jit
def gated_scan(gate_ptr, x_ptr, out_ptr, steps, n, T: tl.constexpr, N: tl.constexpr):
    """h = gate h + x along the middle axis, T steps at a time."""
    t = tl.arange(0, T)[:, None]
    c = tl.program_id(0) * N + tl.arange(0, N)[None, :]
    base = tl.program_id(1).to(tl.int64) * steps * n
    carried = tl.zeros((1, N), tl.float32)
    for start in range(0, steps, T):
        mask = (start + t < steps) & (c < n)
        at = base + (start + t) * n + c
        gate = tl.load(gate_ptr + at, mask=mask, other=1.0)
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        kept, h = tl.associative_scan((gate, x), 0, then)
        h += kept * carried
        tl.store(out_ptr + at, h, mask=mask)
        carried = tl.sum(tl.where(t == T - 1, h, 0.0), axis=0, keep_dims=True)


@triton.jit
def delta_rule(q_ptr, k_ptr, v_ptr, beta_ptr, decay_ptr, out_ptr, steps, scale,
               K: tl.constexpr, V: tl.constexpr, BLOCK: tl.constexpr):
    """Each step, the state decays and learns what its prediction of v missed."""
    row = tl.program_id(1).to(tl.int64) * steps
    d = tl.arange(0, K)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q_at, k_at = q_ptr + row * K + d, k_ptr + row * K + d
    v_at, out_at = v_ptr + row * V + c, out_ptr + row * V + c
    beta_at, decay_at = beta_ptr + row, decay_ptr + row
    state = tl.zeros((K, BLOCK), tl.float32)
    for _ in range(0, steps):
        q = tl.load(q_at).to(tl.float32) * scale
        k = tl.load(k_at).to(tl.float32)
        v = tl.load(v_at).to(tl.float32)
        state *= tl.exp(tl.load(decay_at))
        missed = v - tl.sum(state * k[:, None], axis=0)
        state += k[:, None] * (missed * tl.load(beta_at))[None, :]
        tl.store(out_at, tl.sum(state * q[:, None], axis=0).to(out_at.dtype.element_ty))
        q_at += K
        k_at += K
        v_at += V
        out_at += V
        beta_at += 1
        decay_at += 1


@triton.jit
def topk_gating(logits_ptr, weight_ptr, expert_ptr, tokens, n, ROWS: tl.constexpr,
                TOP: tl.constexpr, BLOCK: tl.constexpr):
    """The TOP greatest of the softmax of each row, in order, scaled to the sum 1."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    e = tl.arange(0, BLOCK)[None, :]
    place = tl.arange(0, TOP)[None, :]
    x = tl.load(logits_ptr + r * n + e, mask=(r < tokens) & (e < n), other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    x /= tl.sum(x, axis=1, keep_dims=True)
    weights = tl.zeros((ROWS, TOP), tl.float32)
    experts = tl.zeros((ROWS, TOP), tl.int32)
    for i in tl.static_range(TOP):
        best, which = tl.max(x, axis=1, return_indices=True, keep_dims=True)
        weights = tl.where(place == i, best, weights)
        experts = tl.where(place == i, which, experts)
        x = tl.where(e == which, -1.0, x)
    weights /= tl.sum(weights, axis=1, keep_dims=True)
    tl.store(weight_ptr + r * TOP + place, weights, mask=r < tokens)
    tl.store(expert_ptr + r * TOP + place, experts, mask=r < tokens)


@triton.jit
def moe_combine(y_ptr, weight_ptr, out_ptr, n, TOP: tl.constexpr, BLOCK: tl.constexpr):
    """The weighted sum of what the experts of a token gave."""
    token = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(TOP):
        weight = tl.load(weight_ptr + token * TOP + i)
        y = tl.load(y_ptr + (token * TOP + i) * n + c, mask=c < n, other=0.0)
        total += weight * y.to(tl.float32)
    tl.store(out_ptr + token * n + c, total.to(out_ptr.dtype.element_ty), mask=c < n)


@triton.jit
def bgmv_shrink(x_ptr, a_ptr, lora_ptr, out_ptr, n, scale, RANK: tl.constexpr,
                SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """Each token times the adapter of its own, in parts that are added."""
    token, part = tl.program_id(0), tl.program_id(1)
    lora = tl.load(lora_ptr + token)
    if lora == -1:
        return
    r = tl.arange(0, RANK)[:, None]
    total = tl.zeros((RANK,), tl.float32)
    for start in range(part * BLOCK, n, SPLITS * BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + token * n + c, mask=c < n, other=0.0).to(tl.float32)
        a = tl.load(a_ptr + (lora * RANK + r) * n + c[None, :], mask=c[None, :] < n, other=0.0)
        total += tl.sum(a.to(tl.float32) * x[None, :], axis=1)
    tl.atomic_add(out_ptr + token * RANK + tl.arange(0, RANK), total * scale)


@triton.jit
def hadamard(x_ptr, out_ptr, n, scale, LOG: tl.constexpr, BLOCK: tl.constexpr):
    """Rows times the Hadamard matrix: a butterfly of halves and a perfect shuffle, LOG times."""
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + c).to(tl.float32)
    for _ in tl.static_range(LOG):
        a, b = tl.split(tl.trans(tl.reshape(x, (2, BLOCK // 2))))
        x = tl.reshape(tl.join(a + b, a - b), (BLOCK,))
    tl.store(out_ptr + row * n + c, x * scale)


@triton.jit
def stochastic_rounding(x_ptr, out_ptr, n, seed, BLOCK: tl.constexpr):
    """float32 to bfloat16, up as often as it is near: random bits are added to those cut off."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.int32, bitcast=True)
    bits += (tl.randint(seed, at) & 0xFFFF).to(tl.int32)
    rounded = (bits & -65536).to(tl.float32, bitcast=True)
    tl.store(out_ptr + at, rounded.to(tl.bfloat16), mask=at < n)


@triton.jit
def quantise_fp4(x_ptr, q_ptr, exponent_ptr, groups, GROUPS: tl.constexpr):
    """Groups of 32 to e2m1, two in a byte, ties to even, and a power of two for each group."""
    g = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)[:, None]
    i = tl.arange(0, 32)[None, :]
    x = tl.load(x_ptr + g * 32 + i, mask=g < groups, other=0.0).to(tl.float32)
    most = tl.max(tl.abs(x), axis=1, keep_dims=True)
    exponent = tl.maximum((most.to(tl.int32, bitcast=True) >> 23) - 2, 1)
    y = tl.abs(x) / (exponent << 23).to(tl.float32, bitcast=True)
    code = (y > 0.25).to(tl.int32) + (y >= 0.75).to(tl.int32) + (y > 1.25).to(tl.int32)
    code += (y >= 1.75).to(tl.int32) + (y > 2.5).to(tl.int32) + (y >= 3.5).to(tl.int32)
    code += (y > 5.0).to(tl.int32)
    code = tl.where(x < 0, code + 8, code)
    low, high = tl.split(tl.reshape(code, (GROUPS, 16, 2)))
    packed = (low | (high << 4)).to(tl.uint8)
    tl.store(q_ptr + g * 16 + tl.arange(0, 16)[None, :], packed, mask=g < groups)
    tl.store(exponent_ptr + g, exponent.to(tl.uint8), mask=g < groups)


@triton.jit
def silu_mul_quantise(x_ptr, q_ptr, scale_ptr, tokens, n, GROUPS: tl.constexpr,
                      GROUP: tl.constexpr):
    """silu(gate) * up as float8, with scales of groups that are stored by columns."""
    token = tl.program_id(0).to(tl.int64)
    g = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    c = g[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    gate = tl.load(x_ptr + token * 2 * n + c, mask=c < n, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + token * 2 * n + n + c, mask=c < n, other=0.0).to(tl.float32)
    y = gate * tl.sigmoid(gate) * up
    scale = tl.maximum(tl.max(tl.abs(y), axis=1), 1e-10) / 448.0
    q = tl.clamp(y / scale[:, None], -448.0, 448.0).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + token * n + c, q, mask=c < n)
    tl.store(scale_ptr + g * tokens + token, scale, mask=g * GROUP < n)


@triton.jit
def prune_2_4(x_ptr, out_ptr, quads, BLOCK: tl.constexpr):
    """Of each four the two of greatest size, the first of those that are equal."""
    quad = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    i = tl.arange(0, 4)
    at = quad * 4 + i[None, :]
    x = tl.load(x_ptr + at, mask=quad < quads, other=0.0)
    size = tl.abs(x)
    mine, other = size[:, :, None], size[:, None, :]
    is_before = (other > mine) | ((other == mine) & (i[None, :] < i[:, None])[None, :, :])
    rank = tl.sum(is_before.to(tl.int32), axis=2)
    tl.store(out_ptr + at, tl.where(rank < 2, x, 0.0), mask=quad < quads)


@triton.jit
def normal_and_turned(at, w_ptr, mask, cos, sin, epsilon, HALF: tl.constexpr):
    """In place: the root mean square of heads becomes 1, then their halves are turned."""
    d = tl.arange(0, HALF)[None, :]
    a = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(at + HALF, mask=mask, other=0.0).to(tl.float32)
    squares = tl.sum(a * a, axis=1, keep_dims=True) + tl.sum(b * b, axis=1, keep_dims=True)
    rstd = tl.rsqrt(squares / (2 * HALF) + epsilon)
    a *= rstd * tl.load(w_ptr + d).to(tl.float32)
    b *= rstd * tl.load(w_ptr + HALF + d).to(tl.float32)
    tl.store(at, (a * cos - b * sin).to(at.dtype.element_ty), mask=mask)
    tl.store(at + HALF, (b * cos + a * sin).to(at.dtype.element_ty), mask=mask)


@triton.jit
def qk_norm_rope(qkv_ptr, q_weight_ptr, k_weight_ptr, cos_ptr, sin_ptr, positions_ptr, heads,
                 q_heads, k_heads, epsilon, Q_HEADS: tl.constexpr, K_HEADS: tl.constexpr,
                 HALF: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, HALF)[None, :]
    position = tl.load(positions_ptr + token)
    cos = tl.load(cos_ptr + position * HALF + d)
    sin = tl.load(sin_ptr + position * HALF + d)
    q, k = tl.arange(0, Q_HEADS)[:, None], tl.arange(0, K_HEADS)[:, None]
    base = qkv_ptr + token * heads * 2 * HALF + d
    normal_and_turned(base + q * 2 * HALF, q_weight_ptr, q < q_heads, cos, sin, epsilon, HALF)
    normal_and_turned(base + (q_heads + k) * 2 * HALF, k_weight_ptr, k < k_heads, cos, sin,
                      epsilon, HALF)


@triton.jit
def grpo_loss(logits_ptr, target_ptr, old_ptr, reference_ptr, advantage_ptr, loss_ptr, lse_ptr,
              tokens, n, temperature, beta, low, high, BLOCK: tl.constexpr):
    """A token's clipped policy loss with a penalty on what differs from a reference."""
    row = tl.program_id(0).to(tl.int64)
    greatest, total = -float("inf"), 0.0
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * n + c, mask=c < n, other=-float("inf"))
        x = x.to(tl.float32) / temperature
        new = tl.maximum(greatest, tl.max(x, axis=0))
        total = total * tl.exp(greatest - new) + tl.sum(tl.exp(x - new), axis=0)
        greatest = new
    lse = greatest + tl.log(total)
    chosen = tl.load(logits_ptr + row * n + tl.load(target_ptr + row)).to(tl.float32)
    log = chosen / temperature - lse
    ratio = tl.exp(log - tl.load(old_ptr + row))
    advantage = tl.load(advantage_ptr + row // tokens)
    clipped = tl.clamp(ratio, 1 - low, 1 + high)
    gap = tl.load(reference_ptr + row) - log
    loss = -tl.minimum(ratio * advantage, clipped * advantage) + beta * (tl.exp(gap) - gap - 1)
    tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row, lse)


@triton.jit
def residual_sample(target_ptr, draft_ptr, noise_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A draw from what the target has more than the draft, by exponential noise."""
    row = tl.program_id(0).to(tl.int64)
    best, token = -1.0, 0
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        p = tl.load(target_ptr + row * n + c, mask=c < n, other=0.0)
        q = tl.load(draft_ptr + row * n + c, mask=c < n, other=0.0)
        noise = tl.load(noise_ptr + row * n + c, mask=c < n, other=float("inf"))
        score = tl.maximum(p - q, 0.0) / noise
        most, which = tl.max(score, axis=0, return_indices=True)
        token = tl.where(most > best, start + which, token)
        best = tl.maximum(best, most)
    tl.store(out_ptr + row, token)


@triton.jit
def apply_bitmask(logits_ptr, bits_ptr, rows, n, words, value, BLOCK: tl.constexpr):
    """Logits whose bit is not set are overwritten; programs walk over blocks of all rows."""
    blocks = tl.cdiv(n, BLOCK)
    for work in range(tl.program_id(0), rows * blocks, tl.num_programs(0)):
        row = (work // blocks).to(tl.int64)
        start = work % blocks * BLOCK
        w = start // 32 + tl.arange(0, BLOCK // 32)
        packed = tl.load(bits_ptr + row * words + w, mask=w < words, other=0)
        is_kept = ((packed[:, None] >> tl.arange(0, 32)[None, :]) & 1) != 0
        is_kept = tl.reshape(is_kept, (BLOCK,))
        c = start + tl.arange(0, BLOCK)
        tl.store(logits_ptr + row * n + c, value, mask=(c < n) & (is_kept == 0))

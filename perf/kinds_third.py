"""Kinds of kinds_kernels_third.py, drawn on 2026-11-29: their launches, and what must come out."""

from __future__ import annotations

from kinds_case import THIRD, Launch, Make, cdiv, kind, power_of_two, row_warps
from kinds_rows import philox_uniform

FOUR, EIGHT = {"num_warps": 4}, {"num_warps": 8}
HALF, WIDE, BFLOAT = "float16", "float64", "bfloat16"


@kind(THIRD, {"rows": 16384, "n": 8192, "chosen": 4096}, {"rows": 70, "n": 90, "chosen": 40})
def index_select(make: Make, rows: int, n: int, chosen: int) -> Launch:
    x = make.normal(rows, n, dtype=HALF)
    index = make.torch.randperm(n, device=make.device)[:chosen].int().sort()[0].int()
    return Launch([x, index, make.empty(rows, chosen, dtype=HALF), rows, n, chosen],
                  (cdiv(rows, 32), cdiv(chosen, 128)), {"M": 32, "N": 128},
                  {2: lambda: x[:, index.long()]}, FOUR)


@kind(THIRD, {"batch": 16, "m": 1024, "n": 4096}, {"batch": 2, "m": 50, "n": 40})
def cumsum_middle(make: Make, batch: int, m: int, n: int) -> Launch:
    x = make.normal(batch, m, n)
    return Launch([x, make.empty(batch, m, n), m, n], (cdiv(n, 32), batch), {"M": 128, "N": 32},
                  {1: lambda: x.double().cumsum(1)}, FOUR)


@kind(THIRD, {"rows": 8192, "n": 8192}, {"rows": 5, "n": 300})
def var_mean(make: Make, rows: int, n: int) -> Launch:
    x = make.normal(rows, n) + 3
    return Launch([x, make.empty(rows), make.empty(rows), n, 1.0], (rows,), {"BLOCK": 1024},
                  {1: lambda: x.double().var(1), 2: lambda: x.double().mean(1)}, FOUR)


@kind(THIRD, {"images": 64, "groups": 32, "channels": 16, "pixels": 1024},
      {"images": 2, "groups": 3, "channels": 4, "pixels": 50})
def group_norm_backward(make: Make, images: int, groups: int, channels: int,
                        pixels: int) -> Launch:
    shape = (images * groups, channels, pixels)
    x, dy = make.normal(*shape, dtype=HALF), make.normal(*shape, dtype=HALF)
    w = make.normal(groups * channels)
    variance, mean = make.torch.var_mean(x.float(), (1, 2), unbiased=False)
    rstd = 1 / (variance + 1e-5).sqrt()

    def wanted():
        normal = (x.double() - mean.double()[:, None, None]) * rstd.double()[:, None, None]
        weighted = dy.double() * w.double().reshape(1, groups, channels, 1).expand(
            images, groups, channels, 1).reshape(-1, channels, 1)
        along = (weighted * normal).mean((1, 2), keepdim=True)
        return rstd.double()[:, None, None] * (
            weighted - normal * along - weighted.mean((1, 2), keepdim=True))

    return Launch([dy, x, w, mean, rstd, make.empty(*shape, dtype=HALF), groups, pixels],
                  (images * groups,), {"CHANNELS": channels, "BLOCK": power_of_two(pixels)},
                  {5: wanted}, EIGHT)


@kind(THIRD, {"images": 32, "channels": 128, "height": 112, "width": 112},
      {"images": 2, "channels": 3, "height": 9, "width": 14})
def conv_depthwise(make: Make, images: int, channels: int, height: int, width: int) -> Launch:
    x = make.normal(images, channels, height, width, dtype=HALF)
    w, b = make.normal(channels, 1, 3, 3, dtype=HALF), make.normal(channels, dtype=HALF)

    def wanted():
        return make.torch.nn.functional.conv2d(x.double(), w.double(), b.double(), padding=1,
                                               groups=channels)

    return Launch([x, w, b, make.empty(images, channels, height, width, dtype=HALF), channels,
                   height, width], (cdiv(height, 16), cdiv(width, 64), images * channels),
                  {"SIDE": 3, "ROWS": 16, "COLUMNS": 64}, {3: wanted}, FOUR)


@kind(THIRD, {"rows": 16384, "n": 2048}, {"rows": 20, "n": 50})
def repeat_rows(make: Make, rows: int, n: int) -> Launch:
    x, counts = make.normal(rows, n, dtype=HALF), make.ints(0, 6, rows)
    if make.device == "meta":
        ends, total = make.empty(rows, dtype="int32"), rows * 3
    else:
        ends = counts.cumsum(0).int()
        total = int(ends[-1])
    return Launch([x, ends, make.empty(total, n, dtype=HALF), n], (rows,),
                  {"BLOCK": power_of_two(n)},
                  {2: lambda: x.repeat_interleave(counts.long(), 0)}, FOUR)


@kind(THIRD, {"rows": 8192, "n": 8192}, {"rows": 20, "n": 90})
def triu(make: Make, rows: int, n: int, diagonal: int = 1) -> Launch:
    x = make.normal(rows, n)
    return Launch([x, make.empty(rows, n), rows, n, diagonal], (cdiv(rows, 4),),
                  {"M": 4, "N": 1024}, {1: lambda: x.triu(diagonal)}, EIGHT)


@kind(THIRD, {"batch": 4, "heads": 16, "n": 1536}, {"batch": 2, "heads": 3, "n": 20})
def masked_fill(make: Make, batch: int, heads: int, n: int) -> Launch:
    x = make.normal(batch, heads, n, n, dtype=HALF)
    fills = make.ints(0, 2, batch, 1, n, n, dtype="int8")
    return Launch([x, fills, make.empty(batch, heads, n, n, dtype=HALF), -1000.0, heads, n * n,
                   x.numel()], (cdiv(x.numel(), 1024),), {"BLOCK": 1024},
                  {2: lambda: x.masked_fill(fills != 0, -1000.0)}, FOUR)


@kind(THIRD, {"rows": 4096, "n": 5000}, {"rows": 20, "n": 90})
def nonzero(make: Make, rows: int, n: int) -> Launch:
    size = rows * n
    x = (make.torch.arange(size, device=make.device) * 7919 % 10 < 3).int().reshape(rows, n)
    sums = x.flatten().cumsum(0).int()
    found = size // 10 * 3
    return Launch([x, sums, make.empty(found, 2, dtype="int64"), size, n], (cdiv(size, 1024),),
                  {"BLOCK": 1024}, {2: lambda: x.nonzero()}, FOUR)


@kind(THIRD, {"size": 1 << 25, "places": 1 << 22}, {"size": 3000, "places": 50})
def index_put(make: Make, size: int, places: int) -> Launch:
    x, index = make.normal(size), make.ints(0, places, size)

    def wanted():
        zeros = make.torch.zeros(places, device=make.device, dtype=getattr(make.torch, WIDE))
        return zeros.index_add_(0, index.long(), x.double())

    return Launch([make.zeros(places), index, x, size], (cdiv(size, 1024),), {"BLOCK": 1024},
                  {0: wanted}, FOUR)


@kind(THIRD, {"rows": 8192, "n": 4096}, {"rows": 5, "n": 200})
def dropout_add_rms(make: Make, rows: int, n: int) -> Launch:
    torch, p, seed, epsilon = make.torch, 0.1, 424242, 1e-6
    x, residual = make.normal(rows, n, dtype=BFLOAT), make.normal(rows, n, dtype=BFLOAT)
    w = make.normal(n, dtype=BFLOAT)

    def total():
        kept = philox_uniform(torch, torch.arange(rows * n, device=x.device), seed) > (
            torch.tensor(p, dtype=torch.float32, device=x.device))
        dropped = torch.where(kept.reshape(rows, n), x.double() / (1 - p), 0.0)
        return dropped + residual.double()

    def wanted():
        s = total()
        return s / (s.square().mean(1, keepdim=True) + epsilon).sqrt() * w.double()

    return Launch([x, residual, w, make.empty(rows, n, dtype=BFLOAT),
                   make.empty(rows, n, dtype=BFLOAT), n, p, seed, epsilon], (rows,),
                  {"BLOCK": power_of_two(n)}, {3: total, 4: wanted}, EIGHT)


@kind(THIRD, {"rows": 16384, "n": 5120}, {"rows": 5, "n": 200})
def quantise_tokens(make: Make, rows: int, n: int) -> Launch:
    x = make.normal(rows, n, dtype=BFLOAT)

    def scale():
        return x.double().abs().amax(1).clamp(min=1e-10) / 127

    def wanted():
        q = x.double() / scale()[:, None]
        return q.abs().add(0.5).floor() * q.sign()

    # a quotient at a half may fall on either side: one step
    return Launch([x, make.empty(rows, n, dtype="int8"), make.empty(rows), n], (rows,),
                  {"BLOCK": power_of_two(n)}, {1: wanted, 2: scale}, EIGHT, {1: 1})


@kind(THIRD, {"tokens": 16384, "positions": 4096, "q_heads": 32, "k_heads": 8, "half": 64},
      {"tokens": 20, "positions": 10, "q_heads": 3, "k_heads": 2, "half": 16})
def rope_backward(make: Make, tokens: int, positions: int, q_heads: int, k_heads: int,
                  half: int) -> Launch:
    dq = make.normal(tokens, q_heads, 2, half, dtype=BFLOAT)
    dk = make.normal(tokens, k_heads, 2, half, dtype=BFLOAT)
    angle = make.normal(positions, half)
    cos, sin = angle.cos(), angle.sin()

    def wanted(x):
        at = make.torch.arange(tokens, device=x.device) % positions
        c, s = (t.double()[at][:, None] for t in (cos, sin))
        a, b = x.double().unbind(2)
        return make.torch.stack([a * c + b * s, b * c - a * s], 2)

    return Launch([dq, dk, cos, sin, positions, q_heads, k_heads], (tokens,),
                  {"Q_HEADS": power_of_two(q_heads), "K_HEADS": power_of_two(k_heads),
                   "HALF": half}, {0: lambda: wanted(dq), 1: lambda: wanted(dk)}, FOUR)


@kind(THIRD, {"rows": 1024, "n": 128256, "block": 32768}, {"rows": 5, "n": 300, "block": 128})
def logsumexp_chunks(make: Make, rows: int, n: int, block: int, softcap: float = 30.0) -> Launch:
    x, chunks = make.normal(rows, n, dtype=BFLOAT, scale=4.0), cdiv(n, block)
    target = make.ints(0, n, rows)
    target[::9] = -100

    def capped():
        return softcap * (x.double() / softcap).tanh()

    def parts():
        return make.torch.stack([part.logsumexp(1) for part in capped().split(block, 1)], 1)

    def losses():
        at = target.long().clamp(min=0)[:, None]
        return make.torch.where(target >= 0, -capped().gather(1, at)[:, 0], 0.0)

    return Launch([x, target, make.empty(rows, chunks), make.empty(rows), n, chunks, softcap],
                  (rows, chunks), {"BLOCK": block}, {2: parts, 3: losses},
                  {"num_warps": row_warps(block)})


@kind(THIRD, {"rows": 4096, "n": 4000}, {"rows": 5, "n": 100})
def kth_by_bits(make: Make, rows: int, n: int, k: int = 20) -> Launch:
    x = make.normal(rows, n).abs()
    return Launch([x, make.empty(rows, n), n, k], (rows,), {"BLOCK": power_of_two(n)},
                  {1: lambda: make.torch.where(x >= x.topk(k, 1)[0][:, -1:], x, 0.0)}, EIGHT)


@kind(THIRD, {"batch": 64, "m": 512, "n": 2048}, {"batch": 2, "m": 50, "n": 40})
def log_softmax_middle(make: Make, batch: int, m: int, n: int) -> Launch:
    x = make.normal(batch, m, n)
    return Launch([x, make.empty(batch, m, n), m, n], (cdiv(n, 64), batch), {"M": 32, "N": 64},
                  {1: lambda: x.double().log_softmax(1)}, FOUR)


@kind(THIRD, {"planes": 4096, "height": 112, "width": 112},
      {"planes": 3, "height": 9, "width": 14})
def max_pool_indices(make: Make, planes: int, height: int, width: int) -> Launch:
    x, tall, wide = make.normal(planes, height, width, dtype=HALF), cdiv(height, 2), cdiv(width, 2)
    pooled = []

    def pool(which: int):
        if not pooled:  # of values that meet, Torch takes the first too
            pooled.extend(make.torch.nn.functional.max_pool2d(
                x.float()[None], 3, 2, 1, return_indices=True))
        return pooled[which][0]

    return Launch([x, make.empty(planes, tall, wide, dtype=HALF),
                   make.empty(planes, tall, wide, dtype="int64"), height, width, tall, wide],
                  (planes, cdiv(tall, 16) * cdiv(wide, 16)),
                  {"SIDE": 3, "STRIDE": 2, "ROWS": 16, "COLUMNS": 16},
                  {1: lambda: pool(0), 2: lambda: pool(1)}, FOUR)


@kind(THIRD, {"n": 1 << 25}, {"n": 3000})
def adam_clipped(make: Make, n: int) -> Launch:
    p, g = make.normal(n, dtype=BFLOAT), make.normal(n, dtype=BFLOAT)
    m, v = make.normal(n), make.normal(n).square()
    step, norm = make.given([7.0], "float32"), make.given([3.0], "float32")
    rate, beta1, beta2, epsilon, limit = 1e-2, 0.9, 0.99, 1e-8, 1.0

    def clipped():
        return g.double() * min(limit / (3.0 + 1e-6), 1.0)

    def first():
        return m.double() + (1 - beta1) * (clipped() - m.double())

    def second():
        return beta2 * v.double() + (1 - beta2) * clipped().square()

    def weights():
        root = second().sqrt() / (1 - beta2 ** 7) ** 0.5 + epsilon
        return p.double() - rate / (1 - beta1 ** 7) * first() / root

    return Launch([p, g, m, v, step, norm, rate, beta1, beta2, epsilon, limit, n],
                  (cdiv(n, 1024),), {"BLOCK": 1024}, {0: weights, 2: first, 3: second}, FOUR)


@kind(THIRD, {"m": 16384, "n": 8192}, {"m": 20, "n": 300})
def weight_norm(make: Make, m: int, n: int) -> Launch:
    v, g = make.normal(m, n, dtype=HALF), make.normal(m, dtype=HALF)

    def norm():
        return v.double().norm(dim=1)

    return Launch([v, g, make.empty(m, n, dtype=HALF), make.empty(m), m, n], (cdiv(m, 2),),
                  {"M": 2, "N": 1024},
                  {2: lambda: v.double() / norm()[:, None] * g.double()[:, None], 3: norm}, FOUR)


@kind(THIRD, {"rows": 65536, "a_width": 512, "b_width": 256},
      {"rows": 30, "a_width": 20, "b_width": 12})
def concatenate(make: Make, rows: int, a_width: int, b_width: int) -> Launch:
    a, b = make.normal(rows, a_width), make.normal(rows, b_width)
    size = rows * (a_width + b_width)
    return Launch([a, b, make.empty(rows, a_width + b_width), size, a_width, b_width],
                  (cdiv(size, 1024),), {"BLOCK": 1024},
                  {2: lambda: make.torch.cat([a, b], 1)}, FOUR)


@kind(THIRD, {"matrices": 32, "n": 2048}, {"matrices": 2, "n": 50})
def causal_softmax(make: Make, matrices: int, n: int, scale: float = 0.125) -> Launch:
    x = make.normal(matrices, n, n, dtype=HALF)

    def wanted():
        beyond = make.torch.ones(n, n, device=x.device).triu(1).bool()
        return (x.double() * scale).masked_fill(beyond, -float("inf")).softmax(2)

    return Launch([x, make.empty(matrices, n, n, dtype=HALF), n, scale],
                  (cdiv(n, 4), matrices), {"ROWS": 4, "BLOCK": power_of_two(n)}, {1: wanted},
                  FOUR)


@kind(THIRD, {"n": 1 << 27}, {"n": 5000})
def huber_sum(make: Make, n: int, delta: float = 1.0) -> Launch:
    x, y = make.normal(n, dtype=BFLOAT), make.normal(n, dtype=BFLOAT)

    def wanted():
        return make.torch.nn.functional.huber_loss(
            x.double(), y.double(), reduction="sum", delta=delta).reshape(1)

    return Launch([x, y, make.zeros(1), n, delta], (132 * 8,), {"BLOCK": 2048}, {2: wanted}, EIGHT)

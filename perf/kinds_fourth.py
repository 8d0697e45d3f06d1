"""Kinds of kinds_kernels_fourth.py, drawn on 2026-11-29: their launches, and what must come out."""

from __future__ import annotations

from kinds_case import FOURTH, Launch, Make, cdiv, kind, power_of_two
from kinds_rows import philox_bits

ONE, FOUR, EIGHT = {"num_warps": 1}, {"num_warps": 4}, {"num_warps": 8}
HALF, BFLOAT, FLOAT8 = "float16", "bfloat16", "float8_e4m3fn"
EXACT = 1e-9  # of floats that have one right value


@kind(FOURTH, {"batch": 8, "steps": 4096, "n": 2048}, {"batch": 2, "steps": 5, "n": 90})
def token_shift(make: Make, batch: int, steps: int, n: int, parts: int = 6) -> Launch:
    x, mix = make.normal(batch, steps, n, dtype=BFLOAT), make.normal(parts, n, dtype=BFLOAT)

    def wanted():
        wide = x.double()
        before = make.torch.nn.functional.pad(wide, (0, 0, 1, 0))[:, :-1]
        return make.torch.stack([wide + (before - wide) * m for m in mix.double()])

    return Launch([x, mix, make.empty(parts, batch, steps, n, dtype=BFLOAT), batch * steps, steps,
                   n], (batch * steps,), {"PARTS": parts, "BLOCK": power_of_two(n)}, {2: wanted},
                  EIGHT)


@kind(FOURTH, {"batch": 8, "steps": 1024, "n": 4096}, {"batch": 2, "steps": 9, "n": 50})
def selective_scan(make: Make, batch: int, steps: int, n: int, state: int = 16) -> Launch:
    u, dt = (make.normal(batch, steps, n, dtype=BFLOAT) for _ in range(2))
    b, c = (make.normal(batch, steps, state, dtype=BFLOAT) for _ in range(2))
    a, d = -make.normal(n, state).exp(), make.normal(n)

    def wanted():
        h, rows = 0.0, []
        for t in range(steps):
            step = make.torch.nn.functional.softplus(dt[:, t].double())[:, :, None]
            h = h * (step * a.double()).exp() + (
                step * u[:, t, :, None].double() * b[:, t, None].double())
            rows.append((h * c[:, t, None].double()).sum(2) + u[:, t].double() * d.double())
        return make.torch.stack(rows, 1)

    return Launch([u, dt, a, b, c, d, make.empty(batch, steps, n), steps, n],
                  (cdiv(n, 64), batch), {"STATE": state, "BLOCK": 64}, {6: wanted}, FOUR)


@kind(FOURTH, {"batch": 16, "steps": 2048, "n": 2048}, {"batch": 2, "steps": 70, "n": 50})
def gated_scan(make: Make, batch: int, steps: int, n: int) -> Launch:
    gate, x = make.normal(batch, steps, n).sigmoid(), make.normal(batch, steps, n)

    def wanted():
        h, rows = 0.0, []
        for t in range(steps):
            h = gate[:, t].double() * h + x[:, t].double()
            rows.append(h)
        return make.torch.stack(rows, 1)

    return Launch([gate, x, make.empty(batch, steps, n), steps, n], (cdiv(n, 64), batch),
                  {"T": 64, "N": 64}, {2: wanted}, FOUR)


@kind(FOURTH, {"heads": 64, "steps": 1024, "k": 128, "v": 128},
      {"heads": 2, "steps": 9, "k": 16, "v": 16})
def delta_rule(make: Make, heads: int, steps: int, k: int, v: int) -> Launch:
    torch = make.torch
    queries, values = make.normal(heads, steps, k), make.normal(heads, steps, v, dtype=BFLOAT)
    keys = torch.nn.functional.normalize(make.normal(heads, steps, k), dim=2).bfloat16()
    queries = queries.bfloat16()
    beta, decay = make.normal(heads, steps).sigmoid(), -make.normal(heads, steps).exp() * 0.1

    def wanted():
        state, rows = torch.zeros(heads, k, v, device=keys.device).double(), []
        for t in range(steps):
            key = keys[:, t, :, None].double()
            state = state * decay[:, t, None, None].double().exp()
            missed = values[:, t].double() - (state * key).sum(1)
            state = state + key * (missed * beta[:, t, None].double())[:, None]
            rows.append((state * queries[:, t, :, None].double()).sum(1) * k ** -0.5)
        return torch.stack(rows, 1)

    return Launch([queries, keys, values, beta, decay, make.empty(heads, steps, v, dtype=BFLOAT),
                   steps, k ** -0.5], (cdiv(v, 8), heads), {"K": k, "V": v, "BLOCK": 8},
                  {5: wanted}, {"num_warps": 1, "num_stages": 3})


@kind(FOURTH, {"tokens": 65536, "n": 256}, {"tokens": 20, "n": 50})
def topk_gating(make: Make, tokens: int, n: int, top: int = 8) -> Launch:
    # steps far above rounding, so that no two are equal
    logits = make.normal(tokens, n).argsort(1).float() * (8 / n)

    def chosen():
        weights, experts = logits.double().softmax(1).topk(top, 1)
        return weights / weights.sum(1, keepdim=True), experts

    return Launch([logits, make.empty(tokens, top), make.empty(tokens, top, dtype="int32"), tokens,
                   n], (cdiv(tokens, 16),), {"ROWS": 16, "TOP": top, "BLOCK": power_of_two(n)},
                  {1: lambda: chosen()[0], 2: lambda: chosen()[1]}, FOUR)


@kind(FOURTH, {"tokens": 8192, "n": 7168}, {"tokens": 5, "n": 300})
def moe_combine(make: Make, tokens: int, n: int, top: int = 8) -> Launch:
    y, weights = make.normal(tokens, top, n, dtype=BFLOAT), make.normal(tokens, top).softmax(1)
    return Launch([y, weights, make.empty(tokens, n, dtype=BFLOAT), n], (tokens, cdiv(n, 2048)),
                  {"TOP": top, "BLOCK": 2048},
                  {2: lambda: (y.double() * weights.double()[:, :, None]).sum(1)}, FOUR)


@kind(FOURTH, {"tokens": 4096, "n": 4096, "loras": 32}, {"tokens": 20, "n": 300, "loras": 3})
def bgmv_shrink(make: Make, tokens: int, n: int, loras: int, rank: int = 16) -> Launch:
    x, a = make.normal(tokens, n, dtype=HALF), make.normal(loras, rank, n, dtype=HALF)
    lora, out = make.ints(-1, loras, tokens), make.zeros(tokens, rank)

    def wanted():
        kept = out.double().clone()
        for i in range(loras):
            kept[lora == i] = x[lora == i].double() @ a[i].double().T * 0.5
        return kept

    return Launch([x, a, lora, out, n, 0.5], (tokens, 4),
                  {"RANK": rank, "SPLITS": 4, "BLOCK": 256}, {3: wanted}, FOUR)


@kind(FOURTH, {"rows": 16384, "log": 12}, {"rows": 5, "log": 6})
def hadamard(make: Make, rows: int, log: int) -> Launch:
    n = 1 << log
    x = make.normal(rows, n, dtype=HALF)

    def wanted():
        y = x.double()
        for i in range(log):
            a, b = y.reshape(rows, -1, 2, 1 << i).unbind(2)
            y = make.torch.stack([a + b, a - b], 2).reshape(rows, n)
        return y * n ** -0.5

    return Launch([x, make.empty(rows, n, dtype=HALF), n, n ** -0.5], (rows,),
                  {"LOG": log, "BLOCK": n}, {1: wanted}, FOUR)


@kind(FOURTH, {"n": 1 << 26}, {"n": 3000})
def stochastic_rounding(make: Make, n: int, seed: int = 31337) -> Launch:
    x = make.normal(n)

    def wanted():
        torch = make.torch
        low = philox_bits(torch, torch.arange(n, device=x.device), seed) & 0xFFFF
        bits = (x.view(torch.int32).long() + low) & ~0xFFFF
        return bits.int().view(torch.float32)

    return Launch([x, make.empty(n, dtype=BFLOAT), n, seed], (cdiv(n, 1024),), {"BLOCK": 1024},
                  {1: wanted}, FOUR, {1: EXACT})


@kind(FOURTH, {"groups": 1 << 21}, {"groups": 90})
def quantise_fp4(make: Make, groups: int) -> Launch:
    torch, x = make.torch, make.normal(groups, 32, dtype=BFLOAT)

    def exponent():
        return x.double().abs().amax(1).log2().floor() - 2

    def wanted():
        numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=x.device).double()
        y = x.double() / 2 ** exponent()[:, None]
        gap = (y.abs()[:, :, None] - numbers).abs()
        # of two that are equally near, the even one
        code = torch.where(gap[:, :, ::2].amin(2) <= gap[:, :, 1::2].amin(2),
                           gap[:, :, ::2].argmin(2) * 2, gap[:, :, 1::2].argmin(2) * 2 + 1)
        code += (x < 0) * 8
        return code[:, ::2] + code[:, 1::2] * 16

    return Launch([x, make.empty(groups, 16, dtype="uint8"), make.empty(groups, dtype="uint8"),
                   groups], (cdiv(groups, 64),), {"GROUPS": 64},
                  {1: wanted, 2: lambda: exponent() + 127}, FOUR)


@kind(FOURTH, {"tokens": 16384, "n": 4096}, {"tokens": 5, "n": 384})
def silu_mul_quantise(make: Make, tokens: int, n: int, group: int = 128) -> Launch:
    x = make.normal(tokens, 2, n, dtype=BFLOAT)

    def parts():
        gate, up = x.double().unbind(1)
        y = (gate * gate.sigmoid() * up).reshape(tokens, n // group, group)
        return y, y.abs().amax(2) / 448

    def wanted():
        y, scale = parts()
        return (y / scale[:, :, None]).reshape(tokens, n)

    return Launch([x, make.empty(tokens, n, dtype=FLOAT8), make.empty(n // group, tokens), tokens,
                   n], (tokens, cdiv(n, 8 * group)), {"GROUPS": 8, "GROUP": group},
                  {1: wanted, 2: lambda: parts()[1].T}, FOUR)


@kind(FOURTH, {"quads": 1 << 24}, {"quads": 700})
def prune_2_4(make: Make, quads: int) -> Launch:
    x = make.normal(quads, 4, dtype=HALF)

    def wanted():
        order = x.abs().sort(dim=1, descending=True, stable=True)[1]
        return x.double().scatter(1, order[:, 2:], 0.0)

    return Launch([x, make.empty(quads, 4, dtype=HALF), quads], (cdiv(quads, 256),),
                  {"BLOCK": 256}, {1: wanted}, FOUR, {1: EXACT})


@kind(FOURTH, {"tokens": 16384, "q_heads": 32, "k_heads": 8, "half": 64, "positions": 8192},
      {"tokens": 9, "q_heads": 3, "k_heads": 2, "half": 16, "positions": 30})
def qk_norm_rope(make: Make, tokens: int, q_heads: int, k_heads: int, half: int,
                 positions: int) -> Launch:
    torch, heads, epsilon = make.torch, q_heads + 2 * k_heads, 1e-6
    qkv = make.normal(tokens, heads, 2 * half, dtype=BFLOAT)
    q_weight, k_weight = (make.normal(2 * half, dtype=BFLOAT) for _ in range(2))
    angle, position = make.normal(positions, half), make.ints(0, positions, tokens)
    cos, sin = angle.cos(), angle.sin()

    def turned(x, weight):
        x = x.double()
        x = x / (x.square().mean(2, keepdim=True) + epsilon).sqrt() * weight.double()
        c, s = (t.double()[position.long()][:, None] for t in (cos, sin))
        a, b = x.split(half, 2)
        return torch.cat([a * c - b * s, b * c + a * s], 2)

    def wanted():
        q, k, v = qkv.split([q_heads, k_heads, k_heads], 1)
        return torch.cat([turned(q, q_weight), turned(k, k_weight), v.double()], 1)

    return Launch([qkv, q_weight, k_weight, cos, sin, position, heads, q_heads, k_heads, epsilon],
                  (tokens,), {"Q_HEADS": power_of_two(q_heads), "K_HEADS": power_of_two(k_heads),
                              "HALF": half}, {0: wanted}, FOUR)


@kind(FOURTH, {"samples": 8, "tokens": 256, "n": 128256}, {"samples": 2, "tokens": 3, "n": 3000})
def grpo_loss(make: Make, samples: int, tokens: int, n: int) -> Launch:
    rows, temperature, beta, low, high = samples * tokens, 0.9, 0.04, 0.2, 0.25
    logits, target = make.normal(rows, n, dtype=BFLOAT), make.ints(0, n, rows)
    advantage = make.normal(samples)

    def scaled():
        return logits.double() / temperature

    def log():
        return scaled().log_softmax(1).gather(1, target.long()[:, None])[:, 0]

    near = make.empty(rows) if make.device == "meta" else log().float()
    old, reference = (near + make.normal(rows, scale=0.3) for _ in range(2))

    def wanted():
        ratio, many = (log() - old.double()).exp(), advantage.double().repeat_interleave(tokens)
        gap = reference.double() - log()
        return -make.torch.minimum(ratio * many, ratio.clamp(1 - low, 1 + high) * many) + beta * (
            gap.exp() - gap - 1)

    return Launch([logits, target, old, reference, advantage, make.empty(rows), make.empty(rows),
                   tokens, n, temperature, beta, low, high], (rows,), {"BLOCK": 2048},
                  {5: wanted, 6: lambda: scaled().logsumexp(1)}, EIGHT)


@kind(FOURTH, {"rows": 512, "n": 128256}, {"rows": 5, "n": 3000})
def residual_sample(make: Make, rows: int, n: int) -> Launch:
    target, draft = (make.normal(rows, n).softmax(1) for _ in range(2))
    noise = -make.torch.rand(rows, n, device=make.device).clamp(min=1e-7).log() + 1e-7

    def wanted():
        return ((target - draft).clamp(min=0).double() / noise.double()).argmax(1)

    return Launch([target, draft, noise, make.empty(rows, dtype="int32"), n], (rows,),
                  {"BLOCK": 8192}, {3: wanted}, {"num_warps": 16})


@kind(FOURTH, {"rows": 1024, "n": 128256, "programs": 132 * 8},
      {"rows": 3, "n": 9000, "programs": 4})
def apply_bitmask(make: Make, rows: int, n: int, programs: int) -> Launch:
    logits, words = make.normal(rows, n), cdiv(n, 32)
    bits = make.ints(-(1 << 31), (1 << 31) - 1, rows, words)

    def wanted():
        at = make.torch.arange(32, device=bits.device)
        kept = ((bits[:, :, None] >> at) & 1).reshape(rows, words * 32)[:, :n]
        return make.torch.where(kept != 0, logits.double(), -100.0)

    return Launch([logits, bits, rows, n, words, -100.0], (programs,), {"BLOCK": 4096},
                  {0: wanted}, FOUR)

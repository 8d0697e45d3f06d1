"""Kinds of kinds_kernels_fourth_dots.py: their launches, and what must come out."""

from __future__ import annotations

from kinds_attention import size_of_terms
from kinds_case import FOURTH_DOTS, Launch, Make, cdiv, kind

HALF, BFLOAT, FLOAT8 = "float16", "bfloat16", "float8_e4m3fn"


def options(warps: int, stages: int) -> dict[str, int]:
    """Of a launch."""
    return {"num_warps": warps, "num_stages": stages}


@kind(FOURTH_DOTS, {"m": 128, "n": 4096, "k": 8192}, {"m": 70, "n": 90, "k": 300})
def gemm_split_k(make: Make, m: int, n: int, k: int, splits: int = 8) -> Launch:
    a, b = make.normal(m, k, dtype=HALF), make.normal(k, n, dtype=HALF)
    return Launch([a, b, make.zeros(m, n), m, n, k], (cdiv(m, 64), cdiv(n, 128), splits),
                  {"M": 64, "N": 128, "K": 64, "SPLITS": splits},
                  {2: lambda: a.double() @ b.double()}, options(4, 4))


@kind(FOURTH_DOTS, {"m": 4096, "n": 8192, "k": 4096, "programs": 132},
      {"m": 200, "n": 304, "k": 96, "programs": 2})
def gemm_descriptors(make: Make, m: int, n: int, k: int, programs: int) -> Launch:
    if make.device == "cuda":
        # here and not above: for a GPU only; Triton keeps descriptors in memory that it asks for
        import triton
        triton.set_allocator(lambda size, align, stream: make.torch.empty(
            size, device=make.device, dtype=make.torch.int8))
    a, b = make.normal(m, k, dtype=HALF), make.normal(n, k, dtype=HALF)
    return Launch([a, b, make.empty(m, n, dtype=HALF), m, n, k], (programs,),
                  {"M": 128, "N": 256, "K": 64, "GROUP": 8},
                  {2: lambda: a.double() @ b.double().T}, options(8, 3))


@kind(FOURTH_DOTS, {"m": 4096, "n": 7168, "k": 4096}, {"m": 70, "n": 256, "k": 384})
def gemm_fp8_blocks(make: Make, m: int, n: int, k: int, part: int = 128) -> Launch:
    a, b = make.normal(m, k, dtype=FLOAT8), make.normal(n, k, dtype=FLOAT8)
    a_scale, b_scale = make.normal(m, k // part).exp(), make.normal(n // part, k // part).exp()

    def wanted():
        wide_a = a.double() * a_scale.double().repeat_interleave(part, 1)
        wide_b = b.double() * b_scale.double().repeat_interleave(part, 0).repeat_interleave(part, 1)
        return wide_a @ wide_b.T

    return Launch([a, b, make.empty(m, n, dtype=BFLOAT), a_scale, b_scale, m, n, k],
                  (cdiv(m, 64) * cdiv(n, part),), {"M": 64, "N": part, "K": part, "GROUP": 32},
                  {2: wanted}, options(4, 3))


@kind(FOURTH_DOTS, {"m": 4096, "n": 4096, "k": 4096}, {"m": 70, "n": 90, "k": 100})
def gemm_swiglu(make: Make, m: int, n: int, k: int) -> Launch:
    x = make.normal(m, k, dtype=HALF)
    gate, up = (make.normal(k, n, dtype=HALF, scale=k ** -0.5) for _ in range(2))

    def wanted():
        a = x.double() @ gate.double()
        return a * a.sigmoid() * (x.double() @ up.double())

    return Launch([x, gate, up, make.empty(m, n, dtype=HALF), m, n, k],
                  (cdiv(m, 128), cdiv(n, 128)), {"M": 128, "N": 128, "K": 64}, {3: wanted},
                  options(8, 3))


@kind(FOURTH_DOTS, {"m": 4096, "k": 8192}, {"m": 200, "k": 100})
def gemm_symmetric(make: Make, m: int, k: int) -> Launch:
    x = make.normal(m, k, dtype=BFLOAT)
    return Launch([x, make.empty(m, m, dtype=BFLOAT), m, k], (cdiv(m, 128), cdiv(m, 128)),
                  {"M": 128, "K": 64}, {1: lambda: x.double() @ x.double().T}, options(4, 4))


@kind(FOURTH_DOTS, {"m": 4096, "n": 32000, "k": 2048}, {"m": 70, "n": 300, "k": 100})
def linear_logsumexp(make: Make, m: int, n: int, k: int) -> Launch:
    x, w = make.normal(m, k, dtype=BFLOAT), make.normal(n, k, dtype=BFLOAT, scale=k ** -0.5)

    def wanted():
        logits = x.double() @ w.double().T
        return make.torch.stack([part.logsumexp(1) for part in logits.split(128, 1)])

    return Launch([x, w, make.empty(cdiv(n, 128), m), m, n, k], (cdiv(m, 128), cdiv(n, 128)),
                  {"M": 128, "N": 128, "K": 64}, {2: wanted}, options(8, 3))


@kind(FOURTH_DOTS, {"sequences": 32, "n": 4096, "heads": 32, "splits": 8},
      {"sequences": 2, "n": 150, "heads": 16, "splits": 2})
def decode_latent(make: Make, sequences: int, n: int, heads: int, splits: int) -> Launch:
    latent, rope = 512, 64
    q = make.normal(sequences, heads, latent + rope, dtype=BFLOAT)
    cache = make.normal(sequences, n, latent + rope, dtype=BFLOAT)
    scale = (latent + rope) ** -0.5

    def scores():
        s = q.double() @ cache.double().transpose(1, 2) * scale
        return s.split(cdiv(n, splits), 2)

    def values():
        return cache.double()[:, :, :latent].split(cdiv(n, splits), 1)

    def parts(product):
        return make.torch.stack([product(s.softmax(2), v) for s, v in zip(scores(), values())], 2)

    return Launch([q, cache, make.empty(sequences, heads, splits, latent),
                   make.empty(sequences, heads, splits), n, heads, splits, scale],
                  (sequences, cdiv(heads, 16), splits),
                  {"H": 16, "N": 32, "LATENT": latent, "ROPE": rope},
                  {2: lambda: parts(make.torch.matmul),
                   3: lambda: make.torch.stack([s.logsumexp(2) for s in scores()], 2)},
                  options(4, 2), {2: 1.6e-2, 3: 5e-4}, sizes={2: lambda: parts(size_of_terms)})


@kind(FOURTH_DOTS, {"heads": 32, "n": 8192, "window": 1024}, {"heads": 2, "n": 300, "window": 70})
def attention_window(make: Make, heads: int, n: int, window: int) -> Launch:
    d, cap = 128, 50.0
    q, k, v = (make.normal(heads, n, d, dtype=BFLOAT) for _ in range(3))

    def each(product):
        at = make.torch.arange(n, device=q.device)
        back = at[:, None] - at
        hidden = (back < 0) | (back > window)
        found = []
        for h in range(heads):
            s = cap * (q[h].double() @ k[h].double().T * d ** -0.5 / cap).tanh()
            found.append(product(s.masked_fill(hidden, -float("inf")).softmax(1), v[h].double()))
        return make.torch.stack(found)

    return Launch([q, k, v, make.empty(heads, n, d, dtype=BFLOAT), n, window, d ** -0.5, cap],
                  (cdiv(n, 128), heads), {"M": 128, "N": 64, "D": d},
                  {3: lambda: each(make.torch.matmul)}, options(8, 3),
                  sizes={3: lambda: each(size_of_terms)})


@kind(FOURTH_DOTS, {"batch": 256, "heads": 4, "n": 512}, {"batch": 2, "heads": 2, "n": 100})
def attention_bias(make: Make, batch: int, heads: int, n: int) -> Launch:
    d = 32
    q, k, v = (make.normal(batch, heads, n, d, dtype=BFLOAT) for _ in range(3))
    bias = make.normal(heads, n, n, dtype=BFLOAT)

    def each(product):
        found = []
        for one in range(batch):
            s = q[one].double() @ k[one].double().transpose(1, 2) * d ** -0.5 + bias.double()
            found.append(product(s.softmax(2), v[one].double()))
        return make.torch.stack(found)

    return Launch([q, k, v, bias, make.empty(batch, heads, n, d, dtype=BFLOAT), n, heads,
                   d ** -0.5], (cdiv(n, 64), batch * heads), {"M": 64, "N": 64, "D": d},
                  {4: lambda: each(make.torch.matmul)}, options(4, 2),
                  sizes={4: lambda: each(size_of_terms)})


@kind(FOURTH_DOTS, {"heads": 32, "n": 8192, "most": 24}, {"heads": 2, "n": 256, "most": 3})
def attention_blocks(make: Make, heads: int, n: int, most: int) -> Launch:
    torch, d, m = make.torch, 64, 128
    q, k, v = (make.normal(heads, n, d, dtype=HALF) for _ in range(3))
    counts = [1 + i * 7919 % most for i in range(n // m)]
    lists = [[(i * 31 + j * 5) % (n // 64) for j in range(most)] for i in range(n // m)]

    def each(product):
        hidden = torch.ones(n, n, device=q.device, dtype=torch.bool)
        for i, (count, blocks) in enumerate(zip(counts, lists)):
            for block in blocks[:count]:
                hidden[i * m:(i + 1) * m, block * 64:(block + 1) * 64] = False
        found = []
        for h in range(heads):
            s = q[h].double() @ k[h].double().T * d ** -0.5
            found.append(product(s.masked_fill(hidden, -float("inf")).softmax(1), v[h].double()))
        return torch.stack(found)

    return Launch([q, k, v, make.given(lists), make.given(counts),
                   make.empty(heads, n, d, dtype=HALF), n, most, d ** -0.5], (n // m, heads),
                  {"M": m, "N": 64, "D": d}, {5: lambda: each(torch.matmul)}, options(4, 3),
                  {5: 4e-3}, sizes={5: lambda: each(size_of_terms)})


@kind(FOURTH_DOTS, {"sequences": 32, "most": 2048, "heads": 4},
      {"sequences": 2, "most": 200, "heads": 2})
def attention_jagged(make: Make, sequences: int, most: int, heads: int) -> Launch:
    torch, d = make.torch, 128
    lengths = [most - i * 7919 % (most * 3 // 4) for i in range(sequences)]
    starts = [sum(lengths[:i]) for i in range(sequences + 1)]
    q, k, v = (make.normal(starts[-1], heads, d, dtype=BFLOAT) for _ in range(3))

    def each(product):
        found = []
        for one in range(sequences):
            rows = slice(starts[one], starts[one + 1])
            x, y, z = (t[rows].double().transpose(0, 1) for t in (q, k, v))
            s = x @ y.transpose(1, 2) * d ** -0.5
            found.append(product((s * s.sigmoid() / most).tril(), z).transpose(0, 1))
        return torch.cat(found)

    return Launch([q, k, v, make.given(starts), make.empty(starts[-1], heads, d, dtype=BFLOAT),
                   heads, most, d ** -0.5], (cdiv(most, 128), sequences, heads),
                  {"M": 128, "N": 64, "D": d}, {4: lambda: each(torch.matmul)}, options(4, 2),
                  sizes={4: lambda: each(size_of_terms)})

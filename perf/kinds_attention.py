"""Kinds of kinds_kernels_attention.py, and of attention: their launches, and what comes out."""

from __future__ import annotations

from kinds_case import DOTS, Launch, Make, cdiv, kind

FULL = {"heads": 64, "n": 4096, "d": 64, "causal": False}
FEW = {"heads": 2, "n": 200, "d": 64, "causal": False}
ROUNDED = 4e-3  # p is rounded to float16
NORMAL = 2.0 ** -14  # the least number with all bits in float16


@kind(DOTS, FULL, FEW, "attention_64")
@kind(DOTS, FULL | {"causal": True}, FEW | {"causal": True}, "attention_64_causal")
@kind(DOTS, FULL | {"d": 128}, FEW | {"d": 128}, "attention_128")
@kind(DOTS, FULL | {"d": 128, "causal": True}, FEW | {"causal": True}, "attention_128_causal")
def attention(make: Make, heads: int, n: int, d: int, causal: bool) -> Launch:
    q, k, v = (make.normal(heads, n, d, dtype="float16") for _ in range(3))
    scale, torch = d ** -0.5, make.torch

    def scores(head: int):
        s = q[head].double() @ k[head].double().T * scale
        if causal:
            s += torch.full_like(s, float("-inf")).triu(1)
        return s

    def out():
        return torch.stack([scores(h).softmax(1) @ v[h].double() for h in range(heads)])

    def terms():
        return torch.stack([size_of_terms(scores(h).softmax(1), v[h]) for h in range(heads)])

    return Launch(
        [q, k, v, make.empty(heads, n, d, dtype="float16"), make.empty(heads, n), n, scale],
        (cdiv(n, 128), heads), {"M": 128, "N": 64, "D": d, "CAUSAL": causal},
        {3: out, 4: lambda: torch.stack([scores(h).logsumexp(1) for h in range(heads)])},
        {"num_warps": 4 if d == 64 else 8, "num_stages": 3}, {3: ROUNDED, 4: 5e-4},
        sizes={3: terms})


def size_of_terms(p, v):
    """The root of the sum of squares of what adds up to each element of p @ v."""
    return (p.double().square() @ v.double().square()).sqrt()


BACKWARD = {"heads": 64, "n": 4096, "d": 64}
FEW_BACKWARD = {"heads": 2, "n": 256, "d": 64}


def gradients(make: Make, heads: int, n: int, d: int):
    """Arguments of both kernels of gradients, and functions of a head: p, ds."""
    torch, scale = make.torch, d ** -0.5
    q, k, v, do = (make.normal(heads, n, d, dtype="float16") for _ in range(4))
    lse, delta = make.empty(heads, n), make.empty(heads, n)
    for h in range(heads):
        s = q[h].float() @ k[h].float().T * scale
        lse[h] = s.logsumexp(1)
        delta[h] = ((s.softmax(1) @ v[h].float()) * do[h].float()).sum(1)

    def p(h: int):
        return (q[h].double() @ k[h].double().T * scale - lse[h].double()[:, None]).exp()

    def ds(h: int):
        return p(h) * (do[h].double() @ v[h].double().T - delta[h].double()[:, None])

    def of_heads(function):
        return lambda: torch.stack([function(h) for h in range(heads)])

    return (q, k, v, do, lse, delta), p, ds, of_heads


@kind(DOTS, BACKWARD, FEW_BACKWARD)
def attention_keys_backward(make: Make, heads: int, n: int, d: int) -> Launch:
    given, p, ds, of_heads = gradients(make, heads, n, d)
    (q, _, _, do, *_), scale = given, d ** -0.5
    return Launch(
        [*given, *(make.empty(heads, n, d, dtype="float16") for _ in range(2)), n, scale],
        (cdiv(n, 128), heads), {"M": 32, "N": 128, "D": d},
        {6: of_heads(lambda h: ds(h).T @ q[h].double() * scale),
         7: of_heads(lambda h: p(h).T @ do[h].double())},
        {"num_warps": 4, "num_stages": 5}, {6: ROUNDED, 7: ROUNDED},
        sizes={6: of_heads(lambda h: size_of_terms(ds(h).T, q[h]) * scale),
               7: of_heads(lambda h: size_of_terms(p(h).T, do[h]))})


@kind(DOTS, BACKWARD, FEW_BACKWARD)
def attention_queries_backward(make: Make, heads: int, n: int, d: int) -> Launch:
    given, _, ds, of_heads = gradients(make, heads, n, d)
    k, scale = given[1], d ** -0.5
    return Launch(
        [*given, make.empty(heads, n, d, dtype="float16"), n, scale], (cdiv(n, 128), heads),
        {"M": 128, "N": 32, "D": d}, {6: of_heads(lambda h: ds(h) @ k[h].double() * scale)},
        {"num_warps": 4, "num_stages": 5}, {6: ROUNDED},
        sizes={6: of_heads(lambda h: size_of_terms(ds(h), k[h]) * scale)})


@kind(DOTS, {"batch": 4, "heads": 32, "group": 4, "n": 4096, "d": 128},
      {"batch": 2, "heads": 4, "group": 2, "n": 200, "d": 64})
def attention_grouped(make: Make, batch: int, heads: int, group: int, n: int, d: int) -> Launch:
    torch, scale, kv_heads = make.torch, d ** -0.5, heads // group
    q = make.normal(batch, n, heads, d, dtype="float16")
    k, v = (make.normal(batch, n, kv_heads, d, dtype="float16") for _ in range(2))

    def of_heads(function):
        def found():
            made = [[function((q[b, :, h].double() @ k[b, :, h // group].double().T * scale)
                              .softmax(1), v[b, :, h // group].double())
                     for h in range(heads)] for b in range(batch)]
            return torch.stack([torch.stack(one, 1) for one in made])
        return found

    return Launch(
        [q, k, v, make.empty(batch, n, heads, d, dtype="float16"), n, heads, kv_heads, scale],
        (cdiv(n, 128), heads, batch), {"M": 128, "N": 64, "D": d, "GROUP": group},
        {3: of_heads(torch.matmul)}, {"num_warps": 8, "num_stages": 3}, {3: ROUNDED},
        sizes={3: of_heads(size_of_terms)})


@kind(DOTS, {"heads": 64, "n": 4096, "d": 128}, {"heads": 2, "n": 200, "d": 64})
def attention_int8(make: Make, heads: int, n: int, d: int) -> Launch:
    torch, blocks_m, blocks_n = make.torch, cdiv(n, 128), cdiv(n, 64)
    q, k = (make.ints(-128, 128, heads, n, d, dtype="int8") for _ in range(2))
    v = make.normal(heads, n, d, dtype="float16")
    q_scale, k_scale = (make.normal(heads, blocks).abs() * 0.02 for blocks in (blocks_m, blocks_n))

    def p(h: int):
        wide = [scale[h].double().repeat_interleave(size)[:n]
                for scale, size in ((q_scale, 128), (k_scale, 64))]
        s = q[h].double() @ k[h].double().T * wide[0][:, None] * wide[1] * 0.6931471805599453
        return s.softmax(1)

    def of_heads(function):
        return lambda: torch.stack([function(p(h), v[h].double()) for h in range(heads)])

    def rounded_terms(p, v):  # one key has nearly all: the rest of p, and what it makes, is tiny
        return size_of_terms(p.clamp(min=NORMAL), v)

    return Launch(
        [q, q_scale, k, k_scale, v, make.empty(heads, n, d, dtype="float16"), n],
        (blocks_m, heads), {"M": 128, "N": 64, "D": d}, {5: of_heads(torch.matmul)},
        {"num_warps": 8, "num_stages": 4}, {5: ROUNDED}, sizes={5: of_heads(rounded_terms)})

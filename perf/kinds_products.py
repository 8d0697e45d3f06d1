"""Kinds of kinds_kernels_products.py: their launches, and what must come out."""

from __future__ import annotations

from kinds_case import DOTS, MEMORY, Launch, Make, cdiv, kind


@kind(DOTS, {"tokens": 4096, "top": 2, "count": 8, "n": 4096, "k": 4096},
      {"tokens": 50, "top": 2, "count": 3, "n": 130, "k": 100})
def experts(make: Make, tokens: int, top: int, count: int, n: int, k: int) -> Launch:
    torch, block = make.torch, 64
    a, b = make.normal(tokens, k, dtype="float16"), make.normal(count, n, k, dtype="float16")
    weights = make.normal(tokens * top).abs()
    expert = [(7 * i + i // 5) % count for i in range(tokens * top)]
    ids, of_block = [], []
    for e in range(count):
        own = [i for i, other in enumerate(expert) if other == e]
        blocks = cdiv(len(own), block)
        ids += own + [tokens * top] * (blocks * block - len(own))
        of_block += [e] * blocks

    def wanted():
        made = torch.empty(tokens * top, n, dtype=torch.float64, device=make.device)
        for e in range(count):
            own = make.given([i for i, other in enumerate(expert) if other == e]).long()
            made[own] = a[own // top].double() @ b[e].double().T * weights[own, None].double()
        return made

    return Launch([a, b, make.empty(tokens * top, n, dtype="float16"), weights, make.given(ids),
                   make.given(of_block), tokens * top, n, k],
                  (len(of_block) * cdiv(n, 128),), {"TOP": top, "M": block, "N": 128, "K": 64},
                  {2: wanted}, {"num_warps": 4, "num_stages": 4})


@kind(DOTS, {"blocks": 1024, "rows": 8192, "k": 4096}, {"blocks": 3, "rows": 256, "k": 128})
def sampled_product(make: Make, blocks: int, rows: int, k: int) -> Launch:
    torch, size = make.torch, 128
    a, b = (make.normal(rows, k, dtype="float16") for _ in range(2))
    chosen = [make.ints(0, rows // size, blocks) for _ in range(2)]

    def wanted():
        left, right = (x.double().reshape(-1, size, k) for x in (a, b))
        return torch.stack([left[i] @ right[j].T for i, j in zip(*(c.long() for c in chosen))])

    return Launch([a, b, *chosen, make.empty(blocks, size, size, dtype="float16"), k], (blocks,),
                  {"M": size, "N": size, "K": 64}, {4: wanted},
                  {"num_warps": 8, "num_stages": 3})


LINEAR = {"batch": 4, "n": 8192, "heads": 16, "d": 128}
FEW_LINEAR = {"batch": 2, "n": 150, "heads": 2, "d": 128}
CHUNK = 64


def by_chunks(x):
    """(batch, n, heads, d) as (batch * heads, chunks, CHUNK, d) of float64, zeros at the end."""
    batch, n, heads, d = x.shape
    padded = x.new_zeros((batch, cdiv(n, CHUNK) * CHUNK, heads, d)).double()
    padded[:, :n] = x
    return padded.transpose(1, 2).reshape(batch * heads, -1, CHUNK, d)


@kind(DOTS, LINEAR, FEW_LINEAR)
def chunk_states(make: Make, batch: int, n: int, heads: int, d: int) -> Launch:
    k, v = (make.normal(batch, n, heads, d, dtype="float16") for _ in range(2))
    chunks = cdiv(n, CHUNK)
    return Launch([k, v, make.empty(batch * heads, chunks, d, d, dtype="float16"), n, heads],
                  (chunks, (d // 64) ** 2, batch * heads), {"T": CHUNK, "D": d, "K": 64, "V": 64},
                  {2: lambda: by_chunks(k).transpose(2, 3) @ by_chunks(v)},
                  {"num_warps": 4, "num_stages": 2})


@kind(MEMORY, {"sequences": 64, "chunks": 128, "size": 16384},
      {"sequences": 3, "chunks": 5, "size": 300})
def pass_states(make: Make, sequences: int, chunks: int, size: int) -> Launch:
    torch = make.torch
    states = make.normal(sequences, chunks, size, dtype="float16")
    decay = make.normal(sequences).sigmoid()

    def wanted():
        made, state = [], torch.zeros(sequences, size, dtype=torch.float64, device=make.device)
        for chunk in range(chunks):
            made.append(state)
            state = state * decay.double()[:, None] + states[:, chunk].double()
        return torch.stack(made, 1)

    return Launch([states, decay, chunks, size], (cdiv(size, 1024), sequences), {"BLOCK": 1024},
                  {0: wanted}, {"num_warps": 4})


@kind(DOTS, LINEAR, FEW_LINEAR)
def chunk_outputs(make: Make, batch: int, n: int, heads: int, d: int) -> Launch:
    q, k, v = (make.normal(batch, n, heads, d, dtype="float16") for _ in range(3))
    chunks, scale = cdiv(n, CHUNK), d ** -0.5
    states = make.normal(batch * heads, chunks, d, d, dtype="float16", scale=8.0)

    def wanted():
        mine, keys, values = map(by_chunks, (q, k, v))
        own = (mine @ keys.transpose(2, 3)).tril() @ values
        made = (mine @ states.double() + own) * scale
        return made.reshape(batch, heads, -1, d).transpose(1, 2)[:, :n]

    # scores are rounded to float16
    return Launch([q, k, v, states, make.empty(batch, n, heads, d, dtype="float16"), n, heads,
                   scale], (d // 64, chunks, batch * heads), {"T": CHUNK, "D": d, "K": 64, "V": 64},
                  {4: wanted}, {"num_warps": 4, "num_stages": 2}, {4: 4e-3})

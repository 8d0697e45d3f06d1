"""Kinds of kinds_kernels_more.py: their launches, and what must come out."""

from __future__ import annotations

from kinds_case import DOTS, MEMORY, Launch, Make, cdiv, kind, power_of_two


@kind(MEMORY, {"rows": 16384, "to": 8192, "n": 4096}, {"rows": 9, "to": 5, "n": 200})
def index_add(make: Make, rows: int, to: int, n: int) -> Launch:
    out, index = make.zeros(to, n), make.ints(0, to, rows)
    x, scale = make.normal(rows, n, dtype="bfloat16"), make.normal(n, dtype="bfloat16")
    return Launch([out, index, x, scale, n], (rows, cdiv(n, 1024)), {"BLOCK": 1024},
                  {0: lambda: out.double().index_add_(0, index.long(), x.double() * scale)},
                  {"num_warps": 4})


@kind(MEMORY, {"tokens": 16384, "positions": 4096, "heads": 40, "half": 64},
      {"tokens": 6, "positions": 3, "heads": 5, "half": 16})
def rope_interleaved(make: Make, tokens: int, positions: int, heads: int, half: int) -> Launch:
    x, angle = make.normal(tokens, heads, half, 2, dtype="bfloat16"), make.normal(positions, half)
    cos, sin = angle.cos(), angle.sin()

    def wanted():
        c, s = (t.double().repeat(tokens // positions, 1)[:, None] for t in (cos, sin))
        a, b = x.double().unbind(3)
        return make.torch.stack([a * c - b * s, b * c + a * s], 3)

    return Launch([x, cos, sin, positions, heads], (tokens,),
                  {"HEADS": power_of_two(heads), "HALF": half}, {0: wanted}, {"num_warps": 4})


@kind(MEMORY, {"batch": 8, "n": 4096, "channels": 4096}, {"batch": 2, "n": 70, "channels": 90})
def conv1d(make: Make, batch: int, n: int, channels: int, width: int = 4) -> Launch:
    x = make.normal(batch, n, channels, dtype="bfloat16")
    w, b = make.normal(channels, width, dtype="bfloat16"), make.normal(channels, dtype="bfloat16")
    functional = make.torch.nn.functional

    def wanted():
        padded = functional.pad(x.double(), (0, 0, width - 1, 0))
        total = sum(padded[:, i:i + n] * w[:, i].double() for i in range(width))
        return functional.silu(total + b.double())

    return Launch([x, w, b, make.empty(batch, n, channels, dtype="bfloat16"), n, channels],
                  (cdiv(n, 64), cdiv(channels, 64), batch), {"WIDTH": width, "T": 64, "C": 64},
                  {3: wanted}, {"num_warps": 4})


PAGED = {"sequences": 64, "kv_heads": 8, "group": 4, "n": 8192, "d": 128, "splits": 8}
FEW_PAGED = {"sequences": 2, "kv_heads": 2, "group": 3, "n": 256, "d": 32, "splits": 2}


@kind(DOTS, PAGED, FEW_PAGED)
def paged_decode(make: Make, sequences: int, kv_heads: int, group: int, n: int, d: int,
                 splits: int, page: int = 16) -> Launch:
    torch, pages = make.torch, n // page
    q = make.normal(sequences, kv_heads * group, d, dtype="float16")
    k, v = (make.normal(sequences * pages, page, kv_heads, d, dtype="float16") for _ in range(2))
    table = torch.randperm(sequences * pages, device=make.device).int().reshape(sequences, pages)
    lengths = [n - 7 * (i % 8) for i in range(sequences)]
    scale = d ** -0.5

    def parts():
        """Of each sequence and split: outputs and logarithms of sums."""
        for i, length in enumerate(lengths):
            keys, values = (cache[table[i].long()].reshape(n, kv_heads, d).double()
                            for cache in (k, v))
            each = cdiv(cdiv(length, splits), 64) * 64
            grouped = q[i].double().reshape(kv_heads, group, d)
            for first in range(0, splits * each, each):
                part = slice(first, min(first + each, length))
                s = torch.einsum("hgd,nhd->hgn", grouped, keys[part]) * scale
                out = torch.einsum("hgn,nhd->hgd", s.softmax(2), values[part])
                yield out.reshape(-1, d), s.logsumexp(2).reshape(-1)

    def wanted(which: int):
        found = torch.stack([part[which] for part in parts()])
        return found.unflatten(0, (sequences, splits)).transpose(1, 2).flatten(0, 1)

    heads = sequences * kv_heads * group
    return Launch(
        [q, k, v, table, make.given(lengths), make.empty(heads, splits, d),
         make.empty(heads, splits), scale, pages, kv_heads], (sequences, kv_heads, splits),
        {"PAGE": page, "GROUP": group, "ROWS": 16, "N": 64, "D": d, "SPLITS": splits},
        {5: lambda: wanted(0), 6: lambda: wanted(1)}, {"num_warps": 4, "num_stages": 2},
        {5: 2e-3, 6: 5e-4})


@kind(MEMORY, {"heads": 65536, "splits": 8, "d": 128}, {"heads": 3, "splits": 4, "d": 32})
def merge_splits(make: Make, heads: int, splits: int, d: int) -> Launch:
    parts, lse = make.normal(heads, splits, d), make.normal(heads, splits)
    return Launch([parts, lse, make.empty(heads, d, dtype="float16")], (heads,),
                  {"SPLITS": splits, "D": d},
                  {2: lambda: (parts.double() * lse.double().softmax(1)[..., None]).sum(1)},
                  {"num_warps": 4})

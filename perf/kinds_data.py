"""Kinds of kinds_kernels_data.py: their launches, and what must come out."""

from __future__ import annotations

from kinds_case import MEMORY, Launch, Make, cdiv, kind, power_of_two, row_warps


@kind(MEMORY, {"tokens": 16384, "positions": 4096, "heads": 40, "half": 64},
      {"tokens": 6, "positions": 3, "heads": 5, "half": 16})
def rope(make: Make, tokens: int, positions: int, heads: int, half: int) -> Launch:
    x, angle = make.normal(tokens, heads, 2, half, dtype="bfloat16"), make.normal(positions, half)
    cos, sin = angle.cos(), angle.sin()

    def wanted():
        c, s = (t.double().repeat(tokens // positions, 1)[:, None] for t in (cos, sin))
        a, b = x.double().unbind(2)
        return make.torch.stack([a * c - b * s, b * c + a * s], 2)

    return Launch([x, cos, sin, positions, heads], (tokens,),
                  {"HEADS": power_of_two(heads), "HALF": half}, {0: wanted}, {"num_warps": 4})


SQUARE, FEW = {"rows": 16384, "columns": 16384}, {"rows": 70, "columns": 90}


@kind(MEMORY, SQUARE | {"dtype": "float16"}, FEW | {"dtype": "float16"}, "transpose_f16")
@kind(MEMORY, SQUARE | {"dtype": "float32"}, FEW | {"dtype": "float32"}, "transpose_f32")
def transpose(make: Make, rows: int, columns: int, dtype: str) -> Launch:
    x = make.normal(rows, columns, dtype=dtype)
    return Launch([x, make.empty(columns, rows, dtype=dtype), rows, columns],
                  (cdiv(rows, 64), cdiv(columns, 64)), {"M": 64, "N": 64}, {1: lambda: x.T},
                  {"num_warps": 4})


@kind(MEMORY, {"ids": 32768, "words": 128256, "n": 4096}, {"ids": 9, "words": 20, "n": 200})
def embedding(make: Make, ids: int, words: int, n: int) -> Launch:
    index, table = make.ints(0, words, ids), make.normal(words, n, dtype="bfloat16")
    return Launch([index, table, make.empty(ids, n, dtype="bfloat16"), ids, n],
                  (cdiv(ids, 4), cdiv(n, 1024)), {"IDS": 4, "BLOCK": 1024},
                  {2: lambda: table[index.long()]}, {"num_warps": 4})


@kind(MEMORY, {"ids": 16384, "words": 32000, "n": 4096}, {"ids": 9, "words": 5, "n": 200})
def embedding_backward(make: Make, ids: int, words: int, n: int) -> Launch:
    index, dy = make.ints(0, words, ids), make.normal(ids, n, dtype="bfloat16")
    table = make.zeros(words, n)
    return Launch([dy, index, table, ids, n], (cdiv(ids, 4), cdiv(n, 1024)),
                  {"IDS": 4, "BLOCK": 1024},
                  {2: lambda: table.double().index_add_(0, index.long(), dy.double())},
                  {"num_warps": 4})


@kind(MEMORY, {"tokens": 8192, "n": 1024, "slots": 65536}, {"tokens": 9, "n": 40, "slots": 32})
def kv_write(make: Make, tokens: int, n: int, slots: int) -> Launch:
    torch = make.torch
    k, v = (make.normal(tokens, n, dtype="bfloat16") for _ in range(2))
    where = torch.randperm(slots, device=make.device)[:tokens]
    where[::8] = -1
    caches = [make.zeros(slots, n, dtype="bfloat16") for _ in range(2)]

    def wanted(new, cache):
        kept = where >= 0
        return cache.double().index_copy_(0, where[kept], new[kept].double())

    return Launch([k, v, *caches, where, n, 16], (tokens,), {"BLOCK": power_of_two(n)},
                  {2: lambda: wanted(k, caches[0]), 3: lambda: wanted(v, caches[1])},
                  {"num_warps": 4})


@kind(MEMORY, {"parts": 1024, "most": 1024, "n": 128}, {"parts": 5, "most": 90, "n": 50})
def jagged_sum(make: Make, parts: int, most: int, n: int) -> Launch:
    lengths = [(i * 7919) % most for i in range(parts)]
    starts = [sum(lengths[:i]) for i in range(parts + 1)]
    x = make.normal(starts[-1], n)

    def wanted():
        return make.torch.stack([x[start:start + length].double().sum(0)
                                 for start, length in zip(starts, lengths)])

    return Launch([x, make.given(starts), make.empty(parts, n), n], (parts, cdiv(n, 64)),
                  {"ROWS": 32, "COLUMNS": 64}, {2: wanted}, {"num_warps": 4})


@kind(MEMORY, {"n": 1 << 26, "bins": 256}, {"n": 4096, "bins": 16}, "histogram_256")
@kind(MEMORY, {"n": 1 << 26, "bins": 4096}, {"n": 8192, "bins": 64}, "histogram_4096")
def histogram(make: Make, n: int, bins: int) -> Launch:
    x = make.ints(0, bins, n)
    return Launch([x, make.zeros(bins, dtype="int32"), n], (n // 4096,),
                  {"BINS": bins, "BLOCK": 4096},
                  {1: lambda: make.torch.bincount(x, minlength=bins)}, {"num_warps": 8})


@kind(MEMORY, {"heads": 64, "rows": 8192, "d": 128}, {"heads": 2, "rows": 100, "d": 32})
def quantise_int8(make: Make, heads: int, rows: int, d: int) -> Launch:
    x, blocks = make.normal(heads, rows, d, dtype="float16"), cdiv(rows, 128)

    def scale():
        wide = make.torch.zeros(heads, blocks * 128, d, dtype=make.torch.float64, device=x.device)
        wide[:, :rows] = x
        return wide.abs().reshape(heads, blocks, -1).amax(2) / 127 + 1e-8

    def wanted():
        q = x.double() / scale().repeat_interleave(128, 1)[:, :rows, None]
        return q.abs().add(0.5).floor() * q.sign()

    # a quotient at a half may fall on either side: one step
    return Launch([x, make.empty(heads, rows, d, dtype="int8"), make.empty(heads, blocks), rows],
                  (blocks, heads), {"ROWS": 128, "D": d}, {1: wanted, 2: scale},
                  {"num_warps": 4}, {1: 1})


@kind(MEMORY, {"rows": 8192, "n": 4096}, {"rows": 5, "n": 200})
def quantise_fp8(make: Make, rows: int, n: int) -> Launch:
    x = make.normal(rows, n, dtype="bfloat16")

    def scale():
        return x.double().abs().amax(1) / 448

    # to nearest: 3 bits after the first
    return Launch([x, make.empty(rows, n, dtype="float8_e4m3fn"), make.empty(rows), n], (rows,),
                  {"BLOCK": power_of_two(n)}, {1: lambda: x.double() / scale()[:, None],
                                               2: scale},
                  {"num_warps": row_warps(power_of_two(n))}, {1: 2 ** -4 + 1e-5})


@kind(MEMORY, {"rows": 16384, "n": 8192}, {"rows": 256, "n": 64})
def dequantise_int4(make: Make, rows: int, n: int, group: int = 128) -> Launch:
    torch = make.torch
    q = make.ints(-(1 << 31), (1 << 31) - 1, rows // 8, n)
    scale = (make.normal(rows // group, n).abs() * 0.01).to(torch.float16)
    zero = (scale * 8).to(torch.float16)

    def wanted():
        four = torch.stack([(q >> (4 * i)) & 15 for i in range(8)], 1).reshape(rows, n)
        wide = (values.double().repeat_interleave(group, 0) for values in (scale, zero))
        return four * next(wide) - next(wide)

    return Launch([q, scale, zero, make.empty(rows, n, dtype="float16"), n, group],
                  (rows // 64, n // 64), {"ROWS": 64, "COLUMNS": 64}, {3: wanted},
                  {"num_warps": 4})


@kind(MEMORY, {"rows": 8192, "n": 8192}, {"rows": 3, "n": 300})
def cumsum(make: Make, rows: int, n: int) -> Launch:
    x = make.normal(rows, n)
    return Launch([x, make.empty(rows, n), n], (rows,), {"BLOCK": power_of_two(n)},
                  {1: lambda: x.double().cumsum(1)}, {"num_warps": row_warps(n)})


@kind(MEMORY, {"rows": 16384, "n": 1024}, {"rows": 3, "n": 100})
def sort(make: Make, rows: int, n: int) -> Launch:
    x = make.normal(rows, n)
    return Launch([x, make.empty(rows, n), n], (rows,), {"BLOCK": power_of_two(n)},
                  {1: lambda: x.sort(1)[0]}, {"num_warps": 4}, {1: 1e-12})


@kind(MEMORY, {"rows": 16384, "n": 4096, "top": 64}, {"rows": 3, "n": 200, "top": 8})
def topk(make: Make, rows: int, n: int, top: int) -> Launch:
    x = make.normal(rows, n)
    return Launch([x, make.empty(rows, top), n], (rows,),
                  {"TOP": top, "BLOCK": power_of_two(n)}, {1: lambda: x.topk(top, 1)[0]},
                  {"num_warps": 8}, {1: 1e-12})


@kind(MEMORY, {"lines": 2048, "most": 16, "side": 64}, {"lines": 3, "most": 4, "side": 16})
def block_softmax(make: Make, lines: int, most: int, side: int) -> Launch:
    lengths = [1 + (i * 7919) % most for i in range(lines)]
    starts = [sum(lengths[:i]) for i in range(lines + 1)]
    x, scale = make.normal(starts[-1], side, side, dtype="float16"), 0.25

    def wanted():
        parts = []
        for start, length in zip(starts, lengths):
            row = x[start:start + length].double().mul(scale).transpose(0, 1)
            soft = row.reshape(side, -1).softmax(1).reshape(side, length, side)
            parts.append(soft.transpose(0, 1))
        return make.torch.cat(parts)

    return Launch([x, make.given(starts), make.empty(starts[-1], side, side, dtype="float16"),
                   scale], (lines, side), {"SIDE": side, "MOST": most}, {2: wanted},
                  {"num_warps": 4})

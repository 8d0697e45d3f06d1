"""Kinds of kinds_kernels_dots.py: their launches, and what must come out."""

from __future__ import annotations

from kinds_case import DOTS, Launch, Make, cdiv, kind

BIG_TILE = {"M": 128, "N": 256, "K": 64}
TILE = {"M": 128, "N": 128, "K": 32}
SMALL = {"m": 70, "n": 90, "k": 100}


@kind(DOTS, {"m": 4096, "n": 4096, "k": 4096}, SMALL, "gemm_4096")
@kind(DOTS, {"m": 4000, "n": 4096, "k": 4096}, SMALL, "gemm_4000")
def gemm(make: Make, m: int, n: int, k: int) -> Launch:
    a, b = make.normal(m, k, dtype="float16"), make.normal(k, n, dtype="float16")
    c = make.empty(m, n, dtype="float16")
    return Launch([a, b, c, m, n, k, k, 1, n, 1, n, 1], (cdiv(m, 128) * cdiv(n, 256),),
                  {**BIG_TILE, "GROUP": 8}, {2: lambda: a.double() @ b.double()},
                  {"num_warps": 8, "num_stages": 3})


@kind(DOTS, {"m": 4096, "n": 4096, "k": 4096}, SMALL)
def gemm_masked(make: Make, m: int, n: int, k: int) -> Launch:
    a, b = make.normal(m, k, dtype="bfloat16"), make.normal(k, n, dtype="bfloat16")
    return Launch([a, b, make.empty(m, n, dtype="bfloat16"), m, n, k],
                  (cdiv(m, 128), cdiv(n, 128)), TILE, {2: lambda: a.double() @ b.double()},
                  {"num_warps": 4, "num_stages": 4})


@kind(DOTS, {"rank": 16, "rows": 8192, "width": 4096}, {"rank": 16, "rows": 50, "width": 100},
      "lora_down", "gemm_masked")
def lora_down(make: Make, rank: int, rows: int, width: int) -> Launch:
    x, a = make.normal(rows, width, dtype="bfloat16"), make.normal(width, rank, dtype="bfloat16")
    return Launch([x, a, make.empty(rows, rank, dtype="bfloat16"), rows, rank, width],
                  (cdiv(rows, 64), 1), {"M": 64, "N": 16, "K": 64},
                  {2: lambda: x.double() @ a.double()}, {"num_warps": 4, "num_stages": 4})


@kind(DOTS, {"rank": 16, "rows": 8192, "width": 4096}, {"rank": 16, "rows": 50, "width": 100},
      "lora_up", "gemm_masked")
def lora_up(make: Make, rank: int, rows: int, width: int) -> Launch:
    x, b = make.normal(rows, rank, dtype="bfloat16"), make.normal(rank, width, dtype="bfloat16")
    return Launch([x, b, make.empty(rows, width, dtype="bfloat16"), rows, width, rank],
                  (cdiv(rows, 64), cdiv(width, 128)), {"M": 64, "N": 128, "K": 16},
                  {2: lambda: x.double() @ b.double()}, {"num_warps": 4, "num_stages": 2})


@kind(DOTS, {"batch": 64, "m": 512, "n": 512, "k": 512}, {"batch": 2} | SMALL)
def gemm_batched(make: Make, batch: int, m: int, n: int, k: int) -> Launch:
    a = make.normal(batch, m, k, dtype="float16")
    b = make.normal(batch, k, n, dtype="float16")
    return Launch([a, b, make.empty(batch, m, n, dtype="float16"), m, n, k],
                  (cdiv(m, 128), cdiv(n, 128), batch), TILE,
                  {2: lambda: a.double() @ b.double()}, {"num_warps": 4, "num_stages": 4})


@kind(DOTS, {"counts": (512, 4096, 1000, 2048, 3000, 700, 1536, 2500), "n": 4096, "k": 4096,
             "programs": 132}, {"counts": (5, 140, 60), "n": 128, "k": 64, "programs": 2})
def gemm_grouped(make: Make, counts: tuple[int, ...], n: int, k: int, programs: int) -> Launch:
    starts = [sum(counts[:i]) for i in range(len(counts) + 1)]
    a = make.normal(starts[-1], k, dtype="float16")
    b = make.normal(len(counts), k, n, dtype="float16")

    def wanted():
        return make.torch.cat([a[start:start + count].double() @ b[i].double()
                               for i, (start, count) in enumerate(zip(starts, counts))])

    return Launch([a, b, make.empty(starts[-1], n, dtype="float16"), make.given(starts),
                   len(counts), n, k], (programs,), TILE, {2: wanted},
                  {"num_warps": 4, "num_stages": 4})


@kind(DOTS, {"m": 8192, "n": 8192, "k": 8192}, SMALL)
def gemm_int8(make: Make, m: int, n: int, k: int) -> Launch:
    a, b = make.ints(-128, 128, m, k, dtype="int8"), make.ints(-128, 128, n, k, dtype="int8")
    rows, columns = (make.normal(size).abs() / 128 / k ** 0.5 for size in (m, n))

    def wanted():
        return (a.double() @ b.double().T) * rows.double()[:, None] * columns.double()

    return Launch([a, b, make.empty(m, n, dtype="float16"), rows, columns, m, n, k],
                  (cdiv(m, 128), cdiv(n, 128)), {"M": 128, "N": 128, "K": 64}, {2: wanted},
                  {"num_warps": 4, "num_stages": 4})


@kind(DOTS, {"m": 16, "n": 8192, "k": 16384}, {"m": 16, "n": 128, "k": 1024}, "gemm_int4_16")
@kind(DOTS, {"m": 32, "n": 8192, "k": 16384}, {"m": 20, "n": 128, "k": 1024}, "gemm_int4_32")
def gemm_int4(make: Make, m: int, n: int, k: int, group: int = 128, split: int = 4) -> Launch:
    torch = make.torch
    a = make.normal(m, k, dtype="float16", scale=0.1)
    q = make.ints(-(1 << 31), (1 << 31) - 1, k // 8, n, dtype="int32")
    scale = (make.normal(k // group, n).abs() * 0.01).to(torch.float16)
    zero = (scale * 8).to(torch.float16)

    def wanted():
        four = torch.stack([(q >> (4 * i)) & 15 for i in range(8)], 1).reshape(k, n)
        wide = (values.double().repeat_interleave(group, 0) for values in (scale, zero))
        return a.double() @ (four.double() * next(wide) - next(wide))

    # weights and parts of sums are rounded to float16
    return Launch([a, q, scale, zero, make.zeros(m, n, dtype="float16"), m, n, k, group],
                  (cdiv(m, 16), n // 64, split), {"M": 16, "N": 64, "K": 128, "SPLIT": split},
                  {4: wanted}, {"num_warps": 4, "num_stages": 3}, {4: 6e-3})


@kind(DOTS, {"m": 64, "n": 16384, "k": 8192}, {"m": 50, "n": 256, "k": 1024})
def gemm_fp8(make: Make, m: int, n: int, k: int, split: int = 4) -> Launch:
    a, b = make.normal(m, k, dtype="float8_e4m3fn"), make.normal(n, k, dtype="float8_e4m3fn")
    # tensor cores keep 13 bits of sums of 8-bit floats
    return Launch([a, b, make.zeros(m, n, dtype="float16"), m, n, k, 0.125],
                  (cdiv(m, 64), cdiv(n, 64), split), {"M": 64, "N": 64, "K": 128, "SPLIT": split},
                  {2: lambda: a.double() @ b.double().T / 8}, {"num_warps": 4, "num_stages": 3},
                  {2: 1e-2})


@kind(DOTS, {"images": 32, "channels": 128, "size": 56, "features": 128},
      {"images": 2, "channels": 40, "size": 9, "features": 50})
def conv2d(make: Make, images: int, channels: int, size: int, features: int) -> Launch:
    x = make.normal(images, channels, size, size, dtype="float16")
    w = make.normal(features, channels, 3, 3, dtype="float16")
    return Launch(
        [x, w, make.empty(images, features, size, size, dtype="float16"), images, channels, size,
         size, features], (cdiv(images * size * size, 128), cdiv(features, 64)),
        {"M": 128, "N": 64, "K": 32},
        {2: lambda: make.torch.nn.functional.conv2d(x.double(), w.double(), padding=1)},
        {"num_warps": 4, "num_stages": 3})

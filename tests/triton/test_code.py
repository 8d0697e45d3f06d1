"""Machine code of kernels in Triton's dialect, for sm_90a, without a GPU."""

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl


@triton.jit
def gemm(a, b, c, K, stride_a, stride_b, stride_c, M: tl.constexpr, N: tl.constexpr,
         BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tile = tl.program_id(axis=0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = tile // (GROUP * tiles_n) * GROUP
    size = min(tiles_m - first, GROUP)
    m = first + tile % (GROUP * tiles_n) % size
    n = tile % (GROUP * tiles_n) // size
    rows = (m * BM + tl.arange(0, BM)) % M
    columns = (n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a_pointers = a + rows[:, None] * stride_a + k[None, :]
    b_pointers = b + k[:, None] * stride_b + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(a_pointers, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(b_pointers, mask=k[:, None] < K - step * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        a_pointers += BK
        b_pointers += BK * stride_b
    rows, columns = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN)
    out = c + stride_c * rows[:, None] + columns[None, :]
    tl.store(out, acc.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def test_operands_that_wrap_around_come_in_wide_pieces_ahead_of_their_products():
    signature = ", ".join(["*fp16:16"] * 3 + ["i32:16"] * 4)
    constants = {"M": 4096, "N": 4096, "BM": 128, "BN": 128, "BK": 64, "GROUP": 8}
    compiled = bn.compile(gemm, signature, constants, target="sm_90a", num_warps=4, num_stages=3)
    assert "wgmma.mma_async" in compiled.asm["ptx"]
    loads = [access for access in compiled.stats.accesses if access.kind == "load"]
    assert len(loads) == 2
    for load in loads:
        assert load.way == "TMA" or (load.way, load.width_bytes) == ("asynchronous", 16)

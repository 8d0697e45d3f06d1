"""Kernels of Triton's dialect without TMA, where the same addresses in bn had it."""

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl


@triton.jit
def grouped_matmul(a, b, c, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    program, across = tl.program_id(axis=0), tl.cdiv(N, BN)
    per_group = GROUP * across
    first = program // per_group * GROUP
    size = min(tl.cdiv(M, BM) - first, GROUP)
    rows = (first + program % per_group % size) * BM + tl.arange(0, BM)
    columns = program % per_group // size * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_pointers = a + rows[:, None] * stride_a + depth[None, :]
    b_pointers = b + depth[:, None] * stride_b + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        x = tl.load(a_pointers, mask=(rows[:, None] < M) & (depth[None, :] < left), other=0.0)
        y = tl.load(b_pointers, mask=(depth[:, None] < left) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a_pointers += BK
        b_pointers += BK * stride_b
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], acc.to(tl.float16), mask=inside)


def test_tma_fetches_tiles_whose_program_is_found_by_truncating_division():
    compiled = bn.compile(grouped_matmul, ("*fp16:16",) * 3 + ("i32:16",) * 6,
                          {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8}, target="sm_90a",
                          num_warps=8)

    assert [access.way for access in compiled.stats.accesses] == ["TMA"] * 3

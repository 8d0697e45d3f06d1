"""Positions that wrap around, as in Triton's tutorial: fetched where no tile does in its midst."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
import blocknumba.language as tl

TILE = {"BM": 64, "BN": 64, "BK": 64, "GROUP": 2, "num_warps": 4}


@bn.jit
def product(x, w, out, M, N, K, stride_x, stride_w, stride_out, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr, GROUP: tl.constexpr):
    """out = x @ w; loads are masked along K alone."""
    pid, rows, columns = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * columns) * GROUP
    pid_m = first + pid % (GROUP * columns) % min(rows - first, GROUP)
    pid_n = pid % (GROUP * columns) // min(rows - first, GROUP)
    m = (pid_m * BM + tl.arange(0, BM)) % M
    n = (pid_n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    x_ptrs = x + (m[:, None] * stride_x + k[None, :])
    w_ptrs = w + (k[:, None] * stride_w + n[None, :])
    sums = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        inside = k < K - step * BK
        a = tl.load(x_ptrs, mask=inside[None, :], other=0.0)
        sums = tl.dot(a, tl.load(w_ptrs, mask=inside[:, None], other=0.0), sums)
        x_ptrs += BK
        w_ptrs += BK * stride_w
    m, n = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    tl.store(out + stride_out * m[:, None] + n[None, :], sums,
             mask=(m[:, None] < M) & (n[None, :] < N))


def launched(M, N, K):
    """What the kernel makes of random matrices; what it should; the code."""
    generator = np.random.default_rng(M + N + K)
    x, w = (generator.standard_normal(s).astype(np.float16) for s in ((M, K), (K, N)))
    out = np.full((M, N), np.nan, np.float32)
    grid = bn.cdiv(M, TILE["BM"]) * bn.cdiv(N, TILE["BN"])
    compiled = emulated_gpu.launch(product, grid, (x, w, out, M, N, K, K, N, N), TILE)
    return out, x.astype(np.float64) @ w, compiled


def reasons(compiled):
    """Per array, why it is not fetched, if so."""
    return {access.array: access.reasons[0] if access.reasons else access.way
            for access in compiled.stats.accesses}


BOTH = "TMA cannot fetch the other operand of its dot, and threads can copy both"
NOTHING = "nothing is fetched in a loop"


def wraps(name):
    return (f"an index wraps around (% {name}), and {name} is not known to be a multiple of 64: "
            f"use a mask (< {name})")


@pytest.mark.parametrize("M, N, K, not_fetched", [
    (192, 128, 136, {}), (64, 64, 64, {}), (100, 128, 136, {"x": "M"}), (128, 72, 64, {"w": "N"})])
def test_whole_tiles_are_fetched_and_others_say_why_not(M, N, K, not_fetched):
    out, expected, compiled = launched(M, N, K)

    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-3)
    # threads that copy one operand copy the other one too
    both = dict.fromkeys("xw", BOTH) | {"out": NOTHING} if not_fetched else {}
    assert reasons(compiled) == {"x": "TMA", "w": "TMA", "out": "TMA"} | both | {
        array: wraps(name) for array, name in not_fetched.items()}


def test_where_every_tile_may_wrap_around_the_product_is_right_all_the_same():
    out, expected, _ = launched(40, 24, 72)

    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-3)

"""Spans of arrays of which one index is taken along other axes: TMA fetches them."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

TILE = {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4}
M, N, K = 100, 72, 136  # tiles hang over the end of each axis


def constant_first(x, w, out, at, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, sums = bn.block(0, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(x.shape[2], BK):
        sums += x[0, m, k] @ w[k, n]
    out[m, n] = sums


def later_constant_first(x, w, out, at, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, sums = bn.block(0, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(x.shape[2], BK):
        sums += x[2, m, k] @ w[k, n]
    out[m, n] = sums


def number_first(x, w, out, at, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, sums = bn.block(0, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(x.shape[2], BK):
        sums += x[at, m, k] @ w[k, n]
    out[m, n] = sums


def number_between(x, w, out, at, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, sums = bn.block(0, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(x.shape[2], BK):
        sums += x[m, at, k] @ w[k, n]
    out[m, n] = sums


def constant_between(x, w, out, at, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, sums = bn.block(0, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(x.shape[2], BK):
        sums += x[m, 0, k] @ w[k, n]
    out[m, n] = sums


def view_first(x, w, out, at, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, sums = bn.block(0, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(x.shape[2], BK):
        sums += x[at][m, k] @ w[k, n]
    out[m, n] = sums


def two_numbers(x, w, out, at, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, sums = bn.block(0, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(x.shape[3], BK):
        sums += x[0, at, m, k] @ w[k, n]
    out[m, n] = sums


def program_and_constant(x, w, out, at, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, sums = bn.block(0, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(x.shape[3], BK):
        sums += x[bn.program_id(2) + at, m, 1, k] @ w[k, n]
    out[m, n] = sums


def before_the_array(x, w, out, at, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, sums = bn.span(bn.program_id(0) * BM - 24, BM), bn.block(1, BN), bn.zeros((BM, BN))
    for k in bn.spans(x.shape[2], BK):
        sums += x[at, m, k] @ w[k, n]
    out[m + 24, n] = sums


# a kernel, the shape of x, and what it multiplies when the number is 1
SLICES = [
    (constant_first, (3, M, K), lambda x: x[0]),
    (later_constant_first, (3, M, K), lambda x: x[2]),
    (number_first, (3, M, K), lambda x: x[1]),
    (number_between, (M, 3, K), lambda x: x[:, 1]),
    (constant_between, (M, 3, K), lambda x: x[:, 0]),
    (view_first, (3, M, K), lambda x: x[1]),
    (two_numbers, (2, 3, M, K), lambda x: x[0, 1]),
    (program_and_constant, (3, M, 2, K), lambda x: x[1, :, 1]),
    (before_the_array, (3, M, K), lambda x: np.pad(x[1], ((24, 0), (0, 0)))[:M]),
]


def product(function, shape, at=1):
    """What a kernel makes of a random x and w; x and w; the code."""
    generator = np.random.default_rng(0)
    x, w = (generator.standard_normal(s).astype(np.float16) for s in (shape, (K, N)))
    out = np.full((M, N), np.nan, np.float32)
    grid = bn.cdiv(M, TILE["BM"]), bn.cdiv(N, TILE["BN"])
    compiled = emulated_gpu.launch(bn.jit(function), grid, (x, w, out, at), TILE)
    return out, x, w, compiled


def ways(compiled):
    """By whom loads and stores are done."""
    return {access.way for access in compiled.stats.accesses}


@pytest.mark.parametrize(("function", "shape", "taken"), SLICES,
                         ids=[function.__name__ for function, *_ in SLICES])
def test_a_slice_is_fetched_whichever_axis_one_index_is_taken_of(function, shape, taken):
    out, x, w, compiled = product(function, shape)

    np.testing.assert_allclose(out, taken(x.astype(np.float64)) @ w, rtol=0, atol=1e-3)
    assert ways(compiled) == {"TMA"}


@pytest.mark.parametrize("at", [-1, 3])
def test_a_slice_beyond_the_array_is_of_zeros(at):
    out, *_, compiled = product(number_first, (3, M, K), at)

    assert (out == 0).all()
    assert ways(compiled) == {"TMA"}

"""Warps that fetch decided by values that only the warps that compute know, in buffers of theirs.

What decides whether a tile is fetched may depend on elements, on what an atomic returns, or on an
array that the kernel writes: then all warps fetch. A division of such a value after the fetches was
kept in the warp that fetches, with all that it is made of.
"""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

M, N, K, DEPTH = 128, 64, 128, 64
MIDDLE = 288  # sums are above it as often as below


def product(a, b, sums):
    for k in bn.spans(a.shape[1], DEPTH):
        sums = bn.dot(a[bn.span(0, M), k], b[k, bn.span(0, N)], sums)
    return sums


def store(out, sums):
    out[bn.span(0, M), bn.span(0, N)] = sums


@bn.jit
def by_sums(a, b, x, out):
    sums = product(a, b, bn.zeros((M, N), bn.float32))
    if int(bn.count_nonzero(sums > MIDDLE)) % 2 == 1:
        sums = product(a, b, sums)
    store(out, sums)


@bn.jit
def by_tile(a, b, x, out):
    sums = bn.zeros((M, N), bn.float32)
    if int(bn.count_nonzero(x[bn.span(0, 512)])) % 2 == 1:
        sums = product(a, b, sums)
    store(out, sums)


@bn.jit
def by_atomic(a, b, x, out):
    sums = bn.zeros((M, N), bn.float32)
    if bn.atomic_add(x.at[0], 1) % 2 == 1:
        sums = product(a, b, sums)
    store(out, sums)


@bn.jit
def by_written(a, b, x, out):
    sums = product(a, b, bn.zeros((M, N), bn.float32))
    x[0] = x[0] + 1
    if x[0] % 2 == 1:
        sums = product(a, b, sums)
    store(out, sums)


@bn.jit
def divided_later(a, b, x, out):
    sums = product(a, b, bn.zeros((M, N), bn.float32))
    corner = bn.extract(sums, (0, 0), (16, 16))
    store(out, sums + int(bn.count_nonzero(corner > MIDDLE)) % 3)


KERNELS = {
    by_sums: "elements of tiles decide what is fetched",
    by_tile: "elements of tiles decide what is fetched",
    by_atomic: "the result of an atomic or another effect decides what is fetched",
    by_written: "what is fetched depends on an array that is written or volatile",
    divided_later: "",
}


def expected_of(kernel, product, x):
    if kernel is divided_later:
        return product + np.count_nonzero(product[:16, :16] > MIDDLE) % 3
    if kernel is by_sums:
        return product * (1 + np.count_nonzero(product > MIDDLE) % 2)
    if kernel is by_tile:
        return product * (np.count_nonzero(x) % 2)
    return product * (x[0] % 2 if kernel is by_atomic else 1 + (x[0] + 1) % 2)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("odd", [0, 1])
def test_all_warps_do_what_elements_decide(kernel, odd):
    random = np.random.default_rng()
    a, b = (random.integers(0, 4, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    x, out = np.zeros(512, np.int32), np.full((M, N), np.nan, np.float32)
    x[0] = odd
    expected = expected_of(kernel, a.astype(np.float64) @ b.astype(np.float64), x)

    emulated_gpu.launch(kernel, (1,), (a, b, x, out), dict(num_warps=4), "sm_90a")

    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_stats_say_why_threads_copy(kernel):
    signature = "f16[:,::1]:16, f16[:,::1]:16, i32[::1]:16, f32[:,::1]:16"

    compiled = bn.compile(kernel, signature, {}, target="sm_90a", num_warps=4)

    assert KERNELS[kernel] in str(compiled.stats)
    assert ("warp_roles" in compiled.asm["gpu"]) == (not KERNELS[kernel])

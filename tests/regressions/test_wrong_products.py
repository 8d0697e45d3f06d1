"""Products of matrices that once lost bits, elements, tails or sums."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from conftest import CPU, DEVICES, EMULATOR, Device

import blocknumba as bn

# sums in fragments of mma.sync on the older targets, of wgmma on sm_90a
OLDER = tuple(pytest.param(Device(EMULATOR, warps, target), id=f"{target}-{warps}-warps")
              for target, warps in (("sm_80", 4), ("sm_89", 1)))
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(params=(*DEVICES, *OLDER))
def device(request):
    """Every device, and targets whose products are made of other instructions."""
    return request.param


def integers(shape, dtype, low=-4, high=5, seed=0):
    """Small integers, of which all these dtypes hold sums of products exactly."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


@bn.jit
def product_in_steps(x, w, out, N: bn.constexpr, K: bn.constexpr, SUM: bn.constexpr,
                     PRECISION: bn.constexpr):
    rows = bn.span(0, N)
    acc = bn.zeros((N, N), SUM)
    for k in bn.spans(x.shape[1], K):
        acc = bn.dot(x[rows, k], w[k, rows], acc, precision=PRECISION)
    out[rows, rows] = acc


@pytest.mark.parametrize("step", [1, 32])
def test_sums_of_int8_have_all_their_bits(device, step):
    """ROCm/triton#958, triton-lang/triton PR#11282"""
    depth = 2052 if device.kind == CPU else 256
    x = np.full((32, depth), 127, np.int8)
    out = np.zeros((32, 32), np.int32)
    device.run(product_in_steps, 1, x, x.T.copy(), out, N=32, K=step, SUM=bn.int32,
               PRECISION="ieee")
    assert (out == depth * 127 * 127).all()


@pytest.mark.parametrize("step", [2, 16])
@pytest.mark.parametrize("dtype, sums, precision", [
    (np.float16, bn.float32, "ieee"), (BFLOAT16, bn.float32, "ieee"), (np.int8, bn.int32, "ieee"),
    (np.float32, bn.float32, "tf32"), (np.float32, bn.float32, "ieee"),
    (np.float64, bn.float64, "ieee")], ids=str)
def test_the_tail_of_a_depth_that_is_no_multiple_of_anything_counts(device, dtype, sums, precision,
                                                                    step):
    """tile-ai/tilelang#2381"""
    x, w = integers((16, 41), dtype), integers((41, 16), dtype, seed=1)
    out = np.zeros((16, 16), bn_dtype(sums))
    device.run(product_in_steps, 1, x, w, out, N=16, K=step, SUM=sums, PRECISION=precision)
    np.testing.assert_array_equal(out, x.astype(np.float64) @ w.astype(np.float64))


def bn_dtype(dtype):
    return np.dtype(getattr(dtype, "numpy", dtype))


@bn.jit
def chained(q, k, v, out, M: bn.constexpr, N: bn.constexpr, D: bn.constexpr, SUM: bn.constexpr,
            TURNED: bn.constexpr):
    rows, middle, columns = bn.span(0, M), bn.span(0, N), bn.span(0, D)
    scores = bn.dot(q[rows, columns], k[middle, columns].T, out_dtype=SUM).to(q.dtype)
    values = v[columns, middle].T if TURNED else v[middle, columns]
    out[rows, columns] = bn.dot(scores, values, out_dtype=SUM)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype, sums", [
    (np.int8, bn.int32), (np.float16, bn.float32), (BFLOAT16, bn.float32),
    (np.float32, bn.float32), (np.float64, bn.float64)], ids=str)
def test_a_product_is_the_first_operand_of_another(device, dtype, sums, turned):
    """triton-lang/triton#3580"""
    q, k = integers((32, 32), dtype, -1, 2), integers((64, 32), dtype, -1, 2, seed=1)
    v = integers((64, 32), dtype, seed=2)
    out = np.zeros((32, 32), bn_dtype(sums))
    device.run(chained, 1, q, k, np.ascontiguousarray(v.T) if turned else v, out, M=32, N=64, D=32,
               SUM=sums, TURNED=turned)
    exact = [x.astype(np.int64) for x in (q, k, v)]
    np.testing.assert_array_equal(out, exact[0] @ exact[1].T @ exact[2])


@bn.jit
def two_products(a1, b1, a2, b2, out, other, N: bn.constexpr, K: bn.constexpr):
    rows = bn.span(0, N)
    acc, second = bn.zeros((N, N), bn.float32), bn.zeros((N, N), bn.float32)
    for k in bn.spans(a1.shape[1], K):
        acc = bn.dot(a1[rows, k], b1[k, rows], acc)
        acc = bn.dot(a2[rows, k], b2[k, rows], acc)
        second = bn.dot(a1[rows, k], b2[k, rows], second)
    out[rows, rows] = acc
    other[rows, rows] = second


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_two_products_feed_one_accumulator(device, dtype):
    """triton-lang/triton#10821"""
    a1, a2 = (integers((64, 64), dtype, seed=i) for i in (1, 2))
    b1, b2 = (integers((64, 64), dtype, seed=i) for i in (3, 4))
    out, other = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    device.run(two_products, 1, a1, b1, a2, b2, out, other, N=64, K=16)
    wide = [x.astype(np.float32) for x in (a1, b1, a2, b2)]
    np.testing.assert_array_equal(out, wide[0] @ wide[1] + wide[2] @ wide[3])
    np.testing.assert_array_equal(other, wide[0] @ wide[3])


@bn.jit
def product_of_flat(x, w, out):
    a = bn.reshape(x[bn.span(0, 1024)], (32, 32))
    b = bn.reshape(w[bn.span(0, 1024)], (32, 32))
    out[bn.span(0, 32), bn.span(0, 32)] = bn.dot(a, b)


def test_operands_are_reshaped_from_one_axis(device):
    """tile-ai/tilelang#3012"""
    x, w = integers(1024, np.float16), integers(1024, np.float16, seed=1)
    out = np.zeros((32, 32), np.float32)
    device.run(product_of_flat, 1, x, w, out)
    np.testing.assert_array_equal(
        out, x.reshape(32, 32).astype(np.float32) @ w.reshape(32, 32).astype(np.float32))


@bn.jit
def used_again(x, w, out, copy, turned, sums):
    r = bn.span(0, 32)
    a = x[r, r]
    out[r, r] = bn.dot(a, w[r, r])
    copy[r, r] = a
    turned[r, r] = a.T
    sums[r] = bn.sum(a.to(bn.float32), axis=1)


def test_an_operand_is_what_it_was_for_others_too(device):
    """tile-ai/tilelang#2954"""
    x, w = integers((32, 32), np.float16), integers((32, 32), np.float16, seed=1)
    out, sums = np.zeros((32, 32), np.float32), np.zeros(32, np.float32)
    copy, turned = np.zeros_like(x), np.zeros_like(x)
    device.run(used_again, 1, x, w, out, copy, turned, sums)
    np.testing.assert_array_equal(out, x.astype(np.float32) @ w.astype(np.float32))
    np.testing.assert_array_equal(copy, x)
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_array_equal(sums, x.astype(np.float32).sum(1))


@bn.jit
def nearest(points, centers, out, counts, N: bn.constexpr, C: bn.constexpr, D: bn.constexpr):
    p, c, d = bn.span(0, N), bn.span(0, C), bn.span(0, D)
    chosen = bn.argmin(bn.dot(points[p, d], centers[c, d].T), axis=1)
    out[p] = chosen
    counts[c] = bn.sum((chosen[:, None] == c.index[None, :]).to(bn.int32), axis=0)


def test_what_is_found_in_sums_is_counted_once(device):
    """triton: histogram of argmin of a product"""
    points = np.random.default_rng(0).standard_normal((64, 16)).astype(np.float16)
    centers = np.random.default_rng(1).standard_normal((16, 16)).astype(np.float16)
    out, counts = np.zeros(64, np.int32), np.zeros(16, np.int32)
    device.run(nearest, 1, points, centers, out, counts, N=64, C=16, D=16)
    expected = (points.astype(np.float64) @ centers.astype(np.float64).T).argmin(1)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(counts, np.bincount(expected, minlength=16))


@bn.jit
def strided_product(x, w, out, M: bn.constexpr, N: bn.constexpr, K: bn.constexpr):
    m, n = bn.block(0, M), bn.block(1, N)
    acc = bn.zeros((M, N), bn.float32)
    for k in bn.spans(x.shape[1], K):
        acc += x[m, k] @ w[k, n]
    out[m, n] = acc


VIEWS = {
    "C order": lambda a: np.ascontiguousarray(a), "Fortran order": lambda a: np.asfortranarray(a),
    "every second row": lambda a: np.repeat(a, 2, 0)[::2],
    "every third column": lambda a: np.repeat(a, 3, 1)[:, ::3],
    "backwards": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "not aligned": lambda a: np.pad(a, ((0, 0), (1, 2)))[:, 1:-2]}


@pytest.mark.parametrize("first, second", [
    *product(("C order",), VIEWS), *product(("Fortran order", "not aligned"), ("Fortran order",)),
    ("backwards", "every second row")], ids=str)
def test_operands_of_any_strides(device, first, second):
    """L01: any array, however it lies in memory"""
    x = VIEWS[first](integers((40, 24), np.float16))
    w = VIEWS[second](integers((24, 36), np.float16, seed=1))
    out = np.zeros((40, 36), np.float32)
    device.run(strided_product, (2, 3), x, w, out, M=32, N=16, K=16)
    np.testing.assert_array_equal(out, x.astype(np.float32) @ w.astype(np.float32))


def test_a_block_full_of_warps_has_none_that_only_fetch():
    """kinds.py at 32 warps: CUDA_ERROR_INVALID_VALUE, as TMA's warp was the 33rd."""
    x, w = integers((64, 64), np.float16), integers((64, 64), np.float16, seed=1)
    out = np.zeros((64, 64), np.float32)
    Device(EMULATOR, 32, "sm_90a").run(strided_product, (1, 1), x, w, out, M=64, N=64, K=32)
    np.testing.assert_array_equal(out, x.astype(np.float32) @ w.astype(np.float32))

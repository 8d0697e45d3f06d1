"""Products in kernels on the CPU device: operands in arrays, in buffers, behind masks."""

from __future__ import annotations

import re

import numpy as np
import pytest

import blocknumba as bn

from native_kernels import NativeKernel

TILE = {"BM": 32, "BN": 32, "BK": 16}


@bn.jit
def matmul(x, w, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN), out.dtype)
    for k in bn.spans(x.shape[1], BK):
        sums += x[m, k] @ w[k, n]
    out[m, n] = sums


@bn.jit
def batched(x, w, out, B: bn.constexpr, N: bn.constexpr):
    b, r = bn.block(0, B), bn.span(0, N)
    out[b, r, r] = x[b, r, r] @ w[r, r]


@bn.jit
def small_products(x, w, out, B: bn.constexpr, N: bn.constexpr):
    b, r = bn.block(0, B), bn.span(0, N)
    out[b, r, r] = x[b, r, r] @ w[b, r, r]


@bn.jit
def gram(x, out, N: bn.constexpr):
    r = bn.span(0, N)
    tile = x[r, r]
    out[r, r] = tile @ tile.T


@bn.jit
def overwritten(x, out, N: bn.constexpr):
    r = bn.span(0, N)
    before = x[r, r]
    x[r, r] = bn.zeros((N, N))
    out[r, r] = bn.dot(before, before)


@bn.jit
def running(x, out, N: bn.constexpr, STEPS: bn.constexpr):
    r = bn.span(0, N)
    sums = bn.zeros((N, N))
    for step in range(STEPS):
        before = sums
        sums = bn.dot(x[r, r], x[r, r], sums)
        out[step, r, r] = sums - before * 2


@bn.jit
def attention(q, k, v, out, M: bn.constexpr, D: bn.constexpr):
    m, d = bn.span(0, M), bn.span(0, D)
    scores = q[m, d] @ k[m, d].T
    weights = bn.exp(scores - bn.max(scores, axis=1)[:, None])
    out[m, d] = (weights @ v[m, d]) / bn.sum(weights, axis=1)[:, None]


def normal(*shape: int, dtype: str = "float32", order: str = "C") -> np.ndarray:
    """Random numbers around 0, in an order of memory."""
    return np.asarray(np.random.default_rng().standard_normal(shape), dtype, order=order)


def poisoned(*shape: int, dtype: str = "float32") -> np.ndarray:
    """An array whose elements are all NaN."""
    return np.full(shape, np.nan, dtype)


@pytest.mark.parametrize("dtype, short", [("float32", "f32"), ("float64", "f64"),
                                          ("float16", "f16")])
def test_arrays_of_any_extents_and_orders_are_multiplied(dtype, short):
    sums = "float64" if dtype == "float64" else "float32"
    native = NativeKernel(matmul, (f"{short}[:,:]", f"{short}[:,:]",
                                   "f64[:,:]" if sums == "float64" else "f32[:,:]"), TILE)
    for (m, k, n), order in (((64, 48, 96), "C"), ((70, 33, 45), "F"), ((1, 1, 1), "C"),
                             ((31, 16, 5), "C")):
        x, w = normal(m, k, dtype=dtype, order=order), normal(k, n, dtype=dtype, order=order)
        out = poisoned(m, n, dtype=sums)

        native.run((bn.cdiv(m, 32), bn.cdiv(n, 32)), x=x, w=w, out=out)

        exact = x.astype(np.longdouble) @ w.astype(np.longdouble)
        bound = (k + 2) * np.finfo(sums).eps * (np.abs(x.astype(float)) @ np.abs(w.astype(float)))
        assert (np.abs(out - exact) <= bound).all()


def test_what_a_mask_cuts_off_is_not_read():
    native = NativeKernel(matmul, ("f32[:,:]", "f32[:,:]", "f32[:,:]"), TILE)
    around_x, around_w = poisoned(80, 80), poisoned(80, 80)
    x, w = around_x[:40, :23], around_w[:23, :50]
    x[...], w[...] = normal(40, 23), normal(23, 50)
    out = poisoned(40, 50)

    native.run((2, 2), x=x, w=w, out=out)

    np.testing.assert_allclose(out, x.astype(float) @ w, atol=1e-4)


def test_operands_without_masks_are_read_in_their_arrays():
    native = NativeKernel(matmul, ("f32[:,::1]", "f32[:,::1]", "f32[:,::1]"), TILE)

    calls = re.findall(r"call void @bn\.dot.*", native.lowered.llvm_ir)

    in_arrays = [call for call in calls if re.search(r"ptr (%\w+), i64 0, i64 %", call)]
    assert in_arrays and len(in_arrays) < len(calls)  # the others are of masked programs


def test_a_matrix_is_broadcast_along_the_batch():
    x, w, out = normal(4, 8, 8), normal(8, 8), poisoned(4, 8, 8)

    NativeKernel(batched, ("f32[:,:,:]", "f32[:,:]", "f32[:,:,:]"), {"B": 2, "N": 8}).run(
        (2,), x=x, w=w, out=out)

    np.testing.assert_allclose(out, x.astype(float) @ w, atol=1e-5)


def test_small_products_are_added_to_rows_that_are_cleared_together():
    x, w, out = normal(70, 16, 16), normal(70, 16, 16), poisoned(70, 16, 16)
    native = NativeKernel(small_products, ("f32[:,:,::1]",) * 3, {"B": 64, "N": 16})

    native.run((2,), x=x, w=w, out=out)

    np.testing.assert_allclose(out, x.astype(float) @ w, atol=1e-4)
    assert "scatter" not in native.lowered.llvm_ir


def test_a_tile_is_multiplied_by_its_transpose():
    x, out = normal(32, 32), poisoned(32, 32)

    NativeKernel(gram, ("f32[:,:]", "f32[:,:]"), {"N": 32}).run((1,), x=x, out=out)

    np.testing.assert_allclose(out, x.astype(float) @ x.T, atol=1e-4)


def test_an_operand_is_what_was_loaded_even_if_the_array_changes_before_the_product():
    x, out = normal(16, 16), poisoned(16, 16)
    expected = x.astype(float) @ x

    NativeKernel(overwritten, ("f32[:,:]", "f32[:,:]"), {"N": 16}).run((1,), x=x, out=out)

    np.testing.assert_allclose(out, expected, atol=1e-5)
    assert not x.any()


def test_sums_that_are_read_again_are_not_overwritten():
    x, out = normal(16, 16), poisoned(3, 16, 16)

    NativeKernel(running, ("f32[:,:]", "f32[:,:,:]"), {"N": 16, "STEPS": 3}).run(
        (1,), x=x, out=out)

    square = x.astype(float) @ x
    expected = [(step + 1) * square - 2 * step * square for step in range(3)]
    np.testing.assert_allclose(out, expected, atol=1e-4)


def test_a_computed_tile_is_an_operand():
    q, k, v, out = (normal(32, 16) for _ in range(4))

    NativeKernel(attention, ("f32[:,:]",) * 4, {"M": 32, "D": 16}).run(
        (1,), q=q, k=k, v=v, out=out)

    scores = np.exp(q.astype(float) @ k.T)
    np.testing.assert_allclose(out, scores @ v / scores.sum(1, keepdims=True), atol=1e-5)

"""Elements of tf32 dots by mma.sync are rounded once where TMA fetches them."""

from __future__ import annotations

import emulated_gpu
import numpy as np

import blocknumba as bn
from blocknumba.gpu_layout.async_copies import specialize_warps

FRESH = np.random.default_rng()


@bn.jit
def product(x, w, out, N: bn.constexpr, K: bn.constexpr):
    """w is contiguous along its columns, which wgmma cannot read of float32."""
    rows = bn.span(0, N)
    sums = bn.zeros((N, N))
    for k in bn.spans(x.shape[1], K):
        sums = bn.dot(x[rows, k], w[k, rows], sums, precision="tf32")
    out[rows, rows] = sums


@bn.jit
def product_and_sums(x, w, out, totals, N: bn.constexpr, K: bn.constexpr):
    """The same, and the sums of the rows of x, which are not rounded."""
    rows = bn.span(0, N)
    sums, of_rows = bn.zeros((N, N)), bn.zeros((N, K))
    for k in bn.spans(x.shape[1], K):
        tile = x[rows, k]
        of_rows += tile
        sums = bn.dot(tile, w[k, rows], sums, precision="tf32")
    out[rows, rows] = sums
    totals[rows] = bn.sum(of_rows, axis=1)


def operands() -> tuple[np.ndarray, np.ndarray]:
    """Random numbers with ties, large, small and special ones in a column that is multiplied."""
    x, w = (FRESH.standard_normal(shape, np.float32) for shape in ((64, 128), (128, 64)))
    x[:6, 3] = [1 + 2.0**-11, 1 + 3 * 2.0**-11, 3e38, 1e-42, np.inf, np.nan]
    return x, w


def launched(kernel, *arguments: np.ndarray) -> str:
    """The PTX of a kernel that the emulator has run."""
    return emulated_gpu.launch(kernel, 1, arguments, {"N": 64, "K": 32, "num_warps": 4},
                               "sm_90a").ptx


def test_results_are_the_same_bits_as_where_each_reader_rounds(monkeypatch):
    x, w = operands()
    once, often = (np.full((64, 64), 77, np.float32) for _ in range(2))

    ptx = launched(product, x, w, once)
    monkeypatch.setattr(specialize_warps, "rounded_by_tma", lambda fn, options: fn)
    read = launched(bn.jit(product.py_func), x, w, often)

    np.testing.assert_array_equal(once.view(np.uint32), often.view(np.uint32))
    assert "cvt.rn.tf32" not in ptx and "cvt.rn.tf32" in read
    assert "cp.async.bulk.tensor" in ptx and "wgmma" not in ptx


def test_what_is_read_otherwise_too_keeps_its_bits():
    x, w = operands()
    x[4:6, 3] = 1
    out, totals = np.full((64, 64), 77, np.float32), np.full(64, 77, np.float32)

    ptx = launched(product_and_sums, x, w, out, totals)

    np.testing.assert_allclose(totals, x.sum(1, dtype=np.float64), rtol=1e-6, atol=1e-5)
    assert "cvt.rn.tf32" in ptx


def test_without_tma_each_reader_rounds():
    compiled = bn.compile(product, ("f32[:,::1]:16", "f32[:,::1]:16", "f32[:,::1]:16"),
                          {"N": 64, "K": 32}, target="sm_80")

    assert "cvt.rna.tf32" in compiled.ptx

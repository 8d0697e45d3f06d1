"""Random numbers of a positive seed took three multiplications for each product of two words."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl


@triton.jit
def kept(out, n, p, seed, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * n + c, tl.where(tl.rand(seed, row * n + c) > p, 1.0, 0.0), mask=c < n)


@bn.jit
def products(x, y, out, N: bn.constexpr):
    i = bn.arange(N)
    bn.store(out + i, bn.load(x + i).to(bn.uint64) * bn.load(y + i).to(bn.uint64))


@pytest.mark.parametrize("seed", [424242, -42, 1 << 40])
def test_a_product_of_words_is_one_instruction(seed):
    out, wanted = np.full((2, 3, 250), np.nan, np.float32)

    ptx = emulated_gpu.launch(kept, (3,), (out, 250, 0.3, seed), {"BLOCK": 256}).ptx
    kept[(3,)](wanted, 250, 0.3, seed, BLOCK=256)

    np.testing.assert_array_equal(out, wanted)
    assert 0.6 < out.mean() < 0.8
    assert "mul.lo.s64" not in ptx


def test_products_of_words_have_all_their_bits():
    x, y = np.random.default_rng(0).integers(0, 1 << 32, (2, 256), np.uint64).astype(np.uint32)
    x[:4], y[:4] = [0, 1, 2**32 - 1, 2**32 - 1], [5, 2**32 - 1, 2**32 - 1, 0]
    out = np.zeros(256, np.uint64)

    emulated_gpu.launch(products, 1, (x, y, out), {"N": 256, "num_warps": 1})

    np.testing.assert_array_equal(out, x.astype(np.uint64) * y)

"""Accesses to shared memory that nothing once ordered."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn


@bn.jit
def products(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """c = a @ b, tile after tile; threads copy b, the copy engine stores c."""
    for r, n in bn.persistent(c.shape, (BM, BN)):
        acc = bn.zeros((BM, BN), bn.float32)
        for k in bn.spans(a.shape[1], BK):
            acc += a[r, k] @ b[k, n]
        c[r, n] = acc


@pytest.mark.parametrize("seed", [1, 2])
def test_a_tile_is_not_staged_for_its_store_while_the_one_before_is_being_read(seed):
    # the wait for products was taken for that of the store, and no barrier followed the latter
    generator = np.random.default_rng(0)
    a = generator.standard_normal((250, 136)).astype(np.float16)
    b = generator.standard_normal((136, 100)).astype(np.float16)  # rows that no tensor map takes
    c = np.full((250, 100), np.nan, np.float32)

    emulated_gpu.launch(products, 2, (a, b, c),
                        {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4, "num_stages": 2}, seed=seed)

    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)

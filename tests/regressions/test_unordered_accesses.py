"""Accesses to shared memory that nothing once ordered."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn


@bn.jit
def products(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """c = a @ b, tile after tile; threads copy b, TMA stores c."""
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


@bn.jit
def wide_products(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """c = a @ b of float64: warps read the slots that TMA fills, and give them back."""
    r, n = bn.block(0, BM), bn.block(1, BN)
    acc = bn.zeros((BM, BN), bn.float64)
    for k in bn.spans(a.shape[1], BK):
        acc += a[r, k] @ b[k, n]
    c[r, n] = acc


WIDE = {"BM": 64, "BN": 32, "BK": 16, "num_warps": 4}


@pytest.mark.parametrize("seed", [None, 1])
def test_the_copy_engine_does_not_overtake_reads_of_threads(seed):
    a, b = (np.random.default_rng().standard_normal(shape) for shape in ((70, 200), (200, 40)))
    c = np.full((70, 40), np.nan)

    code = emulated_gpu.launch(wide_products, (2, 2), (a, b, c), WIDE, seed=seed)

    np.testing.assert_allclose(c, a @ b, rtol=1e-12, atol=1e-12)
    assert {ring.array for ring in code.stats.rings} == {"a", "b"}


@pytest.mark.gpu(emulated="test_the_copy_engine_does_not_overtake_reads_of_threads")
@pytest.mark.parametrize("BM, BN", [(64, 32), (32, 64)])
def test_reads_of_threads_are_of_the_right_round_on_a_gpu(BM, BN):
    cupy = pytest.importorskip("cupy")
    a, b = (cupy.random.standard_normal((2048, 2048)) for _ in range(2))
    exact = a @ b

    for _ in range(20):  # 38 of 40 were wrong
        c = cupy.full((2048, 2048), cupy.nan)
        wide_products[2048 // BM, 2048 // BN](a, b, c, **WIDE | {"BM": BM, "BN": BN})
        assert float(cupy.abs(c - exact).max()) < 1e-9


@bn.jit
def read_anew(flags, out):
    r = bn.span(0, 32)
    tile = bn.load(flags.at[r], volatile=True)
    out[bn.span(0, 128)] = bn.broadcast_to(tile[None], (4, 32)).ravel()


@pytest.mark.parametrize("warps", [1, 2, 8])
def test_all_threads_see_one_value_of_a_volatile_load(warps):
    """Threads that hold copies read each by itself: scalars made of the tile differed by warp."""
    flags, out = np.arange(32, dtype=np.int32), np.zeros(128, np.int32)

    compiled = emulated_gpu.launch(read_anew, 1, (flags, out), dict(num_warps=warps), "sm_90a")

    np.testing.assert_array_equal(out, np.tile(flags, 4))
    assert "shared_read" in compiled.asm["gpu"].partition("volatile=True")[2]


@bn.jit
def count_to(counter, out, limit, SEM: bn.constexpr):
    """A loop that carries nothing, and waits for what an atomic tells all threads."""
    while bn.atomic_add(counter.at[0], 1, sem=SEM) < limit:
        pass
    out[bn.arange(256)] = bn.load(counter.at[0])


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_what_a_loop_that_carries_nothing_reads_is_not_overwritten(sem, seed):
    # such a loop was taken for a branch, so that its iterations were not ordered
    counter, out = np.zeros(1, np.int32), np.zeros(256, np.int32)

    emulated_gpu.launch(count_to, 1, (counter, out, 6), {"SEM": sem, "num_warps": 4}, seed=seed)

    assert counter[0] == 7
    assert (out == 7).all()


@bn.jit
def give_back(lock, data):
    i = bn.arange(128)
    while bn.atomic_cas(lock.at[0], 0, 1, sem="relaxed") == 1:
        pass
    bn.store(data + i, bn.load(data + i) + 1)
    bn.atomic_xchg(lock.at[0], 0)


def test_a_lock_that_is_given_back_acquires_for_the_next_block_of_its_multiprocessor():
    """An unused result made it release only: blocks read what the multiprocessor had kept."""
    compiled = bn.compile(give_back, "i32[::1], f32[::1]", target="sm_90a")
    assert "atom.acq_rel.gpu.global.exch" in compiled.ptx

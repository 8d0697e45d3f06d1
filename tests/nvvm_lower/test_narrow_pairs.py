"""Arithmetic of 16-bit floats two at a time: the bits that float32 arithmetic gives, rounded."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

COUNT = 1 << 16


@bn.jit
def arithmetic(x, y, sums, differences, products, lesser, greater, N: bn.constexpr):
    i = bn.program_id(0) * N + bn.arange(N)
    a, b = x[i], y[i]
    sums[i] = a + b
    differences[i] = a - b
    products[i] = a * b
    lesser[i] = bn.minimum(a, b)
    greater[i] = bn.maximum(a, b)


@bn.jit
def fused(x, y, z, out, N: bn.constexpr):
    i = bn.arange(N)
    out[i] = bn.fma(x[i], y[i], z[i])


@bn.jit
def chained(x, y, out, N: bn.constexpr):
    i = bn.arange(N)
    out[i] = (x[i] * y[i] + x[i]) * 0.5 - y[i]


def random_floats(dtype, seed):
    """Random bits, of which half have close exponents; and the special numbers."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 16, COUNT).astype(np.uint16)
    near = (rng.standard_normal(COUNT // 2) * 4).astype(np.float32).astype(dtype)
    bits[::2] = near.view(np.uint16)
    tiny = rng.integers(0, 1 << 12, 2048).astype(np.uint16)  # subnormal, and not much greater
    bits[1:4097:2] = tiny
    return bits.view(dtype)


def assert_same_bits(found, wanted):
    is_nan = np.isnan(wanted.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), is_nan)
    np.testing.assert_array_equal(found.view(np.uint16)[~is_nan], wanted.view(np.uint16)[~is_nan])


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", [np.float16, bn.bfloat16.numpy], ids=str)
def test_pairs_have_the_bits_of_rounded_float32_arithmetic(dtype, target):
    x, y = random_floats(dtype, 1), random_floats(dtype, 2)
    outs = [np.full(COUNT, 7, dtype) for _ in range(5)]

    compiled = emulated_gpu.launch(arithmetic, COUNT // 4096, (x, y, *outs),
                                   {"N": 4096, "num_warps": 4}, target)

    wide = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(all="ignore"):
        for out, function in zip(outs[:3], (np.add, np.subtract, np.multiply)):
            assert_same_bits(out, function(*wide).astype(dtype))
        for out, function in zip(outs[3:], (np.minimum, np.maximum)):
            wanted = function(*wide)
            np.testing.assert_array_equal(out.astype(np.float32), wanted)
    assert "x2" in compiled.ptx and "cvt" not in compiled.ptx


@pytest.mark.parametrize("dtype", [np.float16, bn.bfloat16.numpy], ids=str)
def test_a_fused_pair_is_rounded_once(dtype):
    x, y, z = (random_floats(dtype, seed)[:8192] for seed in (3, 4, 5))
    out = np.full(8192, 7, dtype)

    emulated_gpu.launch(fused, 1, (x, y, z, out), {"N": 8192, "num_warps": 4})

    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)
        is_exact = exact - x.astype(np.float64) * y.astype(np.float64) == z.astype(np.float64)
        # a cast from float64 may go by way of float32
        chosen = is_exact & np.isfinite(exact) & (exact.astype(np.float32) == exact)
    assert chosen.sum() > 2000
    with np.errstate(all="ignore"):
        assert_same_bits(out[chosen], exact[chosen].astype(dtype))


@pytest.mark.parametrize("dtype", [np.float16, bn.bfloat16.numpy], ids=str)
def test_pairs_stay_in_their_words_from_load_to_store(dtype):
    rng = np.random.default_rng(6)
    x, y = (rng.standard_normal(4096).astype(np.float32).astype(dtype) for _ in range(2))
    out = np.full(4096, 7, dtype)

    compiled = emulated_gpu.launch(chained, 1, (x, y, out), {"N": 4096, "num_warps": 4})

    def rounded(value):
        return value.astype(dtype).astype(np.float32)

    a, b = x.astype(np.float32), y.astype(np.float32)
    wanted = rounded(rounded(rounded(rounded(a * b) + a) * np.float32(0.5)) - b)
    np.testing.assert_array_equal(out.astype(np.float32), wanted)
    assert "PRMT" not in compiled.asm["sass"]

"""Products and their like of small ints and narrow floats: NumPy's float64, rounded, bit by bit."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

N = 1024


@bn.jit
def arithmetic(ints, floats, LOW: bn.constexpr, HIGH: bn.constexpr, sums, differences, products,
               quotients, N: bn.constexpr):
    at = bn.program_id(0) * N + bn.arange(N)
    i, x = bn.minimum(bn.maximum(ints[at], LOW), HIGH), floats[at]
    sums[at] = i + x
    differences[at] = x - i
    products[at] = i * x
    quotients[at] = i / x


@bn.jit
def rows(x, out, N: bn.constexpr):
    r, c = bn.arange(8), bn.arange(N)
    out[r[:, None], c[None, :]] = x[c][None, :] * r[:, None]


def hard_operands(dtype, limit, seed):
    """Any bits of floats, half of them moderate; ints of a range and its ends."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, 64 * N, np.uint64)
    floats = bits.astype(f"u{dtype.itemsize}").view(dtype)
    floats[::2] = rng.standard_normal(32 * N).astype(dtype)
    ints = rng.integers(-limit, limit + 1, 64 * N).astype(np.int32)
    ints[:64] = np.repeat([-limit, limit, 0, 1], 16)
    return ints, floats


def in_float64(ints, floats):
    """What NumPy computes, rounded to the dtype of the floats."""
    with np.errstate(all="ignore"):
        i, x = ints.astype(np.float64), floats.astype(np.float64)
        return [value.astype(floats.dtype) for value in (i + x, x - i, i * x, i / x)]


def assert_same_bits(found, wanted):
    is_nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), is_nan)
    bits = f"u{wanted.itemsize}"
    np.testing.assert_array_equal(found[~is_nan].view(bits), wanted[~is_nan].view(bits))


NARROW = pytest.mark.parametrize("dtype, limit", [
    (np.float16, 2048), (np.float32, 1 << 24), (bn.bfloat16.numpy, 256)], ids=str)


@NARROW
def test_the_bits_are_those_of_float64_rounded(dtype, limit):
    ints, floats = hard_operands(np.dtype(dtype), limit, seed=1)
    found = [np.full(len(ints), 7, dtype) for _ in range(4)]

    arithmetic[len(ints) // N](ints, floats, -limit, limit, *found, N=N, device="cpu")

    for one, wanted in zip(found, in_float64(ints, floats), strict=True):
        assert_same_bits(one, wanted)


@NARROW
def test_a_gpu_does_it_without_float64(dtype, limit):
    ints, floats = (x[:4 * N] for x in hard_operands(np.dtype(dtype), limit, seed=2))
    found = [np.full(len(ints), 7, dtype) for _ in range(4)]

    ptx = emulated_gpu.launch(arithmetic, 4, (ints, floats, -limit, limit, *found),
                              {"N": N, "num_warps": 4}, "sm_90a").ptx

    assert ".f64" not in ptx
    for one, wanted in zip(found, in_float64(ints, floats), strict=True):
        assert_same_bits(one, wanted)


def test_ints_that_may_be_larger_stay_in_float64():
    ints, floats = (x[:N] for x in hard_operands(np.dtype(np.float16), 2049, seed=3))
    found = [np.full(N, 7, np.float16) for _ in range(4)]

    ptx = emulated_gpu.launch(arithmetic, 1, (ints, floats, -2049, 2049, *found),
                              {"N": N, "num_warps": 4}, "sm_90a").ptx

    assert ".f64" in ptx
    for one, wanted in zip(found, in_float64(ints, floats), strict=True):
        assert_same_bits(one, wanted)


def test_indices_times_rows_need_no_float64():
    x = np.random.default_rng(4).standard_normal(N).astype(np.float32)
    out = np.full((8, N), np.nan, np.float32)

    ptx = emulated_gpu.launch(rows, 1, (x, out), {"N": N, "num_warps": 4}, "sm_90a").ptx

    assert ".f64" not in ptx
    np.testing.assert_array_equal(out, (x * np.arange(8)[:, None]).astype(np.float32))


@bn.jit
def wide_quotients(x, y, out, N: bn.constexpr):
    c = bn.arange(N)
    a, b = bn.minimum(bn.maximum(x[c], -(2**31) + 1), 2**31 - 1), bn.minimum(
        bn.maximum(y[c], -(2**31)), 2**31 - 1)
    out[0, c] = a // b
    out[1, c] = a % b
    out[2, c] = x[c] // y[c]


def test_quotients_in_int64_of_what_fits_into_int32_are_numpys():
    rng = np.random.default_rng(8)
    ends = np.array([-2**31, -2**31 + 1, -2**31 - 1, 2**31 - 1, 2**31, -1, 0, 1, 7, -2**63])
    x, y = (rng.choice(np.concatenate([ends, rng.integers(-99, 99, 10)]), N) for _ in range(2))
    y = np.where(y == 0, 3, y)
    out = np.full((3, N), -77)

    ptx = emulated_gpu.launch(wide_quotients, 1, (x, y, out), {"N": N}, "sm_90a").ptx

    a, b = np.clip(x, -2**31 + 1, 2**31 - 1), np.clip(y, -2**31, 2**31 - 1)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, [a // b, a % b, x // y])
    assert "div.s32" in ptx and "div.s64" in ptx

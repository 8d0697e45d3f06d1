"""Quotients and square roots of float32, checked together: correctly rounded, all of them."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn

THREADS = 128
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0, 1e-45, -1e-45,
                    1.1754942e-38,
                    1.1754944e-38, 3.4028235e38, -3.4028235e38, 2.0 ** -125, 2.0 ** 126],
                   np.float32)


@bn.jit
def quotients(x, y, out, N: bn.constexpr):
    i = bn.program_id(0) * N + bn.arange(N)
    out[i] = x[i] / y[i]


@bn.jit
def rows(x, y, out, M: bn.constexpr, N: bn.constexpr):
    i, j = bn.program_id(0) * M + bn.arange(M), bn.arange(N)
    out[i[:, None], j] = x[i[:, None], j] / y[i][:, None]


@bn.jit
def by_number(x, y, out, N: bn.constexpr):
    i = bn.program_id(0) * N + bn.arange(N)
    out[i] = x[i] / y[bn.program_id(0)]


@bn.jit
def inverses(y, out, N: bn.constexpr):
    i = bn.program_id(0) * N + bn.arange(N)
    out[i] = 1 / y[i]


@bn.jit
def roots(x, out, N: bn.constexpr):
    i = bn.program_id(0) * N + bn.arange(N)
    out[i] = bn.sqrt(x[i])


def run(kernel, grid, *arguments, target="sm_90a", **keywords):
    """The code that ran on an emulated GPU."""
    return emulated_gpu.launch(kernel, grid, arguments, {"num_warps": 4, **keywords}, target)


def assert_same_bits(found, wanted):
    """Equal, signs of zeros included; any NaN is one."""
    is_nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), is_nan)
    found, wanted = (np.where(is_nan, 0, x).view(np.uint32) for x in (found, wanted))
    np.testing.assert_array_equal(found, wanted)


def divided(x, y):
    with np.errstate(all="ignore"):
        return x / y


def hard_dividends(y, count):
    """Integers of 24 bits that an odd one of 24 bits divides to near ties of the last place.

    2**k x = (2q + 1) y + rest for quotients q of 24 bits and rests that are small.
    """
    found = []
    for bits in (24, 25):
        inverse = pow(y, -1, 1 << bits)
        for rest in range(-4 * count, 4 * count):
            odd = -rest * inverse % (1 << bits)
            x, left = divmod(odd * y + rest, 1 << bits)
            if odd & 1 and odd >> 24 and not left and 1 << 23 <= x < 1 << 24:
                found.append(x)
    return found


def hard_pairs(count, seed=0):
    """Mantissas (x, y) whose quotients are near ties: float32."""
    rng = np.random.default_rng(seed)
    ys = [(1 << 24) - 1, (1 << 23) + 1, *(int(y) | 1 for y in rng.integers(
        1 << 23, 1 << 24, count // 4))]
    pairs = [(x, y) for y in ys for x in hard_dividends(y, 8)][:count]
    assert len(pairs) == count
    return np.array(pairs, np.float32).T


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_quotients_next_to_ties_are_rounded_correctly(target):
    x, y = hard_pairs(8192)
    rng = np.random.default_rng(1)
    x, y = (np.ldexp(v * rng.choice([-1, 1], v.shape), rng.integers(-36, 20, v.shape)).astype("f4")
            for v in (x, y))
    out = np.full_like(x, 77)

    compiled = run(quotients, 4, x, y, out, N=2048, target=target)

    assert_same_bits(out, divided(x, y))
    assert compiled.ptx.count("div.rn.f32") == 1
    assert compiled.stats.spills == 0


@pytest.mark.parametrize("N", [512, 1024, 4096, 8192])
def test_quotients_of_all_exponents_are_rounded_correctly(N):
    rng = np.random.default_rng(2)
    exponents = np.arange(-150, 128, 4)
    x, y = (np.resize(v.ravel(), 8192) for v in np.meshgrid(exponents, exponents))
    x, y = (np.ldexp(rng.uniform(1, 2, 8192) * rng.choice([-1, 1], 8192), v).astype(np.float32)
            for v in (x, y))
    out = np.full_like(x, 77)

    run(quotients, 8192 // N, x, y, out, N=N)

    assert_same_bits(out, divided(x, y))


def test_special_operands_are_divided_as_ieee_has_it():
    x, y = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(SPECIAL, SPECIAL))
    x, y = np.resize(x, 1024), np.resize(y, 1024)
    out = np.full_like(x, 77)

    run(quotients, 1, x, y, out, N=1024)

    assert_same_bits(out, divided(x, y))


@pytest.mark.parametrize("divisor", [3.0, -3.0, 7e-39, 1e-45, 1e38, 3e38, -5e25, 0.0, -0.0, np.inf,
                                     np.nan, 2.0 ** -125, 2.0 ** -126, 2.0 ** 125, 16777215.0])
def test_a_row_is_divided_by_one_number(divisor):
    rng = np.random.default_rng(3)
    x = np.ldexp(rng.uniform(1, 2, 4096), rng.integers(-150, 128, 4096)).astype(np.float32)
    x[::5] *= -1
    x[:len(SPECIAL)] = SPECIAL
    x[1024:2048] = rng.standard_normal(1024)  # whole threads without anything special
    x[2048:2048 + 64] = 0
    x[2112:2112 + 64] = -0.0
    y, out = np.full(1, divisor, np.float32), np.full_like(x, 77)

    compiled = run(by_number, 1, x, y, out, N=4096)

    assert_same_bits(out, divided(x, y))
    assert compiled.ptx.count("rcp.approx") == 1


def test_zeros_keep_their_sign_without_the_cold_way():
    x = np.resize(np.array([0.0, -0.0, 1.0, -1.0], np.float32), 4096)
    y = np.repeat(np.array([2.0, -2.0], np.float32), 2048)
    out = np.full_like(x, 77)

    run(quotients, 2, x, y, out, N=2048)

    assert_same_bits(out, divided(x, y))


def test_rows_are_divided_by_a_number_each():
    rng = np.random.default_rng(4)
    y = rng.integers(1 << 23, 1 << 24, 64) | 1
    x = np.array([np.resize(hard_dividends(int(v), 32), 64) for v in y], np.float32)
    y, out = (y * rng.choice([-1, 1], 64)).astype(np.float32), np.full_like(x, 77)

    compiled = run(rows, 1, x, y, out, M=64, N=64)

    assert_same_bits(out, divided(x, y[:, None]))
    assert compiled.ptx.count("rcp.approx") < 64 * 64 // THREADS


@pytest.mark.parametrize("dtype", [np.float16, bn.bfloat16.numpy])
def test_narrow_quotients_are_rounded_once(dtype):
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 1 << 16, (2, 8192)).astype(np.uint16)
    x, y = bits.view(dtype)
    out = np.zeros_like(x)

    run(quotients, 4, x, y, out, N=2048)

    with np.errstate(all="ignore"):
        wanted = (x.astype(np.float64) / y.astype(np.float64)).astype(dtype)
    is_nan = np.isnan(wanted.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(out.astype(np.float32)), is_nan)
    np.testing.assert_array_equal(out.view(np.uint16)[~is_nan], wanted.view(np.uint16)[~is_nan])


def test_inverses_are_rounded_correctly():
    rng = np.random.default_rng(6)
    y = np.ldexp(rng.uniform(1, 2, 8192), rng.integers(-149, 128, 8192)).astype(np.float32)
    y[:4096] = np.ldexp(rng.integers(1 << 23, 1 << 24, 4096), -20)
    y[:len(SPECIAL)] = SPECIAL
    out = np.full_like(y, 77)

    run(inverses, 4, y, out, N=2048)

    assert_same_bits(out, divided(np.float32(1), y))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_square_roots_are_rounded_correctly(target):
    rng = np.random.default_rng(7)
    x = np.ldexp(rng.uniform(1, 2, 16384), rng.integers(-149, 128, 16384)).astype(np.float32)
    # next to squares of ties: the square of an odd number of 25 bits, cut off
    odd = 2 * rng.integers(1 << 23, 1 << 24, 8192) + 1
    x[:8192] = np.ldexp((odd * odd) >> 26, rng.integers(-40, 20, 8192) * 2)
    x[8192:8192 + len(SPECIAL)] = SPECIAL
    out = np.full_like(x, 77)

    compiled = run(roots, 4, x, out, N=4096, target=target)

    with np.errstate(invalid="ignore"):
        assert_same_bits(out, np.sqrt(x))
    assert compiled.ptx.count("sqrt.rn.f32") == 1


@pytest.mark.parametrize("numbers", [(0.0, 4.0, 0.0, 2.0), (0.0,), (-0.0, 0.0), (0.0, 1e-45, 2.0)])
def test_roots_of_zeros_are_zeros(numbers):
    x = np.resize(np.array(numbers, np.float32), 4096)
    out = np.full_like(x, 77)

    run(roots, 1, x, out, N=4096)

    assert_same_bits(out, np.sqrt(x))

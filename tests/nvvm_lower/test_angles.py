"""Sines and cosines of float32: errors in units of the last place, and their machine code."""

import re
from fractions import Fraction

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.coefficients import TWO_OVER_PI_BITS

COUNT = 1024
MAX_ERROR = 1.6  # units in the last place
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38,
                    -3.4028235e38, 65536.0, -65536.0, 65536.008, 0.78539816, -0.7853982, 1.5707964],
                   np.float32)
ANGLES = {
    "turn": lambda rng: rng.uniform(-np.pi, np.pi, COUNT),
    "quick": lambda rng: rng.uniform(-65536, 65536, COUNT),
    "near multiples of pi/2": lambda rng: rng.integers(-41721, 41721, COUNT) * (np.pi / 2),
    "all magnitudes": lambda rng: rng.uniform(-9, 9, COUNT) * 10.0 ** rng.uniform(-44, 37.5, COUNT),
}


@bn.jit
def both(x, sines, cosines, N: bn.constexpr):
    i = bn.program_id(0) * N + bn.arange(N)
    angles = x[i]
    sines[i] = bn.sin(angles)
    cosines[i] = bn.cos(angles)


def found(x, block):
    results = [np.full(x.shape, 7, x.dtype) for _ in range(2)]
    emulated_gpu.launch(both, (x.size // block,), (x, *results), {"num_warps": 1, "N": block},
                        "sm_90a")
    return results


def wanted(x):
    """float64, of what is left of multiples of pi / 2 in integers."""
    bits = 0
    for word in TWO_OVER_PI_BITS:
        bits = bits << 64 | word
    two_over_pi = Fraction(bits, 1 << 64 * (len(TWO_OVER_PI_BITS) - 1))
    results = np.full((2, x.size), np.nan)
    for i in np.flatnonzero(np.isfinite(x)):
        quarters = Fraction(float(x[i])) * two_over_pi
        rest = float(quarters - round(quarters)) * (np.pi / 2)
        around = [np.sin(rest), np.cos(rest), -np.sin(rest), -np.cos(rest)] * 2
        results[:, i] = around[round(quarters) % 4:][:2]
    return results


def error(one, exact):
    unit = np.spacing(np.maximum(np.abs(exact).astype(np.float32), 2.0 ** -126))
    return np.abs(one - exact) / unit


@pytest.mark.parametrize("block", [32, 64, 1024])
@pytest.mark.parametrize("name", ANGLES)
def test_sines_and_cosines_are_near_in_blocks_of_any_size(name, block):
    x = ANGLES[name](np.random.default_rng()).astype(np.float32)
    x[::block] = x[::block] / 2 ** 20  # a thread's elements are of different kinds

    results = found(x, block)

    for one, exact in zip(results, wanted(x), strict=True):
        assert error(one, exact).max() < MAX_ERROR


def test_special_values_are_numpys_and_zeros_keep_their_sign():
    x = np.tile(SPECIAL, 8)

    sines, cosines = found(x, 128)

    exact = wanted(x)
    finite = np.isfinite(x)
    np.testing.assert_array_equal(np.isnan([sines, cosines]), np.isnan(exact))
    assert error(sines, exact[0])[finite].max() < MAX_ERROR
    assert error(cosines, exact[1])[finite].max() < MAX_ERROR
    np.testing.assert_array_equal(np.signbit(sines[x == 0]), np.signbit(x[x == 0]))


def test_sine_and_cosine_share_one_cold_branch_for_all_elements_of_a_thread():
    compiled = bn.compile(both, ("f32[::1]:16",) * 3, {"N": 512}, target="sm_90a", num_warps=1)

    # to the cold code or around it, back from it, and its loop
    assert len(re.findall(r"\bbra\b", compiled.ptx)) == 4
    assert "CALL" not in compiled.asm["sass"]

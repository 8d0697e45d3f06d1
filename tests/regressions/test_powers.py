"""Powers of special numbers, which once depended on how the exponent was given."""

import numpy as np
import pytest

import blocknumba as bn

BASES = [-np.inf, -0.0, 0.0, np.inf, np.nan, 4.0, -4.0, 1.0]


@bn.jit
def powers(x, exponents, exponent, out, EXPONENT: bn.constexpr, N: bn.constexpr):
    r = bn.span(0, N)
    out[0, r] = x[r] ** EXPONENT
    out[1, r] = x[r] ** exponent
    out[2, r] = x[r] ** exponents[r]
    out[3, r] = np.power(x[r], exponents[0])
    for i in range(N):
        out[4, i] = x[i] ** EXPONENT


@bn.jit
def folded_powers(out, EXPONENT: bn.constexpr):
    out[bn.span(0, 1)] = bn.full((1,), -np.inf) ** EXPONENT
    out[1] = np.float32(-0.0) ** np.float32(EXPONENT)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_a_power_does_not_depend_on_how_the_exponent_is_given(device, dtype, exponent):
    x, exponents = np.array(BASES, dtype), np.full(8, exponent, dtype)
    out = np.full((5, 8), 7, dtype)
    device.run(powers, 1, x, exponents, exponent, out, EXPONENT=exponent, N=8)
    with np.errstate(all="ignore"):
        expected = np.power(x, exponents)  # one by one; of one exponent 0.5 it takes square roots
    for row in out:
        np.testing.assert_array_equal(row, expected)
        np.testing.assert_array_equal(np.signbit(row[:4]), np.signbit(expected[:4]))


def test_square_roots_as_powers_have_the_values_of_c(device):
    x, out = np.array(BASES, np.float32), np.full((5, 8), 7, np.float32)
    device.run(powers, 1, x, np.full(8, 0.5, np.float32), 0.5, out, EXPONENT=0.5, N=8)
    np.testing.assert_array_equal(out[:, :4], [[np.inf, 0, 0, np.inf]] * 5)
    assert not np.signbit(out[:, 1]).any()
    folded = np.full(2, 7, np.float32)
    device.run(folded_powers, 1, folded, EXPONENT=0.5)
    np.testing.assert_array_equal(folded, [np.inf, 0])

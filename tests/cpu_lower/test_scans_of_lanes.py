"""Scans along the axis of the lanes, in both directions, of any associative function."""

import numpy as np
import pytest

import blocknumba as bn

GENERATOR = np.random.default_rng()


@bn.jit(device="cpu")
def sums(x, forwards, backwards, B: bn.constexpr):
    i, c = bn.program_id(0), bn.span(0, B)
    forwards[i, c] = bn.cumsum(x[i, c], 0)
    backwards[i, c] = bn.cumsum(x[i, c], 0, reverse=True)


def then(first_scale, first_shift, scale, shift):
    """x -> x * first_scale + first_shift, then x -> x * scale + shift: not commutative."""
    return first_scale * scale, first_shift * scale + shift


@bn.jit(device="cpu")
def maps(scale, shift, scales, shifts, last, R: bn.constexpr, B: bn.constexpr):
    r, c = bn.block(0, R), bn.span(0, B)
    a, b = bn.associative_scan((scale[r, c], shift[r, c]), 1, then)
    scales[r, c], shifts[r, c] = a, b
    last[r] = bn.reduce((scale[r, c], shift[r, c]), 1, then)[1]


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64"])
@pytest.mark.parametrize("columns", [5, 300])
def test_sums_run_in_both_directions(dtype, columns):
    x = (GENERATOR.standard_normal((5, columns)) * 9).astype(dtype)
    found = np.full((2, 5, columns), 77, np.cumsum(x, 1).dtype)

    compiled = sums[5](x, *found, B=bn.next_power_of_2(columns))

    np.testing.assert_allclose(found[0], x.cumsum(1), rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(found[1], x[:, ::-1].cumsum(1)[:, ::-1], rtol=1e-13, atol=1e-12)
    assert columns < 16 or "shufflevector" in compiled.native.llvm_ir


@pytest.mark.parametrize("rows", [1, 16])
def test_a_function_that_does_not_commute_keeps_its_order(rows):
    scale, shift = GENERATOR.uniform(0.5, 1.5, (2, 16, 64))
    scales, shifts = np.full((2, 16, 64), np.nan)
    last = np.full(16, np.nan)

    maps[16 // rows](scale, shift, scales, shifts, last, R=rows, B=64)

    value = np.zeros(16, np.longdouble)
    for column in range(64):
        value = value * scale[:, column] + shift[:, column]
        np.testing.assert_allclose(shifts[:, column], value.astype(float), rtol=1e-12)
    np.testing.assert_allclose(scales, scale.cumprod(1), rtol=1e-12)
    np.testing.assert_array_equal(last, shifts[:, -1])

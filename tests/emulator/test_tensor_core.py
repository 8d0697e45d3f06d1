"""Tensor cores truncate what they add up, as the papers say that measured them."""

import ml_dtypes
import numpy as np
import pytest

from blocknumba.emulator.tensor_core import multiply

DTYPES = {"tf32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
          "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def added(addend, products, kind="tf32"):
    """addend + the sum of products, each a power of two or 0, as one tensor core makes it."""
    a = np.array([products]).astype(DTYPES[kind])
    ones = np.ones((len(products), 1)).astype(DTYPES[kind])
    return float(multiply(a, ones, np.array([[addend]], np.float32), kind)[0, 0])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_product_two_bits_below_a_float_counts_and_one_below_that_does_not(sign):
    kept = added(sign, [sign * 2.0**-25] * 8)
    lost = added(sign, [sign * 2.0**-26] * 8)

    assert kept == sign * (1 + 2.0**-22)
    assert lost == sign


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_are_truncated_toward_zero(sign):
    assert added(sign, [sign * 1.75 * 2.0**-23]) == sign * (1 + 2.0**-23)
    assert added(sign, [-sign * 2.0**-25]) == sign * (1 - 2.0**-24)


def test_8_bit_floats_are_added_up_with_14_bits():
    assert added(1, [2.0**-8, 2.0**-9, 0, 0], "e4m3") == 1 + 2.0**-8 + 2.0**-9
    assert added(1, [2.0**-13, 2.0**-14], "e5m2") == 1 + 2.0**-13


def test_bits_that_tf32_does_not_have_are_ignored():
    assert added(0, [1 + 2.0**-10 + 2.0**-11]) == 1 + 2.0**-10


@pytest.mark.parametrize("kind", DTYPES)
def test_what_has_few_bits_is_added_up_exactly(kind):
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-3, 4, shape).astype(DTYPES[kind])
            for shape in ((2, 16, 32), (2, 32, 8)))
    c = generator.integers(-99, 99, (2, 16, 8)).astype(np.float32)

    found = multiply(a, b, c, kind)

    np.testing.assert_array_equal(found, a.astype(float) @ b.astype(float) + c)


def test_infinities_and_nan_are_those_of_the_sum_and_spoil_nothing_else():
    a = np.array([[np.inf, 1], [np.inf, -np.inf], [np.nan, 1], [2, 2.0**-30]], np.float32)
    c = np.array([[1], [1], [1], [np.inf]], np.float32)

    found = multiply(a, np.ones((2, 2), np.float32), np.concatenate([c, np.ones((4, 1))], 1).astype(
        np.float32), "tf32")

    np.testing.assert_array_equal(found, [[np.inf] * 2, [np.nan] * 2, [np.nan] * 2, [np.inf, 3]])


def test_sums_beyond_the_largest_float_are_infinite():
    largest = float(np.finfo(np.float32).max)

    assert added(largest, [2.0**127]) == np.inf
    assert added(-largest, [-2.0**127]) == -np.inf


def test_sums_in_float16_are_rounded_to_nearest():
    a = np.array([[2.0**-11, 2.0**-12]], np.float16)

    found = multiply(a, np.ones((2, 1), np.float16), np.ones((1, 1), np.float16), "f16")

    assert found == 1 + 2.0**-10


def test_sums_in_float64_are_rounded_after_every_product_in_order_along_the_depth():
    halves = np.array([[2.0**-53], [2.0**-53]])  # of the last bit of 1: ties are rounded to 1

    after, before = (multiply(np.ones((1, 2)), halves, np.array([[start]]), "f64") + rest
                     for start, rest in ((1.0, 0.0), (0.0, 1.0)))

    assert (after, before) == (1, 1 + 2.0**-52)


def test_a_product_in_float64_that_cancels_leaves_what_rounding_it_would_lose():
    odd = 1 + 2.0**-30

    found = multiply(np.array([[odd]]), np.array([[odd]]), np.array([[-odd * odd]]), "f64")

    assert found == 2.0**-60

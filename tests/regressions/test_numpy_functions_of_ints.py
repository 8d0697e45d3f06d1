"""Functions of NumPy that were bitwise or lost digits of ints: logical ones, floor, round, fmax."""

import numpy as np
import pytest

import blocknumba as bn

LOGICAL = (np.logical_and, np.logical_or, np.logical_xor, lambda x, y: np.logical_not(x))


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "bool"])
@pytest.mark.parametrize("function", LOGICAL)
def test_logical_functions_ask_whether_a_number_is_zero(function, dtype):
    random = np.random.default_rng()
    x, y = random.integers(0, 3, (2, 4, 8)).astype(dtype)
    if x.dtype.kind == "f":
        x[0, :2] = np.nan, -0.0

    found = bn.evaluate(lambda x, y: function(x, y), x, y)

    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, function(x, y))


def test_logical_functions_take_numbers():
    found = bn.evaluate(lambda x: np.logical_or(np.logical_and(x, 2), False), np.int32([0, 1, 4, 8]))

    np.testing.assert_array_equal(found, [False, True, True, True])


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("function", [np.floor, np.ceil, np.trunc, np.round, bn.floor, bn.round])
def test_whole_numbers_stay_when_they_are_rounded(function, dtype):
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = np.array([*limits, limits[1] - 1, 1], dtype)

    found = bn.evaluate(lambda x: function(x), x)

    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("function", [np.fmax, np.fmin])
def test_extremes_without_nan_keep_ints(function):
    x, y = np.int64([2**62 + 1, -2**62]), np.int64([2**62, -2**62 - 1])

    found = bn.evaluate(lambda x, y: function(x, y), x, y)

    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, function(x, y))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("function", [np.gcd, np.lcm])
def test_common_divisors_of_the_lowest_int_are_numpys(function, dtype):
    """gcd(7, -128) of int8 was -1."""
    lowest = np.iinfo(dtype).min
    x = np.array([7, lowest, 6, 0, lowest, 12, lowest // 2, -3], dtype)
    y = np.array([lowest, 6, lowest, lowest, lowest, -18, lowest, 1], dtype)

    found = bn.evaluate(lambda x, y: function(x, y), x, y)

    np.testing.assert_array_equal(found, function(x, y))

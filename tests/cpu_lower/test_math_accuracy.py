"""Vector functions keep the errors that they state, and have NumPy's special values."""

import numpy as np
import pytest
from math_oracles import DRAWS, Long, exact_value, of_moderate_size, special_numbers, ulps
from vector_loops import compute

from blocknumba.cpu_lower.math import FUNCTIONS

SAMPLES = 20_000
WITH_LONG_DOUBLE = pytest.mark.skipif(
    np.finfo(Long).nmant < 60, reason="this machine has no float wider than float64 as an oracle")
both_dtypes = pytest.mark.parametrize("dtype", [
    np.float32, pytest.param(np.float64, marks=WITH_LONG_DOUBLE)])
every_function = pytest.mark.parametrize("name", sorted(FUNCTIONS))
# Where a function's values are near 0 as a difference of larger terms: units are those of 1 there.
UNITS_OF_ONE = {"lgamma"}


def errors(name: str, found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors in units in the last place, or of 1."""
    if name not in UNITS_OF_ONE:
        return ulps(found, exact)
    with np.errstate(all="ignore"):
        of_one = np.abs(found - exact) / np.finfo(found.dtype).eps
    return np.where(np.abs(exact) < 1, of_one, ulps(found, exact))


def check(name: str, *operands: np.ndarray) -> None:
    """Compare; the message has the operands that are worst."""
    found, exact = compute(name, *operands), exact_value(name, *operands)
    distance = errors(name, found, exact)
    worst = int(np.argmax(distance))
    bound = FUNCTIONS[name].ulps[found.dtype.name]
    assert distance[worst] <= bound, (
        f"{name}({', '.join(repr(x[worst]) for x in operands)}) = {found[worst]!r}, "
        f"exactly {exact[worst]!r}: {distance[worst]:.3f} ulps")


@both_dtypes
@every_function
@pytest.mark.parametrize("draw", DRAWS)
def test_errors_are_as_small_as_stated(name, dtype, draw):
    rng = np.random.default_rng()
    operands = list(draw(rng, dtype, (FUNCTIONS[name].arity, SAMPLES)))

    check(name, *operands)


@both_dtypes
@every_function
def test_special_numbers(name, dtype):
    numbers = special_numbers(dtype)
    operands = np.meshgrid(*[numbers] * FUNCTIONS[name].arity)

    check(name, *(x.ravel() for x in operands))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"cosh", "acos", "acosh", "gamma"}))
def test_the_sign_of_zero_is_numpys(name, dtype):
    zeros = np.meshgrid(*[np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf], dtype)]
                        * FUNCTIONS[name].arity)
    operands = [x.ravel() for x in zeros]

    found, exact = compute(name, *operands), exact_value(name, *operands)

    zero = found == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(exact[zero]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["mod", "floordiv", "nextafter"])
def test_exact_functions_of_near_numbers_are_numpys(name, dtype):
    rng = np.random.default_rng()
    x = of_moderate_size(rng, dtype, SAMPLES)
    y = x * rng.integers(-5, 6, SAMPLES).astype(dtype)
    moved = np.nextafter(y, dtype(0))

    for other in (y, moved):
        for pair in ((x, other), (other, x)):
            check(name, *pair)


@WITH_LONG_DOUBLE
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_multiples_of_a_quarter_turn_are_reduced_without_loss(name):
    """The floats that are nearest to k pi / 2 leave the least of their digits."""
    quarter = 2 * np.arctan(Long(1))
    for dtype, most in ((np.float32, 2.0**100), (np.float64, 2.0**40)):
        k = np.unique(np.rint(np.exp(np.linspace(0, np.log(most), SAMPLES)))).astype(Long)
        nearest = (k * quarter).astype(dtype)
        check(name, np.concatenate([np.nextafter(nearest, dtype(0)), nearest]))


@WITH_LONG_DOUBLE
def test_a_power_has_the_digits_that_a_large_exponent_asks_for():
    rng = np.random.default_rng()
    for dtype, most in ((np.float32, 85.0), (np.float64, 700.0)):
        logarithm = 10.0 ** rng.uniform(-8, 1.9, SAMPLES) * rng.choice([-1, 1], SAMPLES)
        x = np.exp(logarithm).astype(dtype)
        x = np.where(x == 1, dtype(2), x)
        y = (rng.uniform(-most, most, SAMPLES) / np.log(x.astype(Long))).astype(dtype)
        check("power", x, y)


@WITH_LONG_DOUBLE
@both_dtypes
def test_powers_are_right_where_they_overflow_and_vanish(dtype):
    rng = np.random.default_rng()
    f = np.finfo(dtype)
    ends = np.log(np.array([f.max, f.tiny, f.smallest_subnormal], Long))
    ends = np.append(ends, ends[-1] - np.log(Long(2)))
    x = np.concatenate([rng.uniform(0.01, 4, SAMPLES), 10.0 ** rng.uniform(-30, 30, SAMPLES)])
    x = x.astype(dtype)
    x[x == 1] = 2
    share = 10.0 ** rng.uniform(-17, -2, x.size) * rng.choice([-1, 1], x.size)

    check("power", x, (rng.choice(ends, x.size) * (1 + share) / np.log(x.astype(Long))).astype(
        dtype))


@WITH_LONG_DOUBLE
@pytest.mark.parametrize("name", ["gamma", "lgamma"])
@pytest.mark.parametrize("low,high", [(-8, 8), (-185, 172), (1e-12, 3)])
def test_the_gamma_function_over_its_range(name, low, high):
    rng = np.random.default_rng()
    for dtype in (np.float32, np.float64):
        check(name, rng.uniform(low, high, SAMPLES // 4).astype(dtype))


@WITH_LONG_DOUBLE
def test_lgamma_is_finite_to_the_end_of_its_range():
    last = np.float64(2.5599833278516383e305)
    below = last - np.random.default_rng().uniform(0, 1e303, SAMPLES)
    found = compute("lgamma", np.array([np.nextafter(last, np.inf), last]))

    check("lgamma", np.append(below, last))

    assert found[0] == np.inf
    assert found[1] == np.finfo(np.float64).max


@WITH_LONG_DOUBLE
def test_the_complementary_error_function_keeps_its_digits_in_the_tail():
    rng = np.random.default_rng()
    for dtype, last in ((np.float32, 10.4), (np.float64, 27.5)):
        check("erfc", rng.uniform(-6, last, SAMPLES).astype(dtype))


@WITH_LONG_DOUBLE
@pytest.mark.parametrize("name,limits", [
    ("exp", (-750, 711)), ("exp2", (-1080, 1025)), ("expm1", (-60, 711)), ("sinh", (-711, 711)),
    ("cosh", (-711, 711)), ("tanh", (-25, 25)), ("erf", (-6.5, 6.5)), ("atanh", (-1, 1)),
    ("asin", (-1, 1)), ("acos", (-1, 1))])
def test_functions_over_the_range_in_which_they_change(name, limits):
    rng = np.random.default_rng()
    for dtype in (np.float32, np.float64):
        check(name, rng.uniform(*limits, SAMPLES).astype(dtype))

"""Meanings that are easy to get almost right, on whole domains."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from blocknumba.tile_ir import ops  # noqa: F401  fills the registry
from blocknumba.tile_ir.ir.opdef import OPS

# NaNs of float16 and bfloat16 have payloads that casts remark upon
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
NARROW = [*HALVES, np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)]


def every(dtype):
    """All values of a dtype of 8 or 16 bits."""
    return np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)


def evaluate(name, *operands, **attrs):
    with np.errstate(all="ignore"):
        return OPS[name].evaluate(*operands, **attrs)


def positive(dtype):
    """The finite values that are not negative, in order, as Python floats."""
    values = every(dtype)[: 1 << 8 * dtype.itemsize - 1].astype(np.float64)
    return values[np.isfinite(values)]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_float64_is_rounded_once_around_every_midpoint(dtype):
    values = positive(dtype)
    middle = (values[1:] + values[:-1]) / 2
    below, above = np.nextafter(middle, 0), np.nextafter(middle, np.inf)

    found = [evaluate("cast", x, dtype=dtype.name).astype(np.float64)
             for x in (below, middle, above, -above)]

    even = np.where(np.arange(len(middle)) % 2 == 0, values[:-1], values[1:])
    for given, expected in zip(found, (values[:-1], even, values[1:], -values[1:])):
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("given", [np.int64, np.uint64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_64_bit_integers_are_rounded_once_around_every_midpoint(dtype, given):
    values = positive(dtype)
    values = values[(values >= 2**12) & (values < 2.0**62)]
    middle = (values[1:] + values[:-1]) / 2
    middle = middle.astype(given)

    found = [evaluate("cast", middle + given(d), dtype=dtype.name).astype(np.float64)
             for d in (1, 0)] + [evaluate("cast", middle - given(1), dtype=dtype.name)
                                 .astype(np.float64)]

    first = every(dtype).astype(np.float64).tolist().index(values[0])
    even = np.where((np.arange(len(middle)) + first) % 2 == 0, values[:-1], values[1:])
    for result, expected in zip(found, (values[1:], even, values[:-1])):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_rounding_towards_zero_never_grows(dtype):
    values = positive(dtype)
    inside = values[:-1] + (values[1:] - values[:-1]) * 0.999

    found = evaluate("cast", inside, dtype=dtype.name, rounding="zero").astype(np.float64)
    huge = evaluate("cast", np.array([1e300, -1e300]), dtype=dtype.name, rounding="zero")

    np.testing.assert_array_equal(found, values[:-1])
    np.testing.assert_array_equal(huge.astype(np.float64), [values[-1], -values[-1]])


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_widening_is_exact(dtype):
    x = every(dtype)
    for wide in ("float32", "float64"):
        np.testing.assert_array_equal(evaluate("cast", x, dtype=wide), x.astype(wide))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_next_after_visits_every_float_in_order(dtype):
    x = every(dtype)
    finite = np.isfinite(x.astype(np.float32))
    up = evaluate("nextafter", x, np.full_like(x, np.inf))[finite].astype(np.float64)

    order = np.unique(x[finite].astype(np.float64))
    following = dict(zip(order, [*order[1:], np.inf]))
    assert up.tolist() == [following[float(v)] for v in x[finite]]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_fma_of_16_bit_floats_is_rounded_once(dtype):
    generator = np.random.default_rng(0)
    x, y, z = generator.choice(every(dtype)[np.isfinite(every(dtype).astype(np.float32))],
                               (3, 4000))

    found = evaluate("fma", x, y, z).astype(np.float64)

    values = np.unique(np.concatenate([positive(dtype), -positive(dtype)]))
    for a, b, c, result in zip(*(v.astype(np.float64).tolist() for v in (x, y, z)), found):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if np.isfinite(result):
            index = np.searchsorted(values, result)
            around = values[max(index - 1, 0):index + 2]
            assert abs(exact - Fraction(result)) <= min(abs(exact - Fraction(v)) for v in around)
        else:
            assert abs(exact) > values[-1]


def test_fma_of_float64_keeps_what_a_rounded_product_loses():
    x = np.array([1 + 2.0**-52, 1e308, -1e308, np.inf, 1e200])
    y = np.array([1 - 2.0**-52, 10.0, 10.0, 0.0, 1e200])
    z = np.array([-1.0, -1e308, 0.0, 1.0, -np.inf])

    found = evaluate("fma", x, y, z)

    np.testing.assert_array_equal(found, [-2.0**-104, np.inf, -np.inf, np.nan, -np.inf])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "sqrt", "floor", "rint"])
def test_mathematics_of_16_bit_floats_is_float32_rounded(name, dtype):
    x = every(dtype)

    found = evaluate(name, x)

    expected = evaluate(name, x.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", ["floordiv", "mod", "shl", "shr", "power"])
def test_integer_operators_are_pythons_on_all_pairs_of_bytes(name, dtype):
    values = every(np.dtype(dtype))
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    python = {
        "floordiv": lambda a, b: a // b if b else 0, "mod": lambda a, b: a % b if b else 0,
        "shl": lambda a, b: a << b if 0 <= b < 8 else 0,
        "shr": lambda a, b: a >> (b if 0 <= b < 8 else 8),
        "power": lambda a, b: a**b if b >= 0 else {1: 1, -1: (-1)**b}.get(a, 0)}[name]

    found = evaluate(name, x, y)

    expected = [int(python(a, b)) % 256 for a, b in zip(x.tolist(), y.tolist())]
    assert found.dtype == dtype and found.view(np.uint8).tolist() == expected


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_huge_floats_become_the_nearest_integer(dtype):
    bounds = np.iinfo(dtype)
    x = np.array([np.inf, -np.inf, np.nan, 1e300, -1e300, -0.9, 2.9])
    for given in (np.float64, np.float32, np.float16):
        with np.errstate(over="ignore"):
            found = evaluate("cast", x.astype(given), dtype=dtype)
        assert found.tolist() == [bounds.max, bounds.min, 0, bounds.max, bounds.min, 0, 2]


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_the_error_functions_are_those_of_the_c_library(name):
    generator = np.random.default_rng(0)
    tiny = 10 ** generator.uniform(-320, 2, 2000) * generator.choice([-1, 1], 2000)
    joints = [0.84375, 1.25, 1 / 0.35, 28.0, 6.0, 0.0, np.inf]
    x = np.concatenate([generator.uniform(-6, 6, 9000), generator.uniform(6, 27.2, 5000), tiny,
                        joints, np.negative(joints)])

    found = evaluate(name, x)

    expected = np.array([getattr(math, name)(v) for v in x])
    assert np.abs(found.view(np.int64) - expected.view(np.int64)).max() <= 4
    assert np.isnan(evaluate(name, np.array([np.nan]))[0])

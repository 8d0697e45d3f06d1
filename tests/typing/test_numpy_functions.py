"""NumPy's functions in kernels: values, shapes and dtypes are NumPy's."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError, BlockTypeError
from blocknumba.typing.numpy_functions import WRITTEN

INTS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 float32 float64".split()
NUMBERS = "int8 uint32 float16 float64".split()  # a kind each; float32 is in the others
BOUND = {"float16": 2e-3, "float32": 3e-6, "float64": 1e-12}
TINY = 1e-6  # absolute, of floats: what sines lose near multiples of pi


def random(dtype, shape=(4, 8)):
    generator = np.random.default_rng()
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype in INTS:
        return generator.integers(0 if dtype[0] == "u" else -9, 10, shape).astype(dtype)
    x = (generator.standard_normal(shape) * 3).astype(dtype)
    x.flat[:6] = 0, -0.0, np.nan, np.inf, -np.inf, 2.5
    return x


def finite(dtype):
    x = random(dtype)
    x[~np.isfinite(x)] = 1.25
    return x


def agree(function, *arrays):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = function(*(array.copy() for array in arrays))
    found = bn.evaluate(function, *arrays)
    wide = arrays[0].dtype == np.float64
    for one, exact in (zip(found, expected, strict=True) if isinstance(expected, tuple)
                       else [(found, expected)]):
        one, exact = np.asarray(one), np.asarray(exact)
        assert one.shape == exact.shape
        assert one.dtype == exact.dtype or allowed(one.dtype, exact.dtype, wide)
        narrow = one.dtype if one.dtype.itemsize < exact.dtype.itemsize else exact.dtype
        is_float = one.dtype.kind == "f"
        np.testing.assert_allclose(
            one.astype(np.float64), exact.astype(np.float64),
            rtol=BOUND.get(str(narrow), 0), atol=TINY if is_float else 0)


def allowed(found, exact, wide):
    """The differences that docs/numbers.md has: floats of ints, and indices."""
    return (found == np.float32 and exact in (np.float64, np.float16) and not wide
            or found == np.int32 and exact == np.int64
            or found == np.uint32 and exact == np.uint64)


def named(*functions):
    return pytest.mark.parametrize("function", functions, ids=lambda f: f.__name__)


@pytest.mark.parametrize("dtype", NUMBERS)
@named(np.square, np.sign, np.signbit, np.positive, np.fabs, np.deg2rad, np.rad2deg, np.modf,
       np.sinc, np.nan_to_num, np.isposinf, np.isneginf, np.conj, np.real, np.imag,
       np.copy, np.around, np.transpose, np.trace, np.tril, np.triu, np.diagonal, np.fliplr,
       np.flipud, np.rot90, np.ndim, np.size, np.shape, np.amax, np.amin, np.zeros_like,
       np.ones_like, np.matrix_transpose, np.atleast_1d, np.atleast_2d, np.asarray, np.fix,
       np.average)
def test_functions_of_one_array(function, dtype):
    agree(lambda x: function(x), random(dtype))


@pytest.mark.parametrize("dtype", NUMBERS)
@named(np.fmod, np.divmod, np.heaviside, np.logaddexp, np.logaddexp2, np.float_power, np.isclose,
       np.allclose, np.array_equal, np.vecdot, np.vdot)
def test_functions_of_two_arrays(function, dtype):
    agree(lambda x, y: function(x, y), finite(dtype), finite(dtype))


@pytest.mark.parametrize("dtype", INTS)
def test_functions_of_ints(dtype):
    agree(lambda x, y: np.gcd(x, y), random(dtype), random(dtype))
    agree(lambda x, y: np.lcm(x, y), random(dtype), random(dtype))
    agree(lambda x: np.gcd(x, 12), random(dtype))
    agree(lambda x: np.lcm(x, x[0]), random(dtype))
    agree(lambda x: np.bitwise_count(x), random(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_reciprocals_are_of_floats(dtype):
    agree(lambda x: np.reciprocal(x), random(dtype))
    with pytest.raises(BlockTypeError, match="np.reciprocal: accepted floats"):
        bn.evaluate(lambda x: np.reciprocal(x), random("int32"))


@pytest.mark.parametrize("function", [
    lambda x: np.zeros(4) + x[0, :4], lambda x: np.ones((4, 8)) + x,
    lambda x: np.full((4, 8), 2.5) + x, lambda x: np.full((4, 8), 3),
    lambda x: np.full(8, 3, dtype=np.int8), lambda x: np.zeros_like(x, dtype=np.int32),
    lambda x: np.full_like(x, 3, dtype=np.float64), lambda x: np.arange(8),
    lambda x: np.arange(2, 18, 2), lambda x: np.arange(16, 0, -2),
    lambda x: np.arange(8, dtype=np.float32), lambda x: np.linspace(-2, 5, 16),
    lambda x: np.linspace(0, 1, 8, endpoint=False, dtype=np.float32), lambda x: np.eye(4, 8, 1),
    lambda x: np.identity(8, dtype=np.int32), lambda x: np.tri(4, 8, 2)])
def test_what_makes_tiles(function):
    agree(function, finite("float64"))


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
@pytest.mark.parametrize("function", [
    lambda x: np.tril(x, -1), lambda x: np.triu(x, 2), lambda x: np.diag(x[0]),
    lambda x: np.diag(x[:, :4]), lambda x: np.tile(x, 2), lambda x: np.tile(x, (2, 4)),
    lambda x: np.tile(x[0], (2, 2)), lambda x: np.take(x, np.arange(4)[::-1]),
    lambda x: np.take(x, np.arange(4), 1), lambda x: np.take(x, np.arange(2), axis=0),
    lambda x: np.take(x[0], np.arange(4)[:, None]), lambda x: np.moveaxis(x, 0, 1),
    lambda x: np.moveaxis(x[:, :, None], (-1, 0), (0, 1)),
    lambda x: np.transpose(x[:, None], (2, 0, 1)), lambda x: x[:, None].transpose(2, 0, 1),
    lambda x: x.transpose(), lambda x: np.rot90(x, 2), lambda x: np.rot90(x, 3),
    lambda x: np.column_stack((x[0], x[1])), lambda x: np.hstack((x, x)),
    lambda x: np.vstack((x[0], x[1])), lambda x: np.outer(x[0], x[1]), lambda x: x.flatten(),
    lambda x: x.copy()])
def test_shapes(function, dtype):
    agree(function, finite(dtype))


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
@pytest.mark.parametrize("function", [
    lambda x: np.average(x, 0, np.arange(4) + 1.0), lambda x: np.average(x, axis=1, weights=x * x),
    lambda x: np.quantile(x, 0.3), lambda x: np.quantile(x, 0.75, axis=1),
    lambda x: np.percentile(x, 50, axis=0, keepdims=True), lambda x: np.linalg.norm(x),
    lambda x: np.linalg.norm(x, axis=1), lambda x: np.linalg.norm(x, 1, axis=0),
    lambda x: np.linalg.norm(x, np.inf, 1, keepdims=True), lambda x: np.inner(x[0], x[1]),
    lambda x: np.polyval((2, -1, 0.5), x), lambda x: np.digitize(x, np.arange(4)),
    lambda x: np.digitize(x, np.arange(4), right=True),
    lambda x: np.interp(x, np.arange(8), np.arange(8) * 2.5),
    lambda x: np.select((x > 1, x < -1), (x * 2, x * 3), 7), lambda x: np.isin(x, (1, 2, 3)),
    lambda x: np.isin(x, np.arange(4), invert=True), lambda x: np.round(x, 2),
    lambda x: x.round(1), lambda x: np.clip(x, a_min=-1, a_max=1), lambda x: np.clip(x, min=0),
    lambda x: np.clip(x, 0, None), lambda x: x.clip(max=2), lambda x: np.add.reduce(x),
    lambda x: np.maximum.reduce(x, axis=1), lambda x: np.maximum.accumulate(x),
    lambda x: np.add.accumulate(x, 1), lambda x: sum(x), lambda x: np.sum(x, 0, np.float64)])
def test_functions_of_many_elements(function, dtype):
    agree(function, finite(dtype))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("function", [
    lambda x: np.sum(x), lambda x: x.sum(axis=1, keepdims=True), lambda x: np.prod(x, -1),
    lambda x: x.prod(0), lambda x: np.cumsum(x), lambda x: x.cumsum(1), lambda x: np.cumprod(x, 0),
    lambda x: x.cumprod(axis=0), lambda x: np.nansum(x, 0), lambda x: np.nancumsum(x, 0),
    lambda x: np.trace(x), lambda x: np.add.reduce(x), lambda x: np.multiply.accumulate(x)])
def test_sums_of_ints_have_64_bits(function, dtype):
    limit = 2 if dtype == "bool" else np.iinfo(dtype).max
    x = np.random.default_rng().integers(limit // 2, limit, (4, 4)).astype(dtype)

    found, expected = bn.evaluate(function, x), function(x)

    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_what_is_not_a_number_is_replaced():
    agree(lambda x: np.nan_to_num(x, nan=1.5, posinf=9, neginf=-9), random("float32"))
    agree(lambda x: np.isclose(x, x + 1e-9, equal_nan=True), random("float64"))
    agree(lambda x: np.quantile(x, 0.5), random("float32"))
    infinite = np.array([[np.inf, 1, 2, 4]], np.float32)
    agree(lambda x: np.average(x, 1, np.arange(4) + 1.0), infinite)


@pytest.mark.parametrize("function, message", [
    (lambda x: bn.sum(x, 0, np.float64), "keep_dims: given the class float64"),
    (lambda x: np.sum(x, 0, True), "sum: dtype must be a dtype"),
    (lambda x: np.quantile(x, 2), "np.quantile: q: given 2, accepted a number from 0 to 1"),
    (lambda x: np.percentile(x, (25, 75)), "np.percentile: q: given"),
    (lambda x: np.sign(x > 0), "np.sign: given bool"),
    (lambda x: np.gcd(x, 2), "np.gcd: given .*, accepted ints"),
    (lambda x: np.moveaxis(x, (0, 0), (0, 1)), "np.moveaxis: given"),
    (lambda x: np.trace(x[0]), "np.trace: given .*rank 2"),
    (lambda x: np.linalg.norm(x, 3, axis=0), "accepted the orders")])
def test_what_cannot_be_done_is_said(function, message):
    with pytest.raises(BlockError, match=message):
        bn.evaluate(function, finite("float32"))


def test_every_function_says_what_it_does_and_is_in_the_page():
    page = (Path(__file__).parents[2] / "docs" / "supported.md").read_text()
    names = [name for name in dir(np) if any(getattr(np, name) is given for given in WRITTEN)]

    assert not [given for given, function in WRITTEN.items() if not function.__doc__]
    assert not [name for name in names if f"`{name}`" not in page]


@bn.jit
def in_a_kernel(x, out, N: bn.constexpr):
    r = bn.block(0, N)
    out[r] = np.sign(x[r]) * np.square(x[r]) + np.nan_to_num(np.reciprocal(x[r]))


def test_kernels_call_them():
    x = np.random.default_rng().standard_normal(1000).astype(np.float32)
    out = np.full(1000, np.nan, np.float32)

    in_a_kernel[bn.cdiv(1000, 256)](x, out, N=256)

    np.testing.assert_allclose(out, np.sign(x) * x * x + 1 / x, rtol=1e-5, atol=1e-5)

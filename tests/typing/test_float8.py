"""8-bit floats in kernels give what ml_dtypes gives, for every one of their values."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import pytest
from launching import launch

import blocknumba as bn

from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.ir.types import DTYPES, dtype_of

KINDS = [np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)]
SPELLINGS = [
    ("float8_e4m3fn", "float8_e4m3fn"), ("fp8e4nv", "float8_e4m3fn"),
    ("float8e4nv", "float8_e4m3fn"), (ml_dtypes.float8_e4m3fn, "float8_e4m3fn"),
    (bn.float8_e4m3fn, "float8_e4m3fn"), (bn.float8e4nv, "float8_e4m3fn"),
    ("float8_e5m2", "float8_e5m2"), ("fp8e5", "float8_e5m2"),
    (ml_dtypes.float8_e5m2, "float8_e5m2"), (bn.float8e5, "float8_e5m2")]


def codes(kind: np.dtype) -> np.ndarray:
    """Every value of an 8-bit float."""
    return np.arange(256, dtype=np.uint8).view(kind)


def pairs(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every element of x beside every one of y."""
    return tuple(np.ascontiguousarray(a) for a in np.broadcast_arrays(x[:, None], y[None, :]))


def apply(x, y, out, F, SIZE):
    r = bn.block(0, SIZE)
    out[r] = F(x[r], y[r])


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    nan = found != found
    np.testing.assert_array_equal(nan, expected != expected)
    np.testing.assert_array_equal(found[~nan].view(f"u{found.itemsize}"),
                                  expected[~nan].view(f"u{found.itemsize}"))


def agree(function, x: np.ndarray, y: np.ndarray, expected: np.ndarray) -> None:
    """What a function of two tiles stores is expected, bit for bit."""
    out = np.zeros(x.size, expected.dtype)
    launch(apply, x.size // 256, x=x.ravel(), y=y.ravel(), out=out,
           constants={"F": function, "SIZE": 256})
    assert_same(out, expected.ravel())


@pytest.mark.parametrize("spelling, name", SPELLINGS, ids=str)
def test_every_spelling_names_the_dtype(spelling, name):
    x, out = np.linspace(-3, 3, 256, dtype=np.float32), np.zeros(256, DTYPES[name].numpy)

    launch(apply, x=x, y=x, out=out, constants={"F": lambda x, y: x.to(spelling), "SIZE": 256})

    assert dtype_of(spelling).name == name
    assert_same(out, x.astype(DTYPES[name].numpy))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("function", [
    operator.add, operator.sub, operator.mul, operator.truediv, np.maximum, np.minimum,
    np.copysign, operator.lt, operator.le, operator.eq, operator.ne, operator.ge],
    ids=lambda f: f.__name__)
def test_arithmetic_of_all_pairs_is_that_of_ml_dtypes(function, kind):
    x, y = pairs(codes(kind), codes(kind))

    with np.errstate(all="ignore"):
        expected = function(x, y)

    agree(function, x, y, expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("function", [
    operator.neg, abs, np.sqrt, np.floor, np.rint, np.isnan, np.isinf, np.isfinite],
    ids=lambda f: f.__name__)
def test_functions_of_all_values_are_those_of_ml_dtypes(function, kind):
    x = codes(kind)

    with np.errstate(all="ignore"):
        expected = function(x)

    agree(lambda x, y: function(x), x, x, expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", [name for name in DTYPES if not name.startswith("float8")])
def test_beside_another_dtype_the_result_is_that_of_numpy_add(name, kind):
    x = codes(kind)
    y = (np.arange(256) % 7).astype(DTYPES[name].numpy)

    with np.errstate(all="ignore"):
        expected = x + y

    agree(operator.add, x, y, expected)


def test_the_two_kinds_together_make_float32():
    x, y = codes(KINDS[0]), codes(KINDS[1])

    agree(operator.mul, x, y, x * y)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_literal_takes_the_dtype(kind):
    x = codes(kind)

    agree(lambda x, y: x * 2.0 + 1, x, x, (x * np.array(2, kind) + np.array(1, kind)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_float32_scalar_makes_float32(kind):
    def scale(x, s, out):
        r = bn.span(0, 256)
        out[r] = x[r] * s

    x, out = codes(kind), np.zeros(256, np.float32)

    launch(scale, x=x, s=np.float32(0.3), out=out)

    assert_same(out, x.astype(np.float32) * np.float32(0.3))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_where_and_loads_with_masks_keep_every_bit(kind):
    def choose(x, y, out):
        i = bn.arange(0, 256)
        first = bn.load(x + i, mask=i < 200)
        bn.store(out + i, bn.where(i % 3 == 0, first, bn.load(y + i)), mask=i < 250)

    x, y, out = codes(kind), codes(kind)[::-1].copy(), np.zeros(256, kind)

    launch(choose, x=x, y=y, out=out)

    place = np.arange(256)
    expected = np.where(place % 3 == 0, np.where(place < 200, x, kind.type(0)), y)
    np.testing.assert_array_equal(out[:250].view(np.uint8), expected[:250].view(np.uint8))
    assert not out[250:].view(np.uint8).any()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("function", [
    bn.sum, bn.prod, bn.max, bn.min, bn.mean, bn.var, bn.argmax, bn.argmin],
    ids=lambda f: f.__name__)
def test_reductions_are_those_of_float32_rounded_once(function, kind):
    def reduce_rows(x, out, F):
        out[bn.span(0, 4)] = F(x[bn.span(0, 4), bn.span(0, 8)], axis=1)

    x = np.random.default_rng(0).standard_normal((4, 8)).astype(kind)
    is_index = function in (bn.argmax, bn.argmin)
    out = np.zeros(4, np.int32 if is_index else kind)

    launch(reduce_rows, x=x, out=out, constants={"F": function})

    expected = getattr(np, function.__name__)(x.astype(np.float32), axis=1).astype(out.dtype)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bytes_are_taken_as_floats_by_view_and_by_bitcast(kind):
    def reinterpret(x, out, DTYPE):
        r = bn.span(0, 256)
        out[0, r] = x[r].view(DTYPE)
        out[1, r] = x[r].to(DTYPE, bitcast=True)

    x, out = np.arange(256, dtype=np.uint8), np.zeros((2, 256), np.float32)

    launch(reinterpret, x=x, out=out, constants={"DTYPE": dtype_of(kind)})

    assert_same(out, np.stack([x.view(kind)] * 2).astype(np.float32))


def test_nextafter_of_eight_bit_floats_is_refused():
    def step(x, out):
        r = bn.span(0, 4)
        out[r] = bn.nextafter(x[r], x[r])

    x = codes(KINDS[0])

    with pytest.raises(BlockTypeError, match="nextafter: given float8_e4m3fn, accepted floats of "
                                             "16 bits and more"):
        launch(step, x=x, out=x.copy())

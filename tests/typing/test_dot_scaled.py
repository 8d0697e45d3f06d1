"""Products of matrices in microscaling formats, against numbers decoded one by one."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from launching import kernel_of, launch

import blocknumba as bn

from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.passes.pipeline import optimise  # noqa: E402

E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
DTYPES = {"e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2),
          "bf16": np.dtype(ml_dtypes.bfloat16), "fp16": np.dtype(np.float16)}
FORMATS = ["e2m1", *DTYPES]
SIZE = 64  # of every axis


def packed(codes: np.ndarray, axis: int) -> np.ndarray:
    """Codes of 4 bits, two to a byte along an axis, the first in the low half."""
    first, second = (np.take(codes, np.arange(i, codes.shape[axis], 2), axis) for i in (0, 1))
    return (first | second << 4).astype(np.uint8)


def operand(format_: str, seed: int, pack_axis: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix as it is passed, and its numbers in float64."""
    generator = np.random.default_rng(seed)
    if format_ == "e2m1":
        codes = generator.integers(0, 16, (SIZE, SIZE), np.uint8)
        return packed(codes, pack_axis), np.array(E2M1)[codes]
    given = generator.standard_normal((SIZE, SIZE)).astype(DTYPES[format_])
    return given, given.astype(np.float64)


def scales(seed: int, group: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """e8m0 scales of rows, (SIZE, SIZE / group), and the factors of all elements of rows."""
    codes = np.random.default_rng(seed).integers(120, 135, (SIZE, SIZE // group), np.uint8)
    return codes, np.repeat(2.0 ** (codes.astype(np.float64) - 127), group, axis=1)


def all_of(x, SHAPE):
    """A matrix whose shape is known."""
    return x[bn.span(0, SHAPE[0]), bn.span(0, SHAPE[1])]


def multiply(lhs, lhs_scale, rhs, rhs_scale, out, F, SHAPES, ALL):
    tiles = ALL(lhs, SHAPES[0]), ALL(lhs_scale, SHAPES[1]), ALL(rhs, SHAPES[2]), ALL(
        rhs_scale, SHAPES[3])
    out[bn.span(0, 64), bn.span(0, 64)] = F(*tiles)


def arguments(lhs, lhs_scale, rhs, rhs_scale, function) -> dict:
    """What `multiply` is launched with."""
    arrays = {"lhs": lhs, "lhs_scale": lhs_scale, "rhs": rhs, "rhs_scale": rhs_scale}
    return {**arrays, "out": np.zeros((SIZE, SIZE), np.float32), "constants": {
        "F": function, "SHAPES": tuple(x.shape for x in arrays.values()), "ALL": all_of}}


def product(*operands_and_function) -> np.ndarray:
    """What a function of lhs, lhs_scale, rhs and rhs_scale gives."""
    given = arguments(*operands_and_function)
    launch(multiply, **given)
    return given["out"]


def assert_product(found, a, b, digits=2.0**-13):
    bound = SIZE * digits * (np.abs(a) @ np.abs(b))
    assert (np.abs(found - a @ b) <= bound).all()


@pytest.mark.parametrize("lhs_format, rhs_format", list(itertools.product(FORMATS, repeat=2)))
def test_every_pair_of_formats_with_scales(lhs_format, rhs_format):
    (lhs, a), (rhs, b) = operand(lhs_format, 0, 1), operand(rhs_format, 1, 0)
    (s, a_scale), (t, b_scale) = scales(2), scales(3)

    found = product(lhs, s, rhs, t, lambda lhs, s, rhs, t: bn.dot_scaled(
        lhs, s, lhs_format, rhs, t, rhs_format))

    assert_product(found, a * a_scale, b * b_scale.T, 2.0**-23)


@pytest.mark.parametrize("lhs_format, rhs_format", list(itertools.product(FORMATS, repeat=2)))
def test_every_pair_of_formats_without_scales(lhs_format, rhs_format):
    (lhs, a), (rhs, b), (s, _) = operand(lhs_format, 0, 1), operand(rhs_format, 1, 0), scales(2)

    found = product(lhs, s, rhs, s, lambda lhs, s, rhs, t: bn.dot_scaled(
        lhs, None, lhs_format, rhs, None, rhs_format))

    assert_product(found, a, b)


@pytest.mark.parametrize("scaled", ["lhs", "rhs"])
def test_one_operand_may_have_scales(scaled):
    (lhs, a), (rhs, b), (s, factors) = operand("e4m3", 0, 1), operand("bf16", 1, 0), scales(2)

    found = product(lhs, s, rhs, s, lambda lhs, s, rhs, t: bn.dot_scaled(
        lhs, s if scaled == "lhs" else None, "e4m3", rhs, t if scaled == "rhs" else None, "bf16"))

    expected = (a * factors, b) if scaled == "lhs" else (a, b * factors.T)
    assert_product(found, *expected, 2.0**-23)


def test_elements_packed_along_the_other_axis():
    (lhs, a), (rhs, b) = operand("e2m1", 0, 0), operand("e2m1", 1, 1)
    (s, a_scale), (t, b_scale) = scales(2), scales(3)

    found = product(lhs, s, rhs, t, lambda lhs, s, rhs, t: bn.dot_scaled(
        lhs, s, "e2m1", rhs, t, "e2m1", lhs_k_pack=False, rhs_k_pack=False))

    assert_product(found, a * a_scale, b * b_scale.T, 2.0**-23)


def test_codes_may_be_passed_for_floats():
    (lhs, a), (rhs, b) = operand("e4m3", 0, 1), operand("fp16", 1, 0)
    s, a_scale = scales(2)

    found = product(lhs.view(np.uint8), s, rhs.view(np.uint16), s, lambda lhs, s, rhs, t:
                    bn.dot_scaled(lhs, s, "e4m3", rhs, None, "fp16"))

    assert_product(found, a * a_scale, b, 2.0**-23)


def test_scales_of_16_elements_may_be_8_bit_floats():
    (lhs, a), (rhs, b) = operand("e2m1", 0, 1), operand("e2m1", 1, 0)
    generator = np.random.default_rng(2)
    s, t = generator.uniform(0.1, 400, (2, SIZE, SIZE // 16)).astype(ml_dtypes.float8_e4m3fn)

    found = product(lhs, s, rhs, t, lambda lhs, s, rhs, t: bn.dot_scaled(
        lhs, s, "e2m1", rhs, t, "e2m1"))

    a_scale, b_scale = (np.repeat(x.astype(np.float64), 16, axis=1) for x in (s, t))
    assert_product(found, a * a_scale, b * b_scale.T, 2.0**-23)


def test_every_e8m0_scale_is_a_power_of_two_and_255_is_nan():
    lhs = np.full((SIZE, SIZE), 1, ml_dtypes.float8_e4m3fn)
    rhs = np.eye(SIZE).astype(ml_dtypes.float8_e4m3fn)
    for first in (0, 128):
        s = np.arange(first, first + 128, dtype=np.uint8).reshape(SIZE, 2)

        found = product(lhs, s, rhs, s, lambda lhs, s, rhs, t: bn.dot_scaled(
            lhs, s, "e4m3", rhs, None, "e4m3"))

        expected = 2.0 ** (np.repeat(s.astype(np.float64), 32, axis=1) - 127)
        expected[np.repeat(s, 32, axis=1) == 255] = np.nan
        # NaN times 0 is NaN, and the row has it in every sum
        expected[np.isnan(expected).any(axis=1)] = np.nan
        np.testing.assert_array_equal(found, expected)


def test_an_accumulator_is_added_to():
    (lhs, a), (rhs, b), (s, factors) = operand("e5m2", 0, 1), operand("e4m3", 1, 0), scales(2)

    found = product(lhs, s, rhs, s, lambda lhs, s, rhs, t: bn.dot_scaled(
        lhs, s, "e5m2", rhs, t, "e4m3", bn.full((64, 64), 7, bn.float32)))

    assert_product(found - 7, a * factors, b * factors.T, 2.0**-19)


@pytest.mark.parametrize("formats, scaled, dtype", [
    (("e4m3", "e5m2"), False, "float8_e4m3fn"), (("e2m1", "e4m3"), False, "float8_e4m3fn"),
    (("bf16", "bf16"), False, "bfloat16"), (("fp16", "fp16"), False, "float16"),
    (("e4m3", "e4m3"), True, "bfloat16"), (("fp16", "e2m1"), True, "float32")])
def test_operands_are_widened_only_where_they_must_be(formats, scaled, dtype):
    (lhs, _), (rhs, _), (s, _) = operand(formats[0], 0, 1), operand(formats[1], 1, 0), scales(2)
    given = arguments(lhs, s, rhs, s, lambda lhs, s, rhs, t: bn.dot_scaled(
        lhs, s if scaled else None, formats[0], rhs, t if scaled else None, formats[1]))

    (dot,) = (op for op in walk(optimise(kernel_of(multiply, **given)).body) if op.name == "dot")

    assert dot.operands[0].type.dtype.name == dtype
    assert dot.attrs["precision"] == ("tf32" if dtype == "float32" else "ieee")


@pytest.mark.parametrize("function, message", [
    (lambda lhs, s, rhs, t: bn.dot_scaled(lhs, s, "e3m2", rhs, t, "e4m3"),
     "dot_scaled: lhs_format must be one of ('e2m1', 'e4m3', 'e5m2', 'bf16', 'fp16'), got 'e3m2'"),
    (lambda lhs, s, rhs, t: bn.dot_scaled(lhs, s, "e5m2", rhs, t, "e4m3"),
     "dot_scaled: lhs of format 'e5m2' must be a tile of rank 2 or 3 of float8_e5m2 or uint8, got "
     "tile<64x64xfloat8_e4m3fn>"),
    (lambda lhs, s, rhs, t: bn.dot_scaled(lhs, s, "e4m3", rhs, 1.0, "e4m3"),
     "dot_scaled: rhs_scale must be of shape (64, 2) or (64, 4), got 1.0"),
    (lambda lhs, s, rhs, t: bn.dot_scaled(lhs, s.T, "e4m3", rhs, t, "e4m3"),
     "dot_scaled: lhs_scale must be of shape (64, 2) or (64, 4), got tile<2x64xuint8>"),
    (lambda lhs, s, rhs, t: bn.dot_scaled(lhs, s.to(bn.int32), "e4m3", rhs, t, "e4m3"),
     "dot_scaled: lhs_scale must be uint8 or float8_e4m3fn, got tile<64x2xint32>"),
    (lambda lhs, s, rhs, t: bn.dot_scaled(lhs, s, "e4m3", rhs, t, "e4m3", out_dtype=bn.float16),
     "dot_scaled: out_dtype must be float32, got float16"),
])
def test_what_does_not_fit_is_an_error_that_says_so(function, message):
    (lhs, _), (rhs, _), (s, _) = operand("e4m3", 0, 1), operand("e4m3", 1, 0), scales(2)

    with pytest.raises((BlockTypeError, BlockValueError)) as error:
        kernel_of(multiply, **arguments(lhs, s, rhs, s, function))

    assert error.value.message == message

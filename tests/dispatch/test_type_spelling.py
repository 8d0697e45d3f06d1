"""Argument types as text."""

import numba
import numpy as np
import pytest

from blocknumba.dispatch.compile.ahead import parse_type, parse_types
from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.ir.types import (
    DTYPES, ArrayArgument, ScalarArgument, bfloat16, float16, float32, float64, int32,
)

ANY, UNIT = None, 1


@pytest.mark.parametrize("text, dtype, strides", [
    ("f32[::1]", float32, (UNIT,)), ("f32[:]", float32, (ANY,)),
    ("float32[:,::1]", float32, (ANY, UNIT)), ("f16[::1,:]", float16, (UNIT, ANY)),
    ("bf16[:, :, ::1]", bfloat16, (ANY, ANY, UNIT)), ("i32[:,:]", int32, (ANY, ANY)),
    ("f32[]", float32, ())])
def test_arrays_in_numbas_spelling_are_aligned(text, dtype, strides):
    found = parse_type(text, "add: argument x")

    rank = len(strides)
    assert found == ArrayArgument(dtype, strides, (None,) * rank, 16, (1,) * rank, (1,) * rank)


def test_multiples_of_16_are_said_after_a_colon():
    found = parse_type("f16[:,::1]:16", "")

    assert (found.alignment, found.stride_divisibility, found.extent_divisibility) == (
        16, (16, 1), (16, 16))
    assert parse_type("f16[:,::1]:1", "").alignment == 2
    assert parse_type("f16[:,::1]:16", "").mappable
    assert not parse_type("f16[:,::1]", "").mappable
    assert parse_type("f64[:,::1]:2", "").mappable
    assert parse_type("i32:16", "") == ScalarArgument(int32, divisibility=16)
    assert parse_type("i32:1", "") == ScalarArgument(int32, value=1)


def test_pointers_in_tritons_spelling_are_aligned_only_when_they_say_so():
    assert parse_type("*fp32", "") == ArrayArgument(float32, (1,), (None,), 4, (1,), (1,))
    assert parse_type("*bf16:16", "").alignment == 16


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_dtype_has_a_scalar(name):
    assert parse_type(name, "") == ScalarArgument(DTYPES[name])


def test_pythons_numbers_are_weak():
    assert parse_type("float", "") == parse_type(float, "") == ScalarArgument(float64, weak=True)
    assert parse_type("int", "") == parse_type(int, "") == ScalarArgument(int32, weak=True)
    assert parse_type("int:16", "") == ScalarArgument(int32, divisibility=16, weak=True)
    assert parse_type("int:1", "") == ScalarArgument(int32, value=1, weak=True)


@pytest.mark.parametrize("given, same", [
    (numba.float32[:, ::1], "f32[:,::1]"), (numba.int8[:, :], "i8[:,:]"), (numba.int64, "i64"),
    (numba.boolean, "b1"), (np.float16, "f16"), (np.dtype("u4"), "u32"), (float32, "f32"),
    (numba.float32[::1, :], "f32[::1,:]")], ids=str)
def test_types_of_numba_and_numpy_are_accepted(given, same):
    assert parse_type(given, "") == parse_type(same, "")


@pytest.mark.parametrize("text", ["f33", "f32[", "f32[::1,::1]", "f32[:,::1,:]", "i32:3", "", "*",
                                  "*f32[:]", "f32[1]", "f32 f32", "*float", "int[:]"])
def test_anything_else_is_an_error_that_shows_what_is_accepted(text):
    with pytest.raises(BlockTypeError, match="add: argument x: given the type"):
        parse_type(text, "add: argument x")


@pytest.mark.parametrize("given", [
    "f32[:,::1], i32", ("f32[:,::1]", "i32"), ["f32[:,::1]", numba.int32],
    {"n": "i32", "x": "f32[:,::1]"}])
def test_types_come_as_a_string_or_a_sequence_or_a_dict(given):
    found = parse_types(given, ("x", "n"), "add")

    assert found == (("x", parse_type("f32[:,::1]", "")), ("n", ScalarArgument(int32)))


@pytest.mark.parametrize("given, message", [
    ("f32", r"add: given 1 types, accepted 2 \(x, n\)"), ("", "add: given 0 types"),
    ({"x": "f32"}, "add: given types of x, accepted types of x, n")])
def test_another_number_of_types_is_an_error(given, message):
    with pytest.raises(BlockTypeError, match=message):
        parse_types(given, ("x", "n"), "add")

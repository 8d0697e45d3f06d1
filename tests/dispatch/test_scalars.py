"""Numbers given at launch."""

import math

import ml_dtypes
import numpy as np
import pytest

from blocknumba.dispatch.launch.signature import scalar_info
from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.tile_ir.ir.types import DTYPES

WHERE = "add: argument n"


@pytest.mark.parametrize("value, dtype", [
    (0, "int32"), (2**31 - 1, "int32"), (-2**31, "int32"), (2**31, "int64"), (-2**31 - 1, "int64"),
    (2**63 - 1, "int64"), (2**63, "uint64"), (2**64 - 1, "uint64"), (1.5, "float64"),
    (True, "bool"), (1e300, "float64"), (float("inf"), "float64")])
def test_python_numbers_get_the_narrowest_dtype_that_holds_them(value, dtype):
    info = scalar_info(value, None, WHERE)

    assert info.dtype == DTYPES[dtype]
    assert info.value == value
    assert info.value.dtype == info.dtype.numpy


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_numpy_scalars_keep_their_dtype_and_their_bits(dtype):
    value = DTYPES[dtype].numpy.type(1)

    info = scalar_info(value, None, WHERE)

    assert info.dtype == DTYPES[dtype]
    assert info.bits.to_bytes(8, "little")[:value.nbytes] == value.tobytes()
    assert not info.weak


@pytest.mark.parametrize("declared, value, expected", [
    ("float16", 65500.0, np.float16(65500.0)), ("float16", -65500.0, np.float16(-65500.0)),
    ("float16", 42, np.float16(42)), ("bfloat16", 42.0, ml_dtypes.bfloat16(42)),
    ("float64", 0.1, np.float64(0.1)), ("float32", np.float64(0.1), np.float32(0.1)),
    ("int8", -128, np.int8(-128)), ("uint16", np.int64(65535), np.uint16(65535)),
    ("int64", 2**40, np.int64(2**40)), ("uint64", 2**63 + 5, np.uint64(2**63 + 5)),
    ("bool", np.bool_(True), np.bool_(True))])
def test_a_declared_dtype_converts(declared, value, expected):
    info = scalar_info(value, DTYPES[declared], WHERE)

    assert info.dtype == DTYPES[declared]
    assert info.value.tobytes() == expected.tobytes()


@pytest.mark.parametrize("declared, value, error, message", [
    (None, 2**64, BlockValueError, "given 18446744073709551616, accepted ints that fit in 64"),
    (None, -2**63 - 1, BlockValueError, "accepted ints that fit in 64 bits"),
    ("float32", 1e39, BlockValueError, "given 1e.39, accepted numbers in the range of float32"),
    ("float64", 10**400, BlockValueError, "accepted numbers in the range of float64"),
    ("float16", 65520.0, BlockValueError, "range of float16"),
    ("int8", 128, BlockValueError, r"given 128, accepted int8 \(-128 to 127\)"),
    ("uint32", -1, BlockValueError, r"given -1, accepted uint32 \(0 to 4294967295\)"),
    ("int32", 1.0, BlockTypeError, "given 1.0, accepted int32"),
    ("int32", True, BlockTypeError, "given True, accepted int32"),
    ("bool", 1, BlockTypeError, "given 1, accepted bool"),
    (None, np.complex64(1), BlockTypeError, "given a scalar of complex64")])
def test_a_number_that_does_not_fit_is_an_error_that_names_the_argument(declared, value, error,
                                                                        message):
    with pytest.raises(error, match=f"{WHERE}: .*{message}"):
        scalar_info(value, declared and DTYPES[declared], WHERE)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_floats_that_are_not_finite_pass(value):
    info = scalar_info(value, DTYPES["float16"], WHERE)

    assert info.value == value or math.isnan(info.value) and math.isnan(value)


@pytest.mark.parametrize("value", [None, "1", [1], (1,), np.arange(3), 1j])
def test_other_values_are_not_numbers(value):
    assert scalar_info(value, None, WHERE) is None


def test_negative_zero_keeps_its_sign():
    assert scalar_info(-0.0, None, WHERE).bits == 1 << 63

"""`np.finfo` and `np.iinfo` in kernels, and those of other libraries, were refused."""

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockValueError


@bn.jit
def greatest_float(out, N: bn.constexpr):
    out[bn.arange(0, N)] = np.finfo(out.dtype).max


@bn.jit
def least_integer(out, N: bn.constexpr):
    out[bn.arange(0, N)] = np.iinfo(out.dtype).min


@bn.jit
def smallest_normal(out, N: bn.constexpr):
    out[bn.arange(0, N)] = ml_dtypes.finfo(out.dtype).smallest_normal


@triton.jit
def greatest_of_triton(out, N: tl.constexpr):
    MAX: tl.constexpr = np.finfo(np.float32).max
    tl.store(out + tl.arange(0, N), tl.full((N,), MAX, tl.float32))


@pytest.mark.parametrize("kernel, dtype, wanted", [
    (greatest_float, np.float16, np.finfo(np.float16).max),
    (greatest_float, np.float64, np.finfo(np.float64).max),
    (least_integer, np.int8, -128),
    (least_integer, np.uint32, 0),
    (least_integer, np.int64, np.iinfo(np.int64).min),
    (smallest_normal, ml_dtypes.bfloat16, ml_dtypes.finfo(ml_dtypes.bfloat16).smallest_normal),
    (greatest_of_triton, np.float32, np.finfo(np.float32).max),
])
def test_limits_of_a_dtype_are_constants_of_a_kernel(kernel, dtype, wanted):
    out = np.full(16, 7, dtype)
    kernel[1](out, N=16, device="cpu")
    np.testing.assert_array_equal(out, np.full(16, wanted, dtype))


def test_limits_that_the_library_refuses_are_an_error_at_the_line():
    with pytest.raises(BlockValueError, match=r"in a compile-time expression: .*int16") as caught:
        greatest_float[1](np.zeros(16, np.int16), N=16, device="cpu")
    assert "np.finfo(out.dtype)" in str(caught.value)

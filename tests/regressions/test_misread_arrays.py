"""Arrays that once were refused or misread: empty, one-element axes, read-only, captured."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

TABLE = np.array([3, 1, 4, 1], np.int32)


@bn.jit
def double(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    out[r, c] = x[r, c] * 2


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_array_is_accepted_and_left_alone(device, shape):
    """numba/numba#4140, #6050, #4175"""
    x, out = np.zeros(shape, np.float32), np.full((4, 4), 7, np.float32)
    device.run(double, 1, x, np.zeros(shape, np.float32), ROWS=4, COLUMNS=4)
    device.run(double, 1, x, out, ROWS=4, COLUMNS=4)
    np.testing.assert_array_equal(out, 0)


@pytest.mark.parametrize("strides", [(800, 8), (8, 8), (40, 8), (0, 8)], ids=str)
def test_stride_of_an_axis_of_length_one_does_not_matter(device, strides):
    """numba/numba#6824"""
    x = np.lib.stride_tricks.as_strided(np.arange(10.0), (1, 10), strides)
    out = np.zeros((1, 10))
    device.run(double, 1, x, out, ROWS=1, COLUMNS=16)
    np.testing.assert_array_equal(out, np.arange(10.0)[None] * 2)


def test_read_only_array_can_be_read(device):
    """numba/numba#2521"""
    x, out = np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)
    x.flags.writeable = False
    device.run(double, 1, x, out, ROWS=4, COLUMNS=4)
    np.testing.assert_array_equal(out, 2)


def test_read_only_array_cannot_be_stored_to(device):
    """numba/numba#1229"""
    x, out = np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)
    out.flags.writeable = False
    with pytest.raises(BlockError, match="out"):
        device.run(double, 1, x, out, ROWS=4, COLUMNS=4)
    np.testing.assert_array_equal(out, 0)


@bn.jit
def read_captured(out, B: bn.constexpr):
    r = bn.span(0, B)
    out[r] = TABLE[r]


def test_captured_array_is_a_clear_error_or_works(device):
    """numba/numba#9084"""
    out = np.zeros(4, np.int32)
    try:
        device.run(read_captured, 1, out, B=4)
    except BlockError as error:
        assert "TABLE" in str(error)
    else:
        np.testing.assert_array_equal(out, TABLE)


@bn.jit
def add_into(x, y, B: bn.constexpr):
    r = bn.block(0, B)
    y[r] = x[r] + y[r]


def test_numpy_arrays_are_changed_in_place(device):
    """triton-lang/triton#174"""
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    device.run(add_into, bn.cdiv(100, 32), x, y, B=32)
    np.testing.assert_array_equal(x, np.arange(100))
    np.testing.assert_array_equal(y, np.arange(100) + 1)


def test_the_same_array_can_be_passed_twice(device):
    """numba/numba#6904"""
    x = np.arange(100, dtype=np.float32)
    device.run(add_into, bn.cdiv(100, 32), x, x, B=32)
    np.testing.assert_array_equal(x, 2 * np.arange(100))


@pytest.mark.parametrize("dtype", ["complex64", "S4", "datetime64[s]", ">f4"])
def test_array_of_an_unsupported_dtype_is_named(device, dtype):
    """numba/numba#5727"""
    with pytest.raises(TypeError, match="x"):
        device.run(add_into, 1, np.zeros(8, dtype), np.zeros(8, np.float32), B=8)

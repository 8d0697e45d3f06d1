"""Objects that say their address, dtype and shape, as FlagGems' StridedBuffer does for flips."""

from dataclasses import dataclass

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockTypeError


@dataclass
class Buffer:
    """A view of an array of NumPy from an element on, with strides of its own."""

    base: np.ndarray
    shape: tuple
    strides: tuple
    offset: int = 0

    @property
    def dtype(self):
        return self.base.dtype

    def data_ptr(self):
        return self.base.ctypes.data + self.offset * self.base.itemsize

    def stride(self):
        return self.strides


@dataclass
class Pointer:
    """An address of elements, and no more, as FlagGems' TypedPtr."""

    address: int
    dtype: object

    def data_ptr(self):
        return self.address


@triton.jit
def relu(x, out, stride, n, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    value = tl.load(x + at * stride, mask=at < n)
    tl.store(out + at, tl.maximum(value, 0), mask=at < n)


@bn.jit
def double(x, out, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = x[r] * 2


def test_a_kernel_reads_backwards_through_a_pointer_amid_an_array():
    x = np.random.default_rng().standard_normal(100).astype(np.float32)
    out = np.full(100, np.nan, np.float32)
    flipped = Buffer(x, (100,), (-1,), 99)
    relu[(1,)](flipped, out, flipped.stride()[0], 100, SIZE=128, device="cpu")
    np.testing.assert_array_equal(out, np.maximum(x[::-1], 0))


def test_an_array_of_an_address_has_its_own_strides():
    x = np.random.default_rng().integers(-99, 99, 64)
    out = np.full(16, -1)
    double[1](Buffer(x, (16,), (-4,), 63), out, N=16, device="cpu")
    np.testing.assert_array_equal(out, x[:2:-4] * 2)


def test_stores_reach_the_memory_of_the_address():
    x = np.random.default_rng().integers(-99, 99, 16)
    base = np.full(40, -1)
    double[1](x, Buffer(base, (16,), (2,), 4), N=16, device="cpu")
    expected = np.full(40, -1)
    expected[4:36:2] = x * 2
    np.testing.assert_array_equal(base, expected)


def test_an_address_of_elements_that_a_kernel_has_not_is_an_error():
    with pytest.raises(BlockTypeError, match="argument x: given an array of complex64"):
        double[1](Buffer(np.zeros(4, np.complex64), (4,), (1,)), np.zeros(4), N=4, device="cpu")


@pytest.mark.parametrize("how", [{"device": "cpu"}, {"interpret": True}])
def test_a_pointer_needs_no_shape_where_kernels_read_addresses(how):
    x = np.random.default_rng().standard_normal(100).astype(np.float32)
    out = np.full(100, np.nan, np.float32)
    relu[(1,)](Pointer(x.ctypes.data + 4 * 4, x.dtype), Pointer(out.ctypes.data, np.float32), 2, 40,
               SIZE=64, **how)
    np.testing.assert_array_equal(out[:40], np.maximum(x[4:84:2], 0))
    assert np.isnan(out[40:]).all()


def test_a_pointer_without_a_shape_is_no_array():
    x = np.zeros(4)
    with pytest.raises(BlockTypeError, match="double: argument x: given .*Pointer.*, a pointer "
                                             "without a shape, accepted arrays") as refused:
        double[1](Pointer(x.ctypes.data, x.dtype), x, N=4, device="cpu")
    assert refused.value.hint == "give its class a shape"

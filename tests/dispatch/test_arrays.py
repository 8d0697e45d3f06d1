"""Arrays of every library, as ArrayInfo."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.dispatch.launch.arrays import array_info, host_view
from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.tile_ir.ir.types import DTYPES, float32, float64

WHERE = "add: argument x"
BASE = np.arange(120, dtype=np.float32).reshape(4, 5, 6)


@pytest.mark.parametrize("array", [
    BASE, BASE.T, BASE[::2, ::-1], BASE[:, :, 2], BASE[1, 2, 3:4],
    np.broadcast_to(BASE[0], (3, 5, 6)), np.array(3.0), np.zeros((0, 3), np.float32), BASE[1:1]],
    ids=["C", "F", "steps", "column", "one", "broadcast", "rank 0", "empty", "empty view"])
def test_a_view_of_the_info_is_the_array(array):
    info = array_info(array, WHERE)
    view = host_view(info)

    np.testing.assert_array_equal(view, array)
    assert view.dtype == array.dtype
    assert view.flags.writeable == array.flags.writeable


def test_a_view_shares_memory_with_the_array():
    array = np.zeros((3, 4), np.float32)[::-1, ::2]

    host_view(array_info(array, WHERE))[1, 1] = 5

    assert array[1, 1] == 5


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_dtype_is_read(name):
    array = np.zeros(3, DTYPES[name].numpy)

    assert array_info(array, WHERE).dtype == DTYPES[name]


@pytest.mark.parametrize("shape, strides, expected", [
    ((1, 10), (800, 8), (10, 1)), ((1, 10), (40, 8), (10, 1)), ((10, 1), (8, 8), (1, 1)),
    ((10, 1), (56, 24), (7, 1)), ((4, 1, 8), (64, 792, 8), (8, 8, 1)), ((1,), (999 * 8,), (1,)),
    ((1, 1, 1), (0, -8, 16), (1, 1, 1)), ((1, 10), (3, 8), (10, 1)), ((0, 3), (5, 7), (3, 1)),
    ((3, 0), (1, 1), (1, 1)), ((2, 3), (-24, 8), (-3, 1)), ((2, 3), (0, 8), (0, 1))])
def test_axes_that_are_never_stepped_along_count_as_contiguous(shape, strides, expected):
    array = np.lib.stride_tricks.as_strided(np.zeros(1000), shape, strides)

    assert array_info(array, WHERE).strides == expected


@pytest.mark.parametrize("array, error, message", [
    (np.zeros(3, np.complex64), BlockTypeError, "given an array of complex64, accepted bool"),
    (np.zeros(3, object), BlockTypeError, "given an array of object"),
    (np.zeros(3, "f4,i4"), BlockTypeError, "given an array of"),
    (np.zeros(3, ">f4"), BlockTypeError, "(?s)given an array of >f4.*hint: use x.astype"),
    (np.ma.zeros(3), BlockTypeError, "given a masked array"),
    (np.zeros((1,) * 17), BlockTypeError, "given an array of rank 17, accepted 0 to 16"),
    (np.zeros(8, "i2,f4")["f1"], BlockValueError, "given a stride of 6 bytes along axis 0"),
], ids=["complex", "object", "record", "byte order", "mask", "rank", "stride"])
def test_an_array_that_a_kernel_cannot_use_is_an_error_that_names_it(array, error, message):
    with pytest.raises(error, match=f"{message}"):
        array_info(array, WHERE)


def test_read_only_arrays_are_known():
    array = np.zeros(3)
    array.flags.writeable = False

    assert array_info(array, WHERE).readonly
    assert not host_view(array_info(array, WHERE)).flags.writeable


@pytest.mark.parametrize("value", [None, 3, "x", [1, 2], object()])
def test_other_values_are_not_arrays(value):
    assert array_info(value, WHERE) is None


def test_offsets_reach_from_the_first_element_in_both_directions():
    info = array_info(np.zeros((3, 4))[::-1, ::2], WHERE)

    assert info.offsets() == (-8, 2)
    assert info.byte_range() == (info.pointer - 64, info.pointer + 24)


class DLPackOnly:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray, versions: bool = True):
        self._array, self._versions = array, versions

    def __dlpack__(self, **arguments):
        if arguments and not self._versions:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("versions", [True, False], ids=["versioned", "unversioned"])
def test_dlpack_arrays_are_read_without_a_copy(versions):
    array = np.arange(12, dtype=np.float64).reshape(3, 4)[::-1, ::2]

    info = array_info(DLPackOnly(array, versions), WHERE)
    host_view(info)[0, 0] = 99

    assert (info.dtype, info.shape, info.strides) == (float64, (3, 2), (-4, 2))
    assert array[0, 0] == 99


def test_a_read_only_dlpack_array_is_known():
    array = np.arange(4.0)
    array.flags.writeable = False

    assert array_info(DLPackOnly(array), WHERE).readonly


def test_a_dlpack_dtype_that_a_kernel_cannot_use_is_an_error():
    with pytest.raises(BlockTypeError, match="argument x: given DLPack type code 5 of 64 bits"):
        array_info(DLPackOnly(np.zeros(2, np.complex64)), WHERE)


def test_dlpack_memory_elsewhere_is_an_error():
    class Elsewhere(DLPackOnly):
        def __dlpack_device__(self):
            return (8, 0)  # Metal

    with pytest.raises(BlockTypeError, match="given memory of DLPack device type 8"):
        array_info(Elsewhere(np.zeros(2)), WHERE)


def test_bfloat16_arrays_are_read():
    info = array_info(np.arange(4).astype(ml_dtypes.bfloat16), WHERE)

    np.testing.assert_array_equal(host_view(info).astype(np.float32), [0, 1, 2, 3])


def test_the_memory_lives_as_long_as_the_view():
    view = host_view(array_info(np.full(1000, 7, np.float32), WHERE))

    np.zeros(1000, np.float32)  # would take the memory over

    assert ctypes.c_float.from_address(view.ctypes.data).value == 7
    assert array_info(view, WHERE).dtype == float32


@pytest.mark.parametrize("interpret", [False, True])
def test_arrays_and_tiles_may_have_many_axes(interpret):
    @bn.jit
    def reverse_axes(x, out):
        box = (bn.span(0, 2),) * 9
        out[box] = bn.permute(x[box], (8, 7, 6, 5, 4, 3, 2, 1, 0))

    x = np.random.default_rng().integers(0, 1000, (2,) * 9)
    out = np.full_like(x, -1)

    reverse_axes[1](x, out, interpret=interpret)

    np.testing.assert_array_equal(out, x.T)

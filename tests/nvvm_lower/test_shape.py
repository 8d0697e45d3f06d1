"""Ops that rearrange elements, against NumPy, for layouts of several origins."""

import numpy as np
import pytest
from kernels import emulated
from test_reduce import tile, tile_kernel

SHAPES = [(16,), (4, 8), (64, 32), (128, 2), (2, 4, 8)]


def ran(x, body, shape, num_warps=4):
    out = np.zeros(shape, x.dtype)
    emulated(tile_kernel(x.shape, str(x.dtype), body, shape, str(x.dtype)), 1, x, out,
             num_warps=num_warps)
    return out


def numbered(shape, dtype=np.int32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


@pytest.mark.parametrize("new", [(256,), (2, 128), (128, 2), (4, 8, 8), (16, 16)], ids=str)
@pytest.mark.parametrize("old", [(256,), (16, 16), (64, 4)], ids=str)
def test_reshape_keeps_c_order(old, new):
    x = numbered(old)

    found = ran(x, f"%y = reshape %x : {tile(new, 'int32')}", new)

    np.testing.assert_array_equal(found, x.reshape(new))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("shape, axes", [
    ((4, 8), (1, 0)), ((64, 32), (1, 0)), ((2, 4, 8), (2, 0, 1)), ((8, 2, 16), (1, 0, 2))], ids=str)
@pytest.mark.parametrize("dtype", ["int32", "float64", "int8", "float16"])
def test_transpose_permutes_axes(shape, axes, dtype, num_warps):
    x = numbered(shape, np.uint8).astype(dtype)
    new = tuple(shape[axis] for axis in axes)

    found = ran(x, f"%y = transpose %x {{axes={axes}}} : {tile(new, dtype)}", new, num_warps)

    np.testing.assert_array_equal(found, x.transpose(axes))


@pytest.mark.parametrize("old, new", [((1, 32), (16, 32)), ((16, 1), (16, 32)), ((1, 1), (8, 8)),
                                      ((1, 2, 1), (4, 2, 8))], ids=str)
def test_broadcast_repeats_axes_of_one(old, new):
    x = numbered(old)

    found = ran(x, f"%y = broadcast %x : {tile(new, 'int32')}", new)

    np.testing.assert_array_equal(found, np.broadcast_to(x, new))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_flip_reverses_each_axis(shape):
    x = numbered(shape)

    for axis in range(len(shape)):
        found = ran(x, f"%y = flip %x {{axis={axis}}} : {tile(shape, 'int32')}", shape)
        np.testing.assert_array_equal(found, np.flip(x, axis))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_join_puts_two_tiles_side_by_side(shape):
    x, new = numbered(shape), (*shape, 2)
    body = f"%n = neg %x : {tile(shape, 'int32')}\n%y = join %x, %n : {tile(new, 'int32')}"

    found = ran(x, body, new)

    np.testing.assert_array_equal(found, np.stack([x, -x], -1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_split_takes_a_pair_apart(shape):
    x = numbered((*shape, 2))
    half = tile(shape, "int32")
    body = f"%a, %b = split %x : {half}, {half}\n%t = add %b, %b : {half}\n%y = sub %t, %a : {half}"

    found = ran(x, body, shape)

    np.testing.assert_array_equal(found, 2 * x[..., 1] - x[..., 0])


@pytest.mark.parametrize("starts, extent", [
    ((0, 0), (16, 16)), ((32, 16), (32, 16)), ((63, 31), (1, 1)), ((8, 0), (8, 32))], ids=str)
def test_extract_takes_an_aligned_subset(starts, extent):
    x = numbered((64, 32))

    found = ran(x, f"%y = extract %x {{starts={starts}}} : {tile(extent, 'int32')}", extent)

    (a, b), (m, n) = starts, extent
    np.testing.assert_array_equal(found, x[a:a + m, b:b + n])


def test_a_value_used_in_two_shapes_has_each_in_c_order():
    x = numbered((32, 32))
    body = """%t = transpose %x {axes=(1, 0)} : tile<32x32xint32>
%f = reshape %t : tile<1024xint32>
%g = reshape %x : tile<1024xint32>
%y = sub %f, %g : tile<1024xint32>"""

    found = ran(x, body, (1024,))

    np.testing.assert_array_equal(found, x.T.ravel() - x.ravel())

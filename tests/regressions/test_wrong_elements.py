"""Loads and stores that once touched the wrong elements or gave a stale or unspecified value."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError, BlockIndexError


@bn.jit
def masked_sum(x, out, count, OTHER: bn.constexpr, B: bn.constexpr):
    offsets = bn.arange(0, B)
    out[0] = bn.sum(bn.load(x + offsets, mask=offsets < count, other=OTHER), axis=0)


@pytest.mark.parametrize("other", [0, 0.0, False, -0.0, None])
def test_falsy_other_fills_masked_lanes(device, other):
    """triton-lang/triton#3281"""
    x, out = np.arange(1, 257, dtype=np.float32), np.zeros(1, np.float32)
    device.run(masked_sum, 1, x, out, 16, OTHER=other, B=256)
    assert out[0] == x[:16].sum()


@bn.jit
def reduce_masked(x, out, position, count, B: bn.constexpr):
    offsets = bn.arange(0, B)
    values = bn.load(x + offsets, mask=offsets < count)
    out[0] = bn.max(values, axis=0)
    out[1] = bn.min(values, axis=0)
    out[2] = bn.prod(values, axis=0)
    position[0] = bn.argmax(values, axis=0)


def test_masked_lanes_are_zero_when_other_is_not_given(device):
    """triton-lang/triton#9917, #10448; pytorch/pytorch#126535"""
    x = -np.arange(1, 65, dtype=np.float32)
    out, position = np.ones(3, np.float32), np.zeros(1, np.int32)
    device.run(reduce_masked, 1, x, out, position, 5, B=64)
    seen = np.where(np.arange(64) < 5, x, 0)
    np.testing.assert_array_equal(out, [seen.max(), seen.min(), 0])
    assert position[0] == 5


@bn.jit
def copy_rows(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    out[r, c] = x[r, c]


@pytest.mark.parametrize("width", [4, 16, 128])
@pytest.mark.parametrize("length", [1, 3, 17, 1185])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_rows_that_start_unaligned_are_copied_exactly(device, dtype, length, width):
    """triton-lang/triton#1330, #1320, #2229"""
    x = np.random.default_rng(0).integers(-100, 100, (9, length)).astype(dtype)
    out = np.zeros_like(x)
    device.run(copy_rows, (bn.cdiv(9, 4), bn.cdiv(length, width)), x, out, ROWS=4, COLUMNS=width)
    np.testing.assert_array_equal(out, x)


@bn.jit
def add_one_to_a_corner(x, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.span(2, ROWS), bn.span(8, COLUMNS)
    x[r, c] = x[r, c] + 1


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_narrow_tile_leaves_its_neighbours_alone(device, dtype, columns):
    """NVIDIA/warp#622"""
    x = np.arange(16 * 64).reshape(16, 64).astype(dtype)
    expected = x.copy()
    expected[2:10, 8:8 + columns] += np.array(1, dtype)
    device.run(add_one_to_a_corner, 1, x, ROWS=8, COLUMNS=columns)
    np.testing.assert_array_equal(x, expected)


@bn.jit
def transpose_through_memory(x, scratch, out, N: bn.constexpr):
    r = bn.span(0, N)
    scratch[r, r] = x[r, r] + 1
    i = bn.arange(0, N)
    out[r, r] = bn.load(scratch + i[None, :] * N + i[:, None])


@pytest.mark.parametrize("size", [4, 32])
def test_store_is_seen_by_a_later_load_in_another_order(device, size):
    """triton-lang/triton#10924"""
    x = np.arange(size * size, dtype=np.float32).reshape(size, size)
    scratch, out = np.zeros_like(x), np.zeros_like(x)
    device.run(transpose_through_memory, 1, x, scratch, out, N=size)
    np.testing.assert_array_equal(out, x.T + 1)


@bn.jit
def accumulate_rows(a, x, y, N: bn.constexpr):
    c = bn.span(0, N)
    for j in range(N):
        y[c] = y[c] + a[c, j] * x[j]


def test_accumulation_in_memory_keeps_every_term(device):
    """triton-lang/triton#11153"""
    a, x, y = np.ones((4, 4), np.float32), np.ones(4, np.float32), np.zeros(4, np.float32)
    device.run(accumulate_rows, 1, a, x, y, N=4)
    np.testing.assert_array_equal(y, [4, 4, 4, 4])


@bn.jit
def scalar_after_tile(x, scratch, out, N: bn.constexpr):
    r = bn.span(0, N)
    scratch[r] = x[r] * 2
    out[0] = scratch[N - 1]


def test_stored_tile_is_seen_by_a_scalar_load(device):
    """triton-lang/triton#10924"""
    x = np.arange(64, dtype=np.float32)
    scratch, out = np.zeros_like(x), np.zeros(1, np.float32)
    device.run(scalar_after_tile, 1, x, scratch, out, N=64)
    assert out[0] == 126


@bn.jit
def store_past_the_end(x, index):
    x[index] = 1.0


def test_store_past_the_end_is_dropped(device):
    """tile-ai/tilelang#1303"""
    memory = np.zeros(12, np.float32)
    device.run(store_past_the_end, 1, memory[:8], 8)
    np.testing.assert_array_equal(memory, 0)


def test_debug_names_the_array_and_the_index_out_of_bounds():
    """tile-ai/tilelang#1303"""
    with pytest.raises(BlockIndexError) as caught:
        store_past_the_end[1](np.zeros(8, np.float32), 8, debug=True, interpret=True)
    message = str(caught.value)
    for part in ("x", "8", "x[index] = 1.0"):
        assert part in message


@bn.jit
def read_views(x, out, base, limit, B: bn.constexpr):
    r = bn.span(0, B)
    reverse, tail, head, end, middle = x[::-1], x[base:], x[:-2], x[-3:], x[2:limit]
    out[0, r] = reverse[r]
    out[1, r] = tail[r]
    out[2, r] = head[r]
    out[3, r] = end[r]
    out[4, r] = middle[r]


def test_slices_of_an_array_are_numpys_views(device):
    """NVIDIA/numba-cuda-mlir#262, #112"""
    x, out = np.arange(1, 9, dtype=np.float32), np.full((5, 8), -1, np.float32)
    device.run(read_views, 1, x, out, 3, 100, B=8)
    views = x[::-1], x[3:], x[:-2], x[-3:], x[2:100]
    np.testing.assert_array_equal(out, [np.pad(view, (0, 8 - view.size)) for view in views])


@bn.jit
def copy_last_planes(x, out, base, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.span(0, ROWS), bn.span(0, COLUMNS)
    out[0, r, c] = x[base:][0, r, c]


def test_slice_of_the_first_axis_keeps_the_others(device):
    """NVIDIA/numba-cuda-mlir#262"""
    x = np.arange(3 * 4 * 8, dtype=np.float32).reshape(3, 4, 8)
    out = np.zeros((1, 4, 8), np.float32)
    device.run(copy_last_planes, 1, x, out, 2, ROWS=4, COLUMNS=8)
    np.testing.assert_array_equal(out, x[2:])


@bn.jit
def every_other(x, out, B: bn.constexpr):
    out[bn.span(0, B)] = x[::2]


@bn.jit
def every_other_loaded(x, out, B: bn.constexpr):
    out[bn.span(0, B)] = x[::2][bn.span(0, B)]


def test_slice_with_another_step_is_a_view(device):
    """NVIDIA/numba-cuda-mlir#262"""
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    device.run(every_other_loaded, 1, x, out, B=4)
    np.testing.assert_array_equal(out, [0, 2, 4, 6, 0, 0, 0, 0])


def test_array_as_a_value_is_a_named_error(device):
    with pytest.raises(BlockError, match="given an array, accepted a tile") as caught:
        device.run(every_other, 1, np.zeros(8, np.float32), np.zeros(8, np.float32), B=4)
    assert "x[::2]" in str(caught.value)


@bn.jit
def double(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] * 2


@pytest.mark.parametrize("view", [
    np.s_[::-1], np.s_[3:20], np.s_[-9:], np.s_[::3], np.s_[30:2:-4]], ids=str)
def test_host_view_with_any_stride_is_read_as_numpy_reads_it(device, view):
    """NVIDIA/numba-cuda-mlir#262, #112"""
    x = np.arange(40, dtype=np.float32)[view]
    out = np.zeros(x.size, np.float32)
    device.run(double, bn.cdiv(x.size, 8), x, out, B=8)
    np.testing.assert_array_equal(out, x * 2)


@bn.jit
def reversed_rows(x, out):
    r, c = bn.span(0, 4), bn.span(0, 8)
    out[r, c] = np.flip(x[r, c])


def test_numpys_flip_without_an_axis_reverses_all_axes(device):
    x, out = np.arange(32, dtype=np.int32).reshape(4, 8), np.zeros((4, 8), np.int32)
    device.run(reversed_rows, 1, x, out)
    np.testing.assert_array_equal(out, np.flip(x))

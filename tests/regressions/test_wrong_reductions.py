"""Reductions that once lost NaN, an axis, a lane or their determinism."""

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
from emulated_gpu import launch


@bn.jit
def extremes(x, by_columns, by_rows, elementwise, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.span(0, ROWS), bn.span(0, COLUMNS)
    tile = x[r, c]
    by_columns[0, c] = bn.max(tile, axis=0)
    by_columns[1, c] = bn.min(tile, axis=0)
    by_rows[0, r] = bn.max(tile, axis=1)
    by_rows[1, r] = bn.min(tile, axis=1)
    elementwise[0, r, c] = bn.maximum(tile, 0.0)
    elementwise[1, r, c] = bn.minimum(tile, 0.0)
    elementwise[2, r, c] = bn.clamp(tile, -1.0, 1.0)


@pytest.mark.parametrize("place", [(0, 0), (3, 63), (7, 127), (5, 32)])
def test_nan_wins_in_max_and_min(device, place):
    """triton-lang/triton#7349, #6635"""
    x = np.random.default_rng(0).standard_normal((8, 128), np.float32)
    x[0, 1], x[1, 0] = np.inf, -np.inf
    x[place] = np.nan
    by_columns, by_rows = np.zeros((2, 128), np.float32), np.zeros((2, 8), np.float32)
    elementwise = np.zeros((3, 8, 128), np.float32)
    device.run(extremes, 1, x, by_columns, by_rows, elementwise, ROWS=8, COLUMNS=128)
    np.testing.assert_array_equal(by_columns, [x.max(axis=0), x.min(axis=0)])
    np.testing.assert_array_equal(by_rows, [x.max(axis=1), x.min(axis=1)])
    zero = np.float32(0)
    np.testing.assert_array_equal(
        elementwise, [np.maximum(x, zero), np.minimum(x, zero), np.clip(x, -1, 1)])


@bn.jit
def positions(x, out, B: bn.constexpr):
    tile = x[bn.span(0, B)]
    out[0] = bn.argmax(tile, axis=0)
    out[1] = bn.argmin(tile, axis=0)


ARGUMENT_CASES = {
    "nan": [1, np.nan, 5, np.nan], "all nan": [np.nan] * 4, "zeros": [0.0, -0.0, 0.0, -0.0],
    "ties": [3, 7, 7, 3], "infinities": [-np.inf, np.inf, np.inf, -np.inf]}


@pytest.mark.parametrize("repeats", [1, 64])
@pytest.mark.parametrize("values", ARGUMENT_CASES.values(), ids=ARGUMENT_CASES)
def test_argmax_gives_the_first_nan_or_the_first_of_ties(device, values, repeats):
    """triton-lang/triton PR#10699"""
    x, out = np.tile(np.array(values, np.float32), repeats), np.zeros(2, np.int32)
    device.run(positions, 1, x, out, B=x.size)
    np.testing.assert_array_equal(out, [x.argmax(), x.argmin()])


@bn.jit
def sums_in_both_orders(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    tile = x[bn.span(0, ROWS), bn.span(0, COLUMNS)]
    out[0] = bn.sum(bn.sum(tile, axis=0), axis=0)
    out[1] = bn.sum(bn.sum(tile, axis=1), axis=0)
    out[2] = bn.sum(tile)


@pytest.mark.parametrize("size", [4, 8, 64])  # of 128, one warp would hold 512 elements a thread
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_order_of_two_sums_does_not_matter(device, dtype, size):
    """triton-lang/triton#1883, #429, #1496"""
    x, out = np.arange(size * size).reshape(size, size).astype(dtype), np.zeros(3, dtype)
    device.run(sums_in_both_orders, 1, x, out, ROWS=size, COLUMNS=size)
    np.testing.assert_array_equal(out, [x.sum()] * 3)


@bn.jit
def sums_of_three_axes(x, planes, A: bn.constexpr, B: bn.constexpr, C: bn.constexpr):
    tile = x[bn.span(0, A), bn.span(0, B), bn.span(0, C)]
    planes[0, bn.span(0, B), bn.span(0, C)] = bn.sum(tile, axis=0)
    planes[1, bn.span(0, A), bn.span(0, C)] = bn.sum(tile, axis=1)
    planes[2, bn.span(0, A), bn.span(0, B)] = bn.sum(tile, axis=2)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(2, 2, 32), (8, 2, 4), (4, 8, 16), (1, 4, 2)])
def test_every_axis_of_a_three_dimensional_tile_sums_right(device, shape, order):
    """triton-lang/triton#4116, #4379"""
    x = np.asarray(np.arange(np.prod(shape)).reshape(shape).astype(np.int32), order=order)
    planes = np.zeros((3, 32, 32), np.int32)
    device.run(sums_of_three_axes, 1, x, planes, **dict(zip("ABC", shape)))
    for axis in range(3):
        expected = x.sum(axis=axis)
        rows, columns = expected.shape
        np.testing.assert_array_equal(planes[axis, :rows, :columns], expected)


@bn.jit
def all_reductions(x, out, flags, B: bn.constexpr):
    cells = bn.span(0, B)
    tile = x[cells]
    inside = cells.index < x.shape[0]
    out[0] = bn.sum(tile, axis=0)
    out[1] = bn.max(bn.where(inside, tile, -1000), axis=0)
    out[2] = bn.min(bn.where(inside, tile, 1000), axis=0)
    out[3] = bn.prod(bn.where(inside, tile % 3 + 1, 1), axis=0)
    flags[0] = bn.any(inside & (tile == 3), axis=0)
    flags[1] = bn.all((tile > 0) | ~inside, axis=0)


@pytest.mark.parametrize("count", [3, 5, 24, 48, 96, 100, 1000])
def test_reduction_over_any_number_of_elements_counts_them_all(device, count):
    """tile-ai/tilelang#2542"""
    x = np.arange(1, count + 1, dtype=np.int32)
    out, flags = np.zeros(4, np.int32), np.zeros(2, bool)
    device.run(all_reductions, 1, x, out, flags, B=bn.next_power_of_2(count))
    product = (x % 3 + 1).prod(dtype=np.int32)
    np.testing.assert_array_equal(out, [x.sum(), count, 1, product])
    np.testing.assert_array_equal(flags, [True, True])


@bn.jit
def reductions_together(x, out, rows, columns, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r = bn.span(0, ROWS)
    for start in range(0, columns, COLUMNS):
        tile = x[r, bn.span(start, COLUMNS)]
        total = bn.sum(tile, axis=1)
        greatest = bn.max(tile, axis=1)
        position = bn.argmax(tile, axis=1)
        negative = bn.any(tile < 0, axis=1)
        out[0, start // COLUMNS, r] = total
        out[1, start // COLUMNS, r] = greatest
        out[2, start // COLUMNS, r] = position
        out[3, start // COLUMNS, r] = negative.to(bn.int32)


@pytest.mark.parametrize("rows", [1, 2, 4, 16])
def test_reductions_done_together_do_not_disturb_each_other(device, rows):
    """tile-ai/tilelang#2524, #2623"""
    x = np.random.default_rng(rows).integers(-9, 100, (rows, 192)).astype(np.int32)
    out = np.zeros((4, 3, rows), np.int32)
    device.run(reductions_together, 1, x, out, rows, 192, ROWS=rows, COLUMNS=64)
    parts = x.reshape(rows, 3, 64)
    expected = [parts.sum(axis=2), parts.max(axis=2), parts.argmax(axis=2),
                (parts < 0).any(axis=2)]
    np.testing.assert_array_equal(out, [part.T for part in expected])


@bn.jit
def extremes_of_few(x, out, SIZE: bn.constexpr):
    s = bn.span(0, SIZE)
    inside = (s.index[:, None] < 3) & (s.index[None, :] < 3)
    tile = x[s, s]
    out[0] = bn.min(bn.where(inside, tile, float("inf")))
    out[1] = bn.max(bn.where(inside, tile, float("-inf")))


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_idle_lanes_do_not_take_part(device, value):
    """NVIDIA/warp#725"""
    x, out = np.full((3, 3), value, np.float32), np.zeros(2, np.float32)
    device.run(extremes_of_few, 1, x, out, SIZE=4)
    np.testing.assert_array_equal(out, [value, value])


@bn.jit
def mean_and_variance(x, out, B: bn.constexpr):
    tile = x[bn.span(0, B)]
    mean = bn.sum(tile, axis=0) / B
    centred = tile - mean
    out[0] = mean
    out[1] = bn.sum(centred * centred, axis=0) / B


def test_float_sums_are_the_same_in_every_run(device):
    """triton-lang/triton#7264, #11614"""
    x = np.random.default_rng(0).standard_normal(2048, np.float32)
    results = set()
    for _ in range(device.runs):
        out = np.zeros(2, np.float32)
        device.run(mean_and_variance, 1, x, out, B=2048)
        results.add(out.tobytes())
    assert len(results) == 1
    np.testing.assert_allclose(out, [x.mean(), x.var()], rtol=1e-5, atol=1e-7)


@bn.jit
def root_mean_square_norm(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    rows, columns = bn.span(0, ROWS), bn.span(0, COLUMNS)
    tile = x[bn.span(0, 1), rows, columns]
    mean = bn.sum(tile * tile, axis=-1, keep_dims=True) / COLUMNS
    out[bn.span(0, 1), rows, columns] = tile / bn.sqrt(mean)


def test_kept_dimension_broadcasts_against_the_tile(device):
    """pytorch/helion#2643"""
    x = np.random.default_rng(0).standard_normal((1, 8, 128), np.float32)
    out = np.zeros_like(x)
    device.run(root_mean_square_norm, 1, x, out, ROWS=8, COLUMNS=128)
    expected = x / np.sqrt((x * x).mean(axis=-1, keepdims=True))
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@bn.jit
def sum_of_halves(x, out, B: bn.constexpr):
    out[0] = bn.sum(x[bn.span(0, B)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100", "sm_120"])
def test_a_sum_of_halves_is_that_of_float32_in_the_emulator(target, dtype):
    """Blackwell adds float16 to float32 in one instruction."""
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, out = np.full(64, 500, dtype), np.zeros(1, dtype)

    launch(sum_of_halves, 1, (x, out, 64), {}, target)

    assert out[0] == 32000


@bn.jit
def parity(out, N: bn.constexpr):
    out[0] = bn.xor_sum(bn.full((N,), True, bn.bool_))


@pytest.mark.parametrize("count", [1, 2, 64])
def test_the_exclusive_or_of_equal_bools(count):
    """It was taken for one of them: 64 times true was true."""
    out = np.zeros(1, bool)
    parity[1](out, N=count)
    assert out[0] == count % 2


@bn.jit
def sums_of_equal_rows(x, out, ROWS: bn.constexpr, N: bn.constexpr):
    row = bn.broadcast_to(x[bn.span(0, N)][None, :], (ROWS, N))
    out[bn.span(0, ROWS)] = bn.sum(row * 2, axis=1)


def test_sums_of_rows_that_many_warps_share_stay_in_registers():
    """Each thread held 64 rows of 16 partial sums, which no register file has."""
    x = np.random.default_rng().integers(-99, 99, 512).astype(np.float32)
    out = np.full(64, np.nan, np.float32)

    compiled = launch(sums_of_equal_rows, 1, (x, out, 64, 512), {"num_warps": 16}, "sm_90a")

    assert compiled.stats.spills == 0
    np.testing.assert_array_equal(out, np.full(64, 2 * x.sum()))

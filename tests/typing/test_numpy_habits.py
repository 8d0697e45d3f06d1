"""Habits of NumPy's users: indices of run time into tiles, global lists of numbers."""

import numpy as np
import pytest

import blocknumba as bn

WEIGHTS = [0.25, [1, 2], 0.5]


@bn.jit
def picked(x, n, order, out, columns):
    r, few = bn.span(0, 64), bn.span(0, 8)
    tile, places = x[r], order[few]
    square = tile.reshape(8, 8)
    total = 0.0
    for i in range(len(tile)):
        total += tile[i]
    out[few] = tile[places]
    out[8], out[9], out[10] = tile[n], tile[n - 5], total
    out[11], out[12] = square[n, n], square[..., n].sum()
    out[13], out[14] = tile[places.reshape(2, 4)][1, 2], square[n][2]
    columns[few, few] = square[:, places]


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("interpret", [False, True])
def test_tiles_take_indices_of_run_time_as_numpy(interpret, dtype):
    random, low = np.random.default_rng(), -8 if np.issubdtype(dtype, np.signedinteger) else 0
    x, order = random.random(64), random.integers(low, 8, 8).astype(dtype)
    out, columns = np.full(15, np.nan), np.full((8, 8), np.nan)

    picked[1](x, 3, order, out, columns, interpret=interpret)

    square = x.reshape(8, 8)
    expected = [*x[order], x[3], x[-2], x.sum(), square[3, 3], square[:, 3].sum(),
                x[order.reshape(2, 4)][1, 2], square[3, 2]]
    np.testing.assert_allclose(out, expected, rtol=1e-14)
    np.testing.assert_array_equal(columns, square[:, order])


@bn.jit
def last(x, order, out):
    out[bn.span(0, 8)] = x[bn.span(0, 256)][order[bn.span(0, 8)]]


def test_indices_of_8_bits_count_from_the_end_of_longer_tiles():
    x, order, out = np.arange(256.0), np.arange(-8, 0, dtype=np.int8), np.full(8, np.nan)

    last[1](x, order, out)

    assert (out == x[order]).all()


@bn.jit
def beyond(x, n, out):
    out[0] = x[bn.span(0, 8)][n]


def test_an_index_outside_of_a_tile_is_0_and_an_error_of_debug():
    x, out = np.ones(8), np.full(1, np.nan)

    beyond[1](x, 8, out)

    assert out[0] == 0
    with pytest.raises(bn.errors.BlockError, match="index"):
        beyond[1](x, -9, out, debug=True)


@bn.jit
def both(x, order, out):
    out[0] = x[bn.span(0, 8), bn.span(0, 8)][order[bn.span(0, 8)], order[0]].sum()


def test_a_tile_of_indices_beside_an_int_is_refused():
    with pytest.raises(bn.errors.BlockTypeError, match="beside other ints"):
        both[1](np.ones((8, 8)), np.arange(8), np.zeros(1))


@bn.jit
def weighted(x, out):
    r = bn.span(0, 8)
    total = x[r] * WEIGHTS[0] + WEIGHTS[1][1]
    for weight in WEIGHTS[2:]:
        total += weight
    out[r] = total + sum(WEIGHTS[1])


def test_a_global_list_is_a_tuple_and_its_changes_are_seen():
    x, before, after = np.arange(8.0), np.empty(8), np.empty(8)

    weighted[1](x, before)
    WEIGHTS[1][1] = 7
    weighted[1](x, after)
    WEIGHTS[1][1] = 2

    assert (before == x * 0.25 + 2 + 0.5 + 3).all()
    assert (after == x * 0.25 + 7 + 0.5 + 8).all()

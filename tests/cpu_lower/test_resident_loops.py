"""Loops whose tiles stay in registers, piece by piece: sums, masks, two tiles, no iterations."""

import numpy as np
import pytest

import blocknumba as bn

GENERATOR = np.random.default_rng()


@bn.jit(device="cpu")
def products(a, x, out, R: bn.constexpr, K: bn.constexpr):
    r, total = bn.block(0, R), bn.zeros((R, K), a.dtype)
    for k in bn.spans(a.shape[1], K):
        total += a[r, k] * x[k][None, :]
    out[r] = bn.sum(total, 1)


@bn.jit(device="cpu")
def sums(a, x, out, R: bn.constexpr, K: bn.constexpr):
    r, total = bn.block(0, R), bn.full(R, 3, a.dtype)
    for k in bn.spans(a.shape[1], K):
        total += bn.sum(a[r, k] * x[k][None, :], 1)
    out[r] = total


@bn.jit(device="cpu")
def extrema(a, least, greatest, K: bn.constexpr):
    i, low, high = bn.program_id(0), 100.0, -100.0
    for k in bn.spans(a.shape[1], K):
        inside = k.index < a.shape[1]
        low = bn.minimum(low, bn.min(bn.where(inside, a[i, k], 1e300), 0))
        high = bn.maximum(high, bn.max(bn.where(inside, a[i, k], -1e300), 0))
    least[i], greatest[i] = low, high


@bn.jit(device="cpu")
def two_tiles(a, first, second, start, R: bn.constexpr, K: bn.constexpr):
    """The second tile takes what the first one was an iteration before."""
    r, c = bn.block(0, R), bn.span(0, K)
    x = start[r, c]
    y = x * 2
    for k in range(a.shape[0]):
        x, y = x + a[k], y * a[k] + x
    first[r, c], second[r, c] = x, y


@bn.jit(device="cpu")
def neighbours(a, out, K: bn.constexpr, STEPS: bn.constexpr):
    """An element needs another one of the iteration before."""
    c = bn.arange(K)
    x = bn.load(a.at[c])
    for _ in range(STEPS):
        x = x + bn.flip(x, 0) * 0.5
    bn.store(out.at[c], x)


@pytest.mark.parametrize("columns", [0, 5, 128, 300])
@pytest.mark.parametrize("tile", [(4, 128), (8, 32), (2, 1024), (1, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_products_of_rows(dtype, tile, columns):
    a, x = (GENERATOR.integers(-9, 9, shape).astype(dtype) for shape in ((13, columns), columns))
    found = np.full((2, 13), 99, dtype)
    rows, columns_of_tile = tile

    products[bn.cdiv(13, rows)](a, x, found[0], R=rows, K=columns_of_tile)
    sums[bn.cdiv(13, rows)](a, x, found[1], R=rows, K=columns_of_tile)

    np.testing.assert_array_equal(found, [a @ x, a @ x + 3])


@pytest.mark.parametrize("has_nan", [False, True])
def test_extrema_are_scalars_that_loops_carry(has_nan):
    a = GENERATOR.standard_normal((7, 333))
    if has_nan:
        a[3, 200] = np.nan
    least, greatest = np.full((2, 7), 99.0)
    extrema[7](a, least, greatest, K=64)
    np.testing.assert_array_equal(least, a.min(1))
    np.testing.assert_array_equal(greatest, a.max(1))


@pytest.mark.parametrize("count", [0, 1, 6])
def test_tiles_of_an_iteration_are_read_before_they_change(count):
    a, start = GENERATOR.integers(-3, 3, count), GENERATOR.integers(-9, 9, (10, 50))
    first, second = np.full((2, 10, 50), 99)
    x, y = start, start * 2
    for k in a:
        x, y = x + k, y * k + x

    two_tiles[3](a, first, second, start, R=4, K=64)

    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, y)


def test_tiles_that_need_their_neighbours_stay_in_memory():
    a = GENERATOR.standard_normal(64)
    out = np.full(64, np.nan)
    neighbours[1](a, out, K=64, STEPS=3)
    for _ in range(3):
        a = a + a[::-1] * 0.5
    np.testing.assert_array_equal(out, a)

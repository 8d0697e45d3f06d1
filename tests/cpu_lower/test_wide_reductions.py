"""Reductions along the outer axis of wide tiles: states in memory, several rows at once."""

import numpy as np
import pytest

import blocknumba as bn

GENERATOR = np.random.default_rng()


@bn.jit(device="cpu")
def reduced(x, sums, least, places, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.span(0, COLUMNS)
    i = bn.program_id(0)
    tile = x[r, c]
    sums[i, c] = bn.sum(tile, 0)
    least[i, c] = bn.min(tile, 0)
    places[i, c] = bn.argmax(tile, 0)


@bn.jit(device="cpu")
def middle(x, out, A: bn.constexpr, B: bn.constexpr, C: bn.constexpr):
    out[bn.span(0, A), bn.span(0, C)] = bn.sum(bn.exp(x[bn.span(0, A), bn.span(0, B),
                                                        bn.span(0, C)]), 1)


@pytest.mark.parametrize("rows", [2, 16])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_columns_of_wide_tiles(dtype, rows):
    x = (GENERATOR.standard_normal((64, 700)) * 20).round().astype(dtype)
    parts = x.reshape(-1, rows, 700)
    sums = np.full((64 // rows, 700), 99, parts.sum(1).dtype)
    least, places = np.full(sums.shape, 99, dtype), np.full(sums.shape, 99, np.int64)

    reduced[64 // rows](x, sums, least, places, ROWS=rows, COLUMNS=1024)

    np.testing.assert_array_equal(places, parts.argmax(1))
    np.testing.assert_array_equal(least, parts.min(1))
    np.testing.assert_array_equal(sums, parts.sum(1))


def test_the_middle_axis_of_computed_elements():
    x = GENERATOR.standard_normal((3, 16, 500))
    out = np.full((3, 500), np.nan)
    middle[1](x, out, A=4, B=16, C=512)
    np.testing.assert_allclose(out, np.exp(x.astype(np.longdouble)).sum(1), rtol=1e-14)

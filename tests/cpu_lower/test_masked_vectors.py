"""Rows that end amid a tile: whole vectors without masks, and nothing beyond the last element."""

import time

import numpy as np
import pytest
from memory_pages import before_a_forbidden_page

import blocknumba as bn

GENERATOR = np.random.default_rng()


@bn.jit(device="cpu")
def centred(x, out, sums, B: bn.constexpr):
    i, c = bn.program_id(0), bn.span(0, B)
    row = x[i, c]
    total = bn.sum(row, 0)
    sums[i] = total
    out[i, c] = row - total / x.shape[1]


@bn.jit(device="cpu")
def blurred(x, out, R: bn.constexpr, C: bn.constexpr):
    r, c = bn.block(0, R), bn.block(1, C)
    out[r, c] = x[r, c] + x[r + -1, c] + x[r, c + -1] + x[r, c + 1]


@bn.jit(device="cpu")
def folded(x, out, sums, B: bn.constexpr):
    """The elements of one load at two places."""
    c = bn.span(0, B)
    both = x[c] + bn.flip(x[c], 0)
    out[bn.arange(B)] = both
    sums[0] = bn.sum(both, 0)


@pytest.mark.parametrize("columns", [1, 15, 64, 100, 127])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_rows_of_any_length_end_with_their_last_element(dtype, columns):
    x, out = (before_a_forbidden_page(3 * columns, np.dtype(dtype)).reshape(3, columns)
              for _ in range(2))
    x[...] = GENERATOR.integers(-9, 9, x.shape)
    sums = np.full(3, 77, x.sum(1).dtype)

    centred[3](x, out, sums, B=128)

    exact = x.sum(1, dtype=np.int64)
    np.testing.assert_array_equal(sums, exact)
    np.testing.assert_allclose(out, (x - (exact / columns)[:, None]).astype(dtype), rtol=1e-6,
                               atol=1e-6)


@pytest.mark.parametrize("columns", [1, 40, 64, 100])
def test_elements_that_are_needed_elsewhere_too_keep_their_masks(columns):
    x = before_a_forbidden_page(columns, np.dtype(np.float64))
    x[...] = GENERATOR.integers(-9, 9, columns)
    out, sums = np.full(128, np.nan), np.full(1, np.nan)

    folded[1](x, out, sums, B=128)

    wide = np.pad(x, (0, 128 - columns))
    np.testing.assert_array_equal(out, wide + wide[::-1])
    np.testing.assert_array_equal(sums, 2 * x.sum())


@pytest.mark.parametrize("shape", [(1, 1), (5, 17), (16, 128), (37, 300)])
def test_neighbours_outside_are_nothing(shape):
    x = before_a_forbidden_page(shape[0] * shape[1], np.dtype(np.float32)).reshape(shape)
    x[...] = GENERATOR.integers(-9, 9, shape)
    out = np.full_like(x, np.nan)

    blurred[bn.cdiv(shape[0], 16), bn.cdiv(shape[1], 128)](x, out, R=16, C=128)

    wide = np.pad(x, 1)
    np.testing.assert_array_equal(out, x + wide[:-2, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:])


def test_whole_vectors_of_a_masked_row_have_no_mask():
    x = np.ones((2, 1000), np.float32)
    compiled = centred[2](x, x.copy(), np.empty(2, np.float32), B=1024)
    stats = compiled.native.stats
    assert stats.versions == 1
    assert stats.vector_loads > stats.masked  # in both versions, the second's vectors twice


@bn.jit(device="cpu")
def added(x, y, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] + y[r]


def test_vectors_beyond_the_end_cost_next_to_nothing():
    """An access of no lane at a page that cannot be read is an exception to the processor."""
    x, y, out = (before_a_forbidden_page(1000, np.dtype(np.float32)) for _ in range(3))
    x[...], y[...] = GENERATOR.random((2, 1000), np.float32)
    times = []
    for _ in range(30):
        start = time.perf_counter()
        added[1](x, y, out, B=1 << 17)
        times.append(time.perf_counter() - start)

    np.testing.assert_array_equal(out, x + y)
    assert min(times) < 1e-3  # 8,000 vectors; with the exceptions 4 ms

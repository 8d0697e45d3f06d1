"""Tiles of the CPU device that several loop nests read.

One that a nest was to keep, but which another tile had needed before it, was read from memory that
nothing had written.  One of bools was computed with more lanes than functions of floats have.
"""

import ml_dtypes
import numpy as np

import blocknumba as bn


@bn.jit
def powers(x, flipped, kept, sums, out):
    r, c = bn.span(0, 8), bn.span(0, 16)
    v = x[r, c] * x[r, c] // 3
    y = v ** (v & 3)
    flipped[r, c] = bn.flip(y, 0)
    kept[r, c] = y
    sums[c] = bn.sum(y, 0)
    out[r, c] = v


def test_what_a_tile_needs_is_kept_where_it_is_computed():
    x = np.random.default_rng().integers(0, 30, (8, 16))
    flipped, kept, out = (np.full((8, 16), -1) for _ in range(3))
    sums = np.full(16, -1)

    powers[1](x, flipped, kept, sums, out, device="cpu")

    v = x * x // 3
    y = v ** (v & 3)
    np.testing.assert_array_equal(out, v)
    np.testing.assert_array_equal(kept, y)
    np.testing.assert_array_equal(flipped, y[::-1])
    np.testing.assert_array_equal(sums, y.sum(0))


@bn.jit
def rests(x, is_less, again, kept):
    r = bn.span(0, 1024)
    v = x[1, r]
    mask = v < (x[0, r] + 0.0) % (v + 0.0)
    bn.store(is_less.at[r], mask, mask=mask)
    again[r] = is_less[r]
    bn.store(kept.at[r], v, mask=mask)


def test_bools_are_kept_with_the_lanes_of_what_they_are_made_of():
    x = np.random.default_rng().integers(1, 99, (2, 1024)).astype(ml_dtypes.bfloat16)
    is_less, again = np.zeros((2, 1024), bool)
    kept = np.zeros(1024, ml_dtypes.bfloat16)

    rests[1](x, is_less, again, kept, device="cpu")

    wide = x.astype(np.float64)
    expected = wide[1] < wide[0] % wide[1]
    np.testing.assert_array_equal(is_less, expected)
    np.testing.assert_array_equal(again, expected)
    np.testing.assert_array_equal(kept, np.where(expected, x[1], 0).astype(kept.dtype))

"""LLVM 22 stores a narrowed element of a mask with one lane at its width before, with AVX-512.

The element after it was overwritten: 8, 16 and 32 bits of what was 16 to 64 bits wide.
"""

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn


@bn.jit
def store_one(x, out, AT: bn.constexpr, DTYPE: bn.constexpr):
    r = bn.arange(0, 16)
    bn.store(out + r, bn.maximum(bn.load(x + r), 5).to(DTYPE), mask=r == AT)


@pytest.mark.parametrize("at", [0, 5, 15])
@pytest.mark.parametrize("wide, narrow", [
    ("int16", "int8"), ("int32", "int8"), ("int32", "int16"), ("int64", "int32"),
    ("int64", "int8"), ("float32", "float16"), ("float64", "float32")])
def test_a_store_of_one_lane_leaves_the_next_element(wide, narrow, at):
    x = np.random.default_rng(at).integers(0, 100, 16).astype(wide)
    out = np.full(16, 77, narrow)

    store_one[1](x, out, AT=at, DTYPE=getattr(bn, narrow), device="cpu")

    expected = np.full(16, 77, narrow)
    expected[at] = max(x[at], 5)
    np.testing.assert_array_equal(out, expected)


@bn.jit
def less(x, out):
    v = bn.load(x.T.at[bn.span(0, 4), bn.span(4, 4), bn.span(0, 2), bn.span(0, 2)], other=1)
    c = v
    for _ in range(2):
        c = c - v
    out[bn.span(0, 4), bn.span(0, 4), bn.span(0, 2), bn.span(0, 2)] = c


def test_a_tile_that_a_loop_keeps_with_a_stride_is_whole():
    x, out = (np.zeros((2, 2, 4, 4), ml_dtypes.bfloat16) for _ in range(2))

    less[1](x, out.T, device="cpu")

    np.testing.assert_array_equal(out, np.full((2, 2, 4, 4), -1))

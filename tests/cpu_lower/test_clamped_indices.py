"""Indices that a minimum or a maximum keeps inside: borders repeat, and whole vectors are read."""

import re

import numpy as np
import pytest
from memory_pages import before_a_forbidden_page

import blocknumba as bn

GENERATOR = np.random.default_rng()


@bn.jit(device="cpu")
def vertical_and_horizontal(x, out, R: bn.constexpr, C: bn.constexpr):
    """The sum of four neighbours; borders repeat."""
    r, c = bn.block(0, R), bn.block(1, C)
    i, j = r.index[:, None], c.index[None, :]
    up, down = bn.maximum(i - 1, 0), bn.minimum(i + 1, x.shape[0] - 1)
    left, right = bn.clamp(j - 2, 0, x.shape[1] - 1), bn.clamp(j + 3, 0, x.shape[1] - 1)
    out[r, c] = x[up, j] + x[down, j] + x[i, left] + x[i, right]


@bn.jit(device="cpu")
def mirrored_too(x, out, low, high, B: bn.constexpr):
    """A clamped tile at two places, and the clamped indices themselves."""
    c = bn.span(0, B)
    index = bn.minimum(bn.maximum(c.index + low, 0), high)
    both = x[index] + bn.flip(x[index], 0)
    out[0, c], out[1, c] = both, index


@bn.jit(device="cpu")
def ahead(x, out, start, B: bn.constexpr):
    c = bn.block(0, B)
    out[c] = x[bn.minimum(c.index + start, x.shape[0] - 1)]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (16, 128), (37, 300), (65, 257)])
def test_borders_repeat(shape, dtype):
    x, out = (before_a_forbidden_page(shape[0] * shape[1], np.dtype(dtype)).reshape(shape)
              for _ in range(2))
    x[...], out[...] = GENERATOR.integers(0, 60, shape), 77

    vertical_and_horizontal[bn.cdiv(shape[0], 16), bn.cdiv(shape[1], 128)](x, out, R=16, C=128)

    wide = np.pad(x, ((1, 1), (2, 3)), "edge")
    expected = wide[:-2, 2:-3] + wide[2:, 2:-3] + wide[1:-1, :-5] + wide[1:-1, 5:]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("low, high", [(0, 63), (-3, 63), (5, 60), (-70, 63), (90, 63), (-2, 0)])
def test_clamps_that_are_needed_elsewhere_too(low, high):
    x = before_a_forbidden_page(64, np.dtype(np.float32))
    x[...] = GENERATOR.integers(-9, 9, 64)
    out = np.full((2, 64), np.nan)

    mirrored_too[1](x, out, low, high, B=64)

    index = np.clip(np.arange(64) + low, 0, high)
    np.testing.assert_array_equal(out, [x[index] + x[index][::-1], index])


@pytest.mark.parametrize("start", [0, 100, 2**31 - 200])
def test_indices_that_wrap_around_are_not_taken_for_rising_ones(start):
    x, out = GENERATOR.random(300), np.full(256, np.nan)

    ahead[1](x, out, np.int32(start), B=256)

    index = np.minimum((np.arange(256) + start).astype(np.int32), 299)
    expected = np.where(index < 0, 0, x[np.maximum(index, 0)])  # outside is 0
    np.testing.assert_array_equal(out, expected)


def test_the_inner_part_of_a_picture_is_read_by_whole_vectors():
    x = np.zeros((256, 512), np.float32)

    compiled = vertical_and_horizontal[16, 4](x, np.empty_like(x), R=16, C=128)

    entry = compiled.native.llvm_ir.split("define ")
    blocks = re.split(r"\n(?=[\w.]+:)", "\n".join(part for part in entry if "@bn_" in part))
    whole = [block for block in blocks
             if len(re.findall(r"load <\d+ x float>", block)) == 4 and "gather" not in block]
    assert whole

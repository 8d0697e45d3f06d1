"""Accesses with small constant strides: whole vectors, within the array, neighbours untouched."""

import numpy as np
import pytest
from memory_pages import before_a_forbidden_page

import blocknumba as bn

GENERATOR = np.random.default_rng()
STRIDES = [2, 3, 4, 5, 7, 8, 9, 12, 16, -1, -2, -3, -4]
SIZE = 300  # of which 256 are whole blocks


@bn.jit(device="cpu")
def increment(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] + 1


@bn.jit(device="cpu")
def to_gray(rgb, out, B: bn.constexpr):
    r, c = bn.program_id(0), bn.block(1, B)
    out[r, c] = (rgb[r, c, 0].to(bn.int32) + rgb[r, c, 1] + rgb[r, c, 2]) // 3


@bn.jit(device="cpu")
def products(a, b, out, B: bn.constexpr):
    """Complex numbers, (N, 2): real parts beside imaginary ones."""
    r = bn.block(0, B)
    out[r, 0] = a[r, 0] * b[r, 0] - a[r, 1] * b[r, 1]
    out[r, 1] = a[r, 0] * b[r, 1] + a[r, 1] * b[r, 0]


@bn.jit(device="cpu")
def of_pairs(x, out, B: bn.constexpr):
    """Each pair's sum, twice: indices are computed, not an array's axes."""
    r = bn.block(0, B)
    out[r] = x[2 * (r.index // 2)] + x[(r.index >> 1) * 2 + 1]


@bn.jit(device="cpu")
def of_records(x, out, S: bn.constexpr, B: bn.constexpr):
    r = bn.block(0, B)
    first = S * r.index
    out[r] = x[first] + x[first + (S - 1)]


@bn.jit(device="cpu")
def at_narrow_indices(x, out, B: bn.constexpr):
    """64 * 4 wraps around in 8 bits: these indices do not rise."""
    r = bn.span(0, B)
    out[r] = x[(r.index.to(bn.uint8) * 4).to(bn.int32)]


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64"])
def test_elements_at_small_strides_are_read_and_written(dtype, stride):
    memory = (GENERATOR.random(SIZE * abs(stride)) * 100).astype(dtype)
    x = memory[::stride]
    around = np.full(SIZE * abs(stride), 77, dtype)

    compiled = increment[bn.cdiv(SIZE, 64)](x, around[::stride], B=64)

    expected = np.full_like(around, 77)
    expected[::stride] = x + 1
    np.testing.assert_array_equal(around, expected)
    assert compiled.native.stats.gathers == 2  # of the version with masks


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_accesses_end_with_their_last_element(dtype, stride):
    count = 255 * abs(stride) + 1
    memory = before_a_forbidden_page(count, np.dtype(dtype))
    memory[...] = np.arange(count) % 100
    x = memory[::stride]
    out = np.empty(256, dtype)

    increment[4](x, out, B=64)
    np.testing.assert_array_equal(out, x + 1)
    increment[4](out, x, B=64)
    np.testing.assert_array_equal(x, out + 1)


def test_interleaved_bytes_are_summed():
    rgb = GENERATOR.integers(0, 256, (5, 300, 3), np.uint8)
    out = np.full((5, 300), 7, np.uint8)
    to_gray[5, 3](rgb, out, B=128)
    np.testing.assert_array_equal(out, rgb.sum(2) // 3)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_pairs_are_complex_numbers(dtype):
    a, b = (GENERATOR.standard_normal((2, 1000, 2)) @ [1, 1j]).astype(dtype)
    out = np.full_like(a, np.nan)
    pairs = [x.view(x.real.dtype).reshape(-1, 2) for x in (a, b, out)]
    products[bn.cdiv(1000, 128)](*pairs, B=128)
    exact = a.astype(np.clongdouble) * b
    bound = 4 * np.finfo(dtype).eps * (abs(a) * abs(b))
    assert (abs(out - exact) <= bound).all()


@pytest.mark.parametrize("size", [64, 65, 300])
@pytest.mark.parametrize("stride", [2, 4, 9, 16])
@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_computed_indices_are_read_by_whole_vectors(dtype, stride, size):
    x = before_a_forbidden_page(size * stride, np.dtype(dtype))
    x[...] = GENERATOR.integers(0, 60, x.size)
    out = np.full(size, 99, dtype)

    compiled = of_records[bn.cdiv(size, 64)](x, out, S=stride, B=64)

    np.testing.assert_array_equal(out, x[::stride] + x[stride - 1::stride])
    assert compiled.native.stats.gathers == 2  # of the version with masks


@pytest.mark.parametrize("size", [2, 64, 130])
def test_indices_that_are_divided_rise_too(size):
    x = before_a_forbidden_page(size, np.dtype(np.float32))
    x[...] = GENERATOR.integers(0, 60, size)
    out = np.full(size, np.nan, np.float32)

    of_pairs[bn.cdiv(size, 64)](x, out, B=64)

    np.testing.assert_array_equal(out, np.repeat(x.reshape(-1, 2).sum(1), 2))


def test_indices_that_wrap_around_keep_their_masks():
    x = before_a_forbidden_page(100, np.dtype(np.float32))
    x[...] = GENERATOR.integers(1, 60, 100)
    out = np.full(128, np.nan, np.float32)

    at_narrow_indices[1](x, out, B=128)

    index = np.arange(128) * 4 % 256
    np.testing.assert_array_equal(out, np.where(index < 100, x[index % 100], 0))

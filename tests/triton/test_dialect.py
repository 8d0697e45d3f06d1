"""Kernels under `blocknumba.triton.jit`: Triton's meaning of Python, on the CPU device."""

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockAssertionError, BlockTypeError


@triton.jit
def twice(a):
    return a * 2


@triton.jit
def affine(x, out, n, scale, SIZE: tl.constexpr):
    offsets = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    mask = offsets < n
    tl.store(out + offsets, twice(tl.load(x + offsets, mask=mask)) / scale + 1, mask=mask)


@pytest.mark.parametrize("interpret", (False, True))
def test_a_kernel_of_triton_runs(interpret):
    x = np.random.default_rng().standard_normal(1000).astype(np.float32)
    out = np.full(1000, np.nan, np.float32)
    affine[triton.cdiv(1000, 256),](x, out, 1000, 3.0, SIZE=256, interpret=interpret)
    expected = x.astype(np.float64) * 2 / 3
    # an ulp of each of three roundings, before the cancellation
    assert np.all(np.abs(out - (expected + 1)) <= 4e-7 * (np.abs(expected) + 1))


@triton.jit
def dtypes(out, integer, number):
    half, byte = tl.full((4,), 1, tl.float16), tl.full((4,), 1, tl.int8)
    named = 2.0
    weak: tl.constexpr = 2.0
    tl.static_assert((half * 2.0).dtype == tl.float16)
    tl.static_assert((half * weak).dtype == tl.float16)
    tl.static_assert((half * named).dtype == tl.float32)
    tl.static_assert((half * number).dtype == tl.float32)
    tl.static_assert((byte + integer).dtype == tl.int32)
    tl.static_assert((byte + 1).dtype == tl.int8)
    tl.static_assert((byte & 1).dtype == tl.int8)
    tl.static_assert((half / half).dtype == tl.float32)
    tl.static_assert((half + byte).dtype == tl.float16)
    tl.static_assert((half.to(tl.bfloat16) + byte).dtype == tl.float32)
    tl.static_assert(tl.maximum(half, 0.0).dtype == tl.float32)
    tl.static_assert(tl.sum(byte).dtype == tl.int32)
    tl.static_assert(tl.sum(half).dtype == tl.float16)
    tl.static_assert(tl.max(half).dtype == tl.float32)
    for i in tl.static_range(2):
        tl.static_assert((byte + i).dtype == tl.int8)
    for i in range(2):
        tl.static_assert((byte + i).dtype == tl.int32)
    tl.store(out, 1)


def test_dtypes_are_those_of_triton():
    out = np.zeros(1, np.int32)
    dtypes[1](out, 5, 2.5)
    assert out[0] == 1


@triton.jit
def divided(x, y, quotient, rest, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(quotient + i, a // b)
    tl.store(rest + i, a % b)


@pytest.mark.parametrize("interpret", (False, True))
def test_integers_are_divided_towards_zero(interpret):
    generator = np.random.default_rng()
    x = generator.integers(-1000, 1000, 256).astype(np.int32)
    y = np.where(generator.random(256) < 0.5, -1, 1).astype(np.int32) * generator.integers(
        1, 20, 256).astype(np.int32)
    quotient, rest = np.full((2, 256), -12345, np.int32)
    divided[1](x, y, quotient, rest, SIZE=256, interpret=interpret)
    expected = np.trunc(x / y).astype(np.int32)
    np.testing.assert_array_equal(quotient, expected)
    np.testing.assert_array_equal(rest, x - expected * y)


@triton.jit
def extremes(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i)
    tl.store(out, tl.max(a, axis=0))
    tl.store(out + 1, tl.min(a, axis=0))
    tl.store(out + 2, tl.sum(tl.maximum(a, 0.5), axis=0))


def test_nan_loses():
    x = np.array([np.nan, 1, -2, 0.25], np.float32)
    out = np.zeros(3, np.float32)
    extremes[1](x, out, SIZE=4)
    np.testing.assert_array_equal(out, [1, -2, 0.5 + 1 + 0.5 + 0.5])


@triton.jit
def combined(x, out, n, HAS_LIMIT: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    inside = i >= 1 and i < n
    either = i == 0 or i == SIZE - 1
    if HAS_LIMIT and n > 2:
        tl.store(out + i, tl.load(x + i), mask=inside and not HAS_LIMIT or either)


def test_and_and_or_work_on_tiles():
    x, out = np.arange(8.0, dtype=np.float32) + 1, np.zeros(8, np.float32)
    combined[1](x, out, 5, HAS_LIMIT=True, SIZE=8)
    np.testing.assert_array_equal(out, [1, 0, 0, 0, 0, 0, 0, 8])
    out[:] = 0
    combined[1](x, out, 5, HAS_LIMIT=False, SIZE=8)
    assert not out.any()


@bn.jit
def of_numpy(x, y):
    return x // y


@triton.jit
def of_triton(x, y):
    return x // y


@triton.jit
def crossing(out):
    tl.store(out, of_numpy(-7, tl.load(out)))
    tl.store(out + 1, of_triton(-7, tl.load(out + 1)))


@bn.jit
def crossing_back(out):
    out[0] = of_numpy(-7, out[0])
    out[1] = of_triton(-7, out[1])


@pytest.mark.parametrize("kernel", (crossing, crossing_back))
def test_each_function_is_in_the_dialect_of_its_decorator(kernel):
    out = np.array([2, 2], np.int32)
    kernel[1](out)
    np.testing.assert_array_equal(out, [-4, -3])


@triton.jit
def changing(out, n):
    total = tl.zeros((4,), tl.float16)
    for _ in range(n):
        total += tl.full((4,), 1.0, tl.float32)
    tl.store(out + tl.arange(0, 4), total)


def test_a_variable_keeps_its_dtype_in_a_loop():
    with pytest.raises(BlockTypeError, match="total"):
        changing[1](np.zeros(4, np.float32), 3)


@triton.jit
def checked(x, out, n):
    i = tl.arange(0, 8)
    value = tl.load(x + i)
    assert value >= 0 and value < n, "a value is out of range"
    tl.store(out + i, value, mask=not (value == 3))


def test_assert_and_not_work_on_tiles():
    x, out = np.arange(8), np.full(8, -1)
    checked[1](x, out, 8, debug=True, interpret=True)
    np.testing.assert_array_equal(out, [0, 1, 2, -1, 4, 5, 6, 7])
    with pytest.raises(BlockAssertionError, match="a value is out of range"):
        checked[1](x, out, 7, debug=True, interpret=True)
    checked[1](x, out, 7)


@triton.jit
def shifted(x, y, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.load(x + i) >> tl.load(y + i))


@pytest.mark.parametrize("interpret", (False, True))
@pytest.mark.parametrize("x_dtype, y_dtype", (
    (np.int8, np.uint8), (np.int32, np.uint32), (np.uint16, np.int16), (np.int16, np.uint32)))
def test_the_sign_of_the_left_operand_decides_a_shift(x_dtype, y_dtype, interpret):
    generator = np.random.default_rng()
    x = generator.integers(np.iinfo(x_dtype).min, np.iinfo(x_dtype).max, 64).astype(x_dtype)
    y = generator.integers(0, 8, 64).astype(y_dtype)
    out = np.full(64, -77)
    shifted[1](x, y, out, SIZE=64, interpret=interpret)
    bits = max(x.itemsize, y.itemsize) * 8
    expected = x.astype(np.int64) >> y.astype(np.int64)
    # the result's dtype is unsigned, as one of the operands' is
    np.testing.assert_array_equal(out, expected % (1 << bits))


@triton.jit
def ordered(x, out, greatest, flipped, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tile = tl.load(x + i * COLUMNS + j)
    tl.store(out + i * COLUMNS + j, tl.sort(tile, descending=True))
    tl.store(greatest + i * 4 + tl.arange(0, 4)[None, :], tl.topk(tile, 4))
    tl.store(flipped + i * COLUMNS + j, tl.flip(tile))


def test_order_is_along_the_last_axis():
    x = np.random.default_rng().permutation(128).astype(np.float32).reshape(4, 32)
    out, flipped, greatest = np.full_like(x, -1), np.full_like(x, -1), np.zeros((4, 4), np.float32)
    ordered[1](x, out, greatest, flipped, ROWS=4, COLUMNS=32)
    np.testing.assert_array_equal(out, -np.sort(-x, axis=1))
    np.testing.assert_array_equal(greatest, -np.sort(-x, axis=1)[:, :4])
    np.testing.assert_array_equal(flipped, x[:, ::-1])


@triton.jit
def hashed(out, seed, FACTOR: tl.constexpr, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    product = (i + 5000) * FACTOR + 12345
    tl.store(out + i * 4, product % 1000)
    tl.store(out + i * 4 + 1, product // 1000)
    tl.store(out + i * 4 + 2, (seed * 31 + i) % 97)
    polynomial = ((i * 31 + 7) * 31 + 7) * 31
    tl.store(out + i * 4 + 3, (polynomial * 31 * 31 * 31) % 101)


@pytest.mark.parametrize("interpret", (False, True))
@pytest.mark.parametrize("factor", (16807, 1664525, 1103515245))
def test_products_that_wrap_around_are_divided_towards_zero(factor, interpret):
    out = np.full((256, 4), -1, np.int32)
    hashed[4](out, 123456789, FACTOR=factor, SIZE=64, interpret=interpret)
    i = np.arange(256, dtype=np.int32)
    with np.errstate(over="ignore"):
        product = (i + 5000) * np.int32(factor) + np.int32(12345)
        seeded = np.int32(123456789 * 31 % 2**32 - 2**32 * (123456789 * 31 % 2**32 >= 2**31)) + i
        polynomial = ((i * np.int32(31) + 7) * 31 + 7) * 31 * 31 * 31 * 31
    assert product.min() < 0 or factor == 16807
    expected = np.stack([np.fmod(product, 1000), np.trunc(product / 1000), np.fmod(seeded, 97),
                         np.fmod(polynomial, 101)], 1)
    np.testing.assert_array_equal(out, expected)


@triton.jit
def converted(x, out, DTYPE: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at).to(DTYPE))


@pytest.mark.parametrize("own", (np.float16, np.float32, np.float64))
@pytest.mark.parametrize("dtype, expected", (
    ("int8", [-5, 44, -1, 0]), ("uint8", [0, 44, 255, 0]),
    ("int16", [-5, 300, 32767, -32768]), ("uint16", [0, 300, 65535, 0])))
def test_floats_become_narrow_integers_as_the_instructions_of_16_bits_do_it(own, dtype, expected):
    """Saturated to 16 bits, of which 8 bits keep the lower ones.   Source: Triton's PTX."""
    x = np.array([-5.5, 300, np.inf, -np.inf], own)
    out = np.full(4, 77, dtype)
    converted[(1,)](x, out, getattr(tl, dtype), SIZE=4)
    np.testing.assert_array_equal(out, np.array(expected).astype(dtype))

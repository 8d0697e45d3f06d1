"""Integers that once did not mean what they mean in NumPy: division, shifts, powers, widths."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

SIGNED = ("int8", "int32", "int64")
NARROW = ("uint8", "int8", "uint16", "int16")


@bn.jit
def floor_divide(x, divisor, by_tile, by_scalar, by_constant, DIVISOR: bn.constexpr,
                 B: bn.constexpr):
    r = bn.span(0, B)
    by_tile[r] = x[r] // bn.full((B,), DIVISOR, x.dtype)
    by_scalar[r] = x[r] // divisor
    by_constant[r] = x[r] // DIVISOR


@pytest.mark.parametrize("divisor", [2, -2])
@pytest.mark.parametrize("dtype", SIGNED)
def test_floor_division_of_negatives_rounds_down(device, dtype, divisor):
    """triton-lang/triton#619, #955"""
    x = np.array([-7, -6, -1, 0, 1, 6, 7, 0], dtype)
    results = [np.zeros_like(x) for _ in range(3)]
    device.run(floor_divide, 1, x, divisor, *results, DIVISOR=divisor, B=8)
    for result in results:
        np.testing.assert_array_equal(result, x // np.array(divisor, dtype))


@bn.jit
def divide_scalars(dividend, divisor, out, DIVIDEND: bn.constexpr, DIVISOR: bn.constexpr):
    out[0] = dividend // divisor
    out[1] = dividend % divisor
    out[2] = DIVIDEND // DIVISOR
    out[3] = DIVIDEND % DIVISOR
    out[4] = dividend // DIVISOR
    out[5] = DIVIDEND % divisor


@pytest.mark.parametrize("dividend, divisor", [(-7, 3), (7, -3), (-7, -3), (7, 3), (-6, 2)])
def test_floor_division_is_the_same_for_scalars_and_constants(device, dividend, divisor):
    """triton-lang/triton#619, #10920"""
    out = np.zeros(6, np.int32)
    device.run(divide_scalars, 1, dividend, divisor, out, DIVIDEND=dividend, DIVISOR=divisor)
    quotient, remainder = divmod(dividend, divisor)
    expected = [quotient, remainder, quotient, remainder, quotient, remainder]
    np.testing.assert_array_equal(out, expected)


@bn.jit
def widen_bools(flags, x, y, casts, stored, added, compared, as_float, B: bn.constexpr):
    r = bn.span(0, B)
    casts[r] = flags[r].to(casts.dtype)
    stored[r] = flags[r]
    added[r] = flags[r] + 0
    compared[r] = (x[r] < y[r]).to(bn.int32) * 3
    as_float[r] = flags[r].to(bn.float32)


@pytest.mark.parametrize("dtype", SIGNED)
def test_true_becomes_one_not_minus_one(device, dtype):
    """NVIDIA/numba-cuda-mlir#266"""
    generator = np.random.default_rng(0)
    flags = generator.random(64) < 0.5
    x, y = generator.integers(-5, 5, (2, 64), np.int32)
    casts, stored, added = (np.zeros(64, dtype) for _ in range(3))
    compared, as_float = np.zeros(64, np.int32), np.zeros(64, np.float32)
    device.run(widen_bools, 1, flags, x, y, casts, stored, added, compared, as_float, B=64)
    for result in (casts, stored, added, as_float):
        np.testing.assert_array_equal(result, flags)
    np.testing.assert_array_equal(compared, (x < y) * 3)


@bn.jit
def wide_literals(x, out, B: bn.constexpr):
    r = bn.span(0, B)
    out[0, r] = x[r] * 2
    out[1, r] = 2 * x[r]
    out[2, r] = x[r] + 1
    out[3, r] = x[r] - 1
    out[4, r] = x[r] // 3
    out[5, r] = x[r] % 7
    out[6, r] = x[r] << 3


def test_uint64_times_a_literal_stays_uint64(device):
    """NVIDIA/numba-cuda-mlir#277"""
    x = np.array([2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 0, 1, 2**53 + 1, 2**62 + 3], np.uint64)
    out = np.zeros((7, 8), np.uint64)
    device.run(wide_literals, 1, x, out, B=8)
    one, two, three, seven = (np.uint64(n) for n in (1, 2, 3, 7))
    expected = [x * two, two * x, x + one, x - one, x // three, x % seven, x << three]
    np.testing.assert_array_equal(out, expected)


@bn.jit
def shift_left_and_back(x, out, DISTANCE: bn.constexpr, B: bn.constexpr):
    r = bn.span(0, B)
    out[r] = (x[r] << DISTANCE) >> DISTANCE


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_left_shift_loses_its_high_bits(device, dtype):
    """tile-ai/tilelang#2961"""
    x = np.array([48, 8, 100, 127, 1, 0, 15, 16], dtype)
    out = np.zeros_like(x)
    distance = 4 if x.itemsize == 1 else 12
    device.run(shift_left_and_back, 1, x, out, DISTANCE=distance, B=8)
    shift = np.array(distance, dtype)
    np.testing.assert_array_equal(out, (x << shift) >> shift)


@bn.jit
def shift_right(x, out, distance, B: bn.constexpr):
    r = bn.span(0, B)
    out[0, r] = x[r] >> 5
    out[1, r] = x[r] >> distance


@pytest.mark.parametrize("dtype, value", [("uint8", 254), ("uint16", 65534),
                                          ("uint32", 0xFFFFFFFE), ("int8", -2), ("int16", -2)])
def test_right_shift_follows_the_sign_of_the_dtype(device, dtype, value):
    """flagos-ai/FlagTree#1121"""
    x = np.full(8, value, dtype)
    out = np.zeros((2, 8), dtype)
    device.run(shift_right, 1, x, out, 5, B=8)
    np.testing.assert_array_equal(out, np.full((2, 8), value >> 5, dtype))


@bn.jit
def powers(x, exponent, out, B: bn.constexpr):
    r = bn.span(0, B)
    out[0, r] = x[r] ** 0
    out[1, r] = x[r] ** 1
    out[2, r] = x[r] ** 2
    out[3, r] = x[r] ** exponent


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_power_zero_is_one(device, dtype):
    """tile-ai/tilelang#2614"""
    x = np.array([0, 2, -3, 5], dtype)
    out = np.zeros((4, 4), dtype)
    device.run(powers, 1, x, 3, out, B=4)
    np.testing.assert_array_equal(out, [x**0, x, x * x, x * x * x])


@bn.jit
def negative_powers(x, out, B: bn.constexpr):
    r = bn.span(0, B)
    out[0, r] = x[r] ** -1
    out[1, r] = x[r] ** -3


def test_negative_power_of_a_float_is_a_reciprocal(device):
    """tile-ai/tilelang#2614"""
    x = np.array([0, 2, -3, 0.5], np.float32)
    out = np.zeros((2, 4), np.float32)
    device.run(negative_powers, 1, x, out, B=4)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(out, [x**np.float32(-1), x**np.float32(-3)], rtol=1e-6)


def test_negative_literal_power_of_an_integer_is_an_error(device):
    """tile-ai/tilelang#2614; NumPy raises ValueError."""
    x, out = np.ones(4, np.int32), np.zeros((2, 4), np.int32)
    with pytest.raises(BlockError, match="-1"):
        device.run(negative_powers, 1, x, out, B=4)


@bn.jit
def negated(x, wide, less, shifted, product, B: bn.constexpr):
    r = bn.span(0, B)
    y = -x[r]
    wide[0, r], wide[1, r], wide[2, r] = y, bn.abs(x[r]), 0 - x[r]
    less[0, r], less[1, r] = y < 3, bn.abs(x[r]) < x[r]
    shifted[0, r], shifted[1, r] = y >> 3, bn.abs(x[r]) >> 3
    product[r] = y.to(bn.int32) * x[r].to(bn.int32)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_the_lowest_integer_negated_is_itself_where_its_sign_is_read(device, dtype):
    """The assembler of CUDA 13.0 left out the extension of neg.s16 and abs.s16."""
    lowest = np.iinfo(dtype).min
    x = np.array([lowest, lowest + 1, -1, 0, 1, 5, -lowest - 1, lowest], dtype)
    wide, less = np.zeros((3, 8), np.int64), np.zeros((2, 8), bool)
    shifted, product = np.zeros((2, 8), dtype), np.zeros(8, np.int32)

    device.run(negated, 1, x, wide, less, shifted, product, B=8)

    with np.errstate(over="ignore"):
        y, size = -x, np.abs(x)
        np.testing.assert_array_equal(wide, [y, size, y])
        np.testing.assert_array_equal(less, [y < 3, size < x])
        np.testing.assert_array_equal(shifted, [y >> 3, size >> 3])
        np.testing.assert_array_equal(product, y.astype(np.int32) * x.astype(np.int32))


@bn.jit
def shares(x, out, B: bn.constexpr):
    r = bn.span(0, B)
    out[0, r], out[1, r] = bn.softmax(x[r]), bn.sigmoid(x[r])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int64"])
def test_softmax_and_sigmoid_of_integers_do_not_wrap(device, dtype):
    """Differences from the greatest, and negatives, were computed in the integers' dtype."""
    x = np.array([3, 9, 0, 127, 5, 126, 1, 2], dtype)
    x[2] = max(np.iinfo(dtype).min, -128)
    out = np.zeros((2, 8))

    device.run(shares, 1, x, out, B=8)

    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max())
    np.testing.assert_allclose(out, [powers / powers.sum(), 1 / (1 + np.exp(-wide))], 1e-5, 1e-30)

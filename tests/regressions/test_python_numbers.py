"""Python numbers that once had a dtype of their own, and made results narrower or wider."""

import math

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

TENTH = 0.1  # has no exact value in float32


@bn.jit
def scale(x, out, a, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = x[r] * a


@bn.jit
def annotated_scale(x, out, a: float, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = x[r] * a


@bn.jit
def constant_scale(x, out, a: bn.constexpr, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = x[r] * a


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kernel", [scale, annotated_scale, constant_scale])
def test_a_python_float_takes_the_dtype_of_the_tile_it_meets(device, kernel, dtype):
    x = np.random.default_rng(1).standard_normal(16).astype(dtype)
    out = np.full(16, np.nan)
    device.run(kernel, 1, x, out, TENTH, N=16)
    np.testing.assert_array_equal(out, x * TENTH)


def test_an_int_for_a_float_is_a_float(device):
    x, out = np.arange(16, dtype=np.int32), np.full(16, np.nan)
    device.run(annotated_scale, 1, x, out, 3, N=16)
    np.testing.assert_array_equal(out, x * 3)


@pytest.mark.parametrize("value, result", [
    (np.float64(TENTH), "float64"), (np.float32(TENTH), "float32"), (TENTH, "float32")])
def test_a_numpy_scalar_keeps_its_dtype(device, value, result):
    x, out = np.linspace(1, 2, 16, dtype=np.float32), np.full(16, np.nan)
    device.run(scale, 1, x, out, value, N=16)
    np.testing.assert_array_equal(out, x.astype(result) * np.dtype(result).type(value))


def test_a_float_beyond_the_dtype_it_meets_is_infinite(device):
    for dtype in (np.float16, np.float32):
        x, out = np.array([1, -1, 0, 2], dtype), np.full(4, 7.0)
        device.run(scale, 1, x, out, 1e300, N=4)
        np.testing.assert_array_equal(out, [np.inf, -np.inf, np.nan, np.inf])


def test_another_float_needs_no_other_code():
    x, out = np.ones(16), np.zeros(16)
    compiled = {scale[1](x, out, a, N=16, interpret=True) for a in (0.1, 2.5, -0.0, 1e300, 1.0)}
    assert len(compiled) == 1


@bn.jit
def functions(out, a, n, CONSTANT: bn.constexpr):
    out[0] = a * 2 + 1
    out[1] = bn.sqrt(1 / 3)
    out[2] = bn.sqrt(a)
    out[3] = math.exp(a) / n
    out[4] = 1 / n
    out[5] = -abs(a - n)
    out[6] = bn.maximum(a, CONSTANT) - min(a, CONSTANT)
    out[7] = bn.fma(a, a, n) if n > 1 else a
    out[8] = bn.sigmoid(a)
    out[9] = bn.where(a > n, a, CONSTANT)
    out[10] = a ** 3
    out[11] = float(n) / 7
    out[12] = n // 2 * a + n % 2


def test_python_numbers_alone_are_computed_in_double_precision(device):
    a, n, constant = 0.7, 5, 1 / 3
    out = np.full(13, np.nan)
    device.run(functions, 1, out, a, n, CONSTANT=constant)
    expected = [a * 2 + 1, math.sqrt(1 / 3), math.sqrt(a), math.exp(a) / n, 1 / n, -abs(a - n),
                max(a, constant) - min(a, constant), a * a + n, 1 / (1 + math.exp(-a)), constant,
                a ** 3, n / 7, n // 2 * a + n % 2]
    np.testing.assert_allclose(out, expected, rtol=4e-16)


@bn.jit
def joined(x, out, a, n, N: bn.constexpr):
    total = 0
    for i in range(N):
        total += x[i]
    out[0] = total
    factor = a
    if n > 3:
        factor = x[0]
    out[1] = factor * x[1]
    best, sum_of_python = -1.0, a
    for i in range(N):
        best = max(best, x[i])
        sum_of_python += a / (i + 1)
    out[2] = best
    out[3] = sum_of_python


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 5])
def test_a_variable_has_the_dtype_of_the_path_that_is_no_python_number(device, dtype, n):
    x = np.linspace(0.1, 2.3, 8).astype(dtype)
    out = np.full(4, np.nan)
    device.run(joined, 1, x, out, TENTH, n, N=8)
    total = x.dtype.type(0)
    for value in x:
        total += value
    factor = x[0] if n > 3 else x.dtype.type(TENTH)
    of_python = TENTH
    for i in range(8):
        of_python += TENTH / (i + 1)
    np.testing.assert_array_equal(out, [total, factor * x[1], x.max(), of_python])


@bn.jit
def hash_of(seed, out, N: bn.constexpr):
    r = bn.span(0, N)
    for k in range(4):
        h = (k + seed) * 0x9E3779B1 ^ seed >> 3
        h = (h ^ h >> 15) * bn.uint32(0x85EBCA77) + bn.program_id(0) + out.shape[0]
        out[k, r] = h


@pytest.mark.parametrize("seed", [0, 12345, 2**32 - 1])
def test_a_hash_of_loop_variables_stays_in_32_bits(device, seed):
    out = np.zeros((4, 2), np.uint64)
    device.run(hash_of, 1, np.uint32(seed), out, N=2)
    expected, mask = [], 2**32 - 1
    for k in range(4):
        h = ((k + seed & mask) * 0x9E3779B1 & mask) ^ seed >> 3
        expected.append(((h ^ h >> 15) * 0x85EBCA77 + 4) & mask)
    np.testing.assert_array_equal(out, np.repeat(np.array(expected, np.uint64)[:, None], 2, 1))


@bn.jit
def add_number(x, out, n, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = x[r] + n


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32", "int64", "uint64"])
def test_a_python_int_takes_the_dtype_of_the_tile_it_meets_and_wraps(device, dtype):
    for n in (300, -3, 2**40 + 1, 2**64 - 1):
        x, out = np.arange(100, 108).astype(dtype), np.zeros(8, np.int64)
        device.run(add_number, 1, x, out, n, N=8)
        np.testing.assert_array_equal(out, (x + np.array(n).astype(dtype)).astype(np.int64))


@bn.jit
def far_offsets(out, n, N: bn.constexpr):
    out[bn.span(0, N)] = bn.arange(0, N) + n * 4


@pytest.mark.parametrize("n", [2, 2**31, 2**40])
def test_positions_beside_ints_of_64_bits_have_64_bits(device, n):
    out = np.zeros(8, np.int64)
    device.run(far_offsets, 1, out, n, N=8)
    np.testing.assert_array_equal(out, np.arange(8) + n * 4)


@bn.jit
def compare(x, out, n, N: bn.constexpr):
    r = bn.span(0, N)
    out[0, r] = x[r] < n
    out[1, r] = n <= x[r]
    out[2, r] = x[r] == n
    out[3, r] = x[r] != n


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "int64", "uint64"])
def test_comparisons_with_python_ints_are_by_value(device, dtype):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, 7, limits.max, limits.max // 2], dtype)
    values = [int(v) for v in x]
    for n in (-1, 300, 2**33, 2**63 + 5):
        out = np.zeros((4, 4), bool)
        device.run(compare, 1, x, out, n, N=4)
        np.testing.assert_array_equal(out, [[v < n for v in values], [n <= v for v in values],
                                            [v == n for v in values], [v != n for v in values]])


def test_an_int_that_does_not_fit_is_found_by_debug():
    x, out = np.zeros(8, np.int8), np.zeros(8, np.int64)
    add_number[1](x, out, 127, N=8, debug=True, interpret=True)
    for n in (128, -129, 2**40):
        with pytest.raises(BlockError, match=r"out\[r\] = x\[r\] \+ n") as caught:
            add_number[1](x, out, n, N=8, debug=True, interpret=True)
        assert "int8" in str(caught.value)


@bn.jit
def late_literal(index, out, n):
    best = -1
    if n > 3:
        best = index[0]
    out[0] = best


def test_a_literal_that_a_variable_cannot_hold_is_an_error():
    with pytest.raises(BlockError, match="'best': -1 is out of range for uint32") as caught:
        late_literal[1](np.zeros(1, np.uint32), np.zeros(1, np.int64), 5, interpret=True)
    assert "    best = -1\n" in str(caught.value)

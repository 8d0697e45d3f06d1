"""Dtypes that once were lost on the way: weak literals, captured scalars, typed arguments."""

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

CAPTURED_FLAG = np.bool_(True)
CAPTURED_BYTE = np.int8(-3)
CAPTURED_WORD = np.uint64(2**63)
CAPTURED_HALF = np.float16(1.5)
CAPTURED_FLOAT = np.float32(0.1)
SHAPE = (4, 8)


@bn.jit
def float_remainder(x, y, out, X: bn.constexpr, Y: bn.constexpr, B: bn.constexpr):
    r = bn.span(0, B)
    out[0, r] = x[r] % y[r]
    out[1, r] = x[r] % Y
    out[2, r] = X % y[r]
    out[3, r] = bn.full((B,), X % Y, bn.float32)


@pytest.mark.parametrize("x, y", [(-5.0, 3.0), (5.0, -3.0), (-5.0, -3.0), (5.5, 3.0)])
def test_float_remainder_has_the_sign_of_the_divisor(device, x, y):
    """triton-lang/triton#10920"""
    out = np.zeros((4, 4), np.float32)
    device.run(float_remainder, 1, np.full(4, x, np.float32), np.full(4, y, np.float32), out,
               X=x, Y=y, B=4)
    np.testing.assert_array_equal(out, np.full((4, 4), x % y, np.float32))


@bn.jit
def captured_scalars(flags, byte, word, half, single, B: bn.constexpr):
    r = bn.span(0, B)
    flags[r] = flags[r] & CAPTURED_FLAG
    byte[r] = byte[r] + CAPTURED_BYTE
    word[r] = word[r] + CAPTURED_WORD
    half[r] = half[r] * CAPTURED_HALF
    single[r] = single[r] * CAPTURED_FLOAT


def test_captured_numpy_scalars_keep_their_dtypes(device):
    """NVIDIA/numba-cuda-mlir#192"""
    flags = np.array([True, False, True, False])
    byte = np.array([1, 2, -126, 4], np.int8)
    word = np.array([1, 2, 2**63, 4], np.uint64)
    half, single = np.array([1, 2, 3, 4], np.float16), np.array([1, 2, 3, 4], np.float32)
    arrays = [array.copy() for array in (flags, byte, word, half, single)]
    device.run(captured_scalars, 1, *arrays, B=4)
    expected = (flags & CAPTURED_FLAG, byte + CAPTURED_BYTE, word + CAPTURED_WORD,
                half * CAPTURED_HALF, single * CAPTURED_FLOAT)
    for array, wanted in zip(arrays, expected):
        np.testing.assert_array_equal(array, wanted)


@bn.jit
def reversed_shape(out):
    rows, columns = SHAPE[::-1]
    out[0] = rows
    out[1] = columns


def test_module_level_tuple_can_be_sliced(device):
    """NVIDIA/numba-cuda-mlir#111"""
    out = np.zeros(2, np.int32)
    device.run(reversed_shape, 1, out)
    np.testing.assert_array_equal(out, SHAPE[::-1])


@bn.jit
def any_flag(flags, out, B: bn.constexpr):
    seen = bn.zeros((B,), bn.bool_)
    for r in bn.spans(flags.shape[0], B):
        seen = seen | flags[r]
    out[0] = bn.max(seen, axis=0)


@pytest.mark.parametrize("position", [None, 0, 99])
def test_loaded_bools_are_bools_in_a_loop(device, position):
    """triton-lang/triton#2151"""
    flags, out = np.zeros(100, bool), np.zeros(1, bool)
    if position is not None:
        flags[position] = True
    device.run(any_flag, 1, flags, out, B=32)
    assert out[0] == flags.any()


@bn.jit
def weak_literals(mask, half, byte, unsigned, short, halves, bytes_out, unsigned_out, shorts,
                  B: bn.constexpr):
    r = bn.span(0, B)
    m = mask[r]
    halves[0, r] = bn.where(m, half[r], 0) * half[r]
    halves[1, r] = bn.where(m, half[r], 0.0) * half[r]
    halves[2, r] = bn.clamp(half[r], 0.0, 1.0) * half[r]
    bytes_out[r] = bn.where(m, 0, byte[r]) + byte[r]
    unsigned_out[r] = unsigned[r] << 2
    shorts[r] = bn.maximum(short[r], 7) * short[r]


def test_python_literals_do_not_widen_a_tile(device):
    """triton-lang/triton#1891: the outputs are wider, so that a wider result would show."""
    mask = np.arange(16) % 3 == 0
    half = np.linspace(-2, 300, 16).astype(np.float16)
    byte, unsigned = (np.linspace(-128, 127, 16).astype(np.int8),
                      np.linspace(0, 255, 16).astype(np.uint8))
    short = np.linspace(-20_000, 20_000, 16).astype(np.int16)
    halves, bytes_out = np.zeros((3, 16), np.float32), np.zeros(16, np.int32)
    unsigned_out, shorts = np.zeros(16, np.int32), np.zeros(16, np.int32)
    device.run(weak_literals, 1, mask, half, byte, unsigned, short, halves, bytes_out,
               unsigned_out, shorts, B=16)
    zero = np.float16(0)
    with np.errstate(over="ignore"):
        masked = np.where(mask, half, zero) * half
        np.testing.assert_array_equal(
            halves, [masked, masked, np.clip(half, zero, np.float16(1)) * half])
        np.testing.assert_array_equal(bytes_out, np.where(mask, np.int8(0), byte) + byte)
        np.testing.assert_array_equal(unsigned_out, unsigned << np.uint8(2))
        np.testing.assert_array_equal(shorts, np.maximum(short, np.int16(7)) * short)


@bn.jit
def half_in_a_loop(x, out, B: bn.constexpr):
    total = bn.zeros((B,), bn.float16)
    for r in bn.spans(x.shape[0], B):
        total = total + bn.where(r.index < x.shape[0], x[r], 0.0)
    out[bn.span(0, B)] = total


def test_where_with_a_literal_keeps_a_loop_variable_float16(device):
    """triton-lang/triton#1891"""
    x, out = np.arange(40, dtype=np.float16), np.zeros(16, np.float16)
    device.run(half_in_a_loop, 1, x, out, B=16)
    np.testing.assert_array_equal(out, np.pad(x, (0, 8)).reshape(3, 16).sum(axis=0))


@bn.jit
def add_300(x, B: bn.constexpr):
    r = bn.span(0, B)
    x[r] = x[r] + 300


@bn.jit
def fill_256(x, B: bn.constexpr):
    x[bn.span(0, B)] = bn.full((B,), 256, bn.uint8)


@bn.jit
def and_minus_one(x, B: bn.constexpr):
    r = bn.span(0, B)
    x[r] = x[r] & -1


@pytest.mark.parametrize("kernel, dtype, literal", [
    (add_300, "int8", "300"), (fill_256, "uint8", "256"), (and_minus_one, "uint8", "-1")])
def test_literal_that_does_not_fit_is_an_error(device, kernel, dtype, literal):
    """triton-lang/triton PR#5926; NumPy 2 raises OverflowError."""
    with pytest.raises(BlockError) as caught:
        device.run(kernel, 1, np.zeros(8, dtype), B=8)
    assert literal in caught.value.message and dtype in caught.value.message


def scalar_kernel(annotation):
    """A kernel that stores a scalar argument annotated with a dtype."""
    def store_scalar(value, out):
        out[0] = value

    store_scalar.__annotations__["value"] = annotation
    return bn.jit(store_scalar)


SCALARS = [("float16", 42.0), ("float16", 65500.0), ("float16", -65500.0), ("bfloat16", 42.0),
           ("float32", 65500.0), ("float64", 0.1), ("float64", 1e300), ("int8", -100),
           ("uint16", 65535), ("uint32", 2**32 - 1), ("int64", -2**40), ("uint64", 2**63 + 5),
           ("bool", True)]


@pytest.mark.parametrize("dtype, value", SCALARS)
@pytest.mark.parametrize("form", ["python", "scalar", "0-d"])
def test_annotated_scalar_arrives_exactly(device, dtype, value, form):
    """triton-lang/triton#6176"""
    numpy_dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    given = {"python": value, "scalar": numpy_dtype.type(value),
             "0-d": np.array(value, numpy_dtype)}[form]
    out = np.zeros(1, numpy_dtype)
    device.run(scalar_kernel(numpy_dtype.type), 1, given, out)
    assert out[0] == numpy_dtype.type(value)


@bn.jit
def add_optional(x, bias, out, B: bn.constexpr):
    r = bn.span(0, B)
    total = x[r]
    if bias is not None:
        total += bias[r]
    out[r] = total


def test_none_and_an_array_are_two_specialisations(device):
    """pytorch/pytorch#138546; triton-lang/triton PR#3648"""
    x, bias = np.arange(8, dtype=np.float32), np.full(8, 10, np.float32)
    for given in (bias, None, bias, None):
        out = np.zeros_like(x)
        device.run(add_optional, 1, x, given, out, B=8)
        np.testing.assert_array_equal(out, x if given is None else x + bias)


@bn.jit
def copy_two(first, second, first_stride, second_stride, out, B: bn.constexpr):
    offsets = bn.arange(0, B)
    source, stride = first + 0, first_stride
    for i in range(2):
        out[i, bn.span(0, B)] = bn.load(source + offsets * stride)
        source, stride = second + 0, second_stride


@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 1)])
def test_stride_of_one_can_be_reassigned_in_a_loop(device, strides):
    """triton-lang/triton#9547"""
    first, second = np.arange(16, dtype=np.float32), -np.arange(16, dtype=np.float32)
    out = np.zeros((2, 8), np.float32)
    device.run(copy_two, 1, first, second, *strides, out, B=8)
    np.testing.assert_array_equal(out, [first[::strides[0]][:8], second[::strides[1]][:8]])

"""cvt between every pair of kinds of numbers."""

import ml_dtypes
import numpy as np
import pytest
from ptx import evaluate

_FLOATS = {"f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
_INTEGERS = {"s8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "s16": np.dtype(np.int16),
             "u16": np.dtype(np.uint16), "s32": np.dtype(np.int32), "u32": np.dtype(np.uint32),
             "s64": np.dtype(np.int64), "u64": np.dtype(np.uint64)}
_VALUES = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 127.5, 128.5, 255.6, -129.0, 32767.6,
           65535.4, 3e9, -3e9, 5e9, 1e19, 2e19, -1e19, np.inf, -np.inf]


def in_range(exact, dtype):
    """A float clamped to a dtype's range, as Python's integer."""
    limits = np.iinfo(dtype)
    if exact == np.inf:
        return limits.max
    return limits.min if exact == -np.inf else int(min(max(int(exact), limits.min), limits.max))


@pytest.mark.parametrize("mode, function", [("rzi", np.trunc), ("rni", np.rint), ("rmi", np.floor),
                                            ("rpi", np.ceil)])
@pytest.mark.parametrize("to", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_a_float_becomes_an_integer_rounded_and_clamped(mode, function, to):
    values = np.array(_VALUES)
    result = evaluate(f"cvt.{mode}.{to}.f64 $0, $1;", _INTEGERS[to], values)
    assert result.tolist() == [in_range(function(value), _INTEGERS[to]) for value in values]


@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("to", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_nan_becomes_zero_or_with_64_bits_on_a_side_the_highest_bit(to, source):
    dtype = _INTEGERS[to]
    nan = np.array([np.nan, -np.nan], _FLOATS[source])

    result = evaluate(f"cvt.rzi.{to}.{source} $0, $1;", dtype, nan)

    bits = 8 * dtype.itemsize
    expected = 1 << (bits - 1) if source == "f64" or bits == 64 else 0
    assert result.view(f"u{dtype.itemsize}").tolist() == [expected] * 2


@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("to", ["f32", "f64"])
def test_an_integer_becomes_a_float_rounded_once(to, source, mode):
    dtype, kind = _INTEGERS[source], _FLOATS[to]
    values = np.frombuffer(np.random.default_rng(2).bytes(64 * dtype.itemsize), dtype)
    result = evaluate(f"cvt.{mode}.{to}.{source} $0, $1;", kind, values)
    for got, value in zip(result.tolist(), values.tolist()):
        below, above = np.nextafter(kind.type(got), kind.type([-np.inf, np.inf]))
        error = int(got) - value
        fits = {"rn": abs(error) * 2 <= max(int(above) - int(got), int(got) - int(below)),
                "rz": abs(int(got)) <= abs(value), "rm": error <= 0, "rp": error >= 0}[mode]
        assert fits and float(below) < value < float(above)  # exactly, in Python


_WIDE = list(_INTEGERS)[2:]  # 8-bit numbers are in wider registers; see the test of bytes


@pytest.mark.parametrize("source", _WIDE)
@pytest.mark.parametrize("to", _WIDE)
def test_integers_keep_their_low_bits(to, source):
    values = np.frombuffer(np.random.default_rng(3).bytes(512), _INTEGERS[source])
    result = evaluate(f"cvt.{to}.{source} $0, $1;", _INTEGERS[to], values)
    assert result.tolist() == values.astype(_INTEGERS[to]).tolist()


def test_bytes_are_extended_by_their_sign():
    values = np.int16([0x7F, 0x80, 0xFF, 0x17F])
    signed = evaluate("cvt.s32.s8 $0, $1;", np.int32, values)
    unsigned = evaluate("cvt.u32.u8 $0, $1;", np.int32, values)
    assert signed.tolist() == [127, -128, -1, 127] and unsigned.tolist() == [127, 128, 255, 127]


def test_sat_clamps_integers():
    values = np.int32([-5, 5, 300, 70000])
    assert evaluate("cvt.sat.u8.s32 $0, $1;", np.uint16, values).tolist() == [0, 5, 255, 255]


@pytest.mark.parametrize("to, source", [("f16", "f32"), ("f16", "f64"), ("f32", "f64"),
                                        ("f32", "f16"), ("f64", "f32")])
def test_floats_round_to_nearest_even(to, source):
    values = np.random.default_rng(4).standard_normal(256)
    values[:4] = [1 + 2.0**-11, 1 + 3 * 2.0**-11, 65503.0, 65519.0]
    values = values.astype(_FLOATS[source])
    mode = "" if _FLOATS[to].itemsize > _FLOATS[source].itemsize else ".rn"
    result = evaluate(f"cvt{mode}.{to}.{source} $0, $1;", _FLOATS[to], values)
    assert result.tolist() == values.astype(_FLOATS[to]).tolist()


def test_bfloat_is_rounded_to_nearest_even_and_towards_zero():
    values = np.float32([1 + 2.0**-8, 1 + 3 * 2.0**-8, -1.999, 3.4e38])
    nearest = evaluate("cvt.rn.bf16.f32 $0, $1;", ml_dtypes.bfloat16, values)
    zero = evaluate("cvt.rz.bf16.f32 $0, $1;", ml_dtypes.bfloat16, values)
    assert nearest.astype(float).tolist() == [1, 1 + 2.0**-6, -2, np.inf]
    assert zero.astype(float)[:3].tolist() == [1, 1 + 2.0**-7, -(2 - 2.0**-7)]
    assert np.isfinite(zero.astype(float)[3])


@pytest.mark.parametrize("type_, dtype", [("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)])
def test_a_pair_has_its_first_operand_above(type_, dtype):
    high, low = np.float32([1, -2, 3e-8]), np.float32([0.1, 7, np.inf])
    result = evaluate(f"cvt.rn.{type_}.f32 $0, $1, $2;", np.uint32, high, low).view(dtype)
    assert result[0::2].astype(float).tolist() == low.astype(dtype).astype(float).tolist()
    assert result[1::2].astype(float).tolist() == high.astype(dtype).astype(float).tolist()


@pytest.mark.parametrize("modifiers", ["rn.{}", "rz.{}", "rn.relu.{}"])
@pytest.mark.parametrize("type_", ["f16x2", "bf16x2"])
def test_a_pair_has_canonical_nans(type_, modifiers):
    nan, one = np.float32([np.nan, -np.nan, 1]), np.float32([1, 1, np.nan])

    result = evaluate(f"cvt.{modifiers.format(type_)}.f32 $0, $1, $2;", np.uint32, nan, one)

    canonical = (result.view(np.uint16) == 0x7FFF).tolist()
    assert canonical == [False, True, False, True, True, False]


@pytest.mark.parametrize("kind, nans", [
    ("e4m3x2", [0x7F, 0xFF]), ("e5m2x2", [0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF])])
def test_every_fp8_nan_becomes_the_canonical_one(kind, nans):
    octets = np.arange(256, dtype=np.uint16)

    result = evaluate(f"cvt.rn.f16x2.{kind} $0, $1;", np.uint32, octets).view(np.uint16)[0::2]

    assert np.flatnonzero(np.isnan(result.view(np.float16))).tolist() == nans
    assert (result[nans] == 0x7FFF).all()


@pytest.mark.parametrize("kind, dtype, largest", [
    ("e4m3x2", ml_dtypes.float8_e4m3fn, 448), ("e5m2x2", ml_dtypes.float8_e5m2, 57344)])
def test_fp8_saturates_and_comes_back_exactly(kind, dtype, largest):
    values = np.float32([0.1, -3.3, 1e6, -np.inf, 1e-9, 447, 17, 0])
    pairs = evaluate(f"cvt.rn.satfinite.{kind}.f32 $0, $1, $2;", np.uint16, values, -values)
    expected = np.clip(values, -largest, largest).astype(dtype)
    back = evaluate(f"cvt.rn.f16x2.{kind} $0, $1;", np.uint32, pairs).view(np.float16)
    assert pairs.view(np.uint8)[1::2].tolist() == expected.view(np.uint8).tolist()
    assert back[1::2].tolist() == expected.astype(np.float16).tolist()
    assert back[0::2].tolist() == (-expected.astype(np.float32)).astype(np.float16).tolist()


@pytest.mark.parametrize("kind, dtype", [("s8", np.int8), ("u8", np.uint8)])
def test_two_integers_are_limited_and_packed_below_a_third(kind, dtype):
    a, b = np.int32([-2**31, 127, 300, -1]), np.int32([2**31 - 1, -128, 5, -129])
    word = np.uint32([0, 0xABCD1234, 0xFFFF, 7])

    result = evaluate(f"cvt.pack.sat.{kind}.s32.b32 $0, $1, $2, $3;", np.uint32, a, b, word)

    limits = np.iinfo(dtype)
    low, high = (np.clip(x, limits.min, limits.max).astype(dtype).tolist() for x in (b, a))
    octets = result.view(dtype).reshape(-1, 4)
    assert octets[:, 0].tolist() == low
    assert octets[:, 1].tolist() == high
    assert (result >> 16).tolist() == (word & 0xFFFF).tolist()


def test_tf32_rounds_ties_away_from_zero():
    values = np.float32([1 + 2.0**-11, -(1 + 2.0**-11), 1 + 2.0**-12, 0.1])
    result = evaluate("cvt.rna.tf32.f32 $0, $1;", np.uint32, values).view(np.float32)
    assert result[:3].tolist() == [1 + 2.0**-10, -(1 + 2.0**-10), 1]
    assert (result.view(np.uint32) & 0x1FFF == 0).all()


def test_tf32_rounds_ties_to_even_where_it_is_told_so():
    values = np.float32([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-23, -np.inf])
    result = evaluate("cvt.rn.tf32.f32 $0, $1;", np.uint32, values).view(np.float32)
    assert result.tolist() == [1, 1 + 2.0**-9, 1 + 2.0**-10, -np.inf]

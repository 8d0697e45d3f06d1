"""Conversions between all dtypes against NumPy's and ml_dtypes' astype."""

import numpy as np
import pytest
from kernels import assembled, elementwise_kernel, emulated
from test_elementwise import special_values

from blocknumba.tile_ir.ir.types import ANY, DTYPES, bool_
from blocknumba.tile_ir.ops import numerics

SIZE = 256
DTYPE_LIST = sorted(ANY, key=str)
FLOAT8 = ["float8_e4m3fn", "float8_e5m2"]
TARGETS_OF_FLOAT8 = ["sm_80", "sm_89"]  # without instructions for them, and with


def interesting(dtype):
    """Special values, and of floats also what is near the bounds of narrower dtypes."""
    if dtype.bits == 8 and dtype != bool_:
        return np.arange(256, dtype=np.uint8).view(dtype.numpy)
    values = special_values(dtype)
    if not dtype.is_float:
        # halfway between bfloat16s, and one off: rounding twice goes wrong here
        halves = [(257 << shift) + off for shift in (8, 20, 21, 40, 54) for off in (-1, 0, 1)]
        return np.concatenate([values, np.array(
            [half for half in halves if half <= dtype.maximum], dtype.numpy)])
    edges = [65504, 65519, 65520, 70000, 448, 464, 465, 480, 500, 57344, 61439, 61440, 61441, 1e-8,
             127, 128, 129, 255, 256, 32767, 32768, 65535, 65536, 2.0 ** 31, 2.0 ** 31 - 128,
             2.0 ** 32, 2.0 ** 63, 2.0 ** 64, 1e30, 2.0 ** -7, 2.0 ** -9, 2.0 ** -10, 1.0625,
             1.00390625 + 2.0 ** -40, 1.00390625 - 2.0 ** -40, 1.1875, 0.0009765625 * 1.5,
             2.0 ** -16, 3 * 2.0 ** -18, 255.9, 2.0 ** -24, 2.0 ** -25]
    with np.errstate(over="ignore"):
        extra = np.array([*edges, *(-edge for edge in edges)]).astype(dtype.numpy)
    random = np.random.default_rng(1).standard_normal(64).astype(dtype.numpy)
    return np.concatenate([values, extra, random])


def converted(x, to, rounding="nearest", target="sm_90a"):
    """The result of the kernel on x."""
    source = next(d for d in DTYPE_LIST if d.numpy == x.dtype)
    found = np.zeros(len(x), to.numpy)
    attributes = ' {rounding="zero"}' if rounding == "zero" else ""
    text = elementwise_kernel(f"%result = cast %a{attributes} : tile<{SIZE}x{to}>", source.name,
                              result=to.name, size=SIZE)
    emulated(text, -(-len(x) // SIZE), x, found, len(x), target=target)
    return found


def around_midpoints(dtype, source):
    """Numbers of a wider float around every boundary where rounding to dtype changes its result."""
    values = np.sort(np.arange(128, dtype=np.uint8).view(dtype.numpy).astype(np.float64))
    values = values[np.isfinite(values)]
    # beyond the greatest too: there the next number would have been
    values = np.append(values, 2 * values[-1] - values[-2])
    boundaries = np.concatenate([values, (values[1:] + values[:-1]) / 2]).astype(source.numpy)
    near = [boundaries, np.nextafter(boundaries, source.numpy.type(0)),
            np.nextafter(boundaries, source.numpy.type(np.inf)), boundaries * (1 + 2.0**-40),
            boundaries * (1 - 2.0**-40)]
    positive = np.concatenate([np.array(near).ravel(), [np.inf, np.nan, 1e30]])
    return np.concatenate([positive, -positive]).astype(source.numpy)


def assert_same(found, wanted, x):
    bits = f"u{found.dtype.itemsize}"
    same = found.view(bits) == wanted.view(bits)
    if found.dtype.kind not in "biu":
        same |= (found != found) & (wanted != wanted)
    wrong = np.flatnonzero(~same)
    assert not len(wrong), [(x[i], found[i], wanted[i]) for i in wrong[:5]]


@pytest.mark.parametrize("to", DTYPE_LIST, ids=str)
@pytest.mark.parametrize("source", DTYPE_LIST, ids=str)
def test_a_cast_gives_what_astype_gives(source, to):
    x = interesting(source)

    found = converted(x, to)

    with np.errstate(all="ignore"):
        assert_same(found, numerics.convert(x, to.numpy), x)


@pytest.mark.parametrize("to", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("source", ["float64", "float32"])
def test_rounding_towards_zero_never_grows(source, to):
    if source == to:
        pytest.skip("not narrower")
    x = interesting(DTYPES[source])
    x = x[np.isfinite(x)]

    found = converted(x, DTYPES[to], "zero")

    with np.errstate(all="ignore"):
        wanted = numerics.convert(x, DTYPES[to].numpy, "zero")
    assert_same(found, wanted, x)
    assert (np.abs(found.astype(np.float64)) <= np.abs(x)).all()


@pytest.mark.parametrize("target", TARGETS_OF_FLOAT8)
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("to", FLOAT8)
def test_8_bit_floats_are_rounded_once_around_every_midpoint(to, source, target):
    x = around_midpoints(DTYPES[to], DTYPES[source])

    found = converted(x, DTYPES[to], target=target)

    with np.errstate(all="ignore"):
        assert_same(found, numerics.convert(x, DTYPES[to].numpy), x)


@pytest.mark.parametrize("target", TARGETS_OF_FLOAT8)
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
@pytest.mark.parametrize("to", FLOAT8)
def test_every_16_bit_float_becomes_the_8_bit_float_of_ml_dtypes(to, source, target):
    x = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[source].numpy)

    found = converted(x, DTYPES[to], target=target)

    with np.errstate(all="ignore"):
        assert_same(found, x.astype(DTYPES[to].numpy), x)


@pytest.mark.parametrize("target", TARGETS_OF_FLOAT8)
@pytest.mark.parametrize("to", DTYPE_LIST, ids=str)
@pytest.mark.parametrize("source", FLOAT8)
def test_every_8_bit_float_becomes_what_astype_makes_of_it(source, to, target):
    x = interesting(DTYPES[source])

    found = converted(x, to, target=target)

    with np.errstate(all="ignore"):
        assert_same(found, numerics.convert(x, to.numpy), x)


@pytest.mark.parametrize("size", [32, 64, 128, 512])
@pytest.mark.parametrize("to, source", [
    ("float32", "float8_e4m3fn"), ("float8_e5m2", "float32"), ("float16", "int8"),
    ("float32", "uint8"), ("bfloat16", "int8")])
def test_any_number_of_registers_is_converted(to, source, size):
    """One at a time, in a pair, or in words of four."""
    x = np.resize(interesting(DTYPES[source]), size)
    found = np.zeros(size, DTYPES[to].numpy)
    text = elementwise_kernel(f"%result = cast %a : tile<{size}x{to}>", source, result=to,
                              size=size)

    emulated(text, 1, x, found, size, num_warps=1)

    with np.errstate(all="ignore"):
        assert_same(found, numerics.convert(x, DTYPES[to].numpy), x)


@pytest.mark.parametrize("source, to, instruction", [
    ("float8_e4m3fn", "float32", "cvt.rn.f16x2.e4m3x2"),
    ("float8_e5m2", "bfloat16", "cvt.rn.f16x2.e5m2x2"),
    ("float32", "float8_e4m3fn", "cvt.rn.satfinite.e4m3x2.f32"),
    ("float16", "float8_e5m2", "cvt.rn.satfinite.e5m2x2.f32")])
def test_the_hardware_converts_two_8_bit_floats_at_a_time(source, to, instruction):
    text = elementwise_kernel(f"%result = cast %a : tile<1024x{to}>", source, result=to,
                              multiple=16)

    ptx = assembled(text).ptx

    assert ptx.count(instruction) == 1024 // 128 // 2


@pytest.mark.parametrize("to", ["uint8", "uint16", "uint32", "uint64"])
def test_a_bool_becomes_zero_or_one(to):
    found = converted(np.array([True, False]), DTYPES[to])

    assert found.tolist() == [1, 0]


@pytest.mark.parametrize("source, to", [("float32", "int32"), ("int64", "float64"),
                                        ("float16", "uint16"), ("bfloat16", "int16"),
                                        ("float8_e5m2", "uint8")])
def test_a_bitcast_keeps_the_bits(source, to):
    x = special_values(DTYPES[source])
    found = np.zeros(len(x), DTYPES[to].numpy)
    text = elementwise_kernel(f"%result = bitcast %a : tile<{SIZE}x{to}>", source, result=to,
                              size=SIZE)

    emulated(text, 1, x, found, len(x))

    np.testing.assert_array_equal(found, x.view(found.dtype))

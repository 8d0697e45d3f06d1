"""cvt: conversions between numbers, in every rounding mode."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.instructions.floating import flush, rounding_mode, saturate
from blocknumba.emulator.rounding import direct, narrow, to_odd, two_sum
from blocknumba.emulator.values import FLOATS, dtype_of

_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FP8 = {"e4m3x2": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2x2": np.dtype(ml_dtypes.float8_e5m2)}
_LARGEST_FP8 = {"e4m3x2": 448.0, "e5m2x2": 57344.0}
_NAN_FP8 = 0x7F  # PTX ISA, "cvt": a NaN becomes the canonical NaN of the type
_NAN_HALF = 0x7FFF  # of f16 and bf16, likewise; of an f64 an H100 makes 0x7E00

Function = Callable[[np.ndarray], np.ndarray]


def float_to_integer(value: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    """Rounded as the mode says and clamped to the range of dtype.

    NaN becomes 0, or the highest bit alone where one of the two types has 64 bits.
    Source: PTX ISA, "cvt", floating-point notes.
    """
    rounded = _TO_INTEGER[mode](value.astype(np.float64))
    limits = np.iinfo(dtype)
    low, high = float(limits.min), float(limits.max)
    inside = (rounded > low) & (rounded < high)
    converted = np.where(inside, rounded, 0).astype(dtype)
    result = np.where(rounded >= high, limits.max, np.where(rounded <= low, limits.min, converted))
    has_64_bits = value.dtype.itemsize == 8 or dtype.itemsize == 8
    nan = dtype.type(limits.max // 2 + 1 if dtype.kind == "u" else limits.min)
    return np.where(np.isnan(rounded), nan if has_64_bits else dtype.type(0), result).astype(dtype)


def integer_to_float(value: np.ndarray, dtype: np.dtype, mode: str) -> np.ndarray:
    """An integer as a float, rounded once."""
    high = (value >> value.dtype.type(8 * value.dtype.itemsize // 2)).astype(np.float64)
    scale = 2.0 ** (4 * value.dtype.itemsize)
    low_mask = value.dtype.type((1 << 4 * value.dtype.itemsize) - 1)
    total, error = two_sum(high * scale, (value & low_mask).astype(np.float64))
    if dtype == np.float64:
        return direct(total, error, mode)
    return narrow(to_odd(total, error), dtype, mode)


def _with_canonical_nan(half: np.ndarray) -> np.ndarray:
    bits = np.where(np.isnan(half), np.uint16(_NAN_HALF), half.view(np.uint16))
    return bits.view(half.dtype)


def to_tf32(value: np.ndarray, mode: str) -> np.ndarray:
    """f32 with a significand of 10 bits, as bits; rna rounds ties away from zero."""
    bits = value.view(np.uint32)
    half = np.uint32(0x1000)
    if mode == "rn":
        half = np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
    kept = np.where(mode == "rz", bits, bits + half) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(value), kept, bits)


def to_fp8(value: np.ndarray, kind: str) -> np.ndarray:
    """f32 in a byte, to nearest even, clamped to the largest finite value."""
    largest = np.float32(_LARGEST_FP8[kind])
    clamped = np.clip(value, -largest, largest).astype(_FP8[kind]).view(np.uint8)
    return np.where(np.isnan(value), np.uint8(_NAN_FP8), clamped)


def convert(site: Site) -> Step:
    """Any cvt: the last two modifiers are the types."""
    if site.has("pack"):
        return _convert_and_pack(site)
    to, source = site.opcode[-2], site.opcode[-1]
    if source in _FP8 or to in _FP8:
        return _convert_fp8(site, to, source)
    if to.endswith("x2"):
        return _convert_pair(site, to, source)
    if to == "tf32":
        mode = "rna" if site.has("rna") else rounding_mode(site.opcode)
        return site.compute(lambda value: to_tf32(_relu(site, value), mode), "b32", ["f32"])
    return site.compute(_scalar(site, to, source), to, [source])


def _scalar(site: Site, to: str, source: str) -> Function:
    dtype = dtype_of(to)
    if source not in FLOATS:
        return _from_integer(site, to, dtype)
    before = flush if source == "f32" and site.has("ftz") else None
    if to not in FLOATS:
        mode = next((modifier for modifier in site.opcode if modifier in _TO_INTEGER), "rzi")
        function: Function = lambda value: float_to_integer(value, dtype, mode)  # noqa: E731
    else:
        function = _between_floats(site, dtype)
    if before is None:
        return function
    after = flush if to == "f32" else (lambda value: value)
    return lambda value: after(function(before(value)))


def _from_integer(site: Site, to: str, dtype: np.dtype) -> Function:
    if to in FLOATS:
        mode = rounding_mode(site.opcode)
        convert_one = lambda value: integer_to_float(value, dtype, mode)  # noqa: E731
        return (lambda value: saturate(convert_one(value))) if site.has("sat") else convert_one
    if not site.has("sat"):
        return lambda value: value.astype(dtype)
    limits = np.iinfo(dtype)

    def clamp(value: np.ndarray) -> np.ndarray:
        own = np.iinfo(value.dtype)
        low, high = max(limits.min, own.min), min(limits.max, own.max)
        return np.clip(value, value.dtype.type(low), value.dtype.type(high)).astype(dtype)
    return clamp


def _between_floats(site: Site, dtype: np.dtype) -> Function:
    integral = next((modifier for modifier in site.opcode if modifier in _TO_INTEGER), None)
    mode = rounding_mode(site.opcode)
    from_single = site.opcode[-1] == "f32"
    if integral is not None:
        rounding = _TO_INTEGER[integral]
        function: Function = lambda value: rounding(value).astype(dtype)  # noqa: E731
    elif dtype.itemsize == 2 and from_single:
        function = lambda value: _with_canonical_nan(  # noqa: E731
            narrow(value.astype(np.float64), dtype, mode))
    else:
        function = lambda value: narrow(value.astype(np.float64), dtype, mode)  # noqa: E731
    if site.has("sat"):
        return lambda value: saturate(function(value))
    return lambda value: _relu(site, function(value))


def _relu(site: Site, value: np.ndarray) -> np.ndarray:
    if not site.has("relu"):
        return value
    return np.where(value > 0, value, np.where(np.isnan(value), value, value.dtype.type(0)))


def _convert_pair(site: Site, to: str, source: str) -> Step:
    """cvt.f16x2.f32 d, a, b: a in the upper half, b in the lower."""
    scalar = to.removesuffix("x2")
    function = _scalar(site, scalar, source)

    def apply(high: np.ndarray, low: np.ndarray) -> np.ndarray:
        upper = function(high).view(np.uint16).astype(np.uint32) << np.uint32(16)
        return upper | function(low).view(np.uint16)
    return site.compute(apply, "b32", [source] * 2)


def _convert_and_pack(site: Site) -> Step:
    """cvt.pack.sat.type.s32.b32 d, a, b, c: b in the low bits, a above it, then low bits of c."""
    to = site.opcode[3]
    limits, bits = np.iinfo(dtype_of(to)), 8 * dtype_of(to).itemsize

    def fields(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        high, low = (np.clip(x, limits.min, limits.max).view(np.uint32) & np.uint32(2**bits - 1)
                     for x in (a, b))
        return high << np.uint32(bits) | low

    if site.opcode[-1] != "b32":
        return site.compute(fields, "b32", ["s32"] * 2)
    return site.compute(lambda a, b, c: fields(a, b) | c << np.uint32(2 * bits), "b32",
                        ["s32", "s32", "b32"])


def _convert_fp8(site: Site, to: str, source: str) -> Step:
    if to in _FP8 and source == "f32":
        return site.compute(lambda high, low: _join(_narrow8(site, high, to),
                                                    _narrow8(site, low, to)),
                            "b16", ["f32"] * 2)
    if to in _FP8:
        half = dtype_of(source.removesuffix("x2"))

        def pack(word: np.ndarray) -> np.ndarray:
            pair = np.ascontiguousarray(word).view(half).astype(np.float32)
            return _join(_narrow8(site, pair[1::2], to), _narrow8(site, pair[0::2], to))
        return site.compute(pack, "b16", ["b32"])
    wide = dtype_of(to.removesuffix("x2"))

    def unpack(word: np.ndarray) -> np.ndarray:
        octets = np.ascontiguousarray(word).view(np.uint8).view(_FP8[source])
        halves = _with_canonical_nan(octets.astype(np.float32).astype(wide))
        return _relu(site, halves).view(np.uint32)
    return site.compute(unpack, "b32", ["b16"])


def _narrow8(site: Site, value: np.ndarray, kind: str) -> np.ndarray:
    return to_fp8(_relu(site, value), kind)


def _join(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    return (high.astype(np.uint16) << np.uint16(8)) | low


TABLE: dict[str, Decoder] = {"cvt": convert}

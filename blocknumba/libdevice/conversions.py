"""Conversions between integers and floats in every rounding mode, and of bits."""

from __future__ import annotations

from blocknumba.libdevice.parts import integers, named
from blocknumba.tile_ir.ir.types import (
    float16, float32, float64, int16, int32, int64, uint32, uint64,
)
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import FLOAT_FUNCTIONS, where

_rint, _trunc, _floor, _ceil, _nextafter = (
    FLOAT_FUNCTIONS[name] for name in ("rint", "trunc", "floor", "ceil", "nextafter"))
_INFINITY = float("inf")


def float_as_int(x):
    """The bits of a float32 as int32."""
    return cast(x, int32, bitcast=True)


def float_as_uint(x):
    """The bits of a float32 as uint32."""
    return cast(x, uint32, bitcast=True)


def int_as_float(x):
    """The float32 of the bits of an int32."""
    return cast(x, float32, bitcast=True)


def uint_as_float(x):
    """The float32 of the bits of a uint32."""
    return cast(x, float32, bitcast=True)


def double_as_longlong(x):
    """The bits of a float64 as int64."""
    return cast(x, int64, bitcast=True)


def longlong_as_double(x):
    """The float64 of the bits of an int64."""
    return cast(x, float64, bitcast=True)


def double2hiint(x):
    """The upper 32 bits of a float64, int32."""
    return cast(double_as_longlong(x) >> 32, int32)


def double2loint(x):
    """The lower 32 bits of a float64, int32."""
    return cast(double_as_longlong(x), int32)


def hiloint2double(hi, lo):
    """The float64 whose upper and lower 32 bits are hi and lo."""
    low = cast(integers(lo, uint32), uint64)
    return cast((cast(integers(hi, uint32), uint64) << 32) | low, float64, bitcast=True)


def float2half_rn(x):
    """The bits of x as float16, rounded to nearest, int16."""
    return cast(cast(x, float16), int16, bitcast=True)


def half2float(x):
    """The float32 of the bits of a float16, given as int16."""
    return cast(cast(integers(x, int16), float16, bitcast=True), float32)


def _to_integer(name, dtype, rounded):
    def convert(x):
        return cast(rounded(x), dtype)

    return named(convert, name, f"x as {dtype}, rounded as the last two letters say.")


def _directed(name, mode, given, to):
    """An integer as a float: the sign of x - r says where the neighbour of the nearest is."""
    def convert(x):
        whole = integers(x, given)
        nearest = cast(whole, to)
        # both parts, and what is left of the first, are exact in float64
        high, low = whole >> 32, cast(whole, uint32)
        rest = (cast(high, float64) * 2.0**32 - cast(nearest, float64)) + cast(low, float64)
        is_down = mode == "rd" or mode == "rz" and (whole > 0)
        if mode == "rd":
            return where(rest < 0, _nextafter(nearest, -_INFINITY), nearest)
        if mode == "ru":
            return where(rest > 0, _nextafter(nearest, _INFINITY), nearest)
        is_beyond = where(is_down, rest < 0, rest > 0)
        return where(is_beyond, _nextafter(nearest, 0), nearest)

    return named(convert, name, f"{given} as {to}, rounded as the last two letters say.")


def _nearest(name, given, to):
    def convert(x):
        return cast(integers(x, given), to)

    return named(convert, name, f"{given} as {to}, rounded to nearest.")


def double2float_rn(x):
    """A float64 as float32, rounded to nearest."""
    return cast(cast(x, float64), float32)


def double2float_rz(x):
    """A float64 as float32, rounded towards zero."""
    return cast(cast(x, float64), float32, fp_downcast_rounding="rtz")


def double2float_rd(x):
    """A float64 as float32, rounded down."""
    nearest = double2float_rn(x)
    return where(cast(nearest, float64) > x, _nextafter(nearest, -_INFINITY), nearest)


def double2float_ru(x):
    """A float64 as float32, rounded up."""
    nearest = double2float_rn(x)
    return where(cast(nearest, float64) < x, _nextafter(nearest, _INFINITY), nearest)


_INTEGERS = {"int": int32, "uint": uint32, "ll": int64, "ull": uint64}
_ROUNDINGS = {"rn": _rint, "rz": _trunc, "rd": _floor, "ru": _ceil}
_FLOATS = {"float": float32, "double": float64}
for _float, _to in _FLOATS.items():
    for _integer, _dtype in _INTEGERS.items():
        for _mode, _rounded in _ROUNDINGS.items():
            _name = f"{_float}2{_integer}_{_mode}"
            globals()[_name] = _to_integer(_name, _dtype, _rounded)
            _name = f"{_integer}2{_float}_{_mode}"
            if _mode == "rn":
                globals()[_name] = _nearest(_name, _dtype, _to)
            elif _float == "float" or _dtype.bits == 64:
                globals()[_name] = _directed(_name, _mode, _dtype, _to)

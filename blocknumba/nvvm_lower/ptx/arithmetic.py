"""Inline PTX that computes: conversions to 16-bit floats, packing, approximations."""

from __future__ import annotations

from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.target import Capability

_CVT = "cvt"
_MOV = "mov"

# conversions; a half is carried as the i16 of its bits ----------------------------------------
HALF_TOWARDS_ZERO = Assembly("cvt.rz.f16.f32", "cvt.rz.f16.f32 $0, $1;", ("i16",), ("float",), _CVT)
HALF_OF_DOUBLE_TOWARDS_ZERO = Assembly(
    "cvt.rz.f16.f64", "cvt.rz.f16.f64 $0, $1;", ("i16",), ("double",), _CVT)
BFLOAT = Assembly("cvt.rn.bf16.f32", "cvt.rn.bf16.f32 $0, $1;", ("i16",), ("float",), _CVT)
BFLOAT_TOWARDS_ZERO = Assembly(
    "cvt.rz.bf16.f32", "cvt.rz.bf16.f32 $0, $1;", ("i16",), ("float",), _CVT)
FLOAT_TOWARDS_ZERO = Assembly(
    "cvt.rz.f32.f64", "cvt.rz.f32.f64 $0, $1;", ("float",), ("double",), _CVT)
# the first operand goes to the high half
HALF_PAIR = Assembly("cvt.rn.f16x2.f32", "cvt.rn.f16x2.f32 $0, $1, $2;", ("i32",),
                     ("float", "float"), _CVT)
BFLOAT_PAIR = Assembly("cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 $0, $1, $2;", ("i32",),
                       ("float", "float"), _CVT)
E4M3_PAIR = Assembly("cvt.rn.e4m3x2.f32", "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", ("i16",),
                     ("float", "float"), _CVT, needs=Capability.FP8_CONVERT)
E5M2_PAIR = Assembly("cvt.rn.e5m2x2.f32", "cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2;", ("i16",),
                     ("float", "float"), _CVT, needs=Capability.FP8_CONVERT)
HALVES_OF_E4M3 = Assembly("cvt.rn.f16x2.e4m3x2", "cvt.rn.f16x2.e4m3x2 $0, $1;", ("i32",), ("i16",),
                          _CVT, needs=Capability.FP8_CONVERT)
HALVES_OF_E5M2 = Assembly("cvt.rn.f16x2.e5m2x2", "cvt.rn.f16x2.e5m2x2 $0, $1;", ("i32",), ("i16",),
                          _CVT, needs=Capability.FP8_CONVERT)

# packing; the low half first ------------------------------------------------------------------
PACK_16 = Assembly("pack.16", "mov.b32 $0, {$1, $2};", ("i32",), ("i16", "i16"), _MOV)
UNPACK_16 = Assembly("unpack.16", "mov.b32 {$0, $1}, $2;", ("i16", "i16"), ("i32",), _MOV)
PACK_32 = Assembly("pack.32", "mov.b64 $0, {$1, $2};", ("i64",), ("i32", "i32"), _MOV)
UNPACK_32 = Assembly("unpack.32", "mov.b64 {$0, $1}, $2;", ("i32", "i32"), ("i64",), _MOV)
PERMUTE = Assembly("permute", "prmt.b32 $0, $1, $2, $3;", ("i32",), ("i32", "i32", "i32"),
                   "prmt")  # four bytes of the eight of two words

# arithmetic with the rounding spelled out, so that nothing is contracted ------------------------
DIVIDE = {
    "float": Assembly("div.rn.f32", "div.rn.f32 $0, $1, $2;", ("float",), ("float", "float"),
                      "div"),
    "double": Assembly("div.rn.f64", "div.rn.f64 $0, $1, $2;", ("double",), ("double", "double"),
                       "div"),
}
SQUARE_ROOT = {
    "float": Assembly("sqrt.rn.f32", "sqrt.rn.f32 $0, $1;", ("float",), ("float",), "sqrt"),
    "double": Assembly("sqrt.rn.f64", "sqrt.rn.f64 $0, $1;", ("double",), ("double",),
                       "sqrt"),
}
# NaN if either operand is NaN, and -0 is less than +0
MINIMUM = Assembly("min.NaN.f32", "min.NaN.f32 $0, $1, $2;", ("float",), ("float", "float"),
                   "min")
MAXIMUM = Assembly("max.NaN.f32", "max.NaN.f32 $0, $1, $2;", ("float",), ("float", "float"),
                   "max")

# approximations, for fastmath -----------------------------------------------------------------
EXP2_APPROXIMATE = Assembly("ex2.approx.ftz.f32", "ex2.approx.ftz.f32 $0, $1;", ("float",),
                            ("float",), "ex2")
LOG2_APPROXIMATE = Assembly("lg2.approx.ftz.f32", "lg2.approx.ftz.f32 $0, $1;", ("float",),
                            ("float",), "lg2")
TANH_APPROXIMATE = Assembly("tanh.approx.f32", "tanh.approx.f32 $0, $1;", ("float",), ("float",),
                            "tanh")


def rows() -> list[Assembly]:
    """Every row of this module, for tests."""
    found = [value for value in globals().values() if isinstance(value, Assembly)]
    return [*found, *DIVIDE.values(), *SQUARE_ROOT.values()]

"""Inline PTX that computes: conversions, packing, minima and maxima."""

from __future__ import annotations

from functools import cache

from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.target import Capability

_CVT = "cvt"
_MOV = "mov"

DIVIDE_FULL = Assembly("div.full.f32", "div.full.f32 $0, $1, $2;", ("float",), ("float", "float"),
                       "div")

# to one unit in the last place; subnormal operands and results are zeros
RECIPROCAL = Assembly("rcp.approx.ftz.f32", "rcp.approx.ftz.f32 $0, $1;", ("float",), ("float",),
                      "rcp")
RECIPROCAL_ROOT = Assembly("rsqrt.approx.ftz.f32", "rsqrt.approx.ftz.f32 $0, $1;", ("float",),
                           ("float",), "rsqrt")
# all bits of the first but the sign, and the second's sign
SIZE_AND_SIGN = Assembly("lop3.size_and_sign", "lop3.b32 $0, $1, 0x7fffffff, $2, 0xe2;", ("i32",),
                         ("i32", "i32"), "lop3")
LESSER_UNSIGNED = Assembly("min.u32", "min.u32 $0, $1, $2;", ("i32",), ("i32", "i32"), "min")
WIDE_PRODUCT = Assembly("mul.wide.u32", "mul.wide.u32 $0, $1, $2;", ("i64",), ("i32", "i32"), "mul")
GREATER_UNSIGNED = Assembly("max.u32", "max.u32 $0, $1, $2;", ("i32",), ("i32", "i32"), "max")

# conversions; a half is carried as the i16 of its bits ----------------------------------------
HALF_TOWARDS_ZERO = Assembly("cvt.rz.f16.f32", "cvt.rz.f16.f32 $0, $1;", ("i16",), ("float",), _CVT)
HALF_OF_DOUBLE_TOWARDS_ZERO = Assembly(
    "cvt.rz.f16.f64", "cvt.rz.f16.f64 $0, $1;", ("i16",), ("double",), _CVT)
# of two with a zero: the instruction for one has a fraction of the throughput
BFLOAT = Assembly(
    "cvt.rn.bf16.f32",
    "{ .reg .b32 t; .reg .b16 h; cvt.rn.bf16x2.f32 t, 0f00000000, $1; mov.b32 {$0, h}, t; }",
    ("i16",), ("float",), _CVT)
BFLOAT_TOWARDS_ZERO = Assembly(
    "cvt.rz.bf16.f32", "cvt.rz.bf16.f32 $0, $1;", ("i16",), ("float",), _CVT)
FLOAT_TOWARDS_ZERO = Assembly(
    "cvt.rz.f32.f64", "cvt.rz.f32.f64 $0, $1;", ("float",), ("double",), _CVT)
FLOAT_OF_INTEGER_TOWARDS_ZERO = {
    of: Assembly(f"cvt.rz.f32.{of}", f"cvt.rz.f32.{of} $0, $1;", ("float",), (f"i{of[1:]}",), _CVT)
    for of in ("s32", "u32", "s64", "u64")}
# the first operand goes to the high half
HALF_PAIR = Assembly("cvt.rn.f16x2.f32", "cvt.rn.f16x2.f32 $0, $1, $2;", ("i32",),
                     ("float", "float"), _CVT)
BFLOAT_PAIR = Assembly("cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 $0, $1, $2;", ("i32",),
                       ("float", "float"), _CVT)

# dtype -> two of them and the floats or halves of the same values
FLOAT8_PAIR = {
    name: Assembly(f"cvt.rn.satfinite.{kind}x2.f32", f"cvt.rn.satfinite.{kind}x2.f32 $0, $1, $2;",
                   ("i16",), ("float", "float"), _CVT, needs=Capability.FP8_CONVERT)
    for name, kind in (("float8_e4m3fn", "e4m3"), ("float8_e5m2", "e5m2"))}
HALVES_OF_FLOAT8 = {
    name: Assembly(f"cvt.rn.f16x2.{kind}x2", f"cvt.rn.f16x2.{kind}x2 $0, $1;", ("i32",), ("i16",),
                   _CVT, needs=Capability.FP8_CONVERT)
    for name, kind in (("float8_e4m3fn", "e4m3"), ("float8_e5m2", "e5m2"))}

# to integers, towards zero, saturating; NaN becomes 0 in the 32-bit ones of floats only
TRUNCATE = {
    (to, source): Assembly(f"cvt.rzi.{to}.{of}", f"cvt.rzi.{to}.{of} $0, $1;", (f"i{to[1:]}",),
                           (source,), _CVT)
    for to in ("s32", "u32", "s64", "u64") for of, source in (("f32", "float"), ("f64", "double"))}

# packing; the low half first ------------------------------------------------------------------
# what libNVVM does not look into, so that it adds nothing else to it
APART = Assembly("mov.b64", "mov.b64 $0, $1;", ("i64",), ("i64",), _MOV)
PACK_16 = Assembly("pack.16", "mov.b32 $0, {$1, $2};", ("i32",), ("i16", "i16"), _MOV)
UNPACK_16 = Assembly("unpack.16", "mov.b32 {$0, $1}, $2;", ("i16", "i16"), ("i32",), _MOV)
PACK_32 = Assembly("pack.32", "mov.b64 $0, {$1, $2};", ("i64",), ("i32", "i32"), _MOV)
UNPACK_32 = Assembly("unpack.32", "mov.b64 {$0, $1}, $2;", ("i32", "i32"), ("i64",), _MOV)

# Two i32, each limited to what fits, above the low bytes of a third: the first operand above the
# second, both below the third.
LIMITED_BYTES = {
    name: Assembly(f"cvt.pack.sat.{kind}.s32", f"cvt.pack.sat.{kind}.s32.b32 $0, $1, $2, $3;",
                   ("i32",), ("i32",) * 3, "cvt.pack")
    for name, kind in (("int8", "s8"), ("uint8", "u8"))}
# the same with 16 bits of each, which fill the word
LIMITED_PAIR = {
    name: Assembly(f"cvt.pack.sat.{kind}.s32", f"cvt.pack.sat.{kind}.s32 $0, $1, $2;", ("i32",),
                   ("i32", "i32"), "cvt.pack")
    for name, kind in (("int16", "s16"), ("uint16", "u16"))}

# in 32 bits: see corrections.py
NEGATE_16 = Assembly(
    "neg.s16", "{ .reg .b32 t; cvt.s32.s16 t, $1; neg.s32 t, t; cvt.u16.u32 $0, t; }", ("i16",),
    ("i16",), "neg")


@cache
def permute(first: int, second: int, third: int, fourth: int) -> Assembly:
    """Four of the eight bytes of two words, from the low byte of the result on.

    Bytes 0 to 3 are those of the first operand, from its low one on, 4 to 7 those of the second.
    """
    selector = first | second << 4 | third << 8 | fourth << 12
    return Assembly(f"prmt.{selector:04x}", f"prmt.b32 $0, $1, $2, {selector:#06x};", ("i32",),
                    ("i32", "i32"), "prmt")


# instructions that NVVM IR lacks ----------------------------------------------------------------
FMA_NARROW = {
    "float16": Assembly("fma.rn.f16", "fma.rn.f16 $0, $1, $2, $3;", ("i16",), ("i16",) * 3,
                        "fma, half precision"),
    "bfloat16": Assembly("fma.rn.bf16", "fma.rn.bf16 $0, $1, $2, $3;", ("i16",), ("i16",) * 3,
                         "fma, half precision"),
}
# Two at once in a word, rounded as float32 arithmetic is that is rounded again: float32 has more
# than twice the digits.  A bfloat16 sum or product is a fused one, with 1 or -0.
_PAIRS = (("float16", "f16x2"), ("bfloat16", "bf16x2"))
PAIRED = {
    (name, op): Assembly(f"{op}.{type_}", f"{op}.{type_} $0, $1, $2;", ("i32",), ("i32", "i32"),
                         section)
    for name, type_ in _PAIRS
    for op, section in (("min.NaN", "min"), ("max.NaN", "max"))
} | {
    ("float16", op): Assembly(f"{op}.rn.f16x2", f"{op}.rn.f16x2 $0, $1, $2;", ("i32",),
                              ("i32", "i32"), f"{op}, half precision")
    for op in ("add", "sub", "mul")}
FMA_PAIR = {
    name: Assembly(f"fma.rn.{type_}", f"fma.rn.{type_} $0, $1, $2, $3;", ("i32",), ("i32",) * 3,
                   "fma, half precision")
    for name, type_ in _PAIRS}
# NaN if either operand is NaN, and -0 is less than +0
MINIMUM = Assembly("min.NaN.f32", "min.NaN.f32 $0, $1, $2;", ("float",), ("float", "float"),
                   "min")
MAXIMUM = Assembly("max.NaN.f32", "max.NaN.f32 $0, $1, $2;", ("float",), ("float", "float"),
                   "max")


def rows() -> list[Assembly]:
    """Every row of this module, for tests."""
    found = [value for value in globals().values() if isinstance(value, Assembly)]
    tables = (TRUNCATE, LIMITED_BYTES, LIMITED_PAIR, FMA_NARROW, PAIRED, FMA_PAIR, FLOAT8_PAIR,
              HALVES_OF_FLOAT8)
    return [*found, permute(0, 4, 1, 5), *(row for table in tables for row in table.values())]

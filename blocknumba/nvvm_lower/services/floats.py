"""Arithmetic of floats with NumPy's results: NaN, infinities and both zeros included."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from blocknumba.nvvm_lower.elements import is_narrow, memory_type, register_type, zero
from blocknumba.nvvm_lower.emitter import Emitter
from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, I1, floating, integer
from blocknumba.nvvm_lower.ptx import arithmetic as ptx
from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.ptx.matrix import round_to_tf32
from blocknumba.nvvm_lower.services.narrow_floats import narrow, widen
from blocknumba.nvvm_lower.target import Capability
from blocknumba.tile_ir.ir.types import DType, float64

Element = Callable[..., str]  # (emitter, dtype, *values) -> value

# op -> libdevice function, without "__nv_" and the "f" of single precision
LIBRARY = {
    **{name: name for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "cbrt", "sin", "cos",
        "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
        "erfc", "lgamma", "atan2", "hypot")},
    "gamma": "tgamma", "power": "pow"}
# of single precision only, with fastmath: a few instructions and a larger error
FAST = frozenset(("exp", "log", "log2", "log10", "sin", "cos", "tan", "power"))
LOG2_E = float(np.float32(np.log2(np.e)))  # a float32
_PURE = "nounwind readnone"


def arithmetic(opcode: str) -> Element:
    """fadd, fsub, fmul or fdiv: one rounding each, unless fastmath lets them be contracted.

    A callee is compiled with its caller's flags, which contract plain fmul and fadd.
    """
    rounded = intrinsic("llvm.nvvm.mul.rn")

    def emit(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
        if opcode == "fmul" and emitter.callee is not None and not emitter.options.fastmath:
            return rounded(emitter, dtype, x, y)
        flags = " contract" if emitter.options.fastmath else ""
        return emitter.body.binary(opcode + flags, register_type(dtype), x, y)
    return emit


def contracted(opcode: str) -> Element:
    """fadd, fsub or fmul, which may be one instruction with what its result goes into."""
    def emit(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
        return emitter.body.binary(opcode + " contract", register_type(dtype), x, y)
    return emit


def approximate_quotient(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x / y of float32 to 2 ulps in the full range.   Source: PTX ISA, div."""
    return emitter.assembly(ptx.DIVIDE_FULL, x, y)[0]


def approximate_exponential(emitter: Emitter, dtype: DType, x: str) -> str:
    """e ** x of float32: 2 ** (x * log2(e)), whose error grows with x."""
    power = emitter.body.binary("fmul", FLOAT, x, floating(LOG2_E))
    return intrinsic("llvm.nvvm.ex2.approx")(emitter, dtype, power)


def intrinsic(name: str) -> Element:
    """An intrinsic on float or double: LLVM's, or NVVM's where NVVM IR has not LLVM's."""
    def emit(emitter: Emitter, dtype: DType, *values: str) -> str:
        type_ = register_type(dtype)
        suffix = type_[0] if name.startswith("llvm.nvvm.") else f"f{dtype.bits}"
        return emitter.body.call(type_, f"{name}.{suffix}",
                                 *[f"{type_} {value}" for value in values], attributes=_PURE)
    return emit


@cache
def library(name: str) -> Element:
    """A function of libdevice; LIBRARY says which.

    Source: CUDA Math API, "Mathematical Functions Appendix", for the error bounds.
    """
    def emit(emitter: Emitter, dtype: DType, *values: str) -> str:
        type_ = register_type(dtype)
        fast = "fast_" if emitter.options.fastmath and type_ == FLOAT and name in FAST else ""
        function = f"__nv_{fast}{LIBRARY[name]}{'' if type_ == DOUBLE else 'f'}"
        return emitter.body.call(type_, function, *[f"{type_} {value}" for value in values],
                                 attributes=_PURE)
    return emit


_fabs, _floor = intrinsic("llvm.nvvm.fabs"), intrinsic("llvm.floor")


def is_nan(emitter: Emitter, dtype: DType, x: str) -> str:
    return emitter.body.compare("fcmp uno", register_type(dtype), x, x)


def is_infinite(emitter: Emitter, dtype: DType, x: str) -> str:
    return _magnitude_is("fcmp oeq", emitter, dtype, x)


def is_finite(emitter: Emitter, dtype: DType, x: str) -> str:
    return _magnitude_is("fcmp olt", emitter, dtype, x)


def _magnitude_is(opcode: str, emitter: Emitter, dtype: DType, x: str) -> str:
    magnitude = _fabs(emitter, dtype, x)
    return emitter.body.compare(opcode, register_type(dtype), magnitude, floating(float("inf")))


def minimum(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """The lesser; NaN if either is NaN."""
    return _extremum(emitter, dtype, ptx.MINIMUM, "fcmp olt", x, y)


def maximum(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """The greater; NaN if either is NaN."""
    return _extremum(emitter, dtype, ptx.MAXIMUM, "fcmp ogt", x, y)


def _extremum(emitter: Emitter, dtype: DType, row: Assembly, better: str, x: str,
              y: str) -> str:
    if dtype != float64:
        return emitter.assembly(row, x, y)[0]
    body = emitter.body
    chosen = body.select(body.compare(better, DOUBLE, x, y), DOUBLE, x, y)  # y where y is NaN
    return body.select(body.compare("fcmp uno", DOUBLE, x, x), DOUBLE, x, chosen)


def floor_divide(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """floor(x / y).  Source: NumPy, npy_floor_divide in npy_math_internal.h.src."""
    body, type_ = emitter.body, register_type(dtype)
    rest, must_adjust, is_exact = _floor_parts(emitter, dtype, x, y)
    quotient = body.binary("fdiv", type_, body.binary("fsub", type_, x, rest), y)
    less = body.binary("fsub", type_, quotient, floating(1.0))
    quotient = body.select(must_adjust, type_, less, quotient)
    low = _floor(emitter, dtype, quotient)
    distance = body.binary("fsub", type_, quotient, low)
    is_off = body.compare("fcmp ogt", type_, distance, floating(0.5))
    rounded = body.select(is_off, type_, body.binary("fadd", type_, low, floating(1.0)), low)
    plain = body.binary("fdiv", type_, x, y)
    nothing = copy_sign(emitter, dtype, zero(dtype), plain)
    is_zero = body.compare("fcmp oeq", type_, quotient, zero(dtype))
    result = body.select(is_zero, type_, nothing, rounded)
    return body.select(body.compare("fcmp oeq", type_, y, zero(dtype)), type_, plain, result)


def remainder(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """x - floor(x / y) * y, of y's sign.  Source: NumPy, npy_remainder."""
    body, type_ = emitter.body, register_type(dtype)
    rest, must_adjust, is_exact = _floor_parts(emitter, dtype, x, y)
    result = body.select(must_adjust, type_, body.binary("fadd", type_, rest, y), rest)
    result = body.select(is_exact, type_, copy_sign(emitter, dtype, zero(dtype), y), result)
    return body.select(body.compare("fcmp oeq", type_, y, zero(dtype)), type_, rest, result)


def _floor_parts(emitter: Emitter, dtype: DType, x: str, y: str) -> tuple[str, str, str]:
    """fmod(x, y); whether its sign is not y's (the quotient is one too large); whether it is 0.
    """
    body, type_, nothing = emitter.body, register_type(dtype), zero(dtype)
    name = "__nv_fmod" if type_ == DOUBLE else "__nv_fmodf"
    rest = body.call(type_, name, f"{type_} {x}", f"{type_} {y}", attributes=_PURE)
    is_exact = body.compare("fcmp oeq", type_, rest, nothing)
    signs_differ = body.binary("xor", I1, body.compare("fcmp olt", type_, y, nothing),
                               body.compare("fcmp olt", type_, rest, nothing))
    return rest, body.select(is_exact, I1, "false", signs_differ), is_exact


# on the bits of a float of any width -------------------------------------------------------------
def to_bits(emitter: Emitter, dtype: DType, x: str) -> str:
    """The integer of a float's bits."""
    return emitter.body.convert("bitcast", register_type(dtype), x, memory_type(dtype))


def of_bits(emitter: Emitter, dtype: DType, x: str) -> str:
    """The float that has these bits."""
    return emitter.body.convert("bitcast", memory_type(dtype), x, register_type(dtype))


def _sign(dtype: DType) -> str:
    return integer(1 << dtype.bits - 1, dtype.bits)


def _all_but_sign(dtype: DType) -> str:
    return str((1 << dtype.bits - 1) - 1)


def negate(emitter: Emitter, dtype: DType, x: str) -> str:
    """-x, by its sign bit where there is no instruction."""
    if is_narrow(dtype):
        return emitter.body.binary("xor", memory_type(dtype), x, _sign(dtype))
    return emitter.body.binary("fsub", register_type(dtype), floating(-0.0), x)


def absolute(emitter: Emitter, dtype: DType, x: str) -> str:
    """|x|, by its sign bit where there is no instruction."""
    if is_narrow(dtype):
        return emitter.body.binary("and", memory_type(dtype), x, _all_but_sign(dtype))
    return _fabs(emitter, dtype, x)


def copy_sign(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """|x| with the sign of y."""
    body, type_ = emitter.body, memory_type(dtype)
    magnitude = body.binary("and", type_, to_bits(emitter, dtype, x), _all_but_sign(dtype))
    sign = body.binary("and", type_, to_bits(emitter, dtype, y), _sign(dtype))
    return of_bits(emitter, dtype, body.binary("or", type_, magnitude, sign))


def next_after(emitter: Emitter, dtype: DType, x: str, y: str) -> str:
    """The next value of this very dtype after x towards y; y if equal, NaN if either is NaN."""
    body, type_ = emitter.body, memory_type(dtype)
    wide = FLOAT if is_narrow(dtype) else register_type(dtype)
    a, b = ((widen(emitter, dtype, v) for v in (x, y)) if is_narrow(dtype) else (x, y))
    bits, bits_y = to_bits(emitter, dtype, x), to_bits(emitter, dtype, y)
    nothing = floating(0.0)
    grows = body.binary("xor", I1, body.compare("fcmp olt", wide, a, b),
                        body.compare("fcmp olt", wide, a, nothing))
    step = body.select(grows, type_, "1", "-1")
    moved = body.binary("add", type_, bits, step)
    least = body.binary("or", type_, body.binary("and", type_, bits_y, _sign(dtype)), "1")
    moved = body.select(body.compare("fcmp oeq", wide, a, nothing), type_, least, moved)
    moved = body.select(body.compare("fcmp oeq", wide, a, b), type_, bits_y, moved)
    result = of_bits(emitter, dtype, moved)
    not_a_number = body.binary("fadd", wide, a, b)
    if is_narrow(dtype):
        not_a_number = narrow(emitter, dtype, not_a_number)
    is_unordered = body.compare("fcmp uno", wide, a, b)
    return body.select(is_unordered, register_type(dtype), not_a_number, result)


def fused_multiply_add(emitter: Emitter, dtype: DType, x: str, y: str, z: str) -> str:
    """x * y + z, rounded once."""
    if is_narrow(dtype):
        return emitter.assembly(ptx.FMA_NARROW[dtype.name], x, y, z)[0]
    return intrinsic("llvm.fma")(emitter, dtype, x, y, z)


def rounded_to_tf32(emitter: Emitter, x: str) -> str:
    """The bits of a float32 with 11 significant bits: `dot` says where ties go."""
    ties = "rn" if emitter.target.has(Capability.TF32_CONVERT) else "rna"
    (rounded,) = emitter.assembly(round_to_tf32(ties), x)
    return rounded

"""Ops of floats on vectors of lanes: arithmetic, comparisons, and what works on their bits.

Arithmetic that is rounded in a mode of its own sets the processor's for it.
"""

from __future__ import annotations

from blocknumba.cpu_lower.casts import magnitude, narrow, narrow_rounded_to_odd, widen
from blocknumba.cpu_lower.elements import is_narrow, register_type
from blocknumba.cpu_lower.integers import Code
from blocknumba.cpu_lower.math import FUNCTIONS
from blocknumba.cpu_lower.vectors import FORMATS, Body, Format, Vector, fma, where
from blocknumba.tile_ir.ir.types import DType, bfloat16, float16, float32

PREDICATES = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite"))
# of llvm.set.rounding
_TO_NEAREST, _MODES = 1, {"rz": 0, "ru": 2, "rd": 3}
_DIRECTED = {"add": "fadd", "mul": "fmul", "div": "fdiv", "sqrt": "sqrt", "fma": "fma"}
# functions of their own: nothing that is rounded to nearest may be moved between the two modes
_ONE_MODE = "noinline nounwind strictfp"


def bit_format(dtype: DType) -> Format:
    """The format of a dtype's bits; its scalar type is that of the registers."""
    if dtype == float16:
        return Format("half", "i16", 10, 15)
    if dtype == bfloat16:
        return Format("bfloat", "i16", 7, 127)
    return FORMATS[register_type(dtype)]


def _instruction(opcode: str) -> Code:
    def emit(dtype: DType, x: Vector, y: Vector) -> Vector:
        return x.body.emit(f"{opcode} {x.typed}, {y.name}", x.scalar)
    return emit


def _predicate(word: str) -> Code:
    def emit(dtype: DType, x: Vector, y: Vector) -> Vector:
        return x.body.emit(f"fcmp {word} {x.typed}, {y.name}", "i1")
    return emit


_UNORDERED = _predicate("uno")


def maximum(dtype: DType, x: Vector, y: Vector) -> Vector:
    """The greater; NaN if either is NaN."""
    return where(_UNORDERED(dtype, x, y), x + y, where(x > y, x, y))


def minimum(dtype: DType, x: Vector, y: Vector) -> Vector:
    """The lesser; NaN if either is NaN."""
    return where(_UNORDERED(dtype, x, y), x + y, where(x < y, x, y))


def greater_number(dtype: DType, x: Vector, y: Vector) -> Vector:
    """The greater; the other one if one is NaN."""
    return where(_UNORDERED(dtype, y, y), x, where(x > y, x, y))


def lesser_number(dtype: DType, x: Vector, y: Vector) -> Vector:
    """The lesser; the other one if one is NaN."""
    return where(_UNORDERED(dtype, y, y), x, where(x < y, x, y))


def is_nan(dtype: DType, x: Vector) -> Vector:
    """Whether x is NaN."""
    return _UNORDERED(dtype, x, x)


def is_infinite(dtype: DType, x: Vector) -> Vector:
    """Whether x is infinite."""
    return magnitude(x) == float("inf")


def is_finite(dtype: DType, x: Vector) -> Vector:
    """Whether x is neither NaN nor infinite."""
    return magnitude(x) < float("inf")


def _rounding(word: str) -> Code:
    def emit(dtype: DType, x: Vector) -> Vector:
        return x.body.emit(f"call {x.type} @llvm.{word}.{x.body.suffix(x.scalar)}({x.typed})",
                           x.scalar)
    return emit


def _mathematical(name: str) -> Code:
    def emit(dtype: DType, *operands: Vector) -> Vector:
        return FUNCTIONS[name].code(*operands)
    return emit


def through_float32(function: Code, is_predicate: bool) -> Code:
    """The code of an op of narrow floats: in float32, and rounded."""
    def emit(dtype: DType, *operands: Vector) -> Vector:
        result = function(float32, *[widen(dtype, x) for x in operands])
        return result if is_predicate else narrow(dtype, result)
    return emit


# exact on the bits of a float of any width ----------------------------------------------------

def _bits(dtype: DType, x: Vector) -> Vector:
    return x if is_narrow(dtype) else x.as_bits


def _from_bits(dtype: DType, x: Vector) -> Vector:
    return x if is_narrow(dtype) else x.as_float(bit_format(dtype))


def negate(dtype: DType, x: Vector) -> Vector:
    """-x, of NaN too."""
    return _from_bits(dtype, _bits(dtype, x) ^ bit_format(dtype).sign)


def absolute(dtype: DType, x: Vector) -> Vector:
    """|x|."""
    return _from_bits(dtype, _bits(dtype, x) & (bit_format(dtype).sign - 1))


def copy_sign(dtype: DType, x: Vector, y: Vector) -> Vector:
    """|x| with the sign of y."""
    sign = bit_format(dtype).sign
    return _from_bits(dtype, _bits(dtype, x) & (sign - 1) | _bits(dtype, y) & sign)


def next_after(dtype: DType, x: Vector, y: Vector) -> Vector:
    """The next float after x towards y; y if they are equal; NaN if either is."""
    bits, sign = _bits(dtype, x), bit_format(dtype).sign
    start, goal = (widen(dtype, v) if is_narrow(dtype) else v for v in (x, y))
    is_outward = (start < goal) ^ ((bits & sign) != 0)
    moved = where(is_outward, bits + 1, bits - 1)
    least = where(goal > 0.0, bits.like(1), sign + 1)  # the numbers next to 0
    moved = where(start == 0.0, least, moved)
    moved = where(start == goal, _bits(dtype, y), moved)
    total = start + goal
    nan = narrow(dtype, total) if is_narrow(dtype) else total.as_bits
    return _from_bits(dtype, where(_UNORDERED(dtype, start, goal), nan, moved))


def fused_multiply_add(dtype: DType, x: Vector, y: Vector, z: Vector) -> Vector:
    """x * y + z, rounded once."""
    if not is_narrow(dtype):
        return fma(x, y, z)
    # the product is exact in float64; the error of the sum decides how its last bit is rounded
    a, b, addend = (widen(dtype, v).to("double") for v in (x, y, z))
    product = a * b
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    return narrow_rounded_to_odd(dtype, total, error)


def rounded_function(name: str, dtype: DType, symbol: str, operands: list[Vector],
                     lanes: int) -> str:
    """The text of the function that is one op of tile_ir/ops/directed.py on vectors.

    Source: LLVM Language Reference, "Constrained Floating-Point Intrinsics".
    """
    kind, mode = name.split("_")
    body = Body(lanes, symbol)
    arguments = [body.argument(register_type(dtype)) for _ in operands]
    suffix = body.suffix(register_type(dtype))
    typed = ", ".join(argument.typed for argument in arguments)
    body.perform(f"call void @llvm.set.rounding(i32 {_MODES[mode]}) strictfp")
    result = body.emit(
        f"call {arguments[0].type} @llvm.experimental.constrained.{_DIRECTED[kind]}.{suffix}"
        f"({typed}, metadata !\"round.dynamic\", metadata !\"fpexcept.strict\") strictfp",
        arguments[0].scalar)
    body.perform(f"call void @llvm.set.rounding(i32 {_TO_NEAREST}) strictfp")
    return body.function(arguments, result, _ONE_MODE)


EXACT: dict[str, Code] = {
    "neg": negate, "absolute": absolute, "copysign": copy_sign, "nextafter": next_after,
    "fma": fused_multiply_add}
_INSTRUCTIONS: dict[str, Code] = {
    "add": _instruction("fadd"), "sub": _instruction("fsub"), "mul": _instruction("fmul"),
    "div": _instruction("fdiv"),
    "minimum": minimum, "maximum": maximum, "fmin": lesser_number, "fmax": greater_number,
    "eq": _predicate("oeq"), "ne": _predicate("une"), "lt": _predicate("olt"),
    "le": _predicate("ole"), "gt": _predicate("ogt"), "ge": _predicate("oge"),
    "isnan": is_nan, "isinf": is_infinite, "isfinite": is_finite,
    **{name: _rounding(name) for name in ("sqrt", "floor", "ceil", "trunc", "rint")}}
# of kernels with fastmath=True: LLVM fuses products and sums, and multiplies by a reciprocal
FAST_INSTRUCTIONS = {"add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract",
                     "div": "fdiv arcp"}
# functions of their own in the module
CALLED = frozenset(FUNCTIONS) - {*EXACT, *_INSTRUCTIONS}
FLOATING: dict[str, Code] = {
    **_INSTRUCTIONS, **{name: _mathematical(name) for name in CALLED}}

"""Arithmetic of floats that is rounded in a mode of its own: the processor's mode is set for it."""

from __future__ import annotations

from blocknumba.cpu_lower.elements import register_type
from blocknumba.cpu_lower.vectors import Body, Vector
from blocknumba.tile_ir.ir.types import DType

_TO_NEAREST = 1
MODES = {"rz": 0, "ru": 2, "rd": 3}  # of llvm.set.rounding
INSTRUCTIONS = {"add": "fadd", "mul": "fmul", "div": "fdiv", "sqrt": "sqrt", "fma": "fma"}
# functions of their own: nothing that is rounded to nearest may be moved between the two modes
ATTRIBUTES = "noinline nounwind strictfp"


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
    body.perform(f"call void @llvm.set.rounding(i32 {MODES[mode]}) strictfp")
    result = body.emit(
        f"call {arguments[0].type} @llvm.experimental.constrained.{INSTRUCTIONS[kind]}.{suffix}"
        f"({typed}, metadata !\"round.dynamic\", metadata !\"fpexcept.strict\") strictfp",
        arguments[0].scalar)
    body.perform(f"call void @llvm.set.rounding(i32 {_TO_NEAREST}) strictfp")
    return body.function(arguments, result, ATTRIBUTES)

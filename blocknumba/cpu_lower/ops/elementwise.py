"""Code of elementwise ops and casts: one element in each lane."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from blocknumba.cpu_lower import casts
from blocknumba.cpu_lower.elements import Lanes, is_narrow, register_type
from blocknumba.cpu_lower.emitter import Access, Emitter, element
from blocknumba.cpu_lower.floats import (
    CALLED, EXACT, FAST_INSTRUCTIONS, FLOATING, PREDICATES, rounded_function, through_float32,
)
from blocknumba.cpu_lower.integers import INTEGRAL, LOGICAL, Code
from blocknumba.cpu_lower.math import vector_function
from blocknumba.cpu_lower.vectors import Body, Inline, Vector
from blocknumba.cpu_lower.writer import is_number
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import OPS, attribute
from blocknumba.tile_ir.ir.types import DType, bool_, float32
from blocknumba.tile_ir.ops import cast as casting
from blocknumba.tile_ir.ops import debug, directed, elementwise


def vectors(emitter: Emitter, dtype: DType, names: Sequence[str], lanes: int) -> list[Vector]:
    """Names as vectors whose arithmetic is written where the emitter is."""
    body = Inline(emitter.writer, lanes)
    return [Vector(body, register_type(dtype), name) for name in names]


@cache
def element_code(name: str, dtype: DType) -> Code:
    """The code of an elementwise op on operands of a dtype.

    float16 and bfloat16 are computed in float32 and rounded, unless the op is in EXACT.
    """
    if not dtype.is_float:
        return (LOGICAL if dtype == bool_ else INTEGRAL)[name]
    if name in EXACT:
        return EXACT[name]
    function = FLOATING[name]
    return through_float32(function, name in PREDICATES) if is_narrow(dtype) else function


def combine(emitter: Emitter, name: str, dtype: DType, names: Sequence[str], lanes: int,
            is_count: bool = False) -> str:
    """The name of the result of an elementwise op on operands of one dtype.

    is_count: whether it counts elements (see Plan.is_count); then LLVM may extend the operands
        instead, and sees constant distances between addresses.
    """
    operands = vectors(emitter, dtype, names, lanes)
    if is_count and name in RAMPS:
        x, y = operands
        return x.body.emit(f"{name} nsw {x.typed}, {y.name}", x.scalar).name
    if dtype.is_float and name in CALLED:
        return _called(emitter, name, dtype, operands, lanes).name
    if name in directed.NAMES:
        symbol = f"bn.{name}.{dtype}.{lanes}"
        text = rounded_function(name, dtype, symbol, operands, lanes)
        return emitter.function_call(dtype, symbol, text, [(x.type, x.name) for x in operands],
                                     lanes)
    if name == "power":
        return _own_function(emitter, name, dtype, operands, lanes)
    if emitter.fastmath and name in FAST_INSTRUCTIONS and dtype.is_float and not is_narrow(dtype):
        x, y = operands
        return x.body.emit(f"{FAST_INSTRUCTIONS[name]} {x.typed}, {y.name}", x.scalar).name
    return element_code(name, dtype)(dtype, *operands).name


def _called(emitter: Emitter, name: str, dtype: DType, operands: list[Vector],
            lanes: int) -> Vector:
    """The call of a mathematical function; of narrow floats, in float32."""
    wide = [casts.widen(dtype, x) for x in operands] if is_narrow(dtype) else operands
    computed = float32 if is_narrow(dtype) else dtype
    function = vector_function(name, str(computed), lanes)
    result = emitter.function_call(computed, function.symbol, function.definition,
                                   [(x.type, x.name) for x in wide], lanes)
    value = Vector(wide[0].body, register_type(computed), result)
    return casts.narrow(dtype, value) if is_narrow(dtype) else value


def _own_function(emitter: Emitter, name: str, dtype: DType, operands: list[Vector],
                  lanes: int) -> str:
    """The call of a function with loops or branches of its own."""
    symbol = f"bn.{name}.{dtype}.{lanes}"
    body = Body(lanes, symbol)
    arguments = [body.argument(register_type(dtype)) for _ in operands]
    result = element_code(name, dtype)(dtype, *arguments)
    return emitter.function_call(dtype, symbol, body.function(arguments, result),
                                 [(x.type, x.name) for x in operands], lanes)


def _elementwise(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    dtype = op.x.type.dtype
    is_count = dtype.is_signed and emitter.plan.is_count(op.result)
    if dtype.is_integer and op.name in RAMPS:
        ramp = RAMPS[op.name](emitter, dtype, *operands, is_count)
        if ramp is not None:
            return ramp
    names, lanes = emitter.names(dtype, operands)
    result = combine(emitter, op.name, dtype, names, lanes, is_count)
    return Lanes(result, 0 if all(x.is_uniform for x in operands) else None)


# ramps: integers that rise by one step from lane to lane ---------------------------------------

def _ramp_sum(emitter: Emitter, dtype: DType, x: Lanes, y: Lanes,
              is_count: bool) -> Lanes | None:
    if x.step is None or y.step is None or x.is_uniform and y.is_uniform:
        return None
    step = _step_sum(x.step, y.step)
    if step is None:
        return None
    return Lanes(combine(emitter, "add", dtype, [x.name, y.name], 1, is_count), step)


def _ramp_difference(emitter: Emitter, dtype: DType, x: Lanes, y: Lanes,
                     is_count: bool) -> Lanes | None:
    if not isinstance(x.step, int | str) or not isinstance(y.step, int) or (
            x.is_uniform and y.is_uniform):
        return None
    step = _step_sum(x.step, -y.step)
    if step is None:
        return None
    return Lanes(combine(emitter, "sub", dtype, [x.name, y.name], 1, is_count), step)


def _ramp_product(emitter: Emitter, dtype: DType, x: Lanes, y: Lanes,
                  is_count: bool) -> Lanes | None:
    if y.is_ramp and x.is_uniform:
        x, y = y, x
    if not x.is_ramp or not y.is_uniform:
        return None
    if is_number(y.name) and isinstance(x.step, int):
        step: int | str = x.step * int(y.name)
    elif x.step == 1:
        step = y.name
    else:
        step = combine(emitter, "mul", dtype, [str(x.step), y.name], 1)
    return Lanes(combine(emitter, "mul", dtype, [x.name, y.name], 1, is_count), step)


def _step_sum(x: int | str, y: int | str) -> int | str | None:
    if isinstance(x, int) and isinstance(y, int):
        return x + y
    return y if x == 0 else x if y == 0 else None


RAMPS = {"add": _ramp_sum, "sub": _ramp_difference, "mul": _ramp_product}
_NAMES = {*LOGICAL, *INTEGRAL, *FLOATING, *EXACT, *directed.NAMES}
element(*(OPS[name] for name in sorted(_NAMES)))(_elementwise)


@element(elementwise.select)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    condition, x, y = operands
    dtype, writer = op.result.type.dtype, emitter.writer
    if condition.is_uniform and x.step == y.step and x.step is not None:
        type_ = emitter.type(dtype, 1)
        return Lanes(writer.assign(f"select i1 {condition.name}, {type_} {x.name}, "
                                   f"{type_} {y.name}"), x.step)
    type_ = emitter.type(dtype, emitter.lanes)
    chosen = ("i1 " + condition.name if condition.is_uniform
              else f"<{emitter.lanes} x i1> {condition.name}")
    return Lanes(writer.assign(f"select {chosen}, {type_} {emitter.dense(dtype, x)}, "
                               f"{type_} {emitter.dense(dtype, y)}"))


@element(casting.cast)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    (x,), source, to = operands, op.x.type.dtype, op.result.type.dtype
    if (source.is_integer and to.is_integer and x.is_ramp and isinstance(x.step, int)
            and (to.bits <= source.bits or emitter.plan.is_index(op.result))):
        (base,) = vectors(emitter, source, [x.name], 1)
        return Lanes(casts.cast(source, to, "nearest", base).name, x.step)
    names, lanes = emitter.names(source, operands)
    (value,) = vectors(emitter, source, names, lanes)
    rounding = attribute(op, "rounding")
    return Lanes(casts.cast(source, to, rounding, value).name, 0 if x.is_uniform else None)


@element(casting.bitcast)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    (x,), source, to = operands, op.x.type.dtype, op.result.type.dtype
    names, lanes = emitter.names(source, operands)
    (value,) = vectors(emitter, source, names, lanes)
    return Lanes(casts.bitcast(source, to, value).name, 0 if x.is_uniform else None)


@element(debug.hint)
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    """A hint of contiguity makes a ramp of any lanes."""
    (x,), (_, coordinates) = operands, access
    contiguity = attribute(op, "contiguity")
    axis = next((a for a, c in enumerate(coordinates) if c.is_ramp), None)
    if (x.step is not None or axis is None or not contiguity
            or contiguity[axis] < emitter.lanes or not emitter.is_aligned(coordinates[axis])):
        return x
    dtype = op.x.type.dtype
    scalar = "ptr" if op.x.type.is_pointer else register_type(dtype)
    return Lanes(emitter.writer.extract(scalar, x.name, emitter.lanes, "0"), 1)




"""Python's own functions in Triton's dialect: min, isinstance and others, of run time."""

from __future__ import annotations

import builtins
from collections.abc import Callable

from blocknumba.errors import UnsupportedError
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, float32, int32
from blocknumba.typing.context import Context
from blocknumba.typing.attributes import attribute
from blocknumba.typing.function import BlockFunction
from blocknumba.typing.static_values import constexpr, static
from blocknumba.typing.triton.functions import (
    abs_, cast_value, max, maximum, min, minimum, range_,
)
from blocknumba.typing.triton.operators import as_value
from blocknumba.typing.values import is_constant


def _builtin_extreme(name: str, of_two: BlockFunction, along: BlockFunction) -> BlockFunction:
    """min(...) and max(...): of numbers one by one, or of a tile's elements."""
    def rule(context, *operands, **keywords):
        if len(operands) == 1 and not isinstance(operands[0], tuple):
            return along.rule(context, *operands, **keywords)
        items = operands[0] if len(operands) == 1 else operands
        result = items[0]
        for item in items[1:]:
            result = of_two.rule(context, result, item)
        return result
    return BlockFunction(rule, name)


def _number(name: str, dtype_of: Callable[[Value], DType]) -> BlockFunction:
    def rule(context, x):
        value = as_value(context, x, name)
        return cast_value(context, value, dtype_of(value))
    return BlockFunction(rule, name)


def _int_dtype(value: Value) -> DType:
    own = value.type.dtype
    return own if own.is_integer and own.bits == 64 else int32


def _isinstance(context: Context, x: object, classes: object) -> bool:
    """isinstance, in which tl.tensor stands for values of run time and constexpr for others."""
    found = False
    for each in classes if isinstance(classes, tuple) else (classes,):
        found |= (is_constant(x) if each is constexpr
                  else isinstance(x, getattr(each, "stands_for", each)))
    return found


def _hasattr(context: Context, x: object, name: object) -> bool:
    """Whether a value of run time, or a constant, has an attribute in a kernel."""
    try:
        attribute(context, x, static("hasattr: name", name))
    except UnsupportedError:
        return False
    return True


BUILTINS = {
    builtins.hasattr: BlockFunction(_hasattr, "hasattr"),
    builtins.isinstance: BlockFunction(_isinstance, "isinstance"),
    builtins.min: _builtin_extreme("min", minimum, min),
    builtins.max: _builtin_extreme("max", maximum, max),
    builtins.abs: abs_,
    builtins.range: range_,  # Triton lets Python's have the keywords of its own
    builtins.int: _number("int", _int_dtype), builtins.float: _number("float", lambda _: float32),
}

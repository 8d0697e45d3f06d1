"""Python's operators on the values of a kernel."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import BuiltinFunctionType

from blocknumba.errors import BlockTypeError, UnsupportedError
from blocknumba.tile_ir.ir.function import Value
from blocknumba.typing.context import Context, describe
from blocknumba.typing.functions import elementwise
from blocknumba.typing.functions.dot import matmul
from blocknumba.typing.functions.memory import as_pointer, move_pointer
from blocknumba.typing.functions.spans import shift_span
from blocknumba.typing.numba_ir import folding
from blocknumba.typing.values import Number, Span, is_constant, parts_of

BINARY = {
    operator.add: "add", operator.sub: "sub", operator.mul: "mul", operator.truediv: "div",
    operator.floordiv: "floordiv", operator.mod: "mod", operator.pow: "power",
    operator.and_: "and", operator.or_: "or", operator.xor: "xor",
    operator.lshift: "shl", operator.rshift: "shr",
    operator.eq: "eq", operator.ne: "ne", operator.lt: "lt", operator.le: "le",
    operator.gt: "gt", operator.ge: "ge",
}
_UNARY = {operator.neg: "neg", operator.invert: "invert"}
_SYMBOL = {operator.contains: "in"}


def is_operator(function: object) -> bool:
    """Whether a function is the function of an operator, as in Python's module operator."""
    return isinstance(function, BuiltinFunctionType) and (
        function in BINARY or function in _UNARY
        or function in (operator.not_, operator.pos, operator.matmul))


def apply_operator(context: Context, function: Callable, operands: tuple) -> object:
    """function(*operands), at compile time if all of them are known then."""
    if all(map(is_constant, operands)):
        value = folding.fold_operator(function, operands)
        if value is not folding.UNKNOWN:
            return value
    if function in (operator.is_, operator.is_not):
        return _identity(function, *operands)
    if len(operands) == 1:
        return _apply_unary(context, function, *operands)
    return _apply_binary(context, function, *operands)


def _apply_unary(context: Context, function: Callable, x: object) -> object:
    if function is operator.not_:
        return elementwise.logical_not(context, x)
    if function is operator.pos:
        return elementwise.positive(context, x)
    return elementwise.unary(context, _UNARY[function], x)


def _apply_binary(context: Context, function: Callable, x: object, y: object) -> object:
    if function is operator.contains and isinstance(x, tuple):
        return _contains(context, x, y)
    if function is operator.matmul:
        return matmul.rule(context, x, y)
    if function not in BINARY:
        symbol = _SYMBOL.get(function, getattr(function, "__name__", str(function)))
        raise UnsupportedError(f"{symbol}: given {describe(x)} and {describe(y)}, accepted "
                               "compile-time constants")
    if function in (operator.add, operator.sub):
        backwards = function is operator.sub
        if as_pointer(context, x) is not None:
            return move_pointer(context, x, y, backwards)
        if as_pointer(context, y) is not None and not backwards:
            return move_pointer(context, y, x)
        if isinstance(x, Span):
            return shift_span(context, x, y, backwards)
        if isinstance(y, Span) and not backwards:
            return shift_span(context, y, x)
    if isinstance(x, tuple) or isinstance(y, tuple):
        return _apply_to_tuples(context, function, x, y)
    return elementwise.binary(context, BINARY[function], x, y)


def _contains(context: Context, items: tuple, x: object) -> object:
    """x in items, of scalars."""
    found: object = False
    for item in items:
        found = apply_operator(context, operator.or_,
                               (found, apply_operator(context, operator.eq, (x, item))))
    return found


def _apply_to_tuples(context: Context, function: Callable, x: object, y: object) -> object:
    if function is operator.add and isinstance(x, tuple) and isinstance(y, tuple):
        return tuple(x) + tuple(y)
    if function is operator.mul:
        items, count = (x, y) if isinstance(x, tuple) else (y, x)
        if isinstance(count, int):
            return tuple(items) * count
    if function in (operator.eq, operator.ne) and isinstance(x, tuple) and isinstance(y, tuple):
        if len(x) != len(y):
            return function is operator.ne
        equal: Value | bool = True
        for a, b in zip(parts_of(x), parts_of(y)):
            same = apply_operator(context, operator.eq, (a, b))
            equal = apply_operator(context, operator.and_, (equal, same))
        if function is operator.eq:
            return equal
        return apply_operator(context, operator.not_, (equal,))
    symbol = elementwise.symbol_of(BINARY[function])
    raise BlockTypeError(f"{symbol}: given {describe(x)} and {describe(y)}, accepted "
                         "tiles and numbers")


def _identity(function: Callable, x: object, y: object) -> bool:
    """`is` between a value of run time and a constant, which it never is."""
    if isinstance(x, (Value, Number)) and isinstance(y, (Value, Number)):
        raise UnsupportedError("is: given two values of run time, accepted None and constants",
                               hint="use ==")
    return function is operator.is_not

"""What a call means in a kernel, for each kind of thing that can be called."""

from __future__ import annotations

import builtins
import math

import numpy as np

from blocknumba.errors import BlockError, UnsupportedError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import (
    DType, dtype_of, float32, float64, int32, int64, uint32, uint64,
)
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.function import BlockFunction
from blocknumba.typing.functions import create, debug, dot, elementwise, reduce, shape, spans
from blocknumba.typing.numba_ir import folding
from blocknumba.typing.operators import apply_operator, is_operator
from blocknumba.typing.values import BoundMethod, Number, is_constant, number, unwrapped

_FLOATS = elementwise.FLOAT_FUNCTIONS

def call(context: Context, callee: object, arguments: tuple, keywords: dict[str, object]) -> object:
    """The value of a call.

    Errors: UnsupportedError for what cannot be called in a kernel.
    """
    if isinstance(callee, BoundMethod):
        return call(context, callee.function, (callee.receiver, *arguments), keywords)
    if isinstance(callee, BlockFunction):
        return _call_function(context, callee, arguments, keywords)
    if all(map(is_constant, arguments)) and all(map(is_constant, keywords.values())):
        value = folding.fold_call(callee, arguments, keywords)
        if value is not folding.UNKNOWN:
            return value
    if (spelled := _lookup(callee)) is not None:
        return _call_function(context, spelled, arguments, keywords)
    if is_operator(callee) and not keywords:
        return apply_operator(context, callee, arguments)
    if (builtin := _lookup_builtin(callee)) is not None:
        return _call_function(context, builtin, arguments, keywords)
    if (dtype := _as_dtype(callee)) is not None and len(arguments) == 1 and not keywords:
        return create.convert_scalar(context, arguments[0], dtype)
    if folding.is_exception(callee):
        raise UnsupportedError(f"raise {callee.__name__}: not supported in a kernel",
                               hint="use assert, which is checked with debug=True")
    raise UnsupportedError(f"{describe(callee)} cannot be called in a kernel",
                           hint="call functions of bn, NumPy's where bn has one of the same name, "
                                "or your own")

def _call_function(context: Context, function: BlockFunction, arguments: tuple,
                   keywords: dict[str, object]) -> object:
    bound = function.bind(arguments, keywords)
    return function.rule(context, *bound.args, **bound.kwargs)

def _bool(context: Context, x: object = False) -> object:
    if isinstance(x, tuple) or x is None or isinstance(x, str):
        return bool(x)
    return elementwise.truth(context, x)

def _int(context: Context, x: object = 0) -> object:
    """A scalar as a Python int; a tile in int32, or in int64 where its ints need it."""
    require_numbers("int", x)
    value = context.value(unwrapped(x), what="int")
    own, is_scalar = value.type.dtype, value.type.is_scalar
    dtype = int32
    if own.is_integer and (own.bits == 64 or own == uint32):
        dtype = uint64 if own == uint64 and is_scalar else int64
    result = context.cast(value, dtype)
    return Number(result) if is_scalar else result

def _float(context: Context, x: object = 0.0) -> object:
    """A scalar as a Python float; a tile in float32, or in float64 where it is."""
    require_numbers("float", x)
    value = context.value(unwrapped(x), what="float")
    if value.type.is_scalar:
        return Number(context.cast(value, float64))
    is_wide = value.type.dtype.is_float and value.type.dtype.bits == 64
    return value if is_wide else context.cast(value, float32)

def _len(context: Context, x: object) -> object:
    if isinstance(x, tuple):
        return len(x)
    extents = x.type.shape if isinstance(x, Value) else getattr(x, "extents", None)
    if not extents:
        raise UnsupportedError(f"len: given {describe(x)}, accepted a tuple, a tile or an array")
    return number(extents[0])

def _extreme(name: str):
    """min(...) and max(...): of several scalars or tiles, or of one tile's elements."""
    def rule(context: Context, *operands: object, **keywords: object) -> object:
        if len(operands) == 1 and isinstance(operands[0], tuple):
            operands = operands[0]
        require(operands, "{}: given nothing, accepted numbers, or a tile", name)
        if len(operands) == 1 or keywords:
            return _call_function(context, getattr(reduce, name), operands, keywords)
        tiles = [operand for operand in operands if _is_tile(operand)]
        require(len(tiles) in (0, len(operands)), "{}: given {}, accepted only tiles or only "
                "numbers", name, " and ".join(map(describe, operands)),
                hint=f"use bn.{name}imum(a, b) element by element, or bn.{name}(x, axis=...) along "
                     "an axis")
        result = operands[0]
        for operand in operands[1:]:
            result = elementwise.binary(context, f"{name}imum", result, operand)
        return result
    return rule

def _is_tile(operand: object) -> bool:
    return isinstance(operand, Value) and bool(operand.type.shape)

def _range(context: Context, start: object, stop: object = None, step: object = 1, /) -> object:
    return spans.range_.rule(context, start, stop, step)

def _text(context: Context, *values: object, **keywords: object) -> object:
    given = " and ".join(map(describe, (*values, *keywords.values())))
    raise UnsupportedError(f"text: given {given}, accepted values that are known at compile time",
                           hint="bn.device_print prints values of run time")

def _slice(context: Context, *bounds: object) -> slice:
    return slice(*bounds)

def _round(context: Context, x: object) -> object:
    return _call_function(context, _FLOATS["rint"], (x,), {})

def _pow(context: Context, x: object, y: object) -> object:
    return elementwise.binary(context, "power", x, y)

def _divmod(context: Context, x: object, y: object) -> tuple:
    return tuple(elementwise.binary(context, name, x, y) for name in ("floordiv", "mod"))

def _sum(context: Context, x: object, *start: object, **keywords: object) -> object:
    if isinstance(x, tuple) and len(start) < 2 and not keywords:
        total: object = start[0] if start else 0
        for item in x:
            total = elementwise.binary(context, "add", total, item)
        return total
    require(not start, "sum: given {}, accepted a tile, or a tuple and a number to start with",
            " and ".join(map(describe, (x, *start))),
            hint="bn.sum(x, axis=...) adds along an axis")
    return _call_function(context, reduce.sum, (x,), keywords)

def _of_tuples(function: type):
    """enumerate, zip, reversed and tuple, of tuples: a tuple."""
    def rule(context: Context, *tuples: object) -> tuple:
        for given in tuples:
            if not isinstance(given, tuple):
                raise UnsupportedError(f"{function.__name__}: given {describe(given)}, accepted "
                                       "tuples", hint="loop over range(...) and index the array")
        return tuple(function(*tuples))
    return rule

def _truths(name: str, join: str):
    """any(...) and all(...): of a tuple of scalars, or of a tile's elements."""
    def rule(context: Context, x: object, **keywords: object) -> object:
        if not isinstance(x, tuple):
            return _call_function(context, getattr(reduce, name), (x,), keywords)
        result: object = name == "all"
        for item in x:
            result = elementwise.binary(context, join, result, _bool(context, item))
        return result
    return rule

_BUILTINS = {made: BlockFunction(rule, made.__name__) for made, rule in (
    (bool, _bool), (int, _int), (float, _float), (len, _len), (slice, _slice), (round, _round),
    (pow, _pow), (divmod, _divmod), (min, _extreme("min")), (max, _extreme("max")), (sum, _sum),
    (any, _truths("any", "or")), (all, _truths("all", "and")),
    (range, _range), *((function, _text) for function in (str, repr, format)),
    *((function, _of_tuples(function)) for function in (enumerate, zip, reversed, tuple)))}

# Python's and NumPy's names for functions of the language.
_SPELLINGS: dict[object, BlockFunction] = {
    abs: elementwise.absolute, builtins.print: debug.print_,
    np.matmul: dot.matmul, np.dot: dot.numpy_dot,
}

def _collect_spellings() -> None:
    modules = (create, elementwise, reduce, shape)
    functions = {f.__name__: f for m in modules for f in vars(m).values()
                 if isinstance(f, BlockFunction)}
    functions |= _FLOATS
    renamed = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
               "arccosh": "acosh", "arctanh": "atanh", "arctan2": "atan2", "divide": "div",
               "true_divide": "div", "round": "rint", "clip": "clamp", "transpose": "permute"}
    for name in (*functions, *renamed):
        function = functions[renamed.get(name, name)]
        for module in (np, math):
            spelled = getattr(module, name, None)
            if callable(spelled) and not isinstance(spelled, type):
                _SPELLINGS[spelled] = function
    for name, op in (("add", "add"), ("subtract", "sub"), ("multiply", "mul"),
                     ("floor_divide", "floordiv"), ("remainder", "mod"), ("mod", "mod"),
                     ("power", "power"), ("bitwise_and", "and"), ("bitwise_or", "or"),
                     ("bitwise_xor", "xor"), ("left_shift", "shl"), ("right_shift", "shr"),
                     ("equal", "eq"), ("not_equal", "ne"), ("less", "lt"), ("less_equal", "le"),
                     ("greater", "gt"), ("greater_equal", "ge"), ("logical_and", "and"),
                     ("logical_or", "or"), ("logical_xor", "xor")):
        _SPELLINGS[getattr(np, name)] = elementwise.two_operands(name, op, "")
    for name, op in (("negative", "neg"), ("invert", "invert"), ("logical_not", "invert")):
        _SPELLINGS[getattr(np, name)] = elementwise.one_operand(name, op, "")

_collect_spellings()

def _lookup(callee: object) -> BlockFunction | None:
    try:
        return _SPELLINGS.get(callee)
    except TypeError:  # unhashable
        return None

def _lookup_builtin(callee: object) -> BlockFunction | None:
    try:
        return _BUILTINS.get(callee)
    except TypeError:
        return None

def _as_dtype(callee: object) -> DType | None:
    if not isinstance(callee, (type, DType, np.dtype)):
        return None
    try:
        return dtype_of(callee)
    except BlockError:
        return None


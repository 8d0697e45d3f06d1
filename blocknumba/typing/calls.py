"""Calls and operators on the values of a kernel."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import BuiltinFunctionType

import numpy as np

from blocknumba.errors import BlockError, BlockTypeError, UnsupportedError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import (
    DType, dtype_of, float32, float64, int32, int64, uint32, uint64,
)
from blocknumba.typing.numpy_functions.parts import rounded
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.function import (
    BlockFunction, is_of_numba, keyword_hint, own_signature, python_function, signature_text,
)
from blocknumba.typing.functions import create, elementwise, reduce, spans
from blocknumba.typing.functions.dot import matmul
from blocknumba.typing.functions.map import map_
from blocknumba.typing.functions.memory import as_pointer, move_pointer
from blocknumba.typing.functions.spans import shift_span
from blocknumba.typing.numba_ir import folding
from blocknumba.typing.records import made_record, record_of
from blocknumba.typing.spellings import spelled
from blocknumba.typing.values import (
    BoundMethod, Number, Span, is_constant, number, parts_of, unwrapped,
)


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
        return context.dialect.unary(context, "not", x)
    if function is operator.pos:
        return elementwise.positive(context, x)
    return context.dialect.unary(context, _UNARY[function], x)


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
    return context.dialect.binary(context, BINARY[function], x, y)


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


_WHAT_CAN_BE_CALLED = ("call functions of bn, NumPy's where bn has one of the same name, or your "
                       "own")
_HOW_TO_RUN_IT = "make its parameters constexpr, or a function of jit of it"
# what to write instead of functions of NumPy and Python, by their names
_INSTEAD = {
    **dict.fromkeys(("rand", "random", "random_sample", "uniform"), "use bn.rand(seed, offsets)"),
    **dict.fromkeys(("randn", "normal", "standard_normal"), "use bn.randn(seed, offsets)"),
    **dict.fromkeys(("randint", "integers"), "use bn.randint(seed, offsets)"),
    **dict.fromkeys(("array", "asarray"), "write a tuple, or make a tile: bn.arange, bn.full"),
    **dict.fromkeys(("nonzero", "flatnonzero", "argwhere", "extract", "compress", "unique"),
                    "how many there are is known at run time only: bn.where(condition, x, 0) keeps "
                    "their places"),
    **dict.fromkeys(("histogram", "bincount"), "use bn.histogram(ints, bins), or "
                    "bn.atomic_add(counts.at[ints], 1)"),
    **dict.fromkeys(("diff", "ediff1d", "gradient", "convolve", "correlate"),
                    "read shifted elements of the array: x[r + 1] - x[r]"),
    **dict.fromkeys(("einsum", "tensordot", "kron", "cross"),
                    "use a @ b, or (a[:, :, None] * b[None, :, :]).sum(axis)"),
    **dict.fromkeys(("copyto", "put", "place", "fill_diagonal", "put_along_axis"),
                    "tiles do not change: use bn.where or bn.scatter, or store to the array"),
    **dict.fromkeys(("vectorize", "frompyfunc", "apply_along_axis"),
                    "use bn.map(f, tile), f a function of numbers"),
    **dict.fromkeys(("partition", "argpartition"), "use bn.sort, bn.argsort or bn.topk"),
    "meshgrid": "use bn.arange(0, M)[:, None] and bn.arange(0, N)[None, :]",
    "pad": "read beyond the edge: outside of an array there are zeros, or other=",
    "sorted": "use bn.sort(x)",
    "at": "use bn.atomic_add(x.at[indices], value)",
}


def call(context: Context, callee: object, arguments: tuple, keywords: dict[str, object]) -> object:
    """The value of a call.

    Errors: UnsupportedError for what cannot be called in a kernel.
    """
    if isinstance(callee, BoundMethod):
        if getattr(callee.function, "__compile_time__", False):  # of an aggregate
            return folding.run(callee.function, (callee.receiver, *arguments), keywords)
        return call(context, callee.function, (callee.receiver, *arguments), keywords)
    if isinstance(callee, BlockFunction):
        return _call_function(context, callee, arguments, keywords)
    if all(map(is_constant, arguments)) and all(map(is_constant, keywords.values())):
        value = folding.fold_call(callee, arguments, keywords)
        if value is not folding.UNKNOWN:
            return value
    if isinstance(function := spelled(callee), BlockFunction):
        return _call_function(context, function, arguments, keywords)
    if is_operator(callee) and not keywords:
        return apply_operator(context, callee, arguments)
    if (builtin := _lookup_builtin(context, callee)) is not None:
        return _call_function(context, builtin, arguments, keywords)
    if (dtype := _as_dtype(callee)) is not None and len(arguments) == 1 and not keywords:
        return create.convert_scalar(context, arguments[0], dtype)
    if is_of_numba(callee):
        return map_.rule(context, callee, *_in_order(callee, arguments, keywords))
    if record_of(callee) is not None:
        return made_record(callee, arguments, keywords)
    if folding.is_exception(callee):
        raise UnsupportedError(f"raise {callee.__name__}: not supported in a kernel",
                               hint="use assert, which is checked with debug=True")
    if folding.is_folded(callee) and python_function(callee) is not None:
        given = next(v for v in (*arguments, *keywords.values()) if not is_constant(v))
        raise BlockTypeError(f"{callee.__name__} runs at compile time: given {describe(given)}, "
                             "accepted constants", hint=_HOW_TO_RUN_IT)
    raise UnsupportedError(f"{describe(callee)} cannot be called in a kernel",
                           hint=_INSTEAD.get(getattr(callee, "__name__", ""), _WHAT_CAN_BE_CALLED))


def _in_order(callee: object, arguments: tuple, keywords: dict[str, object]) -> tuple:
    """All arguments of a call of a scalar function by position, defaults between them too.

    Errors: BlockTypeError for arguments that it does not take.
    """
    function = python_function(callee)
    signature = own_signature(function)
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise BlockTypeError(f"{function.__name__}: {error}, accepted "
                             f"{function.__name__}{signature_text(signature)}",
                             hint=keyword_hint(keywords, signature)) from None
    given = len(bound.arguments)
    bound.apply_defaults()
    last = max((index for index, name in enumerate(signature.parameters)
                if name in keywords), default=-1)
    return bound.args[:max(given, last + 1)]


def _call_function(context: Context, function: BlockFunction, arguments: tuple,
                   keywords: dict[str, object]) -> object:
    bound = function.bind(arguments, keywords)
    return function.rule(context, *bound.args, **bound.kwargs)


def _bool(context: Context, x: object = False) -> object:
    if isinstance(x, tuple) or x is None or isinstance(x, str):
        return bool(x)
    return context.dialect.truth(context, x, "a condition")


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
                           hint="print(\"n =\", n) prints values of run time; the message of "
                                "an assert has none")


def _slice(context: Context, *bounds: object) -> slice:
    return slice(*bounds)


def _pow(context: Context, x: object, y: object) -> object:
    return elementwise.binary(context, "power", x, y)


def _divmod(context: Context, x: object, y: object) -> tuple:
    return tuple(elementwise.binary(context, name, x, y) for name in ("floordiv", "mod"))


def _round(context: Context, x: object, ndigits: object = None) -> object:
    if ndigits is None:
        return elementwise.round.rule(context, x)
    return rounded.rule(context, x, ndigits)


def _sum(context: Context, x: object, *start: object, **keywords: object) -> object:
    if isinstance(x, tuple) and len(start) < 2 and not keywords:
        total: object = start[0] if start else 0
        for item in x:
            total = elementwise.binary(context, "add", total, item)
        return total
    if not start and not keywords and _is_tile(x) and len(x.type.shape) > 1:
        return reduce.sum.rule(context, x, 0)  # as Python adds the rows
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
    (bool, _bool), (int, _int), (float, _float), (len, _len), (slice, _slice),
    (round, _round),
    (pow, _pow), (divmod, _divmod), (min, _extreme("min")), (max, _extreme("max")), (sum, _sum),
    (any, _truths("any", "or")), (all, _truths("all", "and")),
    (range, _range), *((function, _text) for function in (str, repr, format)),
    *((function, _of_tuples(function)) for function in (enumerate, zip, reversed, tuple)))}


def _lookup_builtin(context: Context, callee: object) -> BlockFunction | None:
    try:
        return context.dialect.builtins.get(callee) or _BUILTINS.get(callee)
    except TypeError:
        return None


def _as_dtype(callee: object) -> DType | None:
    if not isinstance(callee, (type, DType, np.dtype)):
        return None
    try:
        return dtype_of(callee)
    except BlockError:
        return None

"""Elementwise functions: rows of the op registry with promotion and broadcasting before them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.function import OpDef, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import bool_, uint64
from blocknumba.tile_ir.ops import directed
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.function import BlockFunction, described, function
from blocknumba.typing.functions.shape import as_scalar
from blocknumba.typing.values import Number, unwrapped

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_BITWISE = ("and", "or", "xor")
_SHIFTS = ("shl", "shr")
# In NumPy, arithmetic on two bools is logic.
_BOOL_ARITHMETIC = {"add": "or", "mul": "and"}
# what a whole number is already, and functions that differ for NaN only
_TO_WHOLE = ("floor", "ceil", "trunc")
_IGNORING_NAN = {"fmin": "minimum", "fmax": "maximum"}
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%",
            "power": "**", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
            "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
            "neg": "unary -", "invert": "~"}


def symbol_of(name: str) -> str:
    """Spelling of an op in Python."""
    return _SYMBOLS.get(name, name)


_COMPARE = "compare first: x != 0 are bools"


def binary(context: Context, name: str, x: object, y: object) -> Value | Number:
    """x and y promoted, broadcast together, and combined by an op of the table."""
    symbol = symbol_of(name)
    require_numbers(symbol, x, y)
    if name in _COMPARISONS:
        return _compare(context, name, x, y)
    if name == "div":
        return _emit(context, name, (x, y), promotion.float_dtype((x, y)), symbol)
    if name == "power":
        return _power(context, x, y)
    dtype = promotion.result_dtype((x, y))
    if name in _BITWISE:
        require(not dtype.is_float, "{}: given {} and {}, accepted ints and bools", symbol,
                describe(x), describe(y), hint=_COMPARE)
    elif dtype == bool_ and name in _BOOL_ARITHMETIC:
        name = _BOOL_ARITHMETIC[name]
    elif dtype == bool_ and name == "sub":
        raise BlockTypeError("-: given two bools, accepted numbers", hint="use ^ or cast them")
    elif name in _SHIFTS:
        require(not dtype.is_float, "{}: given {} and {}, accepted ints", symbol, describe(x),
                describe(y), hint="multiply by 2 ** n, or by 0.5 ** n")
        dtype = promotion.arithmetic_dtype(dtype)
    elif name not in ("minimum", "maximum"):
        dtype = promotion.arithmetic_dtype(dtype)
    return _emit(context, name, (x, y), dtype, symbol)


def unary(context: Context, name: str, x: object) -> Value | Number:
    """x through a one-operand op that keeps its dtype; `not x` of a scalar."""
    if name == "not":
        return context.emit("invert", truth(context, x, "not"))
    symbol = symbol_of(name)
    require_numbers(symbol, x)
    dtype = promotion.result_dtype((x,))
    if name == "invert":
        require(not dtype.is_float, "~: given {}, accepted ints and bools", describe(x),
                hint=_COMPARE)
    elif dtype == bool_:
        require(name == "absolute", "{}: given {}, accepted numbers", symbol, describe(x),
                hint="use ~x")
        return context.value(x)
    elif name == "absolute" and dtype.kind == "uint":
        return x if isinstance(x, Number) else context.value(x)
    return _of((x,), computed(context, name, context.value(x, dtype)))


def computed(context: Context, name: str, *values: Value) -> Value:
    """An op on values of one type; those of 8-bit floats are computed in float32 and rounded.

    Errors: nextafter of 8-bit floats.
    """
    dtype = values[0].type.dtype
    wide = promotion.computed_dtype(dtype)
    if wide == dtype:
        return context.emit(name, *values)
    require(name != "nextafter", "nextafter: given {}, accepted floats of 16 bits and more", dtype)
    result = context.emit(name, *(context.cast(value, wide) for value in values))
    return result if result.type.dtype == bool_ else context.cast(result, dtype)


def positive(context: Context, x: object) -> object:
    """+x."""
    require_numbers("unary +", x)
    return x


def truth(context: Context, x: object, what: str = "a condition") -> Value:
    """Whether a scalar is true.

    Errors: a tile, whose truth is not defined.
    """
    x = unwrapped(x)
    if isinstance(x, Value) and not x.type.is_pointer:
        x = as_scalar(context, x)
        require(x.type.is_scalar, "{}: given {}, accepted a scalar", what, x.type,
                hint="reduce it first, with bn.any or bn.all, or use bn.where; "
                     "& | ~ work on tiles, and or not and a < b < c do not")
        return context.cast(x, bool_)
    if promotion.is_number(x):
        return context.constant(bool(x), bool_)
    raise BlockTypeError(f"{what}: given {describe(x)}, accepted a bool or a number")


@function
def where(context, condition, x, y):
    """x where condition, else y; the three are broadcast together.

    condition: bool; numbers count as `!= 0`.  x, y: any dtypes, promoted; pointers of one dtype.
    Source: numpy.where.

    Example:
    >>> bn.evaluate(bn.where, [True, False], [1.5, 2.5], 0)
    array([1.5, 0. ])
    """
    chosen = context.cast(context.value(unwrapped(condition), what="where"), bool_)
    if isinstance(x, Value) and x.type.is_pointer or isinstance(y, Value) and y.type.is_pointer:
        values = [v for v in (x, y) if isinstance(v, Value)]
        require(len(values) == 2, "where: given {} and {}, accepted two pointers", describe(x),
                describe(y))
    else:
        require_numbers("where", x, y)
        is_scalar = chosen.type.is_scalar
        dtype = (promotion.result_dtype if is_scalar else promotion.tile_dtype)((x, y))
        values = [context.value(v, dtype, "where") for v in (x, y)]
    result = context.emit("select", *context.broadcast_together([chosen, *values], "where"))
    return _of((x, y), result) if result.type.is_scalar else result


@function
def clamp(context, x, min, max):
    """x limited to [min, max]; NaN stays NaN.   Source: numpy.clip.

    Example:
    >>> bn.evaluate(bn.clamp, [-2.0, 0.5, np.nan, 7.0], 0, 1)
    array([0. , 0.5, nan, 1. ])
    """
    return binary(context, "minimum", binary(context, "maximum", x, min), max)


@function
def fma(context, x, y, z):
    """x * y + z with one rounding; float16 and bfloat16 too.

    Example:
    >>> bn.evaluate(bn.fma, [1.0, 2.0], 10, 0.5)
    array([10.5, 20.5])
    """
    require_numbers("fma", x, y, z)
    return _emit(context, "fma", (x, y, z), promotion.float_dtype((x, y, z)), "fma")


@function
def umulhi(context, x, y):
    """High half of the product of two 32- or 64-bit integers taken as unsigned.

    Example:
    >>> bn.evaluate(bn.umulhi, np.uint32([2**31, 2**30]), np.uint32([6, 2]))
    array([3, 0], dtype=uint32)
    """
    require_numbers("umulhi", x, y)
    return _emit(context, "umulhi", (x, y), promotion.result_dtype((x, y)), "umulhi")


@function
def floating(context, name, x):
    """x as floats of the dtype that a function of a name computes in; floats stay as they are."""
    require_numbers(name, x)
    return _of((x,), context.value(x, promotion.float_dtype((x,))))


def two_operands(name: str, op: str, doc: str) -> BlockFunction:
    """A function of two numbers that keeps their promoted dtype."""
    def rule(context, x, y):
        return binary(context, op, x, y)
    return described(rule, name, doc)


def one_operand(name: str, op: str, doc: str) -> BlockFunction:
    """A function of one number that keeps its dtype."""
    def rule(context, x):
        return unary(context, op, x)
    return described(rule, name, doc)


def of_truths(name: str, op: str) -> BlockFunction:
    """A function of whether its operands are other than 0, as NaN is."""
    def rule(context: Context, *operands: object) -> Value:
        require_numbers(name, *operands)
        truths = [context.cast(context.value(unwrapped(x), what=name), bool_) for x in operands]
        return context.emit(op, *context.broadcast_together(truths, name))

    def one(context, x):
        return rule(context, x)

    def two(context, x, y):
        return rule(context, x, y)
    return described((one, two)[len(OPS[op].operands) - 1], name, "")


def example_of(name: str, arguments: str, result: str) -> str:
    """The end of a docstring: the function of NumPy with this name, and a call with its result."""
    source = f"\n\nSource: numpy.{name}." if hasattr(np, name) else ""
    return f"{source}\n\nExample:\n>>> bn.evaluate(bn.{name}, {arguments})\n{result}"


@function
def round(context, x):
    """The nearest integer, ties to even; ints and bools stay.   Source: numpy.round.

    Example:
    >>> bn.evaluate(bn.round, [0.5, 1.5, 2.5, -1.2])
    array([ 0.,  2.,  2., -1.])
    """
    require_numbers("round", x)
    whole = _kept(context, x)
    return whole if whole is not None else _emit(
        context, "rint", (x,), promotion.float_dtype((x,)), "round")


def _kept(context: Context, x: object) -> object:
    """A whole number as it is; None for a float."""
    if promotion.result_dtype((x,)).is_float:
        return None
    return x if isinstance(x, Number) else context.value(x)


def of_floats(name: str, opdef: OpDef, example: str = "") -> BlockFunction:
    """A function whose operands become floats, but where ints have the same answer.

    example: see example_of.
    """
    def one(context, x):
        require_numbers(name, x)
        if name in _TO_WHOLE and (whole := _kept(context, x)) is not None:
            return whole
        return _emit(context, opdef.name, (x,), promotion.float_dtype((x,)), name)

    def two(context, x, y):
        require_numbers(name, x, y)
        if name in _IGNORING_NAN and not promotion.result_dtype((x, y)).is_float:
            return binary(context, _IGNORING_NAN[name], x, y)
        return _emit(context, opdef.name, (x, y), promotion.float_dtype((x, y)), name)

    def three(context, x, y, z):
        require_numbers(name, x, y, z)
        return _emit(context, opdef.name, (x, y, z), promotion.float_dtype((x, y, z)), name)

    doc = opdef.doc.partition("\n\n")[0]
    return described((one, two, three)[len(opdef.operands) - 1], name,
                     f"{doc}\n\n{_SHARED_BY_FLOATS}{example}")


def of_bits(name: str, opdef: OpDef, example: str) -> BlockFunction:
    """A function of 32- or 64-bit integers.   example: see example_of."""
    def rule(context, x):
        return context.emit(opdef, context.value(x, what=name))
    return described(rule, name, opdef.doc.partition("\n\n")[0] + example)


def _power(context: Context, x: object, y: object) -> Value:
    dtype = promotion.arithmetic_dtype(promotion.result_dtype((x, y)))
    if promotion.is_literal(y) and not isinstance(y, float):
        if y < 0 and dtype.is_integer:
            raise BlockValueError(f"**: an integer to the power {y}, accepted exponents from 0",
                                  hint="cast it to a float first")
        if y in (1, 2):
            value = context.value(x, dtype)
            return _of((x, y), value if y == 1 else computed(context, "mul", value, value))
    return _emit(context, "power", (x, y), dtype, "**")


def _compare(context: Context, name: str, x: object, y: object) -> Value:
    if promotion.is_literal(x):
        name, x, y = _SWAPPED[name], y, x
    if promotion.is_literal(y) and isinstance(y, int):
        dtype = promotion.result_dtype((x, True))
        if dtype.is_integer and not dtype.minimum <= y <= dtype.maximum:
            # as NumPy: every value of the dtype is on the same side of such a literal
            answer = name == "ne" or name in (("lt", "le") if y > dtype.maximum else ("gt", "ge"))
            return context.broadcast_to(context.constant(answer, bool_), _shape(x))
    if {_kind(x), _kind(y)} in ({"int"}, {"uint"}, {"int", "uint"}):
        return _compare_integers(context, name, *(context.value(unwrapped(v)) for v in (x, y)))
    return _emit(context, name, (x, y), promotion.result_dtype((x, y)), _SYMBOLS[name])


def _compare_integers(context: Context, name: str, x: Value, y: Value) -> Value:
    """Integers of any dtypes, also those of run time, by their values."""
    dtype = promotion.promote(x.type.dtype, y.type.dtype)
    if dtype.is_integer:
        return _emit(context, name, (x, y), dtype, _SYMBOLS[name])
    # signed with uint64: a negative number is less than any unsigned one
    if x.type.dtype == uint64:
        name, x, y = _SWAPPED[name], y, x
    negative = binary(context, "lt", x, 0)
    unsigned = binary(context, name, context.cast(x, uint64), y)
    if name in ("lt", "le", "ne"):
        return binary(context, "or", negative, unsigned)
    return binary(context, "and", context.emit("invert", negative), unsigned)


def _kind(operand: object) -> str:
    """The kind of dtype of an operand that has one; "" of a literal."""
    return "" if promotion.is_literal(operand) else promotion.result_dtype((operand,)).kind


def _shape(operand: object) -> tuple[int, ...]:
    return operand.type.shape if isinstance(operand, Value) else ()


def _of(operands: Sequence[object], value: Value) -> Value | Number:
    """A result as its operands make it: of Python numbers, a number that is known at run time."""
    is_python = value.type.dtype != bool_ and promotion.are_weak(operands)
    return Number(value) if is_python else value


def _emit(context: Context, name: str, operands: Sequence[object], dtype: object,
          what: str) -> Value:
    require_numbers(what, *operands)
    values = [context.value(operand, dtype, what) for operand in operands]
    return _of(operands, computed(context, name, *context.broadcast_together(values, what)))


maximum = two_operands("maximum", "maximum", "The greater; NaN if either is NaN." + example_of(
    "maximum", "[1.0, np.nan], [2.0, 2.0]", "array([ 2., nan])"))
minimum = two_operands("minimum", "minimum", "The lesser; NaN if either is NaN." + example_of(
    "minimum", "[1.0, np.nan], [2.0, 2.0]", "array([ 1., nan])"))
absolute = one_operand("abs", "absolute", "|x|." + example_of(
    "abs", "[-1.5, 2.0]", "array([1.5, 2. ])"))


_SHARED_BY_FLOATS = ("Numbers and tiles are broadcast together; ints become float32, those of 64 "
                     "bits float64.")
# name -> arguments of an example, and what it gives
_OF_FLOATS = {
    "exp": ("[0.0, 1.0]", "array([1.        , 2.71828183])"),
    "exp2": ("[3.0, 0.5]", "array([8.        , 1.41421356])"),
    "expm1": ("[1e-10, 1.0]", "array([1.00000000e-10, 1.71828183e+00])"),
    "log": ("[1.0, 10.0]", "array([0.        , 2.30258509])"),
    "log2": ("[8.0, 10.0]", "array([3.        , 3.32192809])"),
    "log10": ("[1000.0, 2.0]", "array([3.     , 0.30103])"),
    "log1p": ("[1e-10, 1.0]", "array([1.00000000e-10, 6.93147181e-01])"),
    "sqrt": ("[4.0, 2.0]", "array([2.        , 1.41421356])"),
    "rsqrt": ("[4.0, 0.25]", "array([0.5, 2. ])"),
    "cbrt": ("[27.0, -8.0]", "array([ 3., -2.])"),
    "sin": ("[0.0, 1.0]", "array([0.        , 0.84147098])"),
    "cos": ("[0.0, 1.0]", "array([1.        , 0.54030231])"),
    "tan": ("[0.0, 1.0]", "array([0.        , 1.55740772])"),
    "asin": ("[0.5, 1.0]", "array([0.52359878, 1.57079633])"),
    "acos": ("[0.5, 1.0]", "array([1.04719755, 0.        ])"),
    "atan": ("[0.5, np.inf]", "array([0.46364761, 1.57079633])"),
    "sinh": ("[0.0, 1.0]", "array([0.        , 1.17520119])"),
    "cosh": ("[0.0, 1.0]", "array([1.        , 1.54308063])"),
    "tanh": ("[0.5, 40.0]", "array([0.46211716, 1.        ])"),
    "asinh": ("[0.0, 1.0]", "array([0.        , 0.88137359])"),
    "acosh": ("[1.0, 2.0]", "array([0.       , 1.3169579])"),
    "atanh": ("[0.0, 0.5]", "array([0.        , 0.54930614])"),
    "erf": ("[0.5, 1.0]", "array([0.52049988, 0.84270079])"),
    "erfc": ("[0.5, 10.0]", "array([4.79500122e-01, 2.08848758e-45])"),
    "gamma": ("[5.0, 0.5]", "array([24.        ,  1.77245385])"),
    "lgamma": ("[5.0, 0.5]", "array([3.17805383, 0.57236494])"),
    "floor": ("[1.5, -1.5]", "array([ 1., -2.])"),
    "ceil": ("[1.5, -1.5]", "array([ 2., -1.])"),
    "trunc": ("[1.5, -1.5]", "array([ 1., -1.])"),
    "rint": ("[0.5, 1.5, 2.5, -1.2]", "array([ 0.,  2.,  2., -1.])"),
    "atan2": ("[1.0, -1.0], [1.0, -1.0]", "array([ 0.78539816, -2.35619449])"),
    "hypot": ("[3.0, 1e200], [4.0, 1e200]", "array([5.00000000e+000, 1.41421356e+200])"),
    "copysign": ("[1.0, -2.0], [-1.0, 1.0]", "array([-1.,  2.])"),
    "nextafter": ("np.float32([1, 1]), np.float32([2, 0])",
                  "array([1.0000001 , 0.99999994], dtype=float32)"),
    "isnan": ("[1.0, np.nan]", "array([False,  True])"),
    "isinf": ("[1.0, -np.inf]", "array([False,  True])"),
    "isfinite": ("[1.0, np.nan, np.inf, -0.0]", "array([ True, False, False,  True])"),
    "fmin": ("[1.0, np.nan], [2.0, 2.0]", "array([1., 2.])"),
    "fmax": ("[1.0, np.nan], [2.0, 2.0]", "array([2., 2.])"),
    "div": ("[1, 2], 4", "array([0.25, 0.5 ])"),
}
_OF_BITS = {
    "popc": ("[0, 7, -1, 8]", "array([ 0,  3, 64,  1])"),
    "clz": ("np.uint32([1, 2**31])", "array([31,  0], dtype=uint32)"),
    "ffs": ("[0, 1, 8, 12]", "array([0, 1, 4, 3])"),
}
FLOAT_FUNCTIONS = {name: of_floats(name, OPS[name], example_of(name, *example))
                   for name, example in _OF_FLOATS.items()}
BIT_FUNCTIONS = {name: of_bits(name, OPS[name], example_of(name, *example))
                 for name, example in _OF_BITS.items()}
DIRECTED_FUNCTIONS = {name: of_floats(name, OPS[name]) for name in directed.NAMES}

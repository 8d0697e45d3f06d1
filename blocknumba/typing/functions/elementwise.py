"""Elementwise functions: rows of the op registry with promotion and broadcasting before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%",
            "power": "**", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
            "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
            "neg": "unary -", "invert": "~"}


def symbol_of(name: str) -> str:
    """Spelling of an op in Python."""
    return _SYMBOLS.get(name, name)


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
                describe(x), describe(y))
    elif dtype == bool_ and name in _BOOL_ARITHMETIC:
        name = _BOOL_ARITHMETIC[name]
    elif dtype == bool_ and name == "sub":
        raise BlockTypeError("-: given two bools, accepted numbers", hint="use ^ or cast them")
    elif name in _SHIFTS:
        require(not dtype.is_float, "{}: given {} and {}, accepted ints", symbol, describe(x),
                describe(y))
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
        require(not dtype.is_float, "~: given {}, accepted ints and bools", describe(x))
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
                     "& | ~ work on tiles, and or not do not")
        return context.cast(x, bool_)
    if promotion.is_number(x):
        return context.constant(bool(x), bool_)
    raise BlockTypeError(f"{what}: given {describe(x)}, accepted a bool or a number")


@function
def where(context, condition, x, y):
    """x where condition, else y; the three are broadcast together.

    condition: bool; numbers count as `!= 0`.  x, y: any dtypes, promoted; pointers of one dtype.
    Source: numpy.where.
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
    """x limited to [min, max]; NaN stays NaN.   Source: numpy.clip."""
    return binary(context, "minimum", binary(context, "maximum", x, min), max)


@function
def fma(context, x, y, z):
    """x * y + z with one rounding; float16 and bfloat16 too."""
    require_numbers("fma", x, y, z)
    return _emit(context, "fma", (x, y, z), promotion.float_dtype((x, y, z)), "fma")


@function
def umulhi(context, x, y):
    """High half of the product of two 32- or 64-bit integers taken as unsigned."""
    require_numbers("umulhi", x, y)
    return _emit(context, "umulhi", (x, y), promotion.result_dtype((x, y)), "umulhi")


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


def of_floats(name: str, opdef: OpDef) -> BlockFunction:
    """A function whose operands, whatever they are, become floats."""
    def one(context, x):
        require_numbers(name, x)
        return _emit(context, opdef.name, (x,), promotion.float_dtype((x,)), name)

    def two(context, x, y):
        require_numbers(name, x, y)
        return _emit(context, opdef.name, (x, y), promotion.float_dtype((x, y)), name)

    def three(context, x, y, z):
        require_numbers(name, x, y, z)
        return _emit(context, opdef.name, (x, y, z), promotion.float_dtype((x, y, z)), name)

    return described((one, two, three)[len(opdef.operands) - 1], name, opdef.doc)


def of_bits(name: str, opdef: OpDef) -> BlockFunction:
    """A function of 32- or 64-bit integers."""
    def rule(context, x):
        return context.emit(opdef, context.value(x, what=name))
    return described(rule, name, opdef.doc)


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


maximum = two_operands("maximum", "maximum", "The greater; NaN if either is NaN.\n\n"
                       "Source: numpy.maximum.")
minimum = two_operands("minimum", "minimum", "The lesser; NaN if either is NaN.\n\n"
                       "Source: numpy.minimum.")
absolute = one_operand("abs", "absolute", "|x|.   Source: numpy.abs.")


_OF_FLOATS = """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh
    cosh tanh asinh acosh atanh erf erfc gamma lgamma floor ceil trunc rint atan2 hypot copysign
    nextafter isnan isinf isfinite fmin fmax div""".split()
FLOAT_FUNCTIONS = {name: of_floats(name, OPS[name]) for name in _OF_FLOATS}
BIT_FUNCTIONS = {name: of_bits(name, OPS[name]) for name in ("popc", "clz", "ffs")}
DIRECTED_FUNCTIONS = {name: of_floats(name, OPS[name]) for name in directed.NAMES}

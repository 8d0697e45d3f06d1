"""Recipes of elementwise expressions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from kernel_recipes import ANY, EXACT, Facts, Made, Variable, bn, bounded, converted, recipe
from numpy_tiles import BOOL, BYTE_FLOATS, FLOATS, HALVES, INTS

from blocknumba.tile_ir.ops.elementwise import ERROR_ULPS

NEAR_FUNCTIONS = {"exp": 1, "exp2": 1, "expm1": 1, "sin": 1, "cos": 1, "tanh": 1, "atan": 1,
                  "cbrt": 1, "sinh": 1, "asinh": 1, "log": 0, "log2": 0, "log1p": 0, "rsqrt": 0,
                  "sigmoid": 1}  # 1: of any number, 0: of positive ones
SIGMOID_ULPS = 6  # those of exp, of a sum and of a quotient
WHOLE_IN_A_BYTE = 8  # whole numbers that float8_e5m2 holds
EDGES = (0, 1, 2, 3, 7)


def together(x: Variable, y: Variable) -> Variable:
    """A variable like x, of the shape of both."""
    return replace(x, shape=np.broadcast_shapes(x.shape, y.shape))


@recipe(12)
def arithmetic(m):
    x, y = m.pair(lambda v: v.is_exact and v.dtype != BOOL)
    if x is None:
        return None
    symbol = m.pick("+-*")
    text = f"({x.name} {symbol} {y.name})"
    if not (x.is_whole and y.is_whole):
        return Made(text)
    a, b = x.facts, y.facts
    ends = {"+": [a.low + b.low, a.high + b.high], "-": [a.low - b.high, a.high - b.low],
            "*": [p * q for p in (a.low, a.high) for q in (b.low, b.high)]}[symbol]
    return Made(text, bounded(min(ends), max(ends), m.dtype_of(text)))


@recipe(4)
def with_a_number(m):
    x = m.any_of(lambda v: v.is_exact and v.dtype != BOOL)
    if x is None:
        return None
    number, symbol = m.random.randint(0, 7), m.pick("+-*")
    if m.chance(0.3):
        return Made(f"({x.name} {symbol} {m.pick(m.numbers)})")
    if x.is_float and m.chance(0.5):
        return Made(f"({x.name} {symbol} {number / 4})")
    text = m.pick([f"({x.name} {symbol} {number})", f"({number} {symbol} {x.name})"])
    return Made(text)


@recipe(4)
def division(m):
    x, y = m.pair(lambda v: v.is_exact and v.dtype != BOOL)
    if x is None or x.dtype == BOOL:
        return None
    symbol = m.pick(["/", "//", "%"])
    if symbol == "/" and not (_divides(x) and _divides(y)):
        return None
    return Made(f"({x.signed} {symbol} {y.signed})")


def _divides(x: Variable) -> bool:
    """Whether an operand of / becomes a float without two roundings."""
    return x.is_float or x.is_whole and x.facts.size <= EXACT["float32"]


@recipe(4)
def bits(m):
    x, y = m.pair(lambda v: v.is_int or v.dtype == BOOL)
    if x is None:
        return None
    symbol = m.pick(["&", "|", "^"] if BOOL in (x.dtype, y.dtype) else ["&", "|", "^", "<<", ">>"])
    return Made(f"({x.name} {symbol} {y.name})")


@recipe(2)
def integer_power(m):
    x = m.any_of(lambda v: v.is_int)
    exponent = m.like(x, lambda v: v.dtype == x.dtype) if x else None
    if exponent is None:
        return None
    return Made(m.pick([f"{x.name} ** {m.random.randint(0, 5)}",
                        f"{x.name} ** ({exponent.name} & 7)"]))


@recipe(3)
def one_operand(m):
    x = m.any_of(lambda v: v.is_exact)
    if x is None:
        return None
    if x.dtype == BOOL:
        return Made(f"(~{x.name})")
    return Made(m.pick([f"(-{x.name})", f"bn.abs({x.name})", f"abs({x.name})"] + (
        [f"(~{x.name})"] if x.is_int else [])))


@recipe(5)
def comparison(m):
    x, y = m.pair(lambda v: v.is_exact)
    if x is None:
        return None
    symbol = m.pick(["<", "<=", ">", ">=", "==", "!="])
    if m.chance(0.3) and x.dtype != BOOL:
        return Made(f"({x.name} {symbol} {m.random.randint(0, 5)})")
    return Made(f"({x.name} {symbol} {y.name})")


@recipe(4)
def extremes(m):
    x, y = m.pair(lambda v: v.is_exact)
    if x is None:
        return None
    names = ["minimum", "maximum"] + ["fmin", "fmax"] * (x.is_float and y.is_float)
    name = m.pick(names)
    if m.chance(0.2) and x.dtype != BOOL:
        return Made(f"bn.clamp({x.name}, {m.random.randint(0, 3)}, {m.random.randint(3, 9)})")
    facts = ANY
    if x.is_whole and y.is_whole and x.dtype == y.dtype:
        facts = Facts(min(x.facts.low, y.facts.low), max(x.facts.high, y.facts.high))
    return Made(f"bn.{name}({x.name}, {y.name})", facts)


@recipe(4)
def choice(m):
    x, y = m.pair(lambda v: v.is_exact)
    condition = m.any_of(lambda v: v.is_exact and m.joins(together(x, y), v)) if x else None
    if condition is None:
        return None
    text = m.pick([f"{condition.name}", f"{condition.name} > {m.pick(EDGES)}"])
    if condition.dtype == BOOL:
        text = condition.name
    return Made(f"bn.where({text}, {x.name}, {y.name})")


@recipe(2)
def multiply_add(m):
    x = m.any_of(lambda v: v.is_whole and v.is_float and v.facts.size <= 32)
    if x is None:
        return None
    y = m.like(x, lambda v: v.is_whole and v.dtype == x.dtype and v.facts.size <= 32)
    z = m.any_of(lambda v: v.is_whole and v.dtype == x.dtype and m.joins(together(x, y), v)) or x
    limit = x.facts.size * y.facts.size + z.facts.size
    return Made(f"bn.fma({x.name}, {y.name}, {z.name})", bounded(-limit, limit, x.dtype))


@recipe(2)
def functions_of_bits(m):
    x = m.any_of(lambda v: v.is_int and v.dtype.itemsize >= 4)
    if x is None:
        return None
    y = m.like(x, lambda v: v.dtype == x.dtype)
    return Made(m.pick([f"bn.popc({x.name})", f"bn.clz({x.name})", f"bn.ffs({x.name})",
                        f"bn.umulhi({x.name}, {y.name})"]))


@recipe(3)
def exact_of_floats(m):
    x = m.any_of(lambda v: v.is_float and v.is_exact)
    if x is None:
        return None
    name = m.pick(["floor", "ceil", "trunc", "rint", "round", "sqrt", "isnan", "isinf",
                   "isfinite", "sqrt_rn"])
    return Made(f"bn.{name}({x.name})")


@recipe(2)
def two_floats(m):
    x = m.any_of(lambda v: v.is_float and v.is_whole)
    y = m.like(x, lambda v: v.is_float and v.is_whole and v.dtype == x.dtype) if x else None
    if y is None:
        return None
    return Made(m.pick([f"bn.copysign({x.name}, {y.signed})", f"bn.fdiv({x.name}, {y.signed})",
                        f"bn.div_rn({x.name}, {y.signed})"]))


@recipe(3)
def near_functions(m):
    x = m.any_of(lambda v: v.is_float and v.is_whole and v.facts.size <= 1024)
    if x is None:
        return None
    name = m.pick(list(NEAR_FUNCTIONS))
    scale = 2.0 ** -max(0, math.ceil(math.log2(max(x.facts.size, 1) / 8)))
    argument = f"{x.name} * {scale}"
    if not NEAR_FUNCTIONS[name]:
        argument = f"bn.abs({argument}) + 0.25"
    ulps = SIGMOID_ULPS if name == "sigmoid" else ERROR_ULPS.get(name, 1) + 1
    if x.dtype in HALVES:
        ulps = 4 if name == "sigmoid" else 2
    return Made(f"bn.{name}({argument})", Facts(ulps=ulps, absolute=1e-6 if x.dtype.itemsize < 8
                                                else 1e-14))


@recipe(2)
def near_functions_of_two(m):
    x = m.any_of(lambda v: v.is_float and v.is_whole and v.facts.size <= 1024)
    y = m.like(x, lambda v: v.is_whole and v.dtype == x.dtype and v.facts.size <= 1024)
    if y is None:
        return None
    name = m.pick(["hypot", "atan2"])
    return Made(f"bn.{name}({x.signed}, bn.abs({y.name}) + 0.5)",
                Facts(ulps=4, absolute=1e-6 if x.dtype.itemsize < 8 else 1e-14))


@recipe(1)
def mapped(m):
    x = m.any_of(lambda v: v.dtype.name == "int64" and v.is_whole)
    return Made(f"bn.map(halvings, {x.name})", (ANY, ANY)) if x else None


@recipe(5)
def conversion(m):
    x = m.any_of(lambda v: v.is_exact)
    to = m.pick([*INTS, *FLOATS, BOOL, *FLOATS])
    if x is None or x.dtype == to:
        return None
    made = converted(x, to)
    if made and m.chance(0.3):
        return Made(f"bn.cast({x.name}, {bn(to)})", made.facts)
    return made


@recipe(2)
def through_a_byte(m):
    x = m.any_of(lambda v: v.is_float)
    if x is None:
        return None
    dtype = m.pick(BYTE_FLOATS)
    facts = x.facts if x.is_whole and x.facts.size <= WHOLE_IN_A_BYTE else ANY
    return Made(f"{x.name}.to({bn(dtype)}).to({bn(m.pick(FLOATS))})", facts)


@recipe(2)
def arithmetic_of_bytes(m):
    x = m.any_of(lambda v: v.is_float and v.is_exact)
    y = m.like(x, lambda v: v.is_float and v.is_exact) if x else None
    if y is None:
        return None
    kind = bn(m.pick(BYTE_FLOATS))
    return Made(f"({x.name}.to({kind}) {m.pick('+-*')} {y.name}.to({kind})).to(bn.float32)")


@recipe(2)
def function_of_the_other_dialect(m):
    x, y = m.pair(lambda v: v.is_int)
    if x is None or x.dtype != y.dtype:
        return None
    if m.chance(0.4):
        return Made(f"larger_by_choice({x.name}, {y.name})")
    return Made(f"scaled({x.name}, {y.name}, {m.pick([2, 3])})", (ANY, ANY))


@recipe(2)
def bits_as_another_dtype(m):
    x = m.any_of(lambda v: v.is_int or v.is_float and v.is_whole)
    if x is None:
        return None
    others = [d for d in (*INTS, *FLOATS) if d.itemsize == x.dtype.itemsize and d != x.dtype]
    return Made(f"bn.cast({x.signed}, {bn(m.pick(others))}, bitcast=True)")

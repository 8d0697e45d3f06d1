"""The elementwise ops: one row each, with NumPy's numerics."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import require
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, PURE, elementwise, op, predicate
from blocknumba.tile_ir.ir.types import (
    FLOATS, INTEGERS, NUMBERS, TileType, bool_, int32, int64, uint32, uint64,
)
from blocknumba.tile_ir.ops import numerics
from blocknumba.tile_ir.ops.numerics import Wide

# Maximum error of float32 and float64 in units in the last place: a bound that NumPy's SIMD loops
# and CUDA's mathematical functions (Programming Guide, "Mathematical Functions") both keep.
# float16 and bfloat16 are float32 rounded: at most one such unit.
ERROR_ULPS = {name: 4 for name in (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "cbrt", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "atan2",
    "hypot", "power")} | {"floordiv": 1, "erfc": 5, "lgamma": 16, "gamma": 10}
# lgamma is a sum whose terms cancel: its units are those of 1 where the result is less, and of
# lgamma(-x) below 0, as gamma(x) is pi / (x sin(pi x) gamma(-x)).  CUDA keeps 6 of these.  The C
# library of Python has terms of up to 6, each within 2 units of 1 or 4, between 3 and 5: 16 of 1.
ERROR_OF_TERMS = frozenset(("lgamma",))


def _error(name: str) -> str:
    """The sentence on an op's error."""
    ulps = ERROR_ULPS.get(name)
    of_terms = (f", those of 1 where the result is less, and of {name}(-x) below 0"
                if name in ERROR_OF_TERMS else "")
    return "" if ulps is None else f"  Error: at most {ulps} units in the last place{of_terms}."


BITS = INTEGERS | {bool_}
PLAIN = NUMBERS | {bool_}
WORDS = frozenset((int32, int64, uint32, uint64))

# arithmetic -----------------------------------------------------------------------------------
_CONTRACT, APPROXIMATE = "contract", "approximate"
add = elementwise("add", "x y", np.add, NUMBERS, "x + y; integers wrap.", freedom=_CONTRACT)
sub = elementwise("sub", "x y", np.subtract, NUMBERS, "x - y; integers wrap.", freedom=_CONTRACT)
mul = elementwise("mul", "x y", np.multiply, NUMBERS, "x * y; integers wrap.", freedom=_CONTRACT)
div = elementwise("div", "x y", np.true_divide, FLOATS, "x / y, correctly rounded.",
                  freedom=APPROXIMATE)
floordiv = elementwise("floordiv", "x y", numerics.floor_divide, NUMBERS,
                       "floor(x / y), as numpy.floor_divide: x // 0 is 0 for integers, and x / 0 "
                       "for floats." + _error("floordiv"))
mod = elementwise("mod", "x y", numerics.remainder, NUMBERS,
                  "x - floor(x / y) * y, rounded once, with the sign of y, as numpy.remainder: "
                  "x % 0 is 0 for integers and NaN for floats.")
truncdiv = elementwise("truncdiv", "x y", numerics.truncating_divide, INTEGERS,
                       "x / y rounded towards zero; of y = 0, 0.")
truncmod = elementwise("truncmod", "x y", numerics.truncating_remainder, INTEGERS,
                       "x - truncdiv(x, y) * y, with the sign of x; of y = 0, 0.")
neg = elementwise("neg", "x", np.negative, NUMBERS, "-x; -0.0 of 0.0; unsigned wraps.")
absolute = elementwise("absolute", "x", np.abs, NUMBERS, "|x|; of the least integer, itself.")
minimum = elementwise("minimum", "x y", np.minimum, PLAIN,
                      "The lesser; NaN if either is NaN; of 0.0 and -0.0 either.")
maximum = elementwise("maximum", "x y", np.maximum, PLAIN,
                      "The greater; NaN if either is NaN; of 0.0 and -0.0 either.")
fmin = elementwise("fmin", "x y", np.fmin, FLOATS,
                   "The lesser; the other one if one is NaN; of 0.0 and -0.0 either.")
fmax = elementwise("fmax", "x y", np.fmax, FLOATS,
                   "The greater; the other one if one is NaN; of 0.0 and -0.0 either.")
fma = elementwise("fma", "x y z", numerics.fma, FLOATS, "x * y + z, rounded once.")
power = elementwise("power", "x y", numerics.power, NUMBERS,
                    "x ** y; integers wrap, and a negative integer y gives 0 unless |x| is 1."
                    + _error("power"))

# bits -----------------------------------------------------------------------------------------
and_ = elementwise("and", "x y", np.bitwise_and, BITS, "x & y.")
or_ = elementwise("or", "x y", np.bitwise_or, BITS, "x | y.")
xor = elementwise("xor", "x y", np.bitwise_xor, BITS, "x ^ y.")
invert = elementwise("invert", "x", np.invert, BITS, "~x; not x for bools.")
shl = elementwise("shl", "x y", np.left_shift, INTEGERS,
                  "x << y; 0 when y is not in [0, bits), as numpy.left_shift.")
shr = elementwise("shr", "x y", np.right_shift, INTEGERS,
                  "x >> y, arithmetic if signed; all sign bits when y is not in [0, bits).")
umulhi = elementwise("umulhi", "x y", numerics.multiply_high, WORDS,
                     "High half of the product of x and y taken as unsigned.")
popc = elementwise("popc", "x", numerics.population_count, WORDS, "Number of bits set.")
clz = elementwise("clz", "x", numerics.leading_zeros, WORDS, "Number of leading zero bits.")
ffs = elementwise("ffs", "x", numerics.first_set, WORDS, "1 + index of the lowest set bit, or 0.")

# comparisons ----------------------------------------------------------------------------------
eq = predicate("eq", "x y", np.equal, "x == y; false if either is NaN.", PLAIN)
ne = predicate("ne", "x y", np.not_equal, "x != y; true if either is NaN.", PLAIN)
lt = predicate("lt", "x y", np.less, "x < y; false if either is NaN.", PLAIN)
le = predicate("le", "x y", np.less_equal, "x <= y; false if either is NaN.", PLAIN)
gt = predicate("gt", "x y", np.greater, "x > y; false if either is NaN.", PLAIN)
ge = predicate("ge", "x y", np.greater_equal, "x >= y; false if either is NaN.", PLAIN)
isnan = predicate("isnan", "x", np.isnan, "Whether x is NaN.", FLOATS)
isinf = predicate("isinf", "x", np.isinf, "Whether x is infinite.", FLOATS)
isfinite = predicate("isfinite", "x", np.isfinite, "Whether x is neither NaN nor infinite.", FLOATS)

# mathematics: float16 and bfloat16 are computed in float32 and rounded ------------------------
_MATH = (
    ("exp", Wide(np.exp), "e ** x."),
    ("exp2", Wide(np.exp2), "2 ** x."),
    ("expm1", Wide(np.expm1), "e ** x - 1, exact near 0."),
    ("log", Wide(np.log), "Natural logarithm; -inf of 0, NaN below."),
    ("log2", Wide(np.log2), "Logarithm to base 2; -inf of 0, NaN below."),
    ("log10", Wide(np.log10), "Logarithm to base 10; -inf of 0, NaN below."),
    ("log1p", Wide(np.log1p), "log(1 + x), exact near 0; -inf of -1, NaN below."),
    ("sqrt", Wide(np.sqrt), "Square root, correctly rounded; NaN below 0, -0.0 of -0.0."),
    ("rsqrt", numerics.reciprocal_sqrt, "1 / sqrt(x); infinite at 0, NaN below."),
    ("cbrt", Wide(np.cbrt), "Cube root, of either sign."),
    ("sin", Wide(np.sin), "Sine of x radians; NaN of an infinity."),
    ("cos", Wide(np.cos), "Cosine of x radians; NaN of an infinity."),
    ("tan", Wide(np.tan), "Tangent of x radians; NaN of an infinity."),
    ("asin", Wide(np.arcsin), "Arc sine in radians; NaN outside [-1, 1]."),
    ("acos", Wide(np.arccos), "Arc cosine in radians; NaN outside [-1, 1]."),
    ("atan", Wide(np.arctan), "Arc tangent in radians."),
    ("sinh", Wide(np.sinh), "Hyperbolic sine."),
    ("cosh", Wide(np.cosh), "Hyperbolic cosine."),
    ("tanh", Wide(np.tanh), "Hyperbolic tangent."),
    ("asinh", Wide(np.arcsinh), "Inverse hyperbolic sine."),
    ("acosh", Wide(np.arccosh), "Inverse hyperbolic cosine; NaN below 1."),
    ("atanh", Wide(np.arctanh), "Inverse hyperbolic tangent; infinite at -1 and 1, NaN outside."),
    ("erf", numerics.erf, "Error function."),
    ("erfc", numerics.erfc, "1 - erf(x), exact for large x."),
    ("gamma", numerics.gamma, "Gamma function; NaN of negative integers, infinite at 0."),
    ("lgamma", numerics.lgamma,
     "Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ..."),
    ("floor", Wide(np.floor), "Greatest integer not above x, a float; -0.0 of -0.0."),
    ("ceil", Wide(np.ceil), "Least integer not below x, a float; -0.0 of (-1, -0.0]."),
    ("trunc", Wide(np.trunc), "Nearest integer towards zero, a float, with the sign of x."),
    ("rint", Wide(np.rint), "Nearest integer, ties to even, a float, with the sign of x."),
)
_BY_INSTRUCTION = ("exp", "exp2", "sqrt", "rsqrt")
for _name, _function, _doc in _MATH:
    globals()[_name] = elementwise(_name, "x", _function, FLOATS, _doc + _error(_name),
                                   freedom=APPROXIMATE if _name in _BY_INSTRUCTION else "")
atan2 = elementwise("atan2", "x y", Wide(np.arctan2), FLOATS,
                    "Angle in radians, in [-pi, pi], of the point of abscissa y and ordinate x."
                    + _error("atan2"))
hypot = elementwise("hypot", "x y", Wide(np.hypot), FLOATS,
                    "sqrt(x*x + y*y) without overflow; infinite if either is, even beside NaN."
                    + _error("hypot"))
copysign = elementwise("copysign", "x y", np.copysign, FLOATS, "|x| with the sign of y, NaN too.")
nextafter = elementwise("nextafter", "x y", numerics.next_after, FLOATS,
                        "The next float of the dtype after x towards y; y if they are equal.")


@op(PURE | ELEMENTWISE)
def select(condition, x, y) -> TileType:
    """x where condition, else y.

    condition: bool tile; x, y: tiles of its shape and of one dtype (any, pointers too).
    Source: numpy.where.
    """
    require(condition.dtype == bool_, "where: condition must be bool, got {}", condition)
    require(x == y, "where: given {} and {}, accepted operands of one type", x, y)
    require(condition.shape == x.shape, "where: given condition {} and {}, accepted one shape",
            condition, x)
    return x


@select.numpy
def _(condition, x, y):
    return np.where(condition, x, y)

"""NumPy's functions of each element that are a few operations of the language."""

from __future__ import annotations

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.types import uint8
from blocknumba.typing.function import function
from blocknumba.typing.functions.create import cast, zeros_like
from blocknumba.typing.functions.elementwise import (
    BIT_FUNCTIONS, FLOAT_FUNCTIONS, absolute, floating, maximum, where as choose,
)
from blocknumba.typing.functions.reduce import all as all_along, any as any_along
from blocknumba.typing.numpy_functions.parts import (
    accept, double, floats, integers, is_tuple, kind, largest, number, wide, wide_floats,
)

(_copysign, _exp, _exp2, _isfinite, _isinf, _isnan, _log1p, _sin, _trunc) = (
    FLOAT_FUNCTIONS[name] for name in "copysign exp exp2 isfinite isinf isnan log1p sin "
    "trunc".split())
_popc = BIT_FUNCTIONS["popc"]
_PI, _LOG_2, _LOG2_E = 3.141592653589793, 0.6931471805599453, 1.4426950408889634


@function
def where(context, condition, x=None, y=None):
    """x where condition, else y, as bn.where.   Errors: a condition alone."""
    require(x is not None and y is not None, "np.where: given a condition alone, accepted "
            "np.where(condition, x, y)", error=BlockTypeError,
            hint="how many elements there are is known at run time only: np.argmax(condition) is "
                 "the first, and bn.where(condition, x, 0) keeps all places")
    return choose.rule(context, condition, x, y)


def square(x):
    """x * x; of a bool an int8."""
    x = number("square", x)
    return x * x


def sign(x):
    """-1, 0 or 1, of x's dtype; NaN of NaN."""
    of = kind("sign", x)
    accept(of != "bool", "np.sign: given bool, accepted numbers")
    if of == "uint":
        return choose(x > 0, 1, x)
    if of == "int":
        return choose(x > 0, 1, choose(x < 0, -1, x))
    return choose(x > 0, 1, choose(x < 0, -1, choose(x == 0, 0, x)))


def signbit(x):
    """Whether the sign is negative, as that of -0.0 is."""
    if kind("signbit", x) == "float":
        return _copysign(1, x) < 0
    return x < 0


def positive(x):
    """x.   Errors: a bool."""
    accept(kind("positive", x) != "bool", "np.positive: given bool, accepted numbers")
    return x


def conjugate(x):
    """x, which is real; of a bool an int8."""
    return number("conjugate", x)


def imag(x):
    """Zeros of x's shape and dtype."""
    return zeros_like(x)


def fabs(x):
    """|x| as a float."""
    return absolute(floating("fabs", x))


def reciprocal(x):
    """1 / x of floats."""
    accept(kind("reciprocal", x) == "float", "np.reciprocal: accepted floats; of ints use 1 / x")
    return 1 / x


def deg2rad(x):
    """Degrees in radians."""
    return floating("deg2rad", x) * (_PI / 180)


def rad2deg(x):
    """Radians in degrees."""
    return floating("rad2deg", x) * (180 / _PI)


def fmod(x, y):
    """The remainder of x / y with the sign of x; of ints 0 where y is."""
    if kind("fmod", x, y) == "float":
        x, y = floats(x, y)
        return _copysign(absolute(x) % absolute(y), x)
    rest = x % y
    return choose((rest != 0) & ((x < 0) != (y < 0)), rest - y, rest)


def divided(x, y):
    """(x // y, x % y)."""
    return x // y, x % y


def modf(x):
    """(fraction, whole part) of x, both with its sign."""
    x = floating("modf", x)
    whole = _trunc(x)
    return _copysign(choose(_isinf(x), 0, x - whole), x), whole


def heaviside(x, at_zero):
    """0 where x is negative, 1 where it is positive, at_zero where it is 0; NaN of NaN."""
    x, at_zero = floats(x, at_zero)
    return choose(x > 0, 1, choose(x < 0, 0, choose(x == 0, at_zero, x)))


def logaddexp(x, y):
    """log(exp(x) + exp(y))."""
    of = floats(x, y)[0].dtype
    x, y = wide_floats(x, y)
    return cast(choose(x == y, x + _LOG_2, maximum(x, y) + _log1p(_exp(-absolute(x - y)))), of)


def logaddexp2(x, y):
    """log2(2**x + 2**y)."""
    of = floats(x, y)[0].dtype
    x, y = wide_floats(x, y)
    more = _LOG2_E * _log1p(_exp2(-absolute(x - y)))
    return cast(choose(x == y, x + 1, maximum(x, y) + more), of)


def float_power(x, y):
    """x ** y in float64."""
    return double("float_power", x) ** double("float_power", y)


def sinc(x):
    """sin(pi * x) / (pi * x); 1 at 0."""
    turned = _PI * floating("sinc", x)
    return choose(turned == 0, 1, _sin(turned) / turned)


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """x with nan for NaN and with posinf, neginf for infinities: the greatest floats if None."""
    if kind("nan_to_num", x) != "float":
        return x
    greatest = largest(x)
    above = greatest if posinf is None else posinf
    below = -greatest if neginf is None else neginf
    bounded = choose(isposinf(x), above, choose(isneginf(x), below, x))
    return cast(choose(_isnan(x), nan, bounded), x.dtype)


def isposinf(x):
    """Whether x is +inf."""
    return _isinf(x) & (x > 0)


def isneginf(x):
    """Whether x is -inf."""
    return _isinf(x) & (x < 0)


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|a - b| <= atol + rtol * |b|; infinities are close to themselves, NaN if equal_nan."""
    if kind("isclose", a, b) != "float":
        a, b = double("isclose", a), double("isclose", b)
    is_close = (absolute(a - b) <= atol + rtol * absolute(b)) & _isfinite(b) | (a == b)
    return is_close | _isnan(a) & _isnan(b) if equal_nan else is_close


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close; see isclose."""
    return all_along(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2):
    """Whether shapes and all elements are equal."""
    return a1.shape == a2.shape and all_along(a1 == a2)


def gcd(x, y):
    """The greatest common divisor of ints, not negative."""
    x, y = integers("gcd", x, y)
    x, y = x + y * 0, y + x * 0  # of one shape and dtype
    while any_along(y != 0):
        x, y = choose(y == 0, x, y), choose(y == 0, y, x % y)
    return absolute(x)  # the lowest int before, whose absolute value is negative, loses nothing


def lcm(x, y):
    """The least common multiple of ints, not negative; 0 where one is 0."""
    common = gcd(x, y)
    return choose(common == 0, common, absolute(x // choose(common == 0, 1, common)) * absolute(y))


def bitwise_count(x):
    """The number of bits of |x| that are set, uint8."""
    x = integers("bitwise_count", number("bitwise_count", x))
    return cast(_popc(absolute(wide(x))), uint8)


def select(condlist, choicelist, default=0):
    """For each element the first choice whose condition is true, else default."""
    accept(len(condlist) == len(choicelist), "np.select: accepted as many choices as conditions")
    found = default
    for condition, choice in zip(condlist[::-1], choicelist[::-1]):
        found = choose(condition, choice, found)
    return found


def isin(element, test_elements, invert=False):
    """Whether each element is among test_elements, a tuple of numbers or a tile."""
    if is_tuple(test_elements):
        found = zeros_like(element) != 0
        for one in test_elements:
            found = found | (element == one)
    else:
        rank = len(element.shape)
        values = test_elements.reshape((1,) * rank + (-1,))
        found = any_along(element[..., None] == values, axis=-1)
    return ~found if invert else found

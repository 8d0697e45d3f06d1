"""Functions of floats that the language has, or that are a few of its operations.

Functions with a counterpart in the language are that counterpart: results are NumPy's, fast_* and
_rn variants too.   Source: CUDA libdevice User's Guide.
"""

from __future__ import annotations

from blocknumba import library
from blocknumba.libdevice.parts import (
    as_float, as_floats, exponent_of, mantissa_of, power_of_two, same_dtype,
)
from blocknumba.tile_ir.ir.types import float64, int32, int64
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import (
    FLOAT_FUNCTIONS, absolute as abs, clamp, fma, maximum, where as _where,
)

(exp, exp2, expm1, log, log2, log10, log1p, sqrt, rsqrt, cbrt, sin, cos, tan, asin, acos, atan,
 sinh, cosh, tanh, asinh, acosh, atanh, erf, erfc, floor, ceil, trunc, rint, atan2, hypot,
 copysign, nextafter, isnan, isinf, fmin, fmax) = (FLOAT_FUNCTIONS[name] for name in (
     "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh "
     "tanh asinh acosh atanh erf erfc floor ceil trunc rint atan2 hypot copysign nextafter isnan "
     "isinf fmin fmax").split())
finitef = isfinited = FLOAT_FUNCTIONS["isfinite"]
isnanf = isnand = isnan
isinff = isinfd = isinf
tgamma, lgamma = FLOAT_FUNCTIONS["gamma"], FLOAT_FUNCTIONS["lgamma"]
fabs, nearbyint = abs, rint
cdiv, fdiv, div_rn, sqrt_rn = library.cdiv, library.fdiv, library.div_rn, library.sqrt_rn
fast_expf, fast_logf, fast_log2f, fast_log10f = exp, log, log2, log10
fast_sinf, fast_cosf, fast_tanf, fast_tanhf = sin, cos, tan, tanh
fast_dividef = fast_fdividef = library.div_rn
fma_rn = fma


def pow(x, y):
    """x ** y.   Source: numpy.power."""
    return x ** y


fast_powf = pow


def exp10(x):
    """10 ** x."""
    return 10.0 ** x


fast_exp10f = exp10


def add_rn(x, y):
    """x + y, rounded to nearest."""
    return x + y


def sub_rn(x, y):
    """x - y, rounded to nearest."""
    return x - y


def mul_rn(x, y):
    """x * y, rounded to nearest."""
    return x * y


def rcp_rn(x):
    """1 / x, rounded to nearest."""
    return 1 / x


def rsqrt_rn(x):
    """1 / sqrt(x); of float32, rounded to nearest."""
    value = as_float(x)
    if value.dtype == float64:
        return rsqrt(value)
    return same_dtype(1 / sqrt(cast(value, float64)), x)


def fmod(x, y):
    """The remainder of x / y with the sign of x, exact.   Source: numpy.fmod."""
    rest = abs(x) % abs(y)
    return copysign(rest, x)


def fdim(x, y):
    """x - y where that is positive, else 0; NaN where x or y is."""
    difference = x - y
    return _where(difference <= 0, 0, difference)


def saturatef(x):
    """x limited to [0, 1]; 0 for NaN."""
    return _where(isnan(x), 0, clamp(x, 0, 1))


def round(x):
    """The nearest integer, halves away from zero: C's round, not NumPy's, which is rint."""
    whole = trunc(x)
    return _where(abs(x - whole) >= 0.5, whole + copysign(1, x), whole)


def llrint(x):
    """The nearest integer as int64, ties to even."""
    return cast(rint(x), int64)


def llround(x):
    """The nearest integer as int64, halves away from zero."""
    return cast(round(x), int64)


def signbit(x):
    """1 where the sign bit is set, -0.0 and -NaN included, else 0, as int32."""
    return cast(copysign(1, x) < 0, int32)


signbitf = signbitd = signbit


def rcbrt(x):
    """1 / cbrt(x)."""
    return 1 / cbrt(x)


def rhypot(x, y):
    """1 / hypot(x, y)."""
    return 1 / hypot(x, y)


def sincos(x):
    """(sin(x), cos(x))."""
    return sin(x), cos(x)


fast_sincosf = sincos


def rcp64h(x):
    """The upper 32 bits of 1 / x of a float64; the others are 0."""
    bits = cast(1 / cast(x, float64), int64, bitcast=True)
    return cast(bits >> 32 << 32, float64, bitcast=True)


def powi(x, n):
    """x to an integer power n.   Error: that of the op power; of float32, one unit."""
    value = as_float(x)
    power = cast(value, float64) ** cast(cast(n, int32), float64)
    return same_dtype(power, x)


def frexp(x):
    """(m, e) with x = m * 2**e, 0.5 <= |m| < 1, e int32; (x, 0) of 0, infinities and NaN."""
    value = as_float(x)
    is_plain = (abs(value) < float("inf")) & (value != 0)
    mantissa = _where(is_plain, 0.5 * mantissa_of(value), value)
    return same_dtype(mantissa, x), _where(is_plain, exponent_of(value) + 1, 0)


def ldexp(x, n):
    """x * 2**n, rounded once.   n: ints."""
    value = as_float(x)
    is_plain = (abs(value) < float("inf")) & (value != 0)
    least, greatest = (-1140, 1100) if value.dtype == float64 else (-190, 190)
    power = clamp(exponent_of(value) + clamp(cast(n, int32), -5000, 5000), least, greatest)
    half = power >> 1
    scaled = mantissa_of(value) * power_of_two(power - half, value) * power_of_two(half, value)
    return same_dtype(_where(is_plain, scaled, value), x)


scalbn = ldexp


def logb(x):
    """The exponent of x as a float: -inf of 0, inf of infinities."""
    value = as_float(x)
    exponent = cast(exponent_of(value), value.dtype)
    size = abs(value)
    special = _where(value == 0, -float("inf"), size)
    return same_dtype(_where((size < float("inf")) & (value != 0), exponent, special), x)


def ilogb(x):
    """The exponent of x, int32: the least one of 0 and NaN, the greatest of infinities."""
    value = as_float(x)
    size = abs(value)
    special = _where(size == float("inf"), 2**31 - 1, -2**31)
    return _where((size < float("inf")) & (value != 0), exponent_of(value), special)


def modf(x):
    """(fraction, whole part) of x, both with its sign."""
    whole = trunc(x)
    fraction = _where(isinf(x), 0, x - whole)
    return copysign(fraction, x), whole


def remainder(x, y):
    """x - n * y, exact, n the integer nearest to x / y, even in ties.   Source: C's remainder."""
    rest, _ = remquo(x, y)
    return rest


def remquo(x, y):
    """(remainder(x, y), the low three bits of n with the sign of x / y, int32)."""
    left, right = as_floats(x, y)
    a, b = abs(left), abs(right)
    rest = a % (b * 8)
    rest = _where(b * 8 == float("inf"), a, rest)
    count = cast(rest, int32) * 0
    for step in (4, 2, 1):
        is_more = (rest >= b * step) & (b > 0)
        rest = _where(is_more, rest - b * step, rest)
        count += _where(is_more, step, 0)
    # rest < b; where b / 2 is not exact, neither is twice the rest of a tie
    other = b - rest
    is_up = (rest > other) | ((rest == other) & (count & 1 == 1))
    rest = _where(is_up, -other, rest)
    count = (count + _where(is_up, 1, 0)) & 7
    bad = (a == float("inf")) | (b == 0) | (a != a) | (b != b)
    rest = _where(b == float("inf"), a, rest)
    rest = _where(bad, float("nan"), rest)
    count = _where(bad | (b == float("inf")), 0, count)
    is_below = copysign(1, left) < 0
    is_negative = is_below != (copysign(1, right) < 0)
    signed = _where(rest == 0, copysign(rest, left), _where(is_below, -rest, rest))
    return same_dtype(signed, x + y), _where(is_negative, -count, count)

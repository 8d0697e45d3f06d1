"""CUDA's libdevice by its names, as `bn.libdevice.*` and Triton's `tl.math.*`.

Functions with a counterpart in the language are that counterpart: results are NumPy's, fast_* and
_rn variants too.   Source: CUDA libdevice User's Guide.
"""

from __future__ import annotations

from types import FunctionType

from blocknumba import library
from blocknumba.tile_ir.ir.types import float32, float64, int32, int64, uint32, uint64
from blocknumba.typing.function import BlockFunction
from blocknumba.typing.functions.create import cast
from blocknumba.typing.functions.elementwise import (
    BIT_FUNCTIONS, FLOAT_FUNCTIONS, absolute as abs, clamp, fma, maximum, minimum, umulhi,
    where as _where,
)

(exp, exp2, expm1, log, log2, log10, log1p, sqrt, rsqrt, cbrt, sin, cos, tan, asin, acos, atan,
 sinh, cosh, tanh, asinh, acosh, atanh, erf, erfc, floor, ceil, trunc, rint, atan2, hypot,
 copysign, nextafter, isnan, isinf, fmin, fmax) = (FLOAT_FUNCTIONS[name] for name in (
     "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh "
     "tanh asinh acosh atanh erf erfc floor ceil trunc rint atan2 hypot copysign nextafter isnan "
     "isinf fmin fmax").split())
finitef = isfinited = FLOAT_FUNCTIONS["isfinite"]
tgamma, lgamma = FLOAT_FUNCTIONS["gamma"], FLOAT_FUNCTIONS["lgamma"]
popc, clz, ffs = (BIT_FUNCTIONS[name] for name in ("popc", "clz", "ffs"))
fabs, llabs, nearbyint, max, min = abs, abs, rint, maximum, minimum
cdiv, fdiv, div_rn, sqrt_rn = library.cdiv, library.fdiv, library.div_rn, library.sqrt_rn
fast_expf, fast_logf, fast_log2f, fast_log10f = exp, log, log2, log10
fast_sinf, fast_cosf, fast_tanf, fast_tanhf = sin, cos, tan, tanh
fast_dividef, fma_rn = library.fdiv, fma


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
    """1 / sqrt(x)."""
    return rsqrt(x)


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


def rcbrt(x):
    """1 / cbrt(x)."""
    return 1 / cbrt(x)


def rhypot(x, y):
    """1 / hypot(x, y)."""
    return 1 / hypot(x, y)


def hadd(x, y):
    """(x + y) // 2 without overflow."""
    return (x & y) + ((x ^ y) >> 1)


def rhadd(x, y):
    """(x + y + 1) // 2 without overflow."""
    return (x | y) - ((x ^ y) >> 1)


def mulhi(x, y):
    """High half of the product of two int32."""
    return cast((cast(x, int64) * cast(y, int64)) >> 32, int32)


def float_as_int(x):
    """The bits of a float32 as int32."""
    return cast(x, int32, bitcast=True)


def float_as_uint(x):
    """The bits of a float32 as uint32."""
    return cast(x, uint32, bitcast=True)


def int_as_float(x):
    """The float32 of the bits of an int32."""
    return cast(x, float32, bitcast=True)


def uint_as_float(x):
    """The float32 of the bits of a uint32."""
    return cast(x, float32, bitcast=True)


def double_as_longlong(x):
    """The bits of a float64 as int64."""
    return cast(x, int64, bitcast=True)


def longlong_as_double(x):
    """The float64 of the bits of an int64."""
    return cast(x, float64, bitcast=True)


def _conversion(name, dtype, rounded):
    def convert(x):
        return cast(x if rounded is None else rounded(x), dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"x as {dtype}, rounded as the last two letters say."
    return convert


_INTEGERS = {"int": int32, "uint": uint32, "ll": int64, "ull": uint64}
_ROUNDINGS = {"rn": rint, "rz": trunc, "rd": floor, "ru": ceil}
for _float in ("float", "double"):
    for _integer, _dtype in _INTEGERS.items():
        for _mode, _rounded in _ROUNDINGS.items():
            _name = f"{_float}2{_integer}_{_mode}"
            globals()[_name] = _conversion(_name, _dtype, _rounded)
        _name = f"{_integer}2{_float}_rn"
        globals()[_name] = _conversion(_name, float32 if _float == "float" else float64, None)
double2float_rn = _conversion("double2float_rn", float32, None)

_FROM_ELSEWHERE = frozenset(("cast",))  # what the functions above are made with
__all__ = sorted(name for name, value in globals().items() if name not in _FROM_ELSEWHERE
                 and not name.startswith("_") and isinstance(value, (BlockFunction, FunctionType)))

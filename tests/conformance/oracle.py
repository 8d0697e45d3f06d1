"""Results of elementwise ops for one element, in exact arithmetic of Python numbers.

Nothing here uses NumPy's arithmetic or blocknumba's own meanings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from blocknumba.tile_ir.ir.types import DType

Number = bool | int | float


@dataclass(frozen=True)
class Format:
    """A binary float format.

    precision: bits of the significand; least, greatest: exponents of its normal numbers;
    largest: the greatest finite number; beyond: what overflow gives.
    """

    precision: int
    least: int
    greatest: int
    largest: float
    beyond: float = math.inf


FORMATS = {
    "float16": Format(11, -14, 15, 65504.0),
    "bfloat16": Format(8, -126, 127, (2 - 2.0**-7) * 2.0**127),
    "float32": Format(24, -126, 127, (2 - 2.0**-23) * 2.0**127),
    "float64": Format(53, -1022, 1023, (2 - 2.0**-52) * 2.0**1023),
    "float8_e5m2": Format(3, -14, 15, 57344.0),
    "float8_e4m3fn": Format(4, -6, 8, 448.0, math.nan),
}


def spacing(x: Fraction, to: Format) -> Fraction:
    """The distance between the numbers of a format around x, which is not 0."""
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    return Fraction(2) ** (max(exponent, to.least) - to.precision + 1)


def rounded(x: Fraction, dtype: DType, zero: float = 0.0, towards_zero: bool = False) -> float:
    """x rounded to a float dtype; zero: what to give for 0 itself, which has no sign here."""
    to = FORMATS[dtype.name]
    if x == 0:
        return zero
    step = spacing(x, to)
    count = math.trunc(x / step) if towards_zero else round(x / step)
    result = count * step
    if abs(result) > Fraction(to.largest):
        result = to.largest if towards_zero else to.beyond
        return result if x > 0 else -result
    return math.copysign(float(result), -1 if x < 0 else 1)


def wrapped(x: int, dtype: DType) -> int:
    """x modulo 2**bits, as the dtype has it."""
    x &= (1 << dtype.bits) - 1
    return x - (1 << dtype.bits) if dtype.is_signed and x >> dtype.bits - 1 else x


def converted(x: Number, given: DType, to: DType, towards_zero: bool = False) -> Number:
    """The op `cast` of one element."""
    if to.kind == "bool":
        return x != 0
    if to.is_float:
        if given.is_float and not math.isfinite(x):
            finite_only = math.isnan(FORMATS[to.name].beyond)
            return math.nan if math.isnan(x) or finite_only else x
        return rounded(Fraction(x), to, float(x), towards_zero)
    if not given.is_float:
        return wrapped(int(x), to)
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return to.maximum if x > 0 else to.minimum
    return min(max(math.trunc(x), to.minimum), to.maximum)


# integers -------------------------------------------------------------------------------------

def _integer_power(x: int, y: int, dtype: DType) -> int:
    if y >= 0:
        return pow(x, y, 1 << dtype.bits)
    return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)


def _bits_of(x: int, dtype: DType) -> int:
    return x % (1 << dtype.bits)


def _truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


INTEGER: dict[str, Callable[..., int]] = {
    "add": lambda x, y, d: x + y,
    "sub": lambda x, y, d: x - y,
    "mul": lambda x, y, d: x * y,
    "floordiv": lambda x, y, d: x // y if y else 0,
    "mod": lambda x, y, d: x % y if y else 0,
    "truncdiv": lambda x, y, d: _truncated(x, y) if y else 0,
    "truncmod": lambda x, y, d: x - _truncated(x, y) * y if y else 0,
    "neg": lambda x, d: -x,
    "absolute": lambda x, d: abs(x),
    "minimum": lambda x, y, d: min(x, y),
    "maximum": lambda x, y, d: max(x, y),
    "power": _integer_power,
    "and": lambda x, y, d: x & y,
    "or": lambda x, y, d: x | y,
    "xor": lambda x, y, d: x ^ y,
    "invert": lambda x, d: not x if d.kind == "bool" else ~x,
    "shl": lambda x, y, d: x << y if 0 <= y < d.bits else 0,
    "shr": lambda x, y, d: x >> (y if 0 <= y < d.bits else d.bits),
    "umulhi": lambda x, y, d: _bits_of(x, d) * _bits_of(y, d) >> d.bits,
    "popc": lambda x, d: _bits_of(x, d).bit_count(),
    "clz": lambda x, d: d.bits - _bits_of(x, d).bit_length(),
    "ffs": lambda x, d: (x & -x).bit_length(),
}
COMPARISON: dict[str, Callable[..., bool]] = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
    "isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite,
}


# floats: exact --------------------------------------------------------------------------------

def _finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _sum(x: float, y: float, d: DType) -> float:
    return rounded(Fraction(x) + Fraction(y), d, x + y) if _finite(x, y) else x + y


def _product(x: float, y: float, d: DType) -> float:
    sign = math.copysign(1, x) * math.copysign(1, y)
    if not _finite(x, y):
        return x * y
    return rounded(Fraction(x) * Fraction(y), d, math.copysign(0.0, sign))


def _quotient(x: float, y: float, d: DType) -> float:
    sign = math.copysign(1, x) * math.copysign(1, y)
    if math.isnan(x) or math.isnan(y) or (math.isinf(x) and math.isinf(y)):
        return math.nan
    if y == 0:
        return math.nan if x == 0 else math.copysign(math.inf, sign)
    if math.isinf(x) or math.isinf(y):
        return math.copysign(0.0 if math.isinf(y) else math.inf, sign)
    return rounded(Fraction(x) / Fraction(y), d, math.copysign(0.0, sign))


def _fma(x: float, y: float, z: float, d: DType) -> float:
    if not _finite(x, y):
        return x * y + z
    if not _finite(z):
        return z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    both_zero = (x == 0 or y == 0) and z == 0
    return rounded(exact, d, x * y + z if both_zero else 0.0)


def _floored(x: float, y: float, d: DType) -> float:
    if y == 0 or not _finite(x, y):
        if math.isinf(y) and math.isfinite(x):
            return math.copysign(0.0, math.copysign(1, x) * y) if x == 0 or (x < 0) == (y < 0) \
                else -1.0
        return math.nan if math.isinf(x) and y != 0 else _quotient(x, y, d)
    return rounded(Fraction(math.floor(Fraction(x) / Fraction(y))), d,
                   math.copysign(0.0, math.copysign(1, x) * math.copysign(1, y)))


def _modulo(x: float, y: float, d: DType) -> float:
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return math.nan
    if math.isinf(y):
        return math.copysign(x, y) if x == 0 else x if (x < 0) == (y < 0) else y
    return rounded(Fraction(x) % Fraction(y), d, math.copysign(0.0, y))


def _lesser(x: float, y: float, d: DType) -> float:
    return math.nan if math.isnan(x) or math.isnan(y) else min(x, y)


def _greater(x: float, y: float, d: DType) -> float:
    return math.nan if math.isnan(x) or math.isnan(y) else max(x, y)


def _after(x: float, y: float, d: DType) -> float:
    if math.isnan(x) or math.isnan(y):
        return math.nan
    to = FORMATS[d.name]
    if x == y:
        return y
    if math.isinf(x):
        return math.copysign(to.largest, x)
    up = x < y
    if x == 0:
        return math.copysign(float(Fraction(2) ** (to.least - to.precision + 1)), 1 if up else -1)
    step = spacing(Fraction(x), to)
    outward = up == (x > 0)
    # below a power of two the numbers are twice as dense
    if not outward and spacing(Fraction(x) - (step / 4 if x > 0 else -step / 4), to) < step:
        step /= 2
    result = Fraction(x) + (step if up else -step)
    return rounded(result, d, math.copysign(0.0, x))


def _integral(function: Callable[[float], int]) -> Callable[[float, DType], float]:
    def one(x: float, d: DType) -> float:
        return math.copysign(function(x), x) if math.isfinite(x) else x
    return one


EXACT: dict[str, Callable[..., float]] = {
    "add": _sum,
    "sub": lambda x, y, d: _sum(x, -y, d),
    "mul": _product,
    "div": _quotient,
    "mod": _modulo,
    "fma": _fma,
    "neg": lambda x, d: -x,
    "absolute": lambda x, d: abs(x),
    "minimum": _lesser,
    "maximum": _greater,
    "fmin": lambda x, y, d: y if math.isnan(x) else x if math.isnan(y) else min(x, y),
    "fmax": lambda x, y, d: y if math.isnan(x) else x if math.isnan(y) else max(x, y),
    "sqrt": lambda x, d: math.nan if x < 0 else x if x == 0 or not _finite(x)
    else rounded(Fraction(math.sqrt(x)), d),
    "copysign": lambda x, y, d: math.copysign(x, y),
    "nextafter": _after,
    "floor": _integral(math.floor),
    "ceil": _integral(math.ceil),
    "trunc": _integral(math.trunc),
    "rint": _integral(round),
}


def _exactly(kind: str, *values: float) -> Fraction:
    """The exact result of finite operands; of a root, twice as many digits as are compared."""
    if kind == "sqrt":
        numerator, denominator = values[0].as_integer_ratio()
        shift = 1 << 4400
        return Fraction(math.isqrt(numerator * denominator * shift * shift), denominator * shift)
    x, y, *z = map(Fraction, values)
    return {"add": x + y, "mul": x * y, "div": x / y if y else Fraction(0),
            "fma": x * y + sum(z)}[kind]


def _directed(kind: str, mode: str) -> Callable[..., float]:
    """An operation rounded down ("rd"), up ("ru") or towards zero ("rz")."""
    def one(*operands: object) -> float:
        *values, d = operands
        if kind == "sqrt" and values[0] < 0:
            return math.nan
        if kind == "div" and values[1] == 0 or not _finite(*values):
            nearest = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y,
                       "div": lambda x, y: _quotient(x, y, d), "sqrt": lambda x: x,
                       "fma": lambda x, y, z: _fma(x, y, z, d)}
            return nearest[kind](*values)
        exact = _exactly(kind, *values)
        is_negative = [math.copysign(1, v) < 0 for v in values]
        if exact == 0:
            if kind in ("mul", "div"):
                return -0.0 if is_negative[0] != is_negative[1] else 0.0
            if kind == "sqrt":
                return values[0]
            terms = is_negative if kind == "add" else [is_negative[0] != is_negative[1],
                                                       is_negative[2]]
            return -0.0 if all(terms) or mode == "rd" and any(terms) else 0.0
        low = rounded(exact, d, towards_zero=True)
        if Fraction(low) == exact or mode == "rz" or (mode == "ru") == (exact < 0):
            return low
        return _beyond(low, exact > 0, d)
    return one


def _beyond(x: float, is_positive: bool, dtype: DType) -> float:
    """The next value after x away from zero."""
    to = FORMATS[dtype.name]
    if abs(x) == to.largest:
        return math.inf if is_positive else -math.inf
    magnitude = Fraction(abs(x))
    step = spacing(magnitude, to) if magnitude else spacing(Fraction(1, 1 << 5000), to)
    return float(magnitude + step) * (1 if is_positive else -1)


EXACT |= {f"{kind}_{mode}": _directed(kind, mode)
          for kind in ("add", "mul", "div", "sqrt", "fma") for mode in ("rz", "rd", "ru")}


# floats: within the documented error ----------------------------------------------------------

def _guarded(function: Callable[..., float]) -> Callable[..., float]:
    """A function of math, with IEEE's values where it raises."""
    def one(*operands: float) -> float:
        try:
            return function(*operands)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf
    return one


def _log(function: Callable[[float], float], pole: float = 0.0) -> Callable[[float], float]:
    return lambda x: -math.inf if x == pole else _guarded(function)(x)


def _power(x: float, y: float) -> float:
    odd = math.isfinite(y) and y == math.trunc(y) and math.trunc(y) % 2 == 1
    if x == 0 and y < 0:
        return math.copysign(math.inf, x) if odd else math.inf
    try:
        return math.pow(x, y)
    except ValueError:
        return math.nan
    except OverflowError:
        return -math.inf if x < 0 and odd else math.inf


def _gamma(x: float) -> float:
    near_zero = abs(x) < 1e-300  # where it overflows, with the sign of x
    return math.copysign(math.inf, x) if x == 0 else (
        1 / x if near_zero else _guarded(math.gamma)(x))


def _log_gamma(x: float) -> float:
    whole = math.isfinite(x) and x <= 0 and x == math.floor(x)
    return math.inf if whole else _guarded(math.lgamma)(x)


def _odd(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of the size of x, with the sign of x."""
    return lambda x: math.copysign(_guarded(function)(abs(x)), x)


NEAR: dict[str, Callable[..., float]] = {
    "exp": _guarded(math.exp), "exp2": _guarded(math.exp2 if hasattr(math, "exp2") else
                                                lambda x: 2.0**x),
    "expm1": _guarded(math.expm1),
    "log": _log(math.log), "log2": _log(math.log2), "log10": _log(math.log10),
    "log1p": _log(math.log1p, -1.0),
    "rsqrt": lambda x: math.copysign(math.inf, x) if x == 0 else _guarded(
        lambda v: 1 / math.sqrt(v))(x),
    "cbrt": lambda x: math.cbrt(x),
    "sin": _guarded(math.sin), "cos": _guarded(math.cos), "tan": _guarded(math.tan),
    "asin": _guarded(math.asin), "acos": _guarded(math.acos), "atan": math.atan,
    "sinh": _odd(math.sinh), "cosh": _guarded(math.cosh), "tanh": math.tanh,
    "asinh": math.asinh, "acosh": _guarded(math.acosh),
    "atanh": lambda x: math.copysign(math.inf, x) if abs(x) == 1 else _guarded(math.atanh)(x),
    "erf": math.erf, "erfc": math.erfc, "gamma": _gamma, "lgamma": _log_gamma,
    "atan2": math.atan2, "hypot": math.hypot, "power": _power,
}


def near(name: str, operands: tuple[float, ...], dtype: DType) -> float:
    """A float function that is not exact, computed in float64 and rounded to dtype."""
    if name == "floordiv":
        return _floored(*operands, dtype)
    result = NEAR[name](*operands)
    return rounded(Fraction(result), dtype, result) if math.isfinite(result) else result

"""NumPy numerics of ops that NumPy itself does not have under one name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import ml_dtypes
import numpy as np


class Wide:
    """A NumPy function of floats, computed in float32 for float16 and bfloat16 and then rounded.

    out: an array of the result's type, which may be used for the result.
    """

    def __init__(self, function: Callable[..., np.ndarray]):
        self.function = function

    def __call__(self, *operands: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        dtype = operands[0].dtype
        if dtype.kind in "iub" or dtype.itemsize != 2:
            return self.function(*operands, out=out)
        return self.function(*(x.astype(np.float32) for x in operands)).astype(dtype)


floor_divide = Wide(np.floor_divide)
remainder = Wide(np.remainder)


def _power_by_elements(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """numpy.power of as many exponents as there are results.

    Of one repeated exponent of 0.5 NumPy takes the square root, which differs at -inf and -0.0.
    """
    shape = np.broadcast_shapes(x.shape, y.shape)
    exponents = np.empty(shape or (1,), y.dtype)
    exponents[...] = y
    if not shape:
        return np.power(x.reshape(1), exponents).reshape(())
    return np.power(x, exponents, out=out)


_float_power = Wide(_power_by_elements)


def fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z with one rounding."""
    if x.dtype == np.float64:
        return np.frompyfunc(_exact_fma, 3, 1)(x, y, z).astype(np.float64)
    # the product is exact in float64, and its sum rounded to odd still rounds correctly
    product, addend = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    return _narrowed(_with_sticky_bit(total, np.where(np.isfinite(total), error, 0)), x.dtype)


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x ** y; for integers modulo 2**bits, and the truncated reciprocal when y < 0."""
    if x.dtype.kind not in "iu":
        return _float_power(x, y)
    if x.dtype.kind == "u":
        return np.power(x, y)
    positive = np.power(x, np.where(y < 0, 0, y))
    odd = np.where(y & 1, x, x * x)
    return np.where(y < 0, np.where(np.abs(x) == 1, odd, 0), positive).astype(x.dtype)


def truncating_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x / y of integers, rounded towards zero; 0 where y is 0."""
    quotient = np.floor_divide(x, y)
    rest = x - quotient * y
    is_below = (rest != 0) & ((x < 0) != (y < 0)) & (y != 0)
    return np.where(is_below, quotient + quotient.dtype.type(1), quotient)


def truncating_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x - truncating_divide(x, y) * y; 0 where y is 0."""
    return np.where(y == 0, x.dtype.type(0), np.fmod(x, y))


def reciprocal_sqrt(x: np.ndarray) -> np.ndarray:
    """1 / sqrt(x)."""
    return _narrowed(1 / np.sqrt(x.astype(np.float64)), x.dtype)


def multiply_high(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The high half of the product of two unsigned words."""
    half = x.dtype.itemsize * 4
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    a, b = x.astype(unsigned), y.astype(unsigned)
    mask, shift = unsigned.type((1 << half) - 1), unsigned.type(half)
    a_low, a_high, b_low, b_high = a & mask, a >> shift, b & mask, b >> shift
    middle = a_high * b_low + (a_low * b_low >> shift)
    carry = a_low * b_high + (middle & mask)
    return (a_high * b_high + (middle >> shift) + (carry >> shift)).astype(x.dtype)


def population_count(x: np.ndarray) -> np.ndarray:
    """Number of bits that are set in each element."""
    return np.bitwise_count(x.astype(f"u{x.dtype.itemsize}")).astype(x.dtype)


def leading_zeros(x: np.ndarray) -> np.ndarray:
    """Number of zero bits above the highest set one."""
    width = x.dtype.itemsize * 8
    bits = x.astype(f"u{x.dtype.itemsize}")
    distance = 1
    while distance < width:
        bits |= bits >> bits.dtype.type(distance)
        distance *= 2
    return (width - np.bitwise_count(bits)).astype(x.dtype)


def first_set(x: np.ndarray) -> np.ndarray:
    """1 + the index of the lowest set bit, or 0."""
    bits = x.astype(f"u{x.dtype.itemsize}")
    below = (bits & (~bits + bits.dtype.type(1))) - bits.dtype.type(1)
    return np.where(bits == 0, 0, np.bitwise_count(below) + 1).astype(x.dtype)


def next_after(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The next float after x towards y."""
    if x.dtype.itemsize > 2:
        return np.nextafter(x, y)
    wide, goal = x.astype(np.float32), y.astype(np.float32)
    bits = x.view(np.int16).astype(np.int32)
    # the least float away from zero has bits 1, with the sign of the direction
    outward = np.where(wide == 0, 1, (bits & 0x7FFF) + np.where(np.abs(goal) > np.abs(wide), 1, -1))
    away = np.where(wide == 0, goal > 0, np.sign(goal) == np.sign(wide))
    inward = np.where(wide == 0, 0x8001, (bits & 0x7FFF) - 1)
    sign = np.where(wide == 0, 0, bits & 0x8000)
    moved = (np.where(away, outward, inward) | sign).astype(np.uint16).view(x.dtype)
    moved = np.where(wide == goal, y, moved)
    return np.where(np.isnan(wide) | np.isnan(goal), x + y, moved)


# conversion -----------------------------------------------------------------------------------

# 8-bit float -> float32 values of its 256 codes: a table is several times faster than astype
_FLOAT8_VALUES = {kind: np.arange(256, dtype=np.uint8).view(kind).astype(np.float32)
                  for kind in map(np.dtype, (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))}


def convert(x: np.ndarray, dtype: np.dtype, rounding: str = "nearest") -> np.ndarray:
    """x as dtype; the op `cast` says what happens outside its range."""
    if dtype == x.dtype:
        return x
    if x.dtype in _FLOAT8_VALUES:
        return convert(_FLOAT8_VALUES[x.dtype].take(x.view(np.uint8)), dtype)
    if dtype.kind == "b":
        return x != 0
    if dtype.kind in "iu":
        return x.astype(dtype) if x.dtype.kind in "iub" else _float_to_integer(x, dtype)
    if x.dtype.kind in "iu" and dtype.type not in (np.float16, np.float32, np.float64):
        return _narrowed(_wide_integer(x), dtype)
    if rounding == "saturate":
        greatest = x.dtype.type(ml_dtypes.finfo(dtype).max)
        return _narrowed(np.clip(x, -greatest, greatest), dtype)
    nearest = _narrowed(x, dtype)
    return nearest if rounding == "nearest" else _towards_zero(x, nearest)


def _narrowed(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """x rounded once to dtype, to nearest, ties to even."""
    if x.dtype != np.float64 or dtype.itemsize > 2 or dtype == np.float16:
        return x.astype(dtype)
    # through float32, where ml_dtypes itself would round to nearest a first time
    single = x.astype(np.float32)
    back = single.astype(np.float64)
    error = np.where(np.isfinite(single) & np.isfinite(x), x - back, np.where(
        np.isinf(single) & np.isfinite(x), -back, 0))
    return _with_sticky_bit(single, error).astype(dtype)


def _with_sticky_bit(x: np.ndarray, error: np.ndarray) -> np.ndarray:
    """x + error rounded to odd: towards zero, then the last bit set if that was inexact.

    x: float32 or float64, x + error rounded to nearest.
    """
    inward = np.nextafter(x, x.dtype.type(0))
    beyond = (error != 0) & ((error < 0) != np.signbit(x))
    bits = np.where(beyond, inward, x).view(f"i{x.dtype.itemsize}")
    return (bits | (error != 0)).view(x.dtype)


def _wide_integer(x: np.ndarray) -> np.ndarray:
    """Integers as float64, rounded so that every float of 16 bits or less comes out right."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    low = x & x.dtype.type(0xFFFFFFFF)
    # 33 significant bits: the upper 32, and whether any of the lower is set
    coarse = (x - low) + np.where(low == 0, 0, 1 << 31).astype(x.dtype)
    small = np.abs(x.astype(np.float64)) < 2.0**52
    return np.where(small, x, coarse).astype(np.float64)


def _float_to_integer(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Truncated and saturated; NaN gives 0."""
    bounds = np.iinfo(dtype)
    wide = np.trunc(x.astype(np.float64))
    above = wide >= 2.0 ** (dtype.itemsize * 8 - (dtype.kind == "i"))
    inside = (wide >= bounds.min) & ~above
    result = np.where(inside, wide, 0).astype(dtype)
    result = np.where(wide < bounds.min, dtype.type(bounds.min), result)
    return np.where(above, dtype.type(bounds.max), result)


def _towards_zero(x: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """nearest, or the float next to it nearer to zero where it is beyond x."""
    beyond = np.abs(nearest.astype(x.dtype)) > np.abs(x)
    bits = nearest.view(f"i{nearest.dtype.itemsize}")
    return (bits - beyond).astype(bits.dtype).view(nearest.dtype)


def _exact_fma(a: float, b: float, c: float) -> float:
    """x * y + z of float64 through exact rationals."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


# special functions ----------------------------------------------------------------------------

def _by_element(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """A scalar function of float64 on arrays of any float dtype."""
    vectorised = np.frompyfunc(function, 1, 1)
    return lambda x: _narrowed(vectorised(x.astype(np.float64)).astype(np.float64), x.dtype)


def _gamma(x: float) -> float:
    if x == 0 or x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.copysign(math.inf, x) if x == 0 else math.nan
    try:
        return math.gamma(x)
    except OverflowError:  # of a negative x only next to 0
        return math.copysign(math.inf, x)


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def erf(x: np.ndarray) -> np.ndarray:
    """The error function."""
    return _narrowed(erf64(x.astype(np.float64)), x.dtype)


def erfc(x: np.ndarray) -> np.ndarray:
    """1 - erf(x)."""
    return _narrowed(erfc64(x.astype(np.float64)), x.dtype)


gamma = _by_element(_gamma)
lgamma = _by_element(_lgamma)


# coefficients, the constant first; every denominator starts with 1
_SMALL = ((1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
           -5.77027029648944159157e-03, -2.37630166566501626084e-05),
          (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
           1.32494738004321644526e-04, -3.96022827877536812320e-06))
_MIDDLE = ((-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
            3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
            -2.16637559486879084300e-03),
           (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
            1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02))
_LARGE = ((-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
           -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
           -8.12874355063065934246e+01, -9.81432934416914548592e+00),
          (1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
           6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
           6.57024977031928170135e+00, -6.04244152148580987438e-02))
_TAIL = ((-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
          -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
          -4.83519191608651397019e+02),
         (1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
          3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
          -2.24409524465858183362e+01))
# erf(1), rounded to float32; where the intervals meet; where erfc(x) is below every float64
_ERF_ONE = 8.45062911510467529297e-01
_FIRST, _SECOND, _THIRD, _LAST = 0.84375, 1.25, 1 / 0.35, 28.0


def erf64(x: np.ndarray) -> np.ndarray:
    """2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x; float64."""
    size = np.abs(x)
    result = np.where(size < _FIRST, x + x * _ratio(_SMALL, np.minimum(x * x, 1)),
                      np.copysign(_ERF_ONE + _ratio(_MIDDLE, np.minimum(size, _SECOND) - 1), x))
    return np.where(size < _SECOND, result, np.where(
        np.isnan(x), x, np.copysign(1 - _tail(size), x)))


def erfc64(x: np.ndarray) -> np.ndarray:
    """1 - erf(x), without the loss of digits where erf(x) is near 1; float64."""
    size = np.abs(x)
    part = x * _ratio(_SMALL, np.minimum(x * x, 1))
    small = np.where(x < 0.25, 1 - (x + part), 0.5 - (x - 0.5 + part))
    near_one = _ratio(_MIDDLE, np.minimum(size, _SECOND) - 1)
    middle = np.where(x > 0, 1 - _ERF_ONE - near_one, 1 + (_ERF_ONE + near_one))
    tail = _tail(size)
    large = np.where(x > 0, tail, 2 - tail)
    result = np.where(size < _FIRST, small, np.where(size < _SECOND, middle, large))
    return np.where(np.isnan(x), x, result)


def _tail(size: np.ndarray) -> np.ndarray:
    """erfc of numbers from 1.25 up."""
    s = np.clip(size, _SECOND, _LAST)
    inverse = 1 / (s * s)
    ratio = np.where(s < _THIRD, _ratio(_LARGE, inverse), _ratio(_TAIL, inverse))
    # s * s exactly: of a number of half the digits, and the rest
    head = (s.view(np.int64) & -1 << 32).view(np.float64)
    result = np.exp(-head * head - 0.5625) * np.exp((head - s) * (head + s) + ratio) / s
    return np.where(size < _LAST, result, 0)


def _ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: np.ndarray) -> np.ndarray:
    """One polynomial divided by another."""
    over, under = (_polynomial(c, x) for c in coefficients)
    return over / under


def _polynomial(coefficients: Sequence[float], x: np.ndarray) -> np.ndarray:
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total *= x
        total += coefficient
    return total

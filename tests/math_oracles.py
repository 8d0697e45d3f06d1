"""Values of the mathematical ops in a format wider than their operands, and what to try them on."""

from __future__ import annotations

import math

import numpy as np

from blocknumba.tile_ir.ops import numerics

Long = np.longdouble
# Bernoulli numbers over 2 k (2 k - 1): Stirling's series, whose error at 40 is below 2**-90.
STIRLING = [Long(n) / Long(d) for n, d in (
    (1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156),
    (-3617, 122400), (43867, 244188))]
START = 40
HALF_LOG_TWO_PI = np.log(8 * np.arctan(Long(1))) / 2
PI = 4 * np.arctan(Long(1))


def _exp_of_square(x: np.ndarray) -> np.ndarray:
    """e**(-x**2), with an exact square of the larger half of the digits."""
    head = np.round(np.clip(x, -200, 200) * 2**20) / 2**20
    return np.exp(-head * head) * np.exp((head - x) * (head + x))


def _erf_series(x: np.ndarray) -> np.ndarray:
    """erf up to 3: a series of positive terms."""
    x = np.clip(x, -3, 3)
    term = total = x
    for n in range(1, 90):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return 2 / np.sqrt(PI) * _exp_of_square(x) * total


def _erfc_fraction(x: np.ndarray) -> np.ndarray:
    """erfc from 2 on: a continued fraction, from its end."""
    x = np.maximum(x, 2)
    tail = x
    for n in range(200, 0, -1):
        tail = x + Long(n) / 2 / tail
    return _exp_of_square(x) / (np.sqrt(PI) * tail)


def erf(x: np.ndarray) -> np.ndarray:
    size = np.abs(x)
    value = np.where(size < 2, _erf_series(size), 1 - _erfc_fraction(size))
    return np.where(np.isnan(x), x, np.copysign(value, x))


def erfc(x: np.ndarray) -> np.ndarray:
    value = np.where(x < 2, 1 - _erf_series(x), _erfc_fraction(x))
    return np.where(np.isnan(x), x, np.where(x < -3, 2 - _erfc_fraction(-x), value))


def _above(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x + n >= START, and the product of the factors from x on that are below."""
    product = np.ones_like(x)
    for _ in range(START):
        below = x < START
        product = np.where(below, product * x, product)
        x = np.where(below, x + 1, x)
    return x, product


def _stirling_rest(x: np.ndarray) -> np.ndarray:
    total = np.zeros_like(x)
    for coefficient in STIRLING[::-1]:
        total = total / (x * x) + coefficient
    return total / x


def _sine_of_half_turns(x: np.ndarray) -> np.ndarray:
    """sin(pi x), exactly 0 of integers."""
    nearest = np.rint(x)
    return np.where(nearest % 2 == 0, 1, -1) * np.sin(PI * (x - nearest))


def _positive_gamma(x: np.ndarray) -> np.ndarray:
    large, product = _above(x)
    # halves of the power: its square alone may overflow
    half = large ** ((large - 0.5) / 2) * np.exp(-large / 2)
    return half * np.exp(HALF_LOG_TWO_PI + _stirling_rest(large)) * half / product


def gamma(x: np.ndarray) -> np.ndarray:
    size = np.minimum(np.abs(x), 250.5)
    positive = _positive_gamma(size)
    value = np.where(x < 0, -PI / (size * _sine_of_half_turns(size) * positive), positive)
    value = np.where((x < 0) & (np.rint(x) == x), np.nan, value)
    value = np.where(x == 0, np.copysign(np.inf, x), value)
    return np.where(np.isnan(x), x, np.where(x == np.inf, np.inf, value))


def lgamma(x: np.ndarray) -> np.ndarray:
    size = np.abs(x)
    large, product = _above(size)
    positive = ((large - 0.5) * (np.log(large) - 1) - 0.5 + HALF_LOG_TWO_PI
                + _stirling_rest(large) - np.log(product))
    reflected = np.log(PI / np.abs(size * _sine_of_half_turns(size))) - positive
    value = np.where(x < 0, reflected, positive)
    pole = ((x <= 0) & (np.rint(x) == x)) | np.isinf(x)
    return np.where(np.isnan(x), x, np.where(pole, np.inf, value))


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
               "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "mod": "remainder",
               "floordiv": "floor_divide"}
OURS = {"erf": erf, "erfc": erfc, "gamma": gamma, "lgamma": lgamma, "rsqrt": _rsqrt}
EXACT = {"floor", "ceil", "trunc", "rint", "mod", "floordiv", "copysign", "nextafter"}


def exact_value(name: str, *operands: np.ndarray) -> np.ndarray:
    """The op's value: of float32 in float64, of float64 in long double.

    Ops whose results are floats of the operands' format, as NumPy itself computes them.
    """
    narrow = operands[0].dtype
    function = OURS.get(name) or getattr(np, NUMPY_NAMES.get(name, name))
    with np.errstate(all="ignore"):
        if name in EXACT:
            return function(*operands)
        if narrow == np.float32 and name in ("gamma", "lgamma"):
            return getattr(numerics, name)(operands[0].astype(np.float64))
        if narrow == np.float32 and name in ("erf", "erfc"):
            return getattr(numerics, f"{name}64")(operands[0].astype(np.float64))
        wide = np.float64 if narrow == np.float32 else Long
        return function(*(x.astype(wide) for x in operands))


def special_numbers(dtype: type) -> np.ndarray:
    """Zeros, infinities, NaN, subnormal and extreme numbers, integers, and what is next to 1."""
    limits = np.finfo(dtype)
    one = dtype(1)
    positive = np.array([
        0, limits.smallest_subnormal, limits.smallest_subnormal * 3, limits.tiny / 2, limits.tiny,
        limits.eps, limits.eps**2, 0.25, 0.5, np.nextafter(one, dtype(0)), 1,
        np.nextafter(one, dtype(2)), math.pi / 4, math.pi / 2, 1.5, 2, 2.5, 3, 7, 7.5, 8, 10, 22,
        33, 170, 171, 1e5, 2.0**30, 1e22, limits.max / 2, limits.max, np.inf, np.nan], dtype)
    return np.concatenate([positive, -positive])


def limits(dtype: type) -> np.ndarray:
    """Where values overflow, vanish, change their sign or their polynomial, in long double.

    Multiples of pi / 4 and ln(2) / 2, the ends of exponents, integers and halves, zeros of
    lgamma, numbers from which on a function is 1, x or infinite.
    """
    f, ln_two = np.finfo(dtype), np.log(Long(2))
    ends = np.array([f.max, f.tiny, f.smallest_subnormal], Long)
    points = np.concatenate([
        ends, ends[:1] / 2, ends[:1] / 4, np.sqrt(ends), np.log(ends), np.log(ends) - ln_two,
        np.log(ends[:1]) + ln_two, np.log2(ends), np.log10(ends),
        Long(f.eps) ** np.array([1, Long(1) / 2, Long(1) / 3, -1]), PI / 4 * np.arange(1, 40),
        ln_two / 2 * np.arange(1, 30), np.sqrt([Long(0.5), Long(2)]), np.arange(1, 26) / Long(2),
        [20, 22, 26.5, 27.2, 9.2, 10.05, 35.04, 38, 42, 171.6243769563027, 177.5, 184, 0.25, 0.75,
         2.0**17, 2.0**30, 2.0**-12, 2.0**-20, 2.0**-27, 2.0**-60, 2.5599833278516383e305],
        [2.457024738220801, 2.747682646727412, 3.143580888349981, 3.955294284858598,
         4.039361839740537, 4.991544640560048, 5.008218168440114]]).astype(Long)
    points = points[points <= f.max]
    return np.concatenate([points, -points])


def ulps(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance of floats to exact values, in units in the last place of the exact value.

    exact: values of a wider format.  Where both are infinite, or both NaN, it is 0; where one of
    them is, it is 1e300, but that a value which rounds to infinity counts as the number after
    the largest.
    """
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        magnitude = np.abs(np.where(np.isfinite(exact), exact, 1))
        # the exponent of the result's unit: that of a subnormal number is the least
        exponent = np.maximum(np.frexp(magnitude)[1] - 1, info.minexp) - info.nmant
        beyond = exact.dtype.type(2) ** info.maxexp
        given = found.astype(exact.dtype)
        given = np.where(np.isinf(given) & np.isfinite(exact), np.copysign(beyond, given), given)
        exact = np.where((np.abs(exact) > beyond) & np.isfinite(exact) & np.isinf(found),
                         np.copysign(beyond, exact), exact)
        distance = np.ldexp(np.abs(given - exact), -exponent)
    same = (given == exact) | (np.isnan(given) & np.isnan(exact))
    distance = np.where(same, 0, np.where(np.isnan(distance), np.inf, distance))
    return np.minimum(distance, np.float64(1e300)).astype(np.float64)


# draws: (generator, dtype, shape) -> floats -----------------------------------------------------
def of_any_bits(rng: np.random.Generator, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    """Floats of all magnitudes, NaN too."""
    size = np.dtype(dtype).itemsize
    return rng.integers(0, 256, (*shape, size), dtype=np.uint8).view(dtype)[..., 0]


def of_moderate_size(rng, dtype, shape):
    return (rng.standard_normal(shape) * 10.0 ** rng.uniform(-4, 3, shape)).astype(dtype)


def near_one(rng, dtype, shape):
    return (1 + rng.standard_normal(shape) * 10.0 ** rng.uniform(-6, -1, shape)).astype(dtype)


def near_limits(rng, dtype, shape):
    """Some floats from a limit, and some share of it: nearer ones as often as far ones."""
    points = rng.choice(limits(dtype), shape)
    share = 10.0 ** rng.uniform(-18, -1, shape) * rng.choice([-1, 1], shape)
    with np.errstate(over="ignore"):
        beside = (points * (1 + share)).astype(dtype)
    bits = np.dtype(f"i{beside.itemsize}")
    moved = (points.astype(dtype).view(bits) + rng.integers(-40, 41, shape, bits)).view(dtype)
    return np.where(rng.random(shape) < 0.5, beside, moved)


DRAWS = (of_any_bits, of_moderate_size, near_one, near_limits)

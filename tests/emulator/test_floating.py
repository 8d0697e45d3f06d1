"""Floating-point instructions round once, as their opcode says."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from ptx import evaluate

_SEED = 7
_TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
          "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
_SIGNIFICAND = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
_MIN_EXPONENTS = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}  # exponent of the last place


def numbers(type_, count=128, spread=12):
    """Numbers of many sizes, close enough for sums to cancel."""
    random = np.random.default_rng(_SEED)
    spread = 3 if type_ == "f16" else spread
    values = random.standard_normal(count) * 2.0 ** random.integers(-spread, spread, count)
    return values.astype(_TYPES[type_])


def operands(type_, count):
    """count vectors of different numbers."""
    values = numbers(type_)
    random = np.random.default_rng(_SEED + 1)
    return [values, *[random.permutation(values) for _ in range(count - 1)]]


def rounded(exact, type_, mode):
    """A rational number in a type, from the definition of the rounding modes."""
    if exact == 0:
        return 0.0
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - _SIGNIFICAND[type_] + 1, _MIN_EXPONENTS[type_])
    below = exact / unit // 1
    rest = exact / unit - below
    up = {"rm": False, "rp": rest > 0, "rz": rest > 0 and exact < 0,
          "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1)}[mode]
    return float((below + up) * unit)


_EXACT = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "fma": lambda a, b, c: a * b + c,
}
_MODES = [("f32", "rn"), ("f32", "rz"), ("f32", "rm"), ("f32", "rp"), ("f64", "rn"), ("f64", "rz"),
          ("f64", "rm"), ("f64", "rp"), ("f16", "rn"), ("bf16", "rn")]


_VARIANTS = [(name, *variant) for name in _EXACT for variant in _MODES
          if name != "div" or variant[0] in ("f32", "f64")]


@pytest.mark.parametrize("name, type_, mode", _VARIANTS)
def test_arithmetic_rounds_the_exact_result_once(name, type_, mode):
    function = _EXACT[name]
    vectors = operands(type_, function.__code__.co_argcount)
    names = ", ".join(f"${index + 1}" for index in range(len(vectors)))
    result = evaluate(f"{name}.{mode}.{type_} $0, {names};", _TYPES[type_], *vectors)
    expected = [rounded(function(*[Fraction(float(v)) for v in row]), type_, mode)
                for row in zip(*vectors)]
    assert result.astype(float).tolist() == expected


_EXACT_MIXED = {"add": lambda a, c: a + c, "sub": lambda a, c: a - c,
                "fma": lambda a, b, c: a * b + c}


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("type_", ["f16", "bf16"])
@pytest.mark.parametrize("name", _EXACT_MIXED)
def test_mixed_precision_widens_what_is_narrow_and_rounds_once(name, type_, mode):
    function = _EXACT_MIXED[name]
    *narrow, wide = [f"${index + 1}" for index in range(function.__code__.co_argcount)]
    vectors = [*operands(type_, len(narrow)), numbers("f32")]
    result = evaluate(f"{name}.{mode}.f32.{type_} $0, {', '.join(narrow)}, {wide};",
                      _TYPES["f32"], *vectors)
    expected = [rounded(function(*[Fraction(float(v)) for v in row]), "f32", mode)
                for row in zip(*vectors)]
    assert result.astype(float).tolist() == expected


def test_a_saturated_mixed_sum_is_between_zero_and_one():
    a, c = np.array([-3, 0.25, 3], np.float16), np.array([1, 0.5, 1], np.float32)
    result = evaluate("add.rn.sat.f32.f16 $0, $1, $2;", np.float32, a, c)
    assert result.tolist() == [0.0, 0.75, 1.0]


_ONE = {"f32": "0f3F800000", "f64": "0d3FF0000000000000"}


@pytest.mark.parametrize("type_", _ONE)
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("variant", ["add.{} $0, $1, $2;", "neg.{type} $2, $2; sub.{} $0, $1, $2;",
                                  "fma.{} $0, $1, {one}, $2;"])
def test_an_exact_zero_is_negative_downwards_and_as_a_sum_of_negative_zeros(variant, mode, type_):
    left = np.array([1.5, -1.5, 0.0, 0.0, -0.0], _TYPES[type_])
    right = np.array([-1.5, 1.5, -0.0, 0.0, -0.0], _TYPES[type_])
    instruction = variant.format(f"{mode}.{type_}", type=type_, one=_ONE[type_])

    result = evaluate(instruction, _TYPES[type_], left, right)

    downwards = mode == "rm"
    assert (result == 0).all()
    assert np.signbit(result).tolist() == [downwards, downwards, downwards, False, True]


def test_fma_of_f64_is_exact_when_the_sum_cancels():
    a = np.array([1 + 2.0**-30, 3.0, 2.0**600, 1e-200], np.float64)
    with np.errstate(over="ignore"):
        c = -a * a
    expected = [rounded(Fraction(x) * Fraction(x) + Fraction(y), "f64", "rn")
                for x, y in zip(a.tolist(), c.tolist()) if np.isfinite(y)]
    result = evaluate("fma.rn.f64 $0, $1, $1, $2;", np.float64, a, c)
    assert result[np.isfinite(c)].tolist() == expected


@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_roots_and_reciprocals_round_once(type_, mode):
    values = np.abs(numbers(type_))
    root = evaluate(f"sqrt.{mode}.{type_} $0, $1;", _TYPES[type_], values)
    reciprocal = evaluate(f"rcp.{mode}.{type_} $0, $1;", _TYPES[type_], values)
    expected = [rounded(1 / Fraction(float(v)), type_, mode) for v in values]
    assert reciprocal.astype(float).tolist() == expected
    assert all(_is_root(Fraction(float(r)), Fraction(float(v)), type_, mode)
               for r, v in zip(root, values))


def _is_root(root, value, type_, mode):
    """Whether root is the rounded root of value, without computing it."""
    step = Fraction(float(np.spacing(_TYPES[type_].type(float(root)))))
    low, high = {"rn": (root - step / 2, root + step / 2), "rp": (root - step, root)}.get(
        mode, (root, root + step))
    return low * low <= value <= high * high


def test_overflow_goes_where_the_mode_points():
    large = np.full(1, np.finfo(np.float32).max)
    results = {mode: evaluate(f"add.{mode}.f32 $0, $1, $1;", np.float32, large)[0]
               for mode in ("rn", "rz", "rm", "rp")}
    assert results == {"rn": np.inf, "rz": large[0], "rm": large[0], "rp": np.inf}


def test_ftz_makes_zeros_of_subnormal_operands_and_results():
    values = np.array([1e-39, -1e-39, 1.5e-38, 1.0], np.float32)
    twice = evaluate("mul.ftz.f32 $0, $1, 0f40000000;", np.float32, values)
    half = evaluate("mul.ftz.f32 $0, $1, 0f3F000000;", np.float32, np.float32([1.5e-38, -1.5e-38]))
    assert twice.tolist() == [0, 0, np.float32(3e-38), 2] and np.signbit(twice[1])
    assert half.tolist() == [0, 0] and np.signbit(half[1])


def test_sat_clamps_and_makes_zero_of_nan():
    values = np.array([-1, 0.25, 3, np.nan], np.float32)
    result = evaluate("add.sat.f32 $0, $1, 0f00000000;", np.float32, values)
    assert result.tolist() == [0, 0.25, 1, 0]


@pytest.mark.parametrize("type_", _TYPES)
def test_min_and_max_prefer_numbers_and_order_zeros(type_):
    dtype = _TYPES[type_]
    a = np.array([np.nan, 1, -0.0, 0.0, 2, np.inf]).astype(dtype)
    b = np.array([3, np.nan, 0.0, -0.0, -2, 1]).astype(dtype)
    low = evaluate(f"min.{type_} $0, $1, $2;", dtype, a, b)
    high = evaluate(f"max.{type_} $0, $1, $2;", dtype, a, b)
    assert low.astype(float).tolist() == [3, 1, 0, 0, -2, 1]
    assert np.signbit(low.astype(float)).tolist() == [False, False, True, True, True, False]
    assert high.astype(float).tolist() == [3, 1, 0, 0, 2, np.inf]
    assert not np.signbit(high.astype(float)).any()


def test_min_nan_keeps_nan():
    a, b = np.float32([np.nan, 1, 2]), np.float32([3, np.nan, 1])
    result = evaluate("min.NaN.f32 $0, $1, $2;", np.float32, a, b)
    assert np.isnan(result).tolist() == [True, True, False]


# The maximum error that the PTX ISA states, relative unless it says absolute.
@pytest.mark.parametrize("opcode, function, low, high, relative, absolute", [
    ("ex2.approx.ftz.f32", np.exp2, -120, 120, 2.0**-22, 0),
    ("lg2.approx.ftz.f32", np.log2, 2, 1e30, 2.0**-22, 0),
    ("lg2.approx.ftz.f32", np.log2, 0.5, 2, 0, 2.0**-22),
    ("rcp.approx.ftz.f32", lambda v: 1 / v, 1e-30, 1e30, 2.0**-23, 0),
    ("rsqrt.approx.ftz.f32", lambda v: 1 / np.sqrt(v), 1e-30, 1e30, 2.0**-22, 0),
    ("sin.approx.ftz.f32", np.sin, -3.1, 3.1, 0, 2.0**-20.5),
    ("cos.approx.ftz.f32", np.cos, -3.1, 3.1, 0, 2.0**-20.5),
    ("tanh.approx.f32", np.tanh, -9, 9, 2.0**-11, 0),
    ("sqrt.approx.ftz.f32", np.sqrt, 1e-30, 1e30, 2.0**-22, 0),
])
def test_approximations_stay_within_their_stated_error(opcode, function, low, high, relative,
                                                       absolute):
    values = np.linspace(low, high, 256, dtype=np.float32)
    result = evaluate(f"{opcode} $0, $1;", np.float32, values).astype(np.float64)
    exact = function(values.astype(np.float64))
    assert (np.abs(result - exact) <= relative * np.abs(exact) + absolute + 2.0**-24).all()


@pytest.mark.parametrize("opcode, value, expected", [
    ("ex2.approx.f32", np.inf, np.inf), ("ex2.approx.f32", -np.inf, 0),
    ("lg2.approx.f32", 0, -np.inf), ("rcp.approx.f32", 0, np.inf),
    ("rsqrt.approx.f32", -0.0, -np.inf), ("rsqrt.approx.f32", np.inf, 0),
])
def test_approximations_have_their_special_values(opcode, value, expected):
    assert evaluate(f"{opcode} $0, $1;", np.float32, np.float32([value]))[0] == expected


def test_packed_halves_are_computed_apart():
    a = numbers("f16", 64, 2)
    result = evaluate("fma.rn.f16x2 $0, $1, $1, $1;", np.uint32, a.view(np.uint32))
    exact = a.astype(np.float64) ** 2 + a
    assert result.view(np.float16).tolist() == exact.astype(np.float16).tolist()


def test_signs_are_copied_and_bits_of_nan_kept():
    a, b = np.float32([-1, 1, -0.0]), np.float32([2, -3, 4])
    magnitude = evaluate("copysign.f32 $0, $1, $2;", np.float32, a, b)
    negated = evaluate("neg.f32 $0, $1;", np.float32, np.float32([np.nan, 0]))
    assert magnitude.tolist() == [-2, 3, -4]
    assert np.signbit(negated).tolist() == [True, True]


@pytest.mark.parametrize("comparison, expected", [
    ("eq", [0, 1, 0, 0]), ("ne", [1, 0, 0, 1]), ("lt", [1, 0, 0, 0]), ("ge", [0, 1, 0, 1]),
    ("equ", [0, 1, 1, 0]), ("neu", [1, 0, 1, 1]), ("ltu", [1, 0, 1, 0]), ("geu", [0, 1, 1, 1]),
    ("num", [1, 1, 0, 1]), ("nan", [0, 0, 1, 0]),
])
def test_comparisons_say_what_they_do_with_nan(comparison, expected):
    a, b = np.float32([1, 2, np.nan, 3]), np.float32([2, 2, 1, 1])
    result = evaluate(f"{{ .reg .pred q; setp.{comparison}.f32 q, $1, $2; selp.b32 $0, 1, 0, q; }}",
                      np.int32, a, b)
    assert result.tolist() == expected


@pytest.mark.parametrize("a, b, c, expected", [
    (-100.0, -1.7976931348623157e308, 1000.0, np.inf), (1e200, 1e200, -np.inf, -np.inf),
    (1e-323, -0.7, 5e-324, -0.0), (1e-323, 0.7, -5e-324, 0.0), (2.0, 3.0, -6.0, 0.0)])
def test_fma_of_f64_overflows_and_underflows_as_one_rounding_does(a, b, c, expected):
    values = [np.full(32, value) for value in (a, b, c)]

    result = evaluate("fma.rn.f64 $0, $1, $2, $3;", np.float64, *values)

    assert (result.view(np.int64) == np.float64(expected).view(np.int64)).all()


def test_a_tiny_product_of_bf16_is_zero():
    tiny = np.full(32, -1.83671e-40, ml_dtypes.bfloat16).view(np.uint16)

    result = evaluate("fma.rn.bf16 $0, $1, $1, $2;", np.uint16, tiny, np.zeros_like(tiny))

    assert (result == 0).all()

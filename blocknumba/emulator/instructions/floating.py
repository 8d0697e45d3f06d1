"""Floating-point instructions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.rounding import (
    BFLOAT16,
    direct,
    downward_zero,
    errors_of_extremes,
    fma_exactly,
    narrow,
    quotient,
    square_root,
    sum_downwards,
    to_odd,
    two_product,
    two_sum,
)
from blocknumba.emulator.values import FLOATS, dtype_of

MODES = ("rn", "rz", "rm", "rp")
_MIXED = (("f32", "f16"), ("f32", "bf16"))
_MIXING = ("add", "sub", "fma")
_TINY = np.float32(2.0**-126)  # the smallest normal f32

Function = Callable[..., np.ndarray]


def flush(value: np.ndarray) -> np.ndarray:
    """f32 with subnormal numbers replaced by zero of their sign."""
    return np.where(np.abs(value) < _TINY, np.copysign(np.float32(0), value), value)


def saturate(value: np.ndarray) -> np.ndarray:
    """Clamped to [0, 1]; NaN becomes 0."""
    one = value.dtype.type(1)
    return np.where(value > 0, np.minimum(value, one), value.dtype.type(0)).astype(value.dtype)


def rounding_mode(modifiers: tuple[str, ...]) -> str:
    """The rounding mode that an opcode names; to nearest even when it names none."""
    return next((modifier for modifier in modifiers if modifier in MODES), "rn")


def fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str) -> np.ndarray:
    """a * b + c with one rounding."""
    dtype = a.dtype
    negative = (np.signbit(a) ^ np.signbit(b)) | np.signbit(c)
    if dtype == np.float64:
        result, error = fma_exactly(a, b, c)
        if mode == "rm":
            result = downward_zero(result, error, negative)
        return direct(result, error, mode)
    product = a.astype(np.float64) * b.astype(np.float64)
    total, error = two_sum(product, c.astype(np.float64))
    if mode == "rm":
        total = downward_zero(total, error, negative)
    return narrow(to_odd(total, np.where(np.isfinite(total), error, 0.0)), dtype, mode)


def _exact(operation: Callable[..., tuple[np.ndarray, np.ndarray]], mode: str) -> Function:
    """A function of two numbers that rounds once, in a mode other than to nearest."""
    def apply(*values: np.ndarray) -> np.ndarray:
        dtype = values[0].dtype
        wide = np.broadcast_arrays(*[value.astype(np.float64) for value in values])
        result, error = operation(*wide)
        if dtype == np.float64:
            return direct(result, errors_of_extremes(operation, result, error, wide), mode)
        error = np.where(np.isfinite(result), error, 0.0)
        return narrow(to_odd(result, error), dtype, mode)
    return apply


def _add(site: Site, scalar: str) -> Function:
    mode = rounding_mode(site.opcode)
    if mode == "rn":
        return np.add
    return _exact(sum_downwards if mode == "rm" else two_sum, mode)


def _subtract(site: Site, scalar: str) -> Function:
    if rounding_mode(site.opcode) == "rn":
        return np.subtract
    add = _add(site, scalar)
    return lambda a, b: add(a, _negate(b))


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller; the other one when one is NaN; -0 is smaller than 0."""
    return _ordered(np.fmin(a, b), a, b, np.logical_or)


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger; the other one when one is NaN; 0 is larger than -0."""
    return _ordered(np.fmax(a, b), a, b, np.logical_and)


def _ordered(result: np.ndarray, a: np.ndarray, b: np.ndarray, negative: Function) -> np.ndarray:
    zero = (a == 0) & (b == 0)
    if not zero.any():
        return result
    sign = np.where(negative(np.signbit(a), np.signbit(b)), -1.0, 1.0)
    return np.where(zero, np.copysign(np.float64(0), sign).astype(a.dtype), result)


def _with_nan(function: Function) -> Function:
    """min.NaN and max.NaN: NaN when either is."""
    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nan = np.isnan(a) | np.isnan(b)
        return np.where(nan, a.dtype.type("nan"), function(a, b)).astype(a.dtype)
    return apply


def _finish(site: Site, function: Function, scalar: str) -> Function:
    """A function with the qualifiers .ftz, .sat, .relu and packed halves around it."""
    if scalar == "f32" and site.has("ftz"):
        inner = function
        function = lambda *values: flush(inner(*[flush(value) for value in values]))  # noqa: E731
    if site.has("sat"):
        unclamped = function
        function = lambda *values: saturate(unclamped(*values))  # noqa: E731
    if site.has("relu"):
        signed = function
        function = lambda *values: _rectify(signed(*values))  # noqa: E731
    return function


def _rectify(value: np.ndarray) -> np.ndarray:
    return np.where(value < 0, value.dtype.type(0), value)


def _packed(function: Function, scalar: str, word: np.dtype) -> Function:
    dtype = dtype_of(scalar)

    def apply(*words: np.ndarray) -> np.ndarray:
        wide = np.broadcast_arrays(*words)
        return function(*[np.ascontiguousarray(one).view(dtype) for one in wide]).view(word)
    return apply


def _mixed(site: Site, choose: Callable[[Site, str], Function], arity: int) -> Step:
    """add.f32.f16 and the like: all operands but the last are of a narrower type.

    Source: PTX ISA, "Mixed Precision Floating-Point Instructions".
    """
    wide, narrow_ = site.opcode[-2:]
    function = _finish(site, choose(site, wide), wide)
    dtype = dtype_of(wide)

    def widened(*values: np.ndarray) -> np.ndarray:
        return function(*[value.astype(dtype) for value in values])
    return site.compute(widened, wide, [*[narrow_] * (arity - 1), wide])


def elementwise(choose: Callable[[Site, str], Function], arity: int) -> Decoder:
    """A row for all floating-point types, packed ones and mixed ones too.

    choose: the function for one scalar type, given the qualifiers of the opcode.
    """
    def decode(site: Site) -> Step:
        type_ = site.opcode[-1]
        if site.opcode[-2:] in _MIXED and site.opcode[0] in _MIXING:
            return _mixed(site, choose, arity)
        scalar = type_.removesuffix("x2")
        if scalar not in FLOATS:
            raise site.refuse("given the type {}, accepted {}", type_, ", ".join(sorted(FLOATS)))
        function = _finish(site, choose(site, scalar), scalar)
        if scalar != type_:
            function = _packed(function, scalar, dtype_of(type_))
        return site.compute(function, type_, [type_] * arity)
    return decode


def _rounded(nearest: Function, exact: Callable[..., tuple[np.ndarray, np.ndarray]]
             ) -> Callable[[Site, str], Function]:
    """NumPy's function when the mode is to nearest, else one that rounds as the mode says."""
    def choose(site: Site, scalar: str) -> Function:
        mode = rounding_mode(site.opcode)
        return nearest if mode == "rn" else _exact(exact, mode)
    return choose


def _fma(site: Site, scalar: str) -> Function:
    mode = rounding_mode(site.opcode)
    if scalar == "f32" and mode == "rn":
        return _fma32
    return lambda a, b, c: fused_multiply_add(a, b, c, mode)


def _fma32(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """fma.rn.f32, for speed without the general path where f64 already holds the exact sum."""
    product = a.astype(np.float64) * b
    addend = c.astype(np.float64)
    total = product + addend
    virtual = total - product
    error = (product - (total - virtual)) + (addend - virtual)
    result = total.astype(np.float32)
    if not error.any():
        return result
    return np.where(np.isfinite(total), to_odd(total, error).astype(np.float32), result)


def _extremum(function: Function) -> Callable[[Site, str], Function]:
    def choose(site: Site, scalar: str) -> Function:
        chosen = _with_nan(function) if site.has("NaN") else function
        if site.has("xorsign"):
            return lambda a, b: np.copysign(
                chosen(np.abs(a), np.abs(b)), np.where(np.signbit(a) != np.signbit(b), -1, 1)
            ).astype(a.dtype)
        return chosen
    return choose


def _unary(function: Function) -> Callable[[Site, str], Function]:
    return lambda site, scalar: function


def _approximate(function: Function) -> Function:
    """Computed in f64 and rounded: closer than the hardware guarantees.

    Source: PTX ISA, the tables of maximum error at ex2, lg2, rcp, rsqrt, sin, cos, tanh.
    """
    def apply(value: np.ndarray) -> np.ndarray:
        return function(value.astype(np.float64)).astype(value.dtype)
    return apply


def _reciprocal(value: np.ndarray) -> np.ndarray:
    return 1 / value


def _reciprocal_root(value: np.ndarray) -> np.ndarray:
    root = 1 / np.sqrt(value)
    return np.where(value == 0, np.copysign(np.inf, value), root)


def _upper_word(function: Function) -> Function:
    """An approximation of f64 that has only its upper 32 bits, as rcp.approx.ftz.f64."""
    def apply(value: np.ndarray) -> np.ndarray:
        upper = value.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)
        tiny = np.abs(value) < np.finfo(np.float64).tiny
        result = function(np.where(tiny, np.copysign(0.0, value), upper.view(np.float64)))
        return (result.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    return apply


def _rcp(site: Site, scalar: str) -> Function:
    if scalar == "f64" and site.has("approx"):
        return _upper_word(_reciprocal)
    mode = rounding_mode(site.opcode)
    if mode == "rn":
        return lambda value: value.dtype.type(1) / value
    divide = _exact(quotient, mode)
    return lambda value: divide(np.ones_like(value), value)


def _rsqrt(site: Site, scalar: str) -> Function:
    if scalar == "f64":
        return _upper_word(_reciprocal_root) if site.has("ftz") else _reciprocal_root
    return _approximate(_reciprocal_root)


def _negate(value: np.ndarray) -> np.ndarray:
    sign = value.dtype.itemsize * 8 - 1
    bits = value.view(f"u{value.dtype.itemsize}")
    return (bits ^ bits.dtype.type(1 << sign)).view(value.dtype)


def _absolute(value: np.ndarray) -> np.ndarray:
    sign = value.dtype.itemsize * 8 - 1
    bits = value.view(f"u{value.dtype.itemsize}")
    return (bits & bits.dtype.type((1 << sign) - 1)).view(value.dtype)


def copy_sign(site: Site) -> Step:
    """copysign d, a, b: the magnitude of b with the sign of a."""
    type_ = site.opcode[-1]
    return site.compute(lambda sign, magnitude: np.copysign(magnitude, sign), type_, [type_] * 2)


def classify(site: Site) -> Step:
    """testp: which kind of number it is."""
    tests: dict[str, Function] = {
        "finite": np.isfinite, "infinite": np.isinf, "number": lambda value: ~np.isnan(value),
        "notanumber": np.isnan,
        "normal": lambda value: np.isfinite(value) & (
            np.abs(value) >= np.finfo(value.dtype).tiny),
        "subnormal": lambda value: (value != 0) & (np.abs(value) < np.finfo(value.dtype).tiny),
    }
    return site.compute(tests[site.opcode[1]], "pred", [site.opcode[-1]])


def _multiply_bfloat(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype == BFLOAT16:
        return (a.astype(np.float32) * b.astype(np.float32)).astype(a.dtype)
    return a * b


TABLE: dict[str, Decoder] = {
    "add": elementwise(_add, 2), "sub": elementwise(_subtract, 2),
    "mul": elementwise(_rounded(_multiply_bfloat, two_product), 2),
    "fma": elementwise(_fma, 3), "mad": elementwise(_fma, 3),
    "div": elementwise(_rounded(np.divide, quotient), 2),
    "rcp": elementwise(_rcp, 1),
    "sqrt": elementwise(_rounded(np.sqrt, square_root), 1),
    "rsqrt": elementwise(_rsqrt, 1),
    "min": elementwise(_extremum(minimum), 2), "max": elementwise(_extremum(maximum), 2),
    "neg": elementwise(_unary(_negate), 1), "abs": elementwise(_unary(_absolute), 1),
    "ex2": elementwise(_unary(_approximate(np.exp2)), 1),
    "lg2": elementwise(_unary(_approximate(np.log2)), 1),
    "sin": elementwise(_unary(_approximate(np.sin)), 1),
    "cos": elementwise(_unary(_approximate(np.cos)), 1),
    "tanh": elementwise(_unary(_approximate(np.tanh)), 1),
    "copysign": copy_sign, "testp": classify,
}

"""Sines and cosines of a thread's float32 elements at once.

    |x| = k * pi/2 + r        |r| <= pi/4
    up to MAX_QUICK        pi / 2 is subtracted in three parts, the first of which leaves no error
    any other (cold)       |x| times those bits of 2 / pi that decide the quadrant and what follows

Sine and cosine of the same elements share k and r.  Errors are below 2 units in the last place.
Source: M. Payne, R. Hanek, Radian reduction for trigonometric functions, 1983.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

from blocknumba import coefficients as table
from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import DOUBLE, FLOAT, I1, I32, I64, Body, floating, integer
from blocknumba.nvvm_lower.services.division import call, fma
from blocknumba.nvvm_lower.services.rare_cases import MAX_TOGETHER, one_by_one, quick_if

MAX_QUICK = 2.0 ** 16  # k has so few bits that k times the parts of pi / 2 are exact enough
_TO_INTEGER = 1.5 * 2.0 ** 23  # added to a float, its last bits are those of the nearest integer
_HALF_PI, _TWO_OVER_PI = table.HALF_PI["float"], table.TWO_OVER_PI["float"][0]


def sines(emitter: Emitter, xs: Registers) -> Registers:
    """sin(x) of float32; NaN of infinity."""
    def sine(x: str, k: str, r: str) -> str:
        body = emitter.body
        own = body.binary("and", I32, body.convert("bitcast", FLOAT, x, I32),
                          integer(1 << 31, 32))
        return _of_quadrant(body, k, _odd(body, r), _even(body, r), own)
    return _of_angles(emitter, xs, sine)


def cosines(emitter: Emitter, xs: Registers) -> Registers:
    """cos(x) of float32; NaN of infinity."""
    def cosine(x: str, k: str, r: str) -> str:
        body = emitter.body
        return _of_quadrant(body, body.binary("add", I32, k, "1"), _odd(body, r), _even(body, r))
    return _of_angles(emitter, xs, cosine)


def _of_angles(emitter: Emitter, xs: Registers,
               function: Callable[[str, str, str], str]) -> Registers:
    """A function of x, k and r of each element."""
    made: dict[str, str] = {}
    different, size = list(dict.fromkeys(xs)), MAX_TOGETHER // 2
    for first in range(0, len(different), size):
        part = different[first:first + size]
        angles = emitter.body.once(("angles", *part), partial(_angles, emitter, part))
        for x, k, r in zip(part, angles, angles[len(part):], strict=False):
            made[x] = function(x, k, r)
    return [made[x] for x in xs]


def _angles(emitter: Emitter, xs: Registers) -> Registers:
    """k of all as i32, then r of all."""
    body = emitter.body
    sizes = [call(body, "llvm.nvvm.fabs.f", x) for x in xs]
    condition = reduce(partial(body.binary, "and", I1), [
        body.compare("fcmp ole", FLOAT, size, floating(MAX_QUICK)) for size in sizes])

    def quickly() -> Registers:
        pairs = [_angle(body, size) for size in sizes]
        return [pair[part] for part in (0, 1) for pair in pairs]

    def exactly() -> Registers:
        if len(sizes) == 1:
            return _any_angle(body, *sizes)
        return one_by_one(body, partial(_any_angle, body), [sizes], results=2)

    made = quick_if(body, condition, quickly, exactly)
    return [*(body.convert("bitcast", FLOAT, k, I32) for k in made[:len(xs)]), *made[len(xs):]]


def _angle(body: Body, size: str) -> Registers:
    """k, as the bits of a float, and r of a number from 0 to MAX_QUICK."""
    biased = fma(body, size, floating(_TWO_OVER_PI), floating(_TO_INTEGER))
    k = body.binary("fsub", FLOAT, biased, floating(_TO_INTEGER))
    rest = size
    for part in _HALF_PI:
        rest = fma(body, k, floating(-part), rest)
    return [biased, rest]


def _any_angle(body: Body, size: str) -> Registers:
    """k, as the bits of a float, and r of any number that is not negative; r is NaN of infinity.

    With size = m * 2**e only the bits of 2 / pi from 2**(1 - e) down matter: those above make whole
    turns.  64 of them times m are the quadrant and 62 bits of the fraction; 32 more round it.
    """
    bits = body.convert("bitcast", FLOAT, size, I32)
    exponent = body.binary("sub", I32, body.binary("lshr", I32, bits, "23"), str(127 - 39))
    is_large = body.compare("fcmp ogt", FLOAT, size, floating(MAX_QUICK))
    start = body.select(is_large, I32, exponent, "0")  # the table has 64 bits more in front
    m = body.convert("zext", I32, body.binary("or", I32, body.binary(
        "and", I32, bits, str((1 << 23) - 1)), str(1 << 23)), I64)
    high, low = _window(body, start)
    below = body.binary("mul", I64, m, body.binary("lshr", I64, low, "32"))
    turns = body.binary("add", I64, body.binary("mul", I64, m, high),
                        body.binary("lshr", I64, below, "32"))
    k = body.binary("lshr", I64, body.binary("add", I64, turns, str(1 << 61)), "62")
    fraction = body.binary("sub", I64, turns, body.binary("shl", I64, k, "62"))
    r = body.binary("fmul", DOUBLE, body.convert("sitofp", I64, fraction, DOUBLE),
                    floating(math.pi / 2 * 2.0 ** -62))
    r = body.binary("fadd", FLOAT, body.convert("fptrunc", DOUBLE, r, FLOAT),
                    body.binary("fmul", FLOAT, size, floating(0.0)))  # NaN of infinity
    k = body.convert("bitcast", I32, body.convert("trunc", I64, k, I32), FLOAT)
    return [body.select(is_large, FLOAT, one, other)
            for one, other in zip((k, r), _angle(body, size), strict=True)]


def _window(body: Body, start: str) -> tuple[str, str]:
    """Twice 64 bits of 2 / pi, the first of which is given."""
    array = f"[{len(table.TWO_OVER_PI_BITS)} x {I64}]"
    words = ", ".join(f"{I64} {integer(word, 64)}" for word in table.TWO_OVER_PI_BITS)
    name = body.module.global_variable(
        "two_over_pi", f"internal unnamed_addr addrspace(4) constant {array} [{words}], align 8")
    word = body.binary("lshr", I32, start, "6")
    shift = body.convert("zext", I32, body.binary("and", I32, start, "63"), I64)
    loaded = []
    for index in range(3):
        at = body.binary("add", I32, word, str(index))
        place = body.pure(f"getelementptr {array}, {array} addrspace(4)* {name}, i32 0, i32 {at}")
        loaded.append(body.assign(f"load {I64}, {I64} addrspace(4)* {place}, align 8"))
    # two shifts, as one by 64 would be undefined
    back = body.binary("sub", I64, "63", shift)
    return tuple(body.binary("or", I64, body.binary("shl", I64, one, shift), body.binary(
        "lshr", I64, body.binary("lshr", I64, other, "1"), back))
        for one, other in zip(loaded, loaded[1:], strict=False))


def _odd(body: Body, r: str) -> str:
    """sin(r) from -pi / 4 to pi / 4."""
    square = body.binary("fmul", FLOAT, r, r)
    return fma(body, body.binary("fmul", FLOAT, r, square), _polynomial(body, table.SIN, square), r)


def _even(body: Body, r: str) -> str:
    """cos(r) from -pi / 4 to pi / 4."""
    square = body.binary("fmul", FLOAT, r, r)
    above = fma(body, square, _polynomial(body, table.COS, square), floating(-0.5))
    return fma(body, square, above, floating(1.0))


def _polynomial(body: Body, coefficients: Mapping[str, Sequence[float]], x: str) -> str:
    *others, found = map(floating, coefficients["float"])
    for coefficient in reversed(others):
        found = fma(body, x, found, coefficient)
    return found


def _of_quadrant(body: Body, k: str, odd: str, even: str, sign: str = "0") -> str:
    """sin(k * pi/2 + r) of sin(r) and cos(r), with a sign bit."""
    is_odd = body.compare("icmp ne", I32, body.binary("and", I32, k, "1"), "0")
    value = body.convert("bitcast", FLOAT, body.select(is_odd, FLOAT, even, odd), I32)
    turned = body.binary("shl", I32, body.binary("and", I32, k, "2"), "30")
    signs = body.binary("xor", I32, turned, sign)
    return body.convert("bitcast", I32, body.binary("xor", I32, value, signs), FLOAT)

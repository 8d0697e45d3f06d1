"""Correctly rounded quotients and square roots of a thread's float32 elements at once.

An IEEE division by itself is a quick sequence, a check whether that is exact, and a branch to a
slow one.  Here a thread checks all its elements together and branches once:

    operands far from overflow and underflow:   r = 1 / y, once for each divisor
                                                q = x * r;   q += (x - y * q) * r
    any other (cold):                           an IEEE division for each

Why the quick quotient is exact: r is 1 / y to half a unit in the last place and a bit, q then is
x / y to 1.5 units, the rest x - y * q is exact (it is a multiple of the product of both last
places, and not subnormal), and the last step is rounded once.  tests/nvvm_lower/test_division.py
tries the quotients nearest to ties.
Source: Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor",
IBM Journal of R&D 34(1).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from blocknumba.nvvm_lower.emitter import Emitter, Registers
from blocknumba.nvvm_lower.llvm import FLOAT, I1, I32, Body, floating, integer
from blocknumba.nvvm_lower.ptx import arithmetic as ptx
from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.services.rare_cases import MAX_TOGETHER, one_by_one, quick_if

MIN_TOGETHER = 4  # fewer elements are divided one by one
SHARED_DIVISOR = 4  # elements for each divisor, from which on each divisor has its own bounds
# Bounds of quotients of any operands: x / y and the rest are normal numbers within them.
MIN_DIVIDEND, MAX_DIVIDEND = 2.0 ** -77, 2.0 ** 85
MIN_DIVISOR, MAX_DIVISOR = 2.0 ** -40, 2.0 ** 48
# Bounds of a divisor alone, and of what is divided by it: x itself, and x by |y|.
MIN_SHARED, MAX_SHARED = 2.0 ** -125, 2.0 ** 125
MIN_DIVIDEND_OF_SHARED, MIN_QUOTIENT, MAX_QUOTIENT = 2.0 ** -100, 2.0 ** -124, 2.0 ** 124
# Bounds of a square root: its rest is a normal number within them.
MIN_RADICAND, MAX_RADICAND = 2.0 ** -100, 2.0 ** 126
GREATEST = float(np.finfo(np.float32).max)
_PURE = "nounwind readnone"


def divide(emitter: Emitter, xs: Registers, ys: Registers) -> Registers:
    """x / y of float32 for each pair, correctly rounded."""
    quotients: Registers = []
    size = MAX_TOGETHER if _share_divisors(ys) else MAX_TOGETHER // 2
    for first in range(0, len(xs), size):
        part = slice(first, first + size)
        quotients += _divide(emitter, xs[part], ys[part])
    return quotients


def square_roots(emitter: Emitter, xs: Registers) -> Registers:
    """The square root of each float32, correctly rounded."""
    roots: Registers = []
    for first in range(0, len(xs), MAX_TOGETHER):
        roots += _square_roots(emitter, xs[first:first + MAX_TOGETHER])
    return roots


def _share_divisors(ys: Registers) -> bool:
    """Whether there are few different ones."""
    return len(ys) >= SHARED_DIVISOR * len(set(ys))


def _divide(emitter: Emitter, xs: Registers, ys: Registers) -> Registers:
    body = emitter.body
    pairs = list(zip(xs, ys, strict=True))

    def exactly(x: str, y: str) -> str:
        return body.binary("fdiv", FLOAT, x, y)

    def quickly() -> Registers:
        inverses = {y: _inverse(emitter, y) for y in dict.fromkeys(ys)}
        return [_quotient(emitter, x, y, inverses[y]) for x, y in pairs]

    if len(pairs) < MIN_TOGETHER:
        return [exactly(x, y) for x, y in pairs]
    return quick_if(body, _are_divisible(emitter, pairs), quickly,
                    partial(one_by_one, body, lambda x, y: [exactly(x, y)], [xs, ys]))


def _square_roots(emitter: Emitter, xs: Registers) -> Registers:
    body = emitter.body

    def exactly(x: str) -> str:
        return call(body, "llvm.sqrt.f32", x)

    def quickly() -> Registers:
        return [_root(emitter, x) for x in xs]

    if len(xs) < MIN_TOGETHER:
        return [exactly(x) for x in xs]
    return quick_if(body, _are_radicands(emitter, list(dict.fromkeys(xs))), quickly,
                    partial(one_by_one, body, lambda x: [exactly(x)], [xs]))


def _are_divisible(emitter: Emitter, pairs: list[tuple[str, str]]) -> str:
    """Whether all quotients are exact by the quick sequence, an i1."""
    body = emitter.body
    groups: dict[str, dict[str, None]] = {}
    for x, y in pairs:
        groups.setdefault(y, {}).setdefault(x)
    if _share_divisors([y for _, y in pairs]):
        tests = [test for y, xs in groups.items()
                 for test in _within_bounds_of(emitter, y, list(xs))]
    else:
        xs = list(dict.fromkeys(x for x, _ in pairs))
        tests = [*_are_dividends(emitter, xs, floating(MIN_DIVIDEND), floating(MAX_DIVIDEND)),
                 *_are_divisors(emitter, list(groups))]
    return _all(body, tests)


def _within_bounds_of(emitter: Emitter, y: str, xs: Registers) -> Registers:
    """Whether y may be a divisor, and xs be divided by it."""
    body, size = emitter.body, _magnitude(emitter.body, y)
    low, high = (body.binary("fmul", FLOAT, size, floating(bound))
                 for bound in (MIN_QUOTIENT, MAX_QUOTIENT))
    low = call(body, "llvm.maxnum.f32", low, floating(MIN_DIVIDEND_OF_SHARED))
    return [body.compare("fcmp oge", FLOAT, size, floating(MIN_SHARED)),
            body.compare("fcmp ole", FLOAT, size, floating(MAX_SHARED)),
            *_are_dividends(emitter, xs, low, high)]


def _are_dividends(emitter: Emitter, xs: Registers, low: str, high: str) -> Registers:
    """Whether all xs are 0, NaN, or in [low, high] by magnitude.

    Twice the bits, less one, are of a zero the greatest integer.
    """
    body = emitter.body
    doubled = [_doubled(body, x, "-1") for x in xs]
    least = _reduced(emitter, ptx.LESSER_UNSIGNED, doubled)
    greatest = _magnitude(body, xs[0])
    for x in xs[1:]:
        greatest = call(body, "llvm.maxnum.f32", greatest, _magnitude(body, x))
    return [body.compare("icmp uge", I32, least, _doubled(body, low, "-1")),
            body.compare("fcmp ule", FLOAT, greatest, high)]


def _are_divisors(emitter: Emitter, ys: Registers) -> Registers:
    """Whether all ys are in the bounds of divisors: not 0 or NaN either."""
    body, (low, high) = emitter.body, map(_bits, (MIN_DIVISOR, MAX_DIVISOR))
    distances = [_doubled(body, y, integer(-2 * low, 32)) for y in ys]
    farthest = _reduced(emitter, ptx.GREATER_UNSIGNED, distances)
    return [body.compare("icmp ule", I32, farthest, integer(2 * (high - low), 32))]


def _are_radicands(emitter: Emitter, xs: Registers) -> str:
    """Whether all xs are 0 or within the bounds of radicands, an i1; -0 is not.

    The bits of floats with a sign are the greatest integers, those of a zero less one are, too.
    """
    body = emitter.body
    bits = [body.convert("bitcast", FLOAT, x, I32) for x in xs]
    least = _reduced(emitter, ptx.LESSER_UNSIGNED,
                     [body.binary("add", I32, one, "-1") for one in bits])
    greatest = _reduced(emitter, ptx.GREATER_UNSIGNED, bits)
    return _all(body, [body.compare("icmp uge", I32, least, str(_bits(MIN_RADICAND) - 1)),
                       body.compare("icmp ule", I32, greatest, str(_bits(MAX_RADICAND)))])


def _inverse(emitter: Emitter, y: str) -> str:
    """1 / y to half a unit in the last place and a bit."""
    body = emitter.body
    (first,) = emitter.assembly(ptx.RECIPROCAL, y)
    error = fma(body, _negated(body, y), first, floating(1.0))
    return fma(body, first, error, first)


def _quotient(emitter: Emitter, x: str, y: str, inverse: str) -> str:
    """x / y; the sign of a zero is that of the first approximation."""
    body = emitter.body
    quotient = body.binary("fmul", FLOAT, x, inverse)
    rest = fma(body, _negated(body, y), quotient, x)
    corrected = fma(body, rest, inverse, quotient)
    bits = [body.convert("bitcast", FLOAT, value, I32) for value in (corrected, quotient)]
    return body.convert("bitcast", I32, emitter.assembly(ptx.SIZE_AND_SIGN, *bits)[0], FLOAT)


def _root(emitter: Emitter, x: str) -> str:
    """The square root of x: its approximation, and the rest by twice that.

    The inverse of a zero is infinite, and the greatest number does as well.
    """
    body = emitter.body
    (inverse,) = emitter.assembly(ptx.RECIPROCAL_ROOT, x)
    inverse = call(body, "llvm.minnum.f32", inverse, floating(GREATEST))
    root = body.binary("fmul", FLOAT, x, inverse)
    rest = fma(body, _negated(body, root), root, x)
    return fma(body, rest, body.binary("fmul", FLOAT, inverse, floating(0.5)), root)


def _doubled(body: Body, x: str, plus: str) -> str:
    """Twice the bits of a float, which has no sign then, plus an integer."""
    bits = body.convert("bitcast", FLOAT, x, I32)
    return body.binary("add", I32, body.binary("shl", I32, bits, "1"), plus)


def _reduced(emitter: Emitter, row: Assembly, values: Registers) -> str:
    """Integers reduced by an instruction."""
    found = values[0]
    for value in values[1:]:
        (found,) = emitter.assembly(row, found, value)
    return found


def _all(body: Body, tests: Registers) -> str:
    """The conjunction of some i1."""
    found = tests[0]
    for test in tests[1:]:
        found = body.binary("and", I1, found, test)
    return found


def _bits(value: float) -> int:
    """The bits of a power of two as a float32."""
    return int(np.float32(value).view(np.int32))


def _magnitude(body: Body, x: str) -> str:
    return call(body, "llvm.nvvm.fabs.f", x)


def _negated(body: Body, x: str) -> str:
    return body.binary("fsub", FLOAT, floating(-0.0), x)


def fma(body: Body, x: str, y: str, z: str) -> str:
    """x * y + z of float32, rounded once."""
    return call(body, "llvm.fma.f32", x, y, z)


def call(body: Body, name: str, *values: str) -> str:
    """A pure function of float32."""
    return body.call(FLOAT, name, *[f"{FLOAT} {value}" for value in values], attributes=_PURE)

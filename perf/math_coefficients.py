"""Writes `blocknumba/coefficients.py`: every number of the vector functions.

    python perf/math_coefficients.py            # all of it, about five minutes; needs mpmath
    python perf/math_coefficients.py ERF SIN    # prints some of the polynomials
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp
from minimax import ROUNDED, fit

TARGET = Path(__file__).parent.parent / "blocknumba/coefficients.py"
HEADER = '''"""Coefficients of polynomials, constants in parts: from perf/math_coefficients.py.

Polynomials have the constant first.  Parts of a constant add up to it, the largest first.
"""

'''
SCALARS = {"float": "float32", "double": "float64"}
BEYOND = mp.mpf("1.0001")  # intervals are a little wider than what rounding can reach


@dataclass(frozen=True)
class Polynomial:
    """One function and the polynomials for it.

    meaning: a sentence; degrees: by the LLVM type of the coefficients; interval: of each, or of
    all; weight: what an error of the polynomial is multiplied with.
    """

    meaning: str
    function: Callable
    interval: tuple | dict[str, tuple]
    degrees: dict[str, int]
    weight: Callable = lambda x: mp.mpf(1)

    def text(self, name: str) -> str:
        """The lines of the table."""
        lines = [f"# {self.meaning}"]
        entries = []
        for scalar, degree in self.degrees.items():
            interval = self.interval
            interval = interval[scalar] if isinstance(interval, dict) else interval
            found = fit(self.function, interval, degree, SCALARS[scalar.split()[0]],
                        weight=self.weight)
            lines.append(f"# {scalar}: error 2**{math.log2(found.error):.1f} on "
                         f"[{float(interval[0]):.5g}, {float(interval[1]):.5g}]")
            entries.append(f'    "{scalar}": (\n{filled(found.coefficients)}),\n')
        return "\n".join(lines) + f"\n{name} = {{\n{''.join(entries)}}}\n"


def filled(numbers: Sequence[float]) -> str:
    """The lines of a tuple's numbers."""
    return textwrap.fill("".join(f"{number!r}, " for number in numbers).rstrip(" ,"), width=97,
                         initial_indent=" " * 8, subsequent_indent=" " * 8)


def near_zero(function: Callable, limit: float) -> Callable:
    """A quotient of powers whose value at 0 is its limit."""
    return lambda x: function(mp.mpf(x)) if abs(x) > mp.mpf("1e-20") else mp.mpf(limit)


def odd_series(function: Callable, limit: mp.mpf) -> Callable:
    """(function(x) - x) / x**3 as a function of x**2."""
    def quotient(z):
        x = mp.sqrt(z)
        return (function(x) - x) / x ** 3
    return near_zero(quotient, limit)


HALF_LN2 = mp.log(2) / 2 * BEYOND
THIRD = mp.mpf(1) / 3
EIGHTH_TURN = mp.pi / 4 * BEYOND

def _log1p_rest(f: mp.mpf) -> mp.mpf:
    """(log(1 + f) / f - 1) / f."""
    return (mp.log1p(f) / f - 1) / f if abs(f) > mp.mpf("1e-20") else -mp.mpf(1) / 2


def _abscissa(q: mp.mpf) -> mp.mpf:
    """x of q = (x - 4) / (x + 4)."""
    return 4 * (1 + q) / (1 - q)


def _erfcx(x: mp.mpf) -> mp.mpf:
    """e**(x**2) erfc(x)."""
    return mp.exp(x * x) * mp.erfc(x)


def _stirling_rest(a: mp.mpf) -> mp.mpf:
    """log(gamma(a)) less the terms of Stirling's formula that do not vanish."""
    return mp.loggamma(a) - (a - 0.5) * mp.log(a) + a - mp.log(2 * mp.pi) / 2


POLYNOMIALS = {
    "EXP": Polynomial(
        "(e**r - 1 - r) / r**2; the error is relative to e**r",
        near_zero(lambda r: (mp.expm1(r) - r) / r ** 2, 0.5), (-HALF_LN2, HALF_LN2),
        {"float": 4, "double": 9, "double short": 4}, lambda r: r ** 2 / mp.exp(r)),
    "EXP2": Polynomial(
        "(2**r - 1) / r; the error is relative to 2**r",
        near_zero(lambda r: (mp.power(2, r) - 1) / r, mp.log(2)), (-BEYOND / 2, BEYOND / 2),
        {"float": 5, "double": 10}, lambda r: abs(r) / mp.power(2, r)),
    "LOG1P": Polynomial(
        "(log(1 + f) - f + f**2 / 2) / f**3; the error is relative to log(1 + f)",
        near_zero(lambda f: (mp.log1p(f) - f + f * f / 2) / f ** 3, THIRD),
        (mp.sqrt(0.5) / BEYOND - 1, mp.sqrt(2) * BEYOND - 1), {"float": 7},
        lambda f: abs(f ** 3 / mp.log1p(f)) if f else mp.mpf(0)),
    "LOG2": Polynomial(
        "(log2(1 + f) / f - log2(e)) / f; the error is relative to log2(1 + f)",
        lambda f: _log1p_rest(f) / mp.log(2),
        (mp.sqrt(0.5) / BEYOND - 1, mp.sqrt(2) * BEYOND - 1), {"float": 8},
        lambda f: abs(f ** 2 * mp.log(2) / mp.log1p(f)) if f else mp.mpf(0)),
    "LOG10": Polynomial(
        "(log10(1 + f) / f - log10(e)) / f; the error is relative to log10(1 + f)",
        lambda f: _log1p_rest(f) / mp.log(10),
        (mp.sqrt(0.5) / BEYOND - 1, mp.sqrt(2) * BEYOND - 1), {"float": 8},
        lambda f: abs(f ** 2 * mp.log(10) / mp.log1p(f)) if f else mp.mpf(0)),
    "ATANH": Polynomial(
        "(2 atanh(s) - 2 s) / s**3 of z = s**2; the error is relative to 2 s",
        near_zero(lambda z: 2 * (mp.atanh(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3, 2 * THIRD),
        (0, (3 - 2 * mp.sqrt(2)) ** 2 * BEYOND), {"double": 6, "double short": 3},
        lambda z: z / 2),
    "ATANH_ABOVE": Polynomial(
        "((2 atanh(s) - 2 s) / s**3 - 2/3) / z of z = s**2; the error is relative to 2 s",
        near_zero(lambda z: (2 * (mp.atanh(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3 - 2 * THIRD)
                  / z, mp.mpf(2) / 5),
        (0, (3 - 2 * mp.sqrt(2)) ** 2 * BEYOND), {"double": 7}, lambda z: z ** 2 / 2),
    "SINH": Polynomial(
        "(sinh(x) - x) / x**3 of z = x**2; the error is relative to x",
        odd_series(mp.sinh, mp.mpf(1) / 6), (0, BEYOND), {"float": 3, "double": 7},
        lambda z: z),
    "TANH": Polynomial(
        "(tanh(x) - x) / x**3 of z = x**2; the error is relative to tanh(x)",
        odd_series(mp.tanh, -THIRD), (0, mp.mpf("0.36")), {"float": 4, "double": 10},
        lambda z: mp.sqrt(z) ** 3 / mp.tanh(mp.sqrt(z)) if z else z),
    "SIN": Polynomial(
        "(sin(r) - r) / r**3 of z = r**2; the error is relative to r",
        odd_series(mp.sin, -mp.mpf(1) / 6), (0, EIGHTH_TURN ** 2), {"float": 2, "double": 5},
        lambda z: z),
    "COS": Polynomial(
        "(cos(r) - 1 + r**2 / 2) / r**4 of z = r**2; the error is absolute",
        near_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2, mp.mpf(1) / 24),
        (0, EIGHTH_TURN ** 2), {"float": 2, "double": 5}, lambda z: z ** 2),
    "ERF": Polynomial(
        "erf(x) / x - 1 of z = x**2; the error is relative to erf(x)",
        near_zero(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1),
        (0, 1), {"float": 6, "double": 12}, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)) if z else 1),
    "ERFCX": Polynomial(
        "(1 + 2 x) e**(x**2) erfc(x) of (x - 4) / (x + 4); the error is relative to erfc(x)",
        lambda q: (1 + 2 * _abscissa(q)) * _erfcx(_abscissa(q)),
        {"float": (-1, mp.mpf("0.449")), "double": (-1, mp.mpf("0.7501"))},
        {"float": 11, "double": 24}, lambda q: 1 / ((1 + 2 * _abscissa(q)) * _erfcx(_abscissa(q)))),
    "ASIN": Polynomial(
        "(asin(x) - x) / x**3 of z = x**2; the error is relative to asin(x)",
        odd_series(mp.asin, mp.mpf(1) / 6), (0, BEYOND / 4), {"float": 4, "double": 11},
        lambda z: z * mp.sqrt(z) / mp.asin(mp.sqrt(z)) if z else z),
    "ATAN": Polynomial(
        "(atan(x) - x) / x**3 of z = x**2; the error is relative to atan(x)",
        odd_series(mp.atan, -THIRD), (0, (mp.sqrt(2) - 1) ** 2 * BEYOND),
        {"float": 3, "double": 9}, lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)) if z else z),
    "INVERSE_CBRT": Polynomial(
        "t**(-1/3); the error is relative",
        lambda t: 1 / mp.cbrt(t), (mp.power(2, -1.5) / BEYOND, mp.power(2, 1.5) * BEYOND),
        {"float": 4, "double": 4}, mp.cbrt),
    "INVERSE_GAMMA": Polynomial(
        "1 / gamma(2 + u); the error is relative",
        lambda u: mp.rgamma(2 + u), (-0.5, 0.5), {"double": 15}, lambda u: mp.gamma(2 + u)),
    "STIRLING": Polynomial(
        "a times the rest of Stirling's formula, of 1 / a**2; the error is that of log(gamma(a))",
        near_zero(lambda w: mp.sqrt(1 / w) * _stirling_rest(mp.sqrt(1 / w)), mp.mpf(1) / 12),
        (0, 1 / mp.mpf(64) * BEYOND), {"double": 6}, mp.sqrt),
    "ERFC": Polynomial(
        "log(erfc(t + 2)); the error is that of erf(t + 2)",
        lambda t: mp.log(mp.erfc(t + 2)), {"float": (-1, 2), "double": (-1, 4)},
        {"float": 7, "double": 18}, lambda t: mp.erfc(t + 2)),
}


def parts(value: mp.mpf, dtype: str, count: int, spare_bits: int = 0) -> tuple[float, ...]:
    """Numbers that add up to value; all but the last end in spare_bits bits of 0."""
    found = []
    for index in range(count):
        part = float(ROUNDED[dtype](float(value)))
        if spare_bits and index < count - 1:
            fraction, exponent = math.frexp(part)
            width = (24 if dtype == "float32" else 53) - spare_bits
            part = math.ldexp(round(fraction * 2 ** width), exponent - width)
        found.append(part)
        value -= mp.mpf(part)
    return tuple(found)


CONSTANTS = {  # name: value, number of parts, bits that are 0 at the end of a part
    "LN2": (mp.log(2), 2, 0),
    "LN2_SHORT": (mp.log(2), 2, 12),
    "TWO_THIRDS": (2 * THIRD, 2, 0),
    "LOG2_E": (1 / mp.log(2), 2, 0),
    "LOG10_E": (1 / mp.log(10), 2, 0),
    "LOG10_2_SHORT": (mp.log10(2), 2, 12),
    "HALF_PI": (mp.pi / 2, 3, 0),
    "STIRLING_CONSTANT": ((mp.log(2 * mp.pi) - 1) / 2, 2, 0),
    "TWO_OVER_PI": (2 / mp.pi, 1, 0),
}


def constant_text(name: str) -> str:
    value, count, spare = CONSTANTS[name]
    rows = "".join(f'    "{scalar}": {parts(value, dtype, count, spare)!r},\n'
                   for scalar, dtype in SCALARS.items())
    return f"{name} = {{\n{rows}}}\n"


def bits_of_two_over_pi() -> str:
    """64 bits of 0 and the first 1216 after the point, in words of 64."""
    with mp.workprec(1400):
        scaled = int(mp.floor(2 / mp.pi * mp.mpf(2) ** 1216))
    words = [scaled >> shift & (1 << 64) - 1 for shift in range(1216 - 64, -1, -64)]
    numbers = "".join(f"    0x{word:016X},\n" for word in [0, *words])
    return ("# 2 / pi after 64 bits of 0, the most significant word first\n"
            f"TWO_OVER_PI_BITS = (\n{numbers})\n")


def main(names: list[str]) -> None:
    if names:
        print("\n".join(POLYNOMIALS[name].text(name) for name in names))
        return
    texts = [constant_text(name) for name in CONSTANTS] + [bits_of_two_over_pi()]
    texts += [polynomial.text(name) for name, polynomial in POLYNOMIALS.items()]
    TARGET.write_text(HEADER + "\n".join(texts))


if __name__ == "__main__":
    main(sys.argv[1:])

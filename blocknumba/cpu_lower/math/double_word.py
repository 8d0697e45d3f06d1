"""Sums of two floats as numbers of twice the digits.

Source: M. Joldes, J.-M. Muller, V. Popescu, Tight and rigorous error bounds for basic building
blocks of double-word arithmetic, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.cpu_lower.vectors import Vector, fma
from blocknumba.cpu_lower.vectors import sqrt as square_root


@dataclass(frozen=True, slots=True)
class Double:
    """high + low, where low is at most half an ulp of high."""

    high: Vector
    low: Vector


def two_sum(x: Vector, y: Vector) -> Double:
    """x + y, exactly."""
    total = x + y
    part = total - x
    return Double(total, (x - (total - part)) + (y - part))


def quick_sum(x: Vector, y: Vector) -> Double:
    """x + y, exactly; |x| >= |y|, or x = 0."""
    total = x + y
    return Double(total, y - (total - x))


def two_product(x: Vector, y: Vector | float) -> Double:
    """x * y, exactly unless it underflows."""
    total = x * y
    return Double(total, fma(x, y, -total))


def plus(x: Double, y: Vector | float) -> Double:
    """x + y."""
    total = two_sum(x.high, x.high.like(y))
    return quick_sum(total.high, total.low + x.low)


def times(x: Double, y: Vector | float) -> Double:
    """x * y."""
    total = two_product(x.high, y)
    return quick_sum(total.high, fma(x.low, y, total.low))


def product(x: Double, y: Double) -> Double:
    """x * y, to four units of the last place of low."""
    total = two_product(x.high, y.high)
    return quick_sum(total.high, total.low + fma(x.high, y.low, x.low * y.high))


def quotient(x: Double, y: Double) -> Double:
    """x / y, to a few units of the last place of low."""
    reciprocal = 1.0 / y.high
    high = x.high * reciprocal
    rest = (fma(-high, y.high, x.high) + x.low) - high * y.low
    return quick_sum(high, rest * reciprocal)


def root(x: Double) -> Double:
    """sqrt(x), to a few units of the last place of low; x > 0."""
    high = square_root(x.high)
    return quick_sum(high, (fma(-high, high, x.high) + x.low) / (high + high))

"""The error function and its complement."""

from __future__ import annotations

from blocknumba import coefficients as table
from blocknumba.cpu_lower.math.double_word import two_product
from blocknumba.cpu_lower.math.exponential import exp, exp_of_sum
from blocknumba.cpu_lower.math.registry import elementwise
from blocknumba.cpu_lower.vectors import (
    Vector, absolute, at_most, copysign, fma, horner, polynomial, where,
)

# erf of larger numbers is 1, rounded; the polynomial of the logarithm of erfc ends here.
ERF_IS_ONE = {"float": 4.0, "double": 6.0}
ERFC_IS_ZERO = {"float": 10.5, "double": 28.0}


def _near_zero(x: Vector) -> Vector:
    """erf(x) for |x| <= 1."""
    return fma(x, polynomial(x * x, table.ERF[x.scalar]), x)


@elementwise("erf", float32=1.5, float64=1.5)
def erf(x: Vector) -> Vector:
    """Up to 1 a polynomial; above 1 - e**p, whose error weighs as much less as erfc is small."""
    size = absolute(x)
    small = _near_zero(x)
    t = at_most(size, ERF_IS_ONE[x.scalar]) - 2.0
    large = 1.0 - exp(horner(t, table.ERFC[x.scalar]))
    return where(size < 1.0, small, copysign(large, x))


@elementwise("erfc", float32=4, float64=4)
def erfc(x: Vector) -> Vector:
    """e**(-x**2) p((|x| - 4) / (|x| + 4)) / (1 + 2 |x|), where x**2 has two parts; 1 - erf near 0.

    Source: M. Shepherd, J. Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2) erfc x, 1981.
    """
    size = at_most(absolute(x), ERFC_IS_ZERO[x.scalar])
    square = two_product(size, size)
    scaled = horner((size - 4.0) / (size + 4.0), table.ERFCX[x.scalar])
    value = exp_of_sum(-square.high, -square.low) * (scaled / fma(size, 2.0, 1.0))
    value = where(x < 0.0, 2.0 - value, value)
    return where(absolute(x) < 0.7, 1.0 - _near_zero(x), value)

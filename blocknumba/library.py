"""Functions written in the language itself; a kernel that calls them gets their bodies."""

from __future__ import annotations

from blocknumba.typing.functions.elementwise import FLOAT_FUNCTIONS, maximum, minimum
from blocknumba.typing.functions.elementwise import where as choose
from blocknumba.typing.functions.reduce import max as max_along
from blocknumba.typing.functions.reduce import sum as sum_along

_exp, _sqrt, _rint = (FLOAT_FUNCTIONS[name] for name in ("exp", "sqrt", "rint"))


def cdiv(x, div):
    """ceil(x / div) for positive integers, in a kernel and outside."""
    return (x + div - 1) // div


def next_power_of_2(n):
    """The least power of two that is not less than n, for a compile-time int, and outside."""
    return 1 << (n - 1).bit_length() if n > 1 else 1


def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + _exp(-x))


def softmax(x, dim=0, keep_dims=False, ieee_rounding=False, where=None):
    """exp(x - max(x)) / sum(exp(x - max(x))) along dim.

    where: bool, broadcast to x: which elements count; the result is 0 where it is False.  Leave
    out those that were loaded outside an array, or load them with other=-inf: they are 0 else.
    keep_dims, ieee_rounding: accepted for Triton's kernels; the shape is that of x, and division
    is always correctly rounded.
    """
    shifted = _exp(x - max_along(x, dim, keep_dims=True, where=where))
    quotient = shifted / sum_along(shifted, dim, keep_dims=True, where=where)
    return quotient if where is None else choose(where, quotient, 0)


def welford_combine(mean_1, m2_1, count_1, mean_2, m2_2, count_2):
    """The moments of two parts of the data together, each as welford gives them.

    Source: Chan, Golub, LeVeque, "Algorithms for Computing the Sample Variance", 1983.
    """
    distance = mean_2 - mean_1
    count = count_1 + count_2
    share = count_2 / maximum(count, 1)
    return (mean_1 + distance * share, m2_1 + m2_2 + distance * distance * count_1 * share, count)


def fdiv(x, y, ieee_rounding=False):
    """x / y.  ieee_rounding: accepted for Triton's kernels; it is always so."""
    return x / y


def div_rn(x, y):
    """x / y, correctly rounded."""
    return x / y


def sqrt_rn(x):
    """The square root, correctly rounded."""
    return _sqrt(x)


def round(x):
    """The nearest integer, ties to even.   Source: numpy.round."""
    return _rint(x)


def swizzle2d(i, j, size_i, size_j, size_g):
    """The place of element (i, j) of a (size_i, size_j) grid that is walked in groups of rows.

    Rows are taken size_g at a time, and within a group columns first.  Gives (row, column).
    """
    flat = i * size_j + j
    in_group = size_g * size_j
    first = flat // in_group * size_g
    rows = minimum(size_i - first, size_g)
    rest = flat % in_group
    return first + rest % rows, rest // rows

"""Functions written in the language itself; a kernel that calls them gets their bodies."""

from __future__ import annotations

from blocknumba.typing.functions.elementwise import (
    FLOAT_FUNCTIONS, floating, maximum, minimum,
)
from blocknumba.typing.functions.elementwise import where as choose
from blocknumba.typing.functions.reduce import max as max_along
from blocknumba.typing.functions.reduce import sum as sum_along

_exp, _sqrt = (FLOAT_FUNCTIONS[name] for name in ("exp", "sqrt"))


def cdiv(x, div):
    """ceil(x / div) for positive integers, in a kernel and outside.

    Example:
    >>> bn.cdiv(10, 4), bn.evaluate(lambda n: bn.cdiv(n, 4), np.int32([8, 9]))
    (3, array([2, 3], dtype=int32))
    """
    return (x + div - 1) // div


def next_power_of_2(n):
    """The least power of two that is not less than n, for a compile-time int, and outside.

    Example:
    >>> bn.next_power_of_2(100)
    128
    """
    return 1 << (n - 1).bit_length() if n > 1 else 1


def sigmoid(x):
    """1 / (1 + exp(-x)).

    Example:
    >>> bn.evaluate(bn.sigmoid, [0.0, 2.0])
    array([0.5       , 0.88079708])
    """
    return 1 / (1 + _exp(-floating("sigmoid", x)))


def softmax(x, dim=0, keep_dims=False, ieee_rounding=False, where=None):
    """exp(x - max(x)) / sum(exp(x - max(x))) along dim.

    where: bool, broadcast to x: which elements count; the result is 0 where it is False.  Leave
    out those that were loaded outside an array, or load them with other=-inf: they are 0 else.
    keep_dims, ieee_rounding: accepted for Triton's kernels; the shape is that of x, and division
    is always correctly rounded.

    Example:
    >>> bn.evaluate(bn.softmax, [0.0, np.log(3)])
    array([0.25, 0.75])
    >>> bn.evaluate(bn.softmax, [1.0, 1.0, 0.0, 0.0], where=[True, True, False, False])
    array([0.5, 0.5, 0. , 0. ])
    """
    x = floating("softmax", x)  # differences of ints may wrap
    shifted = _exp(x - max_along(x, dim, keep_dims=True, where=where))
    quotient = shifted / sum_along(shifted, dim, keep_dims=True, where=where)
    return quotient if where is None else choose(where, quotient, 0)


def welford_combine(mean_1, m2_1, count_1, mean_2, m2_2, count_2):
    """The moments of two parts of the data together, each as welford gives them.

    Source: Chan, Golub, LeVeque, "Algorithms for Computing the Sample Variance", 1983.

    Example:
    >>> def both(x, y):
    ...     mean_x, m2_x, count_x = bn.welford(x)
    ...     mean_y, m2_y, count_y = bn.welford(y)
    ...     return bn.welford_combine(mean_x, m2_x, count_x, mean_y, m2_y, count_y)
    >>> bn.evaluate(both, [1.0, 2.0], [3.0, 4.0])
    (np.float64(2.5), np.float64(5.0), np.float64(4.0))
    """
    distance = mean_2 - mean_1
    count = count_1 + count_2
    share = count_2 / maximum(count, 1)
    return (mean_1 + distance * share, m2_1 + m2_2 + distance * distance * count_1 * share, count)


def fdiv(x, y, ieee_rounding=False):
    """x / y.  ieee_rounding: accepted for Triton's kernels; it is always so.

    Example:
    >>> bn.evaluate(bn.fdiv, [1.0, 2.0], 4)
    array([0.25, 0.5 ])
    """
    return x / y


def div_rn(x, y):
    """x / y, correctly rounded.

    Example:
    >>> bn.evaluate(bn.div_rn, [1.0, 2.0], 3)
    array([0.33333333, 0.66666667])
    """
    return x / y


def sqrt_rn(x):
    """The square root, correctly rounded.

    Example:
    >>> bn.evaluate(bn.sqrt_rn, [4.0, 2.0])
    array([2.        , 1.41421356])
    """
    return _sqrt(x)


def swizzle2d(i, j, size_i, size_j, size_g):
    """The place of element (i, j) of a (size_i, size_j) grid that is walked in groups of rows.

    Rows are taken size_g at a time, and within a group columns first.  Gives (row, column).

    Example:
    >>> i, j = np.indices((4, 2), dtype=np.int32)
    >>> bn.evaluate(bn.swizzle2d, i, j, 4, 2, 2)
    (array([[0, 1],
           [0, 1],
           [2, 3],
           [2, 3]], dtype=int32), array([[0, 0],
           [1, 1],
           [0, 0],
           [1, 1]], dtype=int32))
    """
    flat = i * size_j + j
    in_group = size_g * size_j
    first = flat // in_group * size_g
    rows = minimum(size_i - first, size_g)
    rest = flat % in_group
    return first + rest % rows, rest // rows

"""With debug=True a variable that the path taken does not assign is found where it is used."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockNameError


def const(y, n):
    if n > 3:
        t = 1.0
    y[0] = t


def const_int(y, n):
    if n > 3:
        t = 2
    else:
        u = 1
    y[0] = t + 1


def boolean(y, n):
    if n > 3:
        t = True
    if t:
        y[0] = 1


def npconst(y, n):
    if n > 3:
        t = np.float32(3)
    y[0] = t


def tup(y, n):
    if n > 3:
        t = (1, 2.5)
    y[0] = t[1]


def looped(y, n):
    for _ in range(n - 3):
        t = 5
    y[0] = t


def nested(y, n):
    if n > 2:
        if n > 3:
            t = 5
    y[0] = t


def whiled(y, n):
    while n > 3:
        t = 5
        n -= 1
    y[0] = t


def span(y, n):
    if n > 3:
        s = bn.span(0, 4)
    y[s] = bn.ones((4,))


def spanload(y, n):
    if n > 3:
        s = bn.span(0, 4)
    y[0] = bn.sum(y[s])


def tile(y, n):
    if n > 3:
        t = bn.ones((4,))
    y[bn.span(0, 4)] = t


def array(y, n):
    if n > 3:
        a = y
    a[0] = 1


def view(y, n):
    if n > 3:
        a = y[1]
    y[0] = a


def cond_expr(y, n):
    if n > 3:
        t = 1.0
    y[0] = t if n > 2 else 3.0


def guarded(y, n):
    if n > 3:
        t = 1.0
    if n > 3:
        y[0] = t


def loopvar(y, n):
    for i in range(n - 3):
        y[0] = 1
    y[1] = i


def loopbound(y, n):
    if n > 3:
        t = 2
    for _ in range(t):
        y[0] = 1


def index(y, n):
    if n > 3:
        t = 2
    y[t] = 1
def helper(n):
    if n > 3:
        t = 2
    return t


def helped(y, n):
    y[0] = helper(n)


def one(x):
    return x + 1


def function(y, n):
    if n > 3:
        f = one
    y[0] = f(y[1])


def text(y, n):
    for _ in range(n - 3):
        d = "float16"
    y[0] = bn.cast(y[1], d)


def dtype(y, n):
    if n > 3:
        t = np.float32
    y[0] = t(2)


def inner(y, n):
    if n > 3:
        def f(x):
            return x * 2
    y[0] = f(y[1])


def calls_chosen(x, n):
    if n > 3:
        f = one
    return f(x)


def function_of_helper(y, n):
    y[0] = calls_chosen(y[1], n)


def guarded_function(y, n):
    if n > 3:
        f = one
    if n > 3:
        y[0] = f(y[1])


def extent(y, n):
    if n > 2:
        width = 4
    y[bn.span(0, width)] = bn.ones((width,))


KERNELS = (const, const_int, boolean, npconst, tup, looped, nested, whiled, span, spanload, tile,
           array, view, cond_expr, loopvar, loopbound, index, helped, function, text, dtype, inner,
           function_of_helper)


def run(function, n, **options):
    """y after a kernel."""
    y = np.full(8, -1, np.float32)
    bn.jit(function)[1](y, n, interpret=True, **options)
    return y.tolist()


@pytest.mark.parametrize("function", KERNELS, ids=lambda function: function.__name__)
def test_a_variable_that_the_path_has_not_assigned_is_found(function):
    name = {"boolean": "t", "array": "a", "view": "a", "loopvar": "i", "span": "s",
            "spanload": "s", "function": "f", "text": "d", "inner": "f",
            "function_of_helper": "f"}.get(function.__name__, "t")
    with pytest.raises(BlockNameError) as caught:
        run(function, 3, debug=True)

    assert f"{name} is used, which program (0, 0, 0) has not assigned" in caught.value.message


@pytest.mark.parametrize("function", KERNELS, ids=lambda function: function.__name__)
def test_a_variable_that_the_path_has_assigned_is_what_it_is_without_debug(function):
    assert run(function, 5, debug=True) == run(function, 5)


@pytest.mark.parametrize("n", [3, 5])
@pytest.mark.parametrize("function", [guarded, guarded_function])
def test_a_variable_that_is_not_used_where_it_is_not_assigned_is_no_error(function, n):
    assert run(function, n, debug=True) == run(function, n)


def test_a_number_that_must_be_known_is_known_in_debug_too():
    assert run(extent, 3, debug=True) == run(extent, 3) == [1] * 4 + [-1] * 4

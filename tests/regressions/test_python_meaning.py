"""Kernels that once did something else than Python does with the same function."""

from __future__ import annotations

import time

import numpy as np
import pytest
from conftest import CPU, EMULATOR, Device
from launching import launch

import blocknumba as bn
from blocknumba.errors import BlockError, BlockNameError, UnsupportedError
from blocknumba.typing.static_values import static_range

KERNELS = []


def kernel(function):
    """A kernel of an array of ints, an output, and the numbers q = 1 and r = 2."""
    KERNELS.append(function)
    return function


@kernel
def a_loop_over_a_tuple_of_a_variable_that_the_body_changes(x, out, q, r):
    p = 0
    for n in (2, q, 5):
        p = p * 10 + n
        q += 1
    out[0] = p


@kernel
def a_loop_over_two_variables_that_the_body_swaps(x, out, q, r):
    p = 0
    for i in (q, r):
        q, r = r, i
        p = p * 10 + i
    out[0] = p


@kernel
def a_loop_over_a_tuple_that_one_of_two_paths_makes(x, out, q, r):
    if q < r:
        t = (q, r)
    else:
        t = (r, 7)
    for i in t:
        out[0] = out[0] * 10 + i


@kernel
def a_tuple_that_grows_in_an_unrolled_loop(x, out, q, r):
    t = ()
    for i in static_range(3):
        t = t + (q * i,)
        q += 1
    for i in t:
        out[0] = out[0] * 10 + i


@kernel
def tuples_of_variables_in_pairs(x, out, q, r):
    for i, (a, b) in enumerate(zip((q, r), (r, q))):
        q = 5
        out[i] = a * 10 + b
    for i, a in enumerate(reversed((q, r, 3))):
        out[2] = out[2] * 10 + a + i


@kernel
def a_tuple_of_variables_after_a_star(x, out, q, r):
    def digits(a, b, *rest):
        return a * 100 + b * 10 + rest[0]

    t = (q, r, 3)
    q = 7
    out[0] = digits(*t)


@kernel
def a_default_of_a_nested_function(x, out, q, r):
    total = 0
    for i in range(3):
        def f(v=i, *, w=q):
            return v * 10 + w
        i = 100
        q = 50
        total += f()
    out[0] = total


@kernel
def a_default_and_a_free_variable_of_one_name(x, out, q, r):
    a = 3
    f = lambda v, m=a: v * m + a  # noqa: E731 - as it was found
    a = 10
    out[0] = f(2)


@kernel
def a_function_that_outlives_the_loop_it_is_made_in(x, out, q, r):
    for i in range(5):
        def f(v=i * q):
            return v
        if i == 1 or i == 3:
            g = f
    out[0] = g()


@kernel
def what_a_factory_returns_in_every_iteration(x, out, q, r):
    def adding(k):
        def add(v):
            return v + k
        return add

    functions = ()
    for i in static_range(3):
        functions = functions + (adding(i * r),)
    for f in functions:
        out[0] = out[0] * 10 + f(q)


@kernel
def every_call_of_a_factory_has_variables_of_its_own(x, out, q, r):
    def counting(k):
        count = k
        count += 1

        def add(by=1):
            nonlocal count
            count += by
            return count
        return add

    first, second = counting(q), counting(r)
    counters = ()
    for i in (0, q, r):
        counters = counters + (counting(i),)
    for i in range(3):
        for count in counters:
            out[0] = out[0] * 3 + count(i)
    first(r)
    out[1] = first() * 10 + second()


@kernel
def functions_made_in_a_loop_share_its_variable(x, out, q, r):
    functions = ()
    for i in static_range(3):
        functions = functions + ((lambda v: v * 10 + i),)
    for f in functions:
        out[0] += f(q)


@kernel
def a_nested_function_assigns_a_variable_around_it(x, out, q, r):
    t = 0

    def add(v):
        nonlocal t
        t = t + v
        return t

    for i in range(4):
        add(i)
    out[0] = t
    out[1] = t * 100 + add(q) + t
    if t == 6:
        out[2] = 1


@kernel
def a_tuple_that_a_nested_function_may_assign(x, out, q, r):
    t = (q, r)

    def longer():
        nonlocal t
        t = (*t, 3)

    for i in range(2):
        out[1] += abs(i)
    for i in t:
        out[0] = out[0] * 10 + i
    longer()
    for i in t:
        out[0] = out[0] * 10 + i


@kernel
def a_function_within_a_function_assigns_a_variable_around_both(x, out, q, r):
    t = q

    def outer():
        def inner(v):
            nonlocal t
            t *= v
        inner(3)
        inner(4)
        return t

    out[0] = outer() + t


@kernel
def a_nested_function_that_reads_what_is_assigned_later(x, out, q, r):
    def f(v):
        return v + later

    later = 4
    out[0] = f(q)


@kernel
def a_condition_that_assigns(x, out, q, r):
    i = 0
    while (v := x[i]) != 4:
        i += 1
    if (n := q + 2) > 2:
        out[1] = n
    out[0] = v * 10 + i
    out[2] = (t := x[1]) + t
    out[3] = r + (r := 5) * (1 if q else 2) + r


@kernel
def a_while_loop_whose_way_out_assigns(x, out, q, r):
    d = 0
    while True:
        if x[d] == 3:
            d += 4
            break
        d += 1
    out[0] = d


@kernel
def a_variable_that_only_an_earlier_iteration_assigns(x, out, q, r):
    for i in range(4):
        if i > 0:
            out[0] = out[0] * 10 + before
        before = i + q


@kernel
def an_unrolled_loop_that_is_left_at_once_in_a_while_loop(x, out, q, r):
    i = 0
    while i < 3:
        for n in static_range(1, 3):
            out[0] += n
            if True:
                break
        for n in (4, q):
            out[1] += n
            if i == 1:
                return
            else:
                break
        i += 1


@kernel
def ranges_at_the_ends_of_their_dtype_that_are_left(x, out, q, r):
    n = m = 0
    for v in range(2**31 - 10, 2**31 - 1, 4):
        n += 1
        if n == 100 * r:
            break
    for v in range(-2**31 + 9 * q, -2**31, -4 * q):
        m += 1
        if m == 100 * r:
            return
    out[0] = n
    out[1] = m


@kernel
def ranges_of_64_bits_that_are_left(x, out, q, r):
    n = m = 0
    for v in range(-2**63, 2**63 - 1, 2**62 + 1):
        n += 1
        if n == 100 * r:
            break
    for v in range(2**63 - 1, -2**63, -2**63 * x[0]):
        m += 1
        if m == 100 * r:
            break
    out[0] = n * 10 + m


@kernel
def tuples_and_sums_of_generators(x, out, q, r):
    t = tuple(i * q + k for i in range(3) for k in (1, r))
    out[0] = sum(t) * 10 + len(t)
    out[1] = sum(e for e in t[1:]) + max(-e for e in (q, *t, r))
    out[2] = any(e == r for e in t) and not all(e for e in (q, 0, r))


@kernel
def a_tuple_with_a_star_and_a_condition(x, out, q, r):
    t = (r, *(q, 3), (4 if q > 5 else 6))
    for i in t:
        out[0] = out[0] * 10 + i


def outputs(function) -> np.ndarray:
    """What Python does."""
    out = np.zeros(4, np.int64)
    function(np.arange(1, 9), out, 1, 2)
    return out


@pytest.mark.parametrize("function", KERNELS, ids=lambda function: function.__name__)
def test_a_kernel_does_what_python_does(function):
    out = np.zeros(4, np.int64)

    launch(function, x=np.arange(1, 9), out=out, q=1, r=2)

    np.testing.assert_array_equal(out, outputs(function))


ON_MACHINES = (a_loop_over_two_variables_that_the_body_swaps,
               ranges_at_the_ends_of_their_dtype_that_are_left, ranges_of_64_bits_that_are_left,
               a_while_loop_whose_way_out_assigns)


@pytest.mark.parametrize("function", ON_MACHINES, ids=lambda function: function.__name__)
def test_machine_code_does_what_python_does(function):
    out = np.zeros(4, np.int64)

    Device(EMULATOR, num_warps=1).run(bn.jit(function), 1, np.arange(1, 9), out, 1, 2)

    np.testing.assert_array_equal(out, outputs(function))


def choosing(out, name: bn.constexpr):
    if name == "relu":
        y = 1
    elif name == "silu":
        y = 2
    out[0] = y


def stating(out, name: bn.constexpr):
    undefined_here  # noqa: F821, B018
    out[0] = 1


@pytest.mark.parametrize("function, message", [
    (choosing, "name 'y' is used before it is assigned"),
    (stating, "name 'undefined_here' is not defined"),
])
def test_a_name_that_nothing_assigns_is_an_error(function, message):
    with pytest.raises(BlockNameError, match=message):
        Device(CPU).run(bn.jit(function), 1, np.zeros(1), name="gelu")


def outliving(out, n):
    """Calls a function whose variable the next iteration's call has again."""
    def make(k):
        k += 1
        return lambda v: v + k

    for i in range(n):
        f = make(i)
        if i == 1:
            g = f
    out[0] = g(0)


def test_a_function_that_outlives_the_variable_that_it_shares_is_refused():
    with pytest.raises(UnsupportedError, match="a function that is chosen at run time cannot be"):
        launch(outliving, out=np.zeros(1), n=3)


def counting():
    """A kernel that assigns a variable of a function around it."""
    calls = 0

    def kernel(out):
        nonlocal calls
        calls += 1
        out[0] = calls

    return kernel


def test_a_variable_around_the_kernel_cannot_be_assigned():
    with pytest.raises(UnsupportedError, match="nonlocal: given 'calls'"):
        launch(counting(), out=np.zeros(1))


def without_end(n):
    return without_end(n - 1) + without_end(n - 2)


def ever_more(k):
    return ever_more(k + 1) + ever_more(k + 2)


def halves(tile):
    if tile.shape[0] == 1:
        return bn.sum(tile)
    first, second = bn.split(bn.reshape(tile, (tile.shape[0] // 2, 2)))
    return halves(first) + halves(second)


def test_the_shape_of_a_tile_ends_a_recursion():
    def kernel(x, out):
        out[0] = halves(x[bn.span(0, 8)])

    out = np.zeros(1, np.int64)

    launch(kernel, x=np.arange(1, 9), out=out)

    assert out[0] == 36


@pytest.mark.parametrize("argument", [False, True], ids=["run-time", "constants"])
def test_recursion_that_nothing_ends_is_refused_soon(argument):
    def kernel(out, n):
        out[0] = ever_more(0) if argument else without_end(n)

    started = time.process_time()
    with pytest.raises(UnsupportedError, match="recursion that does not end at compile time"):
        launch(kernel, out=np.zeros(1), n=5)
    assert time.process_time() - started < 10


def test_many_helpers_within_each_other_are_no_recursion():
    lines = ["def f0(v): return v"]
    lines += [f"def f{i}(v): return f{i - 1}(v) + 1" for i in range(1, 120)]
    names: dict = {}
    exec("\n".join([*lines, "def kernel(out, n): out[0] = f119(n)"]), names)
    out = np.zeros(1)

    launch(names["kernel"], out=out, n=5)

    assert out[0] == 124


def endless(out):
    while True:
        if out[0] > 1:
            continue
        out[0] += 1


def trying(out):
    out[0] = 1
    try:
        out[0] = 2
    finally:
        out[0] = 3


@pytest.mark.parametrize("function, message, line", [
    (endless, "this loop never ends", "while True:"),
    (trying, "try: not supported in a kernel", "try:"),
])
def test_the_line_of_what_is_refused_is_shown(function, message, line):
    with pytest.raises(UnsupportedError, match=message) as caught:
        launch(function, out=np.zeros(1))

    assert str(caught.value).splitlines()[2].strip() == line


def far_too_many(out):
    for i in static_range(10**12):
        out[0] += i


def far_too_long(out):
    for i in (1, 2) * 10**9:
        out[0] += i


@pytest.mark.parametrize("function", [far_too_many, far_too_long])
def test_what_is_too_long_is_refused_before_it_is_made(function):
    with pytest.raises(BlockError, match="cannot be unrolled|accepted at most"):
        launch(function, out=np.zeros(1))


def unpacked_generator(out):
    first, second = (out[i] for i in range(2))
    out[0] = first + second


def looped_generator(out):
    for value in (out[i] for i in range(2)):
        out[0] += value


@pytest.mark.parametrize("function", [unpacked_generator, looped_generator])
def test_a_generator_that_nothing_consumes_at_once_is_a_mistake_of_the_user(function):
    # the statement that uses it was taken for a call
    with pytest.raises(UnsupportedError, match="a generator: accepted as the argument") as caught:
        launch(function, out=np.zeros(2))

    assert caught.value.hint == "make a tuple: tuple(... for ...)"

"""Counters of `while` loops in scalar functions have 32 bits, where that is enough."""

from __future__ import annotations

import re

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.tile_ir.ir.types import int32, int64
from blocknumba.typing.scalars import preparation
from blocknumba.typing.scalars.counters import narrow_counters
from blocknumba.typing.scalars.gpu import GpuFunction
from blocknumba.typing.scalars.signature import Signature

TOP, BOTTOM = 2**31 - 1, -2**31
START = 40  # of numbers that are counted to a limit
NEAR_TOP, NEAR_BOTTOM = TOP - START, BOTTOM + START
COUNT = 64


def up(x, limit):
    n = NEAR_TOP
    while x < 9 and n < limit:
        n += 1
    return n


def down(x, limit):
    n = NEAR_BOTTOM
    while limit < n:
        n -= 1
    return n


def one_more(x, limit):
    """What is computed of a counter is as wide as it was."""
    n = NEAR_TOP
    while n < limit:
        n += 1
    return n + 1


def at_times(x, limit):
    n = 0
    while x < START:
        if n < limit - BOTTOM - START and n < 1000 and x % 3 == 0:
            n += 1
        x += 1
    return n


def from_argument(x, limit):
    while limit - 2 > 2 * x and x < 500:
        x += 3
    return x


def with_else(x, limit):
    n = 0
    while n < 10:
        if n > x:
            break
        n += 2
    else:
        return -n
    return n + limit


NARROW = (up, down, one_more, at_times, from_argument, with_else)


def last_is_past_the_limit(x, limit):
    n = NEAR_TOP
    while n <= limit:
        n += 1
    return n


def by_two(x, limit):
    n = NEAR_TOP
    while n < limit:
        n += 3
    return n


def past_the_bottom(x, limit):
    n = NEAR_BOTTOM
    while limit <= n:
        n -= 1
    return n


def untested(x, limit):
    n = NEAR_TOP
    while x < limit - TOP + 3 * START:
        x += 1
        n += 1
    return n


def twice_for_one_test(x, limit):
    n = NEAR_TOP
    while n < limit:
        n += 1
        n += 1
    return n


def another_one_is_tested(x, limit):
    n = m = NEAR_TOP
    while m < limit:
        m += 1
        n += 2
    return n - m


def where_the_test_fails(x, limit):
    n = NEAR_TOP
    while True:
        if n < limit:
            n = limit + x % 2
            continue
        n += 1
        if n > limit + 2:
            return n


WIDE = (last_is_past_the_limit, by_two, past_the_bottom, untested, twice_for_one_test,
        another_one_is_tested, where_the_test_fails)


def name(function):
    return function.__name__


def arguments():
    """Numbers below START, limits near both ends of int32."""
    random = np.random.default_rng()
    x = random.integers(-9, START, COUNT).astype(np.int32)
    near = random.integers(0, START // 2, COUNT)
    near[:4] = 0
    return x, near


def limits(function, near):
    return (near + BOTTOM if "down" in name(function) or "bottom" in name(function)
            else TOP - near).astype(np.int32)


def given(function):
    x, near = arguments()
    limit = limits(function, near)
    expected = [function(*one) for one in zip(x.tolist(), limit.tolist())]
    return x, limit, np.full(COUNT, -1), expected


def kernel_of(function):
    @bn.jit
    def kernel(x, limit, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(function, x[r], limit[r])
    return kernel


@pytest.mark.parametrize("function", NARROW + WIDE, ids=name)
def test_counts_are_those_of_python(function):
    x, limit, out, expected = given(function)

    kernel_of(function)[1](x, limit, out, B=COUNT, interpret=True)

    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("function", (up, one_more, at_times, by_two, where_the_test_fails),
                         ids=name)
def test_they_are_on_a_gpu_too(function):
    x, limit, out, expected = given(function)

    emulated_gpu.launch(kernel_of(function), 1, (x, limit, out), {"B": COUNT, "num_warps": 1})

    np.testing.assert_array_equal(out, expected)


def bits_of_counters(function, *dtypes) -> set[int]:
    """Of the variables that have several assignments."""
    found = set()

    def narrow(blocks, typemap):
        narrow_counters(blocks, typemap)
        found.update(typemap[each.target.name].bitwidth
                     for block in blocks.values() for each in block.body
                     if getattr(getattr(each, "value", 0), "op", "") == "phi")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "narrow_counters", narrow)
        GpuFunction(function, Signature.of(function, dtypes), "sm_90", False)
    return found


@pytest.mark.parametrize("function", NARROW, ids=name)
def test_a_counter_that_a_test_limits_has_32_bits(function):
    assert bits_of_counters(function, int32, int32) == {32}


@pytest.mark.parametrize("function", WIDE, ids=name)
def test_others_have_64(function):
    assert 64 in bits_of_counters(function, int32, int32)


def test_a_limit_of_64_bits_says_nothing():
    assert bits_of_counters(up, int32, int64) == {64}


def test_a_loop_of_the_mandelbrot_set_has_twelve_instructions():
    def escape(x, y):
        u = v = 0.0
        count = 0
        while u * u + v * v <= 4.0 and count < 256:
            u, v = u * u - v * v + x, 2.0 * u * v + y
            count += 1
        return count

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        out[r] = bn.map(escape, x[r], x[r])

    sass = bn.compile(kernel, ("f32[::1]", "i32[::1]"), {"B": 32}, target="sm_90a").asm["sass"]
    lines = sass.splitlines()
    last = next(i for i, line in enumerate(lines) if re.search(r"BRA P\d, ", line))
    label = re.search(r"\.L_x_\d+", lines[last])[0]
    assert last - lines.index(f"{label}:") == 12

"""Constants of launches that are arguments of the function that launches."""

import numpy as np
import pytest
from numba import njit, prange
from numba.core.errors import TypingError

import blocknumba as bn


@bn.jit
def add_scaled(a, x, y, B: bn.constexpr = 128, ADD: bn.constexpr = True):
    r = bn.block(0, B)
    y[r] = a * x[r] + (y[r] if ADD else 0)


@njit
def by_position(x, y, block):
    add_scaled[bn.cdiv(x.size, block)](2.0, x, y, block)


@njit
def by_name(x, y, block, add):
    add_scaled[bn.cdiv(x.size, block)](2.0, x, y, ADD=add, B=block)


@njit
def twice(x, y, block):
    by_position(x, y, block)
    by_position(x, y, block)


@njit
def with_default(x, y, block=64):
    add_scaled[bn.cdiv(x.size, block)](2.0, x, y, block)


@njit(parallel=True)
def in_prange(x, y, block):
    for row in prange(x.shape[0]):
        add_scaled[bn.cdiv(x.shape[1], block)](2.0, x[row], y[row], block)


@pytest.mark.parametrize("run, arguments, expected", [
    (by_position, (32,), 3), (by_position, (128,), 3), (by_name, (64, True), 3),
    (by_name, (64, False), 2), (twice, (32,), 5), (with_default, (32,), 3), (with_default, (), 3)])
def test_they_are_constants_of_the_compiled_function(run, arguments, expected):
    x, y = np.ones(300), np.ones(300)

    run(x, y, *arguments)

    assert (y == expected).all()


def test_each_value_has_its_code():
    @njit
    def run(x, y, block):
        add_scaled[bn.cdiv(x.size, block)](2.0, x, y, block)

    for block in (32, 64, 32):
        run(np.ones(300), np.ones(300), block)

    assert [signature[2].literal_value for signature in run.signatures] == [32, 64]


def test_in_a_parallel_loop():
    x, y = np.ones((4, 300)), np.ones((4, 300))

    in_prange(x, y, 64)

    assert (y == 3).all()


@njit
def computed(x, y, block):
    half = block // 2
    add_scaled[1](2.0, x, y, half)


@njit
def in_a_tuple(x, y, block):
    add_scaled[1](*(2.0, x, y, block))


@pytest.mark.parametrize("run", [computed, in_a_tuple])
def test_what_is_no_argument_of_the_function_is_an_error(run):
    with pytest.raises(TypingError) as caught:
        run(np.ones(3), np.ones(3), 64)

    assert ("add_scaled: given a value of type int64 for the constant B, accepted one that is "
            "known when Numba compiles\n  hint: write a literal, a global or an argument that is given: "
            "B=1024") in str(caught.value)


def test_a_value_that_the_kernel_refuses():
    with pytest.raises(TypingError, match="block: size must be a power of two, got 100"):
        by_position(np.ones(3), np.ones(3), 100)

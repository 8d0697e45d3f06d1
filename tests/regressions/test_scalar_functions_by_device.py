"""What a function given to bn.map means must not depend on the device that runs it.

Numba's code for the CPU reaches things that a GPU has not: Python itself, whose lock a thread that
runs programs never gets; the state of NumPy's random numbers; exceptions that carry values.
"""

from __future__ import annotations

import random

import emulated_gpu
import numba
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError, BlockTypeError

TABLE = np.array([2.0, 4.0, 8.0])


@numba.njit
def square(x):
    return x * x


@numba.njit
def cube(x):
    return x * x * x


POWERS = (square, cube)


def prints(x):
    print(x)
    return x


def draws(x):
    return x + np.random.normal(x, 1.0)


def draws_of_python(x):
    return x + random.random()


def leaves_for_python(x):
    with numba.objmode(y="float64"):
        y = x + 1
    return y


def chooses_a_function(x):
    return POWERS[int(x) % 2](x)


ERRORS = {
    prints: ("prints uses print", "print(x)", "in the kernel"),
    draws: ("draws uses random numbers of np.random", "np.random.normal", "bn.rand"),
    draws_of_python: ("draws_of_python uses random numbers of random", "random.random()",
                      "bn.rand"),
    leaves_for_python: ("leaves_for_python has a with statement", "with numba.objmode", ""),
    chooses_a_function: ("chooses_a_function chooses a function at run time", "POWERS[int(x) % 2]",
                         "if"),
}


@bn.jit
def mapping(x, out, F: bn.constexpr, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = bn.map(F, x[r], mask=r.index < x.shape[0])


@pytest.mark.parametrize("where", ["native", "interpreter", "emulator"])
@pytest.mark.parametrize("function", ERRORS, ids=lambda f: f.__name__)
def test_what_only_one_device_has_is_refused_by_all(function, where):
    message, line, hint = ERRORS[function]
    x = np.ones(4)

    with pytest.raises(BlockTypeError) as error:
        if where == "emulator":
            emulated_gpu.launch(mapping, 1, (x, x.copy(), function), {"B": 4})
        else:
            mapping[1](x, x.copy(), function, B=4, interpret=where == "interpreter")

    text = str(error.value)
    assert message in text.split("\n")[0] and line in text and hint in text


def test_functions_in_tuples_are_prepared_as_others_are(device):
    third = numba.njit(lambda x: x / 3.0)
    both = (third, numba.njit(lambda x: third(x) * 0.1))

    @bn.jit
    def kernel(x, out, B: bn.constexpr):
        r = bn.block(0, B)
        y = bn.map(lambda a: both[0](a) + both[1](a), x[r])
        bn.static_assert(y.dtype == bn.float32)
        out[r] = y

    x = np.random.default_rng().standard_normal(50, np.float32)
    found = np.full_like(x, 77)

    device.run(kernel, 1, x, found, B=64)

    three, tenth = np.float32(3), np.float32(0.1)
    assert np.array_equal(found, x / three + x / three * tenth)


@pytest.mark.parametrize("power, dtype", [(-1, np.float32), (-3, np.float64)])
def test_negative_powers_of_0_are_infinite_as_in_numpy(device, power, dtype):
    @bn.jit
    def kernel(x, n, fixed, varying, B: bn.constexpr):
        r = bn.block(0, B)
        fixed[r] = bn.map(lambda a: a ** power, x[r])
        varying[r] = bn.map(lambda a, m: a ** m, x[r], n[r])

    x = np.array([0, -0.0, 2, -3, np.inf, -np.inf, 0.1], dtype)
    n = np.full(x.shape, power)
    fixed, varying = np.full((2, *x.shape), 77.0)
    with np.errstate(divide="ignore"):
        expected = x.astype(np.float64) ** power

    device.run(kernel, 1, x, n, fixed, varying, B=8)

    tolerance = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(fixed, expected, rtol=tolerance)
    np.testing.assert_allclose(varying, expected, rtol=tolerance)


def raises_a_value(x):
    if x < 0:
        raise ValueError("below zero", x)
    return x


def test_exceptions_may_carry_values(device):
    x = np.array([1.0, -2, 3])
    found = np.full_like(x, 77)

    device.run(mapping, 1, x, found, raises_a_value, B=4)

    assert found.tolist() == [1, 0, 3]


@pytest.mark.parametrize("where, values", [("cpu", "below zero, -2.0"),
                                           ("emulator", "below zero, <float64>")])
def test_debug_shows_the_values_that_an_exception_carries(where, values):
    x = np.array([1.0, -2, 3])

    with pytest.raises(BlockError, match=f"raises_a_value raises ValueError: {values}"):
        if where == "cpu":
            mapping[1](x, x.copy(), raises_a_value, B=4, debug=True)
        else:
            emulated_gpu.launch(mapping, 1, (x, x.copy(), raises_a_value), {"B": 4, "debug": True})


def reads_beyond(x):
    return TABLE[int(x)]


def test_debug_finds_indices_beyond_a_constant_array():
    x = np.array([1.0, 2, 3, 0])

    with pytest.raises(BlockError) as error:
        mapping[1](x, x.copy(), reads_beyond, B=4, debug=True)

    text = str(error.value)
    assert "reads_beyond raises IndexError" in text and "element (2,)" in text
    assert "def reads_beyond(x):" in text or "return TABLE[int(x)]" in text


def test_a_function_in_a_kernel_may_read_variables_around_the_kernel():
    def launched(factor):
        @bn.jit
        def kernel(x, out, B: bn.constexpr):
            r = bn.block(0, B)
            out[r] = bn.map(lambda a: a * factor, x[r])

        kernel[1](x, found, B=4)
        factor += 1  # what the kernel sees is as it is at the launch
        kernel[1](x, again, B=4)

    x = np.array([1.0, 2, 3])
    found, again = np.full((2, 3), 77.0)

    launched(5)

    assert found.tolist() == [5, 10, 15] and again.tolist() == [6, 12, 18]

"""Functions under functools.wraps, which look like the function that they wrap and are not."""

import functools
import inspect

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError, BlockTypeError, UnsupportedError


def double(x, by=2):
    return x * by


@functools.wraps(double)
def tenfold(x, by=10):
    return x * by


def plus_one(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments) + 1
    return wrapper


def with_keywords(function):
    @functools.wraps(function)
    def wrapper(*arguments, **keywords):
        return function(*arguments, **keywords)
    return wrapper


raised, passed_on = plus_one(double), with_keywords(double)


def disguised(x, by=4):
    return x * by


disguised.__signature__ = inspect.Signature(
    [inspect.Parameter("y", inspect.Parameter.POSITIONAL_ONLY)])


@bn.jit
def call_each(x, out):
    out[0] = tenfold(x[0])
    out[1] = raised(x[0])
    out[2] = raised(x[0], 5)
    out[3] = disguised(x[0])


def test_what_is_called_is_what_runs_with_its_own_defaults(device):
    out = np.full(4, np.nan, np.float32)

    device.run(call_each, 1, np.array([3], np.float32), out)

    assert out.tolist() == [30, 7, 16, 12]


@bn.jit
@functools.wraps(double)
def fill(out, n):
    out[0] = n


def test_a_kernel_under_wraps_has_its_own_parameters():
    out = np.full(1, np.nan)

    fill[1](out, n=5.0, interpret=True)

    assert out[0] == 5
    assert str(inspect.signature(fill)) == "(out, n)"
    assert fill.__name__ == "double"


def test_a_kernel_that_takes_what_it_likes_is_refused_by_its_own_name():
    with pytest.raises(BlockTypeError, match=r"double: given a parameter \*\*keywords"):
        bn.jit(with_keywords(double))


@bn.jit
def refused_keyword(x):
    x[0] = raised(x[0], by=5)


@bn.jit
def refused_stars(x):
    x[0] = passed_on(x[0], by=5)


@bn.jit
def launches(x):
    fill[1](x, 1)


@pytest.mark.parametrize("kernel, error, message", [
    (refused_keyword, BlockTypeError,
     "double: got an unexpected keyword argument 'by', accepted double(*arguments)"),
    (refused_stars, UnsupportedError, "a call with **: not supported in a kernel"),
    (launches, BlockTypeError, "index: given the kernel double, accepted an array, a tile or "
                               "a tuple")])
def test_what_cannot_be_called_is_one_error_that_says_why(kernel, error, message):
    with pytest.raises(BlockError) as raised_error:
        kernel[1](np.zeros(1), interpret=True)

    assert type(raised_error.value) is error
    assert raised_error.value.message == message

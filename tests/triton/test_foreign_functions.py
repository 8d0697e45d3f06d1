"""Functions that were jitted by the real Triton, called in kernels of ours."""

import types

import numpy as np

import blocknumba.triton as triton
import blocknumba.triton.language as tl


def _of_triton(kind, **members):
    """A stand-in for a class of the real Triton: what tells it is its name and its module."""
    return type(kind, (), {"__module__": "triton.runtime.jit", **members})


def _jitted(function):
    made = _of_triton("JITFunction")()
    made.fn = function
    return made


theirs = types.ModuleType("triton.language")
LIMIT = _of_triton("constexpr", value=4.0)()
HALF = _of_triton("dtype", name="fp16")()


def limited(x, scale):
    # theirs has no attributes: they must be ours
    return theirs.minimum(theirs.exp(x) * scale, LIMIT).to(HALF)


helpers = types.SimpleNamespace(limited=_jitted(limited))


@triton.jit
def kernel(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    value = helpers.limited(tl.load(x + at), 2.0)
    tl.static_assert(value.dtype == tl.float16)
    tl.store(out + at, value)


def test_a_function_of_the_real_triton_is_called():
    x = np.random.default_rng().standard_normal(16).astype(np.float32)
    out = np.full(16, np.nan, np.float16)
    kernel[(1,)](x, out, SIZE=16)
    expected = np.minimum(np.exp(x.astype(np.float64)) * 2, 4)
    np.testing.assert_allclose(out, expected, rtol=1e-3)


def sum_of_theirs(x, axis):
    raise AssertionError("the real one is never run")


sum_of_theirs.__module__, sum_of_theirs.__name__ = "triton.language.standard", "sum"
total = _jitted(sum_of_theirs)


@triton.jit
def reduced(x, out, SIZE: tl.constexpr):
    tl.store(out, total(tl.load(x + tl.arange(0, SIZE)), 0))


def test_a_function_of_tritons_own_is_ours_of_the_same_name():
    x = np.arange(16, dtype=np.int32)
    out = np.zeros(1, np.int32)
    reduced[(1,)](x, out, SIZE=16)
    assert out[0] == 120


def is_above(x, threshold):
    # asks a tile of one element for its dtype, as torch's helpers do, and takes nothing else of it
    if (x + theirs.zeros((1,), theirs.int1)).dtype.is_floating():
        return (x > threshold) | (x != x)
    return x > threshold


above = _jitted(is_above)


@triton.jit
def largest(a, b):
    return tl.where(above(a, b), a, b)


@triton.jit
def reduced_by_question(x, out, SIZE: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, SIZE)), 0, largest))


def test_a_combination_may_make_tiles_of_which_nothing_is_used():
    for x, expected in ((np.random.default_rng().integers(-99, 99, 16), None),
                        (np.array([1, np.nan, 3, 2], np.float32), np.nan)):
        out = np.zeros(1, x.dtype)
        reduced_by_question[(1,)](x, out, SIZE=len(x))
        np.testing.assert_equal(out[0], x.max() if expected is None else expected)


def exponent(number):
    return number.bit_length() - 1


exponent.__module__, exponent.__name__ = "triton.language.standard", "_log2"


def halved(number):
    return number // 2


def _at_compile_time(function):
    made = _of_triton("ConstexprFunction")()
    made.fn = function
    return made


their_exponent, their_half = _at_compile_time(exponent), _at_compile_time(halved)


@triton.jit
def sized(out, SIZE: tl.constexpr):
    COUNT: tl.constexpr = their_half(SIZE)
    tl.static_assert(COUNT == 8)
    tl.store(out, their_exponent(COUNT))


def test_a_compile_time_function_of_the_real_triton_is_called_with_constants():
    out = np.zeros(1, np.int32)
    sized[(1,)](out, SIZE=16)
    assert out[0] == 3

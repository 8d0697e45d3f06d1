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

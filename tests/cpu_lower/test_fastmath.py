"""fastmath=True on the CPU: products and sums are fused; nothing else changes."""

import re

import numpy as np
import pytest

import blocknumba as bn


def multiplied_and_added(x, y, z, out, B: bn.constexpr):
    r = bn.span(0, B)
    out[r] = x[r] * y[r] + z[r]


def squares(x, y, z, out, B: bn.constexpr):
    r = bn.span(0, B)
    out[r] = bn.sum(x[r] * x[r], 0) / y[r] + bn.maximum(z[r], 0.0) + bn.exp(z[r])


def launched(function, fastmath, dtype):
    """The result of a kernel on fresh data, its operands and its machine code."""
    kernel = bn.jit(device="cpu", fastmath=fastmath)(function)
    x, y, z = np.random.default_rng().uniform(0.5, 2, (3, 256)).astype(dtype)
    out = np.full(256, np.nan, dtype)
    compiled = kernel[1](x, y, -z, out, B=256)
    return out, (x, y, -z), compiled.native.assembly


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sum_of_a_product_is_rounded_once(dtype):
    out, (x, y, z), code = launched(multiplied_and_added, True, dtype)

    wide = np.longdouble
    exact = x.astype(wide) * y.astype(wide) + z.astype(wide)
    # longdouble rounds the product of float64 too, by less than 1e-18
    np.testing.assert_array_less(abs(out - exact), np.finfo(dtype).eps * abs(exact) + 1e-18)
    assert re.search(r"vfn?m(add|sub)\d+p|fmla", code)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_it_each_operation_is_rounded(dtype):
    out, (x, y, z), code = launched(multiplied_and_added, False, dtype)

    np.testing.assert_array_equal(out, x * y + z)
    assert not re.search(r"vfn?m(add|sub)\d+p|fmla", code)


def test_sums_and_functions_stay_as_exact():
    out, (x, y, z), _ = launched(squares, True, np.float64)

    wide = np.longdouble
    total = (x.astype(wide) ** 2).sum()
    np.testing.assert_allclose(out, (total / y + np.maximum(z, 0) + np.exp(z.astype(wide))).astype(
        np.float64), rtol=1e-13)

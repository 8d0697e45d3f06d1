"""Asserts in the functions of reductions and scans: checked with debug=True."""

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockError

LIMIT = tl.constexpr(1000)


@triton.jit
def limited_sum(a, b):
    total = a + b
    if a > 0:
        tl.device_assert(total < LIMIT, "too much")
    return total


@triton.jit
def summed(x, out, AXIS: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    total = tl.reduce(tl.load(x + i), AXIS, limited_sum)
    tl.store(out + tl.arange(0, total.shape[0]), total)


@triton.jit
def scanned(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.associative_scan(tl.load(x + i), 0, limited_sum))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_whose_asserts_hold(device, axis):
    x = np.random.default_rng().integers(1, 20, (16, 32)).astype(np.int32)
    out = np.full(16 if axis else 32, -1, np.int32)
    device.run(summed, 1, x, out, AXIS=axis, debug=True)
    np.testing.assert_array_equal(out, x.sum(axis))


def test_a_reduction_whose_asserts_fail():
    x = np.full((16, 32), 90, np.int32)
    with pytest.raises(BlockError, match="(?s)too much.*test_asserting_reductions.py"):
        summed[1](x, np.zeros(16, np.int32), AXIS=1, debug=True)
    out = np.zeros(16, np.int32)
    summed[1](x, out, AXIS=1)
    np.testing.assert_array_equal(out, x.sum(1))


def test_an_assert_counts_where_its_branch_is_taken():
    x = np.full((16, 32), -90, np.int32)
    out = np.zeros(16, np.int32)
    summed[1](x, out, AXIS=1, debug=True)
    np.testing.assert_array_equal(out, x.sum(1))


def test_a_scan_checks_its_prefixes():
    x = np.full(32, 20, np.int32)
    out = np.zeros(32, np.int32)
    scanned[1](x, out, N=32, debug=True)
    np.testing.assert_array_equal(out, np.cumsum(x))
    with pytest.raises(BlockError, match="too much"):
        scanned[1](2 * x, out, N=32, debug=True)

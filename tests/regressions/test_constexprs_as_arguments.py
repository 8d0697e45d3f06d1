"""`kernel[1](x, N=bn.constexpr(8))` computed with a constexpr instead of its value."""

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl


def scaled(x, factor: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * factor)


@pytest.mark.parametrize("jit", [bn.jit, triton.jit])
def test_a_constexpr_is_its_value(jit):
    x, kernel = np.ones(8, np.float32), jit(scaled)
    for _ in range(3):
        kernel[1](x, factor=bn.constexpr(2), N=bn.constexpr(8))
    np.testing.assert_array_equal(x, [8] * 8)
    kernel[1](x, 3, N=8)
    np.testing.assert_array_equal(x, [24] * 8)

"""Block functions in kernels that numba-cuda compiles for a launch."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockValueError

cuda = pytest.importorskip("numba.cuda")


@bn.jit
def double(x, BLOCK: bn.constexpr):
    at = bn.span(0, BLOCK)
    x[at] *= 2


@pytest.mark.parametrize("link", ["ir", "ltoir"])
def test_the_threads_of_the_launch_are_checked_when_it_is_compiled(link):
    doubled = bn.block_function(double, {"BLOCK": 128}, num_warps=4, link=link)

    @cuda.jit(lto=link == "ltoir")
    def kernel(x):
        doubled(x)

    x = cuda.to_device(np.zeros(100, np.float32))

    with pytest.raises(BlockValueError, match=(
            r"double: called in a block of \(64, 1, 1\) threads, accepted \(128, 1, 1\)")):
        kernel[5, 64](x)
    compiled = kernel.compile((x._numba_type_,))
    assert compiled._codelibrary.get_cubin(cc=(9, 0, "a")).code

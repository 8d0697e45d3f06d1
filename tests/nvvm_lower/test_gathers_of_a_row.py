"""Elements of a row at places that floats tell: one instruction for the address of each."""

import emulated_gpu
import numpy as np

import blocknumba as bn


@bn.jit
def nearest(x, places, out, stride, N: bn.constexpr):
    row, i = bn.program_id(0), bn.arange(N)
    at = bn.load(places + i).to(bn.int32)
    bn.store(out + row * N + i, bn.load(x + row * stride + at))


def test_places_are_added_to_the_row_at_once():
    rng = np.random.default_rng(0)
    x, places = rng.random((3, 100)).astype(np.float32), (rng.random(512) * 100).astype(np.float32)
    out = np.full((3, 512), np.nan, np.float32)

    ptx = emulated_gpu.launch(nearest, 3, (x, places, out, 100), {"N": 512, "num_warps": 2}).ptx

    np.testing.assert_array_equal(out, x[:, places.astype(np.int32)])
    # 8 elements a thread; three rows, and the vectors of places and results
    assert ptx.count("add.s64") <= 8 + 3 + 4

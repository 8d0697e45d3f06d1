"""A kernel that took one matrix of many, which are all the same memory, was not compiled."""

import numpy as np
import pytest

import blocknumba as bn


@bn.jit
def gram(x, out, n):
    rows, columns = bn.span(0, 8), bn.span(0, 16)
    tile = x[n % 3][rows, columns]
    out[rows, rows] = bn.dot(tile, bn.trans(tile))


@pytest.mark.parametrize("dtype", [np.int8, np.float16])
def test_a_matrix_that_is_repeated_is_fetched(dtype, device):
    matrix = np.random.default_rng().integers(-9, 10, (8, 16)).astype(dtype)
    out = np.full((8, 8), 77, np.float32)

    device.run(gram, 1, np.broadcast_to(matrix, (3, 8, 16)), out, 4)

    wide = matrix.astype(np.float32)
    np.testing.assert_array_equal(out, wide @ wide.T)

"""x[[i, j]] was x[i, j]: NumPy takes rows i and j."""

import re

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import UnsupportedError

MESSAGE = "index: given a list, accepted ints, slices, spans and tiles of ints"


@bn.jit
def reads(x, i):
    x[0, 0] = x[[1, i]]


@bn.jit
def reads_by_name(x, i):
    places = [i, 2, 3]
    x[0, 0] = x[places][0]


@bn.jit
def writes(x, i):
    x[[1, 2]] = 5


@bn.jit
def adds(x, i):
    x[[0, 2]] += 5


@bn.jit
def refers(x, i):
    bn.atomic_add(x.at[[i, 2]], 5)


@bn.jit
def reads_a_tile(x, i):
    r = bn.span(0, 4)
    x[0, 0] = x[r, r][[1, 2]]


@pytest.mark.parametrize("kernel", [reads, reads_by_name, writes, adds, refers, reads_a_tile],
                         ids=lambda kernel: kernel.__name__)
def test_a_list_is_no_index(kernel):
    x = np.arange(16.0).reshape(4, 4)

    with pytest.raises(UnsupportedError, match=re.escape(MESSAGE)):
        kernel[1](x, 1)

    np.testing.assert_array_equal(x, np.arange(16.0).reshape(4, 4))


@bn.jit
def shape_of_a_list(x, B: bn.constexpr):
    r = bn.span(0, B)
    x[r, r] = bn.zeros([B, B], bn.float64) + [1, 2][1]


def test_lists_are_shapes_and_are_indexed():
    x = np.ones((4, 4))

    shape_of_a_list[1](x, B=4)

    np.testing.assert_array_equal(x, 2)

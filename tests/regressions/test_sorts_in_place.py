"""x.sort() as a statement sorted nothing and said nothing."""

import re

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import UnsupportedError


@bn.jit
def sorts_in_place(x, B: bn.constexpr):
    r = bn.span(0, B)
    tile = x[r]
    tile.sort()
    x[r] = tile


def in_place(tile):
    tile.sort(axis=0)
    return tile


@bn.jit
def sorts_in_a_function(x, B: bn.constexpr):
    r = bn.span(0, B)
    x[r] = in_place(x[r])


@bn.jit
def sorts_an_array(x, B: bn.constexpr):
    x.sort()


@pytest.mark.parametrize("kernel", [sorts_in_place, sorts_in_a_function, sorts_an_array],
                         ids=lambda kernel: kernel.__name__)
def test_nothing_is_sorted_in_place(kernel):
    message = "sort: its result is not used, and nothing is sorted in place"

    with pytest.raises(UnsupportedError, match=re.escape(message)):
        kernel[1](np.random.default_rng().random(8), B=8)


@bn.jit
def sorts(x, B: bn.constexpr):
    r = bn.span(0, B)
    tile = x[r]
    tile = tile.sort()
    x[r] = tile


def test_the_result_of_sort_is_sorted():
    x = np.random.default_rng().random(8)
    expected = np.sort(x)

    sorts[1](x, B=8)

    np.testing.assert_array_equal(x, expected)


@bn.jit
def sorts_for_nothing(x, B: bn.constexpr):
    r = bn.span(0, B)
    least = bn.sort(x[r])
    ordered = x[r].sort()
    x[r] = x[r] + 1


def test_a_sorted_tile_that_has_a_name_may_be_left():
    x = np.arange(8)[::-1].copy()

    sorts_for_nothing[1](x, B=8)

    np.testing.assert_array_equal(x, np.arange(8, 0, -1))

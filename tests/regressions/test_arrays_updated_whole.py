"""x += 1 of an array stored nothing and said nothing."""

import re

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
from blocknumba.errors import BlockTypeError

MESSAGE = "an update of an array that nothing reads: accepted of its elements"


@bn.jit
def adds_a_number(x, out):
    x += 1


@bn.jit
def adds_a_tile(x, out):
    r = bn.span(0, 8)
    out[r] = x[r]
    out += x[r]


@bn.jit
def changes_a_view(x, out):
    part = x[2:5]
    part -= 1


def add(x):
    x += 1


@bn.jit
def adds_in_a_function(x, out):
    add(x)
    out[0] = x[0]


@pytest.mark.parametrize("kernel", [adds_a_number, adds_a_tile, changes_a_view, adds_in_a_function],
                         ids=lambda kernel: kernel.__name__)
def test_an_array_that_is_updated_whole_is_an_error(kernel):
    x = np.arange(8)

    with pytest.raises(BlockTypeError, match=re.escape(MESSAGE)):
        kernel[1](x, np.zeros_like(x))

    np.testing.assert_array_equal(x, np.arange(8))


@bn.jit
def walks(x, out):
    total = 0
    for i in range(4):
        total += bn.load(x)
        x += 2
    bn.store(out, total)


@bn.jit
def moves_twice(x, out):
    x += 1
    x += 2
    bn.store(out, bn.load(x))
    total = 0
    total += 1


@bn.jit
def moves_on_one_path(x, out):
    if bn.program_id(0) == 0:
        x += 3
    bn.store(out, bn.load(x))


@bn.jit
def moves_for_a_function(x, out):
    def first():
        return bn.load(x)
    x += 3
    bn.store(out, first())


@pytest.mark.parametrize("kernel, expected", [(walks, 12), (moves_twice, 3), (moves_on_one_path, 3),
                                              (moves_for_a_function, 3)])
def test_pointers_move(kernel, expected):
    x, out = np.arange(8), np.zeros(1, int)

    kernel[1](x, out)

    assert out[0] == expected


def test_tritons_dialect_takes_pointers_that_nothing_reads():
    x = np.arange(8)

    triton.jit(adds_a_number.py_func)[1](x, x)

    np.testing.assert_array_equal(x, np.arange(8))

"""Indices made of an index twice, again and again: compilation took twice as long with each."""

from time import process_time

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.cpu_lower.bounds import rises
from blocknumba.tile_ir.folds.patterns import conjuncts
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import int32
from blocknumba.typing.ranges import is_nonnegative, is_position

STEPS = 23
MAX_SECONDS = 1.0  # of the processor; it takes milliseconds, and took minutes


def doubled(leaf: str, *operands, **attributes):
    """A value that is added to itself again and again."""
    builder = Builder()
    value = builder.emit(OPS[leaf], *operands, **attributes)
    for _ in range(STEPS):
        value = builder.emit(OPS["add"], value, value)
    return value


@pytest.mark.parametrize("question", (
    lambda value: is_nonnegative(value, frozenset()),
    lambda value: is_position(value, frozenset()),
    lambda value: rises(value)), ids=("not below 0", "position", "rises"))
def test_each_value_is_looked_at_once(question):
    value = doubled("arange", start=0, size=8)
    begun = process_time()

    answer = question(value)

    assert answer
    assert process_time() - begun < MAX_SECONDS


def test_each_test_of_a_conjunction_is_found_once():
    builder = Builder(folding=False)
    index = builder.emit(OPS["arange"], start=0, size=8)
    test = mask = builder.emit(OPS["lt"], index, index)
    for _ in range(STEPS):
        mask = builder.emit(OPS["and"], mask, mask)

    assert list(conjuncts(mask)) == [test]


@bn.jit
def gathered(x, y):
    i = bn.arange(0, 2)
    for _ in bn.static_range(STEPS):
        i = i + i
    y[bn.span(0, 2)] = x[i % 7]


def test_elements_at_such_indices_are_right():
    x, y = np.random.default_rng().random(7), np.full(2, np.nan)

    gathered[1](x, y)

    np.testing.assert_array_equal(y, x[(np.arange(2) << STEPS) % 7])

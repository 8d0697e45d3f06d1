"""Grids."""

import numpy as np
import pytest

from blocknumba.dispatch.launch.grid import grid_of
from blocknumba.errors import BlockTypeError, BlockValueError


@pytest.mark.parametrize("given, expected", [
    (5, (5, 1, 1)), ((5,), (5, 1, 1)), ([5, 6], (5, 6, 1)), ((5, 6, 7), (5, 6, 7)),
    (np.int64(5), (5, 1, 1)), ((np.uint8(5), 6), (5, 6, 1)), (np.array(5), (5, 1, 1)),
    (0, (0, 1, 1)), ((4, 0), (4, 0, 1)), (2**31 - 1, (2**31 - 1, 1, 1)),
    ((1, 65535, 65535), (1, 65535, 65535))])
def test_ints_and_tuples_and_lists_of_them_are_grids(given, expected):
    grid = grid_of(given, "add")

    assert grid == expected
    assert all(type(extent) is int for extent in grid)


@pytest.mark.parametrize("given, message", [
    (1.0, "add: given 1.0 for axis 0 of the grid, accepted an int"),
    ((4, 2.5), "add: given 2.5 for axis 1 of the grid"),
    (True, "add: given True for axis 0 of the grid"),
    ((4, np.bool_(True)), "add: given True for axis 1 of the grid"),
    (None, "add: given None for axis 0 of the grid"),
    ("5", "add: given '5' for axis 0 of the grid"),
    ((), "add: given a grid of 0 axes, accepted 1 to 3"),
    ((1, 2, 3, 4), "add: given a grid of 4 axes, accepted 1 to 3"),
    (((1, 2),), r"add: given \(1, 2\) for axis 0")])
def test_anything_else_is_a_type_error(given, message):
    with pytest.raises(BlockTypeError, match=message):
        grid_of(given, "add")


@pytest.mark.parametrize("given, message", [
    (-1, "add: given -1 programs along axis 0 of the grid, accepted 0 to 2147483647"),
    ((1, -1), "add: given -1 programs along axis 1"),
    (2**31, "add: given 2147483648 programs along axis 0"),
    ((1, 65536), "add: given 65536 programs along axis 1 of the grid, accepted 0 to 65535"),
    ((1, 1, 65536), "add: given 65536 programs along axis 2")])
def test_an_extent_that_cannot_run_is_a_value_error(given, message):
    with pytest.raises(BlockValueError, match=message):
        grid_of(given, "add")


def test_a_float_gets_the_advice_to_divide_with_integers():
    with pytest.raises(BlockTypeError, match="hint: use bn.cdiv or // to divide"):
        grid_of(1000 / 128, "add")

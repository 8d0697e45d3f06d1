"""Reduction plans combine every element of an axis exactly once."""

import itertools

import numpy as np
import pytest
from emulated_threads import distribute
from layouts_with_copies import insert_axis, replicated, stretch

from blocknumba.gpu_layout.layouts.registers import blocked, drop_axis, shape_of
from blocknumba.gpu_layout.placement.reductions import is_separable, reduction_plan

LAYOUTS = [
    blocked(shape, order, vector, warps)
    for shape in ((256,), (16, 32), (4, 8, 2), (2, 2, 32))
    for order in itertools.permutations(range(len(shape)))
    for vector, warps in ((1, 1), (2, 4), (4, 8))
]
LAYOUTS += [replicated((32,), 4), drop_axis(blocked((64, 32), (1, 0), 4, 4), 1)]
LAYOUTS += [stretch(insert_axis(blocked((16,), (0,), 1, 2), 1), (16, 8))]


def reduce_by_plan(tile, layout, axis):
    """Sums of a tile, by threads: (partial results, results after gathering)."""
    plan = reduction_plan(layout, axis)
    held = distribute(tile, layout)
    held = np.stack([held[:, :, list(group)].sum(-1) for group in plan.groups], axis=-1)
    for mask in plan.lane_masks:
        held = held + held[:, np.arange(32) ^ mask]
    return plan, held


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_partial_results_add_up_to_the_sum_over_the_axis(layout):
    shape = shape_of(layout)
    tile = np.arange(np.prod(shape)).reshape(shape) ** 2
    for axis in range(len(shape)):
        plan, held = reduce_by_plan(tile, layout, axis)

        partial_shape = shape_of(plan.partial)
        assert partial_shape == (*shape[:axis], plan.warps, *shape[axis + 1 :])
        partial = np.full(partial_shape, -1)
        index = distribute(np.arange(partial.size).reshape(partial_shape), plan.partial)
        partial.reshape(-1)[index] = held
        assert (partial.reshape(-1)[index] == held).all(), "copies must agree"
        assert (partial.sum(axis) == tile.sum(axis)).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_gathered_partial_results_reduce_within_threads_to_the_layout_of_the_result(layout):
    for axis in range(len(shape_of(layout))):
        plan = reduction_plan(layout, axis)

        again = reduction_plan(plan.gathered, axis)

        assert plan.result == again.result == drop_axis(layout, axis)
        assert again.warps == 1 and again.lane_masks == ()
        assert all(len(group) == plan.warps for group in again.groups)


@pytest.mark.parametrize("warp_bits, registers, lanes", [(3, 8, 0), (4, 4, 2), (5, 4, 3)])
def test_lanes_hold_what_is_beyond_a_vector_of_many_partial_results(warp_bits, registers, lanes):
    shape = (32 << warp_bits,)
    plan = reduction_plan(blocked(shape, (0,), 1, 1 << warp_bits), 0)

    again = reduction_plan(plan.gathered, 0)

    assert plan.warps == 1 << warp_bits
    assert [len(group) for group in again.groups] == [registers]
    assert len(again.lane_masks) == lanes


def test_an_axis_within_threads_needs_no_lanes_and_no_warps():
    plan = reduction_plan(blocked((64, 4), (1, 0), 4, 2), 1)

    assert plan.groups == ((0, 1, 2, 3),)
    assert (plan.lane_masks, plan.warps) == ((), 1)
    assert plan.partial == plan.gathered


def test_copies_are_not_combined():
    plan = reduction_plan(replicated((8,), 4), 0)

    assert (plan.lane_masks, plan.warps) == ((), 1)


def test_a_column_that_moves_along_two_axes_is_not_separable():
    layout = blocked((4, 8), (1, 0), 1, 1)

    assert is_separable(layout, 0)
    assert not is_separable(layout.with_columns("lane", (1, 2, 4 + 8, 8, 16)), 0)

"""Whether a thread's registers hold rising indices: what lets arg_reduce compare neighbours."""

import pytest

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.placement.reductions import reduction_plan, registers_rise


def a_layout(registers, lanes):
    """Of a tile of 8 elements, of two bits of registers and one or two of lanes."""
    ins = ("register", len(registers)), ("lane", len(lanes))
    return LinearLayout(ins, (("dim0", 3),), (*registers, *lanes))


@pytest.mark.parametrize("registers, lanes, rise", [
    ((1, 2), (4,), True), ((4, 1), (2,), True), ((1, 2), (4, 0), True),
    ((1, 2), (5,), False), ((1, 6), (4,), False)])
def test_lanes_that_decide_a_registers_bit_change_the_order(registers, lanes, rise):
    layout = a_layout(registers, lanes)
    (group,) = reduction_plan(layout, 0).groups

    orders = [[layout(register=register, lane=lane)["dim0"] for register in group]
              for lane in range(1 << len(lanes))]

    assert registers_rise(layout, 0) == rise == all(order == sorted(order) for order in orders)

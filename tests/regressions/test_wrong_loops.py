"""Loops and branches that once ran the wrong number of times or in the wrong order."""

import numpy as np
import pytest

import blocknumba as bn


@bn.jit
def first_match(wanted):
    for i in range(3):
        if i == wanted:
            return i * 10
    return -1


@bn.jit
def first_match_while(wanted):
    i = 0
    while i < 3:
        if i == wanted:
            return i * 10
        i += 1
    return -1


@bn.jit
def call_helpers(out):
    wanted = bn.program_id(0)
    out[wanted, 0] = first_match(wanted)
    out[wanted, 1] = first_match_while(wanted)


def test_return_inside_a_loop_of_a_helper_leaves_it(device):
    """triton-lang/triton#2567, #2576"""
    out = np.zeros((4, 2), np.int32)
    device.run(call_helpers, 4, out)
    np.testing.assert_array_equal(out, [[0, 0], [10, 10], [20, 20], [-1, -1]])


@bn.jit
def sum_over_range(x, out, start, stop, step):
    total = 0.0
    for i in range(start, stop, step):
        total += x[i]
    out[0] = total


@bn.jit
def sum_over_constant_range(x, out, START: bn.constexpr, STOP: bn.constexpr, STEP: bn.constexpr):
    total = 0.0
    for i in range(START, STOP, STEP):
        total += x[i]
    out[0] = total


RANGES = [(88, -1, -8), (5, 10, -3), (10, 5, 1), (0, 0, 1), (0, 89, 7), (3, 4, 100)]


@pytest.mark.parametrize("bounds", RANGES)
def test_range_with_a_negative_step_counts_down(device, bounds):
    """triton-lang/triton#10950"""
    x = np.arange(1, 90, dtype=np.float32)
    expected = sum(x[i] for i in range(*bounds))
    by_variables, by_constants = np.zeros(1, np.float32), np.zeros(1, np.float32)
    device.run(sum_over_range, 1, x, by_variables, *bounds)
    device.run(sum_over_constant_range, 1, x, by_constants,
               **dict(zip(("START", "STOP", "STEP"), bounds)))
    assert by_variables[0] == expected
    assert by_constants[0] == expected


@bn.jit
def count_inner(out, stop):
    count = 0
    for _ in range(4):
        for _ in range(5, stop):
            count += 1
    out[0] = count


@pytest.mark.parametrize("stop, expected", [(3, 0), (5, 0), (7, 8)])
def test_inner_loop_with_a_bound_below_its_start_is_empty(device, stop, expected):
    """triton-lang/triton#11656"""
    out = np.zeros(1, np.int32)
    device.run(count_inner, 1, out, stop)
    assert out[0] == expected


@bn.jit
def rebind_loop_variable(out):
    total = 0
    for i in range(8):
        i = i * 2
        total += i
    out[0] = total


def test_rebinding_the_loop_variable_does_not_change_the_loop(device):
    """triton-lang/triton PR#8750"""
    out = np.zeros(1, np.int32)
    device.run(rebind_loop_variable, 1, out)
    assert out[0] == 56


@bn.jit
def read_then_add(counter, out):
    if counter[0] > 0:
        value = counter[0]
        bn.atomic_add(counter.at[0], 10)
        out[0] = value


@bn.jit
def read_then_store(counter, out):
    if counter[0] > 0:
        value = counter[0]
        counter[0] = value + 10
        out[0] = value


@pytest.mark.parametrize("kernel", [read_then_add, read_then_store])
def test_value_read_before_an_update_stays_the_old_one(device, kernel):
    """tile-ai/tilelang#2594"""
    counter, out = np.array([5], np.int32), np.zeros(1, np.int32)
    device.run(kernel, 1, counter, out)
    assert out[0] == 5
    assert counter[0] == 15


@bn.jit
def break_and_continue(x, out, limit):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            continue
        if x[i] > limit:
            break
        total += x[i]
    out[0] = total


def test_break_and_continue_mean_what_they_mean_in_python(device):
    """triton-lang/triton#3157"""
    x = np.array([1, -2, 3, -4, 5, 100, 7], np.float32)
    out = np.zeros(1, np.float32)
    device.run(break_and_continue, 1, x, out, 50.0)
    assert out[0] == 9

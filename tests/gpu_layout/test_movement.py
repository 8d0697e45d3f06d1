"""Movement plans, executed by emulated threads, bring every element to where it belongs."""

import itertools
import random

import numpy as np
import pytest
from emulated_threads import distribute, execute
from layouts_with_copies import replicated

from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.movement import (
    RegisterMove, SharedMove, ShuffleMove, plan_move, source_of,
)
from blocknumba.gpu_layout.layouts.registers import (
    blocked, collapse, drop_axis, from_columns, shape_of, transpose, without_register_copies,
)


def move_tile(source, destination, element_bits=32):
    """(plan, whether emulated threads end up with the tile in destination)."""
    shape = shape_of(source)
    tile = np.arange(np.prod(shape)).reshape(shape)
    plan = plan_move(source, destination, element_bits)
    result = execute(plan, distribute(tile, source), source, destination)
    return plan, (result == distribute(tile, destination)).all()


def shapes_of_layouts():
    orders = ((0, 1), (1, 0))
    square = [blocked((32, 32), order, vector, 4) for order in orders for vector in (1, 4)]
    square += [transpose(square[0], (1, 0)), blocked((32, 32), (1, 0), 2, 4, warp_order=(1, 0))]
    square += [collapse_to_square(square[2])]
    row = [blocked((64,), (0,), vector, 4) for vector in (1, 2, 8)]
    row += [replicated((64,), 4), drop_axis(blocked((64, 32), (1, 0), 4, 4), 1)]
    row += [drop_axis(blocked((32, 64), (1, 0), 4, 4), 0)]
    row += [drop_axis(blocked((64, 8), (0, 1), 1, 4), 1)]
    return square, row


def collapse_to_square(layout):
    """A layout of a (32, 32) tile that each warp holds whole."""
    registers = gf2.extension(layout["lane"], gf2.identity(10))
    return layout.with_columns("register", registers).with_columns("warp", (0, 0))


PAIRS = [pair for group in shapes_of_layouts() for pair in itertools.product(group, repeat=2)]


@pytest.mark.parametrize(("source", "destination"), PAIRS, ids=str)
def test_every_plan_brings_every_element_to_its_place(source, destination):
    for element_bits in (8, 16, 32, 64):
        _, arrived = move_tile(source, destination, element_bits)

        assert arrived


def random_layout(rng, size, warps):
    """A surjective layout of a row of 2**size elements, mixed by a random invertible map."""
    while True:
        mix = tuple(rng.randrange(1 << size) for _ in range(size))
        if gf2.rank(mix) == size:
            break
    copies = rng.choice((0, 0, 1, 3))
    columns = list(mix) + [rng.choice((0, rng.randrange(1 << size))) for _ in range(copies)]
    rng.shuffle(columns)
    while len(columns) < 5 + warps:
        columns.append(0)
    lanes, rest = tuple(columns[:5]), tuple(columns[5:])
    warp, register = rest[:warps], rest[warps:]
    layout = without_register_copies(from_columns((1 << size,), register, lanes, warp))
    return layout if layout.is_surjective else random_layout(rng, size, warps)


@pytest.mark.parametrize("seed", range(60))
def test_plans_between_random_layouts_are_right(seed):
    rng = random.Random(seed)
    warps, size = rng.choice((0, 1, 2)), rng.randrange(1, 9)
    source, destination = random_layout(rng, size, warps), random_layout(rng, size, warps)

    _, arrived = move_tile(source, destination, rng.choice((8, 16, 32, 64)))

    assert arrived


@pytest.mark.parametrize("seed", range(60))
def test_plans_between_random_layouts_that_agree_on_warps_are_right(seed):
    rng = random.Random(1000 + seed)
    size = rng.randrange(4, 9)
    source = random_layout(rng, size, 0)
    destination = random_layout(rng, size, 0)

    plan, arrived = move_tile(source, destination)

    assert arrived
    assert not isinstance(plan, SharedMove) or plan.within_warp


def test_the_same_layout_needs_nothing():
    layout = blocked((64, 32), (1, 0), 4, 4)

    plan, _ = move_tile(layout, layout)

    assert isinstance(plan, RegisterMove) and plan.cost == 0
    assert plan.sources == tuple(range(len(plan.sources)))


def test_another_order_of_registers_is_a_renaming():
    layout = blocked((1024,), (0,), 4, 4)
    swapped = layout.with_columns("register", (512, 1, 2))

    plan, arrived = move_tile(layout, swapped)

    assert arrived
    assert plan == RegisterMove((0, 4, 1, 5, 2, 6, 3, 7))


def test_dropping_copies_takes_nothing_from_other_threads():
    everything = replicated((64,), 4)

    plan, arrived = move_tile(everything, blocked((64,), (0,), 1, 4))

    assert arrived
    assert isinstance(plan, ShuffleMove) and plan.stays_in_lane and plan.shuffles == 0


def test_another_vector_width_within_a_warp_is_shuffles():
    plan, arrived = move_tile(blocked((128,), (0,), 4, 1), blocked((128,), (0,), 1, 1))

    assert arrived
    assert isinstance(plan, ShuffleMove) and plan.shuffles == 4


def test_equal_rounds_are_one_shuffle():
    narrow = blocked((32,), (0,), 1, 1)
    wide = replicated((32,), 1)

    plan, arrived = move_tile(narrow, wide)

    assert arrived
    assert not isinstance(plan, ShuffleMove) or plan.shuffles == 32


def test_crossing_warps_goes_through_shared_memory():
    plan, arrived = move_tile(blocked((512,), (0,), 4, 4), blocked((512,), (0,), 1, 4))

    assert arrived
    assert isinstance(plan, SharedMove) and not plan.within_warp


@pytest.mark.parametrize("element_bits", [16, 32, 64])
def test_a_transposition_has_no_bank_conflicts(element_bits):
    vector = 128 // element_bits
    source = transpose(blocked((64, 64), (1, 0), vector, 4), (1, 0))
    destination = blocked((64, 64), (1, 0), vector, 4)

    plan, arrived = move_tile(source, destination, element_bits)

    assert arrived
    assert isinstance(plan, SharedMove)
    assert plan.write.degree == plan.read.degree == 1
    assert max(plan.write.vector, plan.read.vector) == vector


def test_partial_results_of_warps_are_read_by_one_vector_access():
    partial = from_columns((4,), (), (0,) * 5, (1, 2))
    gathered = from_columns((4,), (1, 2), (0,) * 5, (0, 0))

    plan, arrived = move_tile(partial, gathered)

    assert arrived
    assert isinstance(plan, SharedMove)
    assert plan.read.groups == ((0, 1, 2, 3),)


@pytest.mark.parametrize(("source", "destination"), PAIRS[:20], ids=str)
def test_the_source_of_an_element_is_in_the_same_thread_if_that_has_it(source, destination):
    pull = source_of(destination, source)

    for lane, warp in itertools.product(range(32), range(4)):
        mine = {tuple(source(register=r, lane=lane, warp=warp).values())
                for r in range(1 << source.bits("register"))}
        for register in range(1 << destination.bits("register")):
            held_at = pull(register=register, lane=lane, warp=warp)
            if source == destination:
                assert (held_at["lane"], held_at["warp"]) == (lane, warp)
            wanted = tuple(destination(register=register, lane=lane, warp=warp).values())
            assert tuple(source(**held_at).values()) == wanted
            assert wanted in mine or (held_at["lane"], held_at["warp"]) != (lane, warp)


def test_collapsed_layouts_of_one_tile_agree_with_its_rows():
    layout = blocked((16, 64), (1, 0), 4, 4)

    plan, arrived = move_tile(collapse(layout, (1,)), blocked((16, 1), (0, 1), 1, 4))

    assert arrived
    assert isinstance(plan, SharedMove)

"""The order of accesses by atomics: the log against vector clocks, step by step."""

import numpy as np
import pytest

from blocknumba.tile_ir.interpreter.races import Order

PROGRAMS, ADDRESSES = 6, 4


class VectorClocks:
    """The definition: what each program knows of the releases of each."""

    def __init__(self):
        self.of_program = np.zeros((PROGRAMS, PROGRAMS), int)
        self.of_address = np.zeros((ADDRESSES, PROGRAMS), int)

    def atomic(self, program, addresses, acquires, releases, wrote):
        if releases:
            self.of_program[program, program] += 1
        told = self.of_program[program].copy()
        for address, changed in zip(addresses, wrote):
            if acquires:
                np.maximum(self.of_program[program], self.of_address[address],
                           out=self.of_program[program])
            if releases and changed:
                np.maximum(self.of_address[address], told, out=self.of_address[address])

    def precedes(self, earlier, epoch, later):
        return self.of_program[later, earlier] > epoch


@pytest.mark.parametrize("seed", range(30))
def test_the_log_orders_what_vector_clocks_order(seed):
    random = np.random.default_rng(seed)
    order, clocks = Order(PROGRAMS), VectorClocks()
    for _ in range(60):
        program = int(random.integers(PROGRAMS))
        acquires, releases = random.random(2) < 0.6
        addresses = random.choice(ADDRESSES, int(random.integers(1, 3)), replace=False)
        wrote = random.random(len(addresses)) < 0.7
        if releases:
            order.release(np.array([program]))
        order.note(addresses, np.full(len(addresses), program), bool(acquires), wrote & releases)
        clocks.atomic(program, addresses, acquires, releases, wrote)
        if random.random() < 0.4:
            check(order, clocks, random)


def check(order, clocks, random):
    """Compare some pairs of programs, at epochs that there have been."""
    pairs = [(one, int(random.integers(order.epochs[one] + 1)), other) for one in range(PROGRAMS)
             for other in range(PROGRAMS) if one != other and random.random() < 0.5]
    if pairs:
        found = order.precedes(*map(np.array, zip(*pairs)))
        assert found.tolist() == [bool(clocks.precedes(*pair)) for pair in pairs]


def test_atomics_of_one_step_follow_each_other():
    """Programs 0, 1, 2 in step: each acquires what those before it released."""
    order, programs = Order(3), np.arange(3)
    order.release(programs)
    order.note(np.zeros(3, int), programs, True, np.ones(3, bool))

    ordered = order.precedes(np.array([0, 0, 1, 2]), np.zeros(4, int), np.array([1, 2, 2, 0]))

    assert ordered.tolist() == [True, True, True, False]


def test_nothing_is_ordered_without_atomics():
    order = Order(2)

    assert not order.precedes(np.array([0]), np.array([0]), np.array([1])).any()

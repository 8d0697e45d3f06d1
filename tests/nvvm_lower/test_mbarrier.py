"""Barriers that count arrivals and bytes, in the emulator, and their machine code."""

import re

import numpy as np
import pytest
from hopper import kernel, numbers, pointer

from blocknumba.emulator import DeadlockError, RaceError
from blocknumba.gpu_layout.layouts.shared import in_order
from blocknumba.tile_ir.ir.types import bool_


def waiting(arrivals, num_warps=4, condition=None):
    """A kernel whose producer waits for its program to arrive at one of two mbarriers.

    arrivals: that they expect.
    """
    def body(w):
        barrier = w.mbarrier_allocate(copies=2, arrivals=arrivals)
        last = w.slot(barrier, w.number(1))

        def program():
            given = [] if condition is None else [w.builder.constant(condition, bool_)]
            w.mbarrier_arrive(last, *given)

        w.roles(program, lambda: w.mbarrier_wait(last, w.number(0)))

    return kernel(num_warps, [], body)


def exchanging(synchronized=True, num_warps=4):
    """A kernel that transposes a (32, 32) tile through shared memory, behind an mbarrier."""
    def body(w, x, out):
        rows = w.rows((32, 32))
        buffer = w.buffer("float32", (32, 32), in_order(rows))
        barrier = w.mbarrier_allocate(copies=1, arrivals=num_warps)
        w.mbarriers_ready()
        w.shared_write(buffer, w.load(w.addresses(x, rows, 32)))
        if synchronized:
            w.mbarrier_arrive(barrier)
            w.mbarrier_wait(barrier, w.number(0))
        columns = w.columns((32, 32))
        w.store(w.addresses(out, columns, 32), w.shared_read(buffer, layout=columns))

    return kernel(num_warps, [("float32", pointer("x")), ("float32", pointer("out"))], body)


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
def test_every_warp_arrives_once(num_warps):
    waiting(num_warps, num_warps).launch()

    with pytest.raises(DeadlockError):
        waiting(num_warps + 1, num_warps).launch()


@pytest.mark.parametrize("num_warps", [1, 4])
def test_warps_arrive_only_where_the_condition_holds(num_warps):
    waiting(num_warps, num_warps, condition=True).launch()

    with pytest.raises(DeadlockError):
        waiting(num_warps, num_warps, condition=False).launch()


def test_what_was_written_before_an_arrival_is_seen_after_the_wait():
    x, out = numbers((32, 32), "float32"), np.zeros((32, 32), np.float32)

    exchanging().launch(x, out)

    np.testing.assert_array_equal(out, x)
    with pytest.raises(RaceError):
        exchanging(synchronized=False).launch(x, out)


def test_a_phase_that_never_began_is_not_waited_for():
    def body(w):
        barrier = w.mbarrier_allocate(copies=1, arrivals=1)
        w.mbarriers_ready()
        w.mbarrier_wait(barrier, w.number(1))

    kernel(4, [], body).launch()


def test_waiting_is_one_loop_and_arriving_takes_no_branch():
    text = exchanging().ptx

    assert len(re.findall(r"mbarrier\.try_wait\.parity\.shared::cta", text)) == 1
    assert len(re.findall(r"@\w+ mbarrier\.arrive\.shared::cta", text)) == 1
    assert "release.cluster" not in text.replace("fence.mbarrier_init.release.cluster", "")
    assert exchanging().assembled.warnings == ()

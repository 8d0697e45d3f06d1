"""Warps that fetch beside those that compute: rings of buffers, in the emulator."""

import re

import numpy as np
import pytest
from hopper import kernel, mapped, numbers, pointer

from blocknumba.emulator import DeadlockError, EmulatorError
from blocknumba.gpu_layout.layouts.shared import swizzled
from blocknumba.tile_ir.ir.function import Parameter

TILE, STAGES, NUMBER = (64, 64), 3, 8


def summing(num_warps=4, released_early=False, releases=True, stages=STAGES):
    """A kernel that adds up n tiles of x, side by side, fetched by a warp of its own."""
    def body(w, map_, out, n):
        shared, rows = swizzled(TILE, 1, 16, 128), w.rows(TILE, 8)
        ring = w.buffer("float16", TILE, shared, copies=stages)
        full = w.mbarrier_allocate(copies=stages, arrivals=1)
        empty = w.mbarrier_allocate(copies=stages, arrivals=num_warps)

        def fetch(index):
            position, _, before = w.ring_position(index, stages)
            w.mbarrier_wait(w.slot(empty, position), before)
            start = w.mul(index, w.number(TILE[1]))
            w.fetch(map_, w.slot(ring, position), w.slot(full, position), start, w.number(0))

        def add(index, total):
            position, phase, _ = w.ring_position(index, stages)
            w.mbarrier_wait(w.slot(full, position), phase)
            if released_early:
                w.mbarrier_arrive(w.slot(empty, position))
            tile = w.shared_read(w.slot(ring, position), layout=rows)
            w.fence_async()
            if releases and not released_early:
                w.mbarrier_arrive(w.slot(empty, position))
            return (w.add(total, w.cast(tile, dtype="float32")),)

        def program():
            total = w.loop_over(n, add, w.zeros("float32", rows))
            w.barrier(scope="program")
            w.store(w.addresses(out, rows, TILE[1]), total)

        w.roles(program, lambda: w.loop_over(n, fetch))

    return kernel(num_warps, [("float16", mapped("x", (64, 64), 128)),
                              ("float32", pointer("out")),
                              ("int32", Parameter("value", "n"))], body)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_a_ring_brings_every_tile_once_and_in_order(num_warps, stages):
    x = numbers((64, 64 * NUMBER), "float16")
    out = np.zeros(TILE, np.float32)

    summing(num_warps, stages=stages).launch(x, out, NUMBER)

    np.testing.assert_array_equal(out, x.astype(np.float32).reshape(64, NUMBER, 64).sum(1))


def test_a_stage_that_is_released_before_it_is_read_is_found():
    x, out = numbers((64, 64 * NUMBER), "float16"), np.zeros(TILE, np.float32)

    with pytest.raises(EmulatorError):
        summing(released_early=True).launch(x, out, NUMBER)


def test_a_stage_that_is_never_released_is_found():
    x, out = numbers((64, 64 * NUMBER), "float16"), np.zeros(TILE, np.float32)

    with pytest.raises(DeadlockError):
        summing(releases=False).launch(x, out, NUMBER)


def test_the_block_has_the_warps_of_both_roles():
    built = summing(num_warps=4)

    assert built.lowered.num_warps == 5
    assert re.search(r"\.maxntid 160", built.ptx)


def test_barriers_of_the_program_are_of_its_warps_only():
    text = summing(num_warps=4).ptx

    assert re.findall(r"bar\.sync \d+(?:, \d+)?;", text) == ["bar.sync 0;", "bar.sync 1, 128;"]


def test_the_loop_that_fetches_has_one_wait_and_one_copy():
    built = summing()

    loop = built.loop_with("UTMALDG")

    assert loop.count("UTMALDG.2D") == 1
    assert loop.count("SYNCS.PHASECHK.TRANS64.TRYWAIT") <= 2  # the second one tries again
    assert "BSSY" not in loop and "R2UR" not in loop
    assert built.assembled.warnings == ()

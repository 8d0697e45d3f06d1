"""Programs that are spread over the blocks of a cluster: in the emulator, and as machine code."""

import re

import numpy as np
import pytest
from hopper import kernel, mapped, numbers, pointer, size_bytes

from blocknumba.emulator import AccessError, DeadlockError, RaceError
from blocknumba.gpu_layout.layouts.shared import swizzled
from blocknumba.gpu_layout.memory.allocate_shared import ALLOCATIONS
from blocknumba.nvvm_lower.kernel import assemble_kernel, lower
from blocknumba.nvvm_lower.target import TARGETS
from blocknumba.nvvm_lower.toolchain import AssembleOptions, compile_to_ptx
from blocknumba.tile_ir.ir.function import Parameter

TILE, NUMBER = (64, 64), 7


def where(blocks, num_warps=1):
    """A kernel that stores, per block, (program_id, num_programs, rank) of x and y."""
    def body(w, out):
        rank = w.cta_rank(blocks=blocks)
        x, y = w.program_id(axis=0), w.program_id(axis=1)
        position = w.add(w.mul(w.add(w.mul(y, w.num_programs(axis=0)), x), w.number(blocks)), rank)
        at = w.mul(position, w.number(5))
        for i, value in enumerate((x, y, w.num_programs(axis=0), w.num_programs(axis=1), rank)):
            w.store(w.offset(out, w.add(at, w.number(i))), value)

    return kernel(num_warps, [("int32", pointer("out"))], body)


@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_programs_are_counted_without_the_blocks_that_they_are_spread_over(blocks):
    out = np.full((2, 3 * blocks, 5), -1, np.int32)

    where(blocks).launch(out, grid=(3, 2))

    x, y = np.meshgrid(np.arange(3 * blocks), np.arange(2))
    expected = [x // blocks, y, np.full_like(x, 3), np.full_like(x, 2), x % blocks]
    np.testing.assert_array_equal(out, np.stack(expected, 2))


@pytest.mark.parametrize("name", ["sm_90", "sm_90a", "sm_100a", "sm_120"])
def test_the_kernel_says_what_clusters_it_wants_on_every_target_that_has_them(name):
    target, built = TARGETS[name], where(4)
    lowered = lower(built.allocated, target)

    ptx = compile_to_ptx(lowered.nvvm_ir, target, AssembleOptions(verify=True)).decode()
    assembled = assemble_kernel(lowered, target)

    assert lowered.cluster == 4
    assert re.search(r"\.reqnctapercluster 4, 1, 1", ptx)
    assert assembled.warnings == ()


def summing(blocks, num_warps=4, stages=2, rows=64, **changed):
    """A kernel whose blocks each add up the n tiles of x, side by side, and fetch them together.

    rows: of a tile.  changed: what is not as it should be: how many blocks a release reaches, how
    many arrivals `empty` waits for.
    """
    releases = changed.get("releases", blocks)
    arrivals = changed.get("arrivals", num_warps * blocks)
    tile, shard = (rows, 64), (rows // blocks, 64)

    def body(w, map_, out, n):
        rank, lines = w.cta_rank(blocks=blocks), w.rows(tile, 8)
        ring = w.buffer("float16", tile, swizzled(tile, 1, 16, 128), copies=stages)
        full = w.mbarrier_allocate(copies=stages, arrivals=1)
        empty = w.mbarrier_allocate(copies=stages, arrivals=arrivals)

        def fetch(index):
            position, _, before = w.ring_position(index, stages)
            w.mbarrier_wait(w.slot(empty, position), before)
            barrier = w.slot(full, position)
            w.mbarrier_expect(barrier, size_bytes=size_bytes(tile, "float16"))
            portion = w.buffer_shard(w.slot(ring, position), rank, shape=shard,
                                       layout=swizzled(shard, 1, 16, 128))
            w.tma_load(map_, portion, barrier, w.mul(index, w.number(64)),
                       w.mul(rank, w.number(shard[0])), blocks=blocks)

        def add(index, total):
            position, phase, _ = w.ring_position(index, stages)
            w.mbarrier_wait(w.slot(full, position), phase)
            read = w.shared_read(w.slot(ring, position), layout=lines)
            w.fence_async()
            w.mbarrier_arrive(w.slot(empty, position), blocks=releases)
            return (w.add(total, w.cast(read, dtype="float32")),)

        def program():
            total = w.loop_over(n, add, w.zeros("float32", lines))
            w.blocks_done()
            own = w.offset(out, w.mul(rank, w.number(rows * 64)))
            w.store(w.addresses(own, lines, 64), total)

        w.roles(program, lambda: w.loop_over(n, fetch), blocks=blocks)

    return kernel(num_warps, [("float16", mapped("x", (64, shard[0]), 128)),
                              ("float32", pointer("out")),
                              ("int32", Parameter("value", "n"))], body)


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_what_one_block_fetches_comes_to_all_of_them(blocks, stages, seed):
    x = numbers((64, 64 * NUMBER), "float16")
    out = np.full((blocks, *TILE), np.nan, np.float32)

    summing(blocks, stages=stages).launch(x, out, NUMBER, seed=seed)

    expected = x.astype(np.float32).reshape(64, NUMBER, 64).sum(1)
    np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


@pytest.mark.parametrize(("changed", "error"), [
    ({"releases": 1}, DeadlockError),  # no block hears of the others' releases
    ({"releases": 1, "arrivals": 4}, RaceError),  # what others still read is overwritten
    ({"arrivals": 16}, DeadlockError),
])
def test_blocks_that_do_not_wait_for_each_other_are_found(changed, error):
    x, out = numbers((64, 64 * NUMBER), "float16"), np.zeros((2, *TILE), np.float32)

    with pytest.raises(error):
        summing(2, **changed).launch(x, out, NUMBER)


def leaving(ends_together):
    """A kernel of two blocks, the second of which is late to arrive at the barrier of both."""
    def body(w):
        barrier = w.mbarrier_allocate(copies=1, arrivals=2)
        w.mbarriers_ready(blocks=2)
        iterations = w.mul(w.cta_rank(blocks=2), w.number(500))
        w.loop_over(iterations, lambda index: w.uniform(index) and None)
        w.mbarrier_arrive(barrier, blocks=2)
        if ends_together:
            w.blocks_done()

    return kernel(1, [], body)


def test_a_block_that_does_not_wait_for_the_others_at_its_end_is_gone_when_they_arrive():
    leaving(ends_together=True).launch()

    with pytest.raises(AccessError, match="has ended"):
        leaving(ends_together=False).launch()


def test_a_barrier_keeps_its_bytes_to_the_end():
    def body(w):
        w.mbarrier_arrive(w.mbarrier_allocate(copies=1, arrivals=2), blocks=2)
        rows = w.rows((32, 64), 4)
        w.shared_write(w.buffer("float32", (32, 64), swizzled((32, 64), 1, 32, 0)),
                       w.zeros("float32", rows))

    allocated = kernel(4, [], body).allocated

    offsets = [op.attrs["offset"] for op in allocated.body.ops if op.opdef in ALLOCATIONS]
    assert offsets == [0, 16]


def test_the_machine_code_copies_to_all_blocks_and_is_uniform():
    built = summing(2)

    loop = built.loop_with("UTMALDG")

    assert loop.count("UTMALDG.2D.MULTICAST") == 1
    assert "BSSY" not in loop and "R2UR" not in loop
    assert ".GPU" not in built.loop_with("SYNCS.ARRIVE.TRANS64.RED")  # fences of the block suffice
    assert built.sass.count("UCGABAR_WAIT") == 2
    assert built.assembled.warnings == () and built.assembled.spill_bytes == 0



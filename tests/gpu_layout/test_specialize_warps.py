"""Warp specialisation: what kernels become, and when they stay as they are."""

from collections import Counter
from dataclasses import replace

import pytest
from ring_check import ring_problems
from tensor_core_kernels import attention_like, late_use, matmul, persistent_matmul, tile_of

import blocknumba as bn

from blocknumba.gpu_layout.async_copies.ops import warp_roles
from blocknumba.gpu_layout.async_copies.schedule import plan_schedule
from blocknumba.gpu_layout.async_copies.specialize_warps import specialize_warps
from blocknumba.gpu_layout.dots.map_wgmma import map_wgmma
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.spec import MAPPED
from blocknumba.nvvm_lower.target import TARGETS
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.verifier import verify

HOPPER = TARGETS["sm_90a"]
OPTIONS = LayoutOptions(
    num_warps=8,
    arrays_are_disjoint=True,
    features=HOPPER.capabilities,
    shared_bytes=HOPPER.shared_bytes_per_block,
)
F16 = ("f16[:,::1]:16",) * 3
TILES = {"BM": 128, "BN": 256, "BK": 64}


def specialized(kernel, types=F16, constants=TILES, options=OPTIONS):
    """The kernel after the pass, verified."""
    fn = specialize_warps(map_wgmma(tile_of(kernel, types, constants), options), options)
    verify(fn, MAPPED)
    return fn


def roles(fn):
    """Counts of the ops of the consumers and of the producer; none of a kernel without roles."""
    for op in fn.body.ops:
        if op.opdef is warp_roles:
            return tuple(Counter(o.name for o in walk(region)) for region in op.regions)
    return None


@pytest.mark.parametrize("kernel", [matmul, persistent_matmul, late_use, attention_like])
def test_every_slot_that_is_filled_is_waited_for_and_released(kernel):
    fn = specialized(kernel)

    assert roles(fn) is not None
    assert ring_problems(fn, 8) == []


def test_the_producer_only_fetches_and_the_consumers_only_compute():
    consumers, producer = roles(specialized(persistent_matmul))

    assert producer["tma_load"] == 2 and producer["mbarrier_expect"] == 1
    assert not producer.keys() & {"load", "store", "wgmma", "splat", "tma_store"}
    assert consumers["wgmma"] == 1 and consumers["tma_store"] == 1
    assert not consumers.keys() & {"load", "store", "tma_load", "mbarrier_expect"}


def test_iterations_overlap_where_only_wgmma_touches_the_accumulator():
    fn = specialized(matmul)

    waits = [op.attrs["pending"] for op in walk(fn.body) if op.name == "wgmma_wait"]
    assert waits == [1, 0]


def test_iterations_do_not_overlap_where_the_accumulator_is_used_in_the_loop():
    fn = specialized(late_use)

    waits = [op.attrs["pending"] for op in walk(fn.body) if op.name == "wgmma_wait"]
    assert waits == [0]


def test_as_many_stages_as_fit_shared_memory_beside_the_tile_that_is_stored():
    fn = specialized(persistent_matmul)

    copies = {op.attrs["copies"] for op in walk(fn.body) if op.name == "shared_allocate"}
    assert copies == {3}  # of 48 KiB, and 64 KiB for the result, in 227 KiB


def test_num_stages_limits_the_copies_of_a_ring():
    fn = specialized(matmul, options=replace(OPTIONS, num_stages=2))

    copies = {op.attrs["copies"] for op in walk(fn.body) if op.name == "shared_allocate"}
    assert copies == {2}


@pytest.mark.parametrize(("types", "options", "reason"), [
    (("f16[:,:]:16",) * 3, OPTIONS, "stride"),
    (("f16[:,::1]",) * 3, OPTIONS, "16 bytes"),
    (F16, replace(OPTIONS, arrays_are_disjoint=False), "arrays share memory"),
    (F16, replace(OPTIONS, features=OPTIONS.features - {"tma"}), "the target has no tensor maps"),
])
def test_a_kernel_that_cannot_be_specialised_stays_as_it_is_and_says_why(types, options, reason):
    mapped = map_wgmma(tile_of(matmul, types, TILES), options)

    assert specialize_warps(mapped, options).body is mapped.body
    reasons = plan_schedule(mapped, options).reasons.values()
    assert reasons and all(reason in text for text in reasons), list(reasons)


@pytest.mark.parametrize(("b", "is_taken"), [("f32[::1,:]:16", True), ("f32[:,::1]:16", False)])
def test_tf32_is_for_wgmma_where_tma_rounds_both_operands(b, is_taken):
    types = "f32[:,::1]:16", b, "f32[:,::1]:16"
    fn = map_wgmma(tile_of(matmul, types, {**TILES, "BN": 128, "BK": 32, "PRECISION": "tf32"}),
                   OPTIONS)

    assert [op.name for op in walk(fn.body) if op.name in ("dot", "wgmma")] == (
        ["wgmma"] if is_taken else ["dot"])
    if is_taken:
        maps = specialize_warps(fn, OPTIONS).parameters
        rounded = [p.tensor_map.as_tf32 for p in maps if p.tensor_map is not None]
        assert rounded == [True, True, False]  # what is stored is not rounded


def test_the_check_of_rings_finds_a_slot_that_is_never_released():
    fn = specialized(matmul)

    (op,) = [op for op in fn.body.ops if op.opdef is warp_roles]
    consumer = op.regions[0]
    consumer.ops = tuple(o for o in consumer.ops if o.name != "mbarrier_arrive")

    assert ring_problems(fn, 8) == ["a region does not release each slot once"]


def test_iterations_do_not_overlap_where_threads_write_what_wgmma_reads():
    fn = specialized(matmul, ("i8[:,::1]:16", "i8[:,::1]:16", "i32[:,::1]:16"),
                     {**TILES, "BK": 128, "SUM": bn.int32})

    waits = [op.attrs["pending"] for op in walk(fn.body) if op.name == "wgmma_wait"]
    assert waits == [0]  # the second operand is transposed by threads

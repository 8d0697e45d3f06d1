"""Loops with two products, the second of what the first gave."""

from dataclasses import replace

import pytest
from tensor_core_kernels import attention_like, late_use, matmul, softmax_products, tile_of
from test_specialize_warps import OPTIONS

from blocknumba.gpu_layout.passes.map_wgmma import map_wgmma
from blocknumba.gpu_layout.passes.rotate_products import rotate_products
from blocknumba.gpu_layout.passes.specialize_warps import specialize_warps
from blocknumba.gpu_layout.ring_check import ring_problems
from blocknumba.gpu_layout.spec import MAPPED
from blocknumba.tile_ir.ir import walk
from blocknumba.tile_ir.verifier import verify

F16 = ("f16[:,::1]:16",) * 3
HEADS = ("f16[:,::1]:16",) * 4
BLOCKS = {"BM": 128, "BN": 128, "D": 64}


def rotated(kernel, types=HEADS, constants=BLOCKS, options=OPTIONS):
    """The kernel after the pass, and whether it changed anything."""
    mapped = map_wgmma(tile_of(kernel, types, constants), options)
    fn = rotate_products(mapped, options)
    verify(fn, MAPPED)
    return fn, fn is not mapped


def test_a_round_begins_its_first_product_before_it_waits_for_the_second_of_the_last_one():
    fn, changed = rotated(softmax_products)

    assert changed
    (loop,) = [op for op in walk(fn.body) if op.name == "for"]
    order = [op.name for op in loop.regions[0].ops if op.name in ("wgmma", "wgmma_wait", "pin")]
    pending = [op.attrs["pending"] for op in loop.regions[0].ops if op.name == "wgmma_wait"]
    assert order == ["wgmma", "wgmma", "wgmma_wait", "pin", "wgmma_wait", "wgmma_wait"]
    assert pending == [1, 0, 0]


def test_what_a_product_reads_in_registers_is_made_while_none_is_under_way():
    fn, _ = rotated(softmax_products)

    (loop,) = [op for op in walk(fn.body) if op.name == "for"]
    ops = list(loop.regions[0].ops)
    last_wait = max(i for i, op in enumerate(ops) if op.name == "wgmma_wait")
    casts = [i for i, op in enumerate(ops) if op.name == "cast"]
    assert casts and min(casts) > last_wait


def test_the_rings_of_a_rotated_loop_are_shared_by_what_is_peeled_off_and_balance():
    fn, _ = rotated(softmax_products)
    specialized = specialize_warps(fn, OPTIONS)

    verify(specialized, MAPPED)
    assert ring_problems(specialized) == []
    rings = [op for op in walk(specialized.body) if op.name == "mbarrier_allocate"]
    assert len(rings) == 2 * 3  # full and empty, of the queries, the keys and the values


@pytest.mark.parametrize("kernel", [matmul, late_use, attention_like])
def test_other_loops_stay_as_they_are(kernel):
    _, changed = rotated(kernel, F16, {"BM": 128, "BN": 128, "BK": 64})

    assert not changed


def test_a_loop_whose_products_do_not_fit_the_registers_together_stays_as_it_is():
    alone = replace(OPTIONS, features=OPTIONS.features - {"set_max_registers"})
    _, changed = rotated(softmax_products, constants={**BLOCKS, "D": 128}, options=alone)
    _, with_fewer_warps = rotated(softmax_products, constants={**BLOCKS, "BM": 64, "D": 128},
                                  options=replace(alone, num_warps=4))

    assert not changed
    assert with_fewer_warps


@pytest.mark.parametrize(("D", "attrs"), [
    (64, {"producers": 1}), (128, {"producers": 4, "registers": (24, 240)})])
def test_a_warpgroup_of_producers_gives_registers_away_where_they_are_needed(D, attrs):
    fn, _ = rotated(softmax_products, constants={**BLOCKS, "D": D})

    (roles,) = [op for op in specialize_warps(fn, OPTIONS).body.ops if op.name == "warp_roles"]
    assert dict(roles.attrs) == attrs

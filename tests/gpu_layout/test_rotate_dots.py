"""Loops with two chained dots, the second of the result of the first."""

from dataclasses import replace

import emulated_gpu
import numpy as np
import pytest
from ring_check import ring_problems
from tensor_core_kernels import attention_like, late_use, matmul, softmax_products, tile_of
from test_specialize_warps import OPTIONS

import blocknumba as bn

from blocknumba.gpu_layout.async_copies.specialize_warps import raise_accesses, specialize_warps
from blocknumba.gpu_layout.dots.map_wgmma import map_wgmma
from blocknumba.gpu_layout.dots.rotate_dots import rotate_dots
from blocknumba.gpu_layout.spec import MAPPED
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.verifier import verify

F16 = ("f16[:,::1]:16",) * 3
HEADS = ("f16[:,::1]:16",) * 4
BLOCKS = {"BM": 128, "BN": 128, "D": 64}


@bn.jit
def walking_products(q, k, v, out, length, BM: bn.constexpr, BN: bn.constexpr, D: bn.constexpr,
                     DOUBLES: bn.constexpr = False):
    """Two chained dots in a loop that carries pointers; those of the second may leap."""
    m, n, d = bn.program_id(0) * BM + bn.arange(0, BM), bn.arange(0, BN), bn.arange(0, D)
    queries = bn.load(q + m[:, None] * D + d[None, :], mask=m[:, None] < length, other=0.0)
    k_ptrs, v_ptrs = k + n[None, :] * D + d[:, None], v + n[:, None] * D + d[None, :]
    sums = bn.zeros((BM, D))
    for start in range(0, length, BN):
        there = start + n < length
        scores = queries @ bn.load(k_ptrs, mask=there[None, :], other=0.0)
        weights = bn.exp2(scores).to(bn.float16)
        sums = sums * 0.5 + weights @ bn.load(v_ptrs, mask=there[:, None], other=0.0)
        k_ptrs += BN * D
        v_ptrs += start * D if DOUBLES else BN * D
    bn.store(out + m[:, None] * D + d[None, :], sums, mask=m[:, None] < length)


def rotated(kernel, types=HEADS, constants=BLOCKS, options=OPTIONS):
    """The kernel after the pass, and whether it changed anything."""
    mapped = map_wgmma(tile_of(kernel, types, constants), options)
    fn = rotate_dots(mapped, options)
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
    assert ring_problems(specialized, 8) == []
    rings = [op for op in walk(specialized.body) if op.name == "mbarrier_allocate"]
    assert len(rings) == 2 * 3  # full and empty, of the queries, the keys and the values


@pytest.mark.parametrize("kernel", [matmul, late_use, attention_like])
def test_other_loops_stay_as_they_are(kernel):
    _, changed = rotated(kernel, F16, {"BM": 128, "BN": 128, "BK": 64})

    assert not changed


def test_pointers_that_a_loop_carries_are_those_of_the_round_before():
    types = (*HEADS, "i32:16")
    fn, changed = rotated(walking_products, types)
    _, leaping_changed = rotated(walking_products, types, {**BLOCKS, "DOUBLES": True})
    specialized = specialize_warps(raise_accesses(fn, OPTIONS), OPTIONS)

    assert changed and not leaping_changed
    assert ring_problems(specialized, 8) == []
    assert not any(op.name == "load" for op in walk(specialized.body))  # all are fetched


@pytest.mark.parametrize("length", [0, 16, 128, 144, 400])
def test_a_rotated_loop_that_carries_pointers_gives_what_numpy_gives(length):
    generator = np.random.default_rng(length)
    q, k, v = (generator.standard_normal((length, 64)).astype(np.float16) / 8 for _ in range(3))
    out = np.full((length, 64), np.nan, np.float32)

    emulated_gpu.launch(walking_products, -(-length // 128), (q, k, v, out, length),
                        {**BLOCKS, "num_warps": 8})

    exact = np.zeros((length, 64))
    for start in range(0, length, 128):
        scores = q.astype(np.float64) @ k[start:start + 128].T.astype(np.float64)
        exact = exact * 0.5 + np.exp2(scores) @ v[start:start + 128].astype(np.float64)
    np.testing.assert_allclose(out, exact, rtol=2e-3, atol=2e-3)


def test_a_loop_whose_products_do_not_fit_the_registers_together_stays_as_it_is():
    without_budget = replace(OPTIONS, features=OPTIONS.features - {"set_max_registers"})
    _, changed = rotated(softmax_products, constants={**BLOCKS, "D": 128}, options=without_budget)
    _, with_fewer_warps = rotated(softmax_products, constants={**BLOCKS, "BM": 64, "D": 128},
                                  options=replace(without_budget, num_warps=4))

    assert not changed
    assert with_fewer_warps


@pytest.mark.parametrize(("D", "attrs"), [
    (64, {"producers": 1}), (128, {"producers": 4, "registers": (24, 240)})])
def test_a_warpgroup_of_producers_gives_registers_away_where_they_are_needed(D, attrs):
    fn, _ = rotated(softmax_products, constants={**BLOCKS, "D": D})

    (roles,) = [op for op in specialize_warps(fn, OPTIONS).body.ops if op.name == "warp_roles"]
    assert dict(roles.attrs) == {"blocks": 1, **attrs}

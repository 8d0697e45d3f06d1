"""Kernels whose own warps fetch: several of their programs share a multiprocessor."""

from collections import Counter
from dataclasses import replace

import emulated_gpu
import numpy as np
import pytest
from ring_check import ring_problems
from tensor_core_kernels import matmul, softmax_products, tile_of
from test_specialize_warps import OPTIONS

import blocknumba as bn

from blocknumba.gpu_layout.async_copies.ops import mbarrier_allocate, tma_load, warp_roles
from blocknumba.gpu_layout.async_copies.residency import programs_to_share
from blocknumba.gpu_layout.async_copies.specialize_warps import specialize_warps
from blocknumba.gpu_layout.dots.map_wgmma import map_wgmma
from blocknumba.gpu_layout.dots.rotate_dots import rotate_dots
from blocknumba.gpu_layout.memory.allocate_shared import ALLOCATIONS, size_bytes
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.gpu_layout.spec import MAPPED
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.verifier import verify

WARPGROUP = replace(OPTIONS, num_warps=4)
HEADS = ("f16[:,::1]:16",) * 4
BLOCKS = {"BM": 64, "BN": 128, "D": 64}


@bn.jit
def halves(q, k, v, out, BM: bn.constexpr, BN: bn.constexpr, D: bn.constexpr):
    """Two loops over the same rows, one after the other, as causal attention has them."""
    rows, d = bn.block(0, BM), bn.span(0, D)
    queries = q[rows, d]
    sums = bn.zeros((BM, D))
    half = k.shape[0] // 2 // BN * BN
    for n in bn.spans(half, BN):
        sums += bn.maximum(queries @ k[n, d].T, 0).to(bn.float16) @ v[n, d]
    for n in bn.spans(k.shape[0], BN, start=half):
        sums += bn.maximum(queries @ k[n, d].T, 0).to(bn.float16) @ v[n, d]
    out[rows, d] = sums


@bn.jit
def with_rest(q, k, v, out, BM: bn.constexpr, BN: bn.constexpr, D: bn.constexpr):
    """A loop over whole blocks of rows, and a branch for those that are left."""
    rows, d = bn.block(0, BM), bn.span(0, D)
    queries = q[rows, d]
    sums = bn.zeros((BM, D))
    length = k.shape[0]
    whole = length // BN * BN
    for n in bn.spans(whole, BN):
        sums += bn.maximum(queries @ k[n, d].T, 0).to(bn.float16) @ v[n, d]
    if whole < length:
        n = bn.span(whole, BN)
        sums += bn.maximum(queries @ k[n, d].T, 0).to(bn.float16) @ v[n, d]
    out[rows, d] = sums


def mapped(kernel, types=HEADS, constants=BLOCKS, options=WARPGROUP):
    return map_wgmma(tile_of(kernel, types, constants), options)


def single_role(kernel, options=WARPGROUP):
    """The kernel after the passes, verified."""
    fn = specialize_warps(rotate_dots(mapped(kernel, options=options), options), options)
    verify(fn, MAPPED)
    return fn


@pytest.mark.parametrize("kernel", [softmax_products, halves, with_rest])
@pytest.mark.parametrize("num_stages", [None, 1, 2])
def test_warps_that_compute_fetch_and_their_rings_balance(kernel, num_stages):
    fn = single_role(kernel, replace(WARPGROUP, num_stages=num_stages))

    assert not any(op.opdef is warp_roles for op in walk(fn.body))
    assert any(op.opdef is tma_load for op in walk(fn.body))
    assert ring_problems(fn, 4) == []


def test_an_iteration_fetches_for_the_next_one_while_its_first_dot_is_under_way():
    fn = single_role(softmax_products)

    (loop,) = [op for op in walk(fn.body) if op.name == "for"]
    names = [op.name for op in loop.regions[0].ops if op.name in ("wgmma", "wgmma_wait", "if")]
    assert names == ["wgmma", "if", "wgmma_wait", "wgmma", "wgmma_wait"]
    before = Counter(op.name for op in walk(fn.body))
    inside = Counter(op.name for op in walk(loop.regions[0]))
    assert inside["tma_load"] == 2
    assert before["tma_load"] == 2 + 2 + 1  # keys and values of the first iteration, the queries


# as large as the queries, larger
@pytest.mark.parametrize("out", ["f16[:,::1]:16", "f32[:,::1]:16"])
def test_no_buffer_has_bytes_of_an_mbarrier_that_is_no_longer_waited_for(out):
    fn = lay_out(tile_of(softmax_products, (*HEADS[:3], out), BLOCKS), WARPGROUP)

    bytes_of = {op: range(op.attrs["offset"], op.attrs["offset"] + size_bytes(op))
                for op in walk(fn.body) if op.opdef in ALLOCATIONS}
    mbarriers = [op for op in bytes_of if op.opdef is mbarrier_allocate]
    assert len(mbarriers) == 6
    for mbarrier in mbarriers:
        for op in bytes_of.keys() - {mbarrier}:
            first, second = bytes_of[op], bytes_of[mbarrier]
            assert first.stop <= second.start or second.stop <= first.start, (op, mbarrier)


def test_the_check_of_rings_finds_a_fetch_that_is_missing():
    fn = single_role(softmax_products)

    first = next(op for op in fn.body.ops if op.name == "if")
    fn.body.ops = tuple(op for op in fn.body.ops if op is not first)

    assert ring_problems(fn, 4)


@pytest.mark.parametrize(("constants", "options", "programs"), [
    (BLOCKS, WARPGROUP, 3),
    (BLOCKS | {"BM": 128, "BN": 64}, WARPGROUP, 2),  # registers for no more
    (BLOCKS | {"BM": 128}, OPTIONS, 0),  # of two warpgroups, one can multiply for the other
    (BLOCKS | {"BN": 64, "D": 128}, WARPGROUP, 0),  # shared memory for two, as with producers
    (BLOCKS | {"D": 128}, WARPGROUP, 0),  # shared memory for one
    (BLOCKS, replace(WARPGROUP, features=OPTIONS.features - {"tma"}), 0),
])
def test_programs_share_where_three_fit_or_producers_are_in_the_way(constants, options, programs):
    fn = mapped(softmax_products, HEADS, constants, options)

    assert programs_to_share(fn, options) == programs


def test_programs_whose_dots_do_not_wait_for_each_other_do_not_share():
    fn = mapped(matmul, HEADS[:3], {"BM": 64, "BN": 64, "BK": 64})

    assert not programs_to_share(fn, WARPGROUP)


def test_a_loop_within_a_loop_has_a_warp_that_fetches():
    @bn.jit
    def persistent(q, k, v, out, BM: bn.constexpr, BN: bn.constexpr, D: bn.constexpr):
        for start in range(bn.program_id(0) * BM, q.shape[0], bn.num_programs(0) * BM):
            rows, d = bn.span(start, BM), bn.span(0, D)
            sums = bn.zeros((BM, D))
            for n in bn.spans(k.shape[0], BN):
                sums += (q[rows, d] @ k[n, d].T).to(bn.float16) @ v[n, d]
            out[rows, d] = sums

    fn = single_role(persistent)

    assert any(op.opdef is warp_roles for op in walk(fn.body))
    assert ring_problems(fn, 4) == []


def test_in_a_branch_all_is_fetched_before_anything_is_waited_for():
    fn = single_role(with_rest)

    branch = [op for op in fn.body.ops if op.name == "if"][-1]
    names = [op.name for op in branch.regions[0].ops if op.name in ("if", "mbarrier_wait")]
    assert names == ["if", "if", "mbarrier_wait", "mbarrier_wait"]


@pytest.mark.parametrize("length", [64, 128, 300, 512])
@pytest.mark.parametrize("num_stages", [None, 1, 3])
@pytest.mark.parametrize("kernel", [halves, with_rest])
def test_loops_and_branches_through_the_same_rings_give_what_numpy_gives(
        kernel, length, num_stages):
    generator = np.random.default_rng(length)
    q, k, v = (generator.standard_normal((rows, 64)).astype(np.float16) / 8
               for rows in (100, length, length))
    out = np.full((100, 64), np.nan, np.float16)

    compiled = emulated_gpu.launch(kernel, 2, (q, k, v, out),
                                   {**BLOCKS, "BN": 64, "num_warps": 4, "num_stages": num_stages})

    exact = np.maximum(q.astype(np.float64) @ k.T.astype(np.float64), 0) @ v.astype(np.float64)
    np.testing.assert_allclose(out, exact, rtol=4e-3, atol=4e-3)
    assert compiled.stats.producers == 0
    assert {access.way for access in compiled.stats.accesses} == {"TMA"}


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("num_stages", [None, 1, 2, 3])
def test_where_no_other_warps_may_fetch_iterations_of_a_product_overlap(num_warps, num_stages):
    options = replace(OPTIONS, num_warps=num_warps, num_stages=num_stages, helpers=False)

    fn = map_wgmma(tile_of(matmul, ("f16[:,::1]:16", "f16[:,::1]:16", "f32[:,::1]:16"),
                           {"BM": 128, "BN": 64, "BK": 64}), options)
    fn = specialize_warps(rotate_dots(fn, options), options)

    verify(fn, MAPPED)
    ops = Counter(op.name for op in walk(fn.body))
    assert ops["warp_roles"] == 0 and ops["tma_load"] > 0 and ops["tma_store"] == 0
    assert ring_problems(fn, num_warps) == []
    waits = [op.attrs["pending"] for op in walk(fn.body) if op.name == "wgmma_wait"]
    assert sorted(waits) == ([0] if num_stages == 1 else [0, 1])

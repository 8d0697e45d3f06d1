"""Programs partitioned over blocks: together the blocks do what one block would do."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from tensor_core_kernels import tile_of

import blocknumba as bn

from blocknumba.gpu_layout.clusters.partition import partition_blocks, refusal
from blocknumba.gpu_layout.ops import cta_rank
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.nvvm_lower.target import TARGETS
from blocknumba.tile_ir import interpreter  # noqa: F401  gives ops with effects their meaning
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.rebuild import rebuild
from blocknumba.tile_ir.ir.types import int32
from blocknumba.tile_ir.ir.verifier import TILE, verify
from blocknumba.tile_ir.ops.dot import dot

OPTIONS = LayoutOptions(arrays_are_disjoint=True, num_ctas=2,
                        features=TARGETS["sm_90a"].capabilities)
CONSTANTS = {"BM": 128, "BN": 32, "BK": 16}
ROWS, COLUMNS, DEPTH = 300, 70, 40  # not multiples of anything


@bn.jit
def product(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    for m, n in bn.persistent(c.shape, (BM, BN)):
        sums = bn.zeros((BM, BN))
        for k in bn.spans(a.shape[1], BK):
            sums += a[m, k] @ b[k, n]
        c[m, n] = sums


@bn.jit
def with_bias_of_rows(a, b, c, bias, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bias[m][:, None] + bn.zeros((BM, BN))
    for k in bn.spans(a.shape[1], BK):
        sums += a[m, k] @ b[k, n]
    sums = bn.where(sums > 0, sums, sums * 0.5)
    c[m, n] = sums - bn.max(sums, axis=1)[:, None]


@bn.jit
def transposed(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """a is there transposed, c is stored transposed."""
    m, n = bn.block(0, BM), bn.block(1, BN)
    sums = bn.zeros((BM, BN))
    for k in bn.spans(b.shape[0], BK):
        sums += a.T[k, m].T @ b[k, n]
    c.T[n, m] = sums.T


@bn.jit
def two_products(q, k, out, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """Attention without its exponentials: a product of a product, a loop in an if."""
    m, d = bn.block(0, BM), bn.span(0, BK)
    row, most = q[m, d], bn.full((BM,), -1.0, bn.float32)
    sums = bn.zeros((BM, BK))
    if bn.program_id(0) < 2:
        for n in bn.spans(k.shape[0], BN):
            keys = k[n, d]
            scores = row @ keys.T
            larger = bn.maximum(most, bn.max(scores, axis=1))
            sums += (scores - larger[:, None] + most[:, None]).astype(bn.float32) @ keys
            most = larger
    out[m, d] = sums


@bn.jit
def walking(a, b, c, M, N, K, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    """Pointers that a loop carries; one arange serves rows and depth; sums are added to c."""
    rows = bn.program_id(0) * BM + bn.arange(BM)
    columns, depth = bn.program_id(1) * BN + bn.arange(BN), bn.arange(BK)
    a_at, b_at = a + rows[:, None] * K + depth, b + depth[:, None] * N + columns
    sums = bn.zeros((BM, BN))
    for k in range(0, K, BK):
        inside = depth < K - k
        x = bn.load(a_at, mask=(rows < M)[:, None] & inside, other=0.0)
        y = bn.load(b_at, mask=inside[:, None] & (columns < N), other=0.0)
        sums = bn.dot(x, y, sums)
        a_at += BK
        b_at += BK * N
    bn.atomic_add(c + rows[:, None] * N + columns, sums, mask=(rows < M)[:, None] & (columns < N))


MATRIX = "f32[:,::1]"
CASES = {
    "product": (product, (MATRIX,) * 3, CONSTANTS),
    "product of 256 rows": (product, (MATRIX,) * 3, CONSTANTS | {"BM": 256}),
    "rows of a bias, of reductions": (with_bias_of_rows, (MATRIX,) * 3 + ("f32[::1]",), CONSTANTS),
    "transposed": (transposed, (MATRIX,) * 3, CONSTANTS),
    "two products": (two_products, (MATRIX,) * 3, CONSTANTS),
    "pointers that are carried, atomics": (walking, ("*fp32",) * 3 + ("i32",) * 3, CONSTANTS | {"BK": 128}),
}


def ranked(fn, rank):
    """A function as the block of a rank runs it."""
    def rewrite(rebuilder, op):
        if op.opdef is cta_rank:
            return (rebuilder.builder.constant(rank, int32),)
        return None
    return rebuild(fn, rewrite)


def arrays(fn, generator):
    """Small integers, whose sums are exact in any order, and a result of zeros."""
    names = list(dict.fromkeys(p.argument for p in fn.parameters))
    shapes = {"a": (ROWS, DEPTH), "b": (DEPTH, COLUMNS), "c": (ROWS, COLUMNS), "bias": (ROWS,),
              "q": (ROWS, 16), "k": (COLUMNS, 16), "out": (ROWS, 16)}
    numbers = {"M": ROWS, "N": COLUMNS, "K": DEPTH}
    made = {name: numbers[name] if name in numbers
            else generator.integers(-3, 4, shapes[name]).astype(np.float32) for name in names}
    for name in ("c", "out"):
        if name in made:
            made[name][:] = 0
    return made


def partitioned(case, options=OPTIONS):
    """The kernel of a case, whole, and as its blocks run it."""
    kernel, types, constants = CASES[case]
    whole = tile_of(kernel, types, constants)
    assert not refusal(whole, options)
    shards = partition_blocks(whole, options)
    verify(shards, TILE)
    return whole, shards


@pytest.mark.parametrize("num_ctas", [2, 4])
@pytest.mark.parametrize("case", CASES)
def test_blocks_together_do_what_a_program_does(case, num_ctas):
    generator = np.random.default_rng()
    whole, shards = partitioned(case, replace(OPTIONS, num_ctas=num_ctas))
    given = arrays(whole, generator)
    expected = {name: copy(value) for name, value in given.items()}
    blocks = {attribute(op, "blocks") for op in walk(shards.body) if op.opdef is cta_rank}
    rows = CASES[case][2]["BM"]

    interpreter.run(whole, (3, 3, 1), expected)
    for rank in range(*blocks):
        interpreter.run(ranked(shards, rank), (3, 3, 1), given)

    assert blocks == {min(num_ctas, rows // 64)}
    for name, array in given.items():
        np.testing.assert_array_equal(array, expected[name])


def test_every_block_has_its_shard_of_the_rows_and_all_columns():
    _, shards = partitioned("product")

    (made,) = [op for op in walk(shards.body) if op.opdef is dot]

    assert [value.type.shape for value in made.operands] == [(64, 16), (16, 32), (64, 32)]


def test_clusters_are_no_larger_than_every_gpu_takes():
    kernel, types, constants = CASES["product"]
    whole = tile_of(kernel, types, constants | {"BM": 1024})

    shards = partition_blocks(whole, replace(OPTIONS, num_ctas=16))

    assert {attribute(op, "blocks") for op in walk(shards.body) if op.opdef is cta_rank} == {8}


def test_a_program_of_one_block_stays_as_it_is():
    whole = tile_of(*CASES["product"])
    options = replace(OPTIONS, num_ctas=1)

    assert partition_blocks(whole, options) is whole


# programs that stay one block -------------------------------------------------------------------
@bn.jit
def sums_of_columns(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    bn.store(c.at[m.start, n], bn.sum(a[m, k] @ b[k, n], axis=0))


@bn.jit
def product_as_second_factor(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    rows = a[m, k] @ b[k, n]
    c[m, n] = (rows @ rows.T) @ rows


@bn.jit
def carried_as_both_factors(a, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, k = bn.block(0, BM), bn.span(0, BK)
    both, sums = a[m, k], bn.zeros((BM, BM))
    for _ in range(3):
        sums += both @ both.T
        both = both * 0.5
    c[m, bn.block(1, BM)] = sums


@bn.jit
def flat(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    rows = (a[m, k] @ b[k, n]).reshape(BM * BN)
    bn.store(c.at[0, bn.arange(BM * BN)], rows)


@bn.jit
def adding_to_an_operand(a, b, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    a[m, n] = a[m, k] @ b[k, n]


@bn.jit
def writing_twice(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    c[m, n] = a[m, k] @ b[k, n]
    c[bn.span(m.start + 1, BM), n] = a[m, k] @ b[k, n]


@bn.jit
def counting(a, b, c, count, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    c[m, n] = a[m, k] @ b[k, n]
    bn.atomic_add(count.at[0], 1)


@bn.jit
def printing(a, b, c, BM: bn.constexpr, BN: bn.constexpr, BK: bn.constexpr):
    m, n, k = bn.block(0, BM), bn.block(1, BN), bn.span(0, BK)
    c[m, n] = a[m, k] @ b[k, n]
    bn.device_print("row", m.start)


@bn.jit
def copying(a, c, BM: bn.constexpr, BN: bn.constexpr):
    m, n = bn.block(0, BM), bn.block(1, BN)
    c[m, n] = a[m, n]


THREE = (MATRIX,) * 3
SHARED = "what one block writes, others could read or write"
REFUSALS = [
    (sums_of_columns, THREE, {}, "reduce needs the whole tile"),
    (product_as_second_factor, THREE, {}, "dot needs the whole tile"),
    (carried_as_both_factors, THREE[:2], {}, "both is carried whole and sharded"),
    (flat, THREE, {}, "reshape needs the whole tile"),
    (adding_to_an_operand, THREE[:2], {}, SHARED),
    (writing_twice, THREE, {}, SHARED),
    (counting, (*THREE, "i32[:]"), {}, "atomic_rmw does not depend on a dot: every block would do it"),
    (printing, THREE, {}, "every block would print"),
    (product, THREE, {"BM": 64}, "fewer than 128 rows of a dot cannot be partitioned"),
]


@pytest.mark.parametrize("kernel, types, constants, reason", REFUSALS)
def test_a_program_stays_one_block_where_blocks_would_need_each_other(kernel, types, constants,
                                                                      reason):
    whole = tile_of(kernel, types, CONSTANTS | constants)

    assert refusal(whole, OPTIONS) == reason
    assert partition_blocks(whole, OPTIONS).body is whole.body


def test_a_program_without_dots_stays_one_block():
    whole = tile_of(copying, THREE[:2], {"BM": 128, "BN": 32})

    assert refusal(whole, OPTIONS) == "blocks share operands of dots, and there are none"


@pytest.mark.parametrize("target, missing", [
    ("sm_80", "multicast"), ("sm_90", "multicast"), ("sm_100a", "wgmma")])
def test_targets_without_clusters_or_what_makes_them_pay_have_one_block(target, missing):
    options = replace(OPTIONS, features=TARGETS[target].capabilities)

    assert refusal(tile_of(*CASES["product"]), options) == f"the target has no {missing}"


def test_arrays_that_may_share_memory_stay_one_block():
    whole = tile_of(*CASES["product"])

    assert refusal(whole, replace(OPTIONS, arrays_are_disjoint=False))

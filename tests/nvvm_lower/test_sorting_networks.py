"""Sorting networks over registers, lanes and warps: their code is run, and counted."""

import numpy as np
import pytest
from emulated_gpu import launch

import blocknumba as bn

WARPS = (1, 2, 4, 8, 16)


@bn.jit
def sorted_along(x, out, M: bn.constexpr, N: bn.constexpr, axis: bn.constexpr):
    r, c = bn.span(0, M), bn.span(0, N)
    out[r, c] = bn.sort(x[r, c], axis)


@bn.jit
def greatest(x, values, indices, N: bn.constexpr, K: bn.constexpr):
    r, j = bn.span(0, N), bn.span(0, K)
    values[j], indices[j] = bn.topk(x[r], K, return_indices=True)


@bn.jit
def sorted_row(x, out, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = bn.sort(x[r])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(1, 1), (1, 1024), (64, 8), (4, 256), (512, 2)], ids=str)
@pytest.mark.parametrize("warps", WARPS)
def test_every_number_of_warps_sorts(warps, shape, axis):
    x = np.random.default_rng().integers(-99, 99, shape).astype(np.int32)
    out = np.full(shape, 777, np.int32)

    launch(sorted_along, 1, (x, out), {"M": shape[0], "N": shape[1], "axis": axis,
                                       "num_warps": warps})

    assert np.array_equal(out, np.sort(x, axis))


@pytest.mark.parametrize("sizes", [(32, 1), (256, 4), (1024, 64), (1024, 512)], ids=str)
@pytest.mark.parametrize("warps", WARPS)
def test_every_number_of_warps_selects(warps, sizes):
    n, k = sizes
    x = np.random.default_rng().integers(-50, 50, n).astype(np.float32)
    values, indices = np.full(k, np.nan, np.float32), np.full(k, -1, np.int32)

    launch(greatest, 1, (x, values, indices), {"N": n, "K": k, "num_warps": warps})

    order = np.argsort(-x, kind="stable")[:k]
    assert np.array_equal(indices, order)
    assert np.array_equal(values, x[order])


@pytest.mark.parametrize("warps, exchanges", [
    # 8 registers, 5 bits of lanes, 2 of warps: of 55 steps 25 are between lanes
    (4, 25 * 8),
    # 32 registers, 5 bits of lanes: of 55 steps 15 are
    (1, 15 * 32),
])
def test_steps_between_registers_exchange_nothing(warps, exchanges):
    compiled = bn.compile(sorted_row, ("i32[::1]:16",) * 2, {"N": 1024}, target="sm_90a",
                          num_warps=warps)

    assert compiled.asm["ptx"].count("shfl.sync.bfly") == exchanges


def test_a_selection_is_shorter_than_a_sort():
    def instructions(k):
        compiled = bn.compile(greatest, ("f32[::1]:16", "f32[::1]:16", "i32[::1]:16"),
                              {"N": 1024, "K": k}, target="sm_90a", num_warps=4)
        return compiled.asm["ptx"].count("\n")

    assert instructions(16) < 0.6 * instructions(1024)


def test_rows_lie_in_few_threads_where_moving_them_there_pays():
    def exchanges(axis):
        constants = {"M": 64, "N": 64, "axis": axis}
        compiled = bn.compile(sorted_along, ("i32[:,::1]:16",) * 2, constants, target="sm_90a",
                              num_warps=4)
        return compiled.asm["ptx"].count("shfl.sync.bfly")

    # 32 elements of an axis in a thread, and 2 threads for it: 1 of 21 steps is between lanes
    assert [exchanges(0), exchanges(1)] == [32, 32]


@bn.jit
def sorted_and_counted(x, out, counts, N: bn.constexpr):
    c, b = bn.span(0, N), bn.span(0, 64)
    total = bn.zeros(64, bn.int32)
    for i in bn.range(0, x.shape[0]):
        total += bn.histogram(x[i, c], 64)
        out[i, c] = bn.sort(x[i, c])
    counts[b] = total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [64, 1024])
def test_warps_that_run_in_any_order_wait_for_each_other(size, seed):
    x = np.random.default_rng().integers(0, 64, (3, size)).astype(np.int32)
    out, counts = np.full_like(x, -1), np.full(64, -1, np.int32)

    # the emulator reports races
    launch(sorted_and_counted, 1, (x, out, counts), {"N": size, "num_warps": 4}, seed=seed)

    assert np.array_equal(out, np.sort(x, 1))
    assert np.array_equal(counts, np.bincount(x.ravel(), minlength=64))

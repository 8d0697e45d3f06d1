"""Atomics of tiles by vector instructions, and their layouts; the order of a scalar's atomic."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.tile_ir.ir.types import DTYPES


@bn.jit
def add_rows(x, rows, out, N: bn.constexpr):
    row = rows[bn.program_id(0)]
    c = bn.arange(N)
    bn.atomic_add(out.at[row, c], x[bn.program_id(0), c].astype(out.dtype), sem="relaxed")


@bn.jit
def add_some(x, out, n, N: bn.constexpr):
    c = bn.arange(N)
    bn.atomic_add(out.at[c], x[c], mask=c < n, sem="relaxed")


@bn.jit
def add_and_tell(x, out, old, N: bn.constexpr):
    c = bn.arange(N)
    old[c] = bn.atomic_add(out.at[c], x[c], sem="relaxed")


@bn.jit
def extremes(x, low, high, was_low, was_high, slots, N: bn.constexpr):
    c = bn.arange(N)
    was_low[c] = bn.atomic_min(low.at[c % slots], x[c])
    was_high[c] = bn.atomic_max(high.at[c % slots], x[c])


@bn.jit
def publish(x, out, flag, N: bn.constexpr):
    c = bn.arange(N)
    out[c] = x[c]
    bn.atomic_add(flag.at[0], 1)


@bn.jit
def count(counter, out):
    out[bn.program_id(0)] = bn.atomic_add(counter.at[0], 1)


def run(kernel, grid, *arguments, target="sm_90a", **keywords):
    """The PTX of a launch on an emulated GPU."""
    return emulated_gpu.launch(kernel, grid, arguments, keywords, target).ptx


def small_integers(shape, dtype, seed=0):
    """Numbers whose sums are exact."""
    numbers = np.random.default_rng(seed).integers(-8, 9, shape)
    return numbers.astype(DTYPES[dtype].numpy)


VECTORS = [("float32", "sm_90a", "red.relaxed.gpu.global.add.v4.f32"),
           ("float16", "sm_90a", "red.relaxed.gpu.global.add.noftz.v4.f16x2"),
           ("bfloat16", "sm_90a", "red.relaxed.gpu.global.add.noftz.v4.bf16x2"),
           ("float16", "sm_80", "red.relaxed.gpu.global.add.noftz.f16x2"),
           ("float32", "sm_80", "red.relaxed.gpu.global.add.f32"),
           ("int32", "sm_90a", "red.relaxed.gpu.global.add.u32")]


@pytest.mark.parametrize("dtype, target, instruction", VECTORS)
def test_rows_are_added_by_the_widest_instruction(dtype, target, instruction):
    x, rows = small_integers((6, 1024), dtype), np.int32([3, 0, 1, 3, 3, 1])
    out = small_integers((4, 1024), dtype, seed=1)
    wanted = out.astype(np.float64)
    np.add.at(wanted, rows, x.astype(np.float64))

    ptx = run(add_rows, 6, x, rows, out, N=1024, target=target, num_warps=4)

    np.testing.assert_array_equal(out.astype(np.float64), wanted)
    assert instruction in ptx
    assert "atom." not in ptx and ".cas." not in ptx


def test_sums_of_halves_of_other_dtypes_have_a_layout_of_their_own():
    x, rows, out = np.ones((1, 4096), np.float16), np.zeros(1, np.int32), np.zeros((1, 4096), "f4")

    ptx = run(add_rows, 1, x, rows, out, N=4096, num_warps=4)

    assert (out == 1).all()
    assert ptx.count("red.relaxed.gpu.global.add.v4.f32") == 4096 // 4 // 128
    assert ptx.count("red.") == 4096 // 4 // 128


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [0, 1, 1001, 1024])
def test_masked_elements_are_left_out_of_vectors(n, dtype, target):
    x, out = small_integers(1024, dtype), small_integers(1024, dtype, seed=1)
    before = out.astype(np.float64)

    run(add_some, 1, x, out, n, N=1024, target=target)

    sums = before + np.where(np.arange(1024) < n, x.astype(np.float64), 0)
    np.testing.assert_array_equal(out.astype(np.float64), sums)


def test_a_bound_cuts_vectors_elementwise_under_one_branch():
    x, out = np.ones(1024, np.float32), np.zeros(1024, np.float32)

    ptx = run(add_some, 1, x, out, 1001, N=1024, num_warps=4)

    assert ptx.count("add.v4.f32") == 2
    assert ptx.count("add.f32 ") - ptx.count("add.rn.f32 ") >= 3


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_old_elements_of_vectors_come_back(dtype, target):
    x, out = small_integers(1024, dtype), small_integers(1024, dtype, seed=1)
    before, old = out.copy(), np.full_like(out, 77)

    ptx = run(add_and_tell, 1, x, out, old, N=1024, target=target)

    np.testing.assert_array_equal(old, before)
    np.testing.assert_array_equal(out.astype(np.float64),
                                  before.astype(np.float64) + x.astype(np.float64))
    assert (".v4." in ptx.partition("atom.")[2].partition(";")[0]) == (target == "sm_90a")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_of_floats_of_both_signs_take_no_loop(dtype):
    rng = np.random.default_rng(5)
    x = np.ldexp(rng.standard_normal(256), rng.integers(-120, 120, 256)).astype(dtype)
    x[:6] = np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).smallest_subnormal, -1e-30
    low = np.append(np.array([3.5, -0.0, -2.0, np.inf], dtype), x[200:213])
    high, wanted_low, wanted_high = low.copy(), low.copy(), low.copy()
    slots = np.arange(256) % len(low)
    np.minimum.at(wanted_low, slots, x)
    np.maximum.at(wanted_high, slots, x)
    was_low, was_high = np.full(256, np.nan, dtype), np.full(256, np.nan, dtype)

    ptx = run(extremes, 1, x, low, high, was_low, was_high, len(low), N=256)

    np.testing.assert_array_equal(low, wanted_low)
    np.testing.assert_array_equal(high, wanted_high)
    assert not np.isnan(was_low).any() and (was_low >= wanted_low[slots]).all()
    assert not np.isnan(was_high).any() and (was_high <= wanted_high[slots]).all()
    assert ".cas." not in ptx


def test_a_release_stays_where_nothing_reads_the_result():
    x, out, flag = np.ones(512, np.float32), np.zeros(512, np.float32), np.zeros(1, np.int32)

    ptx = run(publish, 1, x, out, flag, N=512, num_warps=4)

    store, barrier, add = (ptx.rindex(text) for text in ("st.global", "bar.sync", "red."))
    assert ptx[add:].startswith("red.release.gpu.global.add")
    assert store < barrier < add
    assert "fence" not in ptx
    assert flag[0] == 1


def test_the_thread_of_a_scalar_orders_for_all():
    counter, out = np.zeros(1, np.int32), np.full(8, -1, np.int32)

    ptx = run(count, 8, counter, out, num_warps=4)

    assert sorted(out) == list(range(8))
    assert "atom.acq_rel.gpu.global.add.u32" in ptx
    assert "fence" not in ptx
    assert ptx.count("bar.sync") == 2  # before: the release; after: the old value for all threads

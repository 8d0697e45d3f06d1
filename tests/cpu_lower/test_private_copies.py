"""Arrays that a kernel only adds to: each range of programs adds to a copy, which is added once."""

import numpy as np
import pytest
from native_kernels import NativeKernel

import blocknumba as bn

GENERATOR = np.random.default_rng()


@bn.jit(device="cpu")
def counted(index, weight, out, B: bn.constexpr):
    r = bn.block(0, B)
    bn.atomic_add(out.at[index[r]], weight[r], mask=r.index < index.shape[0])


@bn.jit(device="cpu")
def counted_by_loops(index, weight, out, B: bn.constexpr):
    for r in bn.grid_spans(index.shape[0], B):
        inside = r.index < index.shape[0]
        bn.atomic_add(out.at[index[r], 0], weight[r], mask=inside)
        bn.atomic_add(out.at[index[r], 1], weight[r] * weight[r], mask=inside)


@bn.jit(device="cpu")
def numbered(index, out, places, B: bn.constexpr):
    r = bn.block(0, B)
    places[r] = bn.atomic_add(out.at[index[r]], 1, mask=r.index < index.shape[0])


def weights_of(dtype: str, size: int) -> np.ndarray:
    """Numbers of which no sum is rounded."""
    return GENERATOR.integers(0, 100, size).astype(dtype)


@pytest.mark.parametrize("bins", [1, 37, 5000])
@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float64"])
def test_sums_are_those_of_numpy(dtype, bins):
    index, weight = GENERATOR.integers(0, bins, 50_001), weights_of(dtype, 50_001)
    start = weights_of(dtype, bins)
    out, expected = start.copy(), start.copy()
    np.add.at(expected, index, weight)

    counted[bn.cdiv(len(index), 1024)](index, weight, out, B=1024)

    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("view", [np.s_[::3], np.s_[::-1], np.s_[5:60]])
def test_gaps_of_a_view_stay_as_they_are(view):
    memory = GENERATOR.standard_normal(300)
    expected, out = memory.copy(), memory[view]
    index = GENERATOR.integers(0, len(out), 20_000)
    weight = weights_of("float64", len(index))
    np.add.at(expected[view], index, weight)

    counted[bn.cdiv(len(index), 512)](index, weight, out, B=512)

    np.testing.assert_allclose(memory, expected, rtol=1e-13)


def test_zeros_keep_their_sign_unless_something_is_added():
    out = np.full(64, -0.0, np.float32)
    index = np.full(4096, 3)
    counted[4](index, np.zeros(4096, np.float32), out, B=1024)
    np.testing.assert_array_equal(np.signbit(out), np.arange(64) != 3)


def test_indices_beyond_the_extent_are_left_out():
    memory = np.zeros(100)
    index = GENERATOR.integers(-50, 150, 8000)
    counted[8](index, np.ones(8000), memory[:50], B=1024)
    np.testing.assert_array_equal(memory[:50], np.bincount(index[(index >= 0) & (index < 50)],
                                                           minlength=50))
    np.testing.assert_array_equal(memory[50:], 0)


def test_several_additions_in_a_loop_share_a_copy():
    index, weight = GENERATOR.integers(0, 40, 30_000), weights_of("float64", 30_000)
    out = np.zeros((40, 2))
    counted_by_loops[7](index, weight, out, B=256)
    np.testing.assert_array_equal(out[:, 0], np.bincount(index, weight, 40))
    np.testing.assert_array_equal(out[:, 1], np.bincount(index, weight * weight, 40))


def test_the_code_has_a_copy_where_nothing_reads_the_array():
    types = {"index": "int64[::1]", "out": "int64[::1]"}
    read = NativeKernel(numbered, types | {"places": "int64[::1]"}, {"B": 1024})
    added = NativeKernel(counted, types | {"weight": "int64[::1]"}, {"B": 1024})
    assert "bn.copy" in added.lowered.llvm_ir and "bn.copy" not in read.lowered.llvm_ir


def test_a_kernel_that_reads_what_was_there_has_no_copy():
    index = GENERATOR.integers(0, 8, 4096)
    out, places = np.zeros(8, np.int64), np.full(4096, -1)
    numbered[4](index, out, places, B=1024)
    for bin_ in range(8):
        found = np.sort(places[index == bin_])
        np.testing.assert_array_equal(found, np.arange(len(found)))
    np.testing.assert_array_equal(out, np.bincount(index, minlength=8))

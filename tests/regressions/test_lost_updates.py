"""Atomics that once missed a dtype or gave the old value to one thread only."""

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn

SIZE = 16384


@bn.jit
def scatter_add(slots, x, sums, B: bn.constexpr):
    r = bn.block(0, B)
    bn.atomic_add(sums.at[slots[r]], x[r])


@pytest.mark.parametrize("count", [1, 7, 1024])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64", "float32", "float64"])
def test_atomic_add_counts_every_element(device, dtype, count):
    """triton-lang/triton PR#6519, #5894; NVIDIA/numba-cuda#384"""
    generator = np.random.default_rng(count)
    slots = generator.integers(0, count, SIZE).astype(np.int32)
    x = generator.integers(0, 10, SIZE).astype(dtype)
    sums, expected = np.zeros(count, dtype), np.zeros(count, dtype)
    np.add.at(expected, slots, x)
    device.run(scatter_add, SIZE // 1024, slots, x, sums, B=1024)
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_atomic_add_of_16_bit_floats_is_exact_for_small_integers(device, dtype):
    """triton-lang/triton#1387"""
    slots = np.arange(SIZE, dtype=np.int32) % 1024
    x, sums = np.ones(SIZE, dtype), np.zeros(1024, dtype)
    device.run(scatter_add, SIZE // 1024, slots, x, sums, B=1024)
    np.testing.assert_array_equal(sums.astype(np.float32), SIZE // 1024)


@bn.jit
def take_a_slot(counter, rows, WIDTH: bn.constexpr):
    slot = bn.atomic_add(counter.at[0], 1)
    rows[slot, bn.span(0, WIDTH)] = bn.program_id(0) + bn.zeros((WIDTH,), bn.int32)


@bn.jit
def take_a_slot_by_tile(counter, rows, WIDTH: bn.constexpr):
    slot = bn.sum(bn.atomic_add(counter.at[bn.span(0, 1)], 1), axis=0)
    rows[slot, bn.span(0, WIDTH)] = bn.program_id(0) + bn.zeros((WIDTH,), bn.int32)


@pytest.mark.parametrize("kernel", [take_a_slot, take_a_slot_by_tile])
def test_old_value_of_an_atomic_reaches_every_thread(device, kernel):
    """triton-lang/triton#7402, #7125"""
    counter, rows = np.zeros(1, np.int32), np.full((64, 8), -1, np.int32)
    device.run(kernel, 64, counter, rows, WIDTH=8)
    assert counter[0] == 64
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.repeat(np.arange(64), 8).reshape(64, 8))

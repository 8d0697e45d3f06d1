"""Reshapes and broadcasts that once moved elements, and barriers that once were missing."""

import numpy as np
import pytest

import blocknumba as bn


@bn.jit
def reshape_chain(x, out):
    tile = x[bn.span(0, 4), bn.span(0, 8)]
    other = bn.reshape(tile, (8, 4))
    flat = bn.reshape(other, (32,))
    out[0, bn.span(0, 32)] = bn.ravel(bn.reshape(flat, (2, 16)))
    out[1, bn.span(0, 32)] = bn.ravel(tile)
    out[2, bn.span(0, 32)] = bn.reshape(tile.T, (32,))
    out[3, bn.span(0, 32)] = bn.reshape(bn.reshape(bn.sum(tile, axis=0), (8, 1)) + tile.T, (32,))


@pytest.mark.parametrize("order", ["C", "F"])
def test_reshape_keeps_the_order_of_elements(device, order):
    """triton-lang/triton#2210, PR#1212"""
    x = np.asarray(np.arange(32, dtype=np.int32).reshape(4, 8), order=order)
    out = np.zeros((4, 32), np.int32)
    device.run(reshape_chain, 1, x, out)
    expected = [x.ravel(), x.ravel(), x.T.ravel(), (x.sum(axis=0)[:, None] + x.T).ravel()]
    np.testing.assert_array_equal(out, expected)


@bn.jit
def two_broadcasts(first, second):
    source = bn.arange(0, 2)[None, :, None]
    eight = bn.span(0, 8)
    first[eight] = bn.ravel(bn.broadcast_to(source, (1, 2, 4)))
    second[eight] = bn.ravel(bn.broadcast_to(source, (4, 2, 1)))


def test_two_broadcasts_of_one_tile_are_two_values(device):
    """bledden/triton-msl#9"""
    first, second = np.zeros(8, np.int32), np.zeros(8, np.int32)
    device.run(two_broadcasts, 1, first, second)
    np.testing.assert_array_equal(first, [0, 0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(second, [0, 1, 0, 1, 0, 1, 0, 1])


@bn.jit
def branchy(x, out, N: bn.constexpr):
    r, pid = bn.span(0, N), bn.program_id(0)
    tile = x[r, r]
    if pid < 2:
        tile = bn.where(bn.arange(0, N)[None, :] < 3, bn.sum(tile, axis=1)[:, None], tile).T
    out[pid, r, r] = tile


def test_reduction_and_transpose_inside_a_branch_are_synchronised(device):
    """tile-ai/tilelang#2556, #2698"""
    x = np.random.default_rng(0).integers(0, 100, (16, 16)).astype(np.float32)
    changed = np.where(np.arange(16) < 3, x.sum(axis=1, keepdims=True), x).T
    for _ in range(device.runs):
        out = np.zeros((4, 16, 16), np.float32)
        device.run(branchy, 4, x, out, N=16)
        np.testing.assert_array_equal(out, [changed, changed, x, x])


@bn.jit
def outer_sums_of_maxima(x, out, ROUNDS: bn.constexpr, N: bn.constexpr):
    r = bn.span(0, N)
    tile = x[r, r]
    for _ in range(ROUNDS):
        greatest = bn.max(tile, axis=1)
        tile = (greatest[None, :] + greatest[:, None]) * 0.5
    out[r, r] = tile


def test_reduction_and_conversion_in_a_loop_do_not_share_scratch_too_early(device):
    """intel/intel-xpu-backend-for-triton#4481"""
    x = np.random.default_rng(0).integers(0, 64, (16, 16)).astype(np.float16)
    expected = x.copy()
    for _ in range(3):
        greatest = expected.max(axis=1)
        expected = (greatest[None, :] + greatest[:, None]) * np.float16(0.5)
    for _ in range(device.runs):
        out = np.zeros_like(x)
        device.run(outer_sums_of_maxima, 1, x, out, ROUNDS=3, N=16)
        np.testing.assert_array_equal(out, expected)

"""Parts of tiles, and elements at indices, that once kept a kernel from being compiled.

Found by tests/conformance/kernel_fuzzer.py.
"""

import numpy as np
import pytest

import blocknumba as bn


@bn.jit
def one_element(x, out, N: bn.constexpr, AT: bn.constexpr):
    tile = x[bn.span(0, N)]
    out[0] = tile[AT] * bn.max(tile)


@pytest.mark.parametrize("at", [0, 476, 1023])
@pytest.mark.parametrize("num_warps", [1, 8])
def test_one_element_of_a_large_tile(device, num_warps, at):
    x = np.random.default_rng(at).permutation(1024).astype(np.int32)
    out = np.zeros(1, np.int32)
    device.run(one_element, 1, x, out, N=1024, AT=at, num_warps=num_warps)
    assert out[0] == x[at] * 1023


@bn.jit
def row_of_halves(x, out, N: bn.constexpr, AT: bn.constexpr):
    r = bn.span(0, N)
    first, second = bn.split(bn.reshape(bn.sort(x[r]), (N // 2, 2)))
    out[0], out[1] = first[AT], second[AT]


def test_an_element_of_a_half_of_a_large_tile(device):
    x = np.random.default_rng(0).permutation(1024).astype(np.float32)
    out = np.zeros(2, np.float32)
    device.run(row_of_halves, 1, x, out, N=1024, AT=300)
    np.testing.assert_array_equal(out, [600, 601])


@bn.jit
def row_and_column(x, out, M: bn.constexpr, N: bn.constexpr):
    tile = x[bn.span(0, M), bn.span(0, N)]
    out[0, bn.span(0, N)] = tile[M - 3]
    out[1, bn.span(0, M)] = tile[:, 5]


def test_a_row_and_a_column_of_a_large_tile(device):
    x = np.arange(64 * 32, dtype=np.int32).reshape(64, 32)
    out = np.zeros((2, 64), np.int32)
    device.run(row_and_column, 1, x, out, M=64, N=32)
    np.testing.assert_array_equal(out[0, :32], x[61])
    np.testing.assert_array_equal(out[1], x[:, 5])


@bn.jit
def gathered_from_what_waits(x, out, N: bn.constexpr):
    y = x[bn.span(0, N)].to(bn.bfloat16)
    z = bn.where(y > 2, y, bn.sort(y, 0))
    out[bn.span(0, N // 2)] = bn.extract(z, (bn.program_id(0),), (N // 2,))


def test_a_gather_comes_after_what_a_conversion_holds_back(device):
    """A gather through shared memory was emitted before the sort that it reads."""
    x = np.random.default_rng(0).integers(-9, 99, 512).astype(np.float32)
    out = np.zeros(256, np.float32)
    device.run(gathered_from_what_waits, 1, x, out, N=512, num_warps=2)
    np.testing.assert_array_equal(out, np.where(x > 2, x, np.sort(x))[:256])

"""Unsigned indices of half their range and more, which once left the array."""

import numpy as np
import pytest

import blocknumba as bn

HUGE = [2**63, 2**63 + 1, 2**64 - 8, 2**64 - 1]


@bn.jit
def gather(x, index, out, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = x[index[r]]


@bn.jit
def scatter(x, index, N: bn.constexpr):
    x[index[bn.span(0, N)]] = 7


@bn.jit
def count(x, index, N: bn.constexpr):
    bn.atomic_add(x.at[index[bn.span(0, N)]], 1)


INDEX = np.array([3, 0, 8, 2**64 - 1, 2**63, 7, 2**64 - 8, 2**63 - 1], np.uint64)
INSIDE = [3, 0, 7]


def test_reads_at_huge_unsigned_indices_give_0(device):
    x, out = np.arange(1, 9, dtype=np.int32), np.full(8, -1, np.int32)
    device.run(gather, 1, x, INDEX, out, N=8)
    np.testing.assert_array_equal(out, [4, 1, 0, 0, 0, 8, 0, 0])


@pytest.mark.parametrize("kernel, written", [(scatter, 7), (count, 1)])
def test_writes_at_huge_unsigned_indices_are_dropped(device, kernel, written):
    x, expected = np.zeros(8, np.int32), np.zeros(8, np.int32)
    expected[INSIDE] = written
    device.run(kernel, 1, x, INDEX, N=8)
    np.testing.assert_array_equal(x, expected)


@bn.jit
def touch_element(x, n, out):
    out[0] = x[n]
    x[n] = 5
    bn.atomic_add(x.at[n], 1)


@bn.jit
def touch_indexed_element(x, index, out):
    out[0] = x[index[0]]
    x[index[0]] = 5
    bn.atomic_add(x.at[index[0]], 1)


@bn.jit
def touch_span(x, n, out, N: bn.constexpr):
    r = bn.span(n, N)
    out[bn.span(0, N)] = x[r]
    x[r] = 5


@bn.jit
def touch_rows(x, index, out, N: bn.constexpr):
    r, c = bn.span(index[0], N), bn.span(0, 8)
    out[bn.span(0, N), c] = x[r, c]
    x[r, c] = 5


@pytest.mark.parametrize("start", HUGE)
def test_one_element_at_a_huge_unsigned_index_is_outside(device, start):
    for kernel, given in ((touch_element, start), (touch_element, np.uint64(start)),
                          (touch_indexed_element, np.array([start], np.uint64))):
        x, out = np.arange(8, dtype=np.int32), np.full(1, -1, np.int32)
        device.run(kernel, 1, x, given, out)
        np.testing.assert_array_equal(x, np.arange(8))
        assert out[0] == 0


@pytest.mark.parametrize("start", HUGE)
def test_a_span_that_starts_at_a_huge_unsigned_index_is_outside(device, start):
    x, out = np.arange(8, dtype=np.int32), np.full(4, -1, np.int32)
    device.run(touch_span, 1, x, start, out, N=4)
    np.testing.assert_array_equal(x, np.arange(8))
    np.testing.assert_array_equal(out, 0)


@pytest.mark.parametrize("start", HUGE)
def test_rows_that_start_at_a_huge_unsigned_index_are_outside(device, start):
    x, out = np.ones((64, 8), np.float32), np.full((16, 8), -1, np.float32)
    device.run(touch_rows, 1, x, np.array([start], np.uint64), out, N=16)
    np.testing.assert_array_equal(x, 1)
    np.testing.assert_array_equal(out, 0)


@bn.jit
def row_of(x, index, out, N: bn.constexpr):
    c = bn.span(0, N)
    out[c] = x[index[0], c]


@bn.jit
def row_of_view(x, index, out, N: bn.constexpr):
    c = bn.span(0, N)
    out[c] = x[index[0]][c] + x[index[0]:][0, c] + x[:index[0]][0, c]


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64", "int8", "int64"])
@pytest.mark.parametrize("kernel, times", [(row_of, 1), (row_of_view, 2)])
def test_a_row_is_named_by_an_index_of_any_dtype(device, kernel, times, dtype):
    x, out = np.arange(300 * 4, dtype=np.int32).reshape(300, 4), np.full(4, -1, np.int32)
    device.run(kernel, 1, x, np.array([120], dtype), out, N=4)
    np.testing.assert_array_equal(out, x[120] * times + (x[0] if times > 1 else 0))


@bn.jit
def length_of(x, index, out):
    out[0] = x[:index[0]].shape[0]
    out[1] = x[index[0]:].shape[0]


@pytest.mark.parametrize("bound", [0, 5, 8, 9, *HUGE])
def test_an_unsigned_bound_of_a_slice_is_moved_to_the_edge(device, bound):
    x, out = np.zeros(8, np.int32), np.full(2, -1, np.int64)
    device.run(length_of, 1, x, np.array([bound], np.uint64), out)
    np.testing.assert_array_equal(out, [min(bound, 8), 8 - min(bound, 8)])

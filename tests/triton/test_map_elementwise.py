"""map_elementwise: functions of scalars, with branches, over tiles."""

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockError


@triton.jit
def collatz_step(n):
    if n % 2 == 0:
        return n // 2
    elif n == 1:
        return 1
    else:
        return 3 * n + 1


@triton.jit
def stepped(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.map_elementwise(collatz_step, tl.load(x + i)))


def test_each_element_takes_its_own_branch(device):
    x = np.random.default_rng().integers(1, 1000, 128).astype(np.int32)
    out = np.full(128, -1, np.int32)
    device.run(stepped, 1, x, out, N=128)
    np.testing.assert_array_equal(
        out, np.where(x % 2 == 0, x // 2, np.where(x == 1, 1, 3 * x + 1)))


@triton.jit
def quotients(x, y):
    return x // y, x % y


@triton.jit
def divided(x, y, q, r, N: tl.constexpr):
    i = tl.arange(0, N)
    both = tl.map_elementwise(quotients, tl.load(x + i), tl.load(y))
    tl.store(q + i, both[0])
    tl.store(r + i, both[1])


def test_results_are_several_and_operands_are_broadcast():
    x = np.random.default_rng().integers(-99, 99, 64).astype(np.int32)
    q, r = np.full(64, -1, np.int32), np.full(64, -1, np.int32)
    divided[1](x, np.full(1, 7, np.int32), q, r, N=64)
    np.testing.assert_array_equal(q, np.trunc(x / 7))
    np.testing.assert_array_equal(r, np.fmod(x, 7))


@triton.jit
def swapped(a, b, c, d):
    return d, c, b, a


@triton.jit
def reversed_in_fours(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.map_elementwise(swapped, tl.load(x + i), pack=4))


def test_packs_are_neighbours(device):
    x = np.random.default_rng().standard_normal(64).astype(np.float32)
    out = np.full(64, np.nan, np.float32)
    device.run(reversed_in_fours, 1, x, out, N=64)
    np.testing.assert_array_equal(out, x.reshape(16, 4)[:, ::-1].ravel())


@triton.jit
def counting(n):
    total = 0
    for i in range(n):
        total += i
    return total


@triton.jit
def looping(x, N: tl.constexpr):
    tl.map_elementwise(counting, tl.load(x + tl.arange(0, N)))


def test_loops_of_run_time_are_refused():
    with pytest.raises(BlockError, match="a function of map_elementwise: given for, accepted "
                                         "arithmetic on scalars"):
        looping[1](np.zeros(8, np.int32), N=8)


@triton.jit
def unpacked(x, N: tl.constexpr):
    tl.map_elementwise(collatz_step_of_two, tl.load(x + tl.arange(0, N)), pack=2)


@triton.jit
def collatz_step_of_two(m, n):
    return m + n


def test_results_are_a_multiple_of_pack():
    with pytest.raises(BlockError, match="returns 1 values, accepted a multiple of pack, 2"):
        unpacked[1](np.zeros(8, np.int32), N=8)

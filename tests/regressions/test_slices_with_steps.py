"""A slice with a step was refused, though the page says that `x[::2]` is a view as in NumPy."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import UnsupportedError

RNG = np.random.default_rng()


@bn.jit
def doubled(x, n, out):
    every = x[n::3, ::-2]
    rows, columns = bn.span(0, 8), bn.span(0, 16)
    out[::2, 1::2][rows, columns] = 2 * every[rows, columns]
    out[-1, -1] = every.shape[0] * 100 + every.shape[1]


def expected(x, n, out):
    every, tile = x[n::3, ::-2], np.zeros((8, 16), x.dtype)
    tile[:len(every), :every.shape[1]] = 2 * every  # zeros outside
    out[::2, 1::2][:, :16] = tile
    out[-1, -1] = every.shape[0] * 100 + every.shape[1]
    return out


@pytest.mark.parametrize("n", [0, 1, 8, 20])
@pytest.mark.parametrize("shape", [(20, 30), (9, 17), (1, 1)])
def test_a_slice_with_a_step_is_numpys_view(shape, n, device):
    x = RNG.integers(-99, 99, shape).astype(np.int32)
    out = RNG.integers(-99, 99, (16, 40)).astype(np.int32)
    wanted = expected(x, n, out.copy())

    device.run(doubled, 1, x, n, out)

    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("order", ["C", "F"])
def test_native_code_reads_every_other_element(order):
    x = np.asarray(RNG.random((20, 30)), order=order)
    out, wanted = np.zeros((16, 40)), np.zeros((16, 40))

    doubled[1](x, 1, out, device="cpu")

    np.testing.assert_array_equal(out, expected(x, 1, wanted))


def test_a_view_with_a_step_is_carried_by_a_loop(device):
    @bn.jit
    def sums(x, out):
        for i in range(3):
            x = x[1::2]
            out[i] = bn.sum(x[bn.span(0, 32)])

    x, out = RNG.integers(0, 99, 50), np.zeros(3, np.int64)

    device.run(sums, 1, x, out)

    assert out.tolist() == [x[1::2].sum(), x[1::2][1::2].sum(), x[1::2][1::2][1::2].sum()]


@pytest.mark.parametrize("step", [0, 1.5])
def test_a_step_that_is_none_is_an_error(step):
    @bn.jit
    def wrong(x):
        x[0] = x[::step][0]

    with pytest.raises(UnsupportedError, match="accepted ints other than 0 that are known"):
        wrong[1](np.zeros(4))

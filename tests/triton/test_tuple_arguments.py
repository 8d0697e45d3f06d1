"""Tuples and named tuples as arguments of kernels in Triton's dialect."""

from typing import NamedTuple

import numpy as np

import blocknumba.triton as triton
import blocknumba.triton.language as tl

N = 64


class Pointers(NamedTuple):
    x: object
    y: object
    scale: tl.constexpr = 2


@triton.jit
def of_fields(p, out, n, N: tl.constexpr):
    r = tl.arange(0, N)
    x = tl.load(p.x + r, mask=r < n, other=0.0)
    y = tl.load(p[1] + r, mask=r < n, other=0.0)
    tl.store(out + r, x * p.scale + y, mask=r < n)


@triton.jit
def of_a_tuple(arrays, numbers, out, N: tl.constexpr):
    r = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for i in tl.static_range(len(arrays)):
        total += tl.load(arrays[i] + r)
    a, b = numbers
    tl.store(out + r, total + a // b)


def test_fields_of_pointers(device):
    x, y = np.random.default_rng().standard_normal((2, N)).astype(np.float32)
    for scale in ((), (3,)):
        out = np.full(N, 77, np.float32)

        device.run(of_fields, (1,), Pointers(x, y, *scale), out, 50, N=N)

        expected = x * (scale or (2,))[0] + y
        np.testing.assert_allclose(out[:50], expected[:50], 1e-5, 1e-5)
        assert (out[50:] == 77).all()


def test_tuples_of_pointers_and_numbers_divide_as_triton_does(device):
    arrays = tuple(np.random.default_rng().standard_normal((3, N)).astype(np.float32))
    out = np.full(N, 77, np.float32)

    device.run(of_a_tuple, (1,), arrays, (-7, 2), out, N=N)

    np.testing.assert_allclose(out, sum(arrays) - 3, 1e-5, 1e-5)

"""A call with more than 15 keywords, which Python collects in a dict, was taken for a comprehension."""

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import UnsupportedError


@bn.jit
def weighted(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, SCALE: bn.constexpr):  # noqa: E741
    values = (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
    total = 0
    for number, value in enumerate(values):
        total += number * value
    return total * SCALE


@bn.jit
def blocks(x, out):
    i = bn.arange(0, 16)
    t = x[i]
    out[i] = weighted(t, b=t + 1, c=2, d=t, e=4, f=5, g=6, h=7, i=8, j=9, k=10, l=11, m=12, n=13,
                      o=t * 3, p=15, q=16, SCALE=2)


@triton.jit
def weighted_tile(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q,  # noqa: E741
                  SCALE: tl.constexpr):
    return (b + 2 * c + 3 * d + 4 * e + 5 * f + 6 * g + 7 * h + 8 * i + 9 * j + 10 * k + 11 * l
            + 12 * m + 13 * n + 14 * o + 15 * p + 16 * q) * SCALE


@triton.jit
def pointers(x, out):
    at = tl.arange(0, 16)
    t = tl.load(x + at)
    tl.store(out + at, weighted_tile(
        a=t, b=t + 1, c=2, d=t, e=4, f=5, g=6, h=7, i=8, j=9, k=10, l=11, m=12, n=13, o=t * 3,
        p=15, q=16, SCALE=2))


@pytest.mark.parametrize("kernel", (blocks, pointers))
def test_a_call_with_many_keywords_gives_each_to_its_parameter(kernel):
    x = np.random.default_rng().integers(-99, 99, 16).astype(np.int32)
    out = np.full(16, -1, np.int32)
    kernel[(1,)](x, out)
    given = [x, x + 1, 2, x, *range(4, 14), x * 3, 15, 16]
    np.testing.assert_array_equal(out, 2 * sum(i * value for i, value in enumerate(given)))


@bn.jit
def comprehension(out):
    made = {i: i for i in range(3)}
    out[0] = made[1]


def test_a_dict_comprehension_is_still_refused():
    with pytest.raises(UnsupportedError, match="a dict comprehension"):
        comprehension[(1,)](np.zeros(1, np.int32))

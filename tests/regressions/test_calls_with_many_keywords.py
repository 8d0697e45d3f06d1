"""Calls whose arguments Python collects: more than 15 keywords were taken for a comprehension,
more than 30 positional arguments next to a keyword were refused.
"""

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
def most(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z,  # noqa: E741
         aa, ab, ac, ad, ae, af, SCALE: bn.constexpr, ag=5):
    values = (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
              ac, ad, ae, af, ag)
    total = 0
    for number, value in enumerate(values):
        total += number * value
    return total * SCALE


@bn.jit
def with_one_keyword(x, out):
    i = bn.arange(0, 16)
    t = x[i]
    y = most(t, t + 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, t * 3, 14, 15, 16, 17, 18, 19, 20, 21,
             22, 23, 24, 25, 26, 27, 28, 29, 30, t - 1, SCALE=2)
    out[i] = y


@bn.jit
def with_two_keywords(x, out):
    i = bn.arange(0, 16)
    t = x[i]
    out[i] = most(t, t + 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, t * 3, 14, 15, 16, 17, 18, 19, 20,
                  21, 22, 23, 24, 25, 26, 27, 28, 29, 30, t - 1, SCALE=2, ag=5 if True else t)


@pytest.mark.parametrize("kernel", (with_one_keyword, with_two_keywords))
def test_a_call_with_many_arguments_and_keywords_gives_each_to_its_parameter(kernel):
    x = np.random.default_rng().integers(-99, 99, 16).astype(np.int32)
    out = np.full(16, -1, np.int32)
    kernel[(1,)](x, out)
    given = [x, x + 1, *range(2, 13), x * 3, *range(14, 31), x - 1, 5]
    np.testing.assert_array_equal(out, 2 * sum(i * value for i, value in enumerate(given)))


@bn.jit
def sum_of_parts(a, b, c=0, d=0):
    return a + 2 * b + 3 * c + 4 * d


@bn.jit
def with_a_tuple_and_a_chosen_keyword(x, out, n):
    out[0] = sum_of_parts(*(x[0], n), d=(n if x[1] > 1 else 7))


@pytest.mark.parametrize("second, chosen", [(2, 9), (1, 7)])
def test_a_condition_may_choose_a_keyword_next_to_a_tuple(second, chosen):
    out = np.full(1, -1, np.int64)
    with_a_tuple_and_a_chosen_keyword[1](np.array([5, second]), out, 9)
    assert out[0] == 5 + 2 * 9 + 4 * chosen


@bn.jit
def with_many_keywords_of_which_two_are_chosen(x, out, n):
    t = x[0]
    out[0] = weighted(a=t, b=(n if x[1] > 1 else t), c=2, d=t, e=4, f=5, g=6, h=7, i=8, j=9, k=10,
                      l=11, m=12, n=13, o=t * 3, p=15, q=(None if n is None else 7 if t > n else n),
                      SCALE=2)


@pytest.mark.parametrize("first, second", [(5, 2), (50, 1)])
def test_conditions_may_choose_among_many_keywords(first, second):
    out = np.full(1, -1, np.int64)
    with_many_keywords_of_which_two_are_chosen[1](np.array([first, second]), out, 9)
    given = [first, 9 if second > 1 else first, 2, first, *range(4, 14), first * 3, 15,
             7 if first > 9 else 9]
    assert out[0] == 2 * sum(i * value for i, value in enumerate(given))


@bn.jit
def comprehension(out):
    made = {i: i for i in range(3)}
    out[0] = made[1]


def test_a_dict_comprehension_is_still_refused():
    with pytest.raises(UnsupportedError, match="a dict comprehension"):
        comprehension[(1,)](np.zeros(1, np.int32))

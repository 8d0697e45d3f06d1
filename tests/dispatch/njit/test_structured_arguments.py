"""Tuples, named tuples and optional values as arguments of launches in `@njit`."""

import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import blocknumba as bn

N = 100
FRESH = np.random.default_rng()


class Pair(NamedTuple):
    left: object
    right: object


class Weights(NamedTuple):
    factor: bn.float32
    places: bn.int32


class Digits(NamedTuple):
    factor: bn.float32
    places: bn.constexpr


@bn.jit
def total(pair, out, B: bn.constexpr):
    i = bn.block(0, B)
    out[i] = pair[0][i] + pair[1][i]


@bn.jit
def mixed(arrays, weights, shift, out, B: bn.constexpr):
    i = bn.block(0, B)
    (x, y), z = arrays
    out[i] = (x[i] + y.left[i] * y.right) * weights.factor + weights.places + z + shift[0]


@njit
def totals(pair, out):
    total[2](pair, out, B=64)


@njit
def sums(first, second, out):
    total[2]((first, second), out, B=64)


def arrays(*dtypes):
    return [FRESH.standard_normal(N).astype(dtype) for dtype in dtypes]


@pytest.mark.parametrize("make", [lambda x, y: (x, y), Pair])
@pytest.mark.parametrize("dtypes", [(np.float64, np.float64), (np.float32, np.float64)])
def test_tuples_and_named_tuples_are_given_as_they_are(make, dtypes):
    (x, y), out = arrays(*dtypes), np.full(N, np.nan)

    totals(make(x, y), out)

    np.testing.assert_array_equal(out, x + y)


def test_a_tuple_may_be_made_in_the_call():
    (x, y), out = arrays(np.float64, np.float64), np.full(N, np.nan)

    sums(x, y, out)

    np.testing.assert_array_equal(out, x + y)


def test_tuples_in_tuples_numbers_declared_fields_and_defaults():
    @bn.jit
    def scaled(x, out, factors=(2, 0.5), B: bn.constexpr = 64):
        i = bn.block(0, B)
        out[i] = x[i] * factors[0] + factors[1]

    @njit
    def run(x, y, out, again):
        mixed[2](((x, Pair(y, 3)), 1.5), Weights(2.0, 7), (4,), out, B=64)
        scaled[2](x, again)
    (x, y), out, again = arrays(np.float64, np.float64), np.full(N, np.nan), np.full(N, np.nan)

    run(x, y, out, again)

    np.testing.assert_array_equal(out, (x + y * 3) * 2 + 7 + 1.5 + 4)
    np.testing.assert_array_equal(again, x * 2 + 0.5)


def test_a_constant_field_is_a_mistake_as_numba_knows_none_of_them():
    @njit
    def run(x, out):
        mixed[2](((x, Pair(x, 3)), 1.5), Digits(2.0, 7), (4,), out, B=64)
    (x,) = arrays(np.float64)

    with pytest.raises(TypingError, match=(
            "mixed: given a value of type int64 for the constant weights.places, accepted one that "
            "is known when Numba compiles\n  hint: make it a parameter of its own")):
        run(x, np.zeros(N))


def test_an_optional_value_is_given_where_there_is_one():
    @bn.jit
    def add(x, shift, B: bn.constexpr):
        x[bn.span(0, B)] += shift

    @njit
    def run(x, n):
        shift = None
        if n > 2:
            shift = float(n)
        if shift is not None or n == 0:
            add[1](x, shift, B=128)
    x = np.zeros(N)

    run(x, 1)
    run(x, 3)

    np.testing.assert_array_equal(x, 3)
    with pytest.raises(TypeError, match="expected float64, got None"):
        run(x, 0)


MODULE = """
from typing import NamedTuple
import numpy as np
from numba import njit
import blocknumba as bn

class Pair(NamedTuple):
    left: object
    right: object

@bn.jit
def total(pair, out, B: bn.constexpr):
    i = bn.block(0, B)
    out[i] = pair.left[i] + FACTOR * pair.right[i]

FACTOR = 2

@njit(cache=True)
def run(x, y, out):
    total[2](Pair(x, y), out, B=64)
"""
RUN = """
import numpy as np
import module
x, y, out = np.arange(100.0), np.ones(100), np.full(100, np.nan)
module.run(x, y, out)
print({*(out - x).tolist()}, *(sum(counter.values()) for counter in (
    module.run.stats.cache_hits, module.run.stats.cache_misses)))
"""


def test_their_callers_are_in_numbas_cache(tmp_path):
    said = []
    for text in (MODULE, MODULE, MODULE.replace("FACTOR = 2", "FACTOR = 3")):
        (tmp_path / "module.py").write_text(text)
        said.append(subprocess.run([sys.executable, "-W", "error", "-c", RUN], cwd=tmp_path,
                                   capture_output=True, text=True, check=True).stdout.strip())

    assert said == ["{2.0} 0 1", "{2.0} 1 0", "{3.0} 0 1"]

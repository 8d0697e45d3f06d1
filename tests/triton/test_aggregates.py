"""Aggregates: values with fields and methods."""

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockError


@triton.aggregate
class Moments:
    total: tl.tensor
    squares: tl.tensor
    N: tl.constexpr

    @triton.jit
    def with_tile(self, x):
        return Moments(self.total + x, squares=self.squares + x * x, N=self.N)

    @triton.jit
    def variance(self, count):
        return self.second(count) - (self.total / count) * (self.total / count)

    @triton.jit
    def second(self, count):
        return self.squares / count

    @triton.constexpr_function
    def doubled(self):
        return 2 * self.N


@triton.jit
def variances(x, out, rows, N: tl.constexpr):
    i = tl.arange(0, N)
    moments = Moments(tl.zeros((N,), tl.float32), tl.zeros((N,), tl.float32), N)
    for row in range(rows):
        moments = moments.with_tile(tl.load(x + row * N + i))
    tl.store(out + i, moments.variance(rows))
    both = tl.arange(0, moments.doubled())
    tl.store(out + N + both, both.to(tl.float32))


def test_a_loop_carries_an_aggregate(device):
    x = np.random.default_rng().standard_normal((9, 32)).astype(np.float32)
    out = np.full(96, np.nan, np.float32)
    device.run(variances, 1, x, out, 9, N=32)
    np.testing.assert_allclose(out[:32], x.astype(np.float64).var(axis=0), rtol=1e-4)
    np.testing.assert_array_equal(out[32:], np.arange(64))


@triton.aggregate
class Window:
    first: tl.tensor
    SIZE: tl.constexpr

    @triton.constexpr_function
    def __init__(self, first, half=2):
        self.first = first
        self.SIZE = tl.constexpr(2 * half)

    @triton.jit
    def load(self, x):
        return tl.load(x + self.first + tl.arange(0, self.SIZE))


@triton.jit
def windowed(x, out, first, later):
    window = Window(first)
    if later:
        window = Window(first + 4)
    tl.store(out + tl.arange(0, 4), window.load(x))


@pytest.mark.parametrize("later", [0, 1])
def test_an_initializer_makes_the_fields(later):
    x, out = np.arange(32, dtype=np.float32), np.full(4, np.nan, np.float32)
    windowed[1](x, out, 3, later)
    np.testing.assert_array_equal(out, x[3 + 4 * later:][:4])


@triton.jit
def helper(x):
    return x + 1


@triton.must_use_result("it is a new tile")
@triton.jit
def must_be_used(x):
    return x + 1


@triton.aggregate
class Held:
    x: tl.tensor

    @triton.must_use_result
    @triton.jit
    def grown(self):
        return helper(self.x)

    @triton.must_use_result
    @triton.constexpr_function
    def rank(self):
        return 1


@triton.jit
def using(out, HOW: tl.constexpr):
    held = Held(tl.arange(0, 8))
    if HOW == "function":
        must_be_used(held.x)
    elif HOW == "method":
        held.grown()
    elif HOW == "constant":
        held.rank()
    else:
        tl.store(out + held.rank() + tl.arange(0, 8), must_be_used(held.grown()))


@pytest.mark.parametrize("how, name", [("function", "must_be_used"), ("method", "grown"),
                                       ("constant", "rank")])
def test_results_that_must_be_used(how, name):
    with pytest.raises(triton.CompilationError, match=f"{name}: its result is not used"):
        using[1](np.zeros(9, np.int32), HOW=how)


def test_results_that_are_used():
    out = np.full(9, -1, np.int32)
    using[1](out, HOW="all")
    np.testing.assert_array_equal(out, [-1, *range(2, 10)])


@triton.jit
def changed():
    held = Held(tl.arange(0, 8))
    held.x = 3


def test_aggregates_never_change():
    with pytest.raises(BlockError):
        changed[1]()


def test_what_is_no_class_with_fields():
    with pytest.raises(BlockError, match="accepted a class with annotated fields"):
        triton.aggregate(type("Empty", (), {}))
    with pytest.raises(BlockError, match="accepted a class"):
        triton.aggregate(3)

"""Grids that are functions, and kernels under bn.autotune, in functions that Numba compiles."""

import sys

import numpy as np
import pytest
from numba import njit, prange
from numba.core.errors import TypingError

import blocknumba as bn


@bn.jit
def scale(x, out, factor, n, BLOCK: bn.constexpr, MORE: bn.constexpr = 1):
    i = bn.program_id(0) * BLOCK + bn.arange(BLOCK)
    bn.store(out.at[i], bn.load(x.at[i], i < n) * factor + MORE, i < n)


@njit
def blocks(meta):
    return (bn.cdiv(meta["n"], meta["BLOCK"]),)


@njit
def with_global(x, out):
    scale[blocks](x, out, 3.0, x.size, BLOCK=64)


@njit
def with_lambda(x, out):
    scale[lambda meta: bn.cdiv(meta["x"].shape[0], meta["BLOCK"])](x, out, 3.0, x.size, 64)


@njit
def with_stream(x, out):
    scale[blocks](x, out, 3.0, x.size, BLOCK=64, stream=0)


@njit
def with_default(x, out):
    scale[lambda meta: meta["MORE"] * 5](x, out, 3.0, x.size, BLOCK=64)


@njit
def with_argument(x, out, block):
    scale[blocks](x, out, 3.0, x.size, BLOCK=block)


@njit(parallel=True)
def in_prange(x, out):
    for row in prange(1):
        scale[blocks](x, out, 3.0, x.size, BLOCK=64)


@pytest.mark.parametrize("run, more", [
    (with_global, ()), (with_lambda, ()), (with_stream, ()), (with_default, ()),
    (with_argument, (32,)), (with_argument, (128,)), (in_prange, ())])
def test_a_grid_is_computed_from_arguments_and_constants(run, more):
    x, out = np.arange(300.0), np.full(300, np.nan)

    for _ in range(2):
        run(x, out, *more)

    assert np.array_equal(out, 3 * x + 1)


def test_arrays_that_a_grid_reads_live_as_long_as_before():
    x, out = np.arange(300.0), np.full(300, np.nan)
    with_lambda(x, out)
    before = sys.getrefcount(x)

    for _ in range(5):
        with_lambda(x, out)

    assert sys.getrefcount(x) == before


def test_a_name_that_the_kernel_does_not_have():
    @njit
    def run(x, out):
        scale[lambda meta: meta["BLOK"]](x, out, 3.0, x.size, BLOCK=64)

    with pytest.raises(TypingError) as caught:
        run(np.ones(3), np.ones(3))

    assert ("scale: the grid reads 'BLOK', accepted BLOCK, MORE, x, out, factor, n\n"
            "  hint: did you mean BLOCK?") in str(caught.value)


def test_a_function_that_returns_no_grid():
    @njit
    def run(x, out):
        scale[lambda meta: 1.5](x, out, 3.0, x.size, BLOCK=64)

    with pytest.raises(TypingError, match="scale: given float64 as the grid, accepted an int"):
        run(np.ones(3), np.ones(3))


def tuned_kernel():
    """A kernel of two configurations, which nobody has launched."""
    return bn.autotune([bn.Config({"BLOCK": 32}), bn.Config({"BLOCK": 64}, num_warps=2)],
                       key=["n"], cache_results=False)(bn.jit(scale.python_function))


def test_a_kernel_is_launched_as_it_was_tuned_from_python():
    tuned = tuned_kernel()

    @njit
    def run(x, out):
        tuned[blocks](x, out, 3.0, x.size)

    x, out = np.arange(300.0), np.full(300, np.nan)
    tuned[lambda meta: (bn.cdiv(300, meta["BLOCK"]),)](x, out, 3.0, 300, device="cpu")
    out[:] = np.nan
    run(x, out)

    assert np.array_equal(out, 3 * x + 1)


def test_one_configuration_needs_no_launch():
    tuned = bn.autotune([bn.Config({"BLOCK": 32})], key=["n"])(bn.jit(scale.python_function))

    @njit
    def run(x, out):
        tuned[blocks](x, out, 3.0, x.size)

    x, out = np.arange(300.0), np.full(300, np.nan)
    run(x, out)

    assert np.array_equal(out, 3 * x + 1)


def test_a_kernel_that_was_never_tuned():
    tuned = tuned_kernel()

    @njit
    def run(x, out):
        tuned[blocks](x, out, 3.0, x.size)

    with pytest.raises(TypingError) as caught:
        run(np.ones(3), np.ones(3))

    assert ("scale: given a kernel under bn.autotune or bn.heuristics whose choice is not known, "
            "accepted one that is in a function that Numba compiles\n"
            "  hint: under bn.autotune, launch it from Python before; constants that depend on "
            "arguments, compute before") in str(caught.value)


def test_a_constant_that_was_chosen_is_not_given():
    tuned = bn.autotune([bn.Config({"BLOCK": 32})], key=["n"])(bn.jit(scale.python_function))

    @njit
    def run(x, out):
        tuned[blocks](x, out, 3.0, x.size, BLOCK=64)

    with pytest.raises(TypingError, match="scale: given BLOCK, which bn.autotune chooses"):
        run(np.ones(3), np.ones(3))

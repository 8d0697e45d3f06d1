"""Launches from functions that Numba compiles run native code of the CPU device."""

import math

import numpy as np
import pytest
from numba import njit, prange

import blocknumba as bn
from blocknumba.cpu_lower.pool import pool
from blocknumba.dispatch.launch.native import thread_count
from blocknumba.dispatch.njit.site import Site
from blocknumba.errors import BlockValueError

RANDOM = np.random.default_rng(3)


@bn.jit
def softmax(x, out, B: bn.constexpr):
    row, c = bn.program_id(0), bn.span(0, B)
    values = bn.load(x.at[row, c], other=-math.inf).to(bn.float32)
    powers = bn.exp(values - bn.max(values))
    out[row, c] = powers / bn.sum(powers)


@bn.jit
def product(x, y, out, M: bn.constexpr, N: bn.constexpr, K: bn.constexpr):
    r, c = bn.block(0, M), bn.block(1, N)
    total = bn.zeros((M, N), bn.float32)
    for k in bn.spans(x.shape[1], K):
        total = bn.dot(x[r, k], y[k, c], total)
    out[r, c] = total


@bn.jit
def count(x, counts, B: bn.constexpr):
    r = bn.block(0, B)
    bn.atomic_add(counts.at[x[r].to(bn.int32)], 1, mask=r.index < x.shape[0])


@njit
def run_softmax(x, out):
    softmax[x.shape[0]](x, out, B=128)


@njit
def run_product(x, y, out):
    product[bn.cdiv(x.shape[0], 32), bn.cdiv(y.shape[1], 32)](x, y, out, 32, 32, 16)


@njit
def run_count(x, counts):
    count[bn.cdiv(x.shape[0], 64)](x, counts, 64)


@pytest.fixture(autouse=True)
def native(monkeypatch):
    """The interpreter is an error: all programs must run natively."""
    def run(self, *_, **__):
        raise AssertionError("ran in the interpreter")
    monkeypatch.setattr("blocknumba.tile_ir.interpreter.Interpreter.run", run)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(5, 128), (7, 100), (1, 1), (3, 127)])
def test_rows_in_registers(shape):
    x = normal(*shape)
    out = np.full_like(x, np.nan)

    run_softmax(x, out)

    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("m, n, k", [(64, 96, 32), (33, 70, 19), (1, 5, 100)])
def test_products_of_arrays_of_any_strides(m, n, k):
    for x, y in ((normal(m, k), normal(k, n)), (normal(k, m).T, normal(n, k).T),
                 (normal(2 * m, k)[::2], normal(k, n)[::-1])):
        out = np.full((m, n), np.nan, np.float32)

        run_product(x, y, out)

        np.testing.assert_allclose(out, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-4)


def test_atomics():
    x = RANDOM.integers(0, 200, 5021).astype(np.uint8)
    counts = np.zeros(256, np.int64)

    run_count(x, counts)

    np.testing.assert_array_equal(counts, np.bincount(x, minlength=256))


def test_atomics_of_programs_in_prange():
    @njit(parallel=True)
    def run(x, counts):
        for row in prange(x.shape[0]):
            count[bn.cdiv(x.shape[1], 64)](x[row], counts, 64)

    x = RANDOM.integers(0, 200, (50, 1021)).astype(np.uint8)
    counts = np.zeros(256, np.int32)

    run(x, counts)

    np.testing.assert_array_equal(counts, np.bincount(x.ravel(), minlength=256))


def test_arrays_that_share_memory_are_read_and_stored_in_order():
    @bn.jit
    def shifted(x, out, B: bn.constexpr):
        r = bn.span(0, B)
        first, second = x[r], x[r] * 2
        out[r] = first
        out[r] = x[r] + second

    @njit
    def run(x, out):
        shifted[1](x, out, B=64)

    for start in (64, 1, 0):  # apart, then over each other, with one function
        memory = normal(128)
        x, out = memory[:64].copy(), memory[start:start + 64]
        expected = memory.copy()
        expected[start:start + 64] = x
        run(memory[:64], out)
        expected[start:start + 64] = expected[:64] + 2 * x
        np.testing.assert_array_equal(memory, expected)


def test_a_version_is_found_without_python(monkeypatch):
    x = normal(1, 100)  # one program: nothing to share
    out = np.full_like(x, np.nan)
    run_softmax(x, out)
    out[:] = np.nan
    monkeypatch.setattr(Site, "launch", None)

    run_softmax(x, out)

    assert not np.isnan(out).any()


@pytest.fixture
def shared():
    """A function that counts the launches that several threads ran since the test began."""
    if thread_count() == 1:
        pytest.skip("one processor")
    threads = pool(thread_count())
    before = threads.shared
    return lambda: threads.shared - before


def test_launches_that_take_long_are_shared_among_threads(shared):
    x, y = normal(512, 512), normal(512, 512)
    for _ in range(20):  # where others keep the processors busy, one thread may be done alone
        out = np.full((512, 512), np.nan, np.float32)
        run_product(x, y, out)

        np.testing.assert_allclose(out, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-3)

    assert shared() >= 2


def test_launches_that_take_little_are_not_shared(shared):
    @njit
    def run(x, out, times):
        for _ in range(times):
            softmax[x.shape[0]](x, out, B=128)

    x = normal(2, 100)
    run(x, np.empty_like(x), 100)

    assert shared() <= 2  # where the first were interrupted


def test_launches_in_prange_run_on_the_threads_of_the_loop(shared):
    @njit(parallel=True)
    def run(x, y, out):
        for number in prange(4):
            product[8, 8](x[number], y, out[number], 32, 32, 16)

    x, y = normal(4, 256, 256), normal(256, 256)
    out = np.full_like(x, np.nan)
    run(x, y, out)

    np.testing.assert_allclose(out, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-3)
    assert shared() == 0


def test_functions_that_prange_calls_launch_on_their_threads(shared):
    @njit
    def inner(x, y, out):
        product[8, 8](x, y, out, 32, 32, 16)

    @njit(parallel=True)
    def run(x, y, out):
        for number in prange(16):
            inner(x[number], y, out[number])

    x, y = normal(16, 256, 256), normal(256, 256)
    out = np.full_like(x, np.nan)
    run(x, y, out)

    np.testing.assert_allclose(out, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-3)
    assert shared() < 16  # those of the thread that called, if it takes part


def test_prints_come_in_the_order_of_programs(capsys):
    @bn.jit
    def told(x):
        bn.device_print("x", x[bn.program_id(0)])

    @njit
    def run(x):
        told[x.shape[0]](x)

    for _ in range(2):
        run(np.arange(3))
        told[3](np.arange(3))

    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == printed[3:6] == printed[6:9] == printed[9:]
    assert len({*printed}) == 3


def test_interpret_and_debug_are_the_interpreters():
    @njit
    def run(x, out):
        softmax[1](x, out, B=128, interpret=True)

    @njit
    def checked(x, out):
        softmax[1](x, out, B=128, debug=True)

    for launch in (run, checked):
        with pytest.raises(AssertionError, match="ran in the interpreter"):
            launch(normal(1, 100), normal(1, 100))


@bn.jit
def strided_sums(x, step, out):
    total = 0.0
    for i in range(0, x.shape[0], step):
        total += x[i]
    out[bn.program_id(0)] = total


@pytest.mark.parametrize("programs", [1, 64])
def test_a_program_that_stops_in_native_code_is_the_error_that_it_is_from_python(programs):
    @njit
    def run(x, step, out):
        strided_sums[out.shape[0]](x, step, out)

    x, out = np.arange(9, dtype=np.float32), np.full(programs, np.nan, np.float32)
    run(x, 2, out)
    assert (out == 20).all()

    for _ in range(2):
        with pytest.raises(BlockValueError, match="range: step must not be 0"):
            run(x, 0, out)
    run(x, 4, out)

    assert (out == 12).all()

"""The CPU device next to plain NumPy: pytest perf/bench_interpreter.py (no GPU)."""

import numpy as np
import pytest
from example_kernels import softmax, vector_add
from measure import CLOCK, host_timer, interleaved

ROWS, COLUMNS = 4096, 1024
ROUNDS = 7


def plain_softmax(x: np.ndarray, y: np.ndarray) -> None:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    np.divide(powers, powers.sum(axis=1, keepdims=True), out=y)


@pytest.mark.benchmark(timer=CLOCK)
def test_softmax_on_the_cpu(benchmark):
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), np.float32)
    ours, theirs = np.empty_like(x), np.empty_like(x)
    runs = {"interpreter": lambda: softmax.softmax[ROWS](x, ours, BLOCK=COLUMNS, interpret=True),
            "NumPy": lambda: plain_softmax(x, theirs)}
    samples = interleaved(runs, host_timer, ROUNDS, repeats=1)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    CLOCK.replay(benchmark, samples, "interpreter")


@pytest.mark.benchmark(timer=CLOCK)
def test_a_small_launch_on_the_cpu(benchmark):
    x, y = np.random.default_rng(0).standard_normal((2, 1000), np.float32)
    ours, theirs = np.empty_like(x), np.empty_like(x)
    runs = {"interpreter": lambda: vector_add.add[1](x, y, ours, BLOCK=1024, interpret=True),
            "NumPy": lambda: np.add(x, y, out=theirs)}
    samples = interleaved(runs, host_timer, ROUNDS, repeats=200)
    np.testing.assert_array_equal(ours, theirs)
    CLOCK.replay(benchmark, samples, "interpreter")

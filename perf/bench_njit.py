"""Launches from `@njit`: what one costs, and a simulation next to plain Numba.

    pytest perf/bench_njit.py        with pytest-benchmark
    python perf/bench_njit.py        a table

Without a GPU it measures the CPU device, and with one the GPU too.  With the stub driver
(see launch_cost.py) the GPU's lines are our own host time.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from example_kernels import heat
from measure import CLOCK, Run, host_timer, interleaved, median_ratio, medians
from numba import njit, prange

import blocknumba as bn
from blocknumba.dispatch.launch.driver import find_driver

ROUNDS, LAUNCHES, STEPS, RATE = 15, 1000, 1000, 0.2
SUBJECT = "@njit"
SIDES = (64, 256, 1024)  # of the simulation's grids


@bn.jit
def add(x, y, out, BLOCK: bn.constexpr):
    """out = x + y"""
    r = bn.block(0, BLOCK)
    out[r] = x[r] + y[r]


@njit
def launch_many(x, y, out, times):
    """Launch one program again and again."""
    for _ in range(times):
        add[1](x, y, out, BLOCK=256)


@njit(parallel=True)
def plain_step(now, then, rate):
    """then = one step of heat.step, by loops of Numba's, on all its threads."""
    height, width = now.shape
    for i in prange(height):
        for j in range(width):
            around = now.dtype.type(0)
            if i > 0:
                around += now[i - 1, j]
            if i < height - 1:
                around += now[i + 1, j]
            if j > 0:
                around += now[i, j - 1]
            if j < width - 1:
                around += now[i, j + 1]
            then[i, j] = now[i, j] + rate * (around - 4 * now[i, j])


plain_step_of_one_thread = njit(plain_step.py_func)


@njit
def plain_simulation(now, then, rate, steps):
    """heat.simulate by plain_step."""
    for _ in range(steps // 2):
        plain_step(now, then, rate)
        plain_step(then, now, rate)


@njit
def plain_simulation_of_one_thread(now, then, rate, steps):
    """heat.simulate by plain_step_of_one_thread."""
    for _ in range(steps // 2):
        plain_step_of_one_thread(now, then, rate)
        plain_step_of_one_thread(then, now, rate)


def simulation_of_python(now, then, rate, steps):
    """heat.simulate by launches from Python."""
    grid = bn.cdiv(now.shape[0], heat.ROWS), bn.cdiv(now.shape[1], heat.COLUMNS)
    for _ in range(steps // 2):
        heat.step[grid](now, then, rate, heat.ROWS, heat.COLUMNS)
        heat.step[grid](then, now, rate, heat.ROWS, heat.COLUMNS)


def launches(array: Callable, view: Callable) -> dict[str, Run]:
    """Who -> LAUNCHES launches of one program.  array: makes one of NumPy's; view: for @njit."""
    arrays = [array(np.ones(256, np.float32)) for _ in range(3)]
    views = [view(x) for x in arrays]

    def from_python() -> None:
        for _ in range(LAUNCHES):
            add[1](*arrays, BLOCK=256)
    return {SUBJECT: lambda: launch_many(*views, LAUNCHES), "Python": from_python}


def simulations(side: int) -> dict[str, Run]:
    """Who -> STEPS steps on a square of the CPU.  Errors: AssertionError unless they agree."""
    start = np.random.default_rng(0).random((side, side), np.float32)
    rate = np.float32(RATE)
    runs, results = {}, {}
    for name, simulate in ((SUBJECT, heat.simulate), ("Numba", plain_simulation),
                           ("Numba, one thread", plain_simulation_of_one_thread),
                           ("Python", simulation_of_python)):
        now, then = start.copy(), np.full_like(start, np.nan)
        simulate(now, then, rate, STEPS)
        results[name] = now
        runs[name] = lambda simulate=simulate, now=now, then=then: simulate(now, then, rate, STEPS)
    for name, result in results.items():
        np.testing.assert_allclose(result, results[SUBJECT], rtol=1e-4, err_msg=name)
    return runs


def gpu_launches() -> dict[str, Run]:
    """launches() of Numba's device arrays; between two timings the queue is drained."""
    from numba import cuda
    return launches(cuda.to_device, bn.device)


@pytest.mark.benchmark(timer=CLOCK)
def test_launches_on_the_cpu(benchmark):
    samples = interleaved(launches(np.array, lambda x: x), host_timer, ROUNDS, 1)
    CLOCK.replay(benchmark, samples, SUBJECT)


@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("side", SIDES)
def test_simulation_on_the_cpu(benchmark, side):
    samples = interleaved(simulations(side), host_timer, ROUNDS, 1)
    CLOCK.replay(benchmark, samples, SUBJECT)


@pytest.mark.skipif(find_driver() is None, reason="no CUDA device")
@pytest.mark.benchmark(timer=CLOCK)
def test_launches_on_the_gpu(benchmark):
    samples = interleaved(gpu_launches(), host_timer, ROUNDS, 1, synchronize)
    CLOCK.replay(benchmark, samples, SUBJECT)


def synchronize() -> None:
    """Wait until the GPU has done all launches."""
    driver = find_driver()
    driver.enter_thread(0)
    driver.synchronize(0)


def told(title: str, samples: dict[str, list[float]], times: int) -> str:
    """A line of the table: microseconds of one launch or step, and ratios."""
    own = ", ".join(f"{who} {1e6 * seconds / times:.3f} us"
                    for who, seconds in medians(samples).items())
    ratios = ", ".join(f"{who} / {SUBJECT} {median_ratio(samples, who, SUBJECT):.2f}"
                       for who in samples if who != SUBJECT)
    return f"{title}: {own}; {ratios}"


if __name__ == "__main__":
    cpu = interleaved(launches(np.array, lambda x: x), host_timer, ROUNDS, 1)
    print(told("a launch on the CPU", cpu, LAUNCHES))
    for length in SIDES:
        rounds = max(3, math.ceil(ROUNDS * 256 / max(length, 256)))
        taken = interleaved(simulations(length), host_timer, rounds, 1)
        print(told(f"a step of {length} x {length} on the CPU", taken, STEPS))
    if find_driver() is not None:
        print(told("a launch on the GPU", interleaved(gpu_launches(), host_timer, ROUNDS, 1,
                                                      synchronize), LAUNCHES))

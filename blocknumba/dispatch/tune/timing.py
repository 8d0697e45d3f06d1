"""Timing: by the host's clock, between CUDA events, and in CUDA graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from blocknumba.dispatch.launch.driver import Driver

# written before each run, so that nothing is left in the L2 cache; it also keeps the GPU busy
# while the host queues the run.  Source: triton.testing.do_bench
FLUSH_BYTES = 256 << 20
_FIRST_RUNS = 5  # that say how many runs fill the budget
_GRAPH_LAUNCHES = 10
MAX_RUNS = 100_000

Work = Callable[[int], object]  # of a stream


@dataclass(frozen=True, slots=True)
class Budget:
    """Approximate durations of a measurement: of the warm-up, and of the runs that count.

    At least one run is made of each.
    """

    warmup_ms: float = 25.0
    rep_ms: float = 100.0

    def counts(self, run_ms: float) -> tuple[int, int]:
        """Numbers of runs that warm up and that count, if one takes run_ms."""
        run_ms = max(run_ms, 1e-4)
        return (max(1, min(MAX_RUNS, int(self.warmup_ms / run_ms))),
                max(1, min(MAX_RUNS, int(self.rep_ms / run_ms))))


def time_on_host(run: Callable[[], object], budget: Budget,
                 before: Callable[[], object] | None = None) -> list[float]:
    """The times of runs in ms, on the host's clock.

    before: called before each run, and not timed.
    """
    estimate = _host_ms(run, before)
    warmups, runs = budget.counts(estimate)
    for _ in range(warmups - 1):  # the first one is done
        _host_ms(run, before)
    return [_host_ms(run, before) for _ in range(runs)]


def time_on_device(driver: Driver, stream: int, run: Work, budget: Budget,
                   before: Work | None = None) -> list[float]:
    """The times of runs in ms, between events on a stream of the current device.

    Each run finds the L2 cache without its data.
    before: called before each run, and not timed.
    """
    def prepared_run() -> None:
        if before is not None:
            before(stream)
        run(stream)

    prepared_run()
    driver.synchronize(stream)
    with _allocated(driver, FLUSH_BYTES, stream) as flush, _events(driver, 2) as (start, end):
        driver.record(start, stream)
        for _ in range(_FIRST_RUNS):
            driver.clear(flush, FLUSH_BYTES, stream)
            prepared_run()
        driver.record(end, stream)
        driver.synchronize(stream)
        warmups, runs = budget.counts(driver.elapsed_ms(start, end) / _FIRST_RUNS)
        for _ in range(warmups):
            prepared_run()
        with _events(driver, 2 * runs) as events:
            pairs = list(zip(events[::2], events[1::2]))
            for first, last in pairs:
                if before is not None:
                    before(stream)
                driver.clear(flush, FLUSH_BYTES, stream)
                driver.record(first, stream)
                run(stream)
                driver.record(last, stream)
            driver.synchronize(stream)
            return [driver.elapsed_ms(first, last) for first, last in pairs]


def time_in_graph(driver: Driver, run: Work, rep_ms: float) -> list[float]:
    """The times of one run in ms, each the mean of a CUDA graph of many: no launch overhead.

    run: must queue all its work on the stream that it is given.
    """
    with driver.new_stream() as stream, _events(driver, 2) as (start, end):
        run(stream)
        driver.synchronize(stream)

        def graph_ms(graph: object) -> float:
            driver.record(start, stream)
            driver.launch_graph(graph, stream)
            driver.record(end, stream)
            driver.synchronize(stream)
            return driver.elapsed_ms(start, end)

        with driver.graph(run, stream, _FIRST_RUNS) as graph:
            graph_ms(graph)
            _, runs = Budget(0, rep_ms).counts(graph_ms(graph) / _FIRST_RUNS)
        with driver.graph(run, stream, runs) as graph:
            return [graph_ms(graph) / runs for _ in range(_GRAPH_LAUNCHES)]


def _host_ms(run: Callable[[], object], before: Callable[[], object] | None) -> float:
    if before is not None:
        before()
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


@contextmanager
def _allocated(driver: Driver, size_bytes: int, stream: int) -> Iterator[int]:
    pointer = driver.allocate(size_bytes, stream)
    try:
        yield pointer
    finally:
        driver.free(pointer, stream)


@contextmanager
def _events(driver: Driver, count: int) -> Iterator[list[object]]:
    events: list[object] = []
    try:
        for _ in range(count):
            events.append(driver.new_event())
        yield events
    finally:
        for event in events:
            driver.destroy_event(event)

"""Medians of times of competitors that take turns, on the GPU's clock or the host's."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from blocknumba.dispatch.launch.driver import Driver, require_driver

Run = Callable[[], object]
Samples = dict[str, list[float]]  # competitor -> seconds of one run, one number a round


class GpuTimer:
    """Seconds between two CUDA events on the default stream."""

    def __init__(self, driver: Driver):
        self._driver = driver
        driver.enter_thread(driver.current_device())
        self._start, self._stop = (
            driver.check("cuEventCreate", driver.api.cuEventCreate(0))[0] for _ in range(2))

    def __call__(self, run: Run, repeats: int) -> float:
        """Seconds of one run: of `repeats` queued back to back, divided."""
        api, check = self._driver.api, self._driver.check
        check("cuEventRecord", api.cuEventRecord(self._start, 0))
        for _ in range(repeats):
            run()
        check("cuEventRecord", api.cuEventRecord(self._stop, 0))
        check("cuEventSynchronize", api.cuEventSynchronize(self._stop))
        (elapsed_ms,) = check("cuEventElapsedTime",
                              api.cuEventElapsedTime(self._start, self._stop))
        return elapsed_ms / 1e3 / repeats


def gpu_timer() -> GpuTimer:
    """A timer for the current device.  Errors: LaunchError without a GPU."""
    return GpuTimer(require_driver("perf"))


def host_timer(run: Run, repeats: int) -> float:
    """Seconds of one run on the host, of `repeats` back to back, divided."""
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def interleaved(runs: Mapping[str, Run], timer: Callable[[Run, int], float], rounds: int,
                repeats: int, between: Run = lambda: None) -> Samples:
    """Time every run in every round, in turn (A B C A B C ...), after one round unrecorded.

    between: called after every timing, for example to drain the GPU's queue.
    """
    samples: Samples = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            seconds = timer(run, repeats)
            between()
            if number:
                samples[name].append(seconds)
    return samples


def medians(samples: Samples) -> dict[str, float]:
    """The median of each competitor, in seconds."""
    return {name: statistics.median(values) for name, values in samples.items()}


def median_ratio(samples: Samples, numerator: str, denominator: str) -> float:
    """The median over rounds of one competitor's seconds divided by another's of the same round."""
    return statistics.median(one / other for one, other in
                             zip(samples[numerator], samples[denominator], strict=True))


def fastest(candidates: Iterable[Run], timer: Callable[[Run, int], float],
            rounds: int = 5, repeats: int = 5) -> Run:
    """The candidate of least median time."""
    numbered = {str(number): run for number, run in enumerate(candidates)}
    times = medians(interleaved(numbered, timer, rounds, repeats))
    return numbered[min(times, key=times.get)]


class ReplayClock:
    """A clock that pytest-benchmark reads, moved by what was measured elsewhere."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def replay(self, benchmark, samples: Samples, subject: str) -> None:
        """Report samples[subject] as the benchmark's rounds, the others as its extra_info."""
        measured = iter(samples[subject])

        def advance() -> None:
            self.seconds += next(measured)

        benchmark.pedantic(advance, rounds=len(samples[subject]))
        times = medians(samples)
        for name, seconds in times.items():
            benchmark.extra_info[f"{name}, us"] = round(seconds * 1e6, 3)
            if name != subject:
                benchmark.extra_info[f"{name} / {subject}"] = round(seconds / times[subject], 3)


CLOCK = ReplayClock()


def two_columns(cases: Iterable[tuple[str, Mapping[str, Run]]], subject: str, peer: str,
                rounds: int, repeats: int, output: Path | None, about: Mapping[str, str]) -> None:
    """Print a line for each case of two competitors, and write all as JSON where that is asked for.

    cases: name and runs of each.   about: what stands beside them in the file: card, versions.
    """
    found = {}
    for name, runs in cases:
        samples = interleaved(runs, gpu_timer(), rounds, repeats)
        times = {who: seconds * 1e6 for who, seconds in medians(samples).items()}
        ratio = median_ratio(samples, peer, subject)
        found[name] = {"us": times, f"{peer} / {subject}": ratio}
        print(f"{name:20} {subject} {times[subject]:7.1f} us  {peer} {times[peer]:7.1f} us  "
              f"{peer} / {subject} {ratio:.3f}", flush=True)
    if output is not None:
        output.write_text(json.dumps({**about, "cases": found}, indent=1))

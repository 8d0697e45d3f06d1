"""Trials of configurations: compiled, and measured on scratch copies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from blocknumba.dispatch.launch.call import Call
from blocknumba.dispatch.launch.driver import require_driver
from blocknumba.dispatch.launch.grid import Grid
from blocknumba.dispatch.launch.interpret import interpret
from blocknumba.dispatch.launch.plan import Plan, slot_bits
from blocknumba.dispatch.launch.streams import StreamOrder, stream_handle
from blocknumba.dispatch.tune.config import Config, Hook
from blocknumba.dispatch.tune.scratch import DeviceMemory, HostMemory, Scratch
from blocknumba.dispatch.tune.store import Timing
from blocknumba.dispatch.tune.timing import (
    Budget, Work, time_in_graph, time_on_device, time_on_host,
)
from blocknumba.errors import LaunchError

Item = TypeVar("Item")


@contextmanager
def progress(items: Sequence[Item], title: str) -> Iterator[Iterable[Item]]:
    """The items, counted by a bar on standard error when that is a terminal and rich is there."""
    if not sys.stderr.isatty():
        yield items
        return
    try:
        from rich.console import Console  # here: it is optional, and slow to import
        from rich.progress import Progress  # here: as above
    except ImportError:
        yield items
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        yield bar.track(items, description=title)


QUANTILES = (0.5, 0.2, 0.8)
_ON_DEVICE = Budget()
_ON_HOST = Budget(0.0, 5.0)  # the interpreter is slow, and its times say little


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration that is compiled for the arguments of one call.

    named: the arguments, constants and options by name, as hooks see them.
    stream: as the launch was given it.
    """

    config: Config
    call: Call
    grid: Grid
    named: Mapping[str, object]
    stream: object


@dataclass(frozen=True, slots=True)
class Measurement:
    """Options of the measurement of trials.

    reset_to_zero, restore_value: arrays that get 0, or their first values, before each run.
    pre_hook, post_hook: called before and after each run, with the caller's own arrays.
    warmup, rep: ms; None for the defaults.
    use_cuda_graph: measure in CUDA graphs, before which arrays are reset once.
    do_bench: (function, quantiles=) -> the quantiles in ms; measures instead of ours.
    """

    reset_to_zero: tuple[str, ...] = ()
    restore_value: tuple[str, ...] = ()
    pre_hook: Hook | None = None
    post_hook: Hook | None = None
    warmup: float | None = None
    rep: float | None = None
    use_cuda_graph: bool = False
    do_bench: Callable[..., object] | None = None

    def __call__(self, trial: Trial) -> Timing:
        """Measure a trial, and leave the caller's arrays as they are.

        Errors: LaunchError, ResourceError and whatever the kernel may raise on the CPU.
        """
        call = trial.call
        stored = call.compiled.effects.stored
        with _stream(trial) as stream:
            on_host = call.driver is None
            memory = (HostMemory if on_host else DeviceMemory)(
                None if stream is None else require_driver("autotune"), stream)
            device = None if on_host else call.device
            with Scratch(memory, call.arguments.arrays, stored, device) as scratch:
                run = self._hooked(_work(trial, scratch), trial)
                times = self._times(trial, run, lambda _: self._reset(trial, scratch), stream)
        return Timing(*map(float, times))

    def _times(self, trial: Trial, run: Work, before: Work, stream: int | None) -> object:
        """The quantiles of the times of runs."""
        def both(where: int | None) -> None:
            before(where)
            run(where)

        driver = trial.call.driver
        if self.do_bench is not None:
            found = self.do_bench(lambda: both(stream), quantiles=QUANTILES)
            return found if np.ndim(found) else (found,) * len(QUANTILES)
        budget = self._budget(_ON_HOST if driver is None else _ON_DEVICE)
        if driver is None:
            times = time_on_host(lambda: run(None), budget, lambda: before(None))
        elif self.use_cuda_graph:
            before(stream)
            driver.synchronize(stream)  # the graph's stream does not wait for this one
            times = time_in_graph(driver, run, budget.rep_ms)
        else:
            times = time_on_device(driver, stream, run, budget, before)
        return np.quantile(times, QUANTILES)

    def _budget(self, default: Budget) -> Budget:
        return Budget(default.warmup_ms if self.warmup is None else self.warmup,
                      default.rep_ms if self.rep is None else self.rep)

    def _reset(self, trial: Trial, scratch: Scratch) -> None:
        scratch.restore(self.restore_value)
        scratch.clear(self.reset_to_zero)
        if trial.config.pre_hook is not None:
            trial.config.pre_hook(dict(trial.named))
        if self.pre_hook is not None:
            self.pre_hook(dict(trial.named))

    def _hooked(self, run: Work, trial: Trial) -> Work:
        if self.post_hook is None:
            return run

        def hooked(stream: int | None) -> None:
            try:
                run(stream)
            except Exception as error:
                self.post_hook(dict(trial.named), exception=error)
                raise
            self.post_hook(dict(trial.named), exception=None)
        return hooked


def _work(trial: Trial, scratch: Scratch) -> Work:
    """A function that runs a trial on scratch arrays."""
    call = trial.call
    infos = {**call.arguments.infos, **scratch.infos}
    if call.driver is None:
        return lambda _: interpret(call.compiled, trial.grid, infos, None)
    plan = Plan(call.driver, call.compiled, call.device, infos, call.captures)
    slots = [slot_bits(info) for info in infos.values()]
    return lambda stream: plan.launch(trial.grid, stream, slots)


@contextmanager
def _stream(trial: Trial) -> Iterator[int | None]:
    """The stream to measure on, with its context current; None where no GPU takes part.

    Errors: LaunchError when it is being captured into a graph.
    """
    call, arrays = trial.call, trial.call.arguments.arrays.values()
    devices = {info.device for info in arrays} - {None}
    if call.driver is None and not devices:
        yield None
        return
    driver = call.driver or require_driver("autotune")
    device = call.device if call.driver else devices.pop()
    name = call.signature.kernel
    chosen = None if trial.stream is None else stream_handle(trial.stream, name)
    driver.enter_thread(device)
    with driver.on_device(device):
        order = StreamOrder(driver, arrays, device, chosen)
        if driver.is_capturing(order.stream):
            raise LaunchError(f"{name}: cannot be tuned while a CUDA graph is captured",
                              hint="launch it once, with arguments like these, before")
        with order as handle:
            yield handle

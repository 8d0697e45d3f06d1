"""Trials of configurations on scratch copies of arrays."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.call import Call
from blocknumba.dispatch.launch.driver import Driver, host_pointer, require_driver
from blocknumba.dispatch.launch.grid import Grid
from blocknumba.dispatch.launch.interpret import interpret
from blocknumba.dispatch.launch.plan import Plan, slot_bits
from blocknumba.dispatch.launch.staging import PAGE, Range, merged_ranges
from blocknumba.dispatch.launch.streams import StreamOrder, stream_handle
from blocknumba.dispatch.tune.key import Config, Hook
from blocknumba.dispatch.tune.store import Timing
from blocknumba.dispatch.tune.timing import (
    Budget, Work, time_in_graph, time_on_device, time_on_host,
)
from blocknumba.errors import LaunchError


class HostMemory:
    """Memory of scratch copies for the CPU.

    driver: copies from device arrays; None where there are none.
    """

    def __init__(self, driver: Driver | None, stream: int):
        self._driver, self._stream = driver, stream
        self._blocks: dict[int, np.ndarray] = {}

    def allocate(self, size_bytes: int) -> int:
        """The address of a multiple of PAGE."""
        block = np.empty(size_bytes + PAGE, np.uint8)
        address = host_pointer(block) + -host_pointer(block) % PAGE
        self._blocks[address] = block
        return address

    def copy(self, target: int, source: int, size_bytes: int, device: int | None) -> None:
        """Copy from host memory, or from that of a device."""
        if device is None:
            ctypes.memmove(target, source, size_bytes)
            return
        self._driver.copy_to_host(target, source, size_bytes, self._stream)
        self._driver.synchronize(self._stream)

    def clear(self, target: int, size_bytes: int) -> None:
        """Set bytes to 0."""
        ctypes.memset(target, 0, size_bytes)

    def owner(self, allocation: int) -> object:
        """The object that keeps an allocation alive."""
        return self._blocks[allocation]

    def free(self) -> None:
        """Free everything."""
        self._blocks.clear()


class DeviceMemory:
    """Memory of scratch copies on a GPU, allocated and freed in the order of a stream."""

    def __init__(self, driver: Driver, stream: int):
        self._driver, self._stream = driver, stream
        self._allocations: list[int] = []

    def allocate(self, size_bytes: int) -> int:
        """The address of a multiple of PAGE."""
        self._allocations.append(self._driver.allocate(size_bytes, self._stream))
        return self._allocations[-1]

    def copy(self, target: int, source: int, size_bytes: int, device: int | None) -> None:
        """Copy from host memory, or from that of a device."""
        if device is None:
            self._driver.copy_to_device(target, source, size_bytes, self._stream)
        else:
            self._driver.copy_on_device(target, source, size_bytes, self._stream)

    def clear(self, target: int, size_bytes: int) -> None:
        """Set bytes to 0."""
        self._driver.clear(target, size_bytes, self._stream)

    def owner(self, _: int) -> object:
        """Nothing: the allocation lives until it is freed."""
        return None

    def free(self) -> None:
        """Free everything, in the order of the stream."""
        for allocation in self._allocations:
            self._driver.free(allocation, self._stream)


class Scratch:
    """The arrays of one call with copies instead of those that must stay as they are.

    Copied are the arrays that the kernel stores to, those that share memory with them, and those
    that are not where the kernel runs, or not aligned.  Copies overlap as the arrays do, and keep
    their strides and the alignment of their addresses, so that the same code runs on them.

    device: where the kernel runs; None for the CPU.
    """

    def __init__(self, memory: HostMemory | DeviceMemory, arrays: Mapping[str, ArrayInfo],
                 stored: frozenset[str], device: int | None):
        self._memory, self._arrays, self._device = memory, arrays, device
        self._copied: list[tuple[Range, int | None]] = []
        for array_device in {info.device for info in arrays.values()}:
            there = {name: info for name, info in arrays.items() if info.device == array_device}
            self._copied += [(range_, array_device) for range_ in merged_ranges(there, stored)
                             if array_device != device or range_.stored
                             or range_.phase != range_.low % PAGE]

    def __enter__(self) -> Scratch:
        try:
            self._infos = dict(self._arrays)
            for range_, array_device in self._copied:
                self._copy(range_, array_device)
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is None:
            self._memory.free()
            return
        with contextlib.suppress(LaunchError):  # the first error is the one to show
            self._memory.free()

    @property
    def infos(self) -> dict[str, ArrayInfo]:
        """All arrays, copied or not."""
        return self._infos

    def restore(self, names: Iterable[str]) -> None:
        """Copy the values of the originals to copied arrays again."""
        names = frozenset(names)
        for range_, array_device in self._copied:
            if names.intersection(range_.names) and range_.high > range_.low:
                self._memory.copy(range_.copy, range_.low, range_.high - range_.low, array_device)

    def clear(self, names: Iterable[str]) -> None:
        """Set copied arrays, and what is between their elements, to 0."""
        copied = {name for range_, _ in self._copied for name in range_.names}
        for name in copied.intersection(names):
            low, high = self._infos[name].byte_range()
            self._memory.clear(low, high - low)

    def _copy(self, range_: Range, array_device: int | None) -> None:
        size, owner = range_.high - range_.low, None
        if size:
            allocation = self._memory.allocate(size + range_.phase)
            owner = self._memory.owner(allocation)
            range_.copy = allocation + range_.phase
            self._memory.copy(range_.copy, range_.low, size, array_device)
        for name in range_.names:
            info = self._arrays[name]
            self._infos[name] = replace(info, device=self._device, readonly=False, owner=owner,
                                        pointer=range_.copy + info.pointer - range_.low)


Item = TypeVar("Item")


@contextmanager
def progress(items: Sequence[Item], title: str) -> Iterator[Iterable[Item]]:
    """The items, counted by a bar in terminals and notebooks where tqdm is there."""
    is_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    if not (is_notebook or sys.stderr.isatty()):
        yield items
        return
    try:
        from tqdm.auto import tqdm  # here: it is optional, and slow to import
    except ImportError:
        yield items
        return
    with tqdm(items, desc=title, leave=False, file=None if is_notebook else sys.stderr) as bar:
        yield bar


QUANTILES = (0.5, 0.2, 0.8)
_ON_DEVICE = Budget()
_NATIVE = Budget(2.0, 20.0)
_INTERPRETED = Budget(0.0, 5.0)  # slow, and its times say little


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
    warmup, rep: ms; None for what suits the device.
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
        budget = self._budget(_ON_DEVICE if driver else _NATIVE if trial.call.compiled.native
                              else _INTERPRETED)
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

"""Bound launches: all arguments are packed beforehand, for calls that repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch.arrays import LEGACY_STREAM, library_of
from blocknumba.dispatch.launch.call import Call
from blocknumba.dispatch.launch.driver import status_of
from blocknumba.dispatch.launch.grid import Grid
from blocknumba.dispatch.launch.plan import LaunchBuffer, Plan, slot_bits
from blocknumba.dispatch.launch.streams import (
    cupy_stream_getter, device_getter, stream_handle, torch_stream_getter,
)
from blocknumba.tracebacks import leave_out_our_frames, without_our_frames

MAX_STREAMS = 64  # that a bound launch is prepared for at a time

Bound = Callable[..., Compiled]


@dataclass(frozen=True, slots=True)
class LaunchEvent:
    """One launch, as a launch hook sees it.

    kernel: its name.  compiled: its code.
    grid: programs along each axis.  stream: as it was given; None for the arrays' own.
    arguments: by name, constants included.
    """

    kernel: str
    compiled: Compiled
    grid: Grid
    stream: object
    arguments: dict[str, object]


def bind_call(call: Call, grid: Grid, chosen: object, hooks: list,
              slowly: Callable[[object], Compiled]) -> Bound:
    """A function that launches a call again and again.

    chosen: the stream; None for the one that is current in the arrays' library at each launch.
    hooks: launch hooks; while there are any, launches are prepared anew.
    slowly: (stream) -> Compiled, the call from the beginning: when a captured global changed,
        when arrays are on the host, and for everything that runs on the CPU.
    """
    current = _current_stream(call)
    kernel = call.signature.kernel
    if not call.is_on_device or current is None:
        return without_our_frames(_named(
            lambda *, stream=None: slowly(chosen if stream is None else stream), kernel))
    plan = call.plan()
    fixed = None if chosen is None else stream_handle(chosen, kernel)
    buffers = _Buffers(plan, grid, [slot_bits(info) for info in call.arguments.infos.values()])
    is_current, compiled = plan.captures.is_current, plan.compiled
    several_devices, is_empty = call.driver.device_count > 1, not all(grid)

    def bound(*, stream: object = None) -> Compiled:
        try:
            if hooks or not is_current():
                return slowly(chosen if stream is None else stream)
            if is_empty:
                return compiled
            if stream is None:
                stream = current() if fixed is None else fixed
            elif stream.__class__ is not int:
                stream = stream_handle(stream, kernel)
            buffer = buffers[stream]
            if several_devices and current_device() != plan.device:
                plan.run(buffer)
                return compiled
            try:
                status = buffer.submit()
            except Exception as error:
                status = status_of(error)
            if status:
                plan.recover(status, buffer)
            return compiled
        except Exception as error:
            leave_out_our_frames(error)
            raise

    current_device = device_getter(_libraries(call), call.driver)
    bound.arguments = call.arguments  # keeps the arrays alive, whose addresses are in the buffers
    return _named(bound, kernel)


def _named(bound: Bound, kernel: str) -> Bound:
    """A bound launch whose name in Python's own errors says what was called."""
    bound.__qualname__ = f"{kernel}.bind(...)"
    return bound


class _Buffers(dict[int, LaunchBuffer]):
    """The buffers of a bound launch by the handle of the stream: once made, they are only read."""

    def __init__(self, plan: Plan, grid: Grid, slots: Sequence[int]):
        self._plan, self._grid, self._slots = plan, grid, slots

    def __missing__(self, stream: int) -> LaunchBuffer:
        if len(self) >= MAX_STREAMS:
            self.clear()
        buffer = self[stream] = LaunchBuffer(self._plan)
        buffer.fill(self._slots)
        buffer.aim(self._grid, stream)
        return buffer


def _current_stream(call: Call) -> Callable[[], int] | None:
    """Getter of the current stream of the arrays' library; None with two streams to order."""
    libraries = _libraries(call)
    if {"cupy", "torch"} <= libraries or any(
            array.stream is not None for array in call.arguments.arrays.values()):
        return None
    if "torch" in libraries:
        getter = torch_stream_getter()
        return lambda device=call.device: getter(device)
    if "cupy" in libraries:
        getter = cupy_stream_getter()
        return lambda device=call.device: getter(device).ptr
    return lambda: LEGACY_STREAM


def _libraries(call: Call) -> set[str]:
    """The libraries that the arrays are of."""
    return {library.name for array in call.arguments.arrays.values()
            if (library := library_of(type(array.owner)))}

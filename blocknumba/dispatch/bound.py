"""Launches with all their arguments in place, for calls that repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blocknumba.dispatch.arrays import LEGACY_STREAM, library_of
from blocknumba.dispatch.call import Call
from blocknumba.dispatch.compiled import Compiled
from blocknumba.dispatch.grid import Grid
from blocknumba.dispatch.plan import slot_bits
from blocknumba.dispatch.streams import cupy_stream_getter, stream_handle, torch_stream_getter

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
    hooks: while there are any, launches take the slow way.
    slowly: (stream) -> Compiled, the call from the beginning: when a captured global changed,
        when arrays are on the host, and for everything that runs on the CPU.
    """
    current = _current_stream(call)
    if not call.is_on_device or current is None:
        return lambda stream=None: slowly(chosen if stream is None else stream)
    plan, kernel, driver = call.plan(), call.signature.kernel, call.driver
    buffer = plan.new_buffer()
    plan.fill(buffer, [slot_bits(facts) for facts in call.arguments.facts.values()])
    fixed = None if chosen is None else stream_handle(chosen, kernel)
    launch, parameters, is_current = plan.submit, buffer.parameters, plan.is_current
    handle, threads, shared_bytes = plan.handle, plan.threads, plan.shared_bytes
    x, y, z = grid
    compiled, several_devices, is_empty = plan.compiled, driver.device_count > 1, not all(grid)

    def bound(stream: object = None) -> Compiled:
        if hooks or not is_current():
            return slowly(chosen if stream is None else stream)
        if is_empty:
            return compiled
        if stream is None:
            stream = current() if fixed is None else fixed
        elif stream.__class__ is not int:
            stream = stream_handle(stream, kernel)
        if several_devices and driver.current_device() != plan.device:
            plan.run(grid, stream, buffer)
            return compiled
        status = launch(handle, x, y, z, threads, 1, 1, shared_bytes, stream, parameters, 0)[0]
        if status:
            plan.recover(status, grid, stream, buffer)
        return compiled

    bound.arguments = call.arguments  # keeps the arrays alive, whose addresses are in the buffer
    return bound


def _current_stream(call: Call) -> Callable[[], int] | None:
    """What gives the current stream of the arrays' library; None when there are two to order."""
    libraries = {library.name for array in call.arguments.arrays.values()
                 if (library := library_of(type(array.owner)))}
    if {"cupy", "torch"} <= libraries or any(
            array.stream is not None for array in call.arguments.arrays.values()):
        return None
    if "torch" in libraries:
        getter = torch_stream_getter()
        return lambda device=call.device: getter(device)
    if "cupy" in libraries:
        getter = cupy_stream_getter()
        return lambda: getter().ptr
    return lambda: LEGACY_STREAM

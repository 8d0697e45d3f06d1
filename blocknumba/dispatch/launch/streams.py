"""Streams: the one that a launch is queued on, and those that it waits for."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from blocknumba.dispatch.launch.arrays import LEGACY_STREAM, ArrayInfo, library_of
from blocknumba.dispatch.launch.driver import Driver
from blocknumba.errors import BlockTypeError
from blocknumba.wording import shown

# expressions of the generated launcher
CURRENT_STREAM = {"cupy": "_get_cupy_stream(_recent.device).ptr",
                  "torch": "_get_torch_stream(_recent.device)",
                  "numba": str(LEGACY_STREAM)}


def is_stream(value: object) -> bool:
    """Whether a value can only be meant as a stream: the second index of kernel[grid, stream]."""
    return value is None or any(hasattr(value, name) for name in
                                ("__cuda_stream__", "cuda_stream", "ptr", "handle"))


def stream_handle(stream: object, where: str) -> int:
    """The driver's handle of a stream: an int, or CuPy's, Torch's, Numba's or any other object.

    Errors: BlockTypeError for anything else.
    """
    if not isinstance(stream, bool):
        try:
            return operator.index(stream)
        except TypeError:
            pass
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("ptr", "cuda_stream", "handle"):  # CuPy, Torch, Numba before __cuda_stream__
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(getattr(handle, "value", handle) or LEGACY_STREAM)
    raise BlockTypeError(
        f"{where}: given {shown(stream)} as stream, "
        "accepted None, an int, a CuPy, Torch or Numba stream, anything with __cuda_stream__")


def cupy_stream_getter() -> Callable[..., object]:
    """CuPy's function from a device's ordinal, by default the current one's, to its current stream.
    """
    return sys.modules["cupy"].cuda.get_current_stream


def torch_stream_getter() -> Callable[[int], int]:
    """Torch's function from a device's ordinal to its current stream's handle."""
    torch = sys.modules["torch"]
    # the private function costs 0.1 us, the public one 1 us
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)


def device_getter(libraries: Collection[str], driver: Driver) -> Callable[[], int]:
    """The cheapest available function that returns the ordinal of the current device."""
    if "torch" in libraries:
        found = getattr(sys.modules["torch"]._C, "_cuda_getDevice", None)
    elif "cupy" in libraries:
        found = getattr(getattr(sys.modules["cupy"].cuda, "runtime", None), "getDevice", None)
    else:
        found = None
    return found or driver.current_device


def current_stream(device: int) -> int:
    """The stream that launches go to: Torch's or CuPy's current one, else the legacy one."""
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized():
        chosen = int(torch_stream_getter()(device))
        if chosen != LEGACY_STREAM:
            return chosen
    return int(cupy_stream_getter()().ptr) if "cupy" in sys.modules else LEGACY_STREAM


@contextmanager
def on_library_stream(stream: int) -> Iterator[None]:
    """Make a stream the current one of Torch and CuPy, as far as they are loaded."""
    with ExitStack() as stack:
        torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
        if torch is not None and torch.cuda.is_initialized():
            stack.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(stream)))
        if cupy is not None:
            stack.enter_context(cupy.cuda.ExternalStream(stream))
        yield


def producer_streams(arrays: Iterable[ArrayInfo], device: int) -> list[int]:
    """The streams that device arrays' pending work may be on, without repeats.

    CuPy's and Torch's arrays: the library's current stream; others: what they say, if anything.
    """
    streams: dict[int, None] = {}
    for info in arrays:
        if info.device is None:
            continue
        library = library_of(type(info.owner))
        name = library.name if library else ""
        if name == "cupy":
            streams[int(cupy_stream_getter()().ptr)] = None
        elif name == "torch":
            streams[int(torch_stream_getter()(device))] = None
        elif info.stream is not None:
            streams[info.stream] = None
    return list(streams)


class StreamOrder:
    """Orders a launch after its arrays' producers, and their later work after the launch.

    chosen: the stream that the user asked for, or None for the arrays' own.
    """

    def __init__(self, driver: Driver, arrays: Iterable[ArrayInfo], device: int,
                 chosen: int | None):
        producers = producer_streams(arrays, device)
        self.stream = chosen if chosen is not None else (producers or [LEGACY_STREAM])[0]
        # a stream that the user names is the user's to order, as in CuPy and Torch
        self._others = [] if chosen is not None else [s for s in producers if s != self.stream]
        self._driver = driver

    def __enter__(self) -> int:
        for other in self._others:
            self._driver.order(other, self.stream)
        return self.stream

    def __exit__(self, *_: object) -> None:
        for other in self._others:
            self._driver.order(self.stream, other)

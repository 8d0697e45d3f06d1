"""`do_bench`: how long a function takes, on the GPU or on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from blocknumba.dispatch.launch.driver import find_driver, require_driver
from blocknumba.dispatch.launch.streams import current_stream, on_library_stream
from blocknumba.dispatch.tune.timing import Budget, time_in_graph, time_on_device, time_on_host
from blocknumba.errors import BlockValueError, require
from blocknumba.settings import SETTINGS
from blocknumba.tracebacks import without_our_frames

_MODES = {"min": np.min, "max": np.max, "mean": np.mean, "median": np.median,
          "all": lambda times: times}


@without_our_frames
def do_bench(fn: Callable[[], object], warmup: float = 25, rep: float = 100,
             grad_to_none: Iterable[object] | None = None,
             quantiles: Sequence[float] | None = None, return_mode: str = "mean",
             device: str | None = None) -> float | list[float]:
    """Time of fn, in ms.

    On a GPU: between events on the current stream of Torch or CuPy, with an L2 cache that does
    not hold the data.  Elsewhere: on the host's clock.
    warmup, rep: for how long to run it before measuring and while measuring, in ms, about.
    grad_to_none: tensors whose .grad becomes None before each run.
    quantiles: return these instead of what return_mode says.
    return_mode: "min", "max", "mean", "median", or "all" for a list.
    device: "cpu" for the host's clock on a machine with a GPU too.

    Example:
    >>> x = np.random.default_rng(0).random(1000)
    >>> bn.testing.do_bench(lambda: np.sort(x), warmup=1, rep=2, device="cpu") > 0
    True
    """
    require(device in (None, "cpu", "gpu"), "do_bench: given device {!r}, accepted cpu, gpu",
            device, error=BlockValueError)
    _require_mode(return_mode)
    driver = require_driver("do_bench") if device == "gpu" else find_driver()
    tensors = tuple(grad_to_none or ())

    def before(_: int | None = None) -> None:
        for tensor in tensors:
            tensor.grad = None

    budget = Budget(warmup, rep)
    if driver is None or device == "cpu" or (device is None and SETTINGS.interpret):
        return _summary(time_on_host(fn, budget, before), quantiles, return_mode)
    with driver.on_device(driver.current_device()):
        times = time_on_device(driver, current_stream(driver.current_device()), lambda _: fn(),
                               budget, before)
    return _summary(times, quantiles, return_mode)


@without_our_frames
def do_bench_cudagraph(fn: Callable[[], object], rep: float = 20,
                       grad_to_none: Iterable[object] | None = None,
                       quantiles: Sequence[float] | None = None,
                       return_mode: str = "mean") -> float | list[float]:
    """Time of fn on a GPU without the cost of launches, in ms: in a CUDA graph of many.

    fn must launch to the current stream of Torch or CuPy; host arrays cannot be used.
    Parameters as of do_bench.

    Example:
    >>> try:
    ...     time_ms = bn.testing.do_bench_cudagraph(lambda: None)
    ... except bn.errors.BlockError as error:  # where there is no GPU
    ...     time_ms = None
    >>> time_ms is None or time_ms >= 0
    True
    """
    _require_mode(return_mode)
    driver = require_driver("do_bench_cudagraph")
    for tensor in grad_to_none or ():
        tensor.grad = None

    def run(stream: int) -> None:
        with on_library_stream(stream):
            fn()

    with driver.on_device(driver.current_device()):
        driver.synchronize(current_stream(driver.current_device()))
        return _summary(time_in_graph(driver, run, rep), quantiles, return_mode)


def _require_mode(return_mode: str) -> None:
    require(return_mode in _MODES, "do_bench: given return_mode {!r}, accepted {}", return_mode,
            ", ".join(_MODES), error=BlockValueError)


def _summary(times: list[float], quantiles: Sequence[float] | None,
             return_mode: str) -> float | list[float]:
    if quantiles is not None:
        found = np.quantile(times, quantiles).tolist()
        return found[0] if len(found) == 1 else found
    found = _MODES[return_mode](times)
    return found if return_mode == "all" else float(found)

"""`triton.testing`: benchmarks, and comparison of results.

Example:
>>> triton.testing.assert_close(np.float32([1, 2]), np.float32([1, 2 + 1e-7]))
>>> try:
...     triton.testing.assert_close(np.float32([1, 2]), np.float32([1, 3]))
... except AssertionError:
...     print("not close")
not close
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.testing import Benchmark, Report, do_bench, do_bench_cudagraph, perf_report
from blocknumba.triton.runtime.driver import driver

__all__ = ["Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph",
           "get_dram_gbps", "perf_report"]

Mark = Report

Tolerance = float | Callable[[object], float]


def assert_close(x: object, y: object, atol: Tolerance | None = None,
                 rtol: Tolerance | None = None, err_msg: str = "") -> None:
    """Check that |x - y| <= atol + rtol * |y| everywhere; NaN is close to NaN.

    x, y: numbers, or arrays of any library.
    atol, rtol: 0.01 and 0 by default; or functions of x's dtype.
    Errors: AssertionError.
    """
    dtype = getattr(x, "dtype", np.asarray(y).dtype if not hasattr(y, "dtype") else y.dtype)
    absolute, relative = (given(dtype) if callable(given) else given
                          for given in (0.01 if atol is None else atol, rtol or 0.0))
    np.testing.assert_allclose(_on_host(x), _on_host(y), rtol=relative, atol=absolute,
                               equal_nan=True, err_msg=err_msg)


def get_dram_gbps(device: int | None = None) -> float:
    """The bandwidth of a GPU's memory in GB/s, from its clock and its bus; 0 of the CPU device."""
    number = driver.active.get_current_device() if device is None else device
    found = driver.active.utils.get_device_properties(number)
    transfers_per_clock = 2  # double data rate
    return found["mem_clock_rate"] * found["mem_bus_width"] * transfers_per_clock / 1e6 / 8


def _on_host(array: object) -> np.ndarray:
    """The values of an array of any library as a NumPy array, narrow floats as float32."""
    if hasattr(array, "detach"):  # Torch's, whose bfloat16 NumPy has not
        array = array.detach().cpu()
        is_narrow = array.is_floating_point() and array.element_size() < 4
        return (array.float() if is_narrow else array).numpy()
    if hasattr(array, "get"):  # CuPy's
        array = array.get()
    elif hasattr(array, "copy_to_host"):  # Numba's
        array = array.copy_to_host()
    return np.asarray(array)

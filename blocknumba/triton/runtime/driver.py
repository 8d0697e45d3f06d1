"""`triton.runtime.driver.active`: the current device, asked as Triton's driver is asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from types import ModuleType

import numpy as np

from blocknumba.dispatch.launch.device import current_device, properties
from blocknumba.dispatch.launch.driver import find_driver
from blocknumba.dispatch.launch.streams import current_stream
from blocknumba.settings import SETTINGS
from blocknumba.testing.benchmark import do_bench
from blocknumba.triton.backends.compiler import GPUTarget, named

_CACHE_BYTES = 256 << 20  # more than the L2 cache of any GPU


class Utilities:
    """Facts on devices."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """The properties of a device by Triton's names: of clocks in kHz, of the bus in bits.

        Of the CPU device: its processors, one thread a program, no shared memory.
        """
        if _is_cpu():
            return {"max_shared_mem": 0, "max_num_regs": 0,
                    "multiprocessor_count": os.cpu_count() or 1, "warpSize": 1,
                    "sm_clock_rate": 0, "mem_clock_rate": 0, "mem_bus_width": 0}
        return asdict(properties(device))


class ActiveDriver:
    """The device that launches go to: the thread's GPU, or the CPU."""

    utils = Utilities()

    def is_active(self) -> bool:
        """Whether it is there: always."""
        return True

    def get_current_target(self) -> GPUTarget:
        """The target of code: backend "cuda", or "cpu" of arch 0."""
        return named(current_device().target)

    def get_current_device(self) -> int:
        """The ordinal of the current GPU; 0 on the CPU device."""
        return 0 if _is_cpu() else find_driver().current_device()

    def set_current_device(self, device: int) -> None:
        """Make a GPU the thread's; on the CPU device nothing."""
        if not _is_cpu():
            find_driver().enter_thread(device)

    def get_current_stream(self, device: int | None = None) -> int:
        """The handle of the stream that launches go to; 0 on the CPU device."""
        if _is_cpu():
            return 0
        return current_stream(self.get_current_device() if device is None else device)

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """The compute capability of a GPU; (0, 0) of the CPU device."""
        if _is_cpu():
            return 0, 0
        return find_driver().capability(self.get_current_device() if device is None else device)

    def get_active_torch_device(self) -> object:
        """Torch's name of the current device.  Errors: ModuleNotFoundError without Torch."""
        torch = _torch()
        return torch.device("cpu") if _is_cpu() else torch.device("cuda", self.get_current_device())

    def get_device_interface(self) -> ModuleType:
        """Torch's module of the current device's kind.  Errors: ModuleNotFoundError."""
        return _torch().cpu if _is_cpu() else _torch().cuda

    def get_benchmarker(self) -> Callable[..., object]:
        """The function that measures for tuners: testing.do_bench."""
        return do_bench

    def get_empty_cache_for_benchmark(self) -> object:
        """An array that is as large as an L2 cache, to be given to clear_cache."""
        if _is_cpu() or "torch" not in sys.modules:
            return np.empty(_CACHE_BYTES // 4, np.int32)
        return _torch().empty(_CACHE_BYTES // 4, dtype=_torch().int32,
                              device=self.get_active_torch_device())

    def clear_cache(self, cache: object) -> None:
        """Fill an array with 0, so that nothing else is in the cache."""
        cache[...] = 0


class DriverConfig:
    """The driver of launches; tests may put another in its place.

    active: the one that is asked.  default: ours.
    """

    def __init__(self):
        self.default = self.active = ActiveDriver()

    def set_active(self, driver: object) -> None:
        """Ask another driver."""
        self.active = driver

    def reset_active(self) -> None:
        """Ask ours again."""
        self.active = self.default


driver = DriverConfig()


def _is_cpu() -> bool:
    return find_driver() is None or SETTINGS.interpret


def _torch() -> ModuleType:
    """Torch, if the program has imported it.

    Errors: ModuleNotFoundError without it: blocknumba does not import it by itself.
    """
    found = sys.modules.get("torch")
    if found is None:
        raise ModuleNotFoundError("triton.runtime.driver: the program has not imported torch, "
                                  "whose device was asked for", name="torch")
    return found

"""Devices: the properties by which users choose tile sizes and numbers of programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from blocknumba.dispatch.launch.driver import Driver, find_driver, require_driver
from blocknumba.dispatch.launch.call import target_of
from blocknumba.nvvm_lower.target import Capability, Target
from blocknumba.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, or the CPU device.

    name: the marketing name.
    target: the target of its code; None on the CPU device.
    multiprocessors: number of programs that run at once at least; 1 on the CPU device.
    """

    name: str
    target: Target | None
    multiprocessors: int

    @property
    def shared_bytes(self) -> int:
        """The shared memory that a program may use; 0 on the CPU device."""
        return self.target.shared_bytes_per_block if self.target else 0

    def has(self, capability: Capability | str) -> bool:
        """Whether kernels can use something: "wgmma", "tma" and the like.

        Errors: ValueError for what no target has.
        """
        wanted = Capability(capability)
        return self.target is not None and self.target.has(wanted)


CPU = Device("CPU", None, 1)


@dataclass(frozen=True, slots=True)
class Properties:
    """Properties of a GPU as Triton names them: bytes, kHz, bits."""

    max_shared_mem: int
    max_num_regs: int
    multiprocessor_count: int
    warpSize: int
    sm_clock_rate: int
    mem_clock_rate: int
    mem_bus_width: int


# Source: CUDA Driver API, CUdevice_attribute
_ATTRIBUTES = ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "MAX_REGISTERS_PER_BLOCK",
               "MULTIPROCESSOR_COUNT", "WARP_SIZE", "CLOCK_RATE", "MEMORY_CLOCK_RATE",
               "GLOBAL_MEMORY_BUS_WIDTH")


@cache
def properties(number: int) -> Properties:
    """The properties of the GPU of a number.  Errors: LaunchError without a GPU."""
    driver = require_driver("the properties of a device")
    return Properties(*(driver.attribute(name, number) for name in _ATTRIBUTES))


def current_device() -> Device:
    """The device for launches whose arrays are on no GPU: the thread's GPU, or the CPU.

    Example:
    >>> device = bn.current_device()
    >>> device.multiprocessors >= 1
    True
    """
    driver = find_driver()
    if driver is None or SETTINGS.interpret:
        return CPU
    return _gpu(driver, driver.current_device())


@cache
def _gpu(driver: Driver, number: int) -> Device:
    """The GPU of a number."""
    return Device(driver.device_name(number), target_of(driver, number),
                  driver.attribute("MULTIPROCESSOR_COUNT", number))

"""Runs cases on a GPU: code is compiled anywhere, and launched where the GPU is."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from blocknumba.dispatch.launch.driver import Driver, host_pointer
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.nvvm_lower.emitter import CodeOptions
from blocknumba.nvvm_lower.kernel import assemble_kernel, lower
from blocknumba.nvvm_lower.target import Target
from blocknumba.tile_ir.ir.function import Parameter
from blocknumba.tile_ir.passes.lower_views import lower_views

from case import Case

STREAM = 0


@dataclass(frozen=True)
class MachineCode:
    """The code of a case, which another process may have compiled."""

    symbol: str
    cubin: bytes
    threads: int
    shared_bytes: int
    parameters: tuple[Parameter, ...]


def compiled(case: Case, target: Target) -> MachineCode:
    """The machine code of a case for a target; needs no GPU."""
    warps = case.num_warps
    code = CodeOptions(warps)
    function = lay_out(lower_views(case.function), LayoutOptions(warps))
    lowered = lower(function, target, code)
    return MachineCode(lowered.name, assemble_kernel(lowered, target, code).cubin,
                       warps * target.warp_size, lowered.shared_bytes, tuple(lowered.parameters))


class Gpu:
    """The current device."""

    def __init__(self, driver: Driver):
        self._driver = driver
        driver.enter_thread(driver.current_device())
        self.target = Target.of_capability(driver.capability(driver.current_device()))

    def run(self, case: Case) -> dict[str, np.ndarray]:
        """The arrays that a case writes."""
        return self.launch(case, compiled(case, self.target))

    def launch(self, case: Case, code: MachineCode) -> dict[str, np.ndarray]:
        """The arrays that a case writes, by code for this device."""
        driver, arrays = self._driver, case.copies()
        kernel = driver.load_kernel(code.cubin, code.symbol)
        memory = {name: self._upload(array) for name, array in arrays.items()}
        values = [_value(parameter, case, memory) for parameter in code.parameters]
        addresses = (ctypes.c_void_p * max(1, len(values)))(*map(host_pointer, values))
        driver.check(str(case), driver.api.cuLaunchKernel(
            kernel, *case.grid, code.threads, 1, 1, code.shared_bytes, STREAM,
            ctypes.addressof(addresses), 0))
        for name in case.expected:
            driver.copy_to_host(host_pointer(arrays[name]), memory[name], arrays[name].nbytes,
                                STREAM)
        driver.synchronize(STREAM)
        for pointer in memory.values():
            driver.free(pointer, STREAM)
        return {name: arrays[name] for name in case.expected}

    def _upload(self, array: np.ndarray) -> int:
        pointer = self._driver.allocate(max(array.nbytes, 1), STREAM)
        self._driver.copy_to_device(pointer, host_pointer(array), array.nbytes, STREAM)
        return pointer


def _value(parameter: Parameter, case: Case, memory: dict[str, int]) -> np.ndarray:
    """The value of a kernel parameter, in memory of its own size."""
    if parameter.kind == "pointer":
        return np.array(memory[parameter.argument], np.uint64)
    return np.array(case.arguments[parameter.argument])

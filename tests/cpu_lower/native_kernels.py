"""Kernels as native code of this processor, run program by program on the calling thread."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from blocknumba.cpu_lower.kernel import FIRST_SLOT, SLOT_BYTES, LoweredKernel, lower
from blocknumba.cpu_lower.target import host
from blocknumba.cpu_lower.toolchain import Loaded, assemble
from blocknumba.dispatch.compile.ahead import specialized
from blocknumba.dispatch.compile.pipeline import tile_function
from blocknumba.dispatch.launch.kernel import Kernel
from blocknumba.tile_ir.ir.function import Parameter


class NativeKernel:
    """A kernel for argument types (as of bn.compile) and constants; arrays share no memory."""

    def __init__(self, kernel: Kernel, signature: object, constants: Mapping[str, object]):
        specialization, values = specialized(kernel, signature, constants, "sm_80", {})
        for_cpu = replace(specialization, target=None)
        tile = tile_function(kernel.__wrapped__, for_cpu, values, {})
        self.lowered: LoweredKernel = lower(tile, host(), disjoint=True)
        self._loaded = Loaded(assemble(self.lowered.llvm_ir, host()), self.lowered.llvm_ir)
        self._call = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
            *[ctypes.c_int32] * 3)(self._loaded.address(self.lowered.name))

    def run(self, grid: tuple[int, ...], **arguments: object) -> None:
        """Run all programs of a grid."""
        record = np.zeros(2, np.int64)
        slots = np.zeros(FIRST_SLOT + len(self.lowered.parameters), np.uint64)
        slots[0] = record.ctypes.data
        for number, parameter in enumerate(self.lowered.parameters, FIRST_SLOT):
            value = np.array(_value(parameter, arguments[parameter.argument])).tobytes()
            slots[number:number + 1].view(np.uint8)[:len(value)] = list(value)
            assert len(value) <= SLOT_BYTES
        axes = (*grid, 1, 1)[:3]
        assert self._call(slots.ctypes.data, 0, math.prod(axes), *axes) == 0


def _value(parameter: Parameter, given: object) -> object:
    if parameter.kind == "pointer":
        return np.uint64(given.ctypes.data)
    if parameter.kind == "extent":
        return np.int64(given.shape[parameter.axis])
    if parameter.kind == "stride":
        return np.int64(given.strides[parameter.axis] // given.itemsize)
    return given

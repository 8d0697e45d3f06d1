"""Launches of native code on the CPU."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping

from blocknumba.cpu_lower.printing import FIRST_SLOT, printing
from blocknumba.cpu_lower.pool import pool
from blocknumba.dispatch.compile.native import NativeCode
from blocknumba.dispatch.launch.grid import Grid
from blocknumba.dispatch.launch.plan import slot_bits
from blocknumba.dispatch.launch.tensor_maps import ArgumentInfo
from blocknumba.errors import BlockAssertionError, BlockError, BlockValueError, ResourceError
from blocknumba.settings import SETTINGS

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                          ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
_MASK_64 = (1 << 64) - 1


def thread_count() -> int:
    """Threads that a launch may use: NUMBA_NUM_THREADS, else the processors of this process."""
    if SETTINGS.threads:
        return SETTINGS.threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class NativeLauncher:
    """A kernel's native code, loaded."""

    def __init__(self, name: str, code: NativeCode):
        self._name, self._code = name, code
        self._entry: Callable[..., int] = _ENTRY(code.loaded.address(code.symbol))

    def run(self, grid: Grid, arguments: Mapping[str, ArgumentInfo]) -> None:
        """Run all programs of a grid on arguments in host memory.

        Errors: BlockAssertionError, BlockValueError or ResourceError of a program that stopped.
        """
        code, entry, (x, y, z) = self._code, self._entry, grid
        record = (ctypes.c_int64 * 2)()
        with printing(code.prints, grid) as printer:
            values = [self._slot(parameter, arguments) for parameter in code.parameters]
            slots = (ctypes.c_uint64 * (FIRST_SLOT + len(values)))(
                ctypes.addressof(record), printer, *values)
            address = ctypes.addressof(slots)

            def run(first: int, stop: int) -> int:
                return entry(address, first, stop, x, y, z)
            programs = x * y * z
            # lines of prints come in the order of programs
            status = run(0, programs) if code.prints else pool(thread_count()).run(run, programs)
        if status:
            raise self._error(status, grid, *record)

    def _slot(self, parameter, arguments: Mapping[str, ArgumentInfo]) -> int:
        info = arguments[parameter.argument]
        if parameter.kind == "extent":
            return info.shape[parameter.axis]
        if parameter.kind == "stride":
            return info.strides[parameter.axis] & _MASK_64
        return slot_bits(info) & _MASK_64

    def _error(self, status: int, grid: Grid, program: int, element: int) -> BlockError:
        stop, (x, y, _) = self._code.stops[status - 1], grid
        where = program % x, program // x % y, program // (x * y)
        if stop.kind == "memory":
            return ResourceError(f"{self._name}: no memory for the tiles of a program",
                                 hint="use smaller tiles")
        if stop.kind == "step":
            return BlockValueError("range: step must not be 0").at(stop.loc)
        index = []
        for extent in reversed(stop.shape):
            element, rest = divmod(element, extent)
            index.insert(0, rest)
        told = f", element {tuple(index)}" if index else ""
        return BlockAssertionError(
            f"{stop.message or 'assert'}: false in program {where}{told}").at(stop.loc)



"""Launches of native code on the CPU."""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from collections.abc import Callable, Mapping, Sequence

from blocknumba.cpu_lower.printing import FIRST_SLOT, printing
from blocknumba.cpu_lower.pool import pool
from blocknumba.dispatch.compile.captures import Captures
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.compile.native import NativeCode
from blocknumba.dispatch.launch.grid import Grid, grid_of
from blocknumba.dispatch.launch.plan import SLOT_BYTES, size_of, slot_bits
from blocknumba.dispatch.launch.tensor_maps import ArgumentInfo
from blocknumba.errors import BlockAssertionError, BlockError, BlockValueError, ResourceError
from blocknumba.settings import SETTINGS
from blocknumba.tile_ir.ir.function import Parameter

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                          ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
_MASK_64 = (1 << 64) - 1


@functools.cache
def thread_count() -> int:
    """Threads that a launch may use: NUMBA_NUM_THREADS, else the processors of this process."""
    if SETTINGS.threads:
        return SETTINGS.threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def slot_of(parameter: Parameter, arguments: Mapping[str, ArgumentInfo]) -> int:
    """The contents of a parameter's slot."""
    if parameter.kind in ("extent", "stride"):
        return size_of(parameter, arguments)
    return slot_bits(arguments[parameter.argument]) & _MASK_64


class NativeDriver:
    """This machine's processor, where launchers expect a driver of GPUs."""

    is_host = True
    device_count = 1

    def current_device(self) -> int:
        """The only device."""
        return 0

    def pointer_device(self, pointer: int) -> int:
        """The device of every pointer."""
        return 0


NATIVE = NativeDriver()


class NativeLauncher:
    """A kernel's native code, loaded."""

    def __init__(self, name: str, code: NativeCode):
        self._name, self._code = name, code
        self._address = code.loaded.address(code.symbol)
        self._entry: Callable[..., int] = _ENTRY(self._address)
        self._cost = ctypes.c_double()  # of a program, which the pool finds

    def run(self, grid: Grid, arguments: Mapping[str, ArgumentInfo]) -> None:
        """Run all programs of a grid on arguments in host memory.

        Errors: BlockAssertionError, BlockValueError or ResourceError of a program that stopped.
        """
        self.run_slots(grid, [slot_of(parameter, arguments)
                              for parameter in self._code.parameters])

    def run_slots(self, grid: Grid, values: Sequence[int]) -> None:
        """Run all programs of a grid.

        values: contents of the slots of the parameters.
        """
        entry, (x, y, z), prints = self._entry, grid, self._code.prints
        record = (ctypes.c_int64 * 2)()
        with printing(prints, grid) as printer:
            slots = (ctypes.c_uint64 * (FIRST_SLOT + len(values)))(
                ctypes.addressof(record), printer, *values)
            address = ctypes.addressof(slots)
            programs = x * y * z
            # lines of prints come in the order of programs
            if programs == 1 or prints or thread_count() == 1:
                status = entry(address, 0, programs, x, y, z)
            else:
                status = pool(thread_count()).run(self._address, address, grid, self._cost)
        if status:
            raise self.error(status, grid, *record)

    def error(self, status: int, grid: Grid, program: int, element: int) -> BlockError:
        """The error of a program that stopped; element: in C order."""
        stop, (x, y, _) = self._code.stops[status - 1], grid
        where = program % x, program // x % y, program // (x * y)
        if stop.kind == "memory":
            return ResourceError(f"{self._name}: no memory for the tiles of a program",
                                 hint="use smaller tiles", resource="memory")
        if stop.kind == "step":
            return BlockValueError("range: step must not be 0").at(stop.loc)
        index = []
        for extent in reversed(stop.shape):
            element, rest = divmod(element, extent)
            index.insert(0, rest)
        told = f", element {tuple(index)}" if index else ""
        return BlockAssertionError(
            f"{stop.message or 'assert'}: false in program {where}{told}").at(stop.loc)




def launcher_of(compiled: Compiled) -> NativeLauncher:
    """A kernel's native code, loaded by its first launch."""
    if compiled.launcher is None:
        compiled.launcher = NativeLauncher(compiled.name, compiled.native)
    return compiled.launcher


class NativePlan:
    """A kernel with the extents and strides of one set of host arrays; see Plan."""

    device = 0

    def __init__(self, compiled: Compiled, arguments: Mapping[str, ArgumentInfo],
                 captures: Captures):
        self.compiled, self.captures = compiled, captures
        self.launcher = launcher_of(compiled)
        self.slot_count = len(arguments)
        position = {name: slot for slot, name in enumerate(arguments)}
        parameters = compiled.native.parameters
        self.sizes = [slot_of(parameter, arguments) for parameter in parameters]
        # of the arguments that vary: slot of the parameter, slot of the argument
        self.varying = [(slot, position[parameter.argument])
                        for slot, parameter in enumerate(parameters)
                        if parameter.kind in ("pointer", "value")]

    def buffer(self) -> NativeBuffer:
        """Arguments and grid of launches of one thread."""
        return NativeBuffer(self)

    def recover(self, status: int, buffer: NativeBuffer) -> None:
        """Nothing: a launch that fails has raised its error."""


class NativeBuffer:
    """Arguments and grid of the launches of a plan; see LaunchBuffer."""

    maps = ()

    def __init__(self, plan: NativePlan):
        self.plan, self.compiled = plan, plan.compiled
        self.slots = bytearray(max(1, plan.slot_count) * SLOT_BYTES)
        self.grid: object = None
        self.stream: int | None = None
        self._extents: Grid = (1, 1, 1)
        self._unpack = struct.Struct(f"<{max(1, plan.slot_count)}Q").unpack

    def aim(self, grid: object, stream: int) -> bool:
        """Set the grid of the launches that follow; whether it has programs."""
        self._extents = grid_of(grid, self.compiled.name)
        if not all(self._extents):
            return False
        self.grid, self.stream = grid, stream
        return True

    def submit(self) -> int:
        """Run the programs; 0.  Errors: as of NativeLauncher.run."""
        given, values = self._unpack(self.slots), [*self.plan.sizes]
        for slot, argument in self.plan.varying:
            values[slot] = given[argument]
        self.plan.launcher.run_slots(self._extents, values)
        return 0

"""Launch sites: a kernel with the types and constants of one launch in a function of Numba's.

A site owns the launch table of its versions.  Where native code finds no version it calls
`_missed`, which reads the record, launches as a launch from Python does, and adds the version.
The caller's machine code holds the name of the table only: machine code of a kernel is never in
Numba's cache.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.call import Arguments, Call, target_of
from blocknumba.dispatch.launch.driver import require_driver
from blocknumba.dispatch.launch.forks import Lock
from blocknumba.dispatch.launch.grid import grid_of
from blocknumba.dispatch.launch.plan import Plan, slot_bits
from blocknumba.dispatch.launch.specialize import (
    are_disjoint, arguments_of, stores_are_apart,
)
from blocknumba.dispatch.njit.cpu_code import cpu_code
from blocknumba.dispatch.njit.launch_table import (
    DONE, FAILED, LOOK_AGAIN, MAX_PARAMETERS, MAX_VERSIONS, SEVERAL_STREAMS, CpuCode, GpuCode,
    Miss, Table, Version,
)
from blocknumba.dispatch.njit.record import ArrayEntry, Layout
from blocknumba.errors import BlockValueError, require
from blocknumba.nvvm_lower.target import Target
from blocknumba.settings import SETTINGS
from blocknumba.tracebacks import leave_out_our_frames

@dataclass(frozen=True, slots=True)
class Description:
    """Properties of a launch in a function of Numba's besides its kernel.

    layout: of the record.  constants: by name.  options: compile options.
    """

    layout: Layout
    constants: Mapping[str, object]
    options: Options

    @property
    def device(self) -> int | None:
        """Ordinal of the GPU whose memory the arrays are in; None for host memory."""
        return next((entry.device for entry in self.layout.entries
                     if isinstance(entry, ArrayEntry)), None)


class Site:
    """A kernel and a description, with their launch table.

    symbol: name of the table.  key_words: words of a key.
    captured: globals and other values that the kernel reads, as the caller was compiled for.
    """

    def __init__(self, kernel: Named, description: Description, symbol: str, key_words: int):
        self.kernel, self.description = kernel, description
        self.captured = kernel.captures(description.constants).values
        self._name = kernel.signature.kernel
        self._options = description.options
        if description.device is None:  # host arrays stay on the CPU where there is a GPU too
            self._options = self._options.override({"interpret": True})
        self._lock = Lock()
        self._keys: set[tuple[int, ...]] = set()
        self._key_words = key_words
        number = next(_NUMBERS)
        _SITES[number] = self  # forever, as callers that know its number are
        self._table = Table(symbol, number, key_words, _MISSED)

    @property
    def is_current(self) -> bool:
        """Whether what the kernel captured is what it was."""
        return self.kernel.captures(self.description.constants).values == self.captured

    @property
    def address(self) -> int:
        """Address of the launch table in this process."""
        return self._table.address

    def launch(self, record: int, key: int, grid: tuple[int, int, int], stream: int,
               must_launch: bool) -> int:
        """Launch as Python does, and let native code find the version from now on.

        record, key: addresses.  must_launch: native code cannot, whatever versions there are.
        Returns DONE, or LOOK_AGAIN where native code can now do it.
        Errors: those of a launch; BlockValueError for a captured value that changed.
        """
        if not must_launch and self._key_at(key) in self._keys:  # another thread was faster
            return LOOK_AGAIN
        layout = self.description.layout
        slots = (ctypes.c_int64 * max(1, layout.slot_count)).from_address(record)
        arguments = Arguments(layout.read(slots, self._name), dict(self.description.constants))
        call = self.kernel.prepare_read(arguments, self._options)
        self._require_unchanged(call)
        if call.driver is None and not must_launch and self._add(
                key, lambda: self._cpu_code(call)):
            return LOOK_AGAIN
        plan = call.run(grid_of(grid, self._name), None if stream == SEVERAL_STREAMS else stream)
        if plan is not None and not must_launch:
            self._add(key, lambda: self._gpu_code(call, plan))
        return DONE

    def _require_unchanged(self, call: Call) -> None:
        now = call.compiled.specialization.captured
        if now != self.captured:
            changed = sorted({path for path, _ in set(now) ^ set(self.captured)})
            raise BlockValueError(
                f"{self._name}: {', '.join(changed)} changed since Numba compiled the function "
                "that launches it", hint="compile that function anew: call its recompile()")

    def _key_at(self, address: int) -> tuple[int, ...]:
        return tuple((ctypes.c_uint64 * max(1, self._key_words)).from_address(address))

    def _add(self, address: int, make: Callable[[], GpuCode | CpuCode | None]) -> bool:
        """Add the version for the key at an address if there is native code for it.

        Returns whether native code now finds it.
        """
        layout, key = self.description.layout, self._key_at(address)
        with self._lock:
            if key in self._keys:
                return True
            code = make() if layout.is_converted_natively else None
            if code is None:
                return False
            if len(self._keys) == MAX_VERSIONS:
                self._keys.clear()
            self._keys.add(key)
            self._table.add(Version(key, layout.slots(code.parameters), code))
        return True

    def _cpu_code(self, call: Call) -> CpuCode | None:
        call.require_writable()
        if self.description.options.interpret:
            return None
        return cpu_code(call.compiled, stores_are_apart(call.arguments.arrays,
                                                        call.compiled.effects.stored))

    def _gpu_code(self, call: Call, plan: Plan) -> GpuCode | None:
        """None for tensor maps that depend on values which the key does not hold."""
        mapped, driver = self.description.layout.mapped, plan.driver
        if not all(mapped.issuperset(maps.arguments) for _, _, maps in plan.maps):
            return None
        bits = [slot_bits(info) for info in call.arguments.infos.values()]
        maps = {position: maps.at(tuple(bits[slot] for slot in slots))
                for position, slots, maps in plan.maps}
        several = driver.device_count > 1
        return GpuCode(driver.address("cuLaunchKernelEx"), plan.handle, plan.shape, plan.device,
                       driver.address("cuCtxGetDevice") if several else 0,
                       plan.compiled.machine.parameters, maps)


def checked(kernel: Named, description: Description) -> Description:
    """Compile for arguments like most, to find mistakes before a launch.

    Returns the description with the arguments that tensor maps depend on.
    Errors: those of the kernel's code; BlockValueError for an array that is read-only and stored
    to, and for more arguments than a launch can have.
    """
    name, layout = kernel.signature.kernel, description.layout
    require(layout.slot_count <= MAX_PARAMETERS, "{}: given arguments of {} addresses, extents, "
            "strides and numbers, accepted {}", name, layout.slot_count, MAX_PARAMETERS,
            error=BlockValueError)
    target = target_of_device(description.device)
    typical = layout.typical()
    specialization, _ = kernel.specialize(
        arguments_of(kernel.signature, typical), description.constants, description.options,
        target, are_disjoint(info for info in typical.values() if isinstance(info, ArrayInfo)))
    compiled = kernel.compile(specialization, description.constants)
    for entry in layout.entries:
        if isinstance(entry, ArrayEntry) and entry.name in compiled.effects.stored:
            require(not entry.readonly, "{}: argument {} is read-only, and the kernel stores to it",
                    name, entry.name, error=BlockValueError, hint="pass a copy")
    parameters = () if compiled.machine is None else compiled.machine.parameters
    mapped = frozenset(argument for parameter in parameters if parameter.tensor_map
                       for argument in (parameter.argument, *(
                           number.argument for number in parameter.tensor_map.numbers)))
    return replace(description, layout=replace(layout, mapped=mapped))


def target_of_device(device: int | None) -> Target | None:
    """Target of a GPU; None for host memory, or with BLOCKNUMBA_INTERPRET."""
    if device is None or SETTINGS.interpret:
        return None
    return target_of(require_driver("njit"), device)


class Failure(Exception):
    """Raised by native code: making one returns the error that Python kept for this thread."""

    def __new__(cls) -> BaseException:
        return _KEPT.error


_SITES: dict[int, Site] = {}
_NUMBERS = itertools.count()
_KEPT = threading.local()


def _missed(number: int, record: int, key: int, x_programs: int, y_programs: int, z_programs: int,
            stream: int, must_launch: int) -> int:
    """See Miss."""
    try:
        return _SITES[number].launch(record, key, (x_programs, y_programs, z_programs), stream,
                                     bool(must_launch))
    except BaseException as error:  # also Ctrl-C: it cannot pass through native code
        if isinstance(error, Exception):
            leave_out_our_frames(error)
        _KEPT.error = error
        return FAILED


_MISSED = Miss(_missed)

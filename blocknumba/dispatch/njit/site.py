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
from collections.abc import Mapping
from dataclasses import dataclass, replace

from blocknumba.dispatch.compile.options import Options
from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.call import Arguments, Call, target_of
from blocknumba.dispatch.launch.driver import require_driver
from blocknumba.dispatch.launch.forks import Lock
from blocknumba.dispatch.launch.grid import grid_of
from blocknumba.dispatch.launch.plan import Plan, slot_bits
from blocknumba.dispatch.launch.specialize import are_disjoint, arguments_of
from blocknumba.dispatch.njit.launch_table import (
    CANNOT, DONE, FAILED, LOOK_AGAIN, MAX_PARAMETERS, MAX_VERSIONS, SEVERAL_STREAMS, UNKNOWN_KEY,
    CpuCode, GpuCode, Miss, Table, Version,
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
            self._options = self._options.override({"device": "cpu"})
        self._lock = Lock()
        self._versions: dict[tuple[int, ...], Version] = {}
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
               reason: int) -> int:
        """Launch as Python does, and let native code find the version from now on.

        record, key: addresses.  reason: see Miss; so is what it returns.
        Errors: those of a launch, and of programs that stopped; BlockValueError for a captured
        value that changed.
        """
        if reason > CANNOT:
            program, element = (ctypes.c_int64 * 2).from_address(stream)
            launcher = self._table.kept(self._key_at(key)).code.launcher
            raise launcher.error(reason - CANNOT, grid, program, element)
        known = self._versions.get(self._key_at(key))
        if reason == UNKNOWN_KEY and known is not None:  # another thread was faster
            return LOOK_AGAIN
        layout = self.description.layout
        slots = (ctypes.c_int64 * max(1, layout.slot_count)).from_address(record)
        infos = layout.read(slots, self._name)
        call = self.kernel.prepare_read(Arguments(infos, dict(self.description.constants)),
                                        self._options)
        self._require_unchanged(call)
        if reason == UNKNOWN_KEY and self._add(key, _cpu_code(call)):
            return LOOK_AGAIN
        plan = call.run(grid_of(grid, self._name), None if stream == SEVERAL_STREAMS else stream)
        if reason == UNKNOWN_KEY and plan is not None and call.compiled.machine is not None:
            self._add(key, self._gpu_code(call, plan))
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

    def _add(self, address: int, code: GpuCode | CpuCode | None) -> bool:
        """Add the version for the key at an address, if there is code that native code can call.

        Returns whether native code now finds it.
        """
        layout, key = self.description.layout, self._key_at(address)
        if code is None or not layout.is_converted_natively:
            return False
        with self._lock:
            if key not in self._versions:
                if len(self._versions) == MAX_VERSIONS:
                    self._versions.clear()
                version = Version(key, layout.slots(code.parameters), code)
                self._table.add(version)
                self._versions[key] = version  # now other threads may look again
        return True

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


def _cpu_code(call: Call) -> CpuCode | None:
    """None for a GPU, where the interpreter runs the programs, and for one that prints.

    Errors: BlockValueError for a read-only array that the kernel stores to.
    """
    native = call.compiled.native
    if native is None or native.prints:
        return None
    call.require_writable()
    return CpuCode.of(call.compiled)


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
    options, typical = description.options, layout.typical()
    if description.device is None:  # the front end finds them, and takes less time
        options = options.override({"interpret": True})
    specialization, _ = kernel.specialize(
        arguments_of(kernel.signature, typical, description.device is None),
        description.constants, options,
        target_of_device(description.device),
        are_disjoint(info for info in typical.values() if isinstance(info, ArrayInfo)))
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
            stream: int, reason: int) -> int:
    """See Miss."""
    try:
        return _SITES[number].launch(record, key, (x_programs, y_programs, z_programs), stream,
                                     reason)
    except BaseException as error:  # also Ctrl-C: it cannot pass through native code
        if isinstance(error, Exception):
            leave_out_our_frames(error)
        _KEPT.error = error
        return FAILED


_MISSED = Miss(_missed)

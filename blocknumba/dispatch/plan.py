"""Launch plans: all that a launch needs and that does not change from call to call."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from blocknumba.dispatch.arrays import ArrayFacts
from blocknumba.dispatch.compiled import Compiled
from blocknumba.dispatch.driver import Driver
from blocknumba.dispatch.grid import Grid
from blocknumba.dispatch.scalars import ScalarFacts
from blocknumba.dispatch.tensor_maps import EncodedMaps
from blocknumba.errors import LaunchError, ResourceError
from blocknumba.tile_ir.ir import Parameter

SLOT_BYTES = 8  # one argument in the parameter buffer: the largest there is is a pointer
_WORD = (1 << 64) - 1

Facts = ArrayFacts | ScalarFacts


@dataclass(frozen=True, slots=True)
class ThreadBuffer:
    """The memory from which the driver reads one thread's kernel parameters.

    slots: one 8-byte slot per argument: the address of an array, the bits of a number.
    addresses: where each kernel parameter is, as the driver wants it: an array of pointers.
    parameters: the address of `addresses`.
    maps: the tensor maps that are pointed at, by the position of their parameter.
    """

    slots: bytearray
    addresses: ctypes.Array
    parameters: int
    maps: dict[int, ctypes.Array]

    def fill(self, slots: Sequence[int]) -> None:
        """Write arguments given as the bits of their slots."""
        for slot, bits in enumerate(slots):
            start = slot * SLOT_BYTES
            self.slots[start:start + SLOT_BYTES] = (bits & _WORD).to_bytes(SLOT_BYTES, "little")


class Plan:
    """One compiled kernel with the extents and strides of one set of arrays.

    What varies between calls, pointers and numbers, goes to the slots of a per-thread buffer;
    extents and strides are written once, here, and only pointed at.

    compiled: the code.
    handle: the kernel in the driver.
    threads, shared_bytes: of a block.
    device: ordinal.
    submit: the driver's launch, which takes what cuLaunchKernel takes.
    is_current: whether the globals that the code captured are what they were.
    meta: the compile options, as a grid that is a function sees them.
    maps: the tensor maps among the parameters: position, slot of the array, what encodes them.
    """

    def __init__(self, driver: Driver, compiled: Compiled, device: int,
                 arguments: Mapping[str, Facts], is_current: Callable[[], bool]):
        self.compiled = compiled
        self.device = device
        self.is_current = is_current
        self.meta = compiled.specialization.options.named()
        self.handle = compiled.handle(driver, device)
        self.threads = compiled.machine.threads
        self.shared_bytes = compiled.machine.shared_bytes
        self.local = threading.local()
        options = compiled.specialization.options
        self.submit = (driver.launch_cooperative if options.launch_cooperative_grid
                       else driver.api.cuLaunchKernel)
        self._driver = driver
        self._slots = {name: slot for slot, name in enumerate(arguments)}
        self._parameters = compiled.machine.parameters
        sizes = [_size_of(parameter, arguments) for parameter in self._parameters]
        self._sizes = (ctypes.c_uint64 * len(sizes))(*sizes)
        self.maps = tuple(
            (position, self._slots[parameter.argument],
             EncodedMaps(driver, parameter, arguments[parameter.argument]))
            for position, parameter in enumerate(self._parameters)
            if parameter.kind == "tensor_map")

    def launch(self, grid: Grid, stream: int, slots: Sequence[int]) -> None:
        """Launch with arguments given as the bits of their slots, whatever device is current."""
        buffer = self.buffer()
        self.fill(buffer, slots)
        self.run(grid, stream, buffer)

    def fill(self, buffer: ThreadBuffer, slots: Sequence[int]) -> None:
        """Write arguments given as the bits of their slots."""
        buffer.fill(slots)
        self.place_maps(buffer)

    def place_maps(self, buffer: ThreadBuffer) -> None:
        """Point at the tensor maps of the arrays whose pointers are in the slots."""
        for position, slot, maps in self.maps:
            start = slot * SLOT_BYTES
            pointer = int.from_bytes(buffer.slots[start:start + SLOT_BYTES], "little")
            encoded = buffer.maps[position] = maps.at(pointer)
            buffer.addresses[position] = ctypes.addressof(encoded)

    def run(self, grid: Grid, stream: int, buffer: ThreadBuffer) -> None:
        """Launch with the arguments in a buffer, whatever device is current."""
        with self._driver.on_device(self.device):
            status = self.submit(
                self.handle, *grid, self.threads, 1, 1, self.shared_bytes, stream,
                buffer.parameters, 0)[0]
        if status:
            self._fail(status, grid)

    def recover(self, status: object, grid: Grid, stream: int, buffer: ThreadBuffer) -> None:
        """Launch once more when the first try failed for want of a context; else raise."""
        if status != self._driver.api.CUresult.CUDA_ERROR_INVALID_CONTEXT:
            self._fail(status, grid)
        self._driver.enter_thread(self.device)
        self.run(grid, stream, buffer)

    def buffer(self) -> ThreadBuffer:
        """This thread's buffer."""
        try:
            return self.local.buffer
        except AttributeError:
            self.local.buffer = self.new_buffer()
            return self.local.buffer

    def new_buffer(self) -> ThreadBuffer:
        """A buffer that belongs to no thread; launches only read it."""
        slots = bytearray(max(1, len(self._slots)) * SLOT_BYTES)
        base = ctypes.addressof(ctypes.c_char.from_buffer(slots))
        sizes = ctypes.addressof(self._sizes)
        addresses = (ctypes.c_void_p * max(1, len(self._parameters)))()
        for position, parameter in enumerate(self._parameters):
            in_slot = parameter.kind in ("pointer", "value")
            addresses[position] = (base + self._slots[parameter.argument] * SLOT_BYTES if in_slot
                                   else sizes + position * SLOT_BYTES)
        return ThreadBuffer(slots, addresses, ctypes.addressof(addresses), {})

    def _fail(self, status: object, grid: Grid) -> None:
        """Raise the error that a launch came back with."""
        name = self.compiled.name
        message = f"{name}: launch of {grid} programs failed: {self._driver.describe(status)}"
        if status == self._driver.api.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
            raise ResourceError(message, hint="use fewer num_warps, smaller tiles or maxnreg=")
        raise LaunchError(message)


class FormPlans:
    """The plans of all calls with one key of a launcher, whatever their pointers.

    limits: for each pair of arrays two distances from pointer to pointer: the arrays share
        memory when the distance is strictly between them.  Pairs in the order of combinations.
    disjoint: the plan for when they share none.  overlapping: the plan that works always.
    """

    __slots__ = ("limits", "disjoint", "overlapping")

    def __init__(self, arrays: Sequence[ArrayFacts]):
        self.limits = tuple(limit for pair in itertools.combinations(arrays, 2)
                            for limit in _sharing_limits(*pair))
        self.disjoint: Plan | None = None
        self.overlapping: Plan | None = None

    def add(self, plan: Plan) -> None:
        """Remember a plan for the calls that it is for."""
        if plan.compiled.specialization.disjoint:
            self.disjoint = plan
        else:
            self.overlapping = plan


def _sharing_limits(first: ArrayFacts, second: ArrayFacts) -> tuple[int, int]:
    """Between which distances `second.pointer - first.pointer` arrays like these share memory.

    It says what are_disjoint says.
    """
    if not first.size or not second.size:
        return 0, 0
    distance = second.pointer - first.pointer
    (first_low, first_high), (second_low, second_high) = first.byte_range(), second.byte_range()
    return distance - (second_high - first_low), distance + first_high - second_low


def slot_bits(facts: Facts) -> int:
    """What the slot of an argument holds."""
    return facts.pointer if isinstance(facts, ArrayFacts) else facts.bits


def _size_of(parameter: Parameter, arguments: Mapping[str, Facts]) -> int:
    """The extent or the stride that a parameter is, as 64 bits; 0 for the other kinds."""
    facts = arguments[parameter.argument]
    if parameter.kind == "extent":
        return facts.shape[parameter.axis]
    if parameter.kind == "stride":
        return facts.strides[parameter.axis] & _WORD
    return 0

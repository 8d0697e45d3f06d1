"""Plans of launches, down to the structures that the driver reads."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from blocknumba.dispatch.compile.captures import Captures
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch.arrays import ArrayInfo
from blocknumba.dispatch.launch.driver import Driver, cupy_launch, status_of
from blocknumba.dispatch.launch.grid import Grid, grid_of
from blocknumba.dispatch.launch.tensor_maps import ArgumentInfo, EncodedMaps
from blocknumba.errors import LaunchError, ResourceError
from blocknumba.nvvm_lower.target import Capability
from blocknumba.tile_ir.ir.function import Parameter


# Source: CUDA Driver API, CUlaunchAttributeID
_CLUSTER_DIMENSION, _COOPERATIVE, _PROGRAMMATIC_STREAM_SERIALIZATION = 4, 2, 6
_VALUE_WORDS = 16


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Configuration that all launches of a kernel share.

    threads, shared_bytes: of a block.
    cluster: blocks of a program, along the first axis.
    is_cooperative: all blocks are resident at the same time, or the launch fails.
    is_dependent: it may begin while the kernel before it in the stream still runs.
    """

    threads: int
    shared_bytes: int = 0
    cluster: int = 1
    is_cooperative: bool = False
    is_dependent: bool = False

    @property
    def attributes(self) -> dict[int, tuple[int, ...]]:
        """The launch attributes by id, as the 32-bit words of their values."""
        wanted = {_CLUSTER_DIMENSION: (self.cluster, 1, 1) if self.cluster > 1 else (),
                  _COOPERATIVE: (1,) if self.is_cooperative else (),
                  _PROGRAMMATIC_STREAM_SERIALIZATION: (1,) if self.is_dependent else ()}
        return {number: words for number, words in wanted.items() if words}


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_uint), ("padding", ctypes.c_uint),
                ("value", ctypes.c_uint * _VALUE_WORDS)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig; its grid is in blocks."""

    _fields_ = [("x_blocks", ctypes.c_uint), ("y_blocks", ctypes.c_uint),
                ("z_blocks", ctypes.c_uint), ("threads", ctypes.c_uint * 3),
                ("shared_bytes", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(_Attribute)), ("attribute_count", ctypes.c_uint)]

    @classmethod
    def of(cls, shape: LaunchShape) -> LaunchConfig:
        """The configuration of a kernel's launches, of one program on the legacy stream."""
        wanted = shape.attributes
        attributes = (_Attribute * len(wanted))(*[
            _Attribute(number, 0, words) for number, words in wanted.items()])
        return cls(shape.cluster, 1, 1, (shape.threads, 1, 1), shape.shared_bytes, 0, attributes,
                   len(wanted))


SLOT_BYTES = 8  # of one argument: the largest are pointers and 64-bit numbers
_MASK_64 = (1 << 64) - 1
_as_pointer = ctypes.c_void_p.from_param


class LaunchBuffer:
    """Arguments, grid and stream of the launches of a plan.

    plan: whose kernel it launches.  compiled: that kernel.
    slots: one 8-byte slot per argument: the address of an array, the bits of a number.
    maps: the tensor maps among the parameters; see Plan.
    grid, stream: of the next launch; None at first.
    submit: launches in the current context and returns the driver's status, 0 or None for
        success; CuPy's function raises instead.  It does not keep the buffer alive.  It takes no
        arguments: passing them would take most of the time of a warm call.
    """

    __slots__ = ("plan", "compiled", "slots", "maps", "grid", "stream", "submit", "_config",
                 "_addresses", "_encoded", "_direct")

    def __init__(self, plan: Plan):
        self.plan, self.compiled = plan, plan.compiled
        self.slots = bytearray(max(1, plan.slot_count) * SLOT_BYTES)
        self._config = LaunchConfig.of(plan.shape)
        self._direct = None if plan.shape.attributes else cupy_launch()
        self.maps = plan.maps
        self.grid: object = None
        self.stream: int | None = None
        self._encoded: dict[int, ctypes.Array] = {}
        addresses = plan.addresses(ctypes.addressof(ctypes.c_char.from_buffer(self.slots)))
        self._addresses = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        # as parameters made beforehand: ctypes need not convert them at each call
        self.submit = functools.partial(
            plan.driver.launch, _as_pointer(ctypes.addressof(self._config)),
            _as_pointer(plan.handle), _as_pointer(ctypes.addressof(self._addresses)), None)

    def fill(self, slots: Sequence[int]) -> None:
        """Write the contents of all slots."""
        for slot, bits in enumerate(slots):
            start = slot * SLOT_BYTES
            self.slots[start:start + SLOT_BYTES] = (bits & _MASK_64).to_bytes(SLOT_BYTES, "little")
        self.encode_maps()

    def encode_maps(self) -> bool:
        """Encode the tensor maps of the arrays in the slots, and pass their addresses.

        False if the numbers in the slots describe no array.
        """
        contents = memoryview(self.slots).cast("Q")
        for position, slots, maps in self.maps:
            encoded = maps.at(tuple([contents[slot] for slot in slots]))
            if encoded is None:
                return False
            self._encoded[position] = encoded  # the driver has only its address
            self._addresses[position] = ctypes.addressof(encoded)
        return True

    def aim(self, grid: object, stream: int) -> bool:
        """Set grid and stream of the next launch; False, and no change, for an empty grid.

        Errors: those of grid_of.
        """
        x_programs, y_programs, z_programs = extents = grid_of(grid, self.compiled.name)
        if not all(extents):
            return False
        shape, config = self.plan.shape, self._config
        if self._direct is not None:
            self.submit = functools.partial(
                self._direct, self.plan.handle, *extents, shape.threads, 1, 1, shape.shared_bytes,
                stream, ctypes.addressof(self._addresses), 0)
        else:
            config.x_blocks = x_programs * shape.cluster
            config.y_blocks, config.z_blocks = y_programs, z_programs
            config.stream = stream
        self.grid, self.stream = grid, stream
        return True


class Plan:
    """One compiled kernel with the extents and strides of one set of arrays.

    Pointers and numbers vary between calls: they go into the slots of a LaunchBuffer.  Extents and
    strides are stored here once, and the driver gets their addresses.

    driver, device: where the kernel runs.
    compiled: its code.
    handle: the kernel in the driver.
    shape: block size, cluster and attributes of its launches.
    captures: the globals that the code captured; the plan is valid while they are unchanged.
    slot_count: number of run-time arguments.
    maps: the tensor maps among the parameters: position, slots of the array and of the numbers
        that describe it, encoder.
    """

    def __init__(self, driver: Driver, compiled: Compiled, device: int,
                 arguments: Mapping[str, ArgumentInfo], captures: Captures):
        self.driver = driver
        self.compiled = compiled
        self.device = device
        self.captures = captures
        self.handle = compiled.handle(driver, device)
        self.shape = _launch_shape(compiled)
        self.slot_count = len(arguments)
        self._local = threading.local()
        self._slots = {name: slot for slot, name in enumerate(arguments)}
        self._parameters = compiled.machine.parameters
        sizes = [size_of(parameter, arguments) for parameter in self._parameters]
        self._sizes = (ctypes.c_uint64 * len(sizes))(*sizes)
        encoded = [(position, EncodedMaps(driver, parameter, arguments))
                   for position, parameter in enumerate(self._parameters)
                   if parameter.kind == "tensor_map"]
        self.maps = tuple((position, tuple([self._slots[name] for name in maps.arguments]), maps)
                          for position, maps in encoded)

    def buffer(self) -> LaunchBuffer:
        """Arguments, grid and stream of launches of one thread."""
        return LaunchBuffer(self)

    def launch(self, grid: Grid, stream: int, slots: Sequence[int]) -> None:
        """Launch with arguments given as slot contents, whatever device is current."""
        try:
            buffer = self._local.buffer
        except AttributeError:
            buffer = self._local.buffer = LaunchBuffer(self)
        buffer.fill(slots)
        buffer.aim(grid, stream)
        self.run(buffer)

    def run(self, buffer: LaunchBuffer) -> None:
        """Launch a filled buffer, whatever device is current."""
        with self.driver.on_device(self.device):
            try:
                status = buffer.submit()
            except Exception as error:
                status = status_of(error)
        if status:
            self._fail(status, buffer)

    def recover(self, status: int, buffer: LaunchBuffer) -> None:
        """Launch again if the first try failed for lack of a context; else raise."""
        if status != self.driver.api.CUresult.CUDA_ERROR_INVALID_CONTEXT:
            self._fail(status, buffer)
        self.driver.enter_thread(self.device)
        self.run(buffer)

    def addresses(self, slots: int) -> list[int]:
        """Address of each kernel parameter, given the address of the slots."""
        sizes = ctypes.addressof(self._sizes)
        return [slots + self._slots[parameter.argument] * SLOT_BYTES
                if parameter.kind in ("pointer", "value") else sizes + position * SLOT_BYTES
                for position, parameter in enumerate(self._parameters)]

    def _fail(self, status: int, buffer: LaunchBuffer) -> None:
        """Raise the error of a launch with this status."""
        name = self.compiled.name
        message = (f"{name}: launch of {grid_of(buffer.grid, name)} programs failed: "
                   f"{self.driver.describe(status)}")
        if status == self.driver.api.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
            raise ResourceError(message, hint="use fewer num_warps, smaller tiles or maxnreg=")
        raise LaunchError(message)


class KeyPlans:
    """The plans of all calls with one key of a launcher, whatever their pointers.

    Arrays that no program stores to may share memory with each other.

    limits: two distances for each pair of arrays, in the order of combinations: the arrays share
        memory when `second.pointer - first.pointer` is strictly between the two.
    disjoint: the plan for arrays that share no memory.  overlapping: the plan for all arrays.
    constants: objects that the key may hold by id only, kept alive with it.
    touched: indices of the arrays that get a new version when they were stored to.
    """

    __slots__ = ("limits", "disjoint", "overlapping", "constants", "touched", "_count")

    def __init__(self, arrays: Mapping[str, ArrayInfo], stored: Collection[str],
                 constants: Mapping[str, object], touched: Collection[str] = ()):
        self._count, self.constants = len(arrays), constants
        self.touched = tuple(index for index, name in enumerate(arrays) if name in touched)
        self.limits = tuple(
            limit for (one, first), (other, second) in itertools.combinations(arrays.items(), 2)
            for limit in (_sharing_limits(first, second) if one in stored or other in stored
                          else (0, 0)))
        self.disjoint: Plan | None = None
        self.overlapping: Plan | None = None

    def pairs(self) -> list[tuple[int, int, int, int]]:
        """The pairs of arrays that can share memory: the indices of both, and their limits."""
        both = itertools.combinations(range(self._count), 2)
        return [(first, second, low, high) for (first, second), low, high in
                zip(both, self.limits[::2], self.limits[1::2], strict=True) if low < high]

    def add(self, plan: Plan) -> None:
        """Store a plan as the disjoint or the overlapping one."""
        if plan.compiled.specialization.disjoint:
            self.disjoint = plan
        else:
            self.overlapping = plan


def _launch_shape(compiled: Compiled) -> LaunchShape:
    machine, specialization = compiled.machine, compiled.specialization
    options, target = specialization.options, specialization.target
    return LaunchShape(machine.threads, machine.shared_bytes, machine.cluster,
                       options.launch_cooperative_grid,
                       options.launch_pdl and target.has(Capability.LAUNCH_DEPENDENTS))


def _sharing_limits(first: ArrayInfo, second: ArrayInfo) -> tuple[int, int]:
    """Limits of `second.pointer - first.pointer` between which two arrays share memory.

    Agrees with are_disjoint.
    """
    if not first.size or not second.size:
        return 0, 0
    distance = second.pointer - first.pointer
    (first_low, first_high), (second_low, second_high) = first.byte_range(), second.byte_range()
    return distance - (second_high - first_low), distance + first_high - second_low


def slot_bits(info: ArgumentInfo) -> int:
    """Contents of the slot of an argument."""
    return info.pointer if isinstance(info, ArrayInfo) else info.bits


def size_of(parameter: Parameter, arguments: Mapping[str, ArgumentInfo]) -> int:
    """The extent or stride that a parameter passes, as 64 bits; 0 for other kinds."""
    info = arguments[parameter.argument]
    if parameter.kind == "extent":
        return info.shape[parameter.axis]
    if parameter.kind == "stride":
        return info.strides[parameter.axis] & _MASK_64
    return 0

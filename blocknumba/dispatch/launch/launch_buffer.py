"""Launch buffers: arguments and configuration as cuLaunchKernelEx reads them."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blocknumba.dispatch.launch.driver import cupy_launch
from blocknumba.dispatch.launch.grid import grid_of

if TYPE_CHECKING:
    from blocknumba.dispatch.launch.plan import Plan

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

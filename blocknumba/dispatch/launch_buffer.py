"""The memory of a launch: everything that the driver reads, for one thread at a time."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from blocknumba.dispatch.cupy_launch import cupy_launch
from blocknumba.dispatch.grid import grid_of
from blocknumba.dispatch.launch_config import LaunchConfig

if TYPE_CHECKING:
    from blocknumba.dispatch.plan import Plan

SLOT_BYTES = 8  # one argument: the largest there is is a pointer
_WORD = (1 << 64) - 1
_as_pointer = ctypes.c_void_p.from_param


class LaunchBuffer:
    """Arguments, grid and stream of the launches of a plan.

    plan: whose kernel it launches.  compiled: that kernel.
    slots: one 8-byte slot per argument: the address of an array, the bits of a number.
    maps: the tensor maps among the parameters; see Plan.
    grid, stream: where it is aimed; None at first.
    submit: launches what is here, in the current context, to the driver's status, 0 or None for
        success; CuPy's raises instead.  It does not keep the buffer alive.  It takes no arguments
        because each would cost more than all that is left of the call.
    """

    __slots__ = ("plan", "compiled", "slots", "maps", "grid", "stream", "submit", "_config",
                 "_addresses", "_placed", "_direct")

    def __init__(self, plan: Plan):
        self.plan, self.compiled = plan, plan.compiled
        self.slots = bytearray(max(1, plan.slot_count) * SLOT_BYTES)
        self._config = LaunchConfig.of(plan.shape)
        self._direct = None if plan.shape.attributes else cupy_launch()
        self.maps = plan.maps
        self.grid: object = None
        self.stream: int | None = None
        self._placed: dict[int, ctypes.Array] = {}
        addresses = plan.addresses(ctypes.addressof(ctypes.c_char.from_buffer(self.slots)))
        self._addresses = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        # as parameters made beforehand: ctypes need not convert them at each call
        self.submit = functools.partial(
            plan.driver.launch, _as_pointer(ctypes.addressof(self._config)),
            _as_pointer(plan.handle), _as_pointer(ctypes.addressof(self._addresses)), None)

    def fill(self, slots: Sequence[int]) -> None:
        """Write arguments given as the bits of their slots."""
        for slot, bits in enumerate(slots):
            start = slot * SLOT_BYTES
            self.slots[start:start + SLOT_BYTES] = (bits & _WORD).to_bytes(SLOT_BYTES, "little")
        self.place_maps()

    def place_maps(self) -> bool:
        """Point at the tensor maps of the arrays whose addresses are in the slots.

        False where the numbers there describe no array.
        """
        words = memoryview(self.slots).cast("Q")
        for position, slots, maps in self.maps:
            encoded = maps.at(tuple([words[slot] for slot in slots]))
            if encoded is None:
                return False
            self._placed[position] = encoded  # the driver has only its address
            self._addresses[position] = ctypes.addressof(encoded)
        return True

    def aim(self, grid: object, stream: int) -> bool:
        """Say where launches go; False, and nothing is said, for a grid without programs.

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

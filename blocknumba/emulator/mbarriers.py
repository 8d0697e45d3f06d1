"""The mbarrier objects in shared memory: phases, arrivals and bytes to come."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from blocknumba.emulator.errors import SynchronizationError
from blocknumba.emulator.races import Races

MAXIMUM_COUNT = (1 << 20) - 1  # PTX ISA, "Contents of the mbarrier object"


@dataclass(eq=False, slots=True)
class MBarrier:
    """One mbarrier.

    count: arrivals that a phase expects.   pending: those still to come.
    bytes: that asynchronous copies still have to deliver.   phase: how many are complete.
    coming, past: what arrivals had seen, in this phase and in the one before.
    """

    count: int
    pending: int
    bytes: int = 0
    phase: int = 0
    coming: np.ndarray | None = None
    past: np.ndarray | None = field(default=None, repr=False)

    def arrive(self, arrivals: int, clocks: np.ndarray | None, drop: bool = False) -> None:
        """Count arrivals, which bring what they have seen.

        Errors: SynchronizationError for more arrivals than the phase expects.
        """
        if arrivals > self.pending:
            raise SynchronizationError(
                f"mbarrier: {arrivals} arrivals where {self.pending} of {self.count} are pending")
        self.pending -= arrivals
        if drop:
            self.count -= arrivals
        self._learn(clocks)
        self._advance()

    def deliver(self, size: int, clocks: np.ndarray | None) -> None:
        """Bytes of an asynchronous copy have arrived."""
        self.bytes -= size
        self._learn(clocks)
        self._advance()

    def _learn(self, clocks: np.ndarray | None) -> None:
        if clocks is not None:
            self.coming = clocks if self.coming is None else np.maximum(self.coming, clocks)

    def _advance(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count
            self.past, self.coming = self.coming, None


class MBarriers:
    """All mbarriers of the resident blocks, by their offset in shared memory."""

    def __init__(self, races: Races | None):
        self.races = races
        self._known: dict[int, MBarrier] = {}

    def create(self, offset: int, count: int) -> None:
        """mbarrier.init.

        Errors: SynchronizationError for a count out of range or an mbarrier in use.
        """
        if not 1 <= count <= MAXIMUM_COUNT:
            raise SynchronizationError(
                f"mbarrier.init: given the count {count}, accepted 1 to {MAXIMUM_COUNT}")
        old = self._known.get(offset)
        if old is not None and (old.pending != old.count or old.bytes):
            raise SynchronizationError("mbarrier.init: given an mbarrier with a phase under way",
                                       hint="mbarrier.inval first")
        self._known[offset] = MBarrier(count, count)

    def remove(self, offset: int) -> None:
        """mbarrier.inval."""
        self.at(offset)
        del self._known[offset]

    def at(self, offset: int) -> MBarrier:
        """The mbarrier at an offset.

        Errors: SynchronizationError where none was initialized.
        """
        found = self._known.get(offset)
        if found is None:
            raise SynchronizationError("mbarrier: given an address where none is initialized")
        return found

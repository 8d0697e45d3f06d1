"""In debug: the happens-before order of programs, by atomics that release and acquire.

    program 0:  store x   atomic_add f (release)      epoch 0 -> 1
    program 1:                 atomic_add f (acquire)   load x      knows release 1 of program 0
"""

from __future__ import annotations

import numpy as np

_NEVER = np.iinfo(np.int32).max
_KEPT_CLOCKS = 64


class Order:
    """The releases and acquisitions of the programs of a launch so far.

    epochs: how often each program has released.  An access in epoch e precedes an access of
    another program that knows release e + 1.  A program knows a release if it has read, with an
    atomic that acquires, what the release or a later atomic wrote there, or if it has acquired
    from a program that knew it.

    Source: PTX ISA, "Memory Consistency Model", release and acquire patterns.  An atomic that
    reads and writes carries on the release sequence of what it read; a store does not, but that
    is a race, and found as one.
    """

    def __init__(self, programs: int):
        self.epochs = np.zeros(programs, np.int32)
        self._pending: list[tuple[np.ndarray, ...]] = []
        # the log: one entry for each atomic access to an element, in their order
        self._address = np.empty(0, np.int64)
        self._program, self._epoch = np.empty(0, np.int32), np.empty(0, np.int32)
        self._acquires, self._releases = np.empty(0, bool), np.empty(0, bool)
        self._location = np.empty(0, np.int64)  # equal numbers for equal addresses
        self._clocks: dict[int, tuple[int, int, np.ndarray]] = {}

    def release(self, programs: np.ndarray) -> None:
        """Begin a new epoch of programs, each of which is there once."""
        self.epochs[programs] += 1

    def note(self, addresses: np.ndarray, programs: np.ndarray, acquires: bool,
             releases: np.ndarray) -> None:
        """Note atomic accesses, in the order of those to one address.

        addresses, programs: (accesses,), the programs after they have released.
        releases: bool (accesses,): which wrote the element, of an atomic that releases.
        """
        self._pending.append((addresses, programs, self.epochs[programs],
                              np.full(len(addresses), acquires), releases))

    def precedes(self, earlier: np.ndarray, epochs: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Whether accesses of programs in epochs precede what other programs do now.

        All three: (pairs,).
        """
        found = np.zeros(len(later), bool)
        if not self._pending and not len(self._address):
            return found
        self._take_pending()
        for program in np.unique(later):
            mine = later == program
            found[mine] = self._clock(int(program))[earlier[mine]] > epochs[mine]
        return found

    def _take_pending(self) -> None:
        if not self._pending:
            return
        columns = (self._address, self._program, self._epoch, self._acquires, self._releases)
        (self._address, self._program, self._epoch, self._acquires, self._releases) = (
            np.concatenate(arrays) for arrays in zip(columns, *self._pending))
        self._pending.clear()
        self._location = np.unique(self._address, return_inverse=True)[1]

    def _clock(self, program: int) -> np.ndarray:
        """Vector clock: last release of each program that a program knows, int32 (programs,)."""
        length, epoch, clock = self._clocks.pop(program, (-1, 0, self.epochs))
        if length != len(self._address):
            epoch, clock = int(self.epochs[program]), self._found_clock(program)
        self._clocks[program] = len(self._address), epoch, clock
        if len(self._clocks) > _KEPT_CLOCKS:
            del self._clocks[next(iter(self._clocks))]
        return clock

    def _found_clock(self, program: int) -> np.ndarray:
        """The vector clock, from the log: releases known, and known to those, to a fixed point."""
        index = np.arange(len(self._address))
        clock = np.zeros(len(self.epochs), np.int32)
        clock[program] = _NEVER
        while True:
            # an acquisition after its program's last known release is not known of
            known = self._acquires & (self._epoch < clock[self._program])
            reach = np.full(len(self._address), -1)
            reach[self._location[known]] = index[known]  # of equal ones, the last stays
            seen = self._releases & (index < reach[self._location])
            following = np.zeros_like(clock)
            following[self._program[seen]] = self._epoch[seen]
            np.maximum(following, clock, out=following)
            for other, (_, epoch, its_clock) in self._clocks.items():
                if following[other] > epoch:
                    np.maximum(following, its_clock, out=following)
            if (following == clock).all():
                clock[program] = self.epochs[program]
                return clock
            clock = following

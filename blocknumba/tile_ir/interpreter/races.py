"""In debug: the order of programs, and the races of accesses that have none.

In debug: the happens-before order of programs, by atomics that release and acquire.

    program 0:  store x   atomic_add f (release)      epoch 0 -> 1
    program 1:                 atomic_add f (acquire)   load x      knows release 1 of program 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blocknumba.errors import RaceError
from blocknumba.tile_ir.interpreter.memory import Memory
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute


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


# Kinds of accesses: loads; volatile loads, and atomics that wrote nothing; stores; atomics.
READ, POLL, WRITE, ATOMIC = range(4)
# PTX ISA, "Data Races": two accesses conflict if one writes; atomics race with none of each other
_CONFLICTS = {READ: (WRITE, ATOMIC), POLL: (WRITE,), WRITE: (WRITE, ATOMIC, READ, POLL),
              ATOMIC: (WRITE, READ)}
# a write that is ordered after these stands for them from then on
_REPLACED = {WRITE: (ATOMIC, READ, POLL), ATOMIC: (READ,)}
_VERBS = {READ: "reads", POLL: "reads", WRITE: "writes", ATOMIC: "updates"}
_RELEASING, _ACQUIRING = ("release", "acq_rel"), ("acquire", "acq_rel")


class Races:
    """The accesses of the programs of a launch to each element.

    Two loads and two atomics are kept per element, those of the first and of the last program: a
    race with a third may be missed.
    memories: all arrays; stored: the names of those that the function writes.
    """

    def __init__(self, grid: tuple[int, int, int], memories: Sequence[Memory], stored: set[str]):
        self._grid = grid
        self._order = Order(grid[0] * grid[1] * grid[2])
        self._ops: list[Op] = []
        self._numbers: dict[Op, int] = {}
        self._windows: dict[int, _Window] = {}
        address = 0
        for group in _overlapping(memories):
            if any(memory.name in stored for memory in group):
                windows, size = _windows(group, address)
                self._windows.update(windows)
                address += size

    def access(self, op: Op, kind: int, memory: Memory, offsets: np.ndarray,
               programs: np.ndarray, active: np.ndarray | None = None) -> None:
        """Note accesses and compare them with earlier ones.

        offsets: int64 (programs or 1, *shape), in memory.elements.  programs: (programs,).
        active: which of them happen; None for all.
        Errors: RaceError.
        """
        if memory.number in self._windows:
            offsets, programs = _flat(offsets, programs, active)
            self._access(op, kind, memory, offsets, programs, self._order.epochs[programs])

    def atomic(self, op: Op, memory: Memory, offsets: np.ndarray, programs: np.ndarray,
               active: np.ndarray | None, wrote: np.ndarray | None = None) -> None:
        """Note the atomic accesses of an op, after `release`.

        wrote: which of the active ones, flat, have written; None for all.
        """
        window = self._windows[memory.number]
        offsets, programs = _flat(offsets, programs, active)
        wrote = np.ones(len(offsets), bool) if wrote is None else wrote
        if attribute(op, "scope") == "cta":
            # its scope is one program: to others it is a plain write
            self._access(op, WRITE, memory, offsets, programs, self._order.epochs[programs])
            return
        semantics = attribute(op, "semantics")
        releases = semantics in _RELEASING
        # a program that acquires what was written also comes after the access itself
        epochs = self._order.epochs[programs] - releases
        for kind, chosen in ((ATOMIC, wrote), (POLL, ~wrote)):
            if chosen.any():
                self._access(op, kind, memory, offsets[chosen], programs[chosen], epochs[chosen])
        if semantics != "relaxed":
            self._order.note(window.shadow.address + window.units(offsets), programs,
                             semantics in _ACQUIRING, wrote & releases)

    def release(self, op: Op, programs: np.ndarray) -> None:
        """Begin an atomic op: programs release their earlier accesses before those of the op."""
        if attribute(op, "semantics") in _RELEASING and attribute(op, "scope") != "cta":
            self._order.release(programs)

    def _access(self, op: Op, kind: int, memory: Memory, offsets: np.ndarray,
                programs: np.ndarray, epochs: np.ndarray) -> None:
        shadow = self._windows[memory.number].shadow
        offsets = self._windows[memory.number].units(offsets)
        for other in _CONFLICTS[kind]:
            for slot in shadow.slots_of(other):
                self._compare(op, kind, memory, offsets, programs, other, slot)
        number = self._numbers.get(op)
        if number is None:
            number = self._numbers[op] = len(self._ops)
            self._ops.append(op)
        first, *last = shadow.made_slots(kind)
        taken = first.program[offsets]
        mine = (taken < 0) | (taken == programs) if last else slice(None)
        first.put(offsets[mine], programs[mine], epochs[mine], number)
        if not last:
            # the writes of this very op
            self._compare(op, kind, memory, offsets, programs, kind, first)
        for slot in last:
            others = first.program[offsets] != programs
            slot.put(offsets[others], programs[others], epochs[others], number)
        for replaced in _REPLACED.get(kind, ()):
            for slot in shadow.slots_of(replaced):
                slot.program[offsets] = -1

    def _compare(self, op: Op, kind: int, memory: Memory, offsets: np.ndarray,
                 programs: np.ndarray, other: int, slot: _Slot) -> None:
        """Find an earlier access, of kind other, of another program that is not ordered before."""
        earlier = slot.program[offsets]
        clash = np.flatnonzero((earlier >= 0) & (earlier != programs))
        if not clash.size:
            return
        offsets, programs, earlier = offsets[clash], programs[clash], earlier[clash]
        ordered = self._order.precedes(earlier, slot.epoch[offsets], programs)
        if not ordered.all():
            one = int(ordered.argmin())
            where = int(offsets[one])
            raise self._error(op, kind, memory, where, int(programs[one]), other,
                              int(earlier[one]), self._ops[slot.op[where]])

    def _error(self, op: Op, kind: int, memory: Memory, offset: int, program: int, other_kind: int,
               other_program: int, other: Op) -> RaceError:
        offset = self._windows[memory.number].offset(offset)
        index = memory.index(memory.origin + offset)
        what = f"element {index if index is not None else offset} of {memory.name}"
        line = other.loc.line if other.loc.file == op.loc.file else other.loc
        name = op.name if op.name != "atomic_rmw" else f"atomic_{op.attrs['kind']}"
        return RaceError(
            f"{name}: program {self._ids(program)} {_VERBS[kind]} {what}, which program "
            f"{self._ids(other_program)} {_VERBS[other_kind]} in line {line}; nothing orders the "
            "two",
            hint=_hint(op, kind, other, other_kind))

    def _ids(self, program: int) -> tuple[int, int, int]:
        x, y, _ = self._grid
        return program % x, program // x % y, program // (x * y)


class _Slot:
    """One access per element: its program, or -1; the program's epoch; the number of the op."""

    def __init__(self, size: int):
        self.program = np.full(size, -1, np.int32)
        self.epoch = np.zeros(size, np.int32)
        self.op = np.zeros(size, np.int32)

    def put(self, offsets: np.ndarray, programs: np.ndarray, epochs: np.ndarray, op: int) -> None:
        self.program[offsets], self.epoch[offsets], self.op[offsets] = programs, epochs, op


class _Shadow:
    """The accesses to the elements of a memory: two slots for each kind, one for stores.

    address: of its first element; no other shadow has elements at the same.
    """

    def __init__(self, size: int, address: int):
        self._size, self.address = size, address
        self._slots: dict[int, tuple[_Slot, ...]] = {}

    def slots_of(self, kind: int) -> tuple[_Slot, ...]:
        """The slots of a kind of access; none if there was no such access."""
        return self._slots.get(kind, ())

    def made_slots(self, kind: int) -> tuple[_Slot, ...]:
        """The slots of a kind of access, made if there are none."""
        if kind not in self._slots:
            self._slots[kind] = tuple([_Slot(self._size) for _ in range(1 + (kind != WRITE))])
        return self._slots[kind]


@dataclass(frozen=True, slots=True)
class _Window:
    """Location of a memory in a shadow: the unit of its first element, and units per element.

    Of an element that takes several units, the first is watched.
    """

    shadow: _Shadow
    first: int
    step: int

    def units(self, offsets: np.ndarray) -> np.ndarray:
        """Offsets in the memory as units of the shadow."""
        return offsets if self.step == 1 and not self.first else offsets * self.step + self.first

    def offset(self, unit: int) -> int:
        """The offset in the memory of the element that a unit of the shadow belongs to."""
        return (unit - self.first) // self.step


def _start(memory: Memory) -> int:
    return memory.elements.__array_interface__["data"][0]


def _overlapping(memories: Sequence[Memory]) -> list[list[Memory]]:
    """The memories in groups that share bytes: an array and views of it may be given together."""
    groups: list[list[Memory]] = []
    end = -1
    for memory in sorted((m for m in memories if m.elements.size), key=_start):
        if _start(memory) >= end:
            groups.append([])
        groups[-1].append(memory)
        end = max(end, _start(memory) + memory.elements.nbytes)
    return groups


def _windows(group: list[Memory], address: int) -> tuple[dict[int, _Window], int]:
    """The windows of memories that overlap on a shadow at an address, and its size in units."""
    start = _start(group[0])
    distances = [_start(memory) - start for memory in group]
    unit = math.gcd(*distances, *(memory.elements.itemsize for memory in group))
    size = max(d + memory.elements.nbytes for d, memory in zip(distances, group)) // unit
    shadow = _Shadow(size, address)
    return {memory.number: _Window(shadow, d // unit, memory.elements.itemsize // unit)
            for d, memory in zip(distances, group)}, size


def _flat(offsets: np.ndarray, programs: np.ndarray,
          active: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The active accesses as flat arrays: offsets, programs."""
    rank = offsets.ndim - 1
    arrays = np.broadcast_arrays(offsets, programs.astype(np.int32).reshape(-1, *(1,) * rank))
    if active is None:
        return arrays[0].ravel(), arrays[1].ravel()
    active = np.broadcast_to(active, arrays[0].shape)
    return arrays[0][active], arrays[1][active]


def _hint(op: Op, kind: int, other: Op, other_kind: int) -> str:
    """Hint how to order two accesses."""
    if any(attribute(one, "scope") == "cta" for one in (op, other) if "atomic" in one.name):
        return "scope='cta' is among the threads of one program; the default is 'gpu'"
    if kind == other_kind == WRITE:
        return "use an atomic, or let one program write it"
    order = "write it before an atomic that releases, and read it after one that acquires"
    if ATOMIC in (kind, other_kind):
        return f"use an atomic for both, or {order}"
    return f"{order}, or in a launch of its own"

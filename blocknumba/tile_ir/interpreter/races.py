"""In debug: accesses of two programs to one element, one of them a write, that nothing orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blocknumba.errors import RaceError
from blocknumba.tile_ir.interpreter.memory import Memory
from blocknumba.tile_ir.interpreter.ordering import Order
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute

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
    """What the programs of a launch have done to each element.

    Of loads and of atomics, the accesses of two programs are kept for each element, the first and
    the last: a race with a third may be missed.
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

    def access(self, op: Op, kind: int, memory: Memory, places: np.ndarray,
               programs: np.ndarray, meant: np.ndarray | None = None) -> None:
        """Note accesses and compare them with earlier ones.

        places: int64 (programs or 1, *shape), indices of memory.elements.  programs: (programs,).
        meant: which of them count, or None.
        Errors: RaceError.
        """
        if memory.number in self._windows:
            places, programs = _flat(places, programs, meant)
            self._access(op, kind, memory, places, programs, self._order.epochs[programs])

    def atomic(self, op: Op, memory: Memory, places: np.ndarray, programs: np.ndarray,
               meant: np.ndarray | None, wrote: np.ndarray | None = None) -> None:
        """Note the atomic accesses of an op, after `release`.

        wrote: which of those that are meant, flat, have written; None for all.
        """
        window = self._windows[memory.number]
        places, programs = _flat(places, programs, meant)
        wrote = np.ones(len(places), bool) if wrote is None else wrote
        if attribute(op, "scope") == "cta":
            # of one program: no other sees it as an atomic
            self._access(op, WRITE, memory, places, programs, self._order.epochs[programs])
            return
        semantics = attribute(op, "semantics")
        releases = semantics in _RELEASING
        # who acquires what it wrote comes after the access itself too
        epochs = self._order.epochs[programs] - releases
        for kind, chosen in ((ATOMIC, wrote), (POLL, ~wrote)):
            if chosen.any():
                self._access(op, kind, memory, places[chosen], programs[chosen], epochs[chosen])
        if semantics != "relaxed":
            self._order.note(window.shadow.address + window.units(places), programs,
                             semantics in _ACQUIRING, wrote & releases)

    def release(self, op: Op, programs: np.ndarray) -> None:
        """Begin an atomic op: before its accesses, programs release what they did."""
        if attribute(op, "semantics") in _RELEASING and attribute(op, "scope") != "cta":
            self._order.release(programs)

    def _access(self, op: Op, kind: int, memory: Memory, places: np.ndarray,
                programs: np.ndarray, epochs: np.ndarray) -> None:
        shadow = self._windows[memory.number].shadow
        places = self._windows[memory.number].units(places)
        for other in _CONFLICTS[kind]:
            for slot in shadow.slots_of(other):
                self._compare(op, kind, memory, places, programs, other, slot)
        number = self._numbers.get(op)
        if number is None:
            number = self._numbers[op] = len(self._ops)
            self._ops.append(op)
        first, *last = shadow.made_slots(kind)
        taken = first.program[places]
        mine = (taken < 0) | (taken == programs) if last else slice(None)
        first.put(places[mine], programs[mine], epochs[mine], number)
        if not last:
            # the writes of this very op
            self._compare(op, kind, memory, places, programs, kind, first)
        for slot in last:
            others = first.program[places] != programs
            slot.put(places[others], programs[others], epochs[others], number)
        for replaced in _REPLACED.get(kind, ()):
            for slot in shadow.slots_of(replaced):
                slot.program[places] = -1

    def _compare(self, op: Op, kind: int, memory: Memory, places: np.ndarray,
                 programs: np.ndarray, other: int, slot: _Slot) -> None:
        """Find an earlier access, of kind other, of another program that is not ordered before."""
        earlier = slot.program[places]
        clash = np.flatnonzero((earlier >= 0) & (earlier != programs))
        if not clash.size:
            return
        places, programs, earlier = places[clash], programs[clash], earlier[clash]
        ordered = self._order.precedes(earlier, slot.epoch[places], programs)
        if not ordered.all():
            one = int(ordered.argmin())
            where = int(places[one])
            raise self._error(op, kind, memory, where, int(programs[one]), other,
                              int(earlier[one]), self._ops[slot.op[where]])

    def _error(self, op: Op, kind: int, memory: Memory, place: int, program: int, other_kind: int,
               other_program: int, other: Op) -> RaceError:
        place = self._windows[memory.number].place(place)
        index = memory.index(memory.origin + place)
        what = f"element {index if index is not None else place} of {memory.name}"
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
    """Of each element, one access: its program, or -1; that one's epoch; the number of the op."""

    def __init__(self, size: int):
        self.program = np.full(size, -1, np.int32)
        self.epoch = np.zeros(size, np.int32)
        self.op = np.zeros(size, np.int32)

    def put(self, places: np.ndarray, programs: np.ndarray, epochs: np.ndarray, op: int) -> None:
        self.program[places], self.epoch[places], self.op[places] = programs, epochs, op


class _Shadow:
    """The accesses to the elements of a memory: two slots for each kind, one of stores.

    address: of its first element; no other shadow has elements at the same.
    """

    def __init__(self, size: int, address: int):
        self._size, self.address = size, address
        self._slots: dict[int, tuple[_Slot, ...]] = {}

    def slots_of(self, kind: int) -> tuple[_Slot, ...]:
        """The slots of a kind of access; none if there was no such access."""
        return self._slots.get(kind, ())

    def made_slots(self, kind: int) -> tuple[_Slot, ...]:
        """The slots of a kind of access, of which there now is one."""
        if kind not in self._slots:
            self._slots[kind] = tuple([_Slot(self._size) for _ in range(1 + (kind != WRITE))])
        return self._slots[kind]


@dataclass(frozen=True, slots=True)
class _Window:
    """Where the elements of a memory lie in a shadow: the first, and how many units each takes.

    Of an element that takes several, the first is watched.
    """

    shadow: _Shadow
    first: int
    step: int

    def units(self, places: np.ndarray) -> np.ndarray:
        """Indices of the shadow, of indices of the memory's elements."""
        return places if self.step == 1 and not self.first else places * self.step + self.first

    def place(self, unit: int) -> int:
        """The index of the memory's element that a unit of the shadow belongs to."""
        return (unit - self.first) // self.step


def _start(memory: Memory) -> int:
    return memory.elements.__array_interface__["data"][0]


def _overlapping(memories: Sequence[Memory]) -> list[list[Memory]]:
    """The memories in groups that share bytes: an array may be given twice, and parts of it."""
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


def _flat(places: np.ndarray, programs: np.ndarray,
          meant: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The accesses that are meant, one after the other: places, programs."""
    rank = places.ndim - 1
    arrays = np.broadcast_arrays(places, programs.astype(np.int32).reshape(-1, *(1,) * rank))
    if meant is None:
        return arrays[0].ravel(), arrays[1].ravel()
    meant = np.broadcast_to(meant, arrays[0].shape)
    return arrays[0][meant], arrays[1][meant]


def _hint(op: Op, kind: int, other: Op, other_kind: int) -> str:
    """How the two may be made to agree."""
    if any(attribute(one, "scope") == "cta" for one in (op, other) if "atomic" in one.name):
        return "scope='cta' is among the threads of one program; the default is 'gpu'"
    if kind == other_kind == WRITE:
        return "use an atomic, or let one program write it"
    order = "write it before an atomic that releases, and read it after one that acquires"
    if ATOMIC in (kind, other_kind):
        return f"use an atomic for both, or {order}"
    return f"{order}, or in a launch of its own"

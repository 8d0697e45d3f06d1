"""Accesses to memory: loads, stores and atomics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from blocknumba.errors import BlockIndexError, BlockValueError, require
from blocknumba.tile_ir.interpreter.affine import (
    Affine, Box, Start, Tile, as_affine, dense, row_count,
)
from blocknumba.tile_ir.interpreter.machine import Machine
from blocknumba.tile_ir.interpreter.memory import Memory, owners
from blocknumba.tile_ir.interpreter.races import POLL, READ, WRITE, Races
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ops import memory, memory as ops


# a strided copy costs about as much as gathering this many elements
_COPY_ELEMENTS = 400


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive programs whose accesses form one strided array.

    programs, box: the subset of the tiles (programs, *shape) that they access.
    address: of the first element; shape, steps: of the array.
    """

    programs: slice
    box: tuple[slice, ...]
    address: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def selection(self) -> tuple[slice, ...]:
        return (self.programs, *self.box)

    def lies_in(self, memory: Memory) -> bool:
        """Whether all its elements are in memory."""
        reach = [(n - 1) * step for n, step in zip(self.shape, self.steps)]
        first = self.address - memory.origin
        return (first + sum(r for r in reach if r < 0) >= 0
                and first + sum(r for r in reach if r > 0) < memory.elements.size)


@ops.load.interpreted
def _(machine: Machine, op: Op, pointer: Tile, mask: Tile | None = None,
      other: Tile | None = None) -> np.ndarray:
    planned = None if machine.launch.debug else _planned(machine, pointer, mask)
    if planned is None:
        return _gather(machine, op, dense(pointer), mask, other)
    memory, runs, count = planned
    shape = op.result.type.shape
    if len(runs) == 1 and runs[0].shape == (count, *shape):
        view = memory.view(runs[0].address, runs[0].shape, runs[0].steps)
        if mask is not None and not isinstance(mask, Box):
            return np.where(dense(mask), view, _filling(op, other))
        # a scalar may be the bound of a loop that writes its own memory
        return view if shape else view.copy()
    result = np.empty((count, *shape), memory.elements.dtype)
    filling = np.broadcast_to(_filling(op, other), result.shape)
    for run in runs:
        for outside in _complement(run, shape):
            result[outside] = filling[outside]
        if 0 not in run.shape:
            result[run.selection] = memory.view(run.address, run.shape, run.steps)
    return result


@ops.store.interpreted
def _(machine: Machine, op: Op, pointer: Tile, value: Tile, mask: Tile | None = None) -> None:
    planned = None if machine.launch.debug else _planned(machine, pointer, mask, value)
    if planned is None:
        _scatter(machine, op, dense(pointer), dense(value), mask)
        return
    memory, runs, count = planned
    written(machine, op, memory)
    value = dense(value)
    if len(runs) > 1 and np.may_share_memory(value, memory.bytes):
        value = value.copy()
    value = np.broadcast_to(value, (count, *value.shape[1:]))
    for run in runs:
        if 0 in run.shape:
            continue
        view = memory.view(run.address, run.shape, run.steps)
        if mask is not None and not isinstance(mask, Box):
            np.copyto(view, value[run.selection], where=dense(mask))
        else:
            view[...] = value[run.selection]


def written(machine: Machine, op: Op, memory: Memory) -> None:
    """Note that memory is about to be written.

    Errors: BlockValueError when the array is read-only.
    """
    require(memory.elements.flags.writeable, "{}: {} is read-only", op.name, memory.name,
            error=BlockValueError)
    machine.protect(memory)
    machine.launch.writes += 1


# affine addresses -----------------------------------------------------------------------------

def _planned(machine: Machine, pointer: Tile, mask: Tile | None,
             value: Tile | None = None) -> tuple[Memory, list[_Run], int] | None:
    """The memory, the strided runs and the number of programs of an access.

    None where addresses are not affine, where views would be slower, or where an element is
    outside.
    """
    where = as_affine(pointer)
    number = where and _owner(where.start)
    if not number or number > len(machine.launch.memories):
        return None
    memory = machine.launch.memories[number - 1]
    box = mask if isinstance(mask, Box) else None
    count_at_least = max([row_count(tile) for tile in (mask, value) if tile is not None], default=1)
    runs, count = _runs(where, box, count_at_least)
    if mask is not box and (len(runs) > 1 or not where.shape):
        return None
    if len(runs) > 1 and len(runs) * _COPY_ELEMENTS > count * math.prod(where.shape):
        return None
    if not all(0 in run.shape or run.lies_in(memory) for run in runs):
        return None
    return memory, runs, count


def _owner(start: Start) -> int:
    """Number of the memory that all addresses are in; 0 when there is no such one."""
    if start.rows is None:
        return int(owners(start.base))
    numbers = owners(start.column())
    return int(numbers[0]) if (numbers == numbers[0]).all() else 0


def _runs(where: Affine, box: Box | None, count_at_least: int) -> tuple[list[_Run], int]:
    """The programs, at least so many, in runs of equal boxes and evenly spaced addresses."""
    start, limits = where.start, box.limits() if box else []
    count = max([count_at_least, start.count, *map(len, limits)])
    if start.rows is None and not limits:
        return [_run(where, box, 0, count, start.base, start.gap)], count
    base = np.broadcast_to(start.column(), count)
    gaps = np.diff(base)
    changes = np.zeros(max(count - 1, 0), bool)
    for limit in limits:
        changes |= limit[1:] != limit[:-1]
    runs, first = [], 0
    while first < count:
        last = _end_of_run(gaps, changes, first, count)
        gap = int(gaps[first]) if last - first > 1 else 0
        runs.append(_run(where, box, first, last, int(base[first]), gap))
        first = last
    return runs, count


def _end_of_run(gaps: np.ndarray, changes: np.ndarray, first: int, count: int) -> int:
    """End of the run that starts at a program."""
    if first >= count - 1 or changes[first]:
        return first + 1
    breaks = changes[first:] | (gaps[first:] != gaps[first])
    stop = int(breaks.argmax())
    return first + stop + 1 if breaks[stop] else count


def _run(where: Affine, box: Box | None, first: int, last: int, base: int, gap: int) -> _Run:
    ranges, address = [], base
    for axis, extent in enumerate(where.shape):
        low, high = 0, extent
        if box is not None and box.bounds[axis] is not None:
            low, high = (int(b[first]) if isinstance(b, np.ndarray) else int(b)
                         for b in box.bounds[axis])
        ranges.append(slice(low, max(low, high)))
        address += low * where.steps[axis]
    shape = (last - first, *(r.stop - r.start for r in ranges))
    return _Run(slice(first, last), tuple(ranges), address, shape, (gap, *where.steps))


def _complement(run: _Run, shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Slices that together cover all of a run's tiles but its box."""
    for axis, (inside, extent) in enumerate(zip(run.box, shape)):
        before = (run.programs, *(slice(None),) * axis)
        if inside.start > 0:
            yield (*before, slice(0, inside.start))
        if inside.stop < extent:
            yield (*before, slice(inside.stop, None))


# any addresses --------------------------------------------------------------------------------

def located(machine: Machine, op: Op, addresses: np.ndarray,
            mask: np.ndarray | None) -> list[tuple[Memory, np.ndarray, np.ndarray | None]]:
    """Per accessed memory: the memory, offsets of all addresses in it, and which are active.

    An address is active if it points into that memory and the mask is true.  The third is None
    where all are active; otherwise the offsets of the others are 0.
    Errors: BlockIndexError when an address that mask lets through is in no array.
    """
    owner = owners(addresses if mask is None else addresses[mask])
    numbers = range(0) if not owner.size else (
        [int(owner.flat[0])] if (owner == owner.flat[0]).all() else map(int, np.unique(owner)))
    found = []
    for number in numbers:
        if not 1 <= number <= len(machine.launch.memories):
            raise _outside(machine, op, addresses, mask, None)
        memory = machine.launch.memories[number - 1]
        mine = owners(addresses) == number if mask is None else mask & (owners(addresses) == number)
        offsets = addresses - memory.origin
        inside = (memory.contains(addresses) if machine.launch.debug
                  else (offsets >= 0) & (offsets < memory.elements.size))
        if (mine & ~inside).any():
            raise _outside(machine, op, addresses, mine & ~inside, memory)
        every = bool(mine.all())
        found.append((memory, offsets if every else np.where(mine, offsets, 0),
                      None if every else mine))
    return found


def _outside(machine: Machine, op: Op, addresses: np.ndarray, wrong: np.ndarray | None,
             memory: Memory | None) -> BlockIndexError:
    """The error of the first address that is in no array."""
    wrong = np.ones(addresses.shape, bool) if wrong is None else wrong
    if memory is None:
        return BlockIndexError(f"{op.name}: the pointer is of no array")
    element = tuple(map(int, np.argwhere(wrong)[0]))
    address = int(addresses[element])
    index = memory.index(address)
    what = f"index {index}" if index is not None else f"element {address - memory.address}"
    program = machine.program(element[0])
    return BlockIndexError(
        f"{op.name}: {what} is outside {memory.name} of shape {memory.array.shape}, "
        f"in program {program}, element {element[1:]} of the tile")


def _gather(machine: Machine, op: Op, addresses: np.ndarray, mask: Tile | None,
            other: Tile | None) -> np.ndarray:
    if mask is not None:
        addresses, mask = np.broadcast_arrays(addresses, dense(mask))
    result, races = None, machine.launch.races
    for memory, offsets, active in located(machine, op, addresses, mask):
        if races is not None:
            kind = POLL if attribute(op, "volatile") else READ
            races.access(op, kind, memory, offsets, machine.programs, active)
        elements = memory.elements[offsets]
        if active is not None:
            elements = np.where(active, elements, _filling(op, other) if result is None else result)
        result = elements
    if result is None:
        filling = _filling(op, other)
        shape = np.broadcast_shapes(np.shape(filling), addresses.shape)
        return np.broadcast_to(filling, shape).copy()
    return result


def _scatter(machine: Machine, op: Op, addresses: np.ndarray, value: np.ndarray,
             mask: Tile | None) -> None:
    arrays = [addresses, value] if mask is None else [addresses, value, dense(mask)]
    addresses, value, *rest = np.broadcast_arrays(*arrays)
    if machine.launch.debug and len(addresses) < len(machine):
        shape = (len(machine), *addresses.shape[1:])
        addresses, value, *rest = (np.broadcast_to(a, shape) for a in (addresses, value, *rest))
    for memory, offsets, active in located(machine, op, addresses, rest[0] if rest else None):
        written(machine, op, memory)
        if machine.launch.races is not None:
            machine.launch.races.access(op, WRITE, memory, offsets, machine.programs, active)
        if active is None:
            memory.elements[offsets] = value
        else:
            memory.elements[offsets[active]] = value[active]


def _filling(op: Op, other: Tile | None) -> np.ndarray:
    """Elements of a masked load where nothing is read."""
    if other is not None:
        return dense(other)
    return np.zeros((1,) * (len(op.result.type.shape) + 1), op.result.type.dtype.numpy)


_STEPS = {
    "add": np.add, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}


@memory.atomic_rmw.interpreted
def _(machine: Machine, op: Op, pointer: Tile, value: Tile,
      mask: Tile | None = None) -> np.ndarray:
    addresses, value, *rest = _per_program(machine, pointer, value,
                                           *([] if mask is None else [mask]))
    result, races = np.zeros(value.shape, value.dtype), _released(machine, op)
    for memory, offsets, active in located(machine, op, addresses, rest[0] if rest else None):
        written(machine, op, memory)
        if races is not None:
            races.atomic(op, memory, offsets, machine.programs, active)
        chosen = slice(None) if active is None else active
        offsets, values = offsets[chosen].ravel(), value[chosen].ravel()
        old = _read_modify_write(op.attrs["kind"], memory.elements, offsets, values,
                                 op.result in machine.launch.used or machine.launch.debug)
        if old is not None:
            result[chosen] = old.reshape(result[chosen].shape)
    return result


@memory.atomic_cas.interpreted
def _(machine: Machine, op: Op, pointer: Tile, compare: Tile, value: Tile,
      mask: Tile | None = None) -> np.ndarray:
    addresses, compare, value, *rest = _per_program(machine, pointer, compare, value,
                                                    *([] if mask is None else [mask]))
    result, races = np.zeros(value.shape, value.dtype), _released(machine, op)
    bits = np.dtype(f"u{value.dtype.itemsize}")
    for memory, offsets, active in located(machine, op, addresses, rest[0] if rest else None):
        chosen = np.ones(offsets.shape, bool) if active is None else active
        elements = memory.elements.view(bits)
        whole = offsets
        offsets, wanted, new = (a[chosen] for a in (offsets, compare.view(bits), value.view(bits)))
        old = np.empty(offsets.shape, bits)
        for turn in _turns(offsets):
            old[turn] = elements[offsets[turn]]
            hit = turn[old[turn] == wanted[turn]]
            if hit.size:
                written(machine, op, memory)
                elements[offsets[hit]] = new[hit]
        if races is not None:
            races.atomic(op, memory, whole, machine.programs, active, old == wanted)
        result[chosen] = old.view(result.dtype)
    return result


def _released(machine: Machine, op: Op) -> Races | None:
    """In debug, the race detector, after it was told that an atomic op begins."""
    if machine.launch.races is not None:
        machine.launch.races.release(op, machine.programs)
    return machine.launch.races


def _per_program(machine: Machine, *tiles: Tile) -> list[np.ndarray]:
    """The tiles of all programs: each acts on its own, even where all agree."""
    arrays = [dense(tile) for tile in tiles]
    shape = (len(machine), *arrays[0].shape[1:])
    return [np.ascontiguousarray(np.broadcast_to(array, shape)) for array in arrays]


def _turns(offsets: np.ndarray) -> list[np.ndarray]:
    """The accesses in turns that touch no offset twice; accesses to one offset stay in order."""
    order = np.argsort(offsets, kind="stable")
    sorted_offsets = offsets[order]
    starts = np.flatnonzero(np.r_[True, sorted_offsets[1:] != sorted_offsets[:-1]])
    counts = np.diff(np.r_[starts, len(offsets)])
    turn = np.empty(len(offsets), np.int64)
    turn[order] = np.arange(len(offsets)) - np.repeat(starts, counts)
    by_turn = np.argsort(turn, kind="stable")
    return np.split(by_turn, np.cumsum(np.bincount(turn))[:-1])


def _read_modify_write(kind: str, elements: np.ndarray, offsets: np.ndarray, values: np.ndarray,
                       wanted: bool) -> np.ndarray | None:
    """Apply values in order; returns the old elements, or None when they are not wanted."""
    step = _STEPS.get(kind)
    if not wanted and step is not None:
        step.at(elements, offsets, values)
        return None
    order = np.argsort(offsets, kind="stable")
    unique, starts = np.unique(offsets[order], return_index=True)
    old = np.empty(values.shape, values.dtype)
    if len(unique) == len(offsets):
        old[...] = elements[offsets]
        elements[offsets] = values if step is None else step(old, values)
        return old
    for offset, turns in zip(unique, np.split(order, starts[1:])):
        chain = np.concatenate([elements[offset:offset + 1], values[turns]])
        if step is not None:
            chain = step.accumulate(chain)
        old[turns], elements[offset] = chain[:-1], chain[-1]
    return old

"""Atomic ops: elements one after another, in the order of programs and then of the tile."""

from __future__ import annotations

import numpy as np

from blocknumba.tile_ir.interpreter.access import located, written
from blocknumba.tile_ir.interpreter.affine import Tile, dense
from blocknumba.tile_ir.interpreter.machine import Machine
from blocknumba.tile_ir.interpreter.races import Races
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ops import atomic

_STEPS = {
    "add": np.add, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}


@atomic.atomic_rmw.interpreted
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


@atomic.atomic_cas.interpreted
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

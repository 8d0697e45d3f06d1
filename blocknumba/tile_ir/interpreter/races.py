"""In debug: elements that two programs write without atomics."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import RaceError
from blocknumba.tile_ir.interpreter.machine import Machine
from blocknumba.tile_ir.interpreter.memory import Memory


def record_writes(machine: Machine, memory: Memory, places: np.ndarray,
                  meant: np.ndarray | None) -> None:
    """Note which program writes which element of memory.

    places: int64 (programs, *shape), indices of memory.elements; meant: which count, or None.
    Errors: RaceError when another program has written one of them.
    """
    programs = machine.programs.reshape(-1, *(1,) * (places.ndim - 1))
    programs = np.broadcast_to(programs, places.shape)
    if meant is None:
        places, programs = places.ravel(), programs.ravel()
    else:
        places, programs = places[meant], programs[meant]
    writers = machine.launch.writers.get(memory.number)
    if writers is None:
        writers = machine.launch.writers[memory.number] = np.full(memory.elements.size, -1)
    earlier = writers[places]
    clash = (earlier >= 0) & (earlier != programs)
    if not clash.any():
        writers[places] = programs
        # of two programs in step, the one whose number stayed is not the other
        earlier = writers[places]
        clash = earlier != programs
    if clash.any():
        first = int(clash.argmax())
        _raise_race(machine, memory, int(places[first]), int(earlier[first]), int(programs[first]))


def _raise_race(machine: Machine, memory: Memory, place: int, one: int, two: int) -> None:
    index = memory.index(memory.origin + place)
    what = f"element {index if index is not None else place} of {memory.name}"
    x, y, _ = machine.launch.grid
    ids = [(p % x, p // x % y, p // (x * y)) for p in (one, two)]
    raise RaceError(f"store: programs {ids[0]} and {ids[1]} both write {what}",
                    hint="use an atomic, or let one program write it")

"""Many programs of one launch, running a function's ops in step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

import numpy as np

from blocknumba.errors import BlockError
from blocknumba.tile_ir.interpreter.affine import RULES, Tile, choose, dense
from blocknumba.tile_ir.interpreter.memory import Memory
from blocknumba.tile_ir.ir import Op, Region, Value, walk


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One op, ready to run.

    run: (machine, *tiles) -> tile, tuple of tiles or None.
    dead: the values of this region that no later op uses.
    """

    op: Op
    run: Callable[..., Tile | tuple[Tile, ...] | None]
    dead: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Launch:
    """What all programs of a launch share.

    grid: programs along x, y and z.
    memories: the arrays; memories[i].number is i + 1.
    plans: the steps of each region.
    used: the values that some op takes.
    writes: how many stores and atomics have changed memory.
    writers: in debug, per memory the program that wrote each element without an atomic, or -1.
    """

    grid: tuple[int, int, int]
    memories: list[Memory]
    plans: dict[Region, tuple[Step, ...]]
    used: set[Value]
    debug: bool
    output: TextIO
    writes: int = 0
    writers: dict[int, np.ndarray] = field(default_factory=dict)


class Machine:
    """Some programs of a launch and the values they have now.

    programs: their numbers in the launch, x running fastest.
    A part (see `part`) runs some of the programs and takes values it lacks from the whole.
    """

    __slots__ = ("launch", "programs", "values", "whole", "chosen", "_ids")

    def __init__(self, launch: Launch, programs: np.ndarray, whole: Machine | None = None,
                 chosen: np.ndarray | None = None):
        self.launch, self.programs, self.whole, self.chosen = launch, programs, whole, chosen
        self.values: dict[Value, Tile] = {}
        self._ids: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.programs)

    def part(self, chosen: np.ndarray) -> Machine:
        """A machine that runs the programs at the places chosen, with the values they have."""
        return Machine(self.launch, self.programs[chosen], self, chosen)

    def value(self, value: Value) -> Tile:
        """What a value of this region, or of one around it, is now."""
        found = self.values.get(value)
        if found is None:
            found = self.values[value] = choose(self.whole.value(value), self.chosen)
        return found

    def program_ids(self, axis: int) -> np.ndarray:
        """The index of each program along a grid axis, int32 (programs,)."""
        if axis not in self._ids:
            x, y, _ = self.launch.grid
            below = (1, x, x * y)[axis]
            ids = self.programs // below % self.launch.grid[axis]
            self._ids[axis] = ids.astype(np.int32)
        return self._ids[axis]

    def program(self, place: int) -> tuple[int, int, int]:
        """The program ids (x, y, z) of the program at a place."""
        return tuple(int(self.program_ids(axis)[place]) for axis in range(3))

    def run(self, region: Region, *tiles: Tile) -> tuple[Tile, ...]:
        """Run a region on its arguments; give the operands of its terminator."""
        values = self.values
        values.update(zip(region.args, tiles))
        for step in self.launch.plans[region]:
            op = step.op
            try:
                result = step.run(self, *map(self.value, op.operands))
            except BlockError as error:
                raise error.at(op.loc)
            if op.results:
                values.update(zip(op.results, result if isinstance(result, tuple) else (result,)))
            for value in step.dead:
                values.pop(value, None)
        return tuple(map(self.value, region.terminator.operands))

    def protect(self, memory: Memory) -> None:
        """Before memory is written: copy the loaded values that are views of it."""
        machine: Machine | None = self
        while machine is not None:
            for value, tile in machine.values.items():
                if (isinstance(tile, np.ndarray) and tile.base is not None
                        and np.may_share_memory(tile, memory.bytes)):
                    machine.values[value] = tile.copy()
            machine = machine.whole


def plan(region: Region) -> dict[Region, tuple[Step, ...]]:
    """The steps of a region and of those within it."""
    plans: dict[Region, tuple[Step, ...]] = {}
    own = {*region.args, *(v for op in region.ops for v in op.results)}
    seen = set(region.terminator.operands)
    steps = []
    for op in reversed(region.ops[:-1]):
        reads = {*op.operands, *(v for inner in op.regions for o in walk(inner)
                                 for v in o.operands)}
        dead = (reads | set(op.results)) & own - seen
        seen |= reads
        for inner in op.regions:
            plans.update(plan(inner))
        steps.append(Step(op, _action(op), tuple(dead)))
    plans[region] = tuple(reversed(steps))
    return plans


def _action(op: Op) -> Callable[..., Tile | tuple[Tile, ...] | None]:
    """What runs an op: (machine, *tiles) -> its results."""
    execute, evaluate, attrs = op.opdef.execute, op.opdef.evaluate, op.attrs
    if execute is not None:
        return lambda machine, *tiles: execute(machine, op, *tiles)
    assert evaluate is not None, f"{op.name} has no NumPy meaning"

    def pure(machine: Machine, *tiles: Tile) -> Tile | tuple[Tile, ...]:
        return evaluate(*map(dense, tiles), **attrs)

    rule = RULES.get(op.name)
    if rule is None or not _may_be_affine(op):
        return pure

    def affine(machine: Machine, *tiles: Tile) -> Tile | tuple[Tile, ...]:
        result = rule(op, *tiles)
        return pure(machine, *tiles) if result is None else result

    return affine


def _may_be_affine(op: Op) -> bool:
    """Whether the result is a tile of integers, pointers or bools."""
    kind = op.result.type
    return bool(kind.shape) and (kind.is_pointer or not kind.dtype.is_float)

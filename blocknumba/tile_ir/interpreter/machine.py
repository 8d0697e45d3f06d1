"""Many programs of one launch, running a function's ops in step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from blocknumba.errors import BlockError
from blocknumba.tile_ir.interpreter.affine import Affine, Start, Tile, choose
from blocknumba.tile_ir.interpreter.memory import Memory
from blocknumba.tile_ir.interpreter.padding import require_valid_addresses, require_no_padding
from blocknumba.tile_ir.interpreter.plan import Step
from blocknumba.tile_ir.interpreter.races import Races
from blocknumba.tile_ir.interpreter.shadows import Results, run_through
from blocknumba.tile_ir.interpreter.unwritten import missing_use, use_error
from blocknumba.tile_ir.ir.function import Op, Region, Value


@dataclass(slots=True, eq=False)
class Launch:
    """State that all programs of a launch share.

    grid: programs along x, y and z.
    memories: the arrays; memories[i].number is i + 1.
    plans: the steps of each region.
    used: the values that some op takes.
    writes: how many stores and atomics have changed memory.
    races: in debug, the accesses of programs to each element.
    """

    grid: tuple[int, int, int]
    memories: list[Memory]
    plans: dict[Region, tuple[Step, ...]]
    used: frozenset[Value]
    debug: bool
    output: TextIO
    writes: int = 0
    races: Races | None = None


class Machine:
    """Some programs of a launch and the values they have now.

    programs: their numbers in the launch, x running fastest.
    whole: the machine that this one is a subset of, or None; it has the values that this one
        lacks.
    chosen: indices of the programs in whole.
    """

    __slots__ = ("launch", "programs", "values", "whole", "chosen", "_ids")

    def __init__(self, launch: Launch, programs: np.ndarray, whole: Machine | None = None,
                 chosen: np.ndarray | None = None):
        self.launch, self.programs, self.whole, self.chosen = launch, programs, whole, chosen
        self.values: dict[Value, Tile] = {}
        self._ids: dict[int, Affine] = {}

    def __len__(self) -> int:
        return len(self.programs)

    def subset(self, chosen: np.ndarray) -> Machine:
        """A machine that runs the programs at the indices chosen, with the values they have."""
        return Machine(self.launch, self.programs[chosen], self, chosen)

    def value(self, value: Value) -> Tile:
        """The tile of a value of this region, or of one around it."""
        found = self.values.get(value)
        if found is None:
            found = self.values[value] = choose(self.whole.value(value), self.chosen)
        return found

    def program_ids(self, axis: int) -> Affine:
        """The index of each program along a grid axis, an int32 scalar."""
        if axis not in self._ids:
            start = (self.whole.program_ids(axis).start.chosen(self.chosen) if self.whole
                     else self._id_start(axis))
            extent = self.launch.grid[axis]
            self._ids[axis] = Affine(start, (), (), np.dtype(np.int32), 0, extent - 1)
        return self._ids[axis]

    def _id_start(self, axis: int) -> Start:
        """The ids of programs whose numbers are consecutive."""
        x, y, _ = self.launch.grid
        below, extent = (1, x, x * y)[axis], self.launch.grid[axis]
        first, last = (int(self.programs[index]) // below for index in (0, -1))
        if first == last:
            return Start(first % extent)
        if below == 1 and first % extent + last - first < extent:
            return Start(first % extent, 1, None, len(self))
        return Start(0, 0, self.programs // below % extent, len(self))

    def program(self, index: int) -> tuple[int, int, int]:
        """The program ids (x, y, z) of the program at an index."""
        number, (x, y, _) = int(self.programs[index]), self.launch.grid
        return number % x, number // x % y, number // (x * y)

    def run(self, region: Region, *tiles: Tile) -> tuple[Tile, ...]:
        """Run a region on its arguments; returns the operands of its terminator."""
        values, debug = self.values, self.launch.debug
        values.update(zip(region.args, tiles))
        for step in self.launch.plans[region]:
            op = step.op
            try:
                tiles = [values[v] if v in values else self.value(v) for v in op.operands]
                result = self._step(step, tiles) if debug else step.run(self, *tiles)
            except BlockError as error:
                raise error.at(op.loc)
            if isinstance(result, tuple):
                values.update(zip(op.results, result))
            elif op.results:
                values[op.results[0]] = result
            for value in step.dead:
                values.pop(value, None)
        return tuple(map(self.value, region.terminator.operands))

    def _step(self, step: Step, tiles: list[Tile]) -> Results:
        """Run one op in debug, where operands may be Shadowed."""
        self.require_written(step.op, tiles)
        require_valid_addresses(step.op, tiles, self.program)
        results = run_through(step.op, tiles, lambda *given: step.run(self, *given))
        require_no_padding(step.op, tiles, results, self.program)
        return results

    def require_written(self, op: Op, tiles: Sequence[Tile]) -> None:
        """In debug, before an op with effects.

        Errors: BlockNameError when it uses elements of operands that nobody has written.
        """
        found = missing_use(op, tiles)
        if found is None:
            return
        value, missing, origin = found
        program_index, *index = map(int, np.argwhere(missing)[0])
        raise use_error(op, value, origin, self.program(program_index), tuple(index))

    def protect(self, memory: Memory) -> None:
        """Before memory is written: copy the loaded values that are views of it."""
        machine: Machine | None = self
        while machine is not None:
            for value, tile in machine.values.items():
                if (isinstance(tile, np.ndarray) and tile.base is not None
                        and np.may_share_memory(tile, memory.bytes)):
                    machine.values[value] = tile.copy()
            machine = machine.whole

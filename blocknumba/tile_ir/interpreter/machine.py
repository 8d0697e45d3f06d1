"""Execution of many programs in step, by prepared regions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from blocknumba.errors import BlockError
from blocknumba.tile_ir.interpreter.affine import (
    Affine, Start, Tile, Uniform, as_uniform, choose, dense,
)
from blocknumba.tile_ir.interpreter.memory import Memory
from blocknumba.tile_ir.interpreter.padding import require_no_padding, require_valid_addresses
from blocknumba.tile_ir.interpreter.races import Races
from blocknumba.tile_ir.interpreter.rules import RULES
from blocknumba.tile_ir.interpreter.shadows import Results, run_through
from blocknumba.tile_ir.interpreter.unwritten import missing_use, use_error
from blocknumba.tile_ir.ir.function import Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE
from blocknumba.tile_ir.ops.numerics import Wide


Action = Callable[..., Tile | tuple[Tile, ...] | None]

# ops whose results never share memory with their operands
_COPYING = frozenset(("reduce", "arg_reduce", "store", "atomic_rmw", "atomic_cas", "print"))


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One op, ready to run.

    run: (machine, *tiles) -> its results.
    dead: the values of this region that no later op uses.
    """

    op: Op
    run: Action
    dead: tuple[Value, ...]


def plan(region: Region) -> dict[Region, tuple[Step, ...]]:
    """The steps of a region and of those within it."""
    plans: dict[Region, tuple[Step, ...]] = {}
    own = {*region.args, *(v for op in region.ops for v in op.results)}
    later = set(region.terminator.operands)
    spare = _unshared(region)
    steps = []
    for op in reversed(region.ops[:-1]):
        reads = {*op.operands, *(v for inner in op.regions for o in walk(inner)
                                 for v in o.operands)}
        dead = {value for value in (*reads, *op.results) if value in own and value not in later}
        later |= reads
        for inner in op.regions:
            plans.update(plan(inner))
        steps.append(Step(op, _action(op, dead & spare), tuple(dead)))
    plans[region] = tuple(reversed(steps))
    return plans


def _unshared(region: Region) -> set[Value]:
    """Results of this region's ops that own their array, and of which no op makes a view."""
    users: defaultdict[Value, list[Op]] = defaultdict(list)
    for op in walk(region):
        for value in op.operands:
            users[value].append(op)
    return {op.result for op in region.ops if _takes_out(op)
            and all(_takes_out(user) or user.name in _COPYING for user in users[op.result])}


def _takes_out(op: Op) -> bool:
    """Whether the op is evaluated by a function that can write its result into an array."""
    return isinstance(op.opdef.evaluate, np.ufunc | Wide)


def _action(op: Op, spare: set[Value]) -> Action:
    """The action of an op: (machine, *tiles) -> its results.

    spare: operands whose arrays the result may take over.
    """
    execute, evaluate, attrs = op.opdef.execute, op.opdef.evaluate, op.attrs
    if execute is not None:
        return lambda machine, *tiles: execute(machine, op, *tiles)
    assert evaluate is not None, f"{op.name} has no NumPy numerics"
    if op.opdef.has(ELEMENTWISE) and op.result.type.shape:
        on_arrays = _elementwise(op, spare)
    else:
        def on_arrays(*tiles: Tile) -> np.ndarray | tuple[np.ndarray, ...]:
            return evaluate(*map(dense, tiles), **attrs)

    rule = RULES.get(op.name)
    if rule is None:
        return lambda machine, *tiles: on_arrays(*tiles)

    def by_rule(machine: object, *tiles: Tile) -> Tile | tuple[Tile, ...]:
        result = rule(op, *tiles)
        return on_arrays(*tiles) if result is None else result

    return by_rule


def _elementwise(op: Op, spare: set[Value]) -> Callable[..., Tile]:
    """Evaluation of an elementwise op on tiles, without repeating uniform operands."""
    evaluate, attrs, shape = op.opdef.evaluate, op.attrs, op.result.type.shape
    same = [i for i, v in enumerate(op.operands)
            if v in spare and _takes_out(op) and v.type == op.result.type]

    def on_arrays(*tiles: Tile) -> Tile:
        uniform = [as_uniform(tile) for tile in tiles]
        if all(uniform):
            return Uniform(evaluate(*[u.element for u in uniform], **attrs), shape)
        arrays = [u.thin() if u else dense(tile) for u, tile in zip(uniform, tiles)]
        for position in same:
            array = arrays[position]
            # what a rule made dense may be a read-only view
            if (len(array) == max(map(len, arrays)) and not uniform[position]
                    and array.flags.writeable):
                return evaluate(*arrays, out=array)
        return evaluate(*arrays, **attrs)

    return on_arrays


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

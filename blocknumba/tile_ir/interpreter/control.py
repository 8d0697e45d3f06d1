"""Control flow of many programs: programs that diverge run one group after the other."""

from __future__ import annotations

import numpy as np

from blocknumba.errors import BlockValueError, LaunchError, require
from blocknumba.tile_ir.interpreter.affine import Tile, choose, dense, merge
from blocknumba.tile_ir.interpreter.machine import Machine
from blocknumba.tile_ir.ir.function import Op, walk
from blocknumba.tile_ir.ir.opdef import READS
from blocknumba.tile_ir.ops import control


@control.if_.interpreted
def _(machine: Machine, op: Op, condition: np.ndarray) -> tuple[Tile, ...]:
    then, otherwise = op.regions
    if condition.all():
        return machine.run(then)
    if not condition.any():
        return machine.run(otherwise)
    groups = []
    for chosen, region in ((condition, then), (~condition, otherwise)):
        indices = np.flatnonzero(chosen)
        groups.append((indices, _kept(machine.subset(indices).run(region))))
    return _merged(len(machine), groups)


@control.for_.interpreted
def _(machine: Machine, op: Op, start: Tile, stop: Tile, step: Tile,
      *carried: Tile) -> tuple[Tile, ...]:
    start, stop, step = dense(start), dense(stop), dense(step)
    iterations = _trip_counts(start, stop, step)
    runners = _Runners(machine)
    state = (iterations, start, step, *carried)
    done = 0
    while True:
        state = runners.keep(state[0] > done, state, results=3)
        if state is None:
            return runners.results()
        iterations, index, step, *carried = state
        carried = runners.machine.run(op.regions[0], index, *carried)
        state = (iterations, index + step, step, *carried)
        done += 1


@control.loop.interpreted
def _(machine: Machine, op: Op, *carried: Tile) -> tuple[Tile, ...]:
    runners = _Runners(machine)
    state = (np.ones(1, bool), *carried)
    waits = any(inner.opdef.has(READS) for inner in walk(op.regions[0]))
    while True:
        writes = machine.launch.writes
        following = runners.machine.run(op.regions[0], *state[1:])
        if machine.launch.debug:
            runners.machine.require_written(op.regions[0].terminator, following)
            following = (dense(following[0]), *following[1:])
        if waits and machine.launch.writes == writes and _is_stuck(state[1:], following):
            raise LaunchError("while: a program waits for ever, for a value that no program that "
                              "has started will write",
                              hint="programs run in the order of their ids; wait only for earlier "
                                   "ones, on a value read by an atomic or a volatile load")
        state = runners.keep(following[0], following, results=1)
        if state is None:
            return runners.results()


def _is_stuck(before: tuple[Tile, ...], following: tuple[Tile, ...]) -> bool:
    """Whether an iteration that wrote nothing left all carried values and no program ends."""
    condition, *after = following
    pairs = sorted(zip(before, after), key=lambda pair: np.size(pair[0]))
    return bool(condition.all()) and all(_is_same(a, b) for a, b in pairs)


def _is_same(a: Tile, b: Tile) -> bool:
    if a is b:
        return True
    a, b = dense(a), dense(b)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _trip_counts(start: np.ndarray, stop: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The length of Python's range(start, stop, step), uint64."""
    require(step.all(), "range: step must not be 0", error=BlockValueError)
    wide = np.int64 if start.dtype.kind == "i" else np.uint64
    start, stop, step = (x.astype(wide) for x in (start, stop, step))
    rising = step > 0
    # differences of 64-bit ints of either sign are exact modulo 2**64
    first, last, size = (x.view(np.uint64) for x in (start, stop, step))
    span = np.where(rising, last - first, first - last)
    size = np.where(rising, size, ~size + np.uint64(1))
    some = np.where(rising, start < stop, stop < start)
    return np.where(some, (span - np.uint64(1)) // size + np.uint64(1), np.uint64(0))


class _Runners:
    """The programs that are still in a loop, and the results of those that have left it."""

    def __init__(self, machine: Machine):
        self.whole = self.machine = machine
        self._indices = np.arange(len(machine))
        self._left: list[tuple[np.ndarray, tuple[Tile, ...]]] = []

    def keep(self, going: np.ndarray, state: tuple[Tile, ...],
             results: int) -> tuple[Tile, ...] | None:
        """The state of the programs that go on; None when there is none.

        going: bool (programs or 1,); state[results:] are the results of those that leave.
        """
        if going.all():
            return state
        if not going.any():
            self._left.append((self._indices, tuple(state[results:])))
            return None
        leave, stay = np.flatnonzero(~going), np.flatnonzero(going)
        self._left.append((self._indices[leave],
                           _kept(tuple(choose(tile, leave) for tile in state[results:]))))
        self._indices = self._indices[stay]
        self.machine = self.whole.subset(self._indices)
        return tuple(choose(tile, stay) for tile in state)

    def results(self) -> tuple[Tile, ...]:
        """The results of all programs, when none is left."""
        return _merged(len(self.whole), self._left)


def _kept(tiles: tuple[Tile, ...]) -> tuple[Tile, ...]:
    """The tiles, copied where a later write to memory could change them."""
    return tuple(tile.copy() if isinstance(tile, np.ndarray) and tile.base is not None else tile
                 for tile in tiles)


def _merged(count: int, groups: list[tuple[np.ndarray, tuple[Tile, ...]]]) -> tuple[Tile, ...]:
    """The results of all programs from those of groups of them."""
    if len(groups) == 1:
        return groups[0][1]
    return tuple(merge(count, [(indices, tile) for (indices, _), tile in zip(groups, tiles)])
                 for tiles in zip(*(tiles for _, tiles in groups)))

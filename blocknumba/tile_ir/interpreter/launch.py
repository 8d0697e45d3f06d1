"""Run a tile IR function on NumPy arrays: a grid of programs, in chunks that fit the cache."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TextIO

import numpy as np

from blocknumba.tile_ir.analysis.provenance import stored
from blocknumba.tile_ir.interpreter import access, control, effects  # noqa: F401
from blocknumba.tile_ir.interpreter.machine import Launch, Machine, plan
from blocknumba.tile_ir.interpreter.memory import bind
from blocknumba.tile_ir.interpreter.races import Races
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ir.opdef import may_wait

# Of the largest tile of all programs of a chunk.  Addresses cost the same for any number of
# programs, so a chunk is as large as a few such tiles fit a last-level cache.
CHUNK_BYTES = 1 << 20
CHUNK_PROGRAMS = 1 << 14


def run(fn: Function, grid: tuple[int, int, int], arguments: Mapping[str, object], *,
        debug: bool = False, output: TextIO | None = None) -> None:
    """Run every program of a grid once: `Interpreter(fn).run`, which see."""
    Interpreter(fn).run(grid, arguments, debug=debug, output=output)


class Interpreter:
    """A function made ready to run, any number of times and from any thread."""

    def __init__(self, fn: Function):
        self.function = fn
        self._plans = plan(fn.body)
        self._used = frozenset(v for op in walk(fn.body) for v in op.operands)
        self._chunk = _chunk_size(fn)

    def run(self, grid: tuple[int, int, int], arguments: Mapping[str, object], *,
            debug: bool = False, output: TextIO | None = None) -> None:
        """Run every program of a grid; arrays among the arguments are changed in place.

        arguments: NumPy arrays and scalars by name, as the function's parameters name them.
        debug: find accesses outside arrays, races between two programs, failed check_index ops
            and false assumptions, elements of values that are used though nobody has written them
            (`undefined`), and reductions that elements change which no load has read; slower.
            Elements of an array that nobody has written are the caller's and are not tracked.
            Without it, an access outside the memory between an array's first and last element is
            still an error: this machine cannot read there.
        output: where print ops write; standard output by default.

        The order of programs: a chunk of them runs in step, op by op; where they diverge, the
        programs that take one branch run before the others; chunks run one after the other.
        Within an op, atomics happen in the order of program numbers.  A function with a `loop`
        that reads by an atomic or a volatile load, as a spin lock does, runs one program at a
        time, in order: a program may wait for an earlier one, and waiting for a later one is an
        error.
        Errors: BlockIndexError, BlockAssertionError, BlockNameError, LaunchError, PaddingError,
        RaceError, each with the line.
        """
        values, memories = bind(self.function, arguments)
        races = Races(grid, memories, stored(self.function)) if debug else None
        launch = Launch(grid, memories, self._plans, self._used, debug, output or sys.stdout,
                        races=races)
        total = grid[0] * grid[1] * grid[2]
        with np.errstate(all="ignore"):
            for first in range(0, total, self._chunk):
                programs = np.arange(first, min(first + self._chunk, total))
                Machine(launch, programs).run(self.function.body, *values)


def _chunk_size(fn: Function) -> int:
    """Number of programs that run in step."""
    if any(op.name == "loop" and any(map(may_wait, walk(op.regions[0])))
           for op in walk(fn.body)):
        return 1
    sizes = [v.type.size * v.type.dtype.bytes for op in walk(fn.body) for v in op.results
             if isinstance(v.type.dtype, DType)]
    return max(1, min(CHUNK_PROGRAMS, CHUNK_BYTES // max(sizes, default=1)))

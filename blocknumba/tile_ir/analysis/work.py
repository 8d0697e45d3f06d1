"""The work of one program, as numbers: what it loads, stores, multiplies and computes, how often.

    for k in bn.spans(x.shape[1], BK):        loop 0: 32 iterations
        sums += x[m, k] @ w[k, n]             load (128, 64), load (64, 256), dot (1, 128, 256, 64)
    out[m, n] = sums                          store (128, 256)

Bounds of loops are evaluated for some programs of the launch, with its arguments.  What is not
known before the launch runs, as a bound that is loaded, counts as UNKNOWN_TRIPS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from blocknumba.tile_ir.analysis.products import Numbers, Products, products
from blocknumba.tile_ir.analysis.provenance import origins
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, PURE, READS, WRITES
from blocknumba.tile_ir.ir.types import PointerType, TileType, ViewType
from blocknumba.tile_ir.ir.uses import carried, controls
from blocknumba.tile_ir.ops.control import for_, if_, loop
from blocknumba.tile_ir.ops.create import num_programs, program_id
from blocknumba.tile_ir.ops.dot import dot
from blocknumba.tile_ir.ops.reduce import arg_reduce, reduce
from blocknumba.tile_ir.ops.scan import reduce_with, scan
from blocknumba.tile_ir.ops.views import elements

UNKNOWN_TRIPS = 16
SAMPLES = 5  # programs for which loops are counted, from the first to the last
_EXCHANGES = frozenset((arg_reduce, reduce, reduce_with, scan))
_POINTER_BITS = 64


@dataclass(frozen=True, slots=True)
class Task:
    """The work of one op each time it runs.

    kind: "load", "store" (atomics too), "dot", "exchange" (reductions and scans), "carried" (a tile
        that a loop keeps), or "compute".  Addresses are neither carried nor computed: threads
        compute them from few numbers.
    name: of the op.
    shape: extents of the tile; of a dot: batches, rows, columns, depth.
    bits: of an element; of a dot, of its operands'.
    dtype: its name.
    share: fraction of the programs, or of the iterations, that do it.
    loop: index of the innermost loop around it; -1 outside of all.
    limits: extents of the array along the axes of a tile that is loaded or stored; infinite where
        nothing is known.
    array: the argument that is loaded from or stored to; empty if it may be any of several.
    unit: the axis along which elements are neighbours in memory.
    """

    kind: str
    name: str
    shape: tuple[Numbers, ...]
    bits: int
    dtype: str
    share: Numbers = 1.0
    loop: int = -1
    limits: tuple[Numbers, ...] = ()
    array: str = ""
    unit: int = -1

    @property
    def elements(self) -> Numbers:
        """Elements of the tile, or multiply-adds of the dot."""
        return math.prod(self.shape)

    @property
    def inside(self) -> Numbers:
        """Elements that lie inside the array."""
        return math.prod(np.minimum(extent, limit)
                         for extent, limit in zip(self.shape, self.limits))


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: the index of the one around it, -1 for none, and its number of iterations.

    trips: the mean of programs, in proportion to the step: iterations are rounded up only where
    programs take turns, as then each one's rest is another one's iteration.
    most: of the program that has most.
    """

    parent: int
    trips: Numbers
    most: Numbers


@dataclass(frozen=True, slots=True)
class Work:
    """The tasks of a program, in order, its loops, and what decides the warps of its dots."""

    tasks: tuple[Task, ...]
    loops: tuple[Loop, ...]
    products: Products

    def times(self, task: Task) -> Numbers:
        """Number of times that a program does a task."""
        times, index = task.share, task.loop
        while index >= 0:
            times, index = times * np.ceil(self.loops[index].trips), self.loops[index].parent
        return times

    @property
    def unevenness(self) -> Numbers:
        """Iterations of the longest program by those of the mean one, of all loops."""
        total, longest = 0.0, 0.0
        for index, one in enumerate(self.loops):
            tasks = sum(task.loop == index for task in self.tasks)
            total, longest = total + one.trips * tasks, longest + one.most * tasks
        return np.where(total, longest / np.where(total, total, 1), 1.0)

    def of(self, *kinds: str) -> tuple[Task, ...]:
        """The tasks of some kinds."""
        return tuple(task for task in self.tasks if task.kind in kinds)


def work_of(fn: Function, arguments: Mapping[tuple[str, str, int | None], int],
            grid: tuple[int, int, int]) -> Work:
    """The work of a program of a function.

    arguments: (kind, argument, axis) of parameters, as in Parameter, with their values, as far as
        they are ints.
    """
    reader = _Reader(fn, grid)
    for parameter, value in zip(fn.parameters, fn.body.args, strict=True):
        key = parameter.kind, parameter.argument, parameter.axis
        if parameter.is_pointer:
            reader.known[value] = np.zeros(1, np.int64)
        elif key in arguments:
            reader.known[value] = np.array([arguments[key]], value.type.dtype.numpy)
    reader.region(fn.body, -1, 1.0)
    return Work(tuple(reader.tasks), tuple(reader.loops), products(fn))


class _Reader:
    """Walks the regions of a function.

    known: scalars, as arrays of one element or one for each sampled program.
    """

    def __init__(self, fn: Function, grid: tuple[int, int, int]):
        self.known: dict[Value, np.ndarray] = {}
        self.tasks: list[Task] = []
        self.loops: list[Loop] = []
        self._grid, self._origins = grid, origins(fn)
        chosen = np.unique(np.linspace(0, max(math.prod(grid) - 1, 0), SAMPLES).astype(np.int64))
        x, y, _ = (max(extent, 1) for extent in grid)  # what a program would do, if there were any
        self._programs = chosen % x, chosen // x % y, chosen // (x * y)

    def region(self, region: Region, loop_index: int, share: float) -> None:
        """Read the ops of a region that a share of the programs runs."""
        for op in region.ops:
            if op.opdef is for_:
                self._for(op, loop_index, share)
            elif op.opdef is loop:
                self._loop(op, loop_index, share, float(UNKNOWN_TRIPS), UNKNOWN_TRIPS)
            elif op.opdef is if_:
                self._if(op, loop_index, share)
            else:
                self._op(op, loop_index, share)

    def _for(self, op: Op, loop_index: int, share: float) -> None:
        bounds, (region,) = [self.known.get(value) for value in controls(op)], op.regions
        trips, most, middle = float(UNKNOWN_TRIPS), float(UNKNOWN_TRIPS), bounds[0]
        if all(bound is not None for bound in bounds):
            start, stop, step = (bound.astype(np.int64) for bound in bounds)
            counts = np.maximum((stop - start) / np.where(step == 0, 1, step), 0)
            most = float(counts.max())
            if 0 < np.ptp(start) < step.min():  # programs take turns: all of them do all
                counts = np.ceil(counts)
            trips = float(counts.mean())
            middle = (start + counts.astype(np.int64) // 2 * step).astype(bounds[0].dtype)
        if middle is not None:
            counter, *_ = region.args
            self.known[counter] = middle
        self._loop(op, loop_index, share, trips, most)

    def _loop(self, op: Op, parent: int, share: float, trips: float, most: float) -> None:
        index = len(self.loops)
        self.loops.append(Loop(parent, trips, most))
        for value in carried(op).args:
            if value.type.shape and not _is_pointer(value.type):
                self.tasks.append(_task("carried", op, value.type, loop=index))
        (region,) = op.regions
        self.region(region, index, share)

    def _if(self, op: Op, loop_index: int, share: float) -> None:
        condition = self.known.get(op.condition)
        fraction = 0.5 if condition is None else float(condition.mean())
        for region, part in zip(op.regions, (fraction, 1 - fraction)):
            if part:
                self.region(region, loop_index, share * part)

    def _op(self, op: Op, loop_index: int, share: float) -> None:
        if op.opdef is program_id:
            self.known[op.result] = self._programs[op.attrs["axis"]].astype(np.int32)
        elif op.opdef is num_programs:
            self.known[op.result] = np.array([self._grid[op.attrs["axis"]]], np.int32)
        elif op.results and all(value.type.is_scalar for value in op.results):
            self._evaluate(op)
        if op.opdef.has(READS | WRITES):
            self._access(op, loop_index, share)
        elif op.opdef is dot:
            x, y = op.a.type, op.b.type
            shape = (math.prod(x.shape[:-2]), x.shape[-2], y.shape[-1], x.shape[-1])
            self.tasks.append(Task("dot", op.name, shape, x.dtype.bits,
                                   f"{x.dtype} {op.attrs.get('precision', '')}".strip(),
                                   share, loop_index))
        elif op.opdef in _EXCHANGES:
            tile = op.tiles[0].type if op.opdef in (reduce_with, scan) else op.x.type
            self.tasks.append(_task("exchange", op, tile, share, loop_index))
        elif (op.opdef.has(ELEMENTWISE) and op.result.type.shape
                and not _is_pointer(op.result.type)):
            self.tasks.append(_task("compute", op, op.result.type, share, loop_index))

    def _evaluate(self, op: Op) -> None:
        """Evaluate an op on scalars, if it is pure and its operands are known."""
        operands = [self.known.get(value) for value in op.operands]
        if not op.opdef.has(PURE) or op.opdef.evaluate is None or any(
                operand is None for operand in operands):
            return
        with np.errstate(all="ignore"):
            found = op.opdef.evaluate(*operands, **op.attrs)
        for value, array in zip(op.results, found if isinstance(found, tuple) else (found,)):
            self.known[value] = array

    def _access(self, op: Op, loop_index: int, share: float) -> None:
        pointer = op.pointer
        tile = pointer.type
        if not _is_pointer(tile):
            return
        element = tile.dtype.pointee
        limits, unit = (math.inf,) * len(tile.shape), len(tile.shape) - 1
        made = pointer.owner
        if made is not None and made.opdef is elements:
            limits, unit = self._view(made)
        arrays = self._origins.get(pointer, ())
        self.tasks.append(Task(
            "store" if op.opdef.has(WRITES) else "load", op.name, tile.shape, element.bits,
            str(element), share, loop_index, limits, next(iter(arrays)) if len(arrays) == 1 else "",
            unit))

    def _view(self, op: Op) -> tuple[tuple[float, ...], int]:
        """Limits of the elements of a view, and the axis of the tile that has stride 1."""
        view, sizes = self.known.get(op.view), op.attrs["sizes"]
        pointers, _ = op.results
        rank = len(pointers.type.shape)
        kept = [axis for axis, size in enumerate(sizes) if size is not None]
        if view is None or len(kept) != rank:  # an index is a tile
            return (math.inf,) * rank, rank - 1
        extents, strides = np.split(view[0, 1:], 2)
        unit = [number for number, axis in enumerate(kept) if strides[axis] == 1]
        return tuple(float(extents[axis]) for axis in kept), unit[-1] if unit else -1


def _task(kind: str, op: Op, tile: TileType, share: float = 1.0, loop: int = -1) -> Task:
    bits = _POINTER_BITS if _is_pointer(tile) else tile.dtype.bits
    return Task(kind, op.name, tile.shape, bits, str(tile.dtype), share, loop)


def _is_pointer(tile: TileType) -> bool:
    return isinstance(tile.dtype, PointerType | ViewType)

"""Random accesses to a matrix: affine addresses, and masks that are more or less its bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Parameter, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import PointerType, TileType, float16, int32

PROGRAMS = 2  # along each of two grid axes
ROUNDS = 3  # of the loop that every access is in
MATRICES, ROWS, COLUMNS, STRIDE = 2, 24, 40, 48
MATRIX_STRIDE = 24 * 48

_PARAMETERS = (
    (Parameter("pointer", "x", divisibility=16), PointerType(float16)),
    (Parameter("pointer", "out", divisibility=16), PointerType(float16)),
    (Parameter("value", "rows"), int32), (Parameter("value", "columns"), int32),
    (Parameter("value", "stride", divisibility=16), int32),
    (Parameter("value", "matrix_stride", divisibility=16), int32),
    (Parameter("value", "matrices"), int32),
)
NUMBERS = {"rows": ROWS, "columns": COLUMNS, "stride": STRIDE, "matrix_stride": MATRIX_STRIDE,
           "matrices": MATRICES}


@dataclass(frozen=True)
class Start:
    """program * per_program + iteration * per_iteration + constant."""

    per_program: int
    per_iteration: int
    constant: int


@dataclass(frozen=True)
class AxisAccess:
    """How an axis of a tile lies along one of the array.

    extent: of the tile.  bound: "", "parameter" or "constant": what the mask compares with.
    slack: what is added to the bound, 0 where the mask is right.
    lower: "", "right" or "wrong": a check that the index is not negative, or below 1.
    summed: start + index < bound, instead of index < bound - start.
    """

    extent: int
    start: Start
    bound: str
    slack: int
    lower: str
    summed: bool


@dataclass(frozen=True)
class Access:
    """A load of a tile by every program in every iteration of a loop.

    rows, columns: its axes.  transposed: columns first.  carried: the loop carries pointers.
    constant_stride: the stride of rows is a number.  matrix: how the start in a stack of
    matrices is checked: None where there is one matrix, else "", "right" or "wrong".
    """

    rows: AxisAccess
    columns: AxisAccess
    transposed: bool
    carried: bool
    constant_stride: bool
    matrix: str | None

    def function(self) -> Function:
        """A kernel that stores the tiles that it loads, one after the other, to out."""
        return _Emitter(self).function()

    def run(self, fn: Function) -> np.ndarray:
        """The array that the kernel stores.  Errors: BlockIndexError where it reads outside of memory."""
        x = np.arange(MATRICES * MATRIX_STRIDE, dtype=np.float64) % 2039 + 1
        size = self.rows.extent * self.columns.extent * PROGRAMS * PROGRAMS * ROUNDS
        out = np.zeros(size, np.float16)
        numbers = {name: np.int32(number) for name, number in NUMBERS.items()}
        run(fn, (PROGRAMS, PROGRAMS, 1), {"x": x.astype(np.float16), "out": out, **numbers})
        return out


class _Emitter:
    """Emits the kernel of an access."""

    def __init__(self, access: Access):
        self.access = access
        self.builder = Builder()
        self.axes = (access.columns, access.rows) if access.transposed else (
            access.rows, access.columns)
        self.shape = tuple(axis.extent for axis in self.axes)

    def emit(self, name: str, *operands: Value, **attrs) -> Value:
        return self.builder.emit(OPS[name], *operands, **attrs)

    def function(self) -> Function:
        with self.builder.region(*(TileType(dtype) for _, dtype in _PARAMETERS)) as (body, args):
            self.given = dict(zip((p.argument for p, _ in _PARAMETERS), args, strict=True))
            self.programs = [self.emit("program_id", axis=axis) for axis in (0, 1)]
            self.loop()
            self.emit("return")
        return Function("random", tuple(parameter for parameter, _ in _PARAMETERS), body)

    def loop(self) -> None:
        bounds = [self.int(number) for number in (0, ROUNDS, 1)]
        first = self.pointers(None)
        carried = [first] if self.access.carried else []
        with self.builder.region(TileType(int32), *(v.type for v in carried)) as (body, args):
            iteration = args[0]
            pointers = args[1] if carried else self.pointers(iteration)
            tile = self.emit("load", pointers, *self.mask(iteration))
            self.emit("store", self.destinations(iteration), tile)
            moved = [self.emit("offset", pointers, self.splat(self.per_iteration()))
                     for _ in carried]
            self.emit("yield", *moved)
        self.emit("for", *bounds, *carried, regions=(body,))

    def int(self, number: int) -> Value:
        return self.builder.constant(number, int32)

    def splat(self, value: Value) -> Value:
        return self.emit("splat", value, shape=self.shape)

    def scaled(self, value: Value, factor: int) -> Value:
        return self.emit("mul", value, self.int(factor))

    def start(self, axis: AxisAccess, iteration: Value | None) -> Value:
        """Start of a tile; without an iteration, the term that depends on it is left out."""
        program = self.programs[axis is self.access.columns]
        total = self.emit("add", self.scaled(program, axis.start.per_program),
                          self.int(axis.start.constant))
        if iteration is None:
            return total
        return self.emit("add", total, self.scaled(iteration, axis.start.per_iteration))

    def indices(self, axis: AxisAccess, value: Value | None = None) -> Value:
        """0, 1, ... along an axis of the tile, or those plus a scalar."""
        extent, position = axis.extent, self.axes.index(axis)
        indices = self.emit("arange", start=0, size=extent)
        if value is not None:
            indices = self.emit("add", indices, self.emit("splat", value, shape=(extent,)))
        alone = tuple(extent if i == position else 1 for i in range(2))
        return self.emit("reshape", indices, shape=alone)

    def stride(self, axis: AxisAccess) -> Value:
        if axis is self.access.columns:
            return self.int(1)
        return self.int(STRIDE) if self.access.constant_stride else self.given["stride"]

    def per_iteration(self) -> Value:
        """Distance that the tile moves in an iteration, in elements."""
        terms = [self.scaled(self.stride(axis), axis.start.per_iteration) for axis in self.axes]
        return self.emit("add", *terms)

    def pointers(self, iteration: Value | None) -> Value:
        pointer = self.given["x"]
        if self.access.matrix is not None:
            first = self.emit("mul", self.programs[0], self.given["matrix_stride"])
            pointer = self.emit("offset", pointer, first)
        pointer = self.splat(pointer)
        for axis in self.axes:
            indices = self.indices(axis, self.start(axis, iteration))
            steps = self.emit("mul", indices, self.emit(
                "splat", self.stride(axis), shape=indices.type.shape))
            pointer = self.emit("offset", pointer, self.emit("broadcast", steps, shape=self.shape))
        return pointer

    def mask(self, iteration: Value) -> list[Value]:
        """The mask, or nothing where there is none."""
        conjuncts = [conjunct for axis in self.axes for conjunct in self.bounds(axis, iteration)]
        if self.access.matrix:
            matrices = self.given["matrices"]
            if self.access.matrix == "wrong":
                matrices = self.emit("sub", matrices, self.programs[1])
            conjuncts.append(self.splat(self.emit("lt", self.programs[0], matrices)))
        if not conjuncts:
            return []
        mask = conjuncts[0]
        for conjunct in conjuncts[1:]:
            mask = self.emit("and", mask, conjunct)
        return [mask]

    def bounds(self, axis: AxisAccess, iteration: Value) -> list[Value]:
        """Bounds of the mask on one axis."""
        name, number = (("columns", COLUMNS) if axis is self.access.columns else ("rows", ROWS))
        start, found = self.start(axis, iteration), []
        if axis.bound:
            bound = self.given[name] if axis.bound == "parameter" else self.int(number)
            bound = self.emit("add", bound, self.int(axis.slack))
            found.append(self.compared("lt", axis, start, bound))
        if axis.lower:
            found.append(self.compared("ge", axis, start, self.int(axis.lower == "wrong")))
        return found

    def compared(self, name: str, axis: AxisAccess, start: Value, bound: Value) -> Value:
        """Which indices along an axis, counted in the array, compare so with a scalar."""
        indices = self.indices(axis, start if axis.summed else None)
        if not axis.summed:
            bound = self.emit("sub", bound, start)
        bound = self.emit("splat", bound, shape=indices.type.shape)
        compared = self.emit(name, indices, bound)
        return self.emit("broadcast", compared, shape=self.shape)

    def destinations(self, iteration: Value) -> Value:
        """Pointers into out for the tile of this program and iteration."""
        size = self.shape[0] * self.shape[1]
        number = self.emit("add", self.scaled(self.programs[0], PROGRAMS), self.programs[1])
        number = self.emit("add", self.scaled(number, ROUNDS), iteration)
        pointer = self.emit("offset", self.given["out"], self.scaled(number, size))
        flat = self.emit("reshape", self.emit("arange", start=0, size=size), shape=self.shape)
        return self.emit("offset", self.splat(pointer), flat)

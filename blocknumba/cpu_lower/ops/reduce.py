"""Code of reductions: along the lanes, or along another axis with one result in each lane.

Of a (4, 64) tile, with 16 lanes:

    along axis 1 (the lanes are combined)      along axis 0

    for i in range(4):                         for j in range(0, 64, 16):
      for j in range(0, 64, 16):                 for i in range(4):
        total += x[i, j:j+16]                      total += x[i, j:j+16]
      y[i] = combined lanes of total             y[j:j+16] = total

Rows that are too wide for the registers are read along, several at once: the states wait in memory.

    for i in range(0, rows, 8):
      for j in range(0, columns, 16):
        y[j:j+16] += x[i, j:j+16] + x[i+1, j:j+16] + ...
"""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.cpu_lower import casts
from blocknumba.cpu_lower.elements import Lanes, is_narrow, literal, uniform
from blocknumba.cpu_lower.emitter import Buffer, Coordinates, Emitter, root
from blocknumba.cpu_lower.ops.elementwise import combine, vectors
from blocknumba.cpu_lower.versions import ends_of_lanes, in_two_versions_of_box
from blocknumba.cpu_lower.writer import vector
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.types import DType, TileType, float32, int32
from blocknumba.tile_ir.ops import reduce

# the elementwise op that combines two elements
COMBINED = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "fmax": "fmax",
            "fmin": "fmin", "and": "and", "or": "or", "xor": "xor"}
MAX_ACCUMULATORS = 4
ROWS_AT_ONCE = 8  # streams that processors prefetch well

State = list[str]


class Reduction:
    """One reduction: the state that an element is combined into, lane by lane.

    types: dtypes of the state.  first: its elements at the beginning, as literals.
    """

    def __init__(self, op: Op):
        self.dtype: DType = op.x.type.dtype
        self.computed = float32 if is_narrow(self.dtype) else self.dtype
        self.types: tuple[DType, ...] = (self.computed,)
        self.name = COMBINED[op.attrs["kind"]]
        self.first = (literal(reduce.identity(op.attrs["kind"], self.computed), self.computed),)

    def add(self, emitter: Emitter, state: State, x: str, index: str, lanes: int) -> State:
        """Combine the state with an element of the tile; index: its positions, i32."""
        return self.join(emitter, state, [self.widened(emitter, x, lanes), index], lanes)

    def join(self, emitter: Emitter, state: State, other: State, lanes: int) -> State:
        """Combine two states."""
        return [combine(emitter, self.name, self.computed, [state[0], other[0]], lanes)]

    def result(self, emitter: Emitter, state: State, lanes: int) -> str:
        """The result from a state."""
        if self.computed == self.dtype:
            return state[0]
        (value,) = vectors(emitter, self.computed, [state[0]], lanes)
        return casts.narrow(self.dtype, value).name

    def widened(self, emitter: Emitter, x: str, lanes: int) -> str:
        """An element as it is computed with."""
        if self.computed == self.dtype:
            return x
        (value,) = vectors(emitter, self.dtype, [x], lanes)
        return casts.widen(self.dtype, value).name


class ArgReduction(Reduction):
    """The position of an extremum: the first one wins ties, and a NaN wins over numbers."""

    def __init__(self, op: Op):
        self.dtype = op.x.type.dtype
        self.computed = float32 if is_narrow(self.dtype) else self.dtype
        self.types = self.computed, int32
        self.kind = op.attrs["kind"]
        # no position yet: every element is better
        self.first = literal(0, self.computed), "-1"

    def join(self, emitter: Emitter, state: State, other: State, lanes: int) -> State:
        """Combine two states; of equal elements the lower position stays."""
        best, position = state
        x, index = other
        test, is_float = emitter.writer.assign, self.computed.is_float
        type_, indices = emitter.type(self.computed, lanes), vector("i32", lanes)
        flags = vector("i1", lanes)
        better = combine(emitter, "gt" if self.kind == "max" else "lt", self.computed,
                         [x, best], lanes)
        if is_float:
            x_is_nan = test(f"fcmp uno {type_} {x}, {x}")
            best_is_number = test(f"fcmp ord {type_} {best}, {best}")
            nan_wins = test(f"and {flags} {x_is_nan}, {best_is_number}")
            better = test(f"or {flags} {better}, {nan_wins}")
            both = test(f"fcmp ueq {type_} {x}, {best}")
            alike = test(f"xor {flags} {x_is_nan}, {best_is_number}")
            equal = test(f"and {flags} {both}, {alike}")
        else:
            equal = test(f"icmp eq {type_} {x}, {best}")
        # as unsigned numbers "no position" is the greatest
        is_earlier = test(f"icmp ult {indices} {index}, {position}")
        tie = test(f"and {flags} {equal}, {is_earlier}")
        better = test(f"or {flags} {better}, {tie}")
        minus_one = emitter.writer.splat("i32", "-1", lanes)
        is_first = test(f"icmp eq {indices} {position}, {minus_one}")
        better = test(f"or {flags} {better}, {is_first}")
        return [test(f"select {flags} {better}, {type_} {x}, {type_} {best}"),
                test(f"select {flags} {better}, {indices} {index}, {indices} {position}")]

    def result(self, emitter: Emitter, state: State, lanes: int) -> str:
        """See Reduction.result."""
        return state[1]


@root(reduce.reduce)
def _(emitter: Emitter, op: Op) -> None:
    _reduce(emitter, op, Reduction(op))


@root(reduce.arg_reduce)
def _(emitter: Emitter, op: Op) -> None:
    _reduce(emitter, op, ArgReduction(op))


def _reduce(emitter: Emitter, op: Op, reduction: Reduction) -> None:
    source, axis = op.x, op.attrs["axis"]
    shape = source.type.shape
    lane_axis, lanes = emitter.lanes_of([source], reduced=axis)
    target = None if not op.result.type.shape else emitter.buffer(
        op.result.type, _without(axis, lane_axis))
    with emitter.filled_by([source], shape, lane_axis):
        if lane_axis == axis or lane_axis is None:
            result = _along_lanes(emitter, op, reduction, lanes, target)
        elif shape[lane_axis] // lanes > MAX_ACCUMULATORS:
            result = _by_rows(emitter, op, reduction, lane_axis, lanes, target)
        else:
            result = _across(emitter, op, reduction, lane_axis, lanes, target)
    if target is None:
        emitter.known.scalars[op.result] = result
    else:
        emitter.known.buffers[op.result] = target


def _without(axis: int, lane_axis: int | None) -> int | None:
    """The lanes' axis in the result; None if it is the one that is reduced."""
    if lane_axis is None or lane_axis == axis:
        return None
    return lane_axis - (lane_axis > axis)


def _along_lanes(emitter: Emitter, op: Op, reduction: Reduction, lanes: int,
                 target: Buffer | None) -> str:
    """The reduced axis is that of the lanes: they are combined at the end."""
    source, axis = op.x, op.attrs["axis"]
    shape = source.type.shape
    outer = shape[:axis] + shape[axis + 1:]
    found = ""

    def row(coordinates: Coordinates) -> None:
        nonlocal found
        with emitter.inside(lanes):
            lanes_of_row = RowOfLanes(emitter, source, reduction, axis, lanes)
            found = lanes_of_row.combined(lanes_of_row.accumulated(
                coordinates, [first for _, first in lanes_of_row.first]))
        if target is not None:
            emitter.keep(op.result, coordinates, uniform(found), target)
    emitter.nest(outer, None, 1, row)
    return found


class RowOfLanes:
    """The lanes that sum one row of a tile, in several accumulators at once.

    first: their types and first values.
    """

    def __init__(self, emitter: Emitter, source: Value, reduction: Reduction, axis: int,
                 lanes: int):
        self.emitter, self.source, self.reduction = emitter, source, reduction
        self.axis, self.lanes = axis, lanes
        self.extent = source.type.shape[axis]
        self.count = min(MAX_ACCUMULATORS, self.extent // lanes)
        self.first = _first(emitter, reduction, lanes) * self.count

    def accumulated(self, outer: Coordinates, values: Sequence[str]) -> list[str]:
        """The accumulators, once the row is added; outer: its coordinates, without the axis."""
        emitter, index = self.emitter, self.emitter.writer.name()
        emitter.align(index)
        start = self._at(outer, Lanes(index, 1 if self.lanes > 1 else 0))
        emitter.ahead([(self.source, start)], index)

        def body(_: str, *names: str) -> list[str]:
            ends = ends_of_lanes(emitter, self._at(outer, Lanes(index, 1)), self.axis, self.count)
            return in_two_versions_of_box(
                emitter, [self.source], [], ends, lambda: self._added(outer, index, names),
                [type_ for type_, _ in self.first])
        types = [type_ for type_, _ in self.first]
        return emitter.writer.loop(self.extent, self.lanes * self.count, body,
                                   list(zip(types, values)), index)

    def _added(self, outer: Coordinates, index: str, names: Sequence[str]) -> list[str]:
        emitter, reduction, made = self.emitter, self.reduction, []
        with emitter.inside():
            for number, state in enumerate(_grouped(names, len(reduction.types))):
                first = emitter.writer.add(index, str(number * self.lanes))
                emitter.align(first)
                position = Lanes(first, 1 if self.lanes > 1 else 0)
                x = emitter.dense(self.source.type.dtype, emitter.at(
                    self.source, self._at(outer, position)))
                made += reduction.add(emitter, state, x, emitter.dense_index(position),
                                      self.lanes)
        return made

    def _at(self, outer: Coordinates, position: Lanes) -> Coordinates:
        return (*outer[:self.axis], position, *outer[self.axis:])

    def combined(self, values: Sequence[str]) -> str:
        """The result, of all accumulators and lanes."""
        states = _grouped(values, len(self.reduction.types))
        while len(states) > 1:
            states = [self.reduction.join(self.emitter, a, b, self.lanes)
                      for a, b in zip(states[::2], states[1::2])]
        state = _combined_lanes(self.emitter, self.reduction, states[0], self.lanes)
        return self.reduction.result(self.emitter, state, 1)


def _combined_lanes(emitter: Emitter, reduction: Reduction, state: State, lanes: int) -> State:
    """One state from those of all lanes: the upper half joins the lower, again and again."""
    writer = emitter.writer
    while lanes > 1:
        lanes //= 2
        halves = []
        for start in (0, lanes):
            order = ", ".join(f"i32 {start + lane}" for lane in range(lanes))
            half = []
            for dtype, x in zip(reduction.types, state):
                type_ = emitter.type(dtype, 2 * lanes)
                half.append(writer.assign(
                    f"shufflevector {type_} {x}, {type_} poison, <{lanes} x i32> <{order}>"
                    if lanes > 1 else f"extractelement {type_} {x}, i32 {start}"))
            halves.append(half)
        state = reduction.join(emitter, *halves, lanes)
    return state


def _across(emitter: Emitter, op: Op, reduction: Reduction, lane_axis: int, lanes: int,
            target: Buffer) -> str:
    """The lanes run along another axis: each has a result of its own."""
    source, axis = op.x, op.attrs["axis"]
    shape = source.type.shape
    outer = shape[:axis] + shape[axis + 1:]
    place = lane_axis - (lane_axis > axis)
    together = min(MAX_ACCUMULATORS, shape[lane_axis] // lanes)

    def columns(coordinates: Coordinates) -> None:
        start = coordinates[place].name
        groups = [emitter.writer.add(start, str(number * lanes)) for number in range(together)]
        for name in groups:
            emitter.align(name)
        index = emitter.writer.name()

        def body(_: str, *values: str) -> list[str]:
            made: list[str] = []
            with emitter.inside():
                for name, state in zip(groups, _grouped(values, len(reduction.types))):
                    here = list(coordinates)
                    here[place] = Lanes(name, 1)
                    here.insert(axis, Lanes(index, 0))
                    x = emitter.dense(source.type.dtype, emitter.at(source, tuple(here)))
                    made += reduction.add(emitter, state, x,
                                          emitter.dense_index(Lanes(index, 0)), lanes)
            return made
        first = _first(emitter, reduction, lanes) * together
        values = emitter.writer.loop(shape[axis], 1, body, first, index)
        for name, state in zip(groups, _grouped(values, len(reduction.types))):
            here = list(coordinates)
            here[place] = Lanes(name, 1)
            emitter.keep(op.result, tuple(here), Lanes(reduction.result(emitter, state, lanes)),
                         target)
    emitter.nest(outer, place, lanes, columns, together=together)
    return ""


def _by_rows(emitter: Emitter, op: Op, reduction: Reduction, lane_axis: int, lanes: int,
             target: Buffer) -> str:
    """The lanes run along another axis, which is long: states in memory, a few rows at once."""
    source, axis = op.x, op.attrs["axis"]
    shape, place = source.type.shape, lane_axis - (lane_axis > axis)
    types = [TileType(dtype, op.result.type.shape) for dtype in reduction.types]
    is_result = reduction.types == (op.result.type.dtype,)
    states = [target] if is_result else [emitter.buffer(type_, place) for type_ in types]
    rows = min(ROWS_AT_ONCE, shape[axis])

    def keep(coordinates: Coordinates, values: Sequence[str]) -> None:
        for type_, buffer, value in zip(types, states, values):
            emitter.store(type_.dtype, emitter.place(type_.dtype, buffer, coordinates),
                          Lanes(value))

    def begin(coordinates: Coordinates) -> None:
        keep(coordinates, [first for _, first in _first(emitter, reduction, lanes)])

    def add(coordinates: Coordinates) -> None:
        own = coordinates[:axis] + coordinates[axis + 1:]
        first = emitter.writer.multiply(coordinates[axis].name, str(rows))
        state = [emitter.dense(type_.dtype, emitter.read(type_, buffer, own))
                 for type_, buffer in zip(types, states)]
        for number in range(rows):
            row = Lanes(emitter.writer.add(first, str(number)), 0)
            here = (*coordinates[:axis], row, *coordinates[axis + 1:])
            x = emitter.dense(source.type.dtype, emitter.at(source, here))
            state = reduction.add(emitter, state, x, emitter.dense_index(row), lanes)
        keep(own, state)

    def end(coordinates: Coordinates) -> None:
        state = [emitter.dense(type_.dtype, emitter.read(type_, buffer, coordinates))
                 for type_, buffer in zip(types, states)]
        emitter.keep(op.result, coordinates, Lanes(reduction.result(emitter, state, lanes)),
                     target)

    outer = shape[:axis] + shape[axis + 1:]
    emitter.nest(outer, place, lanes, begin)
    emitter.nest((*shape[:axis], shape[axis] // rows, *shape[axis + 1:]), lane_axis, lanes, add)
    if not is_result:
        emitter.nest(outer, place, lanes, end)
    return ""


def _first(emitter: Emitter, reduction: Reduction, lanes: int) -> list[tuple[str, str]]:
    return [(emitter.type(dtype, lanes),
             emitter.writer.splat(emitter.type(dtype, 1), first, lanes))
            for dtype, first in zip(reduction.types, reduction.first)]


def _grouped(values: Sequence[str], size: int) -> list[State]:
    return [list(values[start:start + size]) for start in range(0, len(values), size)]

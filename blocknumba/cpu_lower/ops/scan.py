"""Code of scans and of reductions by a function, from the first element along an axis to the last.

The lanes run along another axis, one element after the other, or along the axis itself:

    x              a   b    c     d           8 lanes take 3 steps
    step 1         a   ab   bc    cd          f(lane - 1, lane)
    step 2         a   ab   abc   abcd        f(lane - 2, lane)
    the carry      all of the vectors before are the left operand of each lane
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blocknumba.cpu_lower.elements import Lanes, register_type
from blocknumba.cpu_lower.emitter import ELEMENTS, Coordinates, Emitter, root
from blocknumba.cpu_lower.strided import shuffled
from blocknumba.cpu_lower.writer import vector
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.types import DType
from blocknumba.tile_ir.ops import scan
from blocknumba.tile_ir.ops.scan import region_of

Use = Callable[[Coordinates, Sequence[Lanes]], None]


@root(scan.scan)
def _(emitter: Emitter, op: Op) -> None:
    axis, lanes = _lanes(emitter, op)
    buffers = [emitter.buffer(value.type, axis) for value in op.results]

    def keep(coordinates: Coordinates, found: Sequence[Lanes]) -> None:
        for value, buffer, x in zip(op.results, buffers, found):
            emitter.keep(value, coordinates, x, buffer)
    _along(emitter, op, axis, lanes, keep, None)
    emitter.known.buffers.update(zip(op.results, buffers))


@root(scan.reduce_with)
def _(emitter: Emitter, op: Op) -> None:
    axis, lanes = _lanes(emitter, op)
    is_scalar = not op.results[0].type.shape
    buffers = [] if is_scalar else [emitter.buffer(value.type) for value in op.results]

    def keep(coordinates: Coordinates, found: Sequence[Lanes]) -> None:
        if is_scalar:
            emitter.known.scalars.update(zip(op.results, [x.name for x in found]))
        for value, buffer, x in zip(op.results, buffers, found):
            emitter.keep(value, coordinates, x, buffer)
    _along(emitter, op, axis, lanes, None, keep)
    emitter.known.buffers.update(zip(op.results, buffers))


def _lanes(emitter: Emitter, op: Op) -> tuple[int | None, int]:
    """Axis and number of the lanes."""
    return emitter.lanes_of(op.tiles, reduced=op.attrs["axis"])


def _along(emitter: Emitter, op: Op, lane_axis: int | None, lanes: int, each: Use | None,
           last: Use | None) -> None:
    """Combine the elements of each row of the axis, from its first one.

    each(coordinates, state): called for every element; last(coordinates without the axis, state):
    for every row.
    """
    tiles, axis = op.tiles, op.attrs["axis"]
    shape = tiles[0].type.shape
    outer = shape[:axis] + shape[axis + 1:]
    place = None if lane_axis in (None, axis) else lane_axis - (lane_axis > axis)
    row = _row_of_lanes if lane_axis == axis else _row_across
    with emitter.filled_by(tiles, shape, lane_axis):
        emitter.nest(outer, place, lanes if place is not None else 1,
                     lambda coordinates: row(emitter, op, lanes, coordinates, each, last))


def _row_across(emitter: Emitter, op: Op, lanes: int, coordinates: Coordinates, each: Use | None,
                last: Use | None) -> None:
    """One row after the other in each lane."""
    tiles, axis, dtypes = op.tiles, op.attrs["axis"], _dtypes(op)
    extent, reverse = tiles[0].type.shape[axis], op.attrs.get("reverse", False)

    def position_of(index: str) -> Lanes:
        if not reverse:
            return Lanes(index, 0)
        return Lanes(emitter.writer.assign(f"sub nuw i32 {extent - 1}, {index}"), 0)

    def body(index: str, *state: str) -> list[str]:
        with emitter.inside():
            here = (*coordinates[:axis], position_of(index), *coordinates[axis:])
            elements = [emitter.at(tile, here) for tile in tiles]
            names = _joined(emitter, op, index, [Lanes(x, _step(lanes)) for x in state],
                            elements, lanes)
            if each is not None:
                each(here, [Lanes(name, _step(lanes)) for name in names])
        return names

    first = [(emitter.type(dtype, lanes), _zero(register_type(dtype), lanes)) for dtype in dtypes]
    state = emitter.writer.loop(extent, 1, body, first)
    if last is not None:
        last(coordinates, [Lanes(x, _step(lanes)) for x in state])


def _row_of_lanes(emitter: Emitter, op: Op, lanes: int, coordinates: Coordinates,
                  each: Use | None, last: Use | None) -> None:
    """One row, a vector of its elements at a time; the state is repeated in all lanes."""
    tiles, axis, dtypes = op.tiles, op.attrs["axis"], _dtypes(op)
    extent, reverse = tiles[0].type.shape[axis], op.attrs.get("reverse", False)

    def body(index: str, *state: str) -> list[str]:
        with emitter.inside():
            first = index if not reverse else emitter.writer.assign(
                f"sub nuw i32 {extent - lanes}, {index}")
            emitter.align(first)
            here = (*coordinates[:axis], Lanes(first, 1), *coordinates[axis:])
            own = _scanned(emitter, op, [emitter.dense(dtype, emitter.at(tile, here))
                                         for tile, dtype in zip(tiles, dtypes)], lanes, reverse)
            names = _joined(emitter, op, index, [Lanes(x) for x in state],
                            [Lanes(x) for x in own], lanes)
            if each is not None:
                each(here, [Lanes(name) for name in names])
            end = [0 if reverse else lanes - 1] * lanes
            return [_moved(emitter, dtype, name, end) for dtype, name in zip(dtypes, names)]

    with emitter.inside(lanes):
        first = [(emitter.type(dtype, lanes), "zeroinitializer") for dtype in dtypes]
        state = emitter.writer.loop(extent, lanes, body, first)
        found = [emitter.writer.extract(register_type(dtype), x, lanes, "0")
                 for dtype, x in zip(dtypes, state)]
    if last is not None:
        last(coordinates, [Lanes(x, 0) for x in found])


def _scanned(emitter: Emitter, op: Op, names: list[str], lanes: int, reverse: bool) -> list[str]:
    """The scan of one vector for itself: after the step of distance d, of 2 * d elements."""
    dtypes, distance = _dtypes(op), 1
    while distance < lanes:
        before = [lane + distance if reverse else lane - distance for lane in range(lanes)]
        has_one = [0 <= lane < lanes for lane in before]
        order = [lane if exists else None for lane, exists in zip(before, has_one)]
        earlier = [Lanes(_moved(emitter, dtype, x, order)) for dtype, x in zip(dtypes, names)]
        found = _combined(emitter, op, earlier, [Lanes(x) for x in names])
        flags = "<" + ", ".join(f"i1 {str(exists).lower()}" for exists in has_one) + ">"
        names = [_select(emitter, f"<{lanes} x i1> {flags}", dtype, y, Lanes(x), lanes)
                 for dtype, x, y in zip(dtypes, names, found)]
        distance *= 2
    return names


def _moved(emitter: Emitter, dtype: DType, x: str, order: Sequence[int | None]) -> str:
    """A vector whose lanes are those of another; None: any."""
    return shuffled(emitter.writer, register_type(dtype), len(order), x, "poison", [
        0 if lane is None else lane for lane in order])


def _joined(emitter: Emitter, op: Op, index: str, state: Sequence[Lanes],
            elements: Sequence[Lanes], lanes: int) -> list[str]:
    """The state and what follows it; at the first index there is none."""
    found = _combined(emitter, op, state, elements)
    is_first = emitter.writer.assign(f"icmp eq i32 {index}, 0")
    return [_select(emitter, f"i1 {is_first}", dtype, x, y, lanes)
            for dtype, x, y in zip(_dtypes(op), elements, found)]


def _dtypes(op: Op) -> list[DType]:
    return [tile.type.dtype for tile in op.tiles]


def _combined(emitter: Emitter, op: Op, left: Sequence[Lanes], right: Sequence[Lanes]) -> list[
        Lanes]:
    """The function of a combination on elements of both operands."""
    region = region_of(op.attrs["combination"], _dtypes(op))
    found = dict(zip(region.args, (*left, *right), strict=True))
    for step in region.ops[:-1]:
        operands = [found[value] for value in step.operands]
        found[step.result] = ELEMENTS[step.name](emitter, step, (step.result, ()), operands)
    return [found[value] for value in region.terminator.operands]


def _step(lanes: int) -> int | None:
    return 0 if lanes == 1 else None


def _zero(scalar: str, lanes: int) -> str:
    if lanes > 1:
        return "zeroinitializer"
    return {"float": "0.0", "double": "0.0", "i1": "false"}.get(scalar, "0")


def _select(emitter: Emitter, condition: str, dtype: DType, x: Lanes, y: Lanes,
            lanes: int) -> str:
    type_ = vector(register_type(dtype), lanes)
    return emitter.writer.assign(f"select {condition}, {type_} {emitter.dense(dtype, x)}, "
                                 f"{type_} {emitter.dense(dtype, y)}")

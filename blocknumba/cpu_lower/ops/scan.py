"""Code of scans and of reductions by a function: one element after the other along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.cpu_lower.elements import Lanes, register_type
from blocknumba.cpu_lower.emitter import ELEMENTS, Coordinates, Emitter, root
from blocknumba.cpu_lower.writer import vector
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ops import scan
from blocknumba.tile_ir.ops.scan import region_of


@root(scan.scan)
def _(emitter: Emitter, op: Op) -> None:
    buffers = [emitter.buffer(value.type) for value in op.results]

    def keep(coordinates: Coordinates, found: Sequence[Lanes]) -> None:
        for value, buffer, x in zip(op.results, buffers, found):
            emitter.keep(value, coordinates, x, buffer)
    _along(emitter, op, keep, None)
    emitter.known.buffers.update(zip(op.results, buffers))


@root(scan.reduce_with)
def _(emitter: Emitter, op: Op) -> None:
    is_scalar = not op.results[0].type.shape
    buffers = [] if is_scalar else [emitter.buffer(value.type) for value in op.results]

    def keep(coordinates: Coordinates, found: Sequence[Lanes]) -> None:
        if is_scalar:
            emitter.known.scalars.update(zip(op.results, [x.name for x in found]))
        for value, buffer, x in zip(op.results, buffers, found):
            emitter.keep(value, coordinates, x, buffer)
    _along(emitter, op, None, keep)
    emitter.known.buffers.update(zip(op.results, buffers))


def _along(emitter: Emitter, op: Op, each, last) -> None:
    """Combine the elements of each row of the axis, from its first one.

    each(coordinates, state): called for every element; last(coordinates without the axis, state):
    for every row.
    """
    tiles, axis = op.tiles, op.attrs["axis"]
    shape, dtypes = tiles[0].type.shape, [tile.type.dtype for tile in tiles]
    extent, reverse = shape[axis], op.attrs.get("reverse", False)
    lane_axis, lanes = emitter.plan.lanes_of(tiles, excluded=axis)
    outer = shape[:axis] + shape[axis + 1:]
    place = None if lane_axis is None else lane_axis - (lane_axis > axis)

    def row(coordinates: Coordinates) -> None:
        def elements(position: Lanes) -> list[Lanes]:
            here = (*coordinates[:axis], position, *coordinates[axis:])
            return [emitter.at(tile, here) for tile in tiles]

        def position_of(index: str) -> Lanes:
            if not reverse:
                return Lanes(index, 0)
            return Lanes(emitter.writer.assign(f"sub nuw i32 {extent - 1}, {index}"), 0)

        def body(index: str, *state: str) -> list[str]:
            with emitter.inside():
                position = position_of(index)
                here = elements(position)
                found = _combined(emitter, op, [Lanes(x, _step(lanes)) for x in state], here)
                # the first element has none before it
                is_first = emitter.writer.assign(f"icmp eq i32 {index}, 0")
                names = [_select(emitter, is_first, dtype, x, y, lanes)
                         for dtype, x, y in zip(dtypes, here, found)]
                made = [Lanes(name, _step(lanes)) for name in names]
                if each is not None:
                    each((*coordinates[:axis], position, *coordinates[axis:]), made)
            return names

        first = [(emitter.type(dtype, lanes), _zero(register_type(dtype), lanes))
                 for dtype in dtypes]
        state = emitter.writer.loop(extent, 1, body, first)
        if last is not None:
            last(coordinates, [Lanes(x, _step(lanes)) for x in state])

    with emitter.filled_by(tiles, shape, lane_axis):
        emitter.nest(outer, place, lanes, row)


def _combined(emitter: Emitter, op: Op, left: Sequence[Lanes], right: Sequence[Lanes]) -> list[
        Lanes]:
    """The function of a combination on elements of both operands."""
    region = region_of(op.attrs["combination"], [tile.type.dtype for tile in op.tiles])
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


def _select(emitter: Emitter, condition: str, dtype, x: Lanes, y: Lanes, lanes: int) -> str:
    type_ = vector(register_type(dtype), lanes)
    return emitter.writer.assign(f"select i1 {condition}, {type_} {emitter.dense(dtype, x)}, "
                                 f"{type_} {emitter.dense(dtype, y)}")

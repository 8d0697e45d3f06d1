"""Code of ops that rearrange elements: which element of the operand one of the result is."""

from __future__ import annotations

from blocknumba.cpu_lower.elements import Lanes, uniform
from blocknumba.cpu_lower.emitter import Access, Coordinates, Emitter, element
from blocknumba.cpu_lower.writer import is_number, vector
from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ops import shape


def _same(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    return operands[0]


def _splat(emitter: Emitter, op: Op, access: Access) -> list[Access]:
    return [(op.x, ())]


def _broadcast(emitter: Emitter, op: Op, access: Access) -> list[Access]:
    return [(op.x, tuple(uniform(0) if n == 1 else c
                         for n, c in zip(op.x.type.shape, access[1])))]


def _transpose(emitter: Emitter, op: Op, access: Access) -> list[Access]:
    by_axis = dict(zip(op.attrs["axes"], access[1]))
    return [(op.x, tuple(by_axis[axis] for axis in range(len(by_axis))))]


def _reshape(emitter: Emitter, op: Op, access: Access) -> list[Access]:
    """Coordinates of the operand, axis by axis from the last one, over groups of equal size."""
    own, wide = list(op.x.type.shape), list(op.result.type.shape)
    left = list(access[1])
    found: list[Lanes] = []
    while own:
        size, extent, part = 1, 1, []
        # the shortest run of last axes that has as many elements on both sides
        inner: list[int] = []
        while not inner or size != extent:
            if (size <= extent and own) or not wide:
                inner.insert(0, own.pop())
                size *= inner[0]
            else:
                part.insert(0, (wide.pop(), left.pop()))
                extent *= part[0][0]
        found[:0] = _from_flat(emitter, inner, _flat(emitter, part))
    return [(op.x, tuple(found))]


def _flat(emitter: Emitter, axes: list[tuple[int, Lanes]]) -> Lanes:
    """The index in C order of coordinates; axes: extents and coordinates."""
    total, size = uniform(0), 1
    for extent, coordinate in reversed(axes):
        if extent > 1:
            total = emitter.index_sum(emitter.index_product(coordinate, size), total)
        size *= extent
    return total


def _from_flat(emitter: Emitter, extents: list[int], index: Lanes) -> list[Lanes]:
    found: list[Lanes] = []
    above = [a for a, n in enumerate(extents) if n > 1]
    for axis in reversed(range(len(extents))):
        if extents[axis] == 1:
            found.insert(0, uniform(0))
        elif axis == above[0]:
            found.insert(0, index)
        else:
            index, rest = emitter.index_split(index, extents[axis])
            found.insert(0, rest)
    return found


def _flip(emitter: Emitter, op: Op, access: Access) -> list[Access]:
    axis, coordinates = op.attrs["axis"], list(access[1])
    last = op.result.type.shape[axis] - 1
    coordinates[axis] = emitter.index_sum(
        uniform(last), emitter.index_product(coordinates[axis], -1))
    return [(op.x, tuple(coordinates))]


def _extract(emitter: Emitter, op: Op, access: Access) -> list[Access]:
    return [(op.x, tuple(emitter.index_sum(c, uniform(start)) if start else c
                         for c, start in zip(access[1], op.attrs["starts"])))]


def _split(emitter: Emitter, op: Op, access: Access) -> list[Access]:
    return [(op.x, (*access[1], uniform(op.results.index(access[0]))))]


def _join_operands(op: Op, coordinates: Coordinates) -> list[Access]:
    """Both operands, or the one that a known last coordinate chooses."""
    *rest, last = coordinates
    both = [(op.x, tuple(rest)), (op.y, tuple(rest))]
    return [both[int(last.name)]] if last.is_uniform and is_number(last.name) else both


@element(shape.join, operands=lambda emitter, op, access: _join_operands(op, access[1]))
def _(emitter: Emitter, op: Op, access: Access, operands: list[Lanes]) -> Lanes:
    if len(operands) == 1:
        return operands[0]
    last, dtype, writer = access[1][-1], op.result.type.dtype, emitter.writer
    index, lanes = (last.name, 1) if last.is_uniform else (
        emitter.dense_index(last), emitter.lanes)
    zero = "0" if lanes == 1 else "zeroinitializer"
    is_first = writer.assign(f"icmp eq {vector('i32', lanes)} {index}, {zero}")
    if all(x.is_uniform for x in operands) and lanes == 1:
        type_, names, step = emitter.type(dtype, 1), [x.name for x in operands], 0
    else:
        type_, step = emitter.type(dtype, emitter.lanes), None
        names = [emitter.dense(dtype, x) for x in operands]
    return Lanes(writer.assign(f"select {vector('i1', lanes)} {is_first}, {type_} {names[0]}, "
                               f"{type_} {names[1]}"), step)


element(shape.splat, operands=_splat)(_same)
element(shape.broadcast, operands=_broadcast)(_same)
element(shape.transpose, operands=_transpose)(_same)
element(shape.reshape, operands=_reshape)(_same)
element(shape.flip, operands=_flip)(_same)
element(shape.extract, operands=_extract)(_same)
element(shape.split, operands=_split)(_same)

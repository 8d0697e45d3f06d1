"""Shard axes, op by op: how the axes of an op's operands and results follow from each other.

A shard of a tile is a range of its indices along one axis, and whole along all others.  Of a dot
of a (128, 64) and a (64, 32) tile, partitioned by its rows over 2 blocks:

    a (128, 64)    axis 0: 64 rows in each block
    b (64, 32)     None:   whole in each block
    a @ b          axis 0: 64 rows in each block
    sum(axis=1)    axis 0;    sum(axis=0): not partitionable, it would add up rows of both blocks
"""

from __future__ import annotations

import math
from collections.abc import Callable

from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, OpTable, attribute
from blocknumba.tile_ir.ops.views import Placement, placements

ROWS, COLUMNS = -2, -1  # of a dot

Axis = int | None  # None: the whole tile
Forward = Callable[[Op, int, int], Axis]
Backward = Callable[[Op, int], tuple[Axis, ...]]


class NotPartitionable(Exception):
    """A program cannot be partitioned over a cluster; the message says why."""


def axis_of_result(op: Op, given: dict[int, int]) -> int:
    """The shard axis of the results of an op some of whose operands are sharded.

    given: per index of a sharded operand, its shard axis.
    Errors: NotPartitionable.
    """
    rule = _FORWARD.get(op.name, _same if op.opdef.has(ELEMENTWISE) else None)
    if rule is None:
        raise NotPartitionable(f"{op.name} needs the whole tile")
    (axis, *others) = {rule(op, operand, axis) for operand, axis in given.items()}
    if axis is None or others:
        raise NotPartitionable(f"{op.name} needs the whole tile")
    return axis


def axes_of_operands(op: Op, axis: int) -> tuple[Axis, ...]:
    """The shard axes of the operands that a shard of the results is computed from.

    Errors: NotPartitionable.
    """
    rule = _BACKWARD.get(op.name)
    if rule is not None:
        return rule(op, axis)
    if op.operands and not op.opdef.has(ELEMENTWISE):
        raise NotPartitionable(f"{op.name} makes whole tiles")
    return (axis,) * len(op.operands)


# ops whose results and operands have one shape -------------------------------------------------
def _same(_: Op, _operand: int, axis: int) -> Axis:
    return axis


def _each(op: Op, axis: int) -> tuple[Axis, ...]:
    return (axis,) * len(op.operands)


# ops that change shapes ------------------------------------------------------------------------
def _repeated(op: Op, axis: int) -> tuple[Axis, ...]:
    """Of a broadcast: a tile that is repeated along the axis is whole."""
    return (None if op.x.type.shape[axis] == 1 else axis,)


def _reshaped(before: tuple[int, ...], after: tuple[int, ...], axis: int) -> Axis:
    """The index of an axis after a reshape that keeps it; None if the reshape does not."""
    for index, extent in enumerate(after):
        if (extent == before[axis]
                and math.prod(after[:index]) == math.prod(before[:axis])):
            return index
    return None


def _axis_after_reshape(op: Op, _operand: int, axis: int) -> Axis:
    return _reshaped(op.x.type.shape, op.result.type.shape, axis)


def _axis_before_reshape(op: Op, axis: int) -> tuple[Axis, ...]:
    found = _reshaped(op.result.type.shape, op.x.type.shape, axis)
    if found is None:
        raise NotPartitionable("reshape splits the rows of a dot")
    return (found,)


def _axis_after_transpose(op: Op, _operand: int, axis: int) -> Axis:
    return attribute(op, "axes").index(axis)


def _axis_before_transpose(op: Op, axis: int) -> tuple[Axis, ...]:
    return (attribute(op, "axes")[axis],)


def _axis_after_reduce(op: Op, _operand: int, axis: int) -> Axis:
    reduced = attribute(op, "axis")
    return None if axis == reduced else axis - (axis > reduced)


def _axis_before_reduce(op: Op, axis: int) -> tuple[Axis, ...]:
    return (axis + (axis >= attribute(op, "axis")),)


def _axis_after_split(op: Op, _operand: int, axis: int) -> Axis:
    return axis if axis < len(op.results[0].type.shape) else None


# elements of views -----------------------------------------------------------------------------
def _axis_after_elements(op: Op, operand: int, axis: int) -> Axis:
    places, shape = _placed(op)
    own = op.operands[operand].type.shape
    moved = places[operand - 1].first_of(own) + axis
    return moved if shape[moved] == own[axis] else None


def _axes_before_elements(op: Op, axis: int) -> tuple[Axis, ...]:
    """Views and scalars are whole; tiles of indices are sharded where they vary along the axis."""
    axes: list[Axis] = [None]
    for index, place in zip(op.indices, _placed(op)[0], strict=True):
        own = axis - place.first_of(index.type.shape)
        varies = 0 <= own < len(index.type.shape) and index.type.shape[own] > 1
        axes.append(own if varies else None)
    return tuple(axes)


def sharded_span(op: Op, axis: int) -> int | None:
    """The number of the index of `elements` that is a span along an axis; None if none is."""
    spans = (number for number, (size, place) in enumerate(
        zip(attribute(op, "sizes"), _placed(op)[0], strict=True))
        if size is not None and place.first == axis)
    return next(spans, None)


def _placed(op: Op) -> tuple[list[Placement], tuple[int, ...]]:
    return placements([index.type.shape for index in op.indices], attribute(op, "sizes"))


# dots ------------------------------------------------------------------------------------------
def _axis_after_dot(op: Op, operand: int, axis: int) -> Axis:
    """The rows of a dot are those of its first operand and of its accumulator."""
    rows = len(op.result.type.shape) + ROWS
    return rows if axis == rows and operand != 1 else None


def _axes_before_dot(op: Op, axis: int) -> tuple[Axis, ...]:
    if axis != len(op.result.type.shape) + ROWS:
        raise NotPartitionable("a dot is used along its columns")
    return axis, None, axis


_FORWARD = OpTable[Forward]("partitioned axis of the result", {
    "load": _same, "store": _same, "atomic_rmw": _same, "atomic_cas": _same,
    "broadcast": _same, "reshape": _axis_after_reshape, "transpose": _axis_after_transpose,
    "join": _same, "split": _axis_after_split,
    "reduce": _axis_after_reduce, "arg_reduce": _axis_after_reduce,
    "dot": _axis_after_dot, "elements": _axis_after_elements,
})
_BACKWARD = OpTable[Backward]("partitioned axes of the operands", {
    "load": _each, "store": _each, "atomic_rmw": _each, "atomic_cas": _each,
    "splat": lambda _op, _axis: (None,), "broadcast": _repeated,
    "reshape": _axis_before_reshape, "transpose": _axis_before_transpose,
    "join": _each, "split": _each,
    "reduce": _axis_before_reduce, "arg_reduce": _axis_before_reduce,
    "dot": _axes_before_dot, "elements": _axes_before_elements,
})

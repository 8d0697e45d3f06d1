"""Along which axis of a tile its part lies, given the parts of other tiles that an op relates to.

A part of a tile is a run of its elements along one axis, whole along all others.  Here is, op by
op, how the axis of a result's part and those of the operands' parts follow from each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from blocknumba.tile_ir.ir.function import Op
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, attribute

ROWS, COLUMNS = -2, -1  # of a product

Axis = int | None  # None: the whole tile
Forward = Callable[[Op, int, int], Axis]
Backward = Callable[[Op, int], tuple[Axis, ...]]


class NotPartitionable(Exception):
    """A program cannot be spread over blocks; the message says why."""


def axis_of_result(op: Op, given: dict[int, int]) -> int:
    """The axis of the results, of an op of which some operands are there in parts.

    given: per place among the operands, the axis of its part.
    Errors: NotPartitionable.
    """
    rule = _FORWARD.get(op.name, _same if op.opdef.has(ELEMENTWISE) else None)
    if rule is None:
        raise NotPartitionable(f"{op.name} needs the whole tile")
    (axis, *others) = {rule(op, place, axis) for place, axis in given.items()}
    if axis is None or others:
        raise NotPartitionable(f"{op.name} needs the whole tile")
    return axis


def axes_of_operands(op: Op, axis: int) -> tuple[Axis, ...]:
    """The axes of the operands' parts that a part of the results is made of.

    Errors: NotPartitionable.
    """
    rule = _BACKWARD.get(op.name)
    if rule is not None:
        return rule(op, axis)
    if op.operands and not op.opdef.has(ELEMENTWISE):
        raise NotPartitionable(f"{op.name} makes whole tiles")
    return (axis,) * len(op.operands)


# ops whose results and operands have one shape -------------------------------------------------
def _same(_: Op, _place: int, axis: int) -> Axis:
    return axis


def _each(op: Op, axis: int) -> tuple[Axis, ...]:
    return (axis,) * len(op.operands)


# ops that change shapes ------------------------------------------------------------------------
def _repeated(op: Op, axis: int) -> tuple[Axis, ...]:
    """Of a broadcast: what is repeated along the axis is there whole."""
    return (None if op.x.type.shape[axis] == 1 else axis,)


def _reshaped(before: tuple[int, ...], after: tuple[int, ...], axis: int) -> Axis:
    """Where an axis is after a reshape that leaves it alone; None after one that does not."""
    for place, extent in enumerate(after):
        if (extent == before[axis]
                and math.prod(after[:place]) == math.prod(before[:axis])):
            return place
    return None


def _axis_after_reshape(op: Op, _place: int, axis: int) -> Axis:
    return _reshaped(op.x.type.shape, op.result.type.shape, axis)


def _axis_before_reshape(op: Op, axis: int) -> tuple[Axis, ...]:
    found = _reshaped(op.result.type.shape, op.x.type.shape, axis)
    if found is None:
        raise NotPartitionable("reshape takes the rows of a product apart")
    return (found,)


def _axis_after_transpose(op: Op, _place: int, axis: int) -> Axis:
    return attribute(op, "axes").index(axis)


def _axis_before_transpose(op: Op, axis: int) -> tuple[Axis, ...]:
    return (attribute(op, "axes")[axis],)


def _axis_after_reduce(op: Op, _place: int, axis: int) -> Axis:
    reduced = attribute(op, "axis")
    return None if axis == reduced else axis - (axis > reduced)


def _axis_before_reduce(op: Op, axis: int) -> tuple[Axis, ...]:
    return (axis + (axis >= attribute(op, "axis")),)


def _axis_after_split(op: Op, _place: int, axis: int) -> Axis:
    return axis if axis < len(op.results[0].type.shape) else None


# products --------------------------------------------------------------------------------------
def _axis_of_product(op: Op, place: int, axis: int) -> Axis:
    """The rows of a product are those of its first factor and of what it is added to."""
    rows = len(op.result.type.shape) + ROWS
    return rows if axis == rows and place != 1 else None


def _axes_of_factors(op: Op, axis: int) -> tuple[Axis, ...]:
    if axis != len(op.result.type.shape) + ROWS:
        raise NotPartitionable("a product is used by its columns")
    return axis, None, axis


_FORWARD: dict[str, Forward] = {
    "load": _same, "store": _same, "atomic_rmw": _same, "atomic_cas": _same,
    "broadcast": _same, "reshape": _axis_after_reshape, "transpose": _axis_after_transpose,
    "join": _same, "split": _axis_after_split,
    "reduce": _axis_after_reduce, "arg_reduce": _axis_after_reduce,
    "dot": _axis_of_product,
}
_BACKWARD: dict[str, Backward] = {
    "load": _each, "store": _each, "atomic_rmw": _each, "atomic_cas": _each,
    "splat": lambda _op, _axis: (None,), "broadcast": _repeated,
    "reshape": _axis_before_reshape, "transpose": _axis_before_transpose,
    "join": _each, "split": _each,
    "reduce": _axis_before_reduce, "arg_reduce": _axis_before_reduce,
    "dot": _axes_of_factors,
}

"""Tiles that have the first element of every run of others, made as those were made.

    i = 8 * p + arange 64       of runs of 8:   i' = 8 * p + arange 8 * 8
    q = x + i                                   q' = x + i'
"""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.tile_ir.folds.patterns import filled
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ops import elementwise
from blocknumba.tile_ir.ops.create import arange
from blocknumba.tile_ir.ops.shape import broadcast, extract, reshape, splat

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of `length` equal elements along an axis."""

    axis: int
    length: int

    def shorten(self, shape: Shape) -> Shape:
        """The shape with one element for each run."""
        extent = shape[self.axis] // self.length
        return (*shape[:self.axis], extent, *shape[self.axis + 1:])

    def apart(self, shape: Shape, length: int) -> Shape:
        """The shape with an axis for runs, of which so many elements are left."""
        extent = shape[self.axis] // self.length
        return (*shape[:self.axis], extent, length, *shape[self.axis + 1:])


class Sampler:
    """Makes tiles that have the first element of every run of others."""

    def __init__(self, rebuilder: Rebuilder):
        self._rebuilder = rebuilder
        self._made: dict[tuple[Value, Runs], Value] = {}

    def sample(self, value: Value, runs: Runs) -> Value:
        """The new tile for an old one, of the shortened shape."""
        key = value, runs
        if key not in self._made:
            made = self._again(value, runs) if value.owner is not None else None
            self._made[key] = made if made is not None else self._extracted(value, runs)
        return self._made[key]

    def _again(self, value: Value, runs: Runs) -> Value | None:
        """A tile made as the old one was; None where that is not arithmetic."""
        op, emit, shape = value.owner, self._rebuilder.builder.emit, value.type.shape
        if op.opdef is splat:
            return emit(splat, self._rebuilder[op.x], shape=runs.shorten(shape))
        if op.opdef is arange:
            return self._range(op, runs)
        if op.opdef.has(ELEMENTWISE):
            return emit(op.opdef, *[self.sample(x, runs) for x in op.operands], **op.attrs)
        if op.opdef is broadcast:
            inner = self._rebuilder[op.x] if op.x.type.shape[runs.axis] == 1 else self.sample(
                op.x, runs)
            return emit(broadcast, inner, shape=runs.shorten(shape))
        if op.opdef is reshape:
            axis = _axis_before(op, runs.axis)
            if axis is not None:
                inner = self.sample(op.x, Runs(axis, runs.length))
                return emit(reshape, inner, shape=runs.shorten(shape))
        return None

    def _range(self, op: Op, runs: Runs) -> Value:
        builder, size = self._rebuilder.builder, op.attrs["size"] // runs.length
        made = builder.emit(arange, start=0, size=size)
        for opdef, number in ((elementwise.mul, runs.length), (elementwise.add, op.attrs["start"])):
            made = builder.emit(opdef, made, filled(builder, made.type, number))
        return made

    def _extracted(self, value: Value, runs: Runs) -> Value:
        builder, shape = self._rebuilder.builder, value.type.shape
        apart = builder.emit(reshape, self._rebuilder[value], shape=runs.apart(shape, runs.length))
        one = builder.emit(extract, apart, starts=(0,) * (len(shape) + 1),
                           shape=runs.apart(shape, 1))
        return builder.emit(reshape, one, shape=runs.shorten(shape))


def is_arithmetic(value: Value, axis: int) -> bool:
    """Whether a tile is made of scalars, ranges and what is the same along an axis."""
    op = value.owner
    if op is None:
        return False
    if op.opdef in (splat, arange):
        return True
    if op.opdef.has(ELEMENTWISE):
        return all(is_arithmetic(x, axis) for x in op.operands)
    if op.opdef is broadcast:
        return op.x.type.shape[axis] == 1 or is_arithmetic(op.x, axis)
    before = _axis_before(op, axis) if op.opdef is reshape else None
    return before is not None and is_arithmetic(op.x, before)


def _axis_before(op: Op, axis: int) -> int | None:
    """The axis that a reshape keeps as this one; None if it cuts or joins it."""
    before, after = op.x.type.shape, op.result.type.shape
    if tuple(n for n in before if n > 1) != tuple(n for n in after if n > 1):
        return None
    place = sum(n > 1 for n in after[:axis])
    return [index for index, n in enumerate(before) if n > 1][place]

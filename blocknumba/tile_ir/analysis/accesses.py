"""Accesses to views as affine expressions: addresses, bounds, and axes of the array.

    elements q[b], r, k {sizes=(64, None)}     q of strides (t, s, 1), r a scalar, k a tile
      address    q + b * t + r * s + k         + s * i along axis 0
      bounds     extent - r - i > 0, ...
      axes       stride t, index b;  stride s, start r, tile axis 0;  ...

What pointer arithmetic hides is read from the ops: no axis has to be guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from blocknumba.tile_ir.analysis.polynomial import ONE, AffineExpression, Polynomial
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import attribute
from blocknumba.tile_ir.ir.tensor_map import UNBOUNDED
from blocknumba.tile_ir.ops import views
from blocknumba.tile_ir.ops.views import Placement, placements

Expressions = Callable[[Value], "AffineExpression | str"]


@dataclass(frozen=True, slots=True)
class SourceAxis:
    """An axis of an array that an access indexes.

    stride: elements.  start: the index of the first element; None where the axis is reversed.
    tile_axis: the axis of the tile along it; None where a scalar indexes it.
    """

    stride: Polynomial
    start: Polynomial | None
    tile_axis: int | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Pointers to elements of a view.

    pointer: the expression of the pointers.
    bounds: expressions that are positive where the elements are inside of the view.
    axes: of the array, in its order; None where an index is more than a start and a step of 1.
    """

    pointer: AffineExpression
    bounds: tuple[AffineExpression, ...]
    axes: tuple[SourceAxis, ...] | None


@dataclass(frozen=True, slots=True)
class _ViewAxis:
    """An axis of a view.   extent: None where it is not known."""

    source: SourceAxis
    extent: Polynomial


@dataclass(frozen=True, slots=True)
class _View:
    """A view.

    pointer: of its first element.  axes: its own.  indexed: those of the array that `view_select`
    has taken one index of.
    """

    pointer: AffineExpression
    axes: tuple[_ViewAxis, ...]
    indexed: tuple[SourceAxis, ...] = ()

    def moved(self, axis: int, index: Polynomial) -> _View:
        """The view from an index of an axis on."""
        old = self.axes[axis].source
        pointer = replace(self.pointer, base=self.pointer.base + index * old.stride)
        start = None if old.start is None else old.start + index
        return replace(self, pointer=pointer).changed(axis, source=replace(old, start=start))

    def changed(self, axis: int, **fields: object) -> _View:
        """The view with other fields of an axis."""
        axes = list(self.axes)
        axes[axis] = replace(axes[axis], **fields)
        return replace(self, axes=tuple(axes))


def access(op: Op, expressions: Expressions) -> Access | str:
    """The access of `elements`, or the reason, a sentence, why it is not affine.

    An axis whose extent is UNBOUNDED has no upper bound: every index of 32 bits is below it.
    """
    of = _view(op.view, expressions)
    if isinstance(of, str):
        return of
    sizes = attribute(op, "sizes")
    places, shape = placements([index.type.shape for index in op.indices], sizes)
    pointer = AffineExpression(of.pointer.base, (Polynomial(),) * len(shape), of.pointer.origin)
    bounds, axes = [], list(of.indexed)
    for index, size, place, along, known in zip(op.indices, sizes, places, of.axes,
                                                attribute(op, "nonnegative"), strict=True):
        indices = expressions(index)
        if isinstance(indices, str):
            return indices
        if size is not None:
            indices = AffineExpression(indices.base, (ONE if size > 1 else Polynomial(),))
        indices = _placed(indices, place)
        pointer += indices.times(along.source.stride)
        lower = indices + AffineExpression(ONE, (Polynomial(),) * len(shape))
        upper = AffineExpression(along.extent, (Polynomial(),) * len(shape)) - indices
        bounds += [upper] * (along.extent.number != UNBOUNDED) + [lower] * (not known)
        axes.append(_source_axis(along.source, indices))
    return Access(pointer, tuple(bounds), None if None in axes else tuple(axes))


def _placed(indices: AffineExpression, place: Placement) -> AffineExpression:
    """Indices as they vary along the axes of the tile."""
    steps = [Polynomial()] * place.rank
    first = place.first_of(indices.steps)
    steps[first:first + len(indices.steps)] = indices.steps
    return AffineExpression(indices.base, tuple(steps))


def _source_axis(source: SourceAxis, indices: AffineExpression) -> SourceAxis | None:
    """An axis of the array, with what indexes it; None for more than a start and a step of 1."""
    varying = [axis for axis, step in enumerate(indices.steps) if step]
    if source.start is None or len(varying) > 1 or any(
            indices.steps[axis] != ONE for axis in varying):
        return None
    return SourceAxis(source.stride, source.start + indices.base, *varying)


def _view(view: Value, expressions: Expressions) -> _View | str:
    op = view.owner
    if op.opdef is views.view:
        return _root(op, expressions)
    before = _view(op.view, expressions)
    if isinstance(before, str):
        return before
    if op.opdef is views.view_permute:
        return replace(before, axes=tuple(before.axes[axis] for axis in attribute(op, "axes")))
    axis = attribute(op, "axis")
    if op.opdef is views.view_slice:
        length = expressions(op.length).base
        return before.moved(axis, expressions(op.start).base).changed(axis, extent=length)
    if op.opdef is views.view_select:
        moved = before.moved(axis, expressions(op.index).base)
        return replace(moved, axes=moved.axes[:axis] + moved.axes[axis + 1:],
                       indexed=(*moved.indexed, moved.axes[axis].source))
    moved = before.moved(axis, before.axes[axis].extent - ONE)
    reversed_ = SourceAxis(-before.axes[axis].source.stride, None)
    return moved.changed(axis, source=reversed_)


def _root(op: Op, expressions: Expressions) -> _View | str:
    pointer = expressions(op.pointer)
    if isinstance(pointer, str):
        return pointer
    sizes = iter(op.sizes)
    extents, strides = ([
        expressions(next(sizes)).base if known is None else Polynomial.constant(known)
        for known in attribute(op, name)] for name in ("extents", "strides"))
    start = None if pointer.base else Polynomial()
    return _View(pointer, tuple(_ViewAxis(SourceAxis(stride, start), extent)
                                for extent, stride in zip(extents, strides, strict=True)))

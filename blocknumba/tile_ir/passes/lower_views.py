"""Views become pointer arithmetic, and their bounds become masks.

    %v = view %x, %m, %k, %s {extents=(None, None), strides=(None, 1)}
    %p, %inside = elements %v, %r, %c {sizes=(64, 32), nonnegative=(True, True)}

    %p       offset(offset(%x, %r * %s + %c), i * %s + j)       i, j: index in the tile
    %inside  i < %m - %r  and  j < %k - %c

What a span starts at goes into a scalar offset, so that the tiles of offsets do not change from
one iteration of a loop to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from blocknumba.tile_ir.folds.patterns import filled, number, splatted
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import OPS, attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.ir.types import DType, TileType, bool_, int32, int64
from blocknumba.tile_ir.ops import views
from blocknumba.tile_ir.ops.shape import common_shape
from blocknumba.tile_ir.ops.views import Placement, placements
from blocknumba.tile_ir.passes.contract import declared


@declared(reads=("ops",), writes=("ops",))
def lower_views(fn: Function, _: object = None) -> Function:
    """Make pointers of the elements of views, and masks of their bounds."""
    return rebuild(fn, _Lowering())


def has_views(fn: Function) -> bool:
    """Whether something of a function is a view."""
    return any(op.opdef is views.view for op in walk(fn.body))


def has_elements(fn: Function) -> bool:
    """Whether a function has addresses that `lower_views` computes, not pointers of its own."""
    return any(op.opdef in (views.elements, views.view_pointer) for op in walk(fn.body))


@dataclass(frozen=True, slots=True)
class _View:
    """Parts of a view: new values, and ints that are known at compile time."""

    pointer: Value
    extents: tuple[Value | int, ...]
    strides: tuple[Value | int, ...]
    wide: bool


class _Lowering:
    """The rewrite; knows the views by their old values."""

    def __init__(self):
        self._views: dict[Value, _View] = {}
        self._rules = {views.view: self._view, views.view_select: self._select,
                       views.view_slice: self._slice, views.view_reverse: self._reverse,
                       views.view_permute: self._permute}

    def __call__(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        if op.opdef is views.elements:
            return _elements(rebuilder, op, self._views[op.view])
        if op.opdef is views.raised_elements:
            return rebuilder[op.pointer], rebuilder[op.inside]
        if op.opdef is views.view_pointer:
            return (self._views[op.view].pointer,)
        rule = self._rules.get(op.opdef)
        if rule is None:
            return None
        self._views[op.result] = rule(rebuilder, op)
        return op.results  # no op uses it any more

    @staticmethod
    def _view(rebuilder: Rebuilder, op: Op) -> _View:
        sizes = (rebuilder[size] for size in op.sizes)
        extents, strides = (
            tuple([next(sizes) if known is None else known for known in attribute(op, name)])
            for name in ("extents", "strides"))
        return _View(rebuilder[op.pointer], extents, strides, attribute(op, "wide"))

    def _select(self, rebuilder: Rebuilder, op: Op) -> _View:
        axis = attribute(op, "axis")
        moved = self._moved(rebuilder, op, rebuilder[op.index])
        return replace(moved, extents=_without(moved.extents, axis),
                       strides=_without(moved.strides, axis))

    def _slice(self, rebuilder: Rebuilder, op: Op) -> _View:
        moved = self._moved(rebuilder, op, rebuilder[op.start])
        length = _known(rebuilder[op.length])
        return replace(moved, extents=_with(moved.extents, attribute(op, "axis"), length))

    def _reverse(self, rebuilder: Rebuilder, op: Op) -> _View:
        axis, before = attribute(op, "axis"), self._views[op.view]
        extent, stride, builder = before.extents[axis], before.strides[axis], rebuilder.builder
        last = extent - 1 if isinstance(extent, int) else _combined(builder, "add", extent, -1)
        stride = -stride if isinstance(stride, int) else builder.emit(OPS["neg"], stride)
        moved = self._moved(rebuilder, op, last)
        return replace(moved, strides=_with(before.strides, axis, stride))

    def _permute(self, _: Rebuilder, op: Op) -> _View:
        axes, before = attribute(op, "axes"), self._views[op.view]
        return replace(before, extents=tuple(before.extents[axis] for axis in axes),
                       strides=tuple(before.strides[axis] for axis in axes))

    def _moved(self, rebuilder: Rebuilder, op: Op, index: Value | int) -> _View:
        """The view of an op, with the pointer at an index of the op's axis."""
        before, builder = self._views[op.view], rebuilder.builder
        offset = _scaled(builder, before, index, attribute(op, "axis"))
        return before if offset is None else (
            replace(before, pointer=builder.emit(OPS["offset"], before.pointer, offset)))


def _elements(rebuilder: Rebuilder, op: Op, view: _View) -> Values:
    """The pointers of `elements`, and their mask."""
    sizes, indices = attribute(op, "sizes"), [rebuilder[index] for index in op.indices]
    places, shape = placements([index.type.shape for index in indices], sizes)
    access = _Access(rebuilder.builder, view)
    for axis, (index, size, place) in enumerate(zip(indices, sizes, places, strict=True)):
        nonnegative = attribute(op, "nonnegative")[axis]
        if size is not None:
            access.add_span(axis, index, size, place, nonnegative)
        elif index.type.shape:
            access.add_tile(axis, index, place, nonnegative)
        else:
            access.add_scalar(axis, index, nonnegative)
    return access.pointer(shape), access.mask(shape)


class _Access:
    """Parts of an access, gathered axis by axis.

    Offsets and conditions of scalars are combined at once; those of tiles at last, so that they are
    combined by shape.
    """

    def __init__(self, builder: Builder, view: _View):
        self._builder, self._view = builder, view
        self._first: Value | None = None  # offset of the first element, a scalar
        self._inside: Value | None = None  # whether the scalar indices are in bounds
        self._offsets: list[Value] = []
        self._masks: list[Value] = []

    def add_span(self, axis: int, start: Value, size: int, place: Placement,
                 nonnegative: bool) -> None:
        """Add a span of an axis."""
        steps = self._placed(self._builder.emit(OPS["arange"], start=0, size=size), place)
        self._move(start, axis)
        self._offset_tile(steps, axis)
        # steps < extent - start, and not start + steps < extent: the difference cannot overflow
        left = self._combined("sub", self._view.extents[axis], start)
        self._masks.append(self._combined("lt", steps, left))
        if not nonnegative:
            negative = self._builder.emit(OPS["neg"], start)
            self._masks.append(self._combined("ge", steps, negative))

    def add_tile(self, axis: int, index: Value, place: Placement, nonnegative: bool) -> None:
        """Add a tile of indices of an axis."""
        index = self._placed(index, place)
        self._offset_tile(index, axis)
        self._masks += self._bounds(axis, index, nonnegative)

    def add_scalar(self, axis: int, index: Value, nonnegative: bool) -> None:
        """Add one index of an axis."""
        self._move(index, axis)
        known = () if self._inside is None else (self._inside,)
        self._inside = self._all("and", (*known, *self._bounds(axis, index, nonnegative)))

    def pointer(self, shape: tuple[int, ...]) -> Value:
        """The pointers to the elements."""
        builder, pointer = self._builder, self._view.pointer
        if self._first is not None:
            pointer = builder.emit(OPS["offset"], pointer, self._first)
        pointer = splatted(builder, pointer, shape)
        if not self._offsets:
            return pointer
        offset = _repeated(builder, self._all("add", self._offsets), shape)
        return builder.emit(OPS["offset"], pointer, offset, narrow=not self._view.wide)

    def mask(self, shape: tuple[int, ...]) -> Value:
        """Whether the elements are in bounds."""
        masks = [self._all("and", self._masks)] if self._masks else []
        if self._inside is not None:
            masks.append(self._inside)
        if not masks:
            return filled(self._builder, TileType(bool_, shape), True)
        return _repeated(self._builder, self._all("and", masks), shape)

    def _placed(self, tile: Value, place: Placement) -> Value:
        shape = place.shape(tile.type.shape)
        return tile if shape == tile.type.shape else (
            self._builder.emit(OPS["reshape"], tile, shape=shape))

    def _move(self, index: Value, axis: int) -> None:
        """Add what a scalar index moves the first element by."""
        offset = _scaled(self._builder, self._view, index, axis)
        if offset is not None:
            self._first = offset if self._first is None else (
                self._combined("add", self._first, offset))

    def _offset_tile(self, index: Value, axis: int) -> None:
        offset = _scaled(self._builder, self._view, index, axis)
        if offset is not None:
            self._offsets.append(offset)

    def _bounds(self, axis: int, index: Value, nonnegative: bool) -> list[Value]:
        """The conditions that an index is in bounds."""
        upper = self._combined("lt", index, self._view.extents[axis])
        return [upper] if nonnegative else [upper, self._combined("ge", index, 0)]

    def _combined(self, name: str, x: Value | int, y: Value | int) -> Value:
        return _combined(self._builder, name, x, y)

    def _all(self, name: str, values: Sequence[Value]) -> Value:
        return reduce(partial(self._combined, name), values)


def _scaled(builder: Builder, view: _View, index: Value | int, axis: int) -> Value | None:
    """index times the stride of an axis, an offset that cannot overflow; None for 0."""
    stride = view.strides[axis]
    if stride == 0:
        return None
    if stride == 1 or isinstance(index, int) and isinstance(stride, int):
        return _number(builder, index if stride == 1 else index * stride, int32)
    if view.wide:
        index, stride = (_cast(builder, _number(builder, x, int64), int64)
                         for x in (index, stride))
    return _combined(builder, "mul", index, stride)


def _combined(builder: Builder, name: str, x: Value | int, y: Value | int) -> Value:
    """An op of two ints or tiles of them, of which at most one is an int, in their wider dtype."""
    if isinstance(x, int):
        x = _number(builder, x, y.type.dtype)
    if isinstance(y, int):
        y = _number(builder, y, x.type.dtype)
    dtype = max(x.type.dtype, y.type.dtype, key=lambda dtype: dtype.bits)
    shape = common_shape((x.type.shape, y.type.shape), "index")
    x, y = _cast(builder, x, dtype), _cast(builder, y, dtype)
    return builder.emit(OPS[name], _repeated(builder, x, shape), _repeated(builder, y, shape))


def _number(builder: Builder, x: Value | int, dtype: DType) -> Value:
    """An int as a scalar, of a dtype if it fits."""
    if isinstance(x, Value):
        return x
    return builder.constant(x, dtype if dtype.minimum <= x <= dtype.maximum else int64)


def _cast(builder: Builder, x: Value, dtype: DType) -> Value:
    return x if x.type.dtype == dtype else builder.emit(OPS["cast"], x, dtype=dtype.name)


def _repeated(builder: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    """A scalar, or a tile of as many axes, broadcast to a shape."""
    own = x.type.shape
    if own == shape:
        return x
    return builder.emit(OPS["broadcast"], x, shape=shape) if own else splatted(builder, x, shape)


def _known(x: Value) -> Value | int:
    """A scalar as an int if it is known."""
    known = number(x)
    return x if known is None else known


def _without(sizes: tuple, axis: int) -> tuple:
    return sizes[:axis] + sizes[axis + 1:]


def _with(sizes: tuple, axis: int, size: Value | int) -> tuple:
    return (*sizes[:axis], size, *sizes[axis + 1:])

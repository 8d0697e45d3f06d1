"""Ops on views: arrays in memory with an extent and a stride for each axis, and their elements.

    %v = view %q, %q_extent0, %q_extent1, %q_stride0, %q_stride1       q[b][r, k], k a span
      {extents=(None, None, 64), strides=(None, None, 1)}
    %w = view_select %v, %b {axis=0}
    %p, %inside = elements %w, %r, %k {sizes=(None, 32), nonnegative=(False, True)}
    %x = load %p, %inside

A view is a scalar: all threads of a program have the same.  `lower_views` makes pointer arithmetic
of it.  In NumPy numerics it is a row of int64: the address of its first element, the extents, the
strides.  Of pointers, `raise_pointers` finds the view: `raised_elements` has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import PURE, op
from blocknumba.tile_ir.ir.types import MAX_RANK, PointerType, TileType, ViewType, bool_
from blocknumba.tile_ir.ops.create import require_shape
from blocknumba.tile_ir.ops.shape import common_shape


def _require_view(name: str, given: TileType, axis: int | None = None) -> ViewType:
    """Require a view that has an axis; returns the type of the view."""
    require(isinstance(given.dtype, ViewType), "{}: given {}, accepted a view", name, given)
    require(axis is None or 0 <= axis < given.dtype.rank, "{}: given axis {} of {}", name, axis,
            given)
    return given.dtype


def _require_index(name: str, given: TileType) -> None:
    """Require signed integers of 32 or 64 bits."""
    require(not given.is_pointer and given.dtype.is_integer and given.dtype.is_signed
            and given.dtype.bits >= 32, "{}: given {}, accepted int32 and int64", name, given)


def _require_scalars(name: str, *given: TileType) -> None:
    for scalar in given:
        _require_index(name, scalar)
        require(scalar.is_scalar, "{}: given {}, accepted a scalar", name, scalar)


@op(PURE)
def view(pointer, *sizes, extents, strides, wide=False) -> TileType:
    """The array whose element at index i is at pointer + sum(i[axis] * strides[axis]).

    pointer: scalar, to the first element.
    extents, strides: per axis, in elements; None where it is known at run time only.  Those are
    sizes, int scalars: the extents first, then the strides.
    wide: offsets of elements may not fit in 32 bits.
    """
    require(pointer.is_pointer and pointer.is_scalar, "view: given {}, accepted a pointer", pointer)
    _require_scalars("view", *sizes)
    require(len(extents) == len(strides), "view: given {} extents and {} strides", len(extents),
            len(strides))
    unknown = (*extents, *strides).count(None)
    require(len(sizes) == unknown, "view: given {} sizes, accepted {}", len(sizes), unknown)
    return TileType(ViewType(pointer.dtype.pointee, len(extents)))


@view.numpy
def _(pointer, *sizes, extents, strides, wide=False):
    given = iter(sizes)
    numbers = [next(given) if number is None else np.array([number])
               for number in (*extents, *strides)]
    return np.stack(np.broadcast_arrays(pointer, *numbers), axis=-1).astype(np.int64)


@op(PURE)
def view_select(view, index, *, axis) -> TileType:
    """view at one index of an axis, which the result has no more.

    index: int scalar; it is not checked: the elements may lie outside of the array.
    """
    given = _require_view("view_select", view, axis)
    _require_scalars("view_select", index)
    return TileType(ViewType(given.element, given.rank - 1))


@view_select.numpy
def _(view, index, *, axis):
    rank = view.shape[-1] // 2
    left = [column for number, column in enumerate(np.moveaxis(view, -1, 0)[1:])
            if number % rank != axis]
    moved = view[..., 0] + index.astype(np.int64) * view[..., 1 + rank + axis]
    return np.stack(np.broadcast_arrays(moved, *left), axis=-1)


@op(PURE)
def view_slice(view, start, length, *, axis) -> TileType:
    """view with the length elements of an axis from start on.

    start, length: int scalars, which lie in the array, or the elements lie outside of it.
    """
    _require_view("view_slice", view, axis)
    _require_scalars("view_slice", start, length)
    return view


@view_slice.numpy
def _(view, start, length, *, axis):
    rank = view.shape[-1] // 2
    columns = list(np.moveaxis(view, -1, 0))
    columns[0] = columns[0] + start.astype(np.int64) * columns[1 + rank + axis]
    columns[1 + axis] = length.astype(np.int64)
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


@op(PURE)
def view_reverse(view, *, axis) -> TileType:
    """view with one axis from its end to its start."""
    _require_view("view_reverse", view, axis)
    return view


@view_reverse.numpy
def _(view, *, axis):
    rank, result = view.shape[-1] // 2, view.copy()
    extent, stride = view[..., 1 + axis], view[..., 1 + rank + axis]
    result[..., 0] += (extent - 1) * stride
    result[..., 1 + rank + axis] = -stride
    return result


@op(PURE)
def view_permute(view, *, axes) -> TileType:
    """Axis i of the result is axis axes[i] of view.   Source: numpy.transpose."""
    given = _require_view("view_permute", view)
    require(sorted(axes) == list(range(given.rank)), "view_permute: given axes {} of {}", axes,
            view)
    return view


@view_permute.numpy
def _(view, *, axes):
    rank = len(axes)
    return view[..., [0, *(1 + axis for axis in axes), *(1 + rank + axis for axis in axes)]]


@op(PURE)
def view_pointer(view) -> TileType:
    """The pointer to the first element of a view."""
    return TileType(PointerType(_require_view("view_pointer", view).element))


@view_pointer.numpy
def _(view):
    return view[..., 0]


@dataclass(frozen=True, slots=True)
class Placement:
    """The axes of a tile of elements that the axes of one index become.

    first: axis of the tile that the index's first axis becomes; rank: of the tile; group: axes
    that the index is broadcast to before.
    """

    first: int
    rank: int
    group: int

    def first_of(self, own: tuple) -> int:
        """The axis of the tile that the first one of an index with these axes becomes."""
        return self.first + self.group - len(own)

    def shape(self, own: tuple[int, ...]) -> tuple[int, ...]:
        """The shape, of the rank of the tile, that an index of a shape is placed with."""
        own = (1,) * (self.group - len(own)) + own
        return (1,) * self.first + own + (1,) * (self.rank - self.first - self.group)


def placements(indices: Sequence[tuple[int, ...]], sizes: Sequence[int | None],
               ) -> tuple[list[Placement], tuple[int, ...]]:
    """The placement of each index, and the shape of the elements, as in advanced indexing.

    indices: their shapes.  sizes: as of `elements`.
    Spans keep their axes.  Other indices share the axes that they broadcast to; these come where
    the indices are, or first when a span separates them from each other.
    Source: NumPy, "Combining advanced and basic indexing".
    """
    advanced = [axis for axis, size in enumerate(sizes) if size is None]
    shapes = [indices[axis] for axis in advanced if indices[axis]]
    group = common_shape(shapes, "index") if shapes else ()
    is_together = not advanced or advanced[-1] - advanced[0] + 1 == len(advanced)
    before = advanced[0] if shapes and is_together else 0
    rank = len(group) + len(sizes) - len(advanced)
    if rank > MAX_RANK:
        raise BlockTypeError(f"index: given an access of rank {rank}, accepted at most {MAX_RANK}")
    places = []
    shape = [1] * before + list(group) + [1] * (rank - before - len(group))
    axis = 0
    for size in sizes:
        if size is None:
            places.append(Placement(before, rank, len(group)))
            continue
        if axis == before and group:
            axis += len(group)
        places.append(Placement(axis, rank, 1))
        shape[axis] = size
        axis += 1
    return places, tuple(shape)


@op(PURE)
def elements(view, *indices, sizes, nonnegative) -> tuple[TileType, TileType]:
    """Pointers to elements of a view, and which of them are inside of it.

    indices: one for each axis: an int scalar, an int tile, or the int scalar that a span starts at.
    sizes: per axis, the size of the span; None for ints and tiles.
    nonnegative: per axis, whether the index is known to be 0 or more.
    The results have the shape that NumPy gives the indices (see `placements`).
    """
    given = _require_view("elements", view)
    require(len(indices) == len(sizes) == len(nonnegative) == given.rank,
            "elements: given {} indices of {}", len(indices), view)
    for index, size in zip(indices, sizes, strict=True):
        _require_index("elements", index)
        require(size is None or index.is_scalar, "elements: given {} for the start of a span",
                index)
    _, shape = placements([index.shape for index in indices], sizes)
    if shape:
        require_shape("elements", shape)
    return TileType(PointerType(given.element), shape), TileType(bool_, shape)


@elements.numpy
def _(view, *indices, sizes, nonnegative):
    rank = len(sizes)
    given = [index.astype(np.int64) if size is None
             else index.astype(np.int64)[:, None] + np.arange(size)
             for index, size in zip(indices, sizes, strict=True)]
    places, shape = placements([index.shape[1:] if size is None else ()
                                for index, size in zip(given, sizes, strict=True)], sizes)
    columns = np.moveaxis(view.reshape(len(view), -1, *(1,) * len(shape)), 1, 0)
    address, inside = columns[0], np.array(True)
    for axis, (index, place) in enumerate(zip(given, places, strict=True)):
        index = index.reshape(len(index), *place.shape(index.shape[1:]))
        address = address + index * columns[1 + rank + axis]
        inside = inside & (index >= 0) & (index < columns[1 + axis])
    programs = len(address)
    return np.broadcast_to(address, (programs, *shape)), np.broadcast_to(inside, (programs, *shape))


@op(PURE)
def raised_elements(pointer, inside, view, *indices, sizes, nonnegative,
                    ) -> tuple[TileType, TileType]:
    """pointer and inside, which are the pointers and the mask of `elements` of a view.

    view, indices, sizes, nonnegative: as of `elements`; they say what pointer arithmetic hides.
    """
    found = elements.infer(view, *indices, sizes=sizes, nonnegative=nonnegative)
    require((pointer, inside) == found, "raised_elements: given {} and {}, accepted {} and {}",
            pointer, inside, *found)
    return found


@raised_elements.numpy
def _(pointer, inside, view, *indices, sizes, nonnegative):
    return elements.evaluate(view, *indices, sizes=sizes, nonnegative=nonnegative)


def elements_of(pointer: Value) -> Op | None:
    """The op that makes pointers of elements of a view; None where another one made them."""
    made = pointer.owner
    return made if made is not None and made.opdef in (elements, raised_elements) else None


def known_stride(view_: Value, axis: int) -> int | None:
    """The stride of an axis of a view, if it is known at compile time."""
    made = view_.owner
    if made.opdef is view:
        return made.attrs["strides"][axis]
    if made.opdef is view_permute:
        return known_stride(made.view, made.attrs["axes"][axis])
    if made.opdef is view_select:
        return known_stride(made.view, axis + (axis >= made.attrs["axis"]))
    found = known_stride(made.view, axis)
    if found is not None and made.opdef is view_reverse and made.attrs["axis"] == axis:
        return -found
    return found

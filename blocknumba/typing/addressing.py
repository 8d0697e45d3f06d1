"""The elements that a reference names, as an op on the view of its array."""

from __future__ import annotations

from dataclasses import dataclass, field

from blocknumba.errors import require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import uint64
from blocknumba.tile_ir.ops.views import placements
from blocknumba.typing.arrays import from_start, position_dtype, view_of
from blocknumba.typing.context import Context
from blocknumba.typing.ranges import is_nonnegative
from blocknumba.typing.values import Array, Reference, Span, is_constant


@dataclass(slots=True)
class _Indices:
    """The indices of an access, axis by axis: those of the op `elements`, and their attributes.

    checked: the ints and tiles of ints among them that debug checks, by axis.
    """

    values: list[Value] = field(default_factory=list)
    sizes: list[int | None] = field(default_factory=list)
    nonnegative: list[bool] = field(default_factory=list)
    checked: dict[int, Value] = field(default_factory=dict)


def address(context: Context, target: Reference) -> tuple[Value, Value, dict[int, Value]]:
    """The pointers to the elements of a reference, and the mask of those inside of the array.

    The third are positions, for `check_positions`.
    Errors: an int of compile time outside of an axis whose extent is known too.
    """
    array, indices = target.array, _Indices()
    for axis, entry in enumerate(target.index):
        if isinstance(entry, Span):
            _add(context, indices, entry.start, entry.size)
            continue
        given, position = _position(context, array, axis, entry)
        if given is not None:
            # the position may have wrapped around
            indices.checked[axis] = given if given.type.dtype == uint64 else position
        _add(context, indices, position, None)
    pointer, inside = context.emit(
        "elements", view_of(context, array), *indices.values, sizes=tuple(indices.sizes),
        nonnegative=tuple(indices.nonnegative))
    return pointer, inside, indices.checked


def check_positions(context: Context, target: Reference, positions: dict[int, Value],
                    mask: Value | None) -> None:
    """With debug=True, report an int outside of its axis.  A span may reach over the edge.

    mask: of the shape of the access: which elements of it are meant; None for all.
    """
    if not context.options.debug:
        return
    places, _ = placements([_shape(entry) for entry in target.index],
                           [entry.size if isinstance(entry, Span) else None
                            for entry in target.index])
    array = target.array
    for axis, index in positions.items():
        if mask is not None:
            shape = places[axis].shape(index.type.shape)
            index = index if shape == index.type.shape else (
                context.emit("reshape", index, shape=shape))
            index = context.broadcast_to(index, mask.type.shape)
        extent = context.value(array.extents[axis], index.type.dtype)
        operands = [index, context.broadcast_to(extent, index.type.shape)]
        context.emit("check_index", *operands, *(() if mask is None else (mask,)),
                     array=array.name, axis=axis)


def _shape(entry: object) -> tuple[int, ...]:
    return entry.type.shape if isinstance(entry, Value) else ()


def _add(context: Context, indices: _Indices, value: Value, size: int | None) -> None:
    indices.values.append(value)
    indices.sizes.append(size)
    indices.nonnegative.append(is_nonnegative(value, context.nonnegative))


def _position(context: Context, array: Array, axis: int,
              entry: object) -> tuple[Value | None, Value]:
    """An int or a tile of ints as it is given, None if it needs no check; and as a position."""
    extent = array.extents[axis]
    if isinstance(entry, Value) and entry.type.shape:
        return entry, context.cast(entry, position_dtype(context, entry.type.dtype))
    position = from_start(context, entry, extent)
    is_known = is_constant(position) and is_constant(extent)
    require(not is_known or 0 <= position < extent,
            "{}: index {} is out of bounds for axis {} with extent {}", array.name, entry, axis,
            extent)
    scalar = context.value(position)
    given = None if is_known else entry if isinstance(entry, Value) else scalar
    return given, context.cast(scalar, position_dtype(context, scalar.type.dtype))

"""Functions that take elements of tiles: by slices, by indices, turned around an axis.

What is known at compile time is a rearrangement where its pieces are few, and a `gather` of
computed indices else.
"""

from __future__ import annotations

import math

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import bool_, int32
from blocknumba.typing.context import Context, describe, require_numbers
from blocknumba.typing.function import function
from blocknumba.typing.functions.concatenate import in_a_row, next_size, part_of
from blocknumba.typing.functions.elementwise import binary, unary
from blocknumba.typing.functions.shape import reshaped, tile_of
from blocknumba.typing.functions.spans import span_index
from blocknumba.typing.static_values import static_axis, static_int
from blocknumba.typing.values import Span, is_constant, unwrapped

MAX_PIECES = 4  # of a rearrangement; more elements move as a gather


@function
def gather(context, src, index, axis):
    """The elements of src at indices along axis: src[i, index[i, j, k], k] for axis 1 of three.

    src: a tile; index: a tile of ints of the same rank, any extent along axis; their other axes
    are broadcast together.  The result has the shape of index and the dtype of src.
    An index outside of the axis, negative ones of run time too, gives 0, and with debug=True an
    error; an int known at compile time counts from the end if it is negative, and is one
    element that keeps its axis.
    Source: numpy.take_along_axis, Triton's gather.

    Example:
    >>> bn.evaluate(bn.gather, [10, 20, 30, 40], [3, 0], axis=0)
    array([40, 10])
    """
    return _along(context, "gather", src, index, axis)


@function
def take_along_axis(context, arr, indices, axis=-1):
    """The elements of arr at indices along axis, or of all elements in C order for axis=None.

    As gather.   Source: numpy.take_along_axis.
    """
    if axis is None:
        tile = tile_of(context, "take_along_axis", arr)
        arr = reshaped(context, "take_along_axis", tile, (tile.type.size,))
    return _along(context, "take_along_axis", arr, indices, 0 if axis is None else axis)


@function
def roll(context, x, shift, axis=None):
    """x with its elements moved by shift along axis; those that leave it come in at its start.

    shift: an int, also of run time; with several axes one for each, or one for all.
    axis: None moves the elements in C order.
    Source: numpy.roll.

    Example:
    >>> bn.evaluate(bn.roll, [1, 2, 3, 4], 1)
    array([4, 1, 2, 3])
    """
    tile = tile_of(context, "roll", x)
    shape = tile.type.shape
    if axis is None:
        flat = reshaped(context, "roll", tile, (tile.type.size,))
        return reshaped(context, "roll", _rolled(context, flat, shift, 0), shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    require(len(axes) == len(shifts), "roll: given {} shifts and {} axes, accepted as many",
            len(shifts), len(axes))
    for at, by in zip(axes, shifts):
        tile = _rolled(context, tile, by, static_axis("roll", at, len(shape)))
    return tile


@function
def extract(context, x, starts, shape):
    """The part of x of a shape: x[starts[0] : starts[0] + shape[0], ...].

    starts: an int for each axis, also of run time; elements outside of x are 0.
    shape: compile-time powers of two.
    Errors: a part that is larger than x.

    Example:
    >>> bn.evaluate(bn.extract, [[1, 2, 3, 4], [5, 6, 7, 8]], (0, 1), (2, 2))
    array([[2, 3],
           [6, 7]])
    """
    tile = tile_of(context, "extract", x)
    starts, sizes = _part_arguments("extract", tile, starts, shape)
    for axis, (start, size) in enumerate(zip(starts, sizes)):
        is_inside = isinstance(start, int) and 0 <= start <= tile.type.shape[axis] - size
        tile = _window(context, tile, axis, start, size) if is_inside else (
            _gathered(context, tile, _sum(context, start, size), axis))
    return tile


@function
def insert(context, x, part, starts):
    """x with a part replaced: x[starts[0] : starts[0] + part.shape[0], ...] = part, as a new tile.

    part: a tile of x's rank, converted to x's dtype; starts: an int for each axis, also of run
    time; elements outside of x are dropped.
    Errors: a part that is larger than x.

    Example:
    >>> bn.evaluate(bn.insert, [0, 0, 0, 0], [1, 2], (1,))
    array([0, 1, 2, 0])
    """
    tile = tile_of(context, "insert", x)
    part = context.value(part, tile.type.dtype, "insert")
    require(len(part.type.shape) == len(tile.type.shape), "insert: given a part {} for {}, "
            "accepted one of its rank", part.type, tile.type)
    starts, sizes = _part_arguments("insert", tile, starts, part.type.shape)
    covered = None
    for axis, (start, size) in enumerate(zip(starts, sizes)):
        extent = tile.type.shape[axis]
        if size == extent and start == 0:
            continue
        place = _place(context, axis, start, extent, len(sizes))
        inside = binary(context, "and", binary(context, "ge", place, 0),
                        binary(context, "lt", place, size))
        covered = inside if covered is None else binary(context, "and", covered, inside)
        part = _repeated(context, part, axis, extent)
        part = _rolled(context, part, start, axis)
    if covered is None:
        return part
    return context.emit("select", context.broadcast_to(covered, tile.type.shape), part, tile)


def _place(context: Context, axis: int, start: object, extent: int, rank: int) -> Value:
    """The distance from start of each element of an axis, with the other axes of extent 1."""
    along = context.emit("arange", start=0, size=extent)
    shape = tuple(extent if a == axis else 1 for a in range(rank))
    return reshaped(context, "insert", binary(context, "sub", along, start), shape)


def _repeated(context: Context, tile: Value, axis: int, extent: int) -> Value:
    """A tile again and again along an axis."""
    shape = tile.type.shape
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis:])
    rows = reshaped(context, "insert", tile, (outer, 1, inner))
    rows = context.broadcast_to(rows, (outer, extent // shape[axis], inner))
    return reshaped(context, "insert", rows, (*shape[:axis], extent, *shape[axis + 1:]))


def _part_arguments(name: str, tile: Value, starts: object,
                    shape: object) -> tuple[tuple, tuple[int, ...]]:
    """Starts and extents of a part, which is no larger than the tile."""
    starts = starts if isinstance(starts, tuple) else (starts,)
    given = shape if isinstance(shape, tuple) else (shape,)
    sizes = tuple(static_int(f"{name}: shape", n) for n in given)
    extents = tile.type.shape
    require(len(starts) == len(sizes) == len(extents), "{}: given {} starts and {} extents, "
            "accepted one for each axis of {}", name, len(starts), len(sizes), tile.type)
    for size in sizes:
        _require_size(name, size)
    for start in starts:
        require_numbers(f"{name}: starts", start)
    require(all(size <= extent for size, extent in zip(sizes, extents)),
            "{}: given a part of shape {}, accepted one that {} can hold", name, sizes, tile.type,
            error=BlockValueError)
    found = [min(max(static_int(f"{name}: starts", start), -size), extent)
             if is_constant(start) else start
             for start, size, extent in zip(starts, sizes, extents)]
    return tuple(found), sizes


def index_tile(context: Context, tile: Value, index: tuple) -> Value:
    """tile[index] for an index of `:`, None, `...`, ints, slices, spans and one tile of ints.

    Slices are known at compile time.  What is outside of the tile at run time is 0.
    Errors: a slice whose size is no power of two; a tile of ints beside ints, or another one.
    """
    shape, entries = tile.type.shape, _expanded(tile, index)
    count = sum(entry is not None for entry in entries)
    require(count <= len(shape), "index: given {} axes, accepted at most {} for {}", count,
            len(shape), tile.type)
    starts, lengths, result = [], [], []
    for entry in entries:
        if entry is None:
            result.append(1)
            continue
        axis = len(starts)
        if _is_of_run_time(entry):
            tile, extents = _picked(context, tile, index, entry, axis)
            starts.append(0)
            lengths.append(math.prod(extents))
            result += extents
            continue
        if type(entry) is Span:
            tile = _gathered(context, tile, span_index(context, entry), axis)
            starts.append(0)
            lengths.append(entry.size)
            result.append(entry.size)
            continue
        taken = _taken(tile, entry, shape[axis])
        if len(taken) > 1 and (taken.step != 1 or taken.start % len(taken)):
            tile = _strided(context, tile, axis, taken)
            taken = range(len(taken))
        starts.append(taken.start)
        lengths.append(len(taken))
        if isinstance(entry, slice):
            result.append(len(taken))
    starts += [0] * (len(shape) - len(starts))
    result += shape[len(lengths):]
    lengths += shape[len(lengths):]
    if tuple(lengths) != tile.type.shape:
        tile = context.emit("extract", tile, starts=tuple(starts), shape=tuple(lengths))
    return reshaped(context, "index", tile, tuple(result))


def _is_of_run_time(entry: object) -> bool:
    """Whether an index is an int of run time, or a tile of ints."""
    entry = unwrapped(entry)
    return isinstance(entry, Value) and entry.type.dtype.is_integer


def _picked(context: Context, tile: Value, index: tuple, entry: object,
            axis: int) -> tuple[Value, tuple[int, ...]]:
    """The elements at indices of run time along an axis, and the extents in the axis's place.

    Negative indices count from the end.
    """
    given, extent = unwrapped(entry), tile.type.shape[axis]
    is_scalar = given.type.is_scalar
    require(is_scalar or not any(other is not entry and _is_advanced(other) for other in index),
            "index: given {} beside other ints, accepted slices beside it", given.type,
            hint="index one axis after the other")
    if is_scalar:
        given = context.broadcast_to(given, (1,))
    if given.type.dtype.bits < 32:  # which may not hold the extent
        given = context.cast(given, int32)
    along = tuple(given.type.size if a == axis else 1 for a in range(len(tile.type.shape)))
    places = reshaped(context, "index", given, along)
    if given.type.dtype.is_signed:
        from_end = binary(context, "add", places, extent)
        places = context.emit("select", binary(context, "lt", places, 0), from_end, places)
    return _along(context, "index", tile, places, axis), () if is_scalar else given.type.shape


def _is_advanced(entry: object) -> bool:
    """Whether an entry is what NumPy broadcasts with a tile of ints: an int or such a tile."""
    return entry is not None and entry is not Ellipsis and not isinstance(entry, slice)


def _expanded(tile: Value, index: tuple) -> tuple:
    """index with '...' replaced by the ':' that it stands for."""
    ellipses = [i for i, entry in enumerate(index) if entry is Ellipsis]
    if not ellipses:
        return index
    require(len(ellipses) == 1, "index: given '...' twice, accepted once")
    named = sum(entry is not None for entry in index) - 1
    missing = max(0, len(tile.type.shape) - named)
    return (*index[:ellipses[0]], *(slice(None),) * missing, *index[ellipses[0] + 1:])


def _taken(tile: Value, entry: object, extent: int) -> range:
    """The places that an index takes of an axis."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        require(-extent <= entry < extent, "index: {} is out of range for {}", entry, tile.type)
        return range(entry % extent, entry % extent + 1)
    if isinstance(entry, slice) and is_constant(entry):
        require(entry.step != 0, "index: the step of a slice must not be 0")
        taken = range(extent)[entry]
        written = ":".join("" if part is None else str(part) for part in (
            entry.start, entry.stop, *((entry.step,) if entry.step is not None else ())))
        require(len(taken) > 0, "index: the slice {} of {} has no elements, accepted some", written,
                tile.type)
        _require_size(f"index: the slice {written} of {tile.type}", len(taken))
        return taken
    raise BlockTypeError(f"index: given {describe(entry)} for {tile.type}, accepted ':', None, "
                         "'...' and compile-time ints and slices",
                         hint=_index_hint(unwrapped(entry)))


def _index_hint(entry: object) -> str:
    if isinstance(entry, Value) and entry.type.dtype == bool_:
        return ("how many elements a mask picks is known at run time only: bn.where(mask, x, 0) "
                "keeps their places, where=mask leaves out the others of a reduction")
    return ("a tile is not an array: use bn.where or a reduction to pick elements, bn.extract for "
            "parts whose start is of run time, or index the array it was loaded from")


def _require_size(what: str, size: int) -> None:
    if size < 1 or size & size - 1:
        raise BlockValueError(f"{what}: given {size} elements along an axis, accepted powers of "
                              "two", hint=f"the next valid size is {next_size(size)}")


def _strided(context: Context, tile: Value, axis: int, taken: range) -> Value:
    """The elements of a range along an axis."""
    shape, start, step = tile.type.shape, taken.start, taken.step
    extent = shape[axis]
    if step < 0:
        tile = context.emit("flip", tile, axis=axis)
        start, step = extent - 1 - start, -step
    if step & step - 1:
        indices = binary(context, "add", binary(context, "mul", context.emit(
            "arange", start=0, size=len(taken)), step), start)
        return _gathered(context, tile, indices, axis)
    if step > 1:
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1:])
        columns = reshaped(context, "index", tile, (outer, extent // step, step, inner))
        column = part_of(context, columns, 2, start % step, 1)
        tile = reshaped(context, "index", column,
                        (*shape[:axis], extent // step, *shape[axis + 1:]))
    return _window(context, tile, axis, start // step, len(taken))


def _window(context: Context, tile: Value, axis: int, start: int, size: int) -> Value:
    """size elements from any start, along an axis, which may go round its end."""
    extent = tile.type.shape[axis]
    if start % size == 0:
        return part_of(context, tile, axis, start, size)
    piece = start & -start
    if size // piece > MAX_PIECES:
        return _gathered(context, tile, _wrapped(context, start, size, extent), axis)
    return in_a_row(context, [part_of(context, tile, axis, at % extent, piece)
                              for at in range(start, start + size, piece)], axis)


def _rolled(context: Context, tile: Value, shift: object, axis: int) -> Value:
    extent = tile.type.shape[axis]
    if is_constant(shift):
        start = -static_int("roll: shift", shift) % extent
        return _window(context, tile, axis, start, extent) if start else tile
    require_numbers("roll: shift", shift)
    return _gathered(context, tile, _wrapped(context, unary(context, "neg", shift), extent,
                                             extent), axis)


def _wrapped(context: Context, start: object, size: int, extent: int) -> Value:
    """The indices from start on, modulo a power of two."""
    return binary(context, "and", _sum(context, start, size), extent - 1)


def _sum(context: Context, start: object, size: int) -> Value:
    return binary(context, "add", context.emit("arange", start=0, size=size), start)


def _gathered(context: Context, tile: Value, indices: Value, axis: int) -> Value:
    """The elements of a tile at indices of rank 1 along an axis, the same for all rows."""
    shape = tile.type.shape
    size = indices.type.size
    rows = reshaped(context, "gather", _narrow(context, indices, shape[axis]), tuple(
        size if a == axis else 1 for a in range(len(shape))))
    indices = context.broadcast_to(rows, (*shape[:axis], size, *shape[axis + 1:]))
    return context.emit("gather", tile, indices, axis=axis)


def _narrow(context: Context, indices: Value, extent: int) -> Value:
    """Indices as int32; those outside of an axis stay outside."""
    dtype = indices.type.dtype
    if dtype == int32:
        return indices
    inside = binary(context, "and", binary(context, "ge", indices, 0),
                    binary(context, "lt", indices, extent))
    outside = context.broadcast_to(context.constant(-1, int32), indices.type.shape)
    return context.emit("select", inside, context.cast(indices, int32), outside)


def _along(context: Context, name: str, src: object, index: object, axis: object) -> Value:
    tile = tile_of(context, name, src)
    shape = tile.type.shape
    at = static_axis(name, axis, len(shape))
    if is_constant(index):
        known = static_int(f"{name}: index", index)
        require(-shape[at] <= known < shape[at], "{}: index {} is out of range for axis {} of {}",
                name, known, at, tile.type)
        return part_of(context, tile, at, known % shape[at], 1)
    tile, indices = checked_indices(context, name, tile, index, at)
    return context.emit("gather", tile, indices, axis=at)


def checked_indices(context: Context, name: str, tile: Value, index: object,
                    axis: int) -> tuple[Value, Value]:
    """A tile and int32 indices along an axis, their other axes broadcast together.

    Errors: BlockTypeError for indices that are no ints, or of another shape.
    """
    indices = tile_of(context, name, index)
    rank = len(tile.type.shape)
    require(indices.type.dtype.is_integer and len(indices.type.shape) == rank, "{}: given index "
            "{} for {}, accepted ints of its rank", name, indices.type, tile.type)
    if indices.type.dtype.bits < 32:
        indices = context.cast(indices, int32)
    tile, indices = _with_common_rows(context, name, tile, indices, axis)
    _check(context, name, tile, indices, axis)
    return tile, _narrow(context, indices, tile.type.shape[axis])


def _with_common_rows(context: Context, name: str, tile: Value, indices: Value,
                      axis: int) -> tuple[Value, Value]:
    """Both with their axes but one broadcast together."""
    own, given = tile.type.shape, indices.type.shape
    fits = all(a == axis or n == m or 1 in (n, m) for a, (n, m) in enumerate(zip(own, given)))
    require(fits, "{}: given index {} for {}, accepted the same extents but for axis {}", name,
            indices.type, tile.type, axis)
    common = tuple(max(n, m) for n, m in zip(own, given))
    return tuple(context.broadcast_to(value, (*common[:axis], value.type.shape[axis],
                                              *common[axis + 1:])) for value in (tile, indices))


def _check(context: Context, name: str, tile: Value, indices: Value, axis: int) -> None:
    """With debug=True, report an index outside of the axis."""
    if context.options.debug:
        extent = context.constant(tile.type.shape[axis], indices.type.dtype)
        context.emit("check_index", indices, context.broadcast_to(extent, indices.type.shape),
                     array=f"{name} of {tile.type}", axis=axis)

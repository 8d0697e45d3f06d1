"""The addresses of the elements that a reference names, and which of them are in bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

from blocknumba.errors import BlockTypeError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, int32, int64, uint64
from blocknumba.typing.arrays import from_start, moved, multiply, position_dtype
from blocknumba.typing.context import Context, common_shape
from blocknumba.typing.functions.elementwise import binary
from blocknumba.typing.ranges import is_nonnegative
from blocknumba.typing.values import Array, Reference, Span, is_constant

_MAX_RANK = 5


@dataclass(slots=True)
class _Access:
    """Parts of an access, gathered axis by axis.

    offset: of the first element, a scalar; inside: whether the scalar positions are in bounds.
    offsets, masks: tiles that broadcast to the shape of the access.
    positions: the ints and tiles of ints among the index, by axis, in that shape or one like it.
    """

    offset: object = 0
    inside: Value | None = None
    offsets: list[Value] | None = None
    masks: list[Value] | None = None
    positions: dict[int, Value] = field(default_factory=dict)


def address(context: Context,
            target: Reference) -> tuple[Value, Value | None, dict[int, Value]]:
    """The pointers to the elements of a reference, and the mask of those inside of the array.

    The third are positions, for `check_positions`.  What a span starts at goes into a scalar
    offset, so that the tiles of offsets do not change from one round of a loop to the next.  The
    mask is None when every element is in bounds.
    """
    array = target.array
    places, shape = _places(target.index)
    gathered = _Access(offsets=[], masks=[])
    for axis, (entry, place) in enumerate(zip(target.index, places)):
        if isinstance(entry, Span):
            _add_span(context, gathered, array, axis, entry, place)
        elif isinstance(entry, Value) and entry.type.shape:
            _add_gather(context, gathered, array, axis, place(context, entry))
        else:
            _add_scalar(context, gathered, array, axis, entry)
    pointer = moved(context, array.pointer, gathered.offset)
    if not shape:
        return pointer, gathered.inside, gathered.positions
    return *_tile_address(context, gathered, pointer, shape), gathered.positions


def check_positions(context: Context, array: Array, positions: dict[int, Value],
                    mask: Value | None) -> None:
    """With debug=True, report an int outside of its axis.  A span may reach over the edge.

    mask: of the shape of the access: which elements of it are meant; None for all.
    """
    if not context.options.debug:
        return
    for axis, index in positions.items():
        if mask is not None:
            index = context.broadcast_to(index, mask.type.shape)
        extent = context.value(array.extents[axis], index.type.dtype)
        operands = [index, context.broadcast_to(extent, index.type.shape)]
        context.emit("check_index", *operands, *(() if mask is None else (mask,)),
                     array=array.name, axis=axis)


def _tile_address(context: Context, gathered: _Access, pointer: Value,
                  shape: tuple[int, ...]) -> tuple[Value, Value | None]:
    pointer = context.broadcast_to(pointer, shape)
    offset = None
    for part in gathered.offsets:
        offset = part if offset is None else binary(context, "add", offset, part)
    if offset is not None:
        offset = context.cast(offset, _offset_dtype(offset.type.dtype))
        pointer = context.emit("offset", pointer, context.broadcast_to(offset, shape))
    mask = None
    for part in gathered.masks:
        mask = part if mask is None else binary(context, "and", mask, part)
    if gathered.inside is not None:
        mask = gathered.inside if mask is None else binary(context, "and", mask, gathered.inside)
    return pointer, None if mask is None else context.broadcast_to(mask, shape)


def _add_span(context: Context, gathered: _Access, array: Array, axis: int, span: Span,
              place: _Place) -> None:
    extent, stride = array.extents[axis], array.strides[axis]
    steps = place(context, context.emit("arange", start=0, size=span.size))
    gathered.offset = _plus(context, gathered.offset, multiply(context, array, span.start, stride))
    if not (is_constant(stride) and stride == 0):
        gathered.offsets.append(_as_tile(context, multiply(context, array, steps, stride)))
    # steps < extent - start, and not start + steps < extent: the difference cannot overflow
    left = binary(context, "sub", extent, span.start)
    gathered.masks.append(binary(context, "lt", steps, left))
    if not is_nonnegative(span.start, context.nonnegative):
        negative = context.emit("neg", span.start)
        gathered.masks.append(binary(context, "ge", steps, negative))


def _add_gather(context: Context, gathered: _Access, array: Array, axis: int, index: Value) -> None:
    extent, stride = array.extents[axis], array.strides[axis]
    given = index
    index = context.cast(index, position_dtype(context, index.type.dtype))
    gathered.positions[axis] = _shown(given, index)
    if not (is_constant(stride) and stride == 0):
        gathered.offsets.append(_as_tile(context, multiply(context, array, index, stride)))
    gathered.masks.append(binary(context, "lt", index, extent))
    if not is_nonnegative(index, context.nonnegative):
        gathered.masks.append(binary(context, "ge", index, 0))


def _add_scalar(context: Context, gathered: _Access, array: Array, axis: int,
                entry: object) -> None:
    extent, stride = array.extents[axis], array.strides[axis]
    position = from_start(context, entry, extent)
    gathered.offset = _plus(context, gathered.offset, multiply(context, array, position, stride))
    if is_constant(position) and is_constant(extent):
        require(0 <= position < extent, "{}: index {} is out of bounds for axis {} with extent {}",
                array.name, entry, axis, extent)
        return
    given = context.value(position)
    scalar = context.cast(given, position_dtype(context, given.type.dtype))
    gathered.positions[axis] = _shown(entry if isinstance(entry, Value) else given, scalar)
    bounds = [binary(context, "lt", scalar, extent)]
    if not is_nonnegative(scalar, context.nonnegative):
        bounds.append(binary(context, "ge", scalar, 0))
    for bound in bounds:
        gathered.inside = bound if gathered.inside is None else (
            binary(context, "and", gathered.inside, bound))


def _shown(given: Value, position: Value) -> Value:
    """An index as debug checks and shows it: the position, unless that may have wrapped around."""
    return given if given.type.dtype == uint64 else position


@dataclass(frozen=True, slots=True)
class _Place:
    """The axes of the access that an index spans.

    first: axis of the access that the index's first axis becomes; rank: of the access; group:
    axes that the index is broadcast to before.
    """

    first: int
    rank: int
    group: int

    def __call__(self, context: Context, tile: Value) -> Value:
        own = (1,) * (self.group - len(tile.type.shape)) + tile.type.shape
        shape = (1,) * self.first + own + (1,) * (self.rank - self.first - self.group)
        return tile if shape == tile.type.shape else context.emit("reshape", tile, shape=shape)


def _places(index: tuple) -> tuple[list[_Place | None], tuple[int, ...]]:
    """Axes of each index, and the shape of the access, as in NumPy's advanced indexing.

    Spans keep their axes.  Int tiles share the axes that they broadcast to; these come where the
    tiles are, or first when a span separates the tiles (and ints) from each other.
    """
    advanced = [i for i, e in enumerate(index) if not isinstance(e, Span)]
    tiles = [e for e in index if isinstance(e, Value) and e.type.shape]
    group = common_shape([tile.type.shape for tile in tiles], "index") if tiles else ()
    is_together = not advanced or advanced[-1] - advanced[0] + 1 == len(advanced)
    before = advanced[0] if tiles and is_together else 0
    rank = len(group) + len(index) - len(advanced)
    if rank > _MAX_RANK:
        raise BlockTypeError(f"index: given an access of rank {rank}, accepted at most {_MAX_RANK}")
    places: list[_Place | None] = []
    shape = [1] * before + list(group) + [1] * (rank - before - len(group))
    axis = 0
    for entry in index:
        if isinstance(entry, Span):
            if axis == before and group:
                axis += len(group)
            places.append(_Place(axis, rank, 1))
            shape[axis] = entry.size
            axis += 1
        else:
            places.append(_Place(before, rank, len(group)))
    return places, tuple(shape)


def _plus(context: Context, a: object, b: object) -> object:
    if is_constant(a) and is_constant(b):
        return a + b
    for x, y in ((a, b), (b, a)):
        if is_constant(x) and x == 0:
            return y
    return binary(context, "add", a, b)


def _as_tile(context: Context, offset: object) -> Value:
    return context.value(offset)


def _offset_dtype(dtype: DType) -> DType:
    return int64 if dtype.bits == 64 else int32

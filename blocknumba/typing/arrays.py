"""Arrays in a kernel: their metadata and their views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blocknumba.errors import BlockTypeError, UnsupportedError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, int32, int64
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe, loading_hint
from blocknumba.typing.functions.elementwise import binary
from blocknumba.typing.functions.spans import limited, make_span
from blocknumba.typing.ranges import is_nonnegative
from blocknumba.typing.values import (
    Array, Reference, SlicedSpan, Span, is_constant, parts_of, unwrapped,
)

FULL = slice(None)


def size_of(context: Context, array: Array) -> object:
    """Number of elements; int64 when the array's offsets need it."""
    size: object = 1
    for extent in array.extents:
        size = multiply(context, array, extent, size)
    return size


def transposed(context: Context, array: Array) -> Array:
    """The view with its axes in reverse order."""
    axes = tuple(range(array.rank))[::-1]
    view = array.view and context.emit("view_permute", array.view, axes=axes)
    return replace(array, extents=array.extents[::-1], strides=array.strides[::-1], view=view)


def view_of(context: Context, array: Array) -> Value:
    """An array as a view of the tile IR."""
    if array.view is not None:
        return array.view
    numbers = array.extents, array.strides
    sizes = [context.value(n) for of in numbers for n in of if not is_constant(n)]
    extents, strides = (tuple([n if is_constant(n) else None for n in of]) for of in numbers)
    return context.emit("view", array.pointer, *sizes, extents=extents, strides=strides,
                        wide=array.wide)


def normalized(context: Context, array: Array, index: tuple) -> tuple:
    """index without '...', and with slices of compile-time lengths as such."""
    entries = tuple([_of_known_length(_without_numbers(entry)) for entry in index])
    ellipses = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if not ellipses:
        return entries
    require(len(ellipses) == 1, "index: given '...' twice, accepted once")
    missing = array.rank - len(entries) + 1
    return (*entries[:ellipses[0]], *(FULL,) * max(missing, 0), *entries[ellipses[0] + 1:])


def is_view_index(array: Array, entries: tuple) -> bool:
    """Whether array[entries] reads nothing.

    Of ints and slices only, and some axis has none, or one whose length is not that of a tile.
    """
    is_plain = all(is_scalar_int(e) or isinstance(e, (slice, SlicedSpan)) for e in entries)
    return is_plain and (len(entries) < array.rank or any(
        isinstance(e, slice) or isinstance(e, SlicedSpan) and e.size & e.size - 1
        for e in entries))


def view(context: Context, array: Array, entries: tuple) -> Array:
    """array[entries] for ints and slices: an array over the same memory.

    A bound of a slice may be known at run time, and then counts from the start; bounds outside
    of the array are moved to its edge, as NumPy does.
    Errors: too many indices; a step that is not known, or 0.
    """
    require_rank(array, len(entries), len(entries) <= array.rank)
    entries = (*(_as_slice(context, entry) for entry in entries),
               *(FULL,) * (array.rank - len(entries)))
    made, extents, strides, steps = view_of(context, array), [], [], []
    for entry, extent, stride in zip(entries, array.extents, array.strides):
        axis = len(extents)
        if not isinstance(entry, slice):
            first = context.value(from_start(context, entry, extent))
            made = context.emit("view_select", made, first, axis=axis)
            continue
        first, length, step = _slice_axis(context, entry, extent)
        extents.append(length)
        strides.append(stride if step > 0 else _negative(context, stride))
        steps.append(abs(step))
        if step < 0:
            made = context.emit("view_reverse", made, axis=axis)
        elif length is not extent:
            made = context.emit("view_slice", made, context.value(first), context.value(length),
                                axis=axis)
    found = replace(array, pointer=context.emit("view_pointer", made), extents=tuple(extents),
                    strides=tuple(strides), view=made)
    return found if set(steps) <= {1} else _every(context, found, steps)


def _every(context: Context, array: Array, steps: Sequence[int]) -> Array:
    """The view of every so many elements of each axis; it is made of its extents and strides."""
    extents = tuple(binary(context, "floordiv", _plus(context, extent, step - 1), step)
                    for extent, step in zip(array.extents, steps))
    strides = tuple(multiply(context, array, stride, step)
                    for stride, step in zip(array.strides, steps))
    return replace(array, extents=tuple(map(unwrapped, extents)), strides=strides, view=None)


def reference(context: Context, array: Array, entries: tuple) -> Reference:
    """array.at[entries]: one int, int tile or span for each axis.

    Errors: the wrong number of indices; slices whose length is not known at compile time, or no
    power of two.
    """
    require_rank(array, len(entries), len(entries) == array.rank)
    checked = [_entry(context, array, entry, axis) for axis, entry in enumerate(entries)]
    return Reference(array, tuple(checked))


def is_scalar_int(entry: object) -> bool:
    """Whether an index is one int, known now or at run time."""
    if isinstance(entry, Value):
        return entry.type.is_scalar and not entry.type.is_pointer and entry.type.dtype.is_integer
    return isinstance(entry, int) and not isinstance(entry, bool)


def from_start(context: Context, entry: object, extent: object) -> object:
    """The position that an int names, signed: a literal below 0 counts from the end.

    Unsigned ints of half their range and more become negative, and so stay outside of the array.
    """
    if isinstance(entry, int):
        return _plus(context, extent, entry) if entry < 0 else entry
    return context.cast(entry, position_dtype(context, entry.type.dtype))


def position_dtype(context: Context, dtype: DType) -> DType:
    """The dtype of positions that are given in a dtype: as wide as the arrays need, and signed."""
    if dtype.kind == "uint":
        dtype = int64 if dtype.bits >= 32 else int32
    return promotion.promote(context.index_dtype, dtype)


def multiply(context: Context, array: Array, a: object, b: object) -> object:
    """a * b as an offset in an array, which cannot overflow."""
    if is_constant(a) and is_constant(b):
        return a * b
    for x, y in ((a, b), (b, a)):
        if is_constant(x) and x in (0, 1):
            return y if x == 1 else 0
    if array.wide:
        a, b = (context.value(x, int64) for x in (a, b))
    return binary(context, "mul", a, b)


def require_rank(array: Array, count: int, condition: bool) -> None:
    """Raise unless the number of indices is right."""
    if condition:
        return
    given = "1 index" if count == 1 else f"{count} indices"
    name = array.name.partition(" ")[0]
    index = ", ".join(["r", *["bn.span(0, SIZE)"] * (array.rank - 1)])
    raise BlockTypeError(
        f"{array.name}: given {given}, accepted {array.rank}, one for each axis of the array",
        hint=f"index its other axes too: {name}[{index}]" if 0 < count < array.rank else "")


def _without_numbers(entry: object) -> object:
    """An index with the scalars that Python ints of run time are kept in."""
    if isinstance(entry, slice):
        return slice(*map(unwrapped, parts_of(entry)))
    return unwrapped(entry)


def _of_known_length(entry: object) -> object:
    if not isinstance(entry, slice) or entry.step not in (None, 1) or not is_constant(entry):
        return entry
    start = 0 if entry.start is None else entry.start
    if not isinstance(entry.stop, int) or not 0 <= start < entry.stop:
        return entry
    return SlicedSpan(start, entry.stop - start)


def _as_slice(context: Context, entry: object) -> object:
    if not isinstance(entry, SlicedSpan):
        return entry
    start = unwrapped(entry.start)
    return slice(start, _plus(context, start, entry.size))


def _entry(context: Context, array: Array, entry: object, axis: int) -> object:
    if isinstance(entry, SlicedSpan):
        return make_span(context, entry.start, entry.size)
    if isinstance(entry, Span) or is_scalar_int(entry):
        return entry
    if isinstance(entry, Value) and not entry.type.is_pointer and entry.type.dtype.is_integer:
        return entry
    if isinstance(entry, slice) and entry == FULL:
        raise BlockTypeError(
            f"{array.name}: axis {axis} is given ':' or '...', all of its elements, whose number "
            "is not known at compile time, accepted spans, ints and int tiles",
            hint="write bn.span(0, SIZE): elements beyond the edge are 0 when they are read, and "
                 "are not stored")
    if isinstance(entry, slice):
        raise BlockTypeError(
            f"{array.name}: axis {axis} is given a slice whose length is not known at compile "
            "time, accepted spans, ints, int tiles and slices start : start + SIZE",
            hint="write bn.span(start, SIZE)")
    raise BlockTypeError(f"{array.name}: axis {axis} is given {describe(entry)}, accepted spans, "
                         "ints and int tiles", hint=_index_hint(entry))


def _index_hint(entry: object) -> str:
    if not promotion.is_number(entry):
        return loading_hint(entry)
    dtype = promotion.result_dtype((entry,))
    if dtype.is_float:
        return "divide by //, or use x.astype(bn.int32)"
    return "use a mask: bn.load(x.at[...], mask=m)" if isinstance(entry, Value) else ""


def _slice_axis(context: Context, entry: slice, extent: object) -> tuple[object, object, int]:
    """First position, length and step of a slice of an axis."""
    step = 1 if entry.step is None else entry.step
    if not isinstance(step, int) or step == 0:
        raise UnsupportedError(f"a slice with step {describe(step)} of an array, accepted ints "
                               "other than 0 that are known at compile time")
    if step < 0:
        if entry.start is not None or entry.stop is not None:
            raise UnsupportedError(f"a slice with step {step} and bounds, accepted x[::{step}]",
                                   hint=f"slice first, then reverse: x[a:b][::{step}]")
        return _plus(context, extent, -1), extent, step
    first = _bound(context, entry.start, extent, 0)
    last = _bound(context, entry.stop, extent, extent)
    if is_constant(first) and first == 0:
        return first, last, step
    length = _at_least_zero(context, _minus(context, last, first))
    return first, length, step


def _bound(context: Context, bound: object, extent: object, missing: object) -> object:
    """A bound of a slice, from the end if it is negative, moved into [0, extent].

    Source: Python's slice.indices.
    """
    if bound is None:
        return missing
    require(is_scalar_int(bound), "a slice: given {}, accepted ints", describe(bound))
    position = from_start(context, limited(context, bound), extent)
    if isinstance(position, Value) and isinstance(bound, Value):
        position = _from_end_if_negative(context, position, extent)
    if is_constant(position) and position == 0:
        return 0
    if is_constant(position) and is_constant(extent):
        return min(max(position, 0), extent)
    return _at_least_zero(context, binary(context, "minimum", position, extent))


def _from_end_if_negative(context: Context, position: Value, extent: object) -> Value:
    if is_nonnegative(position, context.nonnegative):
        return position
    from_end = binary(context, "add", position, extent)
    position = context.cast(position, from_end.type.dtype)
    return context.emit("select", binary(context, "lt", position, 0), from_end, position)


def _at_least_zero(context: Context, number: object) -> object:
    if is_constant(number):
        return max(number, 0)
    return binary(context, "maximum", number, 0)


def _plus(context: Context, a: object, b: object) -> object:
    return a + b if is_constant(a) and is_constant(b) else binary(context, "add", a, b)


def _minus(context: Context, a: object, b: object) -> object:
    return a - b if is_constant(a) and is_constant(b) else binary(context, "sub", a, b)


def _negative(context: Context, number: object) -> object:
    return -number if is_constant(number) else context.emit("neg", number)

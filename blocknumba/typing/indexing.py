"""Subscripts: of tuples, tiles and arrays."""

from __future__ import annotations

from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import bool_
from blocknumba.typing.arrays import FULL, is_view_index, normalized, reference, view
from blocknumba.typing.context import Context, describe
from blocknumba.typing.dialect import TRITON_NAME
from blocknumba.typing.functions.memory import load, store
from blocknumba.typing.functions.parts import index_tile
from blocknumba.typing.static_values import static
from blocknumba.typing.values import Array, Elements, Number


def load_item(context: Context, value: object, index: object) -> object:
    """value[index]."""
    if isinstance(value, (tuple, str)):
        return _tuple_item(value, index)
    entries = index if isinstance(index, tuple) else (index,)
    if isinstance(value, (Value, Number)):
        tile = context.value(value)
        if not tile.type.shape and context.dialect.name == TRITON_NAME:
            entries = tuple([entry for entry in entries if not _is_whole(entry)])
        require(tile.type.shape or not any(map(_picks, entries)),
                "index: given {}, accepted an array, a tile or a tuple", describe(value),
                hint="a number has no elements: index an array, or pass one")
        return index_tile(context, tile, entries)
    if isinstance(value, Array):
        if context.dialect.name == TRITON_NAME:
            return _pointer_item(context, value, entries)
        entries = normalized(context, value, entries)
        if is_view_index(value, entries):
            return view(context, value, entries)
        return load.rule(context, reference(context, value, entries))
    if isinstance(value, Elements):
        return reference(context, value.array, normalized(context, value.array, entries))
    raise BlockTypeError(f"index: given {describe(value)}, accepted an array, a tile or a tuple",
                         hint="a kernel launches none: call it, without brackets"
                         if callable(value) else "")


def _is_whole(entry: object) -> bool:
    """Whether an entry of an index is `:`, which Triton lets a scalar have."""
    return isinstance(entry, slice) and entry == slice(None)


def _pointer_item(context: Context, array: Array, entries: tuple) -> Value:
    """The pointer that an array is in Triton's dialect, with an axis for each None."""
    for entry in entries:
        require(entry is None or _is_whole(entry), "index: given {} of a pointer, accepted None "
                "and `:`", describe(entry), hint="load an element: tl.load(x + i)")
    return index_tile(context, array.pointer, tuple([e for e in entries if e is None]))


def store_item(context: Context, target: object, index: object, value: object) -> None:
    """target[index] = value."""
    entries = index if isinstance(index, tuple) else (index,)
    if not isinstance(target, Array):
        raise BlockTypeError(f"assignment to an element: given {describe(target)}, accepted an "
                             "array", hint=_assignment_hint(target, index))
    store.rule(context, reference(context, target, normalized(context, target, entries)), value)


def _picks(entry: object) -> bool:
    """Whether an entry of an index needs an axis."""
    return entry is not None and entry is not Ellipsis


def _assignment_hint(target: object, index: object) -> str:
    if isinstance(target, Value) and isinstance(index, Value) and index.type.dtype == bool_:
        return "tiles do not change: x = bn.where(mask, value, x) for x[mask] = value"
    if isinstance(target, Value) and index in (FULL, Ellipsis):
        return "name the new tile: x = value for x[:] = value"
    if isinstance(target, Value):
        return ("tiles do not change: make a new one with bn.where, or keep the elements in an "
                "array, which does")
    return "use bn.store(x.at[...], value)" if isinstance(target, Elements) else ""


def _tuple_item(value: tuple, index: object) -> object:
    try:
        return value[static("index of a tuple", index)]
    except IndexError:
        raise BlockValueError(f"index: {describe(index)} is out of range for {len(value)} "
                              "values") from None
    except TypeError:
        raise BlockTypeError(f"index: given {describe(index)}, accepted an int or a "
                             "slice that is known at compile time",
                             hint="choose an item with `if`, or unroll a loop over all of them "
                                  "with bn.static_range") from None

"""Attributes and methods of a kernel's values: x.shape, x.sum, desc.load."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from blocknumba.errors import UnsupportedError
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, PointerType
from blocknumba.typing.arrays import size_of, transposed
from blocknumba.typing.context import Context, describe, loading_hint
from blocknumba.typing.foreign import hint_for
from blocknumba.typing.functions import (
    create, descriptors, elementwise, memory, order, parts, reduce, scan, shape, spans,
)
from blocknumba.typing.numba_ir import folding
from blocknumba.typing.records import method_of
from blocknumba.typing.spellings import spelled
from blocknumba.typing.values import (
    Array, BlockPointer, BlockType, BoundMethod, Descriptor, Elements, Number, Span, Structure,
    is_constant, number, unwrapped,
)
from blocknumba.wording import did_you_mean

_OF_POINTERS = ("to", "cast")  # methods that a dialect may have of an array, as a pointer

METHODS = {name: spelled(getattr(np, name)) for name in """abs all any argmax argmin argsort
    broadcast_to ceil clip copy cos cumprod cumsum dot exp exp2 expand_dims floor log log2 max
    mean median min prod ravel repeat reshape round sin sort split sqrt squeeze std sum swapaxes
    tanh transpose var""".split()} | {
    **dict.fromkeys(("to", "astype", "cast"), create.cast),
    **{name: elementwise.FLOAT_FUNCTIONS[name] for name in ("erf", "rsqrt")},
    **{name: getattr(shape, name) for name in ("flip", "item", "permute", "trans", "view")},
    **{name: getattr(memory, name) for name in ("atomic_cas", "load", "store")}, **memory.ATOMICS,
    "conj": spelled(np.copy),  # which has x's dtype; np.conj makes int8 of bools
    "associative_scan": scan.associative_scan, "flatten": shape.ravel, "gather": parts.gather,
    "reduce": scan.reduce_, "topk": order.topk, "xor_sum": reduce.xor_sum,
}
# what to write instead of methods of NumPy's and PyTorch's arrays
_INSTEAD = {
    **dict.fromkeys(("fill", "fill_", "copy_", "zero_", "put", "itemset", "resize"),
                    "tiles do not change: make a new one, or store to the array: y[r] = value"),
    **dict.fromkeys(("tolist", "numpy", "cpu", "cuda"),
                    "store to an array, which the caller reads after the launch"),
    "relu": "use bn.maximum(x, 0)",
    "unsqueeze": "use x[:, None], or bn.expand_dims(x, axis)",
    "nonzero": "use bn.where(condition, x, 0), which keeps their places",
}


def attribute(context: Context, value: object, name: str) -> object:
    """value.name.

    Errors: UnsupportedError naming what there is instead.
    """
    if isinstance(value, (Value, Number)):
        return _of_tile(context, value, name)
    if isinstance(value, Structure):
        return _of_structure(context, value, name)
    if name in context.dialect.constants and folding.is_plain(value) and is_constant(value):
        return context.dialect.constants[name](value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _of_record(value, name)
    found = folding.fold_attribute(value, name)
    if found is folding.UNKNOWN:
        raise UnsupportedError(f"{describe(value)} has no attribute {name!r}",
                               hint=did_you_mean(name, dir(value)) or hint_for(name))
    return found


def _of_record(value: tuple, name: str) -> object:
    """A field of a named tuple or of a dataclass, or a method of an aggregate."""
    if name in value._fields:
        return getattr(value, name)
    method = method_of(type(value), name)
    if method is not None:  # its calls are inlined before
        return BoundMethod(method, value)
    fields = ", ".join(value._fields)
    raise UnsupportedError(f"{type(value).__name__} has no field {name!r}, accepted {fields}",
                           hint=did_you_mean(name, value._fields))


def _of_tile(context: Context, value: Value | Number, name: str) -> object:
    if name == "T" and isinstance(value, Number):
        return value
    if name in _TILE_ATTRIBUTES:
        return _TILE_ATTRIBUTES[name](context, unwrapped(value))
    method = context.dialect.methods.get(name) or METHODS.get(name)
    if method is not None:
        return BoundMethod(method, value)
    raise UnsupportedError(
        f"{describe(value)} has no attribute {name!r}, accepted "
        f"{', '.join(sorted(_TILE_ATTRIBUTES))} "
        "and the functions of one tile",
        hint=_INSTEAD.get(name) or did_you_mean(name, [*_TILE_ATTRIBUTES, *METHODS]))


def _of_structure(context: Context, value: Structure, name: str) -> object:
    getters = _STRUCTURE_ATTRIBUTES.get(type(value), {})
    if name in getters:
        return getters[name](context, value)
    if isinstance(value, Array) and name in _OF_POINTERS and name in context.dialect.methods:
        return BoundMethod(context.dialect.methods[name], value)
    if isinstance(value, Array) and name.startswith("atomic_") and name in METHODS:
        return BoundMethod(context.dialect.methods.get(name) or METHODS[name], value)
    accepted = f", accepted {', '.join(sorted(getters))}" if getters else ""
    methods = METHODS if isinstance(value, Array) else ()
    hint = (f"{loading_hint(value)}; it is a tile, and has {name}" if name in methods
            else did_you_mean(name, getters))
    raise UnsupportedError(f"{describe(value)} has no attribute {name!r}{accepted}", hint=hint)


def _transposed_tile(context: Context, value: Value) -> Value:
    if len(value.type.shape) < 2:
        return value
    return shape.permute.rule(context, value, tuple(range(len(value.type.shape)))[::-1])


def _dtype(context: Context, value: Value) -> DType | PointerType:
    own = value.type.dtype
    return context.dialect.pointer_dtype(own.pointee) if value.type.is_pointer else own


def _type(context: Context, value: Value) -> DType | PointerType | BlockType:
    tile = value.type
    return BlockType(tile.dtype, tile.shape) if tile.shape else tile.dtype


_TILE_ATTRIBUTES: dict[str, Callable[[Context, Value], object]] = {
    "shape": lambda context, value: value.type.shape,
    "dtype": _dtype,
    "ndim": lambda context, value: len(value.type.shape),
    "size": lambda context, value: value.type.size,
    "numel": lambda context, value: value.type.size,
    "T": _transposed_tile,
    "type": _type,
}

_STRUCTURE_ATTRIBUTES: dict[type, dict[str, Callable]] = {
    Array: {
        "shape": lambda context, array: tuple(map(number, array.extents)),
        "strides": lambda context, array: tuple(map(number, array.strides)),
        "ndim": lambda context, array: array.rank,
        "dtype": lambda context, array: context.dialect.pointer_dtype(array.dtype),
        "size": lambda context, array: number(size_of(context, array)),
        "T": transposed,
        "at": lambda context, array: Elements(array),
        "type": lambda context, array: PointerType(array.dtype),
    },
    BlockPointer: {
        "dtype": lambda context, box: context.dialect.pointer_dtype(box.array.dtype),
        "type": lambda context, box: PointerType(box.array.dtype),
        "advance": lambda context, box: BoundMethod(descriptors.advance, box),
        "store": lambda context, box: BoundMethod(
            context.dialect.methods.get("store", memory.store), box),
    },
    Descriptor: {
        "dtype": lambda context, desc: desc.array.dtype,
        "shape": lambda context, desc: tuple(map(number, desc.array.extents)),
        "strides": lambda context, desc: tuple(map(number, desc.array.strides)),
        "block_shape": lambda context, desc: desc.block_shape,
        **{name: lambda context, desc, method=method: BoundMethod(method, desc)
           for name, method in descriptors.METHODS.items()},
    },
    Span: {
        "start": lambda context, span: number(span.start),
        "stop": lambda context, span: number(spans.span_stop(context, span)),
        "index": spans.span_index,
        "size": lambda context, span: span.size,
    },
}

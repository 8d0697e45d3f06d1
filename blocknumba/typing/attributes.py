"""Attributes and methods of the values of a kernel."""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.errors import UnsupportedError
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType
from blocknumba.typing.arrays import size_of, transposed
from blocknumba.typing.context import Context, describe, loading_hint
from blocknumba.typing.functions import create, elementwise, memory, reduce, shape, spans
from blocknumba.typing.numba_ir import folding
from blocknumba.typing.values import (
    Array, BoundMethod, Elements, Number, Span, Structure, number, unwrapped,
)
from blocknumba.wording import did_you_mean

_METHODS = {
    "to": create.cast, "astype": create.cast, "item": shape.item, "store": memory.store,
    "load": memory.load, "clip": elementwise.clamp, "atomic_cas": memory.atomic_cas,
    **memory.ATOMICS,
    **{name: elementwise.FLOAT_FUNCTIONS[name] for name in (
        "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "floor", "ceil", "erf")},
    **{name: getattr(shape, name) for name in (
        "reshape", "view", "ravel", "expand_dims", "squeeze", "broadcast_to", "trans", "permute",
        "swapaxes", "split", "flip")},
    "transpose": shape.permute,
    **{name: getattr(reduce, name) for name in (
        "sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "var", "xor_sum")},
    "abs": elementwise.absolute,
}


def attribute(context: Context, value: object, name: str) -> object:
    """value.name.

    Errors: UnsupportedError naming what there is instead.
    """
    if isinstance(value, (Value, Number)):
        return _of_tile(context, value, name)
    if isinstance(value, Structure):
        return _of_structure(context, value, name)
    if isinstance(value, DType) and name == "element_ty":
        return value  # of Triton's pointers; here the dtype of an array is that of its elements
    found = folding.fold_attribute(value, name)
    if found is folding.UNKNOWN:
        raise UnsupportedError(f"{describe(value)} has no attribute {name!r}",
                               hint=did_you_mean(name, dir(value)))
    return found


def _of_tile(context: Context, value: Value | Number, name: str) -> object:
    if name == "T" and isinstance(value, Number):
        return value
    if name in _TILE_ATTRIBUTES:
        return _TILE_ATTRIBUTES[name](context, unwrapped(value))
    if name in _METHODS:
        return BoundMethod(_METHODS[name], value)
    raise UnsupportedError(
        f"{describe(value)} has no attribute {name!r}, accepted "
        f"{', '.join(sorted(_TILE_ATTRIBUTES))} "
        "and the functions of one tile",
        hint=did_you_mean(name, [*_TILE_ATTRIBUTES, *_METHODS]))


def _of_structure(context: Context, value: Structure, name: str) -> object:
    getters = _STRUCTURE_ATTRIBUTES.get(type(value), {})
    if name in getters:
        return getters[name](context, value)
    if isinstance(value, Array) and name.startswith("atomic_") and name in _METHODS:
        return BoundMethod(_METHODS[name], value)
    accepted = f", accepted {', '.join(sorted(getters))}" if getters else ""
    methods = _METHODS if isinstance(value, Array) else ()
    hint = (f"{loading_hint(value)}; it is a tile, and has {name}" if name in methods
            else did_you_mean(name, getters))
    raise UnsupportedError(f"{describe(value)} has no attribute {name!r}{accepted}", hint=hint)


def _transposed_tile(context: Context, value: Value) -> Value:
    if len(value.type.shape) < 2:
        return value
    return shape.permute.rule(context, value, tuple(range(len(value.type.shape)))[::-1])


def _pointee(context: Context, value: Value) -> DType:
    return value.type.dtype.pointee if value.type.is_pointer else value.type.dtype


_TILE_ATTRIBUTES: dict[str, Callable[[Context, Value], object]] = {
    "shape": lambda context, value: value.type.shape,
    "dtype": _pointee,
    "ndim": lambda context, value: len(value.type.shape),
    "size": lambda context, value: value.type.size,
    "numel": lambda context, value: value.type.size,
    "T": _transposed_tile,
}

_STRUCTURE_ATTRIBUTES: dict[type, dict[str, Callable]] = {
    Array: {
        "shape": lambda context, array: tuple(map(number, array.extents)),
        "strides": lambda context, array: tuple(map(number, array.strides)),
        "ndim": lambda context, array: array.rank,
        "dtype": lambda context, array: array.dtype,
        "size": lambda context, array: number(size_of(context, array)),
        "T": transposed,
        "at": lambda context, array: Elements(array),
    },
    Span: {
        "start": lambda context, span: number(span.start),
        "stop": lambda context, span: number(spans.span_stop(context, span)),
        "index": spans.span_index,
        "size": lambda context, span: span.size,
    },
}

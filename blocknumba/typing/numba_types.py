"""Numba types of the values of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from numba.core import types

from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.types import DType, TileType, bool_
from blocknumba.typing import promotion
from blocknumba.typing.context import Context, describe
from blocknumba.typing.evaluate import UNDEFINED
from blocknumba.typing.function import python_function
from blocknumba.typing.functions.memory import as_pointer
from blocknumba.typing.numba_ir import folding
from blocknumba.typing.values import (
    Array, BoundMethod, Number, is_structure, leaves, parts_of, rebuild, static_of,
)


class RuntimeType(types.Type):
    """A tile, a scalar or a pointer that exists at run time."""

    def __init__(self, tile: TileType):
        self.tile = tile
        super().__init__(name=str(tile))

    @property
    def key(self):
        return self.tile


class ConstantType(types.Opaque):
    """A value that is known at compile time."""

    def __init__(self, value: object):
        self.value = value
        super().__init__(name=f"constant {describe(value)}")

    @property
    def key(self):
        return _Same(self.value)


class StructureType(types.Type):
    """A tuple, a slice, an array, a span ...: parts, and what is the same on all paths."""

    def __init__(self, kind: type, static: tuple, parts: tuple[types.Type, ...]):
        self.kind, self.static, self.parts = kind, static, parts
        super().__init__(name=f"{kind.__name__.lower()}({', '.join(map(str, parts))})")

    @property
    def key(self):
        return self.kind, self.static, self.parts


class _Same:
    """A compile-time value, equal to those that cannot be told apart from it."""

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and folding.same(self.value, other.value)

    def __hash__(self) -> int:
        try:
            return hash((type(self.value), self.value))
        except TypeError:
            return id(self.value)


@lru_cache(maxsize=4096)
def runtime_type(tile: TileType) -> RuntimeType:
    """The Numba type of values of a tile type."""
    return RuntimeType(tile)


def type_of(value: object) -> types.Type:
    """The Numba type of a value."""
    if isinstance(value, Value):
        return runtime_type(value.type)
    if is_structure(value):
        parts = tuple([type_of(part) for part in parts_of(value)])
        return StructureType(type(value), static_of(value), parts)
    return ConstantType(value)


def stand_in(of: types.Type) -> object:
    """A value of a type, whose run-time parts come from nowhere."""
    if isinstance(of, RuntimeType):
        return Value(of.tile)
    if isinstance(of, StructureType):
        return rebuild(of.kind, of.static, tuple([stand_in(part) for part in of.parts]))
    return of.value


@lru_cache(maxsize=None)
def number_type(dtype: DType) -> StructureType:
    """The type of Python numbers of run time that are kept in a dtype."""
    return StructureType(Number, (), (runtime_type(TileType(dtype)),))


def widened(of: types.Type) -> types.Type:
    """A type without numbers known at compile time, in tuples neither."""
    if isinstance(of, ConstantType):
        if promotion.is_weak(of.value):
            return number_type(promotion.weak_dtype(of.value))
        if isinstance(of.value, bool):
            return runtime_type(TileType(bool_))
        if promotion.is_number(of.value):
            return runtime_type(TileType(promotion.strong_dtype(of.value)))
    if isinstance(of, StructureType) and of.kind is tuple:
        return StructureType(of.kind, of.static, tuple([widened(part) for part in of.parts]))
    return of


def named(of: types.Type, dtype_of_number: Callable) -> types.Type:
    """A type, that of a number known at compile time being of run time, of the dtype it gets."""
    if isinstance(of, ConstantType) and promotion.is_literal(of.value):
        return runtime_type(TileType(dtype_of_number(of.value)))
    if isinstance(of, StructureType) and of.kind is tuple:
        parts = tuple([named(part, dtype_of_number) for part in of.parts])
        return StructureType(of.kind, of.static, parts)
    return of


def joined(a: types.Type, b: types.Type) -> types.Type | None:
    """The type of a variable that has type a on one path and b on another; None if there is none.

    Python numbers take the dtype of the other path, as they do in arithmetic.
    """
    if a == b:
        return a
    for this, other in ((a, b), (b, a)):
        if isinstance(this, ConstantType) and isinstance(other, ConstantType):
            break
        if isinstance(this, ConstantType) and this.value is UNDEFINED:
            return other
        if isinstance(this, ConstantType) and isinstance(other, RuntimeType):
            return _with_constant(other, this.value)
        is_array = isinstance(this, StructureType) and this.kind is Array
        if is_array and isinstance(other, RuntimeType):
            return other if this.parts[0] == other else None
    if _is_number(a) or _is_number(b):
        return _with_number(a, b) if _is_number(a) else _with_number(b, a)
    if isinstance(a, RuntimeType) and isinstance(b, RuntimeType):
        return _joined_tiles(a.tile, b.tile)
    if isinstance(a, ConstantType) and isinstance(b, ConstantType):
        wide_a, wide_b = widened(a), widened(b)
        return None if (wide_a, wide_b) == (a, b) else joined(wide_a, wide_b)
    return _joined_structures(a, b)


def convert(context: Context, value: object, to: types.Type, what: str = "a value") -> object:
    """value as what a variable of type `to` holds; its type joins to `to`.

    None, of a function of Triton's that ends without a return, is undefined.

    what: the variable, for messages.
    Errors: an int literal that does not fit.
    """
    if value is UNDEFINED or value is None and not isinstance(to, ConstantType):
        return undefined(context, to)
    if isinstance(to, RuntimeType):
        if to.tile.is_pointer:
            return as_pointer(context, value)
        if isinstance(value, Value):
            return context.cast(value, to.tile.dtype)
        return context.value(value, to.tile.dtype, what)
    if _is_number(to):
        return Number(context.value(value, to.parts[0].tile.dtype, what))
    if isinstance(to, StructureType):
        pairs = zip(parts_of(value), to.parts)
        return rebuild(to.kind, to.static, tuple([convert(context, v, t, what) for v, t in pairs]))
    return value


def undefined(context: Context, of: types.Type, variable: str = "") -> object:
    """A value of a type that no path uses.   variable: what holds it, for debug."""
    if isinstance(of, RuntimeType):
        named = {"variable": variable} if variable and context.options.debug else {}
        return context.emit("undefined", dtype=str(of.tile.dtype), shape=of.tile.shape, **named)
    if isinstance(of, StructureType):
        parts = [undefined(context, part, variable) for part in of.parts]
        return rebuild(of.kind, of.static, tuple(parts))
    return of.value


def flatten(value: object) -> list[Value]:
    """The run-time values in a value."""
    return list(leaves(value))


def unflatten(of: types.Type, values) -> object:
    """The value of a type whose run-time values are the next ones of an iterator."""
    if isinstance(of, RuntimeType):
        return next(values)
    if isinstance(of, StructureType):
        return rebuild(of.kind, of.static, tuple([unflatten(part, values) for part in of.parts]))
    return of.value


def _is_number(of: types.Type) -> bool:
    return isinstance(of, StructureType) and of.kind is Number


def _with_constant(other: RuntimeType, value: object) -> types.Type | None:
    if other.tile.is_pointer or other.tile.shape or not promotion.is_number(value):
        return None
    wide = widened(ConstantType(value))
    return _with_number(wide, other) if _is_number(wide) else _joined_tiles(wide.tile, other.tile)


def _with_number(number: StructureType, other: types.Type) -> types.Type | None:
    """The type of a variable that is a Python number on one path; a bool has no dtype to keep."""
    own, other = number.parts[0].tile.dtype, widened(other)
    if _is_number(other):
        return number_type(promotion.joined_weak_dtype(own, other.parts[0].tile.dtype))
    if not isinstance(other, RuntimeType) or other.tile.is_pointer or other.tile.shape:
        return None
    if other.tile.dtype == bool_:
        return number
    return runtime_type(TileType(promotion.with_weak(other.tile.dtype, own)))


def _joined_tiles(a: TileType, b: TileType) -> RuntimeType | None:
    if a.shape != b.shape or a.is_pointer or b.is_pointer:
        return None
    try:
        return runtime_type(a.of(promotion.joined_dtype(a.dtype, b.dtype)))
    except BlockTypeError:
        return None


def _joined_structures(a: types.Type, b: types.Type) -> StructureType | None:
    if not (isinstance(a, StructureType) and isinstance(b, StructureType)):
        return None
    if (a.kind, len(a.parts)) != (b.kind, len(b.parts)):
        return None
    static = a.static
    if static != b.static:
        static = a.kind.joined_static(static, b.static)
    parts = tuple([joined(x, y) for x, y in zip(a.parts, b.parts)])
    return None if static is None or None in parts else StructureType(a.kind, static, parts)


def method_among(given: tuple[types.Type, ...]) -> object | None:
    """The function of the user's that a call of a method calls; None for any other call.

    given: types of the variables of the call, the method's among them.
    """
    functions = (each.static[0] for each in given
                 if isinstance(each, StructureType) and each.kind is BoundMethod)
    return next((each for each in functions if python_function(each) is not None), None)


def are_elements(given: tuple[types.Type, ...]) -> bool:
    """Whether a call is given tiles and numbers only, and a tile at least.

    given: types of the variables of the call, the function's among them.
    """
    kinds = [of for of in given if not (isinstance(of, ConstantType) and callable(of.value))]
    return any(isinstance(of, RuntimeType) and of.tile.shape for of in kinds) and all(
        isinstance(of, RuntimeType) and not of.tile.is_pointer
        or isinstance(of, StructureType) and of.kind is Number
        or isinstance(of, ConstantType) and promotion.is_number(of.value) for of in kinds)

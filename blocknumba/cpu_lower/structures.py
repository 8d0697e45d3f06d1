"""Structures that Python and LLVM IR share: a class of ctypes as LLVM's type, and its fields."""

from __future__ import annotations

import ctypes


def type_of(structure: type[ctypes.Structure]) -> str:
    """The LLVM type of a structure."""
    return f"{{ {', '.join(_type(kind) for _, kind in structure._fields_)} }}"


def field_type(structure: type[ctypes.Structure], field: str) -> str:
    """The LLVM type of a field."""
    return _type(dict(structure._fields_)[field])


def field_index(structure: type[ctypes.Structure], field: str) -> int:
    """The number by which LLVM knows a field."""
    return [name for name, _ in structure._fields_].index(field)


def place(structure: type[ctypes.Structure], name: str, field: str, value: str) -> str:
    """A line that makes %value the address of a field of what %name points to.

    name: also of the structure's type in the module.
    """
    return (f"  %{value} = getelementptr %{name}, ptr %{name}, i32 0, "
            f"i32 {field_index(structure, field)}")


def load(structure: type[ctypes.Structure], name: str, field: str, value: str) -> str:
    """Lines that make %value a field of what %name points to; as of place."""
    return (f"{place(structure, name, field, f'{value}.at')}\n"
            f"  %{value} = load {field_type(structure, field)}, ptr %{value}.at")


def _type(kind: type) -> str:
    if issubclass(kind, ctypes.Array):
        return f"[{kind._length_} x {_type(kind._type_)}]"
    if kind is ctypes.c_double:
        return "double"
    size = ctypes.sizeof(kind)
    is_int = kind in (ctypes.c_int64, ctypes.c_uint64, ctypes.c_int32)
    return f"i{8 * size}" if is_int else "ptr"

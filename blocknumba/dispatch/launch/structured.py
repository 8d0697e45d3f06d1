"""Arguments made of several: tuples, named tuples, dataclasses, and the arrays of `*arrays`.

A launch takes them apart.  Each way in which they are nested has a kernel of its own, whose
function takes the parts, puts them together, and calls the user's:

    add[grid](Pair(x, y), out)          def add(p_left, p_right, out):
                                            _function(_record_0(p_left, p_right), out)

So signatures, launchers, plans and caches know parts only, which are arrays, numbers and constants.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import linecache
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import FunctionType

import numpy as np

from blocknumba.dispatch.launch.arrays import library_of
from blocknumba.dispatch.launch.signature import (
    REQUIRED, Formal, Signature, annotated_formal,
)
from blocknumba.tile_ir.ir.types import DType
from blocknumba.typing.function import python_function
from blocknumba.typing.records import fields_of, record_of
from blocknumba.typing.static_values import constexpr

FILE = "<arguments of {} {}>"  # of the functions that are made here: name, digest of the text
CONSTANT, VALUE = "constant", "value"  # kinds of parts
_OF_ARRAYS = ("__cuda_array_interface__", "__array_interface__", "__dlpack__", "data_ptr")


class Part:
    """An argument, or a part of one, in code that Numba makes: its type there, and its value.

    No dataclass: an argument of one is made of several.
    """

    __slots__ = ("type", "value")

    def __init__(self, of: object, value: object):
        self.type, self.value = of, value


def structured(cls: type, items: Iterable[object]) -> tuple:
    """A tuple of a class, named or not."""
    return cls(*items) if hasattr(cls, "_fields") else tuple(items)


def is_structured(value: object) -> bool:
    """Whether an argument is made of several."""
    return is_structured_class(type(value))


@functools.cache
def is_structured_class(cls: type) -> bool:
    """Whether arguments of a class are made of several: not those that are arrays of a library."""
    if issubclass(cls, tuple):
        return True
    return dataclasses.is_dataclass(cls) and library_of(cls) is None and not any(
        hasattr(cls, name) for name in _OF_ARRAYS)


def taken_apart(signature: Signature, bound: Mapping[str, object],
                are_types: bool = False) -> tuple[tuple, list[object]]:
    """A key of how the arguments of a call are nested, and the values of all parts, in order.

    are_types: what is bound are types, of which None alone is a constant.
    """
    values: list[object] = []
    is_constant = _is_none if are_types else _is_constant
    key = tuple([VALUE if formal.is_constant and not values.append(bound[formal.name])
                 else _key(bound[formal.name], values, is_constant)
                 for formal in signature.formals])
    return key, values


def _key(value: object, values: list[object], is_constant: Callable[[object], bool]) -> object:
    if is_structured(value):
        cls = type(value)
        record = record_of(cls)
        if record is None:
            return cls, tuple([_key(item, values, is_constant) for item in value])
        constants, numbers = constant_fields(cls), _number_fields(cls)
        return cls, tuple([
            _leaf(item, values) if name in constants
            else _key(item, values, _is_none if name in numbers else is_constant)
            for name, item in zip(record._fields, fields_of(value))])
    if isinstance(value, constexpr):
        return _leaf(value.value, values)
    values.append(value)
    return CONSTANT if is_constant(value) else VALUE


def _leaf(value: object, values: list[object]) -> str:
    values.append(value.value if isinstance(value, constexpr) else value)
    return CONSTANT


@functools.cache
def constant_fields(cls: type) -> frozenset[str]:
    """The fields of a record that are annotated as constants."""
    return frozenset(name for name, annotation in annotations_of(cls).items()
                     if annotated_formal(name, annotation).is_constant)


@functools.cache
def _number_fields(cls: type) -> frozenset[str]:
    """The fields of a record that are annotated with dtypes."""
    return frozenset(name for name, annotation in annotations_of(cls).items()
                     if annotated_formal(name, annotation).dtype is not None)


def annotations_of(cls: type) -> Mapping[str, object]:
    """The annotations of a record's fields."""
    if dataclasses.is_dataclass(cls):
        return {field.name: field.type for field in dataclasses.fields(cls)}
    return getattr(cls, "__annotations__", {})


def _is_none(value: object) -> bool:
    return value is None


def _is_constant(value: object) -> bool:
    """Whether a part that nothing annotates is a value at compile time."""
    return value is None or isinstance(value, (str, type, DType, np.dtype)) or (
        python_function(value) is not None)


class Flattening:
    """The function and the signature of a kernel for one way in which arguments are nested."""

    def __init__(self, function: FunctionType, signature: Signature, key: tuple):
        self._signature = signature
        self._formals: list[Formal] = []
        self._scope: dict[str, object] = {"_function": function}
        self._taken = {formal.name for formal in signature.formals}
        passed = []
        for formal, own in zip(signature.formals, key):
            if formal.is_rest:
                passed += [self._text(f"{formal.name}_{i}", f"{formal.name}[{i}]", item)
                           for i, item in enumerate(own[1])]
                continue
            if isinstance(own, str):
                self._formals.append(replace(formal, default=REQUIRED, keyword_only=False))
                text = formal.name
            else:
                text = self._text(formal.name, formal.name, own)
            passed.append(f"{formal.name}={text}" if formal.keyword_only else text)
        self.signature = Signature(signature.kernel, tuple(self._formals))
        self.function = self._made(function, passed)

    def _text(self, name: str, label: str, key: object, annotation: object = REQUIRED) -> str:
        """The expression that puts an argument together, and the formals of its parts."""
        if isinstance(key, str):
            return self._part(name, label, key, annotation)
        cls, items = key
        record = record_of(cls)
        if record is None:
            texts = [self._text(f"{name}_{i}", f"{label}[{i}]", item)
                     for i, item in enumerate(items)]
            return f"({''.join(f'{text}, ' for text in texts)})"
        annotations = annotations_of(cls)
        texts = [self._text(f"{name}_{field}", f"{label}.{field}", item,
                            annotations.get(field, REQUIRED))
                 for field, item in zip(record._fields, items)]
        made = f"_record_{len(self._scope)}"
        self._scope[made] = record
        return f"{made}({', '.join(texts)})"

    def _part(self, name: str, label: str, kind: str, annotation: object) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        formal = annotated_formal(name, annotation) if annotation is not REQUIRED else Formal(name)
        self._formals.append(replace(formal, is_constant=kind == CONSTANT, label=label,
                                     is_divisor=False))
        return name

    def _made(self, function: FunctionType, passed: list[str]) -> FunctionType:
        name = function.__name__
        own = name if name.isidentifier() else "kernel"
        parameters = ", ".join(formal.name for formal in self._formals)
        text = f"def {own}({parameters}):\n    _function({', '.join(passed)})\n"
        file = FILE.format(own, hashlib.blake2b(text.encode(), digest_size=4).hexdigest())
        # Triton's dialect reads the source of a function
        linecache.cache[file] = len(text), None, text.splitlines(True), file
        exec(compile(text, file, "exec"), self._scope)
        made = self._scope[own]
        made.__name__, made.__qualname__ = name, function.__qualname__
        made.__module__, made.__doc__ = function.__module__, function.__doc__
        return made

"""The name of a compilation in the cache on disk: a digest of all that its result depends on."""

from __future__ import annotations

import abc
import dataclasses
import enum
import hashlib
import os
import re
import sys
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import (
    BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType, MethodType, ModuleType,
    SimpleNamespace, WrapperDescriptorType,
)

import numpy as np

import blocknumba
from blocknumba.dispatch.compile.captures import capture, is_container, is_of_python, is_stable
from blocknumba.dispatch.compile.references import found
from blocknumba.dispatch.launch.specialize import Specialization, is_transparent
from blocknumba.dispatch.launch.watching import MISSING, REGISTRATIONS, Read
from blocknumba.settings import SETTINGS
from blocknumba.tile_ir.ir.types import DType
from blocknumba.typing.dialect import declared_dialect
from blocknumba.typing.function import BlockFunction, python_function
from blocknumba.typing.numba_ir.written import written_code
from blocknumba.typing.static_values import constexpr

FORMAT = 1  # of the digest and of the entries
_DIGEST_BYTES = 20
# what takes part in a compilation, as the names of installed packages begin
_PACKAGES = re.compile(r"(numba|numba_cuda|llvmlite|numpy|ml_dtypes|cuda_\w+|nvidia_\w+)-\d",
                       re.IGNORECASE)
_METADATA = (".dist-info", ".egg-info")
_ADDRESSES = re.compile(r" at 0x[0-9a-f]+")


class Unknowable(Exception):
    """A value whose meaning a digest cannot hold; a kernel that reads one is compiled each time."""


def fingerprint(function: FunctionType, specialization: Specialization,
                constants: Mapping[str, object]) -> str | None:
    """The digest of a compilation, the same in every process; None when there is none.

    It holds all that the kernel reads (see captures.py), the specialization, and the versions of
    everything that compiles.  Where a kernel is in its file counts only when its code says so: on
    the CPU, with debug and with lineinfo.
    """
    options = specialization.options
    is_located = specialization.target is None or options.debug or options.lineinfo
    reads = capture(function, constants).reads
    writer = _Writer(is_located, any(read.kind == REGISTRATIONS for read in reads))
    try:
        writer.add("blocknumba", FORMAT, environment(), repr(specialization.arguments),
                   repr(options), str(specialization.target), specialization.disjoint,
                   specialization.numbers_describe, str(specialization.processor))
        writer.value(function)
        for name, value in constants.items():
            writer.add("constant", name)
            writer.value(value)
        for read in reads:
            writer.add(read.kind, read.path)
            writer.value(_written(read))
    except Unknowable:
        return None
    return writer.digest()


def digest(plain: Iterable[object], values: Iterable[object]) -> str | None:
    """The digest of values that a kernel may read, the same in every process; None if none is.

    plain: values that their str determines.
    """
    writer = _Writer(is_located=False, asks_classes=False)
    try:
        writer.add(*plain)
        for value in values:
            writer.value(value)
    except Unknowable:
        return None
    return writer.digest()


@cache
def environment() -> str:
    """The versions of all that takes part in a compilation, without loading any of it.

    Which libNVVM compiles is known only when it is loaded: entries say it, and this says where it
    is looked for.  Errors: Unknowable when numba's version cannot be seen.
    """
    packages = sorted(_packages(sys.path))
    if not any(name.startswith("numba-") for name in packages):
        raise Unknowable("numba")
    python = (sys.implementation.name, sys.version, sys.platform)
    return repr((source_digest(), packages, python, np.__version__, SETTINGS.toolkit,
                 SETTINGS.numba))


@cache
def source_digest() -> str:
    """A digest of blocknumba's own code."""
    state = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    root = Path(blocknumba.__file__).parent
    for file in sorted(root.rglob("*.py")):
        text = file.read_bytes()
        state.update(f"{file.relative_to(root)}:{len(text)}:".encode() + text)
    return state.hexdigest()


def _packages(folders: Iterable[str]) -> Iterable[str]:
    """The folders of metadata of installed packages: "numba-0.63.0.dist-info"."""
    for folder in folders:
        try:
            names = os.listdir(folder or ".")
        except (OSError, ValueError):
            continue  # an archive, or nothing at all
        for name in names:
            if name.endswith(_METADATA) and _PACKAGES.match(name):
                yield name.lower()


class _Writer:
    """Writes values into a digest so that different values are different texts."""

    def __init__(self, is_located: bool, asks_classes: bool):
        self._state = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._is_located = is_located
        self._asks_classes = asks_classes  # which class an object is of, as isinstance does
        self._seen: dict[int, int] = {}  # the number of each function met before, by its id

    def digest(self) -> str:
        """Of everything so far."""
        return self._state.hexdigest()

    def add(self, *values: object) -> None:
        """Values that their str determines."""
        for value in values:
            text = str(value).encode("utf-8", "surrogatepass")
            self._state.update(b"%d:%s" % (len(text), text))

    def value(self, value: object) -> None:
        """A value that a kernel may read.  Errors: Unknowable."""
        inner = python_function(value)
        if inner is not None:
            self.add("dialect", declared_dialect(value))
            self._function(inner)
            return
        for classes, write in _WRITERS:
            if isinstance(value, classes):
                write(self, value)
                return
        self.object(value)

    def plain(self, value: object) -> None:
        """A value that repr says exactly, unless its class is a user's own."""
        if type(value) not in _PLAIN:
            raise Unknowable(type(value).__name__)
        self.add(type(value).__name__, repr(value))

    def items(self, values: tuple) -> None:
        """A tuple of any class."""
        if type(values) is not tuple:
            self.type(type(values))
        self.add("tuple", len(values))
        for item in values:
            self.value(item)

    def set(self, values: frozenset) -> None:
        """A set, which has no order."""
        digests = []
        for item in values:
            inner = _Writer(self._is_located, self._asks_classes)
            inner.value(item)
            digests.append(inner.digest())
        self.add("frozenset", *sorted(digests))

    def array(self, value: np.generic | np.ndarray) -> None:
        """A number or an array of NumPy's."""
        if value.dtype.hasobject:
            raise Unknowable("object")
        self.add("array", type(value).__name__, value.dtype.str, value.dtype.name, value.shape,
                 value.tobytes().hex())

    def dtype(self, value: np.dtype) -> None:
        """A dtype of NumPy's."""
        self.add("dtype", value.str, value.name, value.descr)

    def marked(self, value: constexpr) -> None:
        """A value that is marked as a constant."""
        self.add("constexpr")
        self.value(value.value)

    def slice(self, value: slice) -> None:
        """A slice of numbers."""
        self.add("slice")
        self.items((value.start, value.stop, value.step))

    def named(self, value: object) -> None:
        """A function, class or ufunc that its name says, of a module that its version says."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        name = name or getattr(value, "__name__", None)
        if isinstance(value, np.ufunc):
            module = "numpy"
        known = is_stable(module) or is_of_python(module)
        if not known or found(module, name) is not value:
            raise Unknowable(f"{module}.{name}")
        self.add("named", module, name)

    def type(self, value: type) -> None:
        """A class; what a kernel reads of a user's own is read by itself."""
        if is_stable(value.__module__) or is_of_python(value.__module__):
            self.named(value)
            return
        if not self._is_new(value):
            return
        if self._asks_classes and isinstance(value, abc.ABCMeta):
            raise Unknowable(value.__qualname__)  # any class may be registered with it
        self.add("class", value.__module__, value.__qualname__)
        if issubclass(value, enum.Enum):
            for name, member in value.__members__.items():
                self.add("member", name)
                self.value(member.value)
        elif issubclass(value, tuple) and hasattr(value, "_fields"):
            self.add("fields", *value._fields)
            self.value(value.__new__)
            for name, default in value._field_defaults.items():
                self.add("default", name)
                self.value(default)
        elif not is_transparent(value):
            raise Unknowable(value.__qualname__)
        else:
            self.items(value.__bases__)
        if dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            self.add("dataclass", *(field.name for field in fields))
            self.items(tuple(field.default for field in fields
                             if field.default is not dataclasses.MISSING))

    def field(self, value: object) -> None:
        """The reader of a field of a named tuple."""
        self.add("field", value.__reduce__()[1][0])

    def object(self, value: object) -> None:
        """An object of a user's class; what a kernel reads of it is read by itself."""
        if value is MISSING:
            self.add("missing")
            return
        known = type(value) is SimpleNamespace or is_transparent(type(value))
        if is_container(value) or not known:
            raise Unknowable(type(value).__name__)
        if self._is_new(value):
            self.add("object")
            self.type(type(value))

    def module(self, value: ModuleType) -> None:
        """A module; what a kernel reads of a user's own is read by itself."""
        self.add("module", value.__name__)

    def of_class(self, value: WrapperDescriptorType | MethodDescriptorType) -> None:
        """A method of a class that is written in C."""
        self.add("method of", value.__name__)
        self.named(value.__objclass__)

    def method(self, value: MethodType) -> None:
        """A function and what it is bound to."""
        self.add("method")
        self.items((value.__func__, value.__self__))

    def member(self, value: enum.Enum) -> None:
        """A member of an enumeration."""
        self.type(type(value))
        self.add("member", value.name)
        self.value(value.value)

    def code(self, code: CodeType) -> None:
        """Bytecode with everything that it names."""
        self.add("code", code.co_name, code.co_code.hex(), code.co_names, code.co_varnames,
                 code.co_freevars, code.co_cellvars, code.co_argcount, code.co_kwonlyargcount,
                 code.co_posonlyargcount, code.co_flags, code.co_exceptiontable.hex())
        if self._is_located:
            self.add(code.co_filename, code.co_firstlineno, code.co_linetable.hex())
        self.value(code.co_consts)

    def _function(self, function: FunctionType) -> None:
        """A function: its name when its version says all; else its code is read, like a value."""
        module, name = function.__module__, function.__qualname__
        if is_stable(module) and python_function(found(module, name)) is function:
            self.add("named", module, name)
            return
        if self._is_new(function):
            self.add("function", function.__name__)
            for name, annotation in function.__annotations__.items():
                self.add("annotation", name, annotation if isinstance(annotation, str)
                         else _ADDRESSES.sub("", repr(annotation)))

    def _is_new(self, value: object) -> bool:
        """Whether an object is met first; it is told apart from all others of its kind."""
        number = self._seen.setdefault(id(value), len(self._seen))
        self.add("number", number)
        return number == len(self._seen) - 1


def _written(read: Read) -> object:
    """The value that is digested for a read."""
    if read.name == "__kwdefaults__":
        return None  # the items of the dict are read too
    return written_code(read.holder) if read.name == "__code__" else read.value


_PLAIN = frozenset((bool, int, float, complex, str, bytes, range, DType, type(None), type(...)))
# by the first that fits: members of enumerations may be ints, and NumPy's float64 is a float
_WRITERS: tuple[tuple[tuple[type, ...], Callable[[_Writer, object], None]], ...] = (
    ((enum.Enum,), _Writer.member),
    ((np.generic, np.ndarray), _Writer.array),
    ((tuple,), _Writer.items),
    ((frozenset,), _Writer.set),
    ((type,), _Writer.type),
    ((type(vars(namedtuple("Named", "field"))["field"]),), _Writer.field),
    ((CodeType,), _Writer.code),
    ((constexpr,), _Writer.marked),
    ((ModuleType,), _Writer.module),
    ((MethodType,), _Writer.method),
    ((WrapperDescriptorType, MethodDescriptorType), _Writer.of_class),
    ((slice,), _Writer.slice),
    ((np.dtype,), _Writer.dtype),
    ((np.ufunc, BuiltinFunctionType, BlockFunction), _Writer.named),
    (tuple(_PLAIN), _Writer.plain),
)

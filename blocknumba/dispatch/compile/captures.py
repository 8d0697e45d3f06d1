"""Captures: all values besides its arguments that a kernel reads while it is compiled.

Code reads variables and attributes by names, which stand in its bytecode.  A `Walk` begins with
the kernel's function and with the constants of a launch, and follows what they read:

    kernel --global--> settings --attribute--> BLOCK
           --global--> OPS --item--> function --code, defaults, globals ...
           --argument--> config --attribute--> size

A path of attributes from a variable is followed as it is written.  Of an object that the code
passes on, to a local variable or a function, any attribute may be read that some code names.
One list of reads is all that the rest needs: their values are part of the key of the code, a
launch compares them (`watching.py`), and the cache on disk digests them (`fingerprint.py`).
"""

from __future__ import annotations

import enum
import functools
import os
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from types import (
    BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType,
)

import numpy as np

from blocknumba.dispatch.compile.references import Path, names_in
from blocknumba.dispatch.launch.specialize import Same, freeze
from blocknumba.dispatch.launch.watching import (
    ATTRIBUTE, CELL, COMPUTED, GLOBAL, ITEM, MISSING, NAMES, REGISTRATIONS, Read, is_plain, now,
    watch,
)
from blocknumba.tile_ir.ir.types import DType
from blocknumba.typing.foreign import native
from blocknumba.typing.function import KEPT_FUNCTIONS, BlockFunction, python_function
from blocknumba.typing.numba_ir.written import written_code
from blocknumba.typing.static_values import constexpr

# modules whose attributes nobody changes while a program runs
_STABLE = frozenset(("blocknumba", "numpy", "numba", "ml_dtypes", "triton"))
_OF_C = frozenset(("math", "cmath", "operator"))  # modules of Python that kernels use
_CONTENTS = (tuple, frozenset, str, bytes, type)  # what len() says of them does not change
_SETTLED = (BuiltinFunctionType, np.ufunc, BlockFunction, DType, CodeType, slice)
_COMPUTING = (getattr, hasattr)  # attributes whose names are values
_SHOWING = (str, repr, format)  # text of all attributes, it may be
_OF_TRUTH, _EQUAL, _CALL = ("__bool__", "__len__"), ("__eq__",), ("__call__",)
_TEXT = ("__repr__", "__str__", "__format__")
_COMPARISONS = frozenset(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge"))
# special methods that no expression of a kernel calls
_NOT_CALLED = frozenset(f"__{name}__" for name in (
    "new", "init", "del", "post_init", "hash", "setattr", "delattr", "set_name", "reduce",
    "reduce_ex", "getstate", "setstate", "copy", "deepcopy", "replace", "init_subclass",
    "class_getitem", "subclasshook", "sizeof", "dir", "getattr", "getattribute", "prepare"))


@dataclass(frozen=True, slots=True)
class Captures:
    """The captured values of a kernel at one moment.

    reads: everything that it reads, each after the object that holds it.
    values: (path, frozen value) of each; part of the key of the code cache.
    is_current: test whether all are unchanged; always False when a captured object can change
        without being rebound.
    """

    reads: tuple[Read, ...]
    values: tuple[tuple[str, Hashable], ...]
    is_current: Callable[[], bool]


def capture(function: FunctionType, constants: Mapping[str, object] | None = None) -> Captures:
    """Everything that a kernel and the functions it calls read, for these constants."""
    walk = Walk()
    walk.read_code(f"{function.__module__}.{function.__qualname__}", function)
    for name, value in (constants or {}).items():
        walk.follow(f"argument {name}", value)
    walk.finish()
    reads = tuple(walk.reads.values())
    values = tuple((read.path, _frozen(read.value)) for read in reads)
    return Captures(reads, values, _never if walk.changes_in_place else watch(reads))


def is_stable(module: str | None) -> bool:
    """Whether nobody changes the attributes of a module while a program runs."""
    name = (module or "").partition(".")[0]
    return name in _STABLE or name in _OF_C and is_of_python(name)


@functools.cache
def is_of_python(module: str | None) -> bool:
    """Whether a module is one of Python's own, and not a user's of the same name."""
    name = (module or "").partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None)
    return name in sys.stdlib_module_names and (
        file is None or file.startswith(os.path.dirname(os.__file__) + os.sep)
        and "site-packages" not in file)


def is_settled(value: object) -> bool:
    """Whether nothing can be read of a value that may change."""
    if isinstance(value, ModuleType):
        return is_stable(value.__name__)
    if isinstance(value, (type, FunctionType)):
        return is_stable(value.__module__) or is_of_python(value.__module__)
    if is_plain(value) or isinstance(value, _SETTLED):
        return True
    if type(value) is tuple:
        return all(map(is_settled, value))
    return (is_stable(type(value).__module__) and python_function(value) is None
            and not isinstance(value, (constexpr, np.ndarray)))


class Walk:
    """The reads of a kernel, found by following what its code names.

    reads: by holder and name, in the order in which they were found.
    changes_in_place: there is a list, an array or the like, which no comparison of objects sees.
    """

    def __init__(self) -> None:
        self.reads: dict[tuple[int, str, str], Read] = {}
        self.changes_in_place = False
        self._pending: deque[tuple[str, object]] = deque()
        self._seen: dict[int, object] = {}  # all that was followed, by id, which it keeps alive
        self._objects: dict[int, tuple[str, object]] = {}  # that the code passes on
        self._members: dict[int, Mapping[str, object]] = {}  # of classes, by their ids
        # of attributes that are read of such objects; NumPy asks any object for its dtype
        self._names: dict[str, None] = {"dtype": None}
        self._strings: dict[str, None] = {}  # which may be names, where some are computed
        # what the code does with such objects, whatever their class makes of it
        self._computes_names = self._compares = self._takes_classes = False
        self._shows = self._asks_calls = False

    def follow(self, path: str, value: object) -> None:
        """Let the code do with a value whatever it does."""
        self._pending.append((path, value))

    def read_code(self, path: str, function: FunctionType) -> None:
        """Add the reads of a function's own code."""
        self._read(path, ATTRIBUTE, function, "__code__")
        names = names_in(written_code(function))
        self._names |= names.attributes
        self._strings |= names.strings
        self._compares |= names.compares
        self._shows |= names.shows
        for variable in names.paths:
            self._read_path(path, function, variable)

    def finish(self) -> None:
        """Follow everything to its end."""
        before = None
        while before != (before := self._extent()):
            while self._pending:
                self._follow(*self._pending.popleft())
            for path, value in list(self._objects.values()):
                self._read_attributes(path, value)

    def _extent(self) -> tuple:
        """State of the walk: it is finished when a step leaves this unchanged."""
        return (len(self.reads), len(self._objects), len(self._names), len(self._strings),
                self._computes_names, self._compares, self._takes_classes, self._shows,
                self._asks_calls)

    def _follow(self, path: str, value: object) -> None:
        value = native(value)
        if isinstance(value, str):
            self._strings[value] = None
        self._computes_names |= any(value is function for function in _COMPUTING)
        self._shows |= any(value is function for function in _SHOWING)
        self._takes_classes |= value is type
        self._asks_calls |= value is callable
        if value is isinstance or value is issubclass:
            self._read("abc", REGISTRATIONS, value, "registrations")
        if id(value) in self._seen or is_settled(value) and type(value) is not tuple:
            return
        self._seen[id(value)] = value
        self.changes_in_place |= is_container(value)
        for name, item in _items(value):
            self.follow(f"{path}{name}", item)
        if type(value) in _WHOLE:
            return
        self._objects[id(value)] = path, value
        function = python_function(value)
        if function is not None:
            if function is not value:
                for name in KEPT_FUNCTIONS:
                    self._read(path, ATTRIBUTE, value, name)
            self._read_function(path, function)
        elif isinstance(value, constexpr):
            self.follow(f"{path}.value", self._read(path, ATTRIBUTE, value, "value"))

    def _read_function(self, path: str, function: FunctionType) -> None:
        """Add the reads of a call of a function: its code and its defaults."""
        self._seen[id(function)] = function
        self.read_code(path, function)
        code = function.__code__
        if code.co_argcount:
            self.follow(f"{path}.__defaults__",
                        self._read(path, ATTRIBUTE, function, "__defaults__"))
        if code.co_kwonlyargcount:
            named = self._read(path, ATTRIBUTE, function, "__kwdefaults__")
            within = f"{path}.__kwdefaults__"
            for name in named or ():
                self.follow(f"{within}.{name}", self._read(within, ITEM, named, name))

    def _read_path(self, path: str, function: FunctionType, variable: Path) -> None:
        """A variable, and the attributes that are read of it at once."""
        name, *attributes = variable.names
        captured = function.__code__.co_freevars
        if variable.is_cell:
            if name not in captured:  # a function within reads a variable of this one
                self._names |= dict.fromkeys(attributes)
                return
            value = self._read(path, CELL, function.__closure__[captured.index(name)], name)
        else:
            path = function.__module__
            value = native(self._read(path, GLOBAL, function.__globals__, name))
        path = f"{path}.{name}"
        if isinstance(value, constexpr):
            value, path = self._read(path, ATTRIBUTE, value, "value"), f"{path}.value"
        for name in attributes:
            if value is MISSING or is_settled(value):
                return
            value, path = native(self._read(path, ATTRIBUTE, value, name)), f"{path}.{name}"
        if value is not MISSING:
            self.follow(path, value)

    def _read_attributes(self, path: str, value: object) -> None:
        """Add the attributes that the code may read of an object that it passes on."""
        names = dict(self._names)
        self._read_class(path, value)
        in_c = is_of_python(type(value).__module__)  # as SimpleNamespace compares all that it has
        if self._computes_names or self._shows or self._compares and in_c:
            names |= dict.fromkeys(_own_names(value))
            if hasattr(value, "__dict__"):
                self._read(path, NAMES, value, "")
        if self._computes_names:
            names |= self._strings
        for name in names:
            if (id(value), ATTRIBUTE, name) in self.reads:
                continue
            if self._computes_names or now(ATTRIBUTE, value, name) is not MISSING:
                self.follow(f"{path}.{name}", self._read(path, ATTRIBUTE, value, name))

    def _read_class(self, path: str, value: object) -> None:
        """The class of an object, with the methods that operators and builtin functions call."""
        cls = type(value)
        if is_settled(cls):
            return
        self._read(path, ATTRIBUTE, value, "__class__")
        if self._takes_classes:
            self.follow(f"{path}.__class__", cls)
        for base in cls.__mro__:
            if not is_settled(base):
                members = self._members.setdefault(id(base), vars(base))
                for name in self._special_methods(members):
                    within = f"{path}.__class__.{base.__qualname__}"
                    self.follow(f"{within}.{name}", self._read(within, ITEM, members, name))

    def _special_methods(self, members: Mapping[str, object]) -> list[str]:
        """Methods of a class that operators and builtin functions call; some it may yet get."""
        expected = [*_OF_TRUTH, *_EQUAL * self._compares, *_TEXT * self._shows,
                    *_CALL * self._asks_calls]
        left_out = {*_NOT_CALLED, *expected, *(_COMPARISONS if not self._compares else ()),
                    *(_TEXT if not self._shows else ())}
        return [*expected, *(name for name, member in members.items() if name.startswith("__")
                             and name not in left_out and isinstance(member, FunctionType))]

    def _read(self, path: str, kind: str, holder: object, name: str) -> object:
        """Note that something is read, once; its value."""
        key = (id(holder), kind, name)
        if key not in self.reads:
            value = now(kind, holder, name)
            if kind == ATTRIBUTE and now(kind, holder, name) is not value:
                kind = COMPUTED
                self.changes_in_place |= not _is_comparable(value)
            self.reads[key] = Read(f"{path}.{name}", kind, holder, name, value)
        return self.reads[key].value


def _items(value: object) -> Iterator[tuple[str, object]]:
    """Items of a container or a bound method: name and value."""
    if isinstance(value, MethodType):
        yield from ((".__func__", value.__func__), (".__self__", value.__self__))
    elif isinstance(value, dict):
        for number, item in enumerate((*value.keys(), *value.values())):
            yield f"[{number}]", item
    elif isinstance(value, (tuple, frozenset)) or (
            is_container(value) and not isinstance(value, np.ndarray)
            and is_of_python(type(value).__module__)):
        for number, item in enumerate(value):
            yield f"[{number}]", item


def is_container(value: object) -> bool:
    """Whether a value has contents that can change, which no code of the user's keeps."""
    lengths = [vars(base)["__len__"] for base in type(value).__mro__ if "__len__" in vars(base)]
    if not lengths or isinstance(value, _CONTENTS):
        return False
    length = lengths[0]
    return not isinstance(length, FunctionType) or is_of_python(length.__module__)


def _own_names(value: object) -> list[str]:
    """The names of attributes of an object and its classes."""
    holders = [value, *(value if isinstance(value, type) else type(value)).__mro__]
    return [name for holder in holders if not is_settled(holder)
            for name in getattr(holder, "__dict__", ()) if not name.startswith("__")]


def _is_comparable(value: object) -> bool:
    """Whether two values that were computed can be compared."""
    if isinstance(value, MethodType):
        return True
    if type(value) is tuple:
        return all(map(_is_comparable, value))
    return is_plain(value)


def _frozen(value: object) -> Hashable:
    """Key of a value, equal for values that a kernel cannot tell apart."""
    if isinstance(value, MethodType):
        return MethodType, _frozen(value.__func__), _frozen(value.__self__)
    if isinstance(value, slice):
        return slice, _frozen(value.start), _frozen(value.stop), _frozen(value.step)
    if isinstance(value, CodeType):
        return value, value.co_filename
    if is_container(value) and not isinstance(value, np.ndarray):
        own = is_of_python(type(value).__module__)
        return Same(value), repr(value) if own else len(value)
    if isinstance(value, (tuple, frozenset)):
        unordered = isinstance(value, frozenset)
        return type(value), (frozenset if unordered else tuple)(map(_frozen, value))
    known = (np.ndarray, FunctionType, ModuleType, type, enum.Enum)
    return freeze(value, "") if is_settled(value) or isinstance(value, known) else Same(value)


def _never() -> bool:
    return False


# values of these classes have no attributes of a user's
_WHOLE = (tuple, frozenset, list, dict, set, bytearray, np.ndarray, MethodType)

"""References: variables and attributes that bytecode reads by name; kernels, by theirs."""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import linecache
import operator
import os
import pickle
import sys
import tokenize
import weakref
from dataclasses import dataclass, field
from types import CodeType, FunctionType

_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_GLOBALS = frozenset(("LOAD_GLOBAL", "LOAD_NAME"))
_CELLS = frozenset(("LOAD_DEREF", "LOAD_CLASSDEREF"))
# what compares its arguments, by any name that leads to it
_COMPARING = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "contains", "max", "min", "sorted"))


@dataclass(frozen=True, slots=True)
class Path:
    """A variable, and the attributes that are read of it one after the other.

    is_cell: it is one of an enclosing function, which may be the code's own.
    """

    names: tuple[str, ...]
    is_cell: bool


@dataclass(slots=True)
class Names:
    """Names in code, nested functions included; dicts are sets with an order.

    paths: of variables that are not local.
    attributes: names of those that are read of anything else.
    strings: constants, which may be names of attributes.
    compares: it asks whether things are equal.
    shows: it makes text of things.
    """

    paths: dict[Path, None] = field(default_factory=dict)
    attributes: dict[str, None] = field(default_factory=dict)
    strings: dict[str, None] = field(default_factory=dict)
    compares: bool = False
    shows: bool = False


@functools.lru_cache(maxsize=1024)
def names_in(code: CodeType) -> Names:
    """The names that code reads."""
    names = Names()
    _collect(code, names)
    return names


def _collect(code: CodeType, names: Names) -> None:
    path: Path | None = None
    for instruction in dis.get_instructions(code):
        name, argument = instruction.opname, instruction.argval
        if name in _ATTRIBUTES:
            names.compares |= argument in _COMPARING
            if path is None:
                names.attributes[argument] = None
            else:
                path = Path((*path.names, argument), path.is_cell)
            continue
        if path is not None:
            names.paths[path] = path = None
        if name in _GLOBALS or name in _CELLS:
            path = Path((argument,), name in _CELLS)
            names.compares |= argument in _COMPARING
        names.shows |= name.startswith("FORMAT_") or name == "CONVERT_VALUE"
        names.compares |= name == "CONTAINS_OP" or name == "COMPARE_OP" and (
            instruction.argrepr.strip("bol()") in ("==", "!="))
    for constant in code.co_consts:
        _collect_constant(constant, names)


def _collect_constant(constant: object, names: Names) -> None:
    if isinstance(constant, CodeType):
        _collect(constant, names)
    elif isinstance(constant, str):
        names.strings[constant] = None
    elif isinstance(constant, (tuple, frozenset)):
        for item in sorted(constant, key=repr):  # a set has another order in another process
            _collect_constant(item, names)


class Named:
    """A kernel, or a decorator's, that is found by its name: a copy of it is itself.

    __module__, __qualname__: of its function.
    chosen: names of arguments that a decorator chooses; None for a kernel without any.
    origin: of a kernel of parts, the one that it was made of, and how arguments are nested.
    """

    __slots__ = ()
    chosen: frozenset[str] | None = None
    origin: tuple[Named, tuple] | None = None

    def last_choice(self) -> dict[str, object] | None:
        """Constants and options that decorators chose for the last launch; empty without any.

        None where there is none yet, and where the arguments of each launch decide.
        """
        return {}

    def remake(self) -> tuple[type, tuple]:
        """A class and arguments that make one like it."""
        raise NotImplementedError

    @property
    def _reference(self) -> FunctionType:
        """The function that stands for it."""
        if self not in _REFERENCES:
            made = _REFERENCES[self] = _reference(*self.remake())
            made.__module__, made.__qualname__ = self.__module__, f"{self.__qualname__}._reference"
            _REFERRED[made] = weakref.ref(self)
        return _REFERENCES[self]

    def require_name(self) -> None:
        """Errors: PicklingError for one that is not found by its name."""
        if self.origin is not None:
            self.origin[0].require_name()
        elif found(self.__module__, self.__qualname__) is not self:
            raise pickle.PicklingError(
                f"{self.__name__}: a kernel is pickled by its name, and {self.__module__}."
                f"{self.__qualname__} is not this one; define it at the top level of a module, or "
                "use cloudpickle")

    def __copy__(self) -> Named:
        return self

    def __deepcopy__(self, memo: dict) -> Named:
        return self

    def __reduce_ex__(self, protocol: int) -> tuple | str:
        """Errors: PicklingError for one that is not found by its name."""
        if self.origin is not None:
            return _of_parts, self.origin
        # nothing says which of the two asks, but cloudpickle does not before it is loaded
        if "cloudpickle" not in sys.modules:
            self.require_name()
        if protocol < 4:  # no names with dots
            return self.__qualname__
        return _referred, (self._reference,)


_REFERENCES: weakref.WeakKeyDictionary[Named, FunctionType] = weakref.WeakKeyDictionary()
_REFERRED: weakref.WeakKeyDictionary[FunctionType, weakref.ref] = weakref.WeakKeyDictionary()


def _reference(cls: type, arguments: tuple) -> FunctionType:
    carried = tuple(WithSource(argument) if isinstance(argument, FunctionType) else argument
                    for argument in arguments)

    def reference() -> Named:
        return cls(*(argument.function if isinstance(argument, WithSource) else argument
                     for argument in carried))
    return reference


def _referred(reference: FunctionType) -> Named:
    """The object that a function refers to; a new one if the function was read by value."""
    known = _REFERRED.get(reference)
    return reference() if known is None else known()


def _of_parts(kernel: Named, nesting: tuple) -> Named:
    """The kernel of the parts of arguments that are nested in one way."""
    return kernel.nested.of(nesting)


def found(module: str | None, name: str | None) -> object:
    """The object of a dotted name in a module; None if there is none."""
    try:
        return operator.attrgetter(name or "")(sys.modules[module])
    except (AttributeError, KeyError):
        return None


@dataclass(frozen=True, slots=True)
class WithSource:
    """A function that takes its lines to other processes: Triton's dialect and errors read them.

    cloudpickle writes the code of a function, but not the lines that it is from.  The process that
    reads it finds them in the cache of lines, under a name of their own: a file of the author's
    name may be another one there.
    """

    function: FunctionType

    def __reduce__(self) -> tuple:
        code = self.function.__code__
        return _received, (self.function, os.path.basename(code.co_filename), _lines(code))


def _lines(code: CodeType) -> list[str]:
    """The lines of a function, decorators included; none where they are not to be had."""
    following = linecache.getlines(code.co_filename)[code.co_firstlineno - 1:]
    try:
        return inspect.getblock(following)
    except (SyntaxError, IndentationError, tokenize.TokenError):
        return []


def _received(function: FunctionType, name: str, lines: list[str]) -> WithSource:
    """The function whose code knows where its lines are."""
    if lines:
        first = function.__code__.co_firstlineno
        content = "".join(lines).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(b"%d:%b" % (first, content), digest_size=4).hexdigest()
        file = f"<{digest} of>{os.sep}{name}"  # messages show the last part
        padded = ["\n"] * (first - 1) + lines
        linecache.cache[file] = sum(map(len, padded)), None, padded, file
        function.__code__ = _moved(function.__code__, file)
    return WithSource(function)


def _moved(code: CodeType, file: str) -> CodeType:
    """Code, and that of the functions in it, as if it was in a file."""
    return code.replace(co_filename=file, co_consts=tuple(
        _moved(constant, file) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts))

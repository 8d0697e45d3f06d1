"""The globals and closure variables that a kernel reads, by value."""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, ModuleType

import numpy as np

from blocknumba.dispatch.signature import reading_place
from blocknumba.dispatch.specialize import freeze
from blocknumba.errors import BlockError
from blocknumba.tracebacks import GENERATED
from blocknumba.typing.written import written_code

# modules whose attributes nobody changes while a program runs
_STABLE = frozenset(("blocknumba", "numpy", "numba", "math", "operator", "cmath", "ml_dtypes"))
_MUTABLE = (list, dict, set, bytearray, np.ndarray)
_ATTRIBUTE_INSTRUCTIONS = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_MISSING = object()
_IS_CURRENT = """\
def is_current():
    try:
        return {}
    except gone:
        return False
"""


@dataclass(frozen=True, slots=True)
class Captures:
    """What a kernel captured, at one moment.

    values: (path, frozen value), sorted by path; part of the key of the code cache.
    is_current: whether every captured variable still is the same object; always False when
        a captured object can change without being rebound.
    watch: the same for launchers, where it costs less.
    """

    values: tuple[tuple[str, Hashable], ...]
    is_current: Callable[[], bool]
    watch: Watch


@dataclass(frozen=True, slots=True)
class Watch:
    """Nothing changed as long as read(argument) is value."""

    read: Callable[[object], object]
    argument: object
    value: object


@dataclass(frozen=True, slots=True)
class Variable:
    """A place that holds a captured value: a name in a namespace, or a closure cell.

    is_read: the code uses the value itself; it is not just a module on the way to another.
    """

    path: str
    place: dict | CellType
    name: str
    value: object
    is_read: bool = True

    @property
    def is_namespace(self) -> bool:
        """It is a user's module that the code reads as a value: any attribute may be meant."""
        return (self.is_read and isinstance(self.value, ModuleType)
                and not is_stable(self.value.__name__))


class _Same:
    """Stands for an object, equal for the same object only."""

    __slots__ = ("_value",)

    def __init__(self, value: object):
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def capture(functions: tuple[FunctionType, ...]) -> Captures:
    """Everything that the functions read, and what the functions they call read, and so on.

    Errors: BlockTypeError for a captured value that cannot be a constant.
    """
    found: dict[tuple[int, str, bool], Variable] = {}
    readers: dict[str, FunctionType] = {}
    pending, seen = list(functions), set()
    while pending:
        function = pending.pop()
        if function in seen:
            continue
        seen.add(function)
        for variable in variables(function):
            found.setdefault((id(variable.place), variable.name, variable.is_read), variable)
            readers.setdefault(variable.path, function)
            inner = python_function(variable.value)
            if inner is not None and not is_stable(inner.__module__):
                pending.append(inner)
    ordered = sorted(found.values(), key=lambda variable: variable.path)
    values = tuple((variable.path, _frozen(variable, readers)) for variable in ordered)
    if any(isinstance(variable.value, _MUTABLE) or variable.is_namespace for variable in ordered):
        return Captures(values, _never, NEVER)
    is_current = _identity_check(ordered)
    return Captures(values, is_current, _watch(ordered, is_current))


def python_function(value: object) -> FunctionType | None:
    """The Python function that a function or a @bn.jit kernel is made of; else None."""
    if isinstance(value, FunctionType):
        return value
    inner = getattr(value, "py_func", None)
    return inner if isinstance(inner, FunctionType) else None


def variables(function: FunctionType) -> Iterator[Variable]:
    """The variables outside that a function's own code reads, and the modules they are in."""
    module = function.__module__
    for path in _global_paths(written_code(function)):
        yield from _resolve(module, function.__globals__, path)
    qualified = f"{module}.{function.__qualname__}"
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        value = _cell_contents(cell)
        if value is not _MISSING:
            yield Variable(f"{qualified}.{name}", cell, name, value)


def _resolve(prefix: str, namespace: dict, path: tuple[str, ...]) -> Iterator[Variable]:
    """The variable at the end of a path, and the modules on the way to it."""
    for number, name in enumerate(path, 1):
        value = namespace.get(name, _MISSING)
        if value is _MISSING:
            return  # a builtin, or a mistake that typing reports
        prefix = f"{prefix}.{name}"
        yield Variable(prefix, namespace, name, value, number == len(path))
        if not isinstance(value, ModuleType) or is_stable(value.__name__):
            return
        namespace = vars(value)


@functools.lru_cache(maxsize=None)
def _global_paths(code: CodeType) -> tuple[tuple[str, ...], ...]:
    """Paths of names, as ("config", "BLOCK"), that code reads from its globals."""
    paths: dict[tuple[str, ...], None] = {}
    current: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if current and instruction.opname in _ATTRIBUTE_INSTRUCTIONS:
            current = (*current, instruction.argval)
            continue
        if current:
            paths[current] = None
        reads = instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        current = (instruction.argval,) if reads else ()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            paths.update(dict.fromkeys(_global_paths(constant)))
    return tuple(paths)


def _frozen(variable: Variable, readers: Mapping[str, FunctionType]) -> Hashable:
    """readers: the function that reads a variable, by path."""
    try:
        return _key(variable)
    except BlockError as error:
        raise error.at(reading_place(readers[variable.path], variable.name)) from None


def _key(variable: Variable) -> Hashable:
    value = variable.value
    if variable.is_namespace:
        return value, tuple((name, _Same(item)) for name, item in sorted(vars(value).items()))
    if isinstance(value, ModuleType) or python_function(value) is not None:
        return value
    if isinstance(value, (list, set, dict, bytearray)):
        return type(value), repr(value)
    return freeze(value, variable.path)


def _identity_check(variables: list[Variable]) -> Callable[[], bool]:
    """A function that compares every variable with what it was, as fast as Python can."""
    scope: dict[str, object] = {"gone": (KeyError, ValueError)}  # from a namespace, from a cell
    tests = []
    for number, variable in enumerate(variables):
        scope[f"place{number}"], scope[f"value{number}"] = variable.place, variable.value
        now = (f"place{number}.cell_contents" if isinstance(variable.place, CellType)
               else f"place{number}[{variable.name!r}]")
        tests.append(f"{now} is value{number}")
    source = _IS_CURRENT.format(" and ".join(tests) or "True")
    exec(compile(source, f"{GENERATED}captures>", "exec"), scope)
    return scope["is_current"]


def _watch(variables: list[Variable], is_current: Callable[[], bool]) -> Watch:
    """How a launcher sees a change: in most kernels of one global, which is the language."""
    if len(variables) == 1:
        (variable,) = variables
        if type(variable.place) is dict and variable.value is not None:
            return Watch(variable.place.get, variable.name, variable.value)
    return Watch(lambda _: is_current(), None, True)


def _never() -> bool:
    return False


NEVER = Watch(lambda _: False, None, True)


def is_stable(module: str | None) -> bool:
    """Whether nobody changes the attributes of a module while a program runs."""
    return (module or "").partition(".")[0] in _STABLE


def _cell_contents(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return _MISSING

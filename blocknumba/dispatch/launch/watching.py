"""A generated function that compares everything a kernel has read with its present value.

It is generated for one list of reads: `BLOCK is v0 and settings is v1 and v1.size is v2 and ...`.
Its globals are those of the user's module, so that reading one costs what it costs there, and a
builtin that a global comes to hide is seen.  Functions of several modules are a chain.
"""

from __future__ import annotations

import abc
import builtins
import functools
import keyword
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType

import numpy as np

from blocknumba.dispatch.launch.specialize import freeze
from blocknumba.tracebacks import GENERATED

GLOBAL, CELL, ATTRIBUTE, ITEM = "global", "cell", "attribute", "item"
COMPUTED = "computed"  # an attribute that is another object each time
NAMES = "names"  # of all attributes in an object's dict
REGISTRATIONS = "registrations"  # of classes with abstract ones, which isinstance asks for

_SOURCE = """\
def is_current({parameters}):
    try:
        return {tests}
    except {gone}:
        return False
"""


class _Missing:
    """Value of a variable or attribute that does not exist."""

    def __repr__(self) -> str:
        return "missing"


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Read:
    """A variable or attribute that a kernel reads, and its value then.

    path: its name for messages, as the user writes it where possible.
    holder: the dict of globals, cell, object, dict or members of a class that it is read of.
    value: MISSING where there is none.
    """

    path: str
    kind: str
    holder: object
    name: str
    value: object


def now(kind: str, holder: object, name: str) -> object:
    """The present value; MISSING where reading it is an error."""
    try:
        if kind == GLOBAL:
            return holder[name] if name in holder else getattr(builtins, name)
        if kind == CELL:
            return holder.cell_contents
        if kind == ITEM:
            return holder[name]
        if kind == REGISTRATIONS:
            return abc.get_cache_token()
        return tuple(vars(holder)) if kind == NAMES else getattr(holder, name)
    except Exception:  # a user's property may raise anything
        return MISSING


def watch(reads: Sequence[Read]) -> Callable[[], bool]:
    """A function that returns whether all values are unchanged."""
    modules: dict[int, list[Read]] = {}
    for found in reads:  # those of no module come with the first, behind what they are read of
        if found.kind == GLOBAL:
            modules.setdefault(id(found.holder), []).append(found)
    others = [found for found in reads if found.kind != GLOBAL]
    first, *rest = modules.values() or [[]]
    following = None
    for globals_ in reversed(rest):
        following = _generated(globals_, (), following)
    return _generated(first, others, following)


def _generated(globals_: Sequence[Read], others: Sequence[Read],
               following: Callable[[], bool] | None) -> Callable[[], bool]:
    """globals_: of one module.  following: what to ask besides, before the others."""
    stem = _unused_stem([found.name for found in globals_])
    scope = {f"{stem}{name}": value for name, value in _HELPERS.items()}
    tests = [_test(found, number, stem, scope) for number, found in enumerate(globals_)]
    if following is not None:
        scope[f"{stem}following"] = following
        tests.append(f"{stem}following()")
    tests += [_test(found, number, stem, scope) for number, found in
              enumerate(others, len(globals_))]
    text = " and ".join(tests) or "True"
    used = {name: value for name, value in scope.items() if name in text or name.endswith("gone")}
    source = _SOURCE.format(parameters=", ".join(used), tests=text, gone=f"{stem}gone")
    namespace = globals_[0].holder if globals_ else {}
    return FunctionType(_compiled(source), namespace, "is_current", tuple(used.values()))


@functools.lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    """The code of the function; it is the same again where only values differ."""
    made: dict[str, FunctionType] = {}
    exec(compile(source, f"{GENERATED}captures>", "exec"), made)
    return made["is_current"].__code__


def _test(found: Read, number: int, stem: str, scope: dict[str, object]) -> str:
    """Source text of a test whether one value is unchanged."""
    holder, value = f"{stem}holder{number}_", f"{stem}value{number}_"
    scope[holder], scope[value] = found.holder, found.value
    name, missing = found.name, f"{stem}missing"
    if found.value is MISSING:
        if found.kind in (ITEM, GLOBAL):
            return f"{name!r} not in {holder}"
        if found.kind == ATTRIBUTE:
            return f"{stem}getattr({holder}, {name!r}, {missing}) is {missing}"
        return f"{stem}now({found.kind!r}, {holder}, {name!r}) is {missing}"
    if found.kind == GLOBAL:
        return f"{name} is {value}"
    if found.kind == CELL:
        return f"{holder}.cell_contents is {value}"
    if found.kind == ITEM:
        return f"{holder}[{name!r}] is {value}"
    if found.kind == REGISTRATIONS:
        return f"{stem}token() == {value}"
    if found.kind == NAMES:
        return f"{stem}tuple({stem}vars({holder})) == {value}"
    is_name = name.isidentifier() and not keyword.iskeyword(name)
    now = f"{holder}.{name}" if is_name else f"{stem}getattr({holder}, {name!r})"
    return f"{stem}same({now}, {value})" if found.kind == COMPUTED else f"{now} is {value}"


def _same(one: object, other: object) -> bool:
    """Whether a kernel cannot tell two values apart that were computed."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) is MethodType:
        return one.__func__ is other.__func__ and one.__self__ is other.__self__
    if type(one) is tuple:
        return len(one) == len(other) and all(map(_same, one, other))
    return is_plain(one) and freeze(one, "") == freeze(other, "")


def is_plain(value: object) -> bool:
    """Whether a value is all that its type and its content say."""
    return type(value) in _PLAIN or isinstance(value, (np.generic, np.dtype))


_PLAIN = frozenset((bool, int, float, complex, str, bytes, range, type(None), type(...)))
_HELPERS = {"missing": MISSING, "now": now, "getattr": getattr, "vars": vars, "tuple": tuple,
          "same": _same, "gone": Exception, "token": abc.get_cache_token}


def _unused_stem(names: Sequence[str]) -> str:
    """A prefix that no name begins with."""
    stem = "_"
    while any(name.startswith(stem) for name in names):
        stem += "_"
    return stem

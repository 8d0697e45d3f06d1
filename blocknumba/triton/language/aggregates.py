"""Aggregates: classes whose values kernels make, pass on and ask by name and by method."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from types import SimpleNamespace

from blocknumba.errors import BlockTypeError, require
from blocknumba.typing.function import python_function
from blocknumba.typing.records import METHOD_NAMES
from blocknumba.typing.static_values import unwrapped

_PASSED_BY_TRITON = ("_semantic", "_builder", "_generator")  # which mean nothing here


def aggregate(cls: type) -> type:
    """Make a class of values with fields, its annotations, that kernels have.

    Without an __init__ a call gives the fields, in order or by name.  An __init__ runs in Python,
    at compile time, and sets them: it passes values on, and computes with constants.
    Methods are functions of jit, and of constexpr_function.  Values never change.
    Errors: BlockTypeError for what is no class with fields.

    Example:
    >>> @triton.aggregate
    ... class Line:
    ...     slope: tl.tensor
    ...     start: tl.constexpr
    ...
    ...     @triton.jit
    ...     def at(self, x):
    ...         return self.slope * x + self.start
    >>> @triton.jit
    ... def draw(slope, out, BLOCK: tl.constexpr):
    ...     i = tl.arange(0, BLOCK)
    ...     tl.store(out + i, Line(tl.load(slope), 1).at(i))
    >>> out = np.zeros(4)
    >>> _ = draw[(1,)](np.array([0.5]), out, BLOCK=4)
    >>> out
    array([1. , 1.5, 2. , 2.5])
    """
    require(isinstance(cls, type), "aggregate: given {!r}, accepted a class", cls)
    names = [name for base in reversed(cls.__mro__) for name in inspect.get_annotations(base)]
    require(names, "aggregate: given {!r}, accepted a class with annotated fields", cls,
            hint="annotate them: x: tl.tensor")
    fields = namedtuple(cls.__name__, dict.fromkeys(names))
    members = {name: member for base in reversed(cls.__mro__[:-1])
               for name, member in vars(base).items()
               if name not in names and not name.startswith("__")}
    METHOD_NAMES.update(name for name, member in members.items()
                        if python_function(member) is not None)
    initialize = cls.__init__ if cls.__init__ is not object.__init__ else None
    return type(cls.__name__, (fields,), {
        **members, "__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__, "made_by": None if initialize is None else staticmethod(
            _maker(cls, initialize, names))})


def _maker(cls: type, initialize: object, names: list[str]) -> Callable[..., dict[str, object]]:
    """The function of a call's arguments that gives the fields by name."""
    function = python_function(initialize)
    ignored = {name: None for name in _PASSED_BY_TRITON
               if name in inspect.signature(function).parameters}

    def made(*arguments: object, **keywords: object) -> dict[str, object]:
        fields = SimpleNamespace()
        function(fields, *arguments, **keywords, **ignored)
        missing = [name for name in names if not hasattr(fields, name)]
        if missing:
            raise BlockTypeError(f"{cls.__name__}: its __init__ sets no {missing[0]}, accepted one "
                                 "that sets all fields")
        return {name: unwrapped(getattr(fields, name)) for name in names}
    return made

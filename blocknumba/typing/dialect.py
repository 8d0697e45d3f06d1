"""Dialects: what Python's operators, methods and builtin functions mean in a function.

A function is of the dialect of its decorator, one without a decorator of its caller's.  Typing
asks the dialect of the statement that it evaluates; ops and everything below have one meaning.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType

from blocknumba.errors import BlockError
from blocknumba.tile_ir.ir.types import DType, PointerType
from blocknumba.typing.numba_ir.written import as_written

NUMPY_NAME, TRITON_NAME = "numpy", "triton"


@dataclass(frozen=True)
class Dialect:
    """A dialect, as a table of what typing asks.

    binary: (context, name of an op of the table, x, y) -> x op y.   unary: with one operand.
    truth: (context, x, what) -> a scalar bool, of a condition.
    settled: (context, value) -> the value of an expression as a variable holds it; None where
        it is the value itself.
    pointer_dtype: dtype of elements -> the attribute `dtype` of a pointer to them, or an array.
    named_dtype: number -> the dtype of a variable that is assigned the number; None where it
        stays a number without a dtype.
    constants: attributes of numbers and tuples that are known at compile time -> value to it.
    methods, builtins: of tiles by name, and of Python by function: what is looked up first.
    written: function -> the same with the code that is translated.
    intrinsics: names that this code reads besides those of the user -> their values.
    reword: an error of a rule that dialects share -> the same in the words of this one.
    """

    name: str
    binary: Callable
    unary: Callable
    truth: Callable
    pointer_dtype: Callable[[DType], DType | PointerType]
    settled: Callable | None = None
    named_dtype: Callable | None = None
    constants: Mapping[str, Callable] = field(default_factory=dict)
    methods: Mapping[str, object] = field(default_factory=dict)
    builtins: Mapping[object, object] = field(default_factory=dict)
    written: Callable[[FunctionType], FunctionType] = as_written
    intrinsics: Mapping[str, object] = field(default_factory=dict)
    reword: Callable[[BlockError], None] = lambda error: None

    def __repr__(self) -> str:
        return f"<dialect {self.name}>"


# name -> the module that has the dialect as DIALECT, imported when it is asked for
_MODULES = {NUMPY_NAME: "blocknumba.typing.numpy_dialect",
            TRITON_NAME: "blocknumba.typing.triton.dialect"}


def dialect(name: str) -> Dialect:
    """The dialect of a name."""
    return importlib.import_module(_MODULES[name]).DIALECT


def declared_dialect(callee: object) -> str | None:
    """The name of the dialect that a callable is written in; None for its caller's.

    Functions of this package are in NumPy's unless they say otherwise.
    """
    name = getattr(callee, "__dialect__", None)
    if isinstance(name, str):
        return name
    module = getattr(callee, "__module__", None) or ""
    return NUMPY_NAME if module.partition(".")[0] == "blocknumba" else None

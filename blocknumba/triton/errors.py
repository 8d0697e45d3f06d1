"""Triton's exceptions, and errors of ours that are caught under their names too.

A launch raises one object for both: our message, line, carets and hint, and a class that code
written for Triton catches.

    compiling a kernel raises       is also Triton's
    ResourceError                   OutOfResources
    BlockAssertionError             CompileTimeAssertionFailure
    UnsupportedError                UnsupportedLanguageConstruct
    a refusal of ptxas or libNVVM   PTXASError
    any other of ours               CompilationError
"""

from __future__ import annotations

import functools
import linecache
from types import SimpleNamespace

from blocknumba.errors import (
    UNKNOWN, BlockAssertionError, BlockError, ResourceError, UnsupportedError,
)
from blocknumba.nvvm_lower.toolchain import ToolchainError


class TritonError(Exception):
    """Base of what Triton raises.

    Example:
    >>> issubclass(triton.OutOfResources, triton.TritonError)
    True
    """


class OutOfResources(TritonError):
    """A kernel that asks for more of something than the device has.

    required, limit: of it, in its unit; None where they are not known.  name: of the resource.

    Example:
    >>> print(triton.OutOfResources(300000, 232448, "shared memory"))
    out of resource: shared memory, required 300000, limit 232448
    """

    def __init__(self, required: int | None, limit: int | None, name: str):
        super().__init__(required, limit, name)
        self.required, self.limit, self.name = required, limit, name

    def __str__(self) -> str:
        return f"out of resource: {self.name}, required {self.required}, limit {self.limit}"


class _Told(TritonError):
    """An error that is a message."""

    def __init__(self, error_message: str | None = None):
        super().__init__(error_message)
        self.error_message = error_message

    def __str__(self) -> str:
        return self.error_message or ""


class PTXASError(_Told):
    """Code that NVIDIA's tools refuse."""


class AutotunerError(_Told):
    """A tuner that has no configuration to try."""


class InterpreterError(_Told):
    """A kernel that failed while it was interpreted.

    Example:
    >>> issubclass(triton.InterpreterError, triton.TritonError)
    True
    """


class CompilationError(TritonError):
    """A kernel that cannot be compiled.

    src: the source of its function.  node: something with lineno and col_offset, counted as in
    src, or None.  error_message: the reason.

    Example:
    >>> @triton.jit
    ... def odd(x):
    ...     tl.store(x + tl.arange(0, 3), 1.0)
    >>> try:
    ...     _ = odd[(1,)](np.zeros(4, np.float32))
    ... except triton.CompilationError as error:
    ...     print("power of two" in str(error))
    True
    """

    def __init__(self, src: str | None, node: object, error_message: str | None = None):
        super().__init__(src, node, error_message)
        self.src, self.node, self.error_message = src, node, error_message

    def __str__(self) -> str:
        line = getattr(self.node, "lineno", None)
        where = f"at {line}:{self.node.col_offset}:\n" if line is not None else ""
        return f"{where}{self.error_message or ''}"


class CompileTimeAssertionFailure(CompilationError):
    """A static_assert that does not hold."""


class UnsupportedLanguageConstruct(CompilationError):
    """Python that has no meaning in a kernel."""


_OF_COMPILATIONS = ((ResourceError, OutOfResources),
                    (BlockAssertionError, CompileTimeAssertionFailure),
                    (UnsupportedError, UnsupportedLanguageConstruct))


def of_compilation(error: BlockError) -> BlockError:
    """An error of a compilation, to be caught under Triton's name too; itself if it can be."""
    if isinstance(error, TritonError):
        return error
    if isinstance(error, ToolchainError) and error.source:
        return _both(error, PTXASError)
    return _both(error, next((theirs for ours, theirs in _OF_COMPILATIONS
                              if isinstance(error, ours)), CompilationError))


def of_interpretation(error: BlockError) -> BlockError:
    """An error of a kernel that runs in the interpreter, to be caught under Triton's name too."""
    return error if isinstance(error, TritonError) else _both(error, InterpreterError)


def _both(error: BlockError, theirs: type[TritonError]) -> BlockError:
    made = _made(type(error), theirs, error.args, vars(error))
    made.__cause__, made.__suppress_context__ = error.__cause__, error.__suppress_context__
    return made.with_traceback(error.__traceback__)


def _made(ours: type[BlockError], theirs: type[TritonError], arguments: tuple,
          attributes: dict[str, object]) -> BlockError:
    cls = _class_of_both(ours, theirs)
    error = cls.__new__(cls, *arguments)
    error.args = arguments
    vars(error).update(attributes)
    return error


@functools.cache
def _class_of_both(ours: type[BlockError], theirs: type[TritonError]) -> type[BlockError]:
    """A class of both kinds, which has the name and the text of ours."""
    def reduced(error: BlockError) -> tuple:
        return _made, (ours, theirs, error.args, vars(error))

    members = {"__module__": ours.__module__, "__doc__": ours.__doc__, "__str__": ours.__str__,
               "__reduce__": reduced}
    if issubclass(theirs, CompilationError):
        members |= {"src": property(_source), "node": property(_node)}
    if issubclass(theirs, OutOfResources):
        members["name"] = property(lambda self: self.resource)
    else:
        members["error_message"] = property(BlockError.__str__)
    return type(ours.__name__, (ours, theirs), members)


def _source(error: BlockError) -> str | None:
    """The lines of the file up to the one that an error is at; None if they cannot be read."""
    lines = linecache.getlines(error.loc.file)[:error.loc.line] if error.loc is not UNKNOWN else []
    return "".join(lines) or None


def _node(error: BlockError) -> SimpleNamespace | None:
    """The place of an error in its file, as a node of a syntax tree says it."""
    if error.loc is UNKNOWN:
        return None
    return SimpleNamespace(lineno=error.loc.line, col_offset=max(error.loc.column, 0))

"""Functions that take their source along to other processes: Triton's dialect and errors read it.

cloudpickle writes the code of a function, but not the lines that it is from.  The process that
reads it finds them in the cache of lines, under a name of their own: a file of the author's name
may be another one there.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import os
import tokenize
from dataclasses import dataclass
from types import CodeType, FunctionType


@dataclass(frozen=True, slots=True)
class WithSource:
    """A function that takes its lines along when it is pickled."""

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

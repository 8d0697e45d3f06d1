"""The code of functions as their author wrote them, where an import hook has changed it.

pytest rewrites `assert`, and tools that check types at run time add calls.  What they add has no
meaning in a kernel, so the code is compiled again from the source.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType


def written_code(function: FunctionType) -> CodeType:
    """The code of a function without what an import hook added to it.

    It has the same free variables.  The code as it is, where nothing was added or the source is
    not to be had.
    """
    code = function.__code__
    return _written(code, code.co_filename)


def as_written(function: FunctionType) -> FunctionType:
    """The function with its written code; itself where that is the code it has."""
    code = written_code(function)
    if code is function.__code__:
        return function
    written = FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                           function.__closure__)
    written.__kwdefaults__, written.__module__ = function.__kwdefaults__, function.__module__
    written.__qualname__ = function.__qualname__
    return written


@functools.lru_cache(maxsize=4096)
def _written(code: CodeType, file: str) -> CodeType:
    """file: of the code; equal code of two files is equal."""
    if not _has_unwritten_names(code):
        return code
    try:
        source = "".join(linecache.getlines(file))
        module = compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):  # of a notebook, with commands that are not Python
        return code
    found = [each for each in all_codes(module) if _is_basis(each, code)]
    return found[0] if len(found) == 1 else code


def _has_unwritten_names(code: CodeType) -> bool:
    """Whether the code uses a name that the lines of its source do not have."""
    codes = list(all_codes(code))
    last = max((line for each in codes for *_, line in each.co_lines() if line), default=0)
    text = "".join(linecache.getlines(code.co_filename)[code.co_firstlineno - 1:last])
    names = {name for each in codes for name in (*each.co_names, *each.co_varnames)}
    # the names of comprehensions' arguments begin with a dot
    return bool(text) and any(name not in text and name[0] != "." for name in names)


def _is_basis(written: CodeType, code: CodeType) -> bool:
    """Whether code is what written became: the same function, with names and lines added."""
    return (written.co_qualname == code.co_qualname
            and written.co_firstlineno == code.co_firstlineno
            and written.co_freevars == code.co_freevars
            and set(written.co_names) <= set(code.co_names)
            and set(written.co_varnames) <= set(code.co_varnames))


def all_codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of all functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from all_codes(constant)

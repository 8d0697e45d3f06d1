"""The errors a user can cause, each with the source it points at.

Example:
>>> issubclass(bn.errors.BlockTypeError, TypeError)
True
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import FunctionType

from blocknumba.wording import did_you_mean, file_name, formatted


@dataclass(frozen=True, slots=True)
class Loc:
    """A location in the user's source.

    file, line: as in a traceback, lines from 1.
    column, end_column: half-open range of UTF-8 bytes in the line, from 0; -1 when unknown.
    function: name of the function the line is in.
    caller: where that function was called from, when it was inlined into another.
    """

    file: str = ""
    line: int = 0
    column: int = -1
    end_column: int = -1
    function: str = ""
    caller: Loc | None = None

    @staticmethod
    def of(function: FunctionType) -> Loc:
        """The line where a function begins."""
        code = function.__code__
        return Loc(code.co_filename, code.co_firstlineno, function=function.__name__)

    def __reduce__(self) -> str | tuple:
        """UNKNOWN stays the one that it is, in another process too."""
        if self == UNKNOWN:
            return "UNKNOWN"
        return Loc, (self.file, self.line, self.column, self.end_column, self.function, self.caller)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "unknown"


UNKNOWN = Loc()


class BlockError(Exception):
    """A mistake in a kernel or in how it is called.

    message: op, what was given, what is accepted, on one line.
    loc: where the mistake is; UNKNOWN until somebody who knows it calls `at`.
    hint: the fix, when it is known.

    Example:
    >>> try:
    ...     bn.evaluate(lambda x: bn.sum(x, axis=1), [1, 2])
    ... except bn.errors.BlockError as error:
    ...     print(error.message)
    sum: axis 1 is out of range for rank 1, accepted -1 to 0
    """

    def __init__(self, message: str, *, loc: Loc = UNKNOWN, hint: str = ""):
        super().__init__(message)
        self.message, self.loc, self.hint = message, loc, hint

    def at(self, loc: Loc) -> BlockError:
        """This error, with loc as its location unless it has one."""
        if self.loc is UNKNOWN:
            self.loc = loc
        return self

    def called_from(self, loc: Loc) -> BlockError:
        """This error, which is in a function that was called from loc; at loc if that is all."""
        if self.loc is UNKNOWN:
            self.loc = loc
        elif loc is not UNKNOWN and self.loc.caller is None:
            self.loc = replace(self.loc, caller=loc)
        return self

    def __str__(self) -> str:
        lines = [self.message]
        loc: Loc | None = self.loc
        while loc is not None and loc is not UNKNOWN:
            lines += _excerpt(loc, "called from " if loc is not self.loc else "")
            loc = loc.caller
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class BlockTypeError(BlockError, TypeError):
    """A dtype, a shape or a kind of value that an op does not accept."""


class BlockValueError(BlockError, ValueError):
    """A value out of the range that an op accepts."""


class BlockOverflowError(BlockValueError, OverflowError):
    """An int that fits in no dtype."""


class PaddingError(BlockValueError):
    """A reduction that elements change which no load has read, reported with debug=True."""


class BlockNameError(BlockError, NameError):
    """A name that is not defined where it is used."""


class BlockKeyError(BlockError, KeyError):
    """A name that a table does not have."""


class BlockIndexError(BlockError, IndexError):
    """An access outside an array, reported with debug=True."""


class BlockAssertionError(BlockError, AssertionError):
    """A static_assert, an assert or a device_assert that does not hold."""


class UnsupportedError(BlockError, NotImplementedError):
    """Python that has no meaning in a kernel."""


class ResourceError(BlockError, RuntimeError):
    """A kernel that asks for more than the device has.

    resource: of which.
    required, limit: how much, in its unit, None where that is not known.
    """

    def __init__(self, message: str, *, loc: Loc = UNKNOWN, hint: str = "",
                 resource: str = "registers", required: int | None = None,
                 limit: int | None = None):
        super().__init__(message, loc=loc, hint=hint)
        self.resource, self.required, self.limit = resource, required, limit


class AutotuneError(BlockError, RuntimeError):
    """A kernel none of whose configurations can be used."""


class LaunchError(BlockError, RuntimeError):
    """A launch that the driver refused, or a kernel that failed while it ran."""


class RaceError(BlockError, RuntimeError):
    """Two programs that write one element without atomics, reported with debug=True."""


class ParseError(BlockError, ValueError):
    """Text that is not tile IR."""


def require(condition: object, message: str, *given: object, hint: str = "",
            error: type[BlockError] = BlockTypeError) -> None:
    """Raise error unless condition holds; message is formatted with what was given, {!r} showing
    the short name of an object.
    """
    if not condition:
        raise error(formatted(message, given), hint=hint)


def require_known(what: str, given: Iterable[str], known: Sequence[str],
                  also: Iterable[str] = (), error: type[BlockError] = BlockTypeError) -> None:
    """Raise error unless all given names are known ones, with a hint at a name that looks alike.

    what: the words before the names in the message.  also: names that it does not list.
    """
    accepted = [*known, *also]
    unknown = sorted(set(map(str, given)) - set(accepted))
    if unknown:
        raise error(f"{what} {', '.join(unknown)}, accepted {', '.join(known) or 'none'}",
                    hint=did_you_mean(unknown[0], accepted))


def _excerpt(loc: Loc, prefix: str) -> list[str]:
    """The lines that show a location: file, line and function; the source; carets."""
    name = file_name(loc.file)
    where = f", in {loc.function}" if loc.function else ""
    lines = [f"  {prefix}{name}, line {loc.line}{where}"]
    source = linecache.getline(loc.file, loc.line).rstrip()
    if not source:
        return lines
    text = source.lstrip()
    indent = len(source) - len(text)
    lines.append(f"    {text}")
    start = max(_characters(source, loc.column), indent) if loc.column >= 0 else indent
    stop = _characters(source, loc.end_column)
    stop = stop if stop > start else len(source)
    return [*lines, "    " + " " * (start - indent) + "^" * max(1, stop - start)]


def _characters(source: str, size_bytes: int) -> int:
    """Number of characters in the first bytes of a line."""
    return len(source.encode()[:max(size_bytes, 0)].decode(errors="ignore"))

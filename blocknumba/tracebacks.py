"""Tracebacks that end where the user's code calls blocknumba: frames of ours are left out."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TypeVar

from blocknumba.errors import BlockError, BlockTypeError
from blocknumba.settings import SETTINGS

_Function = TypeVar("_Function", bound=Callable)

GENERATED = "<blocknumba: "  # how the file names of functions that we write begin
# what we call; a frame of these is the user's only if the user's code called it
_OUR_LIBRARIES = frozenset(("numba", "numpy", "llvmlite", "ml_dtypes", "cuda", "cupy", "torch"))


def without_our_frames(function: _Function) -> _Function:
    """Decorate a function that users call: its errors have no frames of ours in their traceback.

    BLOCKNUMBA_FULL_TRACEBACK=1 keeps them.  An error that is a bug of ours keeps them too.
    """
    @functools.wraps(function)
    def boundary(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except Exception as error:
            if error.__traceback__.tb_next is None:
                error.__traceback__ = None  # it does not take these arguments, as Python says
            leave_out_our_frames(error)
            raise  # without an expression: it adds no frame for this function
    return boundary


def called(what: str, function: Callable, *arguments: object, **keywords: object) -> object:
    """function(*arguments, **keywords), for a function of the user; what: it in a message.

    Errors: BlockTypeError when it does not take these arguments; whatever it raises itself.
    """
    try:
        return function(*arguments, **keywords)
    except TypeError as error:
        if error.__traceback__.tb_next is not None:
            raise
        raise BlockTypeError(f"{what}: {error}") from None


def leave_out_our_frames(error: Exception) -> None:
    """Shorten the traceback of an error that is about to leave blocknumba.

    The handler must raise the error again by a bare `raise`, which adds no frame to it.
    """
    if SETTINGS.full_traceback:
        return
    found = _users_frames(error)
    if not isinstance(error, BlockError) and found is None:
        return  # a bug of ours
    error.__traceback__ = found
    cause = error.__cause__
    if cause is not None:
        # without a cause the context is not shown either: it is what the cause was
        error.__cause__ = cause if _shorten(cause) else None
    while error.__context__ is not None and not _shorten(error.__context__):
        error.__context__ = error.__context__.__context__


def _shorten(earlier: BaseException) -> bool:
    """Leave frames of ours out of what an error came from; whether any frame is the user's."""
    found = _users_frames(earlier)
    if found is not None:
        earlier.__traceback__ = found
    return found is not None


def _users_frames(error: BaseException) -> TracebackType | None:
    """The traceback of an error without the frames of ours; None when there are no others."""
    frames = list(_frames(error.__traceback__))
    return _chained([frame for frame, is_kept in zip(frames, _users(frames)) if is_kept])


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _users(frames: list[TracebackType]) -> list[bool]:
    """Of each frame, outermost first, whether it is the user's: theirs, or called by theirs.

    Libraries that were called by our code are ours.
    """
    answers, ours = [], True
    for frame in frames:
        module = _top_module(frame)
        if module == "blocknumba" or frame.tb_frame.f_code.co_filename.startswith(GENERATED):
            ours = True
        elif module not in _OUR_LIBRARIES and module not in sys.stdlib_module_names:
            ours = False
        answers.append(not ours)
    return answers


def _top_module(frame: TracebackType) -> str:
    return str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0]


def _chained(frames: list[TracebackType]) -> TracebackType | None:
    following = None
    for frame in reversed(frames):
        frame.tb_next = following
        following = frame
    return following

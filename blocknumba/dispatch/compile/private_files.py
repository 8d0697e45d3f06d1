"""Files of the user alone: read if nobody else can have written them, and replaced whole."""

from __future__ import annotations

import contextlib
import os
import stat
import warnings
from functools import cache
from pathlib import Path

UNFINISHED = ".unfinished"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# A symbolic link may lead to anybody's file, and opening a named pipe would wait for its writer.
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def distrust(folder: Path) -> str:
    """Why a folder is not to be used: somebody else may write to it.  Empty when all is well.

    A folder that is not there, or that is none, is well: one that is made is its owner's alone.
    """
    try:
        found = folder.stat()
    except OSError:
        return ""
    if not stat.S_ISDIR(found.st_mode):
        return ""
    if _is_foreign(found):
        return "it belongs to another user"
    if _others_write(found):
        return "other users can write to it"
    return ""


def is_trusted(folder: Path) -> bool:
    """Whether files of a folder may be used; the first time that they may not, a warning says it.
    """
    reason = distrust(folder)
    if reason:
        _warn(folder, reason)
    return not reason


def remedy(folder: Path) -> str:
    """Hint on how to fix a folder that is not trusted."""
    chosen = "set BLOCKNUMBA_CACHE_DIR to a folder of your own"
    with contextlib.suppress(OSError):
        found = folder.stat()
        is_for_all = found.st_mode & stat.S_ISVTX  # as /tmp, which must stay so
        if not is_for_all and not _is_foreign(found):
            return f"{chosen}, or run chmod go-w {folder}"
    return chosen


def read_file(path: Path) -> bytes | None:
    """The content of a file that its owner alone can write; None for anything else.

    Links, pipes, folders, files of other users and files that cannot be read count as missing.
    """
    try:
        with open(path, "rb", opener=_open_safely) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or _is_foreign(found) or _others_write(found):
                return None
            return file.read()
    except (OSError, MemoryError):
        return None


def replace_file(path: Path, content: bytes) -> bool:
    """Write a file so that no reader ever sees half of it; whether that worked.

    Its folder is made when it is not there.
    """
    unfinished = path.with_suffix(f".{os.urandom(8).hex()}{UNFINISHED}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(unfinished, "xb", opener=_create_privately) as file:
            file.write(content)
        os.replace(unfinished, path)  # readers see the old file or the new one
    except OSError:
        remove_file(unfinished)
        return False
    return True


def remove_file(path: Path) -> bool:
    """Whether there was a file to remove and it could be removed."""
    with contextlib.suppress(OSError):
        path.unlink()
        return True
    return False


def _is_foreign(found: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and found.st_uid != os.geteuid()


def _others_write(found: os.stat_result) -> bool:
    """Windows has other means to say so, and a user's folders there are private."""
    return os.name == "posix" and bool(found.st_mode & _OTHERS_WRITE)


def _open_safely(path: str, flags: int) -> int:
    return os.open(path, flags | _SAFELY)


def _create_privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@cache
def _warn(folder: Path, reason: str) -> None:
    warnings.warn(f"blocknumba does not use the cache {folder}: {reason}; {remedy(folder)}",
                  RuntimeWarning, stacklevel=3)

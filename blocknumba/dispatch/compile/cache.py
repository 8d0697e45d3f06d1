"""The cache on disk, and the private files that it is made of."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from blocknumba.settings import SETTINGS


UNFINISHED = ".unfinished"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# A symbolic link may lead to anybody's file, and opening a named pipe would wait for its writer.
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def distrust(folder: Path) -> str:
    """Reason not to use a folder: somebody else may write to it.  Empty when all is well.

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


FORMAT = b"blocknumba cache, format 1\n"
_SUFFIX = ".kernel"
_DIGEST_BYTES = 32
_STALE_SECONDS = 3600  # an unfinished file this old is of a process that died
_KEPT = 0.9  # of the limit, after removing: not every save should have to remove


@dataclass(frozen=True, slots=True)
class File:
    """One entry as the folder shows it.

    used: when it was last read or written, in seconds since the epoch.
    """

    path: Path
    size_bytes: int
    used: float


@dataclass(frozen=True, slots=True)
class Cache:
    """Entries by key, in one folder that many processes share.

    An entry's file is its format, a checksum, its key and its content.  Files that are cut off,
    damaged, of another format or of another key count as missing.  Nothing here raises for a
    folder that cannot be read or written, or that others can write to: then there is no cache.
    limit_bytes: maximum size of all entries together.
    """

    folder: Path
    limit_bytes: int

    def load(self, key: str) -> bytes | None:
        """The content of an entry; None when there is none that is whole."""
        path = self._path(key)
        whole = read_file(path) if is_trusted(self.folder) else None
        if whole is None:
            return None
        start = len(FORMAT) + _DIGEST_BYTES
        checksum, body = whole[len(FORMAT):start], whole[start:]
        head = key.encode() + b"\n"
        if not (whole.startswith(FORMAT) and checksum == _checksum(body)
                and body.startswith(head)):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the time of use, for removing the others first
        return body[len(head):]

    def save(self, key: str, content: bytes) -> bool:
        """Write an entry, in place of one of the same key; whether that worked."""
        body = key.encode() + b"\n" + content
        path = self._path(key)
        whole = FORMAT + _checksum(body) + body
        if not (is_trusted(self.folder) and replace_file(path, whole)):
            return False
        self._make_room(path)
        return True

    def files(self) -> list[File]:
        """All entries, the least recently used first."""
        return sorted(self._files(_SUFFIX), key=lambda file: file.used)

    def remove(self, key: str) -> bool:
        """Remove an entry; whether there was one."""
        return remove_file(self._path(key))

    def clear(self) -> int:
        """Remove all entries; how many there were."""
        return sum(remove_file(file.path) for ending in (_SUFFIX, UNFINISHED)
                   for file in self._files(ending))

    def _make_room(self, newest: Path) -> None:
        """Remove old entries when all together are too large, but never the newest."""
        files = self.files()
        total = sum(file.size_bytes for file in files)
        if total <= self.limit_bytes:
            return
        for file in files:
            if total <= self.limit_bytes * _KEPT:
                break
            if file.path != newest:
                remove_file(file.path)
                total -= file.size_bytes
        for file in self._files(UNFINISHED):
            if time.time() - file.used > _STALE_SECONDS:
                remove_file(file.path)

    def _files(self, ending: str) -> Iterator[File]:
        try:
            names = [name for name in os.listdir(self.folder) if name.endswith(ending)]
        except OSError:
            return
        for name in names:
            path = self.folder / name
            with contextlib.suppress(OSError):  # another process removed it
                status = path.stat()
                yield File(path, status.st_size, status.st_mtime)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"


@cache
def user_cache() -> Cache | None:
    """The cache that the settings ask for; None when it is off or has no folder."""
    if not SETTINGS.cache or SETTINGS.cache_folder is None:
        return None
    return Cache(SETTINGS.cache_folder, SETTINGS.cache_bytes)


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()

"""The cache on disk: files that are whole or not there, the least recently used removed first."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from blocknumba.dispatch.compile.private_files import (
    UNFINISHED, is_trusted, read_file, remove_file, replace_file,
)
from blocknumba.settings import SETTINGS

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

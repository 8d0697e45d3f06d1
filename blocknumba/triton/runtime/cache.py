"""`triton.runtime.cache`: files of tools and tuners, in the folder of blocknumba's own cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import blocknumba
from blocknumba.settings import SETTINGS

_FOLDER = "triton"


class CacheManager:
    """Files that belong to one key; what subclasses define."""

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        self.key = key

    def get_file(self, filename: str) -> str | None:
        """The path of a file; None if there is none."""
        raise NotImplementedError("get_file: of a CacheManager, which a subclass defines")

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """Write a file; its path."""
        raise NotImplementedError("put: of a CacheManager, which a subclass defines")


class FileCacheManager(CacheManager):
    """Files that belong to one key, in a folder of its name; none where nothing is cached.

    cache_dir: the folder; empty where there is none.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        super().__init__(key, override, dump)
        folder = default_cache_dir()
        self.cache_dir = str(Path(folder, key)) if folder else ""

    def has_file(self, filename: str) -> bool:
        """Whether there is a file."""
        return bool(self.cache_dir) and Path(self.cache_dir, filename).is_file()

    def get_file(self, filename: str) -> str | None:
        """See CacheManager.get_file."""
        return str(Path(self.cache_dir, filename)) if self.has_file(filename) else None

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """See CacheManager.put; the file is there at once or not at all.

        Returns "" where nothing is cached, also because the folder cannot be written.
        """
        content = data if isinstance(data, bytes) else str(data).encode()
        if not self.cache_dir:
            return ""
        path, written = Path(self.cache_dir, filename), None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                written = file.name
                file.write(content)
            os.replace(written, path)
        except OSError:
            if written is not None:
                with contextlib.suppress(OSError):
                    os.unlink(written)
            return ""
        return str(path)


def default_cache_dir() -> str:
    """The folder of all keys; empty where nothing is cached (BLOCKNUMBA_CACHE=0, no home)."""
    if not SETTINGS.cache or SETTINGS.cache_folder is None:
        return ""
    return str(SETTINGS.cache_folder / _FOLDER)


def get_cache_manager(key: str) -> FileCacheManager:
    """The files of a key."""
    return FileCacheManager(key)


def triton_key() -> str:
    """A text that is another for every version of the compiler."""
    return f"blocknumba {blocknumba.__version__}"


def digest(*texts: str) -> str:
    """A key made of texts."""
    return hashlib.sha256("\0".join((triton_key(), *texts)).encode()).hexdigest()

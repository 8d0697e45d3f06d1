"""Tuning results on disk: one JSON file per kernel, an entry per device, key and configuration."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType

from blocknumba.dispatch.autotune_timings import Timing

FOLDER = "autotune"  # in the cache's
_SUFFIX, _UNFINISHED = ".json", ".tmp"
_FORMAT = 1
_FIELDS = ("median_ms", "low_ms", "high_ms")


class Store:
    """The results of one kernel on disk.

    Entries hold the digest of the code that they measured, so that changed code is tuned again
    and new configurations leave the old ones' entries alone.  A folder that cannot be written and
    a file that cannot be read are as good as none; when two processes write at once the last one
    wins, and the other's entries are measured again some day.
    """

    def __init__(self, folder: Path, function: FunctionType):
        name = f"{function.__module__}.{function.__qualname__}:{function.__code__.co_filename}"
        digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        self.path = folder / FOLDER / f"{function.__name__}-{digest}{_SUFFIX}"

    def read(self, device: str, key: str, digests: Mapping[str, str]) -> dict[str, Timing]:
        """The timings of configurations.

        digests: configuration -> digest of its code; entries with another digest do not count.
        """
        entries = _entries(self._load(), device, key)
        found = {}
        for label, digest in digests.items():
            entry = entries.get(label)
            if isinstance(entry, dict) and entry.get("code") == digest:
                with contextlib.suppress(KeyError, TypeError, ValueError):  # by another's hand
                    found[label] = _timing(entry)
        return found

    def write(self, device: str, key: str, timings: Mapping[str, Timing],
              digests: Mapping[str, str]) -> None:
        """Add timings to what is there."""
        content = self._load()
        content.update(format=_FORMAT)
        entries = content
        for name in ("devices", device, key):
            if not isinstance(entries.get(name), dict):
                entries[name] = {}
            entries = entries[name]
        entries.update((label, _entry(timing, digests[label]))
                       for label, timing in timings.items() if label in digests)
        with contextlib.suppress(OSError):
            self._replace(json.dumps(content, indent=1))

    def _load(self) -> dict:
        try:
            content = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) and content.get("format") == _FORMAT else {}

    def _replace(self, text: str) -> None:
        """Write the file so that no reader ever sees half of it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.path.parent, suffix=_UNFINISHED)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, self.path)
        except BaseException:
            os.unlink(name)
            raise


def stored_files(folder: Path) -> list[Path]:
    """The files of tuned kernels in a cache's folder."""
    return sorted((folder / FOLDER).glob(f"*{_SUFFIX}"))


def clear(folder: Path) -> int:
    """Remove the results of all kernels from a cache's folder; of how many there were some."""
    removed = 0
    for path in (*stored_files(folder), *(folder / FOLDER).glob(f"*{_UNFINISHED}")):
        with contextlib.suppress(OSError):
            path.unlink()
            removed += path.suffix == _SUFFIX
    return removed


def _entries(content: object, *path: str) -> dict:
    for name in ("devices", *path):
        content = content.get(name) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}


def _timing(entry: Mapping[str, object]) -> Timing:
    if "failed" in entry:
        return Timing.failed(str(entry["failed"]))
    values = [float(entry[name]) for name in _FIELDS]
    if not all(map(math.isfinite, values)):
        raise ValueError(entry)
    return Timing(*values)


def _entry(timing: Timing, digest: str) -> dict[str, object]:
    if timing.reason:
        return {"code": digest, "failed": timing.reason}
    return {"code": digest} | {name: getattr(timing, name) for name in _FIELDS}

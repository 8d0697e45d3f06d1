"""Tuning results in memory and on disk, and measurements as tables."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import FunctionType

from blocknumba.dispatch.compile.cache import (
    UNFINISHED, is_trusted, read_file, remove_file, replace_file,
)
from blocknumba.tables import html_table, text_table, write_csv


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot: y at each x, and the band around it; values that are not finite are
    gaps.

    style: (colour, dash) of matplotlib, either of which may be None.
    """

    name: str
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    style: tuple[str | None, str | None] = (None, None)


def plot_lines(x: Sequence[object], lines: Sequence[Series], *, x_label: str = "",
               y_label: str = "", title: str = "", x_log: bool = False, y_log: bool = False,
               path: str | PathLike | None = None) -> object:
    """A matplotlib figure, saved to path when there is one."""
    # here and not above: only who plots needs matplotlib
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    positions = list(x) if all(isinstance(value, (int, float)) for value in x) else range(len(x))
    for line in lines:
        colour, dash = line.style
        drawn, = axes.plot(positions, _finite(line.y), label=line.name, color=colour,
                           linestyle=dash or "-", marker="." if len(x) < 2 else None)
        if line.low:
            axes.fill_between(positions, _finite(line.low), _finite(line.high), alpha=0.15,
                              color=drawn.get_color())
    if positions is not x and isinstance(positions, range):
        axes.set_xticks(positions, list(map(str, x)), rotation=90)
    axes.set(xlabel=x_label, ylabel=y_label, title=title, xscale="log" if x_log else "linear",
             yscale="log" if y_log else "linear")
    axes.legend(fontsize="small")
    if path is not None:
        figure.savefig(path)
    return figure


def show_figure(figure: object) -> None:
    """Show a figure in a notebook."""
    # here and not above: only notebooks have it
    from IPython.display import display

    display(figure)


def frame(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> object:
    """A table as a pandas DataFrame."""
    # here and not above: only who asks for a frame needs pandas
    from pandas import DataFrame

    return DataFrame(rows, columns=list(columns))


def _finite(values: Sequence[float]) -> list[float]:
    return [value if math.isfinite(value) else math.nan for value in values]


_COLUMNS = ("key", "configuration", "median_ms", "p20_ms", "p80_ms", "failed")


@dataclass(frozen=True, slots=True)
class Timing:
    """Timing of a kernel in one configuration.

    median_ms, low_ms, high_ms: quantiles 0.5, 0.2 and 0.8; infinite when it failed.
    reason: why it failed; empty when it did not.
    """

    median_ms: float
    low_ms: float
    high_ms: float
    reason: str = ""

    @staticmethod
    def failed(reason: str) -> Timing:
        """A configuration that cannot be used."""
        return Timing(math.inf, math.inf, math.inf, reason)


@dataclass(frozen=True, slots=True)
class Row:
    """A timing, and what it is of.

    key: what the kernel was tuned for.  configuration: as text.
    """

    key: str
    configuration: str
    timing: Timing


class Timings(Sequence[Row]):
    """All rows of a tuned kernel, fastest first within each key."""

    def __init__(self, rows: Sequence[Row]):
        self._rows = tuple(rows)

    def __getitem__(self, number: int | slice) -> Row | tuple[Row, ...]:
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def __str__(self) -> str:
        """One table for each key."""
        tables = []
        for key in dict.fromkeys(row.key for row in self._rows):
            rows = [(row.configuration, *_numbers(row.timing, "{:.4f}"), row.timing.reason)
                    for row in self._rows if row.key == key]
            tables.append(f"{key}\n{text_table(_COLUMNS[1:], rows)}")
        return "\n\n".join(tables)

    def _repr_html_(self) -> str:
        """The tables as notebooks show them."""
        return "".join(
            html_table(_COLUMNS[1:], [
                (row.configuration, *_numbers(row.timing, "{:.4f}"), row.timing.reason)
                for row in self._rows if row.key == key], key)
            for key in dict.fromkeys(row.key for row in self._rows))

    def to_csv(self, path: str | PathLike) -> None:
        """Write all rows, times in milliseconds."""
        write_csv(path, _COLUMNS, [(row.key, row.configuration, *_numbers(row.timing, "{}"),
                                    row.timing.reason) for row in self._rows])

    def plot(self, path: str | PathLike | None = None) -> object:
        """A matplotlib figure of the median of each configuration, one line per key.

        path: a file to save it to.
        """
        names = list(dict.fromkeys(row.configuration for row in self._rows))
        lines = []
        for key in dict.fromkeys(row.key for row in self._rows):
            times = {row.configuration: row.timing for row in self._rows if row.key == key}
            failed = Timing.failed("")
            lines.append(Series(key, *([getattr(times.get(name, failed), field) for name in names]
                                       for field in ("median_ms", "low_ms", "high_ms"))))
        return plot_lines(names, lines, x_label="configuration", y_label="ms", path=path)


def _numbers(timing: Timing, pattern: str) -> tuple[str, str, str]:
    values = timing.median_ms, timing.low_ms, timing.high_ms
    return tuple("" if math.isinf(value) else pattern.format(value) for value in values)


FOLDER = "autotune"  # in the cache's
_SUFFIX = ".json"
_FORMAT = 1
_FIELDS = ("median_ms", "low_ms", "high_ms")
_WRONG_TYPES = (KeyError, TypeError, ValueError, OverflowError)
_MAX_STEM = 60  # characters of a kernel's name in the name of its file


class Store:
    """The results of one kernel on disk.

    Entries hold the digest of the code that they measured, so that changed code is tuned again
    and new configurations leave the old ones' entries alone.  A folder that cannot be written and
    a file that cannot be read are as good as none; when two processes write at once the last one
    wins, and the other's entries are measured again some day.
    """

    def __init__(self, folder: Path, function: FunctionType):
        name = f"{function.__module__}.{function.__qualname__}:{function.__code__.co_filename}"
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        # the name of a function may be any text, also a path
        stem = re.sub(r"\W", "_", function.__name__, flags=re.ASCII)[:_MAX_STEM]
        self._folder = folder
        self.path = folder / FOLDER / f"{stem}-{digest}{_SUFFIX}"

    def read(self, device: str, key: str, digests: Mapping[str, str]) -> dict[str, Timing]:
        """The timings of configurations.

        digests: configuration -> digest of its code; entries with another digest do not count.
        """
        entries = _entries(self._load(), device, key)
        found = {}
        for label, digest in digests.items():
            entry = entries.get(label)
            if isinstance(entry, dict) and entry.get("code") == digest:
                with contextlib.suppress(*_WRONG_TYPES):  # by another's hand
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
        if self._is_trusted():
            replace_file(self.path, json.dumps(content, indent=1).encode())

    def _load(self) -> dict:
        text = read_file(self.path) if self._is_trusted() else None
        try:
            content = json.loads(text or b"")
        except (ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) and content.get("format") == _FORMAT else {}

    def _is_trusted(self) -> bool:
        return is_trusted(self._folder) and is_trusted(self.path.parent)


def stored_files(folder: Path) -> list[Path]:
    """The files of tuned kernels in a cache's folder."""
    return sorted((folder / FOLDER).glob(f"*{_SUFFIX}"))


def clear(folder: Path) -> int:
    """Remove the results of all kernels from a cache's folder; of how many there were some."""
    for path in (folder / FOLDER).glob(f"*{UNFINISHED}"):
        remove_file(path)
    return sum(map(remove_file, stored_files(folder)))


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

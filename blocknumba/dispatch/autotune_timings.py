"""What tuning measured: one row per key and configuration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

from blocknumba.dispatch.tables import Series, plot_lines, text_table, write_csv

_COLUMNS = ("key", "configuration", "median_ms", "p20_ms", "p80_ms", "failed")


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a kernel took in one configuration.

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
        parts = []
        for key in dict.fromkeys(row.key for row in self._rows):
            rows = [(row.configuration, *_numbers(row.timing, "{:.4f}"), row.timing.reason)
                    for row in self._rows if row.key == key]
            parts.append(f"{key}\n{text_table(_COLUMNS[1:], rows)}")
        return "\n\n".join(parts)

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


def _numbers(timing: Timing, form: str) -> tuple[str, str, str]:
    values = timing.median_ms, timing.low_ms, timing.high_ms
    return tuple("" if math.isinf(value) else form.format(value) for value in values)

"""Listings: the counters of a report beside each line of source, as profilers show them."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable

from blocknumba.emulator.counters import Count, Report

_COLUMNS: tuple[tuple[str, Callable[[Count], object]], ...] = (
    ("executed", lambda count: count.executed),
    ("requests", lambda count: count.requests),
    ("sectors", lambda count: count.sectors),
    ("ideal", lambda count: count.ideal_sectors),
    ("wavefronts", lambda count: count.wavefronts),
    ("conflicts", lambda count: count.bank_conflicts),
)
_CONTEXT = 2  # lines of source that are shown around the counted ones


def listing(report: Report, ptx: str = "") -> str:
    """The source lines of a report with their counters; the lines of PTX where there is no source.

    Source lines that nothing counts are shown near the others.
    """
    files: dict[str, dict[int, Count]] = {}
    for loc, count in report.by_line.items():
        if loc.file:
            files.setdefault(loc.file, {}).setdefault(loc.line, Count()).add(count)
    sections = [_file(name, linecache.getlines(name), counts) for name, counts in files.items()]
    if not files:
        sections = [_file("PTX", ptx.splitlines(), report.by_ptx_line)]
    return "\n\n".join([*sections, _classes(report), _total(report)])


def _file(name: str, lines: list[str], counts: dict[int, Count]) -> str:
    rows = [name, _row([title for title, _ in _COLUMNS], "")]
    previous = 0
    for number in _near(counts, len(lines)):
        if previous and number != previous + 1:
            rows.append("...")
        previous = number
        text = lines[number - 1].rstrip() if number <= len(lines) else ""
        rows.append(_row(_cells(counts.get(number)), f"{number:5} {text}"))
    return "\n".join(rows)


def _near(counts: Iterable[int], last: int) -> list[int]:
    """The numbers of the lines that are shown."""
    shown = {number + distance for number in counts for distance in range(-_CONTEXT, _CONTEXT + 1)}
    return sorted(set(counts) | {number for number in shown if 1 <= number <= last})


def _cells(count: Count | None) -> list[str]:
    values = [value(count) for _, value in _COLUMNS] if count else [0] * len(_COLUMNS)
    return [str(value) if value else "" for value in values]


def _row(cells: list[str], text: str) -> str:
    return (" ".join([f"{cell:>10}" for cell in cells]) + f" | {text}").rstrip()


def _classes(report: Report) -> str:
    total = sum(report.by_class.values())
    ordered = sorted(report.by_class.items(), key=lambda item: -item[1])
    return "\n".join(["instructions by class",
                      *[f"{count:>10} {100 * count / total:5.1f} %  {name}"
                        for name, count in ordered]])


def _total(report: Report) -> str:
    total = report.total
    return (f"{total.executed} instructions of warps, {total.requests} global requests of "
            f"{report.sectors_per_request:.2f} sectors, {report.bank_conflicts} bank conflicts")

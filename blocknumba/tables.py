"""Tables: as text, as HTML for notebooks and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from html import escape
from os import PathLike


class Html(str):
    """Text that is HTML already."""


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with aligned columns, without trailing blanks."""
    cells = [tuple(columns), *(tuple(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in cells)


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """A table for notebooks, without colours of its own.

    columns: () for a table without heads.  rows: cells are text, or Html, which stays as it is.
    """
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    heads = "".join(f"<th>{escape(name)}</th>" for name in columns)
    head = f"<thead><tr>{heads}</tr></thead>" if columns else ""
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>"
                   for row in rows)
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return value if isinstance(value, Html) else escape(str(value))


def write_csv(path: str | PathLike, columns: Sequence[str],
              rows: Sequence[Sequence[object]]) -> None:
    """Write a table with a line of names."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)

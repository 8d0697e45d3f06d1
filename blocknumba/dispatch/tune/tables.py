"""Measurements as text, as CSV and as plots."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike


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


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with aligned columns, without trailing blanks."""
    cells = [tuple(columns), *(tuple(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in cells)


def write_csv(path: str | PathLike, columns: Sequence[str],
              rows: Sequence[Sequence[object]]) -> None:
    """Write a table with a line of names."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


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

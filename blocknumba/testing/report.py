"""`perf_report`: a function measured over a range of sizes, as a table, a CSV file and a plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from blocknumba.dispatch.tune.store import Series, frame, plot_lines, show_figure
from blocknumba.errors import BlockValueError, require
from blocknumba.tables import html_table, text_table, write_csv


@dataclass(frozen=True)
class Benchmark:
    """Description of a benchmark and of its plot.

    x_names: arguments of the measured function that take the values in x_vals.
    x_vals: numbers, or tuples with one value for each of x_names.
    line_arg: argument that says which line a value belongs to; line_vals: its values.
    line_names: of the lines, in the order of line_vals.
    plot_name: title, and name of the files.
    args: arguments that never change.
    xlabel, ylabel: of the axes; xlabel is the first of x_names where it is empty.
    x_log, y_log: logarithmic axes.
    styles: (colour, dash) of each line, as matplotlib has them.

    Example:
    >>> sizes = bn.testing.Benchmark(["n"], [10, 100], "sorter", ["numpy"], ["NumPy"], "sorting")
    >>> sizes.x_arguments(10)
    {'n': 10}
    """

    x_names: Sequence[str]
    x_vals: Sequence[object]
    line_arg: str
    line_vals: Sequence[object]
    line_names: Sequence[str]
    plot_name: str
    args: Mapping[str, object] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str | None, str | None]] | None = None

    def __post_init__(self):
        require(len(self.line_names) == len(self.line_vals),
                "Benchmark: given {} line_names, accepted {}, one for each of line_vals",
                len(self.line_names), len(self.line_vals), error=BlockValueError)
        for value in self.x_vals:
            self.x_arguments(value)

    def x_arguments(self, value: object) -> dict[str, object]:
        """The arguments that one of x_vals stands for."""
        values = tuple(value) if isinstance(value, (tuple, list)) else (
            (value,) * len(self.x_names))
        require(len(values) == len(self.x_names),
                "Benchmark: given {} in x_vals, accepted one value for each of {}", value,
                ", ".join(self.x_names), error=BlockValueError)
        return dict(zip(self.x_names, values))


@dataclass(frozen=True, slots=True)
class Point:
    """Measurement for one x and one line; low and high are y if there is no band."""

    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Results:
    """Results of a benchmark: for each of x_vals a point per line."""

    benchmark: Benchmark
    points: tuple[tuple[Point, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of rows."""
        return (*self.benchmark.x_names, *self.benchmark.line_names)

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """The values of x, then y of each line."""
        return [(*self.benchmark.x_arguments(x).values(), *(point.y for point in points))
                for x, points in zip(self.benchmark.x_vals, self.points)]

    def __str__(self) -> str:
        return f"{self._title}:\n{text_table(self.columns, self._shown)}"

    def _repr_html_(self) -> str:
        """The table as notebooks show it."""
        return html_table(self.columns, self._shown, self._title)

    @property
    def _title(self) -> str:
        unit = f" ({self.benchmark.ylabel})" if self.benchmark.ylabel else ""
        return f"{self.benchmark.plot_name}{unit}"

    @property
    def _shown(self) -> list[list[object]]:
        return [[f"{value:.6g}" if isinstance(value, float) else value for value in row]
                for row in self.rows]

    def to_csv(self, path: str | PathLike) -> None:
        """Write the table; lines with a band get a column for each end of it."""
        bands = [any(points[line].low != points[line].high for points in self.points)
                 for line in range(len(self.benchmark.line_names))]
        names = list(self.benchmark.x_names)
        for name, has_band in zip(self.benchmark.line_names, bands):
            names += [name, f"{name}-min", f"{name}-max"] if has_band else [name]
        rows = []
        for x, points in zip(self.benchmark.x_vals, self.points):
            row = list(self.benchmark.x_arguments(x).values())
            for point, has_band in zip(points, bands):
                row += [point.y, point.low, point.high] if has_band else [point.y]
            rows.append(row)
        write_csv(path, names, rows)

    def plot(self, path: str | PathLike | None = None) -> object:
        """A matplotlib figure.  path: a file to save it to."""
        benchmark = self.benchmark
        styles = benchmark.styles or ((None, None),) * len(benchmark.line_names)
        lines = [Series(name, *([getattr(points[line], end) for points in self.points]
                                for end in ("y", "low", "high")), style)
                 for line, (name, style) in enumerate(zip(benchmark.line_names, styles))]
        x = [value[0] if isinstance(value, (tuple, list)) else value
             for value in benchmark.x_vals]
        return plot_lines(x, lines, x_label=benchmark.xlabel or benchmark.x_names[0],
                          y_label=benchmark.ylabel, title=benchmark.plot_name,
                          x_log=benchmark.x_log, y_log=benchmark.y_log, path=path)


class Report:
    """A function with the benchmarks to measure it by.

    function: returns y, or (y, low, high), for the arguments that a Benchmark names.
    benchmarks: to measure it by.

    Example:
    >>> sizes = bn.testing.Benchmark(["n"], [1, 2], "power", [1, 2], ["n", "n * n"], "powers")
    >>> report = bn.testing.Report(lambda n, power: n**power, [sizes])
    >>> report.run().rows
    [(1, 1.0, 1.0), (2, 2.0, 4.0)]
    """

    def __init__(self, function: Callable[..., object], benchmarks: Sequence[Benchmark]):
        self.function, self.benchmarks = function, tuple(benchmarks)

    def run(self, show_plots: bool = False, print_data: bool = False,
            save_path: str | PathLike = "", return_df: bool = False,
            **arguments: object) -> object:
        """Measure.

        show_plots: in a notebook, show figures.  print_data: print tables.
        save_path: a folder for a CSV file and a plot of each benchmark.
        return_df: return pandas frames.
        arguments: passed on to the function.
        Returns Results, or a frame; a list of them when perf_report was given a list of
        benchmarks with more than one.
        """
        results = [self._measure(benchmark, arguments) for benchmark in self.benchmarks]
        for result in results:
            if print_data:
                print(result, end="\n\n")
            if save_path:
                folder = Path(save_path)
                folder.mkdir(parents=True, exist_ok=True)
                result.to_csv(folder / f"{result.benchmark.plot_name}.csv")
                result.plot(folder / f"{result.benchmark.plot_name}.png")
            if show_plots:
                show_figure(result.plot())
        if return_df:
            results = [frame(result.columns, result.rows) for result in results]
        return results if len(results) != 1 else results[0]

    def _measure(self, benchmark: Benchmark, arguments: Mapping[str, object]) -> Results:
        points = []
        for x in benchmark.x_vals:
            fixed = {**benchmark.x_arguments(x), **benchmark.args, **arguments}
            points.append(tuple(_point(self.function(**{benchmark.line_arg: value}, **fixed))
                                for value in benchmark.line_vals))
        return Results(benchmark, tuple(points))


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable], Report]:
    """Measure a function: `@perf_report(Benchmark(...))`, then `function.run(print_data=True)`.

    Example:
    >>> @bn.testing.perf_report(bn.testing.Benchmark(
    ...     ["n"], [1, 2], "power", [1, 2], ["n", "n * n"], "powers"))
    ... def powers(n, power):
    ...     return n**power  # a time, or a rate
    >>> print(powers.run())
    powers:
    n  n  n * n
    1  1  1
    2  2  4
    """
    listed = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)
    return lambda function: Report(function, listed)


def _point(measured: object) -> Point:
    """Errors: BlockValueError for anything but y, or y with the ends of its band."""
    values = tuple(measured) if isinstance(measured, (tuple, list)) else (measured,) * 3
    require(len(values) == 3, "perf_report: given {} values, accepted y, or y, low and high",
            len(values), error=BlockValueError)
    return Point(*(math.nan if value is None else float(value) for value in values))

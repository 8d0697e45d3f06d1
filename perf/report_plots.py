"""Pictures of perf/results by matplotlib: bars of rates, bars of ratios, a roofline, a summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator
from report_results import (
    BEST, OURS, Measured, auto_cases, cpu_cases, kind_cases, mean, memory_cases, product_cases,
)

# of the same order in every picture; distinct for the colour-blind (Okabe and Ito, 2008)
COLOURS = {OURS: "#0072b2", "Triton": "#e69f00", "Torch": "#d55e00", "CuPy": "#009e73",
           "numba-cuda": "#cc79a7", "cuBLAS": "#56b4e9", "cuDNN": "#000000", "NumPy": "#009e73",
           "Numba": "#e69f00", BEST: "#e69f00"}
FASTER, SLOWER = COLOURS[OURS], "#d55e00"
# NVIDIA H200 SXM, data sheet, without sparsity; bytes and operations a second
BANDWIDTH = 4.8e12
PEAKS = {"fp8, int8": 1979e12, "f16, bf16": 989e12, "tf32": 494e12, "f32": 67e12}
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "blocknumba", "font.size": 8,
         "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True}


def rate_bars(cases: list[Measured], who: tuple[str, ...], unit: str, divisor: float,
              roof: float | None = None) -> Figure:
    """Groups of bars, one for each case: work in a second by each side."""
    figure, axes = _axes(9, 3.4)
    width = 0.84 / len(who)
    for number, name in enumerate(who):
        places = [i + (number - (len(who) - 1) / 2) * width for i in range(len(cases))]
        axes.bar(places, [case.rate(name, divisor) or 0 for case in cases], width,
                 color=COLOURS[name], label=name)
    if roof is not None:
        axes.axhline(roof / divisor, color="grey", linewidth=0.8, linestyle="--",
                     label="the card's bandwidth")
    axes.set_xticks(range(len(cases)), [case.name for case in cases], rotation=35, ha="right")
    axes.set_ylabel(unit)
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    figure.legend(loc="outside upper center", ncols=len(who) + 1, frameon=False)
    return figure


def ratio_bars(cases: list[Measured], peers: tuple[str, ...], label: str) -> Figure:
    """Bars from 1 on a logarithmic axis, one for each case and peer: the peer's time by ours."""
    figure, axes = _axes(7, 0.6 + 0.135 * len(cases) * len(peers))
    height = 0.8 / len(peers)
    for number, peer in enumerate(peers):
        ratios = [case.ratio(peer) or math.nan for case in cases]
        places = [i + (number - (len(peers) - 1) / 2) * height for i in range(len(cases))]
        colours = COLOURS[peer] if len(peers) > 1 else [
            FASTER if r >= 1 else SLOWER for r in ratios]
        axes.barh(places, [r - 1 for r in ratios], height, left=1, color=colours, label=peer)
        for place, r in zip(places, ratios):
            if math.isfinite(r):
                axes.text(max(r, 1), place, f" {r:.3g}", va="center", fontsize=6)
    axes.set_yticks(range(len(cases)), [case.name for case in cases])
    axes.set_ylim(len(cases) - 0.4, -0.6)
    _logarithmic(axes, label)
    if len(peers) > 1:
        figure.legend(loc="outside upper center", ncols=len(peers), frameon=False)
    return figure


def roofline() -> Figure:
    """Operations a second by operations a byte, below the card's bandwidth and arithmetic."""
    figure, axes = _axes(7, 4.4)
    for name, peak in PEAKS.items():
        ridge = peak / BANDWIDTH
        axes.plot([ridge, 1e4], [peak / 1e12] * 2, color="grey", linewidth=0.8)
        axes.text(1e4, peak / 1e12, f" {name}", va="center", fontsize=7)
    steepest = max(PEAKS.values())
    axes.plot([0.05, steepest / BANDWIDTH], [0.05 * BANDWIDTH / 1e12, steepest / 1e12],
              color="grey", linewidth=0.8)
    axes.text(0.1, 0.75, "4.8 TB/s", fontsize=7, rotation=34)
    groups = {"add, softmax, layernorm": ("o", memory_cases()),
              "products": ("s", [c for c in product_cases() if "attention" not in c.name]),
              "attention": ("^", [c for c in product_cases() if "attention" in c.name])}
    for colour, (name, (marker, cases)) in zip(("#009e73", FASTER, "#d55e00"), groups.items()):
        axes.scatter([case.operations / case.traffic for case in cases],
                     [case.operations / case.seconds[OURS] / 1e12 for case in cases], 18, colour,
                     marker, label=name, zorder=3, edgecolors="white", linewidths=0.4)
    axes.set(xscale="log", yscale="log", xlim=(0.05, 1e4), ylim=(0.2, 3000),
             xlabel="operations a byte", ylabel="TFLOP/s")
    axes.legend(loc="lower right", frameon=False)
    return figure


def summary() -> Figure:
    """For each group of kernels a dot a kernel, and the mean: the peer's time by ours."""
    kinds, products = kind_cases(), product_cases()
    groups = {"memory-bound kernels / Triton": (kinds["memory-bound"], "Triton"),
              "kernels with products / Triton": (kinds["with dots"], "Triton"),
              "products of matrices / cuBLAS": (products, "cuBLAS"),
              "attention / cuDNN": (products, "cuDNN"),
              "tiles by bn.auto / the best of a list": (auto_cases(), BEST),
              "on two CPU cores / Numba": (cpu_cases(), "Numba"),
              "on two CPU cores / NumPy": (cpu_cases(), "NumPy")}
    figure, axes = _axes(7, 2.7)
    for row, (cases, peer) in enumerate(groups.values()):
        ratios = [r for case in cases if (r := case.ratio(peer)) is not None]
        axes.scatter(ratios, [row] * len(ratios), 14, alpha=0.45, edgecolors="none",
                     color=[FASTER if r >= 1 else SLOWER for r in ratios])
        axes.plot([mean(ratios)] * 2, [row - 0.3, row + 0.3], color="black", linewidth=1.6)
        axes.text(1.01, row, f"{mean(ratios):.3g}", va="center", fontsize=7,
                  transform=axes.get_yaxis_transform())
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlim(0.5, 1000)
    _logarithmic(axes, "peer's time / ours: right of 1 we are faster (a dot a kernel, a line their "
                       "geometric mean)")
    return figure


def draw(folder: Path, formats: Iterable[str], names: Iterable[str] = ()) -> None:
    """Write pictures, all unless there are names, to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        for name in names or FIGURES:
            figure = FIGURES[name]()
            for kind in formats:  # without the date, so that equal pictures are equal files
                figure.savefig(folder / f"{name}.{kind}", dpi=160,
                               metadata={"Date": None} if kind == "svg" else {})


FIGURES: dict[str, Callable[[], Figure]] = {
    "summary": summary,
    "memory": lambda: rate_bars(memory_cases(), (OURS, "Triton", "Torch", "CuPy", "numba-cuda"),
                                "GB/s", 1e9, BANDWIDTH),
    "products": lambda: rate_bars(product_cases(), (OURS, "cuBLAS", "Triton", "cuDNN"),
                                  "TFLOP/s", 1e12),
    "roofline": roofline,
    "kinds": lambda: ratio_bars([case for cases in kind_cases().values() for case in cases],
                                ("Triton",), "Triton's time / ours"),
    "auto": lambda: ratio_bars(auto_cases(), (BEST,), "time of the best / of bn.auto's choice"),
    "cpu": lambda: ratio_bars(cpu_cases(), ("NumPy", "Numba"), "peer's time / ours"),
}


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure((width, height), layout="constrained")
    return figure, figure.subplots()


def _logarithmic(axes: Axes, label: str) -> None:
    """A logarithmic axis of ratios, with a line at 1."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    fine = (0.8, 0.9, 1.1, 1.25, 1.5) if high < 5 * low else ()
    axes.set_xticks([t for t in (0.5, 1, 2, 5, 10, 100, 1000, *fine) if low <= t <= high])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(1, color="black", linewidth=0.8)
    axes.grid(axis="x", color="#dddddd", linewidth=0.5)
    axes.set_xlabel(label)

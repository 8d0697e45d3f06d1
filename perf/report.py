"""Measured performance as a page and pictures, made of perf/results; nothing is measured here.

    python perf/report.py                    docs/performance.md and its pictures; extra `plot`
    python perf/report.py --text             the page alone
    python perf/report.py --pictures FOLDER  all pictures as SVG and PNG, and no page
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from report_results import (
    BEST, OURS, OWN_WARPS, Measured, about, auto_cases, cpu_cases, kind_cases, launch_times, mean,
    memory_cases, product_cases, scan_cases,
)

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, PICTURES = DOCS / "performance.md", DOCS / "performance"
KINDS_CAP, CPU_CAP = 1.2, 8  # of a ratio in a mean, so that no single kernel makes it

HEAD = """# Performance, measured

`python perf/report.py` makes this page and its pictures from the files of `perf/results`, each of
which a program of `perf/` wrote ([how](../perf/NOTES.md)). A ratio is the peer's time by ours:
above 1 we are faster; ratios under 1 are bold. Means are geometric. What tiles and options do to
the speed of your own kernels is on [another page](performance_guide.md).

![Ratios of peers' times to ours](performance/summary.svg)

"""
MEMORY = """## Row kernels and addition on a GPU

{about}
Our kernels are those of `examples/` as they are; Triton's are the fastest of a few
configurations.

![Bandwidth of memory-bound kernels](performance/memory.svg)

"""
PRODUCTS = """## Products and attention on a GPU

{about}
cuBLAS and cuDNN by way of Torch; `examples/matmul.py` and `examples/attention.py` on our side.
"Pointers": the same product in Triton's spelling.

![Speed of products and of attention](performance/products.svg)

"""
ROOFLINE = """## Roofline

How close these come to what the card can do: the bandwidth of its memory to the left, its
arithmetic to the right. Bytes are those that must be moved at least, each operand once and each
result once.

![Roofline of the GPU with the kernels above](performance/roofline.svg)

"""
KINDS = """## Kernels of many kinds, the same text as Triton's

{about}
Kernels as libraries write and launch them, one text under Triton and under `blocknumba.triton`,
interleaved: with Triton's warps and stages, and with our own choice ("own warps"). Ratios are
capped at {cap} in the means. A dash: a side is less exact than was allowed.

![Triton's time by ours, of every kernel](performance/kinds.svg)

"""
CHOICES = """## Tiles that `bn.auto` chooses

{about}
The model's choice, made without measuring, next to the best of a list of configurations, all
measured.

![The best configuration's time by that of bn.auto](performance/auto.svg)

"""
SCANS = """## Cumulative sums, random numbers, gathers

{about}
Rows of a matrix next to Triton; sums of whole arrays next to CuPy, to CUB alone, and to a copy of
the array.

"""
LAUNCHES = """## What a launch costs the host

{about} Microseconds of one launch, back to back.

"""
CPU = """## The CPU device

Two cores of an Intel Xeon with AVX-512, next to NumPy and to Numba's `njit(parallel=True)`, the
better of plain and fastmath; medians of interleaved rounds. Ratios are capped at {cap} in the
means.

![NumPy's and Numba's times by ours on the CPU](performance/cpu.svg)

"""


def markdown_table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of Markdown, with an empty line after it."""
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|",
             *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n\n"


def number(value: float | None, digits: int = 4) -> str:
    """So many significant digits, without an exponent; a dash for what was not measured."""
    if value is None or not math.isfinite(value):
        return "-"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{decimals}f}"


def ratio(value: float | None) -> str:
    """Two digits after the point; ratios under one are bold."""
    if value is None:
        return "-"
    text = f"{value:.2f}"
    return f"**{text}**" if float(text) < 1 else text


def means(cases: list[Measured], peers: tuple[str, ...], ours: str = OURS,
          cap: float = math.inf) -> str:
    """One sentence: the mean next to each peer, the least, and of how many."""
    parts = []
    for peer in peers:
        found = [r for case in cases if (r := case.ratio(peer, ours)) is not None]
        parts.append(f"{mean(found, cap):.2f} of {peer} ({len(found)} cases, least "
                     f"{min(found):.2f})")
    return f"Mean{'' if ours == OURS else f', {ours}'}: {', '.join(parts)}.\n\n"


def rates(cases: list[Measured], unit: str, divisor: float) -> str:
    """A table of what each side does in a second, and the ratios."""
    peers = list(dict.fromkeys(who for case in cases for who in case.seconds if who != OURS))
    return markdown_table(
        (unit, OURS, *peers, *(f"/ {peer}" for peer in peers)),
        [(case.name, *(number(case.rate(who, divisor)) for who in (OURS, *peers)),
          *(ratio(case.ratio(peer)) for peer in peers)) for case in cases])


def memory_section() -> str:
    cases = memory_cases()
    return (MEMORY.format(about=about("nvidia-h200.json", "memory"))
            + means(cases, ("Triton", "Torch", "CuPy", "numba-cuda")) + rates(cases, "GB/s", 1e9))


def products_section() -> str:
    cases = product_cases()
    return (PRODUCTS.format(about=about("nvidia-h200.json", "matmul"))
            + means(cases, ("cuBLAS", "Triton", "cuDNN")) + rates(cases, "TFLOP/s", 1e12)
            + ROOFLINE)


def kinds_section() -> str:
    text = KINDS.format(about=about("nvidia-h200-kinds.json"), cap=KINDS_CAP)
    for bound, cases in kind_cases().items():
        text += f"### {bound.capitalize()}\n\n"
        text += "".join(means(cases, ("Triton",), ours, KINDS_CAP) for ours in (OURS, OWN_WARPS))
        text += markdown_table(
            ("us", "Triton", OURS, "/ Triton", OWN_WARPS, "/ Triton"),
            [(case.name, number(case.us("Triton")), number(case.us(OURS)),
              ratio(case.ratio("Triton")), number(case.us(OWN_WARPS)),
              ratio(case.ratio("Triton", OWN_WARPS))) for case in cases])
    return text


def choices_section() -> str:
    cases = auto_cases()
    return (CHOICES.format(about=about("nvidia-h200-auto.json")) + means(cases, (BEST,))
            + markdown_table(
                ("us", "bn.auto", BEST, f"/ {BEST}", "chosen"),
                [(case.name, number(case.us(OURS)), number(case.us(BEST)),
                  ratio(case.ratio(BEST)), case.note) for case in cases]))


def scans_section() -> str:
    tables = [markdown_table(
        ("us", OURS, *(f"/ {peer}" for peer in peers)),
        [(case.name, number(case.us(OURS)), *(ratio(case.ratio(peer)) for peer in peers))
         for case in cases]) for peers, cases in scan_cases()]
    return SCANS.format(about=about("nvidia-h200-scans.json")) + "".join(tables)


def launches_section() -> str:
    names, rows = launch_times()
    return (LAUNCHES.format(about=about("nvidia-h200.json", "launch, us"))
            + markdown_table(("us", *names), [(title, *(number(us, 3) for us in times))
                                              for title, times in rows]))


def cpu_section() -> str:
    cases = cpu_cases()
    return (CPU.format(cap=CPU_CAP) + means(cases, ("NumPy", "Numba"), cap=CPU_CAP)
            + markdown_table(("ms", OURS, "/ NumPy", "/ Numba"), [
                (case.name, number(1e3 * case.seconds[OURS], 3), ratio(case.ratio("NumPy")),
                 ratio(case.ratio("Numba"))) for case in cases]))


def page() -> str:
    """The text of docs/performance.md."""
    sections = (memory_section, products_section, kinds_section, choices_section, scans_section,
                launches_section, cpu_section)
    return HEAD + "".join(section() for section in sections).rstrip() + "\n"


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text", action="store_true", help="the page alone")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER",
                        help="all pictures as SVG and PNG, and no page")
    given = parser.parse_args()
    if not given.pictures:
        PAGE.write_text(page())
    if not given.text:
        import report_plots  # not above: matplotlib is an extra

        if given.pictures:
            report_plots.draw(given.pictures, ("svg", "png"))
        else:  # package indices show no SVG of a README
            report_plots.draw(PICTURES, ("svg",))
            report_plots.draw(PICTURES, ("png",), ("summary",))


if __name__ == "__main__":
    main()

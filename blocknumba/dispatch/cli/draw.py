"""`python -m blocknumba draw`: a kernel at every stage of its compilation, as one SVG picture.

    +-----------+----------+------------+-------------+--------+-------------+
    | 1 Python  | 2 tile   | 3 tile IR, | 4 GPU-layout| shared | 5 PTX, SASS |
    |   passes  |   IR     |  optimised |   IR        | memory |   layouts   |
    |   remarks |          |            |             |        |   pipeline  |
    +-----------+----------+------------+-------------+--------+-------------+
"""

from __future__ import annotations

import argparse
import re
import string
import sys
from collections.abc import Iterable
from pathlib import Path

from blocknumba.dispatch.cli.command_line import kernel_of, values_by_name
from blocknumba.dispatch.cli.compile_command import add_kernel_arguments
from blocknumba.dispatch.cli.panels import (
    Hues, layouts_panel, lines_panel, listing_panel, memory_panel, passes_panel, ptx_panel,
    ring_panel, sass_panel, source_panel,
)
from blocknumba.dispatch.cli.stages import Stages, layouts_of
from blocknumba.dispatch.compile.ahead import specialized
from blocknumba.drawing import FAINT, PAPER, RULE, Drawing
from blocknumba.text_files import write_text

_EPILOG = """\
example:
  python -m blocknumba draw softmax.py:softmax --target sm_90a --constant BLOCK=1024 \\
      --signature "f32[:,::1]:16, f32[:,::1]:16" -o softmax.svg
"""
MARGIN, GAP = 20.0, 24.0  # pixels
TITLE = 42.0  # pixels above a panel
MEMORY_WIDTH = 230.0  # pixels
# Characters of a row.
SOURCE_COLUMNS, IR_COLUMNS, LAID_OUT_COLUMNS, MACHINE_COLUMNS = 76, 72, 68, 62


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of run."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    add_kernel_arguments(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="KERNEL.svg by default")


def run(arguments: argparse.Namespace) -> int:
    """Compile a kernel and draw it; the exit status.

    Errors: BlockError for a kernel that is not there or does not compile.
    """
    kernel = kernel_of(arguments.kernel, "draw")
    # lines, unless an option says no: PTX is drawn beside them
    options = {"lineinfo": True} | values_by_name(arguments.option, "draw")
    constants = values_by_name(arguments.constant, "draw")
    stages = Stages.of(kernel, *specialized(kernel, arguments.signature, constants,
                                            arguments.target, options))
    output = arguments.output or f"{stages.compiled.name}.svg"
    write_text(output, picture(stages), "draw")
    sys.stdout.write(f"{Path(output)}\n")
    return 0


def picture(stages: Stages) -> str:
    """The drawing of a kernel, as SVG."""
    stats = str(stages.compiled.stats).splitlines()
    drawing = Drawing()
    drawing.text(MARGIN, MARGIN + 12, stats[0], size=16, bold=True)
    drawing.text(MARGIN, MARGIN + 30, "A line of Python and all that is made of it have one "
                 "colour. Letters name layouts: which thread, or which byte of shared memory, "
                 "holds which element.", fill=FAINT)
    x = MARGIN
    for name, column in _columns(stages, stats[1:]):
        drawing.place(column, x, MARGIN + 44, name)
        x += column.width + GAP
    drawing.text(MARGIN, drawing.height + 10, f"python -m blocknumba draw; {toolchain(stages)}",
                 fill=FAINT)
    framed = Drawing()
    framed.rectangle(0, 0, drawing.width + MARGIN, drawing.height + MARGIN, PAPER)
    framed.place(drawing, 0, 0)
    return framed.svg(stats[0])


def toolchain(stages: Stages) -> str:
    """The release of NVIDIA's compiler that made the PTX."""
    found = re.search(r"Cuda compilation tools, release .*", stages.compiled.ptx)
    return found[0] if found else "unknown compiler"


def _columns(stages: Stages, remarks: list[str]) -> Iterable[tuple[str, Drawing]]:
    """The columns, from Python to machine code, with their names."""
    rows = stages.rows(stages.laid_out)
    typed, optimised = stages.rows(stages.typed), stages.rows(stages.optimised)
    letters = dict(zip(layouts_of(rows), string.ascii_uppercase + string.ascii_lowercase))
    hues = Hues(sorted({row.line for row in (*typed, *rows) if row.line}))
    yield "source", _column(
        ("1  Python", "one program; the launch runs a grid of them",
         source_panel(stages, hues, SOURCE_COLUMNS)),
        ("Passes", "ops that each of them removed and added",
         passes_panel(stages.passes, SOURCE_COLUMNS)),
        ("Remarks", "what became of loads, stores and dots, and why (compiled.stats)",
         lines_panel(remarks, SOURCE_COLUMNS + 5)))
    yield "typed", _column(
        ("2  Tile IR", "from typing: values are tiles, arrays are views",
         listing_panel(typed, hues, IR_COLUMNS, {})))
    yield "optimised", _column(
        ("3  Tile IR, optimised", "views became addresses and masks; no hardware yet",
         listing_panel(optimised, hues, IR_COLUMNS, {})))
    yield "laid_out", _column(
        ("4  GPU-layout IR", "every tile has a layout; hardware is explicit",
         listing_panel(rows, hues, LAID_OUT_COLUMNS, letters)))
    if stages.laid_out.attrs.get("shared_bytes"):
        yield "memory", _column(
            ("Shared memory", "time down, bytes right; - - barrier",
             memory_panel(stages.laid_out, rows, MEMORY_WIDTH)))
    stats = stages.compiled.stats
    yield "machine", _column(
        ("5  PTX", "instructions that tell something, by line of Python",
         ptx_panel(stages, hues, MACHINE_COLUMNS)),
        ("Machine code", "SASS instructions by kind", sass_panel(stages, MACHINE_COLUMNS)),
        *([("Pipeline", "slots of shared memory that are filled ahead of their use",
            ring_panel(stats))] if stats.rings else []),
        ("Layouts", "who holds what", layouts_panel(letters, rows)))


def _column(*panels: tuple[str, str, Drawing]) -> Drawing:
    """Panels below each other, each with a title and a sentence."""
    drawing = Drawing()
    width = max(panel.width for _, _, panel in panels)
    y = 0.0
    for title, sentence, panel in panels:
        drawing.text(0, y + 14, title, size=14, bold=True)
        drawing.text(0, y + 29, sentence, fill=FAINT)
        drawing.line(0, y + 35, width, y + 35, RULE)
        drawing.place(panel, 0, y + TITLE)
        y += TITLE + panel.height + GAP
    return drawing

"""Panels of a drawing of a kernel: source, IR, passes, layouts, shared memory, machine code.

Every line of the source has a hue, and what was made of it has the same one at every stage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from blocknumba.dispatch.cli.stages import PassRun, Row, Stages
from blocknumba.dispatch.compile.stats import TMA, Stats
from blocknumba.drawing import (
    FAINT, INK, LINE, PAPER, RULE, SIZE, Drawing, colour, shortened, text_width,
)
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import shape_of
from blocknumba.gpu_layout.layouts.render import picture
from blocknumba.gpu_layout.memory.allocate_shared import Lifetime, lifetimes
from blocknumba.gpu_layout.ops import barrier
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.ir.opdef import attribute

ROW = SIZE * LINE  # pixels
GOLDEN_ANGLE = 137.508  # degrees; hues that follow each other by it stay far apart
INDENT = 2  # characters
MAX_LAYOUTS = 4  # that are drawn; the others have their letter and their text only


class Hues:
    """Colours of the lines of a source."""

    def __init__(self, lines: Iterable[int]):
        self._hues = {line: number * GOLDEN_ANGLE for number, line in enumerate(lines)}

    def __contains__(self, line: int) -> bool:
        return line in self._hues

    def light(self, line: int) -> str:
        """For what is written on it; that of paper where there is no such line."""
        return colour(self._hues[line], 0.7, 0.92) if line in self._hues else PAPER

    def strong(self, line: int) -> str:
        """For marks; grey where there is no such line."""
        return colour(self._hues[line], 0.6, 0.55) if line in self._hues else RULE


def source_panel(stages: Stages, hues: Hues, columns: int) -> Drawing:
    """The kernel as it is written, with line numbers.  columns: characters of a line at most."""
    drawing = Drawing()
    columns = min(columns, max(map(len, stages.source.values())))
    width = text_width("0" * (columns + 5))
    for index, (line, text) in enumerate(stages.source.items()):
        y = index * ROW
        if line in hues:
            drawing.rectangle(0, y, width, ROW, hues.light(line))
            drawing.rectangle(0, y, 4, ROW, hues.strong(line))
        base = y + ROW - 5
        drawing.text(text_width("0" * 4), base, str(line), fill=FAINT, anchor="end")
        drawing.text(text_width("0" * 5), base, shortened(text, columns))
    return drawing


def listing_panel(rows: Sequence[Row], hues: Hues, columns: int,
                  letters: Mapping[LinearLayout, str]) -> Drawing:
    """Rows of IR: text, type, and the letter of the layout.

    columns: characters of a row at most.
    """
    drawing = Drawing()
    columns = min(columns, max(map(_length, rows)))
    width = text_width("0" * columns)
    badge = ROW if letters else 0
    for index, row in enumerate(rows):
        y, base = index * ROW, (index + 1) * ROW - 5
        drawing.rectangle(0, y, width + badge, ROW, hues.light(row.line))
        drawing.rectangle(0, y, 4, ROW, hues.strong(row.line))
        kept = columns - _length(row) + len(row.text)
        drawing.text(text_width("0" * _indent(row)), base, shortened(row.text, kept),
                     fill=FAINT if row.text.startswith("…") else INK)
        drawing.text(width - 4, base, row.type, fill=FAINT, anchor="end")
        if row.layout in letters:
            badge_on(drawing, width, y, letters[row.layout])
    return drawing


def _indent(row: Row) -> int:
    return 1 + INDENT * row.depth


def _length(row: Row) -> int:
    """The characters that a row takes."""
    return _indent(row) + len(row.text) + (len(row.type) + 2 if row.type else 1)


def badge_on(drawing: Drawing, x: float, y: float, letter: str) -> None:
    """The letter of a layout."""
    drawing.rectangle(x + 2, y + 2, ROW - 4, ROW - 4, INK, radius=3)
    drawing.text(x + ROW / 2, y + ROW - 5, letter, fill=PAPER, bold=True, anchor="middle", size=10)


def memory_panel(fn: Function, rows: Sequence[Row], width: float) -> Drawing:
    """Shared memory beside the rows of a laid-out function.

    Downwards runs the program, to the right the bytes: a buffer lives from the first op that uses
    it to the last one.  Barriers are lines across.
    """
    drawing, scale = Drawing(), width / fn.attrs["shared_bytes"]
    row_of = {op: index for index, row in enumerate(rows) for op in row.ops}
    ops = list(walk(fn.body))
    # constants have no row; beyond the last op is the end of the program
    numbers = [row_of.get(op, 0) for op in ops] + [len(rows) - 1]
    alive = {lifetime: range(row_of[lifetime.op],
                             max(numbers[lifetime.first - 1:lifetime.last]) + 1)
             for lifetime in lifetimes(fn)}
    barriers = [row_of[op] for op in ops if op.opdef is barrier]
    drawing.rectangle(0, 0, width, len(rows) * ROW, "#f6f8fa", RULE)
    for lifetime, in_use in alive.items():
        _draw_buffer(drawing, lifetime, in_use, scale)
    for row in barriers:
        y = (row + 0.5) * ROW
        drawing.line(0, y, width, y, "#cf222e", width=1.5, dashes="5 3")
    for lifetime, in_use in alive.items():
        _label_buffer(drawing, lifetime, [row for row in in_use if row not in barriers], scale,
                      rows[in_use.start].text.partition(" ")[0])
    return drawing


def _draw_buffer(drawing: Drawing, lifetime: Lifetime, in_use: range, scale: float) -> None:
    """A buffer over the rows where it is in use, slot by slot.  scale: pixels of a byte."""
    copies, offset = attribute(lifetime.op, "copies"), attribute(lifetime.op, "offset")
    width, hue = max(lifetime.size_bytes * scale / copies, 1), offset * GOLDEN_ANGLE / 16
    for copy in range(copies):
        drawing.rectangle(offset * scale + copy * width, in_use.start * ROW, width,
                          len(in_use) * ROW, colour(hue, 0.45, 0.86), colour(hue, 0.45, 0.74))


def _label_buffer(drawing: Drawing, lifetime: Lifetime, rows: Sequence[int], scale: float,
                  name: str) -> None:
    """Name, slots, size and type of a buffer, as far as there is room.  rows: free for its text."""
    op, width = lifetime.op, lifetime.size_bytes * scale
    copies = attribute(op, "copies")
    slots = [f"{copies} slots"] if copies > 1 else []
    for row, line in zip(rows, [name, *slots, f"{lifetime.size_bytes} B", op.result.type.spelling]):
        if text_width(line) < width - 4:
            drawing.text(attribute(op, "offset") * scale + 4, (row + 1) * ROW - 5, line, size=10)


def passes_panel(passes: Sequence[PassRun], columns: int) -> Drawing:
    """Each pass and what it changed; those that did nothing are faint."""
    drawing = Drawing()
    names = max(len(run.name) for run in passes)
    for index, run in enumerate(passes):
        base = (index + 1) * ROW - 5
        drawing.text(0, base, run.name, fill=INK if run.changed else FAINT, bold=run.changed)
        changes = [f"-{count} {name}" for name, count in run.gone]
        changes += [f"+{count} {name}" for name, count in run.made]
        told = ", ".join(changes) or ("moves or rewrites ops" if run.changed else "nothing to do")
        drawing.text(text_width("0" * (names + 2)), base, shortened(told, columns - names - 2),
                     fill=INK if run.changed else FAINT)
    return drawing


def layouts_panel(letters: Mapping[LinearLayout, str], rows: Sequence[Row]) -> Drawing:
    """The layouts of the largest tiles: which warp, or which 16 bytes, holds which element."""
    drawing = Drawing()
    of: dict[LinearLayout, Row] = {}
    for row in rows:
        of.setdefault(row.layout, row)
    elements = {layout: math.prod(shape_of(layout)) for layout in letters}
    drawn = sorted(sorted(letters, key=elements.get, reverse=True)[:MAX_LAYOUTS], key=letters.get)
    y = 0.0
    for layout in drawn:
        picture = _layout_picture(layout, letters[layout], of[layout])
        drawing.place(picture, 0, y)
        y += picture.height + 10
    for layout in (layout for layout in letters if layout not in drawn):
        badge_on(drawing, 0, y, letters[layout])
        drawing.text(ROW + 6, y + ROW - 5, f"{of[layout].type}: {layout}", fill=FAINT, size=10)
        y += ROW
    return drawing


def _layout_picture(layout: LinearLayout, letter: str, row: Row) -> Drawing:
    drawing = Drawing()
    badge_on(drawing, 0, 0, letter)
    drawing.text(ROW + 6, ROW - 5, row.type, bold=True)
    drawing.text(ROW + 6, 2 * ROW - 6, str(layout), fill=FAINT, size=10)
    drawing.place(picture(layout, row.ops[0].results[0].type), ROW + 6, 2 * ROW)
    return drawing


def ring_panel(stats: Stats) -> Drawing:
    """Iterations of the loop in time: each slot of the rings is filled, read, and filled again."""
    drawing = Drawing()
    copies, unit, label = stats.rings[0].copies, 46.0, text_width("0" * 8)
    for slot in range(copies):
        y = slot * (ROW + 3)
        drawing.text(0, y + ROW - 5, f"slot {slot}")
        for iteration in range(slot, 2 * copies + 1, copies):
            begins, ahead = label + iteration * unit, (copies - 1) * unit
            _timed(drawing, begins, y, ahead, f"fill {iteration}", "#ddf4ff", "#54aeff")
            _timed(drawing, begins + ahead, y, unit, f"read {iteration}", "#fff8c5", "#d4a72c")
    told = [f"time to the right; {_filled_by(stats)}", *map(str, stats.rings)]
    for index, line in enumerate(told):
        drawing.text(0, copies * (ROW + 3) + (index + 1) * ROW, line, size=10,
                     fill=INK if index else FAINT)
    return drawing


def _filled_by(stats: Stats) -> str:
    """Sentence that says who fills the slots of the rings."""
    if stats.producers:
        own = "1 warp of its own" if stats.producers == 1 else f"{stats.producers} warps of its own"
        return f"filled by TMA, begun by {own}"
    by_tma = any(access.way == TMA for access in stats.accesses)
    return f"filled by {'TMA' if by_tma else 'asynchronous copies'}, begun by the warps that read"


def _timed(drawing: Drawing, x: float, y: float, width: float, text: str, fill: str,
           stroke: str) -> None:
    drawing.rectangle(x + 1, y, width - 2, ROW, fill, stroke, radius=3)
    drawing.text(x + width / 2, y + ROW - 5, text, size=10, anchor="middle")


def ptx_panel(stages: Stages, hues: Hues, columns: int) -> Drawing:
    """The PTX of each line of the source.  columns: characters of a row at most."""
    drawing = Drawing()
    index = 0
    shown = {line: [f"{name}{f' x {count}' if count > 1 else ''}"
                    for name, count in sorted(counts.items())]
             for line, counts in stages.ptx_by_line.items()}
    columns = min(columns, max((len(text) for told in shown.values() for text in told), default=0))
    width = text_width("0" * (columns + 6))
    for line, told in shown.items():
        drawing.rectangle(0, index * ROW, width, len(told) * ROW, hues.light(line))
        drawing.rectangle(0, index * ROW, 4, len(told) * ROW, hues.strong(line))
        drawing.text(text_width("0" * 4), (index + 1) * ROW - 5, str(line), fill=FAINT,
                     anchor="end")
        for text in told:
            drawing.text(text_width("0" * 5), (index + 1) * ROW - 5, shortened(text, columns))
            index += 1
    return drawing


def sass_panel(stages: Stages, columns: int) -> Drawing:
    """Machine instructions by kind: a bar, the number, and the most frequent names."""
    drawing = Drawing()
    kinds = stages.sass_by_kind
    most = max(counts.total() for counts in kinds.values())
    names, bar = max(map(len, kinds)) + 1, 80.0
    for index, (kind, counts) in enumerate(kinds.items()):
        y = index * ROW
        drawing.text(0, y + ROW - 5, kind)
        x = text_width("0" * names)
        drawing.rectangle(x, y + 4, max(bar * counts.total() / most, 1), ROW - 8, "#54aeff")
        drawing.text(x + bar + text_width("00000"), y + ROW - 5, str(counts.total()),
                     anchor="end")
        told = ", ".join(name for name, _ in counts.most_common(3))
        kept = columns - names - int(bar / text_width("0"))
        drawing.text(x + bar + text_width("000000"), y + ROW - 5, shortened(told, kept),
                     fill=FAINT)
    return drawing


def lines_panel(lines: Sequence[str], columns: int) -> Drawing:
    """Lines of text; those that are not indented are titles."""
    drawing = Drawing()
    for index, line in enumerate(lines):
        drawing.text(0, (index + 1) * ROW - 5, shortened(line, columns),
                     bold=not line.startswith(" "))
    return drawing

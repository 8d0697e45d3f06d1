"""Pictures of layouts, as text and as SVG, and the command that draws them."""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from blocknumba.drawing import FAINT, INK, LINE, PAPER, SIZE, Drawing, colour
from blocknumba.errors import BlockValueError, require
from blocknumba.gpu_layout.layouts import gf2
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout, unpack
from blocknumba.gpu_layout.layouts.registers import (
    LANE, REGISTER, WARP, WARP_SIZE, blocked, shape_of,
)
from blocknumba.gpu_layout.layouts.shared import BANKS, OFFSET
from blocknumba.text_files import write_text
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.wording import quoted

MAX_CELLS = 1 << 20  # of a picture; more than anybody looks at
_NUMBER = re.compile(r"[0-9]{1,18}")
CELL_WIDTH, CELL_HEIGHT = 46, 18  # pixels
MAX_DOT = 14  # pixels of one element of a whole tile
PICTURE = 150.0  # pixels of the height of a tile; twice that of its width
CHUNK_BYTES, BANK_ROW_BYTES = 16, 4 * BANKS  # units of a swizzle
WARP_HUES = 8  # warps whose colours can be told apart


@dataclass(frozen=True, slots=True)
class Cell:
    """One element of a tile.

    label: its location: warp.lane:register, or an offset.
    holders: number of copies.  hue: from 0 to 360, by warp.  shade: from 0 to 1, by lane or bank.
    is_of_thread_0: lane 0 of warp 0 holds it.
    """

    label: str
    holders: int
    hue: int
    shade: float
    is_of_thread_0: bool = False


def text(layout: LinearLayout, limit: int = 64) -> str:
    """A layout as a table: rows are the elements of the last axis, all other axes run downwards.

    A cell of a register layout is warp.lane:register of the first holder, with a + if there are
    more; a cell of a shared layout is the offset.  limit: rows and columns that are shown.
    """
    grid = _grid(layout)
    shown = [[_plain(cell) for cell in row[:limit]] for row in grid[:limit]]
    width = max(len(label) for row in shown for label in row)
    lines = [*_summary(layout), ""]
    for row, full in zip(shown, grid, strict=False):
        more = " ..." if len(full) > limit else ""
        lines.append(" ".join(label.rjust(width) for label in row) + more)
    if len(grid) > limit:
        lines.append("...")
    return "\n".join(lines) + "\n"


def svg(layout: LinearLayout) -> str:
    """A layout as an SVG picture: a hue per warp, a shade per lane; or a shade per bank.

    Banks are those of 4-byte elements.
    """
    drawing = Drawing()
    drawing.text(4, CELL_HEIGHT, f"{'x'.join(map(str, shape_of(layout)))}: {layout}", size=12)
    drawing.place(cells(layout), 0, 2 * CELL_HEIGHT)
    return drawing.svg(str(layout))


def cells(layout: LinearLayout, limit: int = MAX_CELLS) -> Drawing:
    """The elements of a tile, each with its location.  limit: rows and columns that are drawn."""
    drawing = Drawing()
    for row, found in enumerate(_grid(layout)[:limit]):
        for column, cell in enumerate(found[:limit]):
            x, y = column * CELL_WIDTH, row * CELL_HEIGHT
            fill = colour(cell.hue, 0.6, 0.92 - 0.4 * cell.shade)
            drawing.rectangle(x, y, CELL_WIDTH, CELL_HEIGHT, fill, PAPER)
            drawing.text(x + CELL_WIDTH / 2, y + CELL_HEIGHT - 5, _plain(cell), size=10,
                         anchor="middle")
    return drawing


def warps_of_tile(layout: LinearLayout, width: float, height: float) -> Drawing:
    """A whole tile in at most width x height pixels: a hue per warp; elements of thread 0 black."""
    return _areas([[INK if cell.is_of_thread_0 else _hue(cell.hue) for cell in row]
                   for row in _grid(layout)], width, height)


def chunks_of_buffer(layout: LinearLayout, element_bytes: int, width: float,
                     height: float) -> Drawing:
    """The first rows of a buffer in shared memory: a hue per 16 bytes of its 128-byte rows.

    A swizzle is seen: the columns of a tile change places from row to row.
    """
    chunk, per_row = CHUNK_BYTES // element_bytes or 1, BANK_ROW_BYTES // CHUNK_BYTES
    corner = [row[:BANK_ROW_BYTES // element_bytes] for row in _grid(layout)[:per_row]]
    return _areas([[_hue(360 * (int(cell.label) // chunk % per_row) // per_row) for cell in row]
                   for row in corner], width, height)


def picture(layout: LinearLayout, tile: TileType) -> Drawing:
    """Colours for who holds which element of a tile or of a buffer, with what they mean.

    tile: has the layout.
    """
    drawing = Drawing()
    if OFFSET in dict(layout.ins):
        areas = chunks_of_buffer(layout, max(tile.dtype.bits // 8, 1), 2 * PICTURE, PICTURE / 2)
        told = ("shared memory: first 128 bytes of the first 8 rows",
                "a hue is one of 8 chunks of 16 bytes (4 banks)")
    else:
        areas = warps_of_tile(layout, 2 * PICTURE, PICTURE)
        extents = {name: 1 << layout.bits(name) for name in (REGISTER, LANE, WARP)}
        told = (f"{extents[WARP]} warps (hues) of {extents[LANE]} lanes, "
                f"{extents[REGISTER]} registers a thread",
                "black: the elements of thread 0")
    drawing.place(areas, 0, 0)
    y = areas.height + SIZE * LINE - 4
    for line in told:
        drawing.text(0, y, line, fill=FAINT, size=10)
        y += SIZE * LINE - 3
    return drawing


def _areas(colours: list[list[str]], width: float, height: float) -> Drawing:
    """A grid of colours, as few rectangles: runs of a row, and rows that are alike, are one."""
    drawing = Drawing()
    rows, columns = len(colours), len(colours[0])
    dot = min(MAX_DOT, width / columns)
    dot_height = min(MAX_DOT, height / rows)
    row = 0
    for alike, group in itertools.groupby(colours):
        count, column = len(list(group)), 0
        for fill, run in itertools.groupby(alike):
            length = len(list(run))
            drawing.rectangle(column * dot, row * dot_height, length * dot, count * dot_height,
                              fill)
            column += length
        row += count
    return drawing


def _hue(hue: int) -> str:
    return colour(hue, 0.6, 0.8)


def _plain(cell: Cell) -> str:
    return cell.label + ("+" if cell.holders > 1 else "")


def _summary(layout: LinearLayout) -> list[str]:
    shape = "x".join(map(str, shape_of(layout)))
    lines = [f"{shape}: {layout}"]
    if OFFSET in dict(layout.ins):
        return [*lines, "cells: offset in shared memory, elements"]
    copies = 1 << layout.in_bits - layout.rank
    lines.append(
        f"{1 << layout.bits(REGISTER)} registers, {1 << layout.bits(LANE)} lanes,"
        f" {1 << layout.bits(WARP)} warps, {copies} of each element"
    )
    return [*lines, "cells: warp.lane:register" + (" of the first holder" if copies > 1 else "")]


def _grid(layout: LinearLayout) -> list[list[Cell]]:
    """The cells of a tile; the last axis runs to the right, all others downwards."""
    shape = shape_of(layout)
    columns = shape[-1] if shape else 1
    rows = math.prod(shape) // columns
    cells: dict[int, list[int]] = {}
    for position, element in enumerate(gf2.images(layout.columns)):
        cells.setdefault(element, []).append(position)
    return [
        [_cell(layout, cells[row * columns + column]) for column in range(columns)]
        for row in range(rows)
    ]


def _cell(layout: LinearLayout, positions: list[int]) -> Cell:
    """The cell of an element that is at these packed inputs."""
    where = unpack(layout.ins, positions[0])
    if OFFSET in where:
        bank = where[OFFSET] % BANKS
        return Cell(str(where[OFFSET]), len(positions), 210, bank / BANKS)
    warp, lane = where[WARP], where[LANE]
    label = f"{warp}.{lane}:{where[REGISTER]}"
    hue = 360 * (warp % WARP_HUES) // WARP_HUES
    return Cell(label, len(positions), hue, lane / WARP_SIZE, warp == lane == 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `python -m blocknumba layout`."""
    parser.add_argument(
        "layout",
        help="'blocked', or the text of a layout, such as "
        "'register:1.2;lane:4..64;warp:128.256/dim0:9'",
    )
    parser.add_argument("--shape", default="32x32", help="of the tile, such as 64x32")
    parser.add_argument("--order", help="axes, fastest first, such as 1,0; C order by default")
    parser.add_argument("--vector", type=_number, default=1, help="neighbours in one thread")
    parser.add_argument("--warps", type=_number, default=4)
    parser.add_argument("--limit", type=_number, default=64, help="rows and columns of the text")
    parser.add_argument("--svg", metavar="FILE", help="draw to a file instead of as text")


def run(arguments: argparse.Namespace) -> int:
    """Draw the layout that the arguments of add_arguments describe; the exit status.

    Errors: BlockValueError for an argument that is not what its help says.
    """
    layout = _described(arguments)
    _require_drawable(layout)
    if arguments.svg is None:
        sys.stdout.write(text(layout, arguments.limit))
    else:
        write_text(arguments.svg, svg(layout), "layout")
    return 0


def _require_drawable(layout: LinearLayout) -> None:
    """Errors: BlockValueError for a layout of other things, of too many, or with holes."""
    held = dict(layout.ins)
    require(OFFSET in held or {REGISTER, LANE, WARP} <= held.keys(),
            "layout: given {}, accepted a layout of register, lane and warp, or of offset",
            layout, error=BlockValueError)
    require(1 << layout.in_bits <= MAX_CELLS, "layout: given {}, accepted at most {} registers of "
            "all lanes and warps", layout, MAX_CELLS, error=BlockValueError)
    require(layout.is_surjective, "layout: given {}, which does not hold every element", layout,
            error=BlockValueError)


def _described(arguments: argparse.Namespace) -> LinearLayout:
    if arguments.layout != "blocked":
        try:
            return LinearLayout.parse(arguments.layout)
        except ValueError as error:
            raise BlockValueError(str(error)) from error
    shape = _numbers("--shape", arguments.shape, "x")
    order = tuple(reversed(range(len(shape))))
    if arguments.order is not None:
        order = _numbers("--order", arguments.order, ",")
    require(
        sorted(order) == list(range(len(shape))),
        "--order: given {}, accepted the axes of {}, fastest first",
        arguments.order,
        arguments.shape,
        error=BlockValueError,
    )
    counts = (*shape, arguments.vector, arguments.warps)
    require(
        all(number > 0 and number & number - 1 == 0 for number in counts)
        and math.prod(counts) <= MAX_CELLS,
        "blocked: given shape {}, vector {} and {} warps, accepted powers of two, all together "
        "up to {}",
        arguments.shape,
        arguments.vector,
        arguments.warps,
        MAX_CELLS,
        error=BlockValueError,
    )
    return blocked(shape, order, arguments.vector, arguments.warps)


def _numbers(name: str, given: str, separator: str) -> Sequence[int]:
    parts = given.split(separator)
    require(
        all(map(_NUMBER.fullmatch, parts)),
        "{}: given {}, accepted ints separated by {!r}",
        name,
        quoted(given),
        separator,
        error=BlockValueError,
    )
    return tuple(map(int, parts))


def _number(text: str) -> int:
    """A positive int.  Errors: ArgumentTypeError."""
    if not _NUMBER.fullmatch(text) or not int(text):
        raise argparse.ArgumentTypeError(f"given {quoted(text)}, accepted a positive int")
    return int(text)

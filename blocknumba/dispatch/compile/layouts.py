"""The layouts of a compiled kernel, as users look at them: text, and pictures in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import blocknumba.gpu_layout.pipeline  # noqa: F401  it registers the ops of laid-out kernels
from blocknumba.drawing import PAPER, Drawing
from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.render import MAX_CELLS, picture
from blocknumba.tables import Html, html_table
from blocknumba.tile_ir.ir.function import Op, walk
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.tile_ir.text.parser import parse

MARGIN = 8  # pixels around a picture


@dataclass(frozen=True, slots=True)
class KernelLayout:
    """A layout, and what has it: which thread, or which place in shared memory, has an element.

    layout: from registers, lanes and warps, or from offsets, to elements.
    tiles: types of the tiles, in the order of the kernel.  ops: names of the ops that make them.
    """

    layout: LinearLayout
    tiles: tuple[TileType, ...]
    ops: tuple[str, ...]

    def __str__(self) -> str:
        """One line: tiles, layout, ops."""
        return f"{_listed(self.tiles)}  {self.layout}  {', '.join(self.ops)}"

    def _repr_svg_(self) -> str:
        """The picture that a notebook shows: a hue for each warp, thread 0 in black."""
        return _framed(self._drawing).svg(str(self))

    @property
    def _drawing(self) -> Drawing:
        if 1 << self.layout.in_bits <= MAX_CELLS:
            return picture(self.layout, self.tiles[0])
        drawing = Drawing()
        drawing.text(0, 2 * MARGIN, f"too large to be drawn: {MAX_CELLS} elements at most")
        return drawing


class Layouts(Sequence[KernelLayout]):
    """The layouts of a kernel for a GPU, in the order of its ops.  gpu: its GPU-layout IR."""

    def __init__(self, gpu: str):
        found: dict[LinearLayout, list[tuple[Op, TileType]]] = {}
        for op in walk(parse(gpu, LinearLayout.parse).body):
            for result in op.results:
                layout = result.type.layout
                if layout is not None and result.type.size > 1:
                    found.setdefault(layout, []).append((op, result.type))
        self._layouts = tuple(
            KernelLayout(layout, tuple(dict.fromkeys(tile for _, tile in made)),
                         tuple(dict.fromkeys(op.name for op, _ in made)))
            for layout, made in found.items())

    def __getitem__(self, number: int | slice) -> KernelLayout | tuple[KernelLayout, ...]:
        return self._layouts[number]

    def __len__(self) -> int:
        return len(self._layouts)

    def __str__(self) -> str:
        """A line for each."""
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        """A table with the pictures."""
        return html_table(("", "tiles", "made by", "layout"), (
            (Html(one._repr_svg_()), _listed(one.tiles), ", ".join(one.ops), one.layout)
            for one in self))


def _listed(tiles: Iterable[TileType]) -> str:
    return ", ".join(tile.spelling for tile in tiles)


def _framed(drawing: Drawing) -> Drawing:
    """A drawing on paper: dark notebooks have none."""
    framed = Drawing()
    framed.rectangle(0, 0, drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN, PAPER)
    framed.place(drawing, MARGIN, MARGIN)
    return framed

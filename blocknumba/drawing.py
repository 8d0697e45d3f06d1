"""SVG pictures: rectangles, lines and monospaced text on a canvas, placed in pixels."""

from __future__ import annotations

import colorsys
from html import escape

CHARACTER, LINE = 0.602, 1.5  # width of a monospaced character, height of a line; in font sizes
SIZE = 11  # of text, pixels
INK, FAINT, RULE, PAPER = "#1f2328", "#6e7781", "#d0d7de", "#ffffff"


def colour(hue: float, saturation: float, lightness: float) -> str:
    """A colour as #rrggbb.  hue: degrees.  saturation, lightness: 0 to 1."""
    channels = colorsys.hls_to_rgb(hue % 360 / 360, lightness, saturation)
    return "#" + "".join(f"{round(channel * 255):02x}" for channel in channels)


def text_width(text: str, size: int = SIZE) -> float:
    """Width of a text in pixels."""
    return len(text) * size * CHARACTER


def shortened(text: str, length: int) -> str:
    """A text of at most `length` characters; the end of a longer one is an ellipsis."""
    return text if len(text) <= length else text[:length - 1] + "…"


class Drawing:
    """A canvas that grows with what is put on it.

    width, height: of what is there, in pixels from the top left corner.
    """

    def __init__(self):
        self.width = self.height = 0.0
        self._shapes: list[str] = []

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str,
                  stroke: str = "none", *, radius: float = 0) -> None:
        """A filled rectangle."""
        rounded = f' rx="{_number(radius)}"' if radius else ""
        self._add(f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" '
                  f'height="{_number(height)}"{rounded} fill="{fill}" stroke="{stroke}"/>',
                  x + width, y + height)

    def text(self, x: float, y: float, text: str, *, fill: str = INK, size: int = SIZE,
             bold: bool = False, anchor: str = "start") -> None:
        """One line of text.  y: of its base line.  anchor: which part of it is at x."""
        weight = ' font-weight="bold"' if bold else ""
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        scale = "" if size == SIZE else f' font-size="{size}"'
        before = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        self._add(f'<text x="{_number(x)}" y="{_number(y)}" fill="{fill}"{scale}{weight}{place}>'
                  f'{escape(text, quote=False)}</text>',
                  x + (1 - before) * text_width(text, size), y + size * (LINE - 1))

    def line(self, x: float, y: float, to_x: float, to_y: float, stroke: str, *,
             width: float = 1, dashes: str = "") -> None:
        """A straight line.  dashes: lengths of dashes and gaps."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._add(f'<line x1="{_number(x)}" y1="{_number(y)}" x2="{_number(to_x)}" '
                  f'y2="{_number(to_y)}" stroke="{stroke}" stroke-width="{_number(width)}"'
                  f'{dashed}/>', max(x, to_x), max(y, to_y))

    def place(self, drawing: Drawing, x: float, y: float, name: str = "") -> None:
        """Another drawing, with its corner at (x, y).  name: an id for its group."""
        named = f' id="{escape(name)}"' if name else ""
        moved = f' transform="translate({_number(x)} {_number(y)})"'
        self._add("\n".join([f"<g{named}{moved}>", *drawing._shapes, "</g>"]),
                  x + drawing.width, y + drawing.height)

    def svg(self, title: str) -> str:
        """The picture as a file.  title: for whoever does not see it."""
        width, height = _number(self.width), _number(self.height)
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="{SIZE}" '
            'xml:space="preserve">',
            f"<title>{escape(title, quote=False)}</title>", *self._shapes, "</svg>", ""])

    def _add(self, shape: str, right: float, bottom: float) -> None:
        self._shapes.append(shape)
        self.width, self.height = max(self.width, right), max(self.height, bottom)


def _number(value: float) -> str:
    """A length as text, to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")

"""Copies of a matrix into the order, and the arithmetic, in which a dot reads it.

A copy has lines of `extent` elements.  It is cut into panels, which follow one another:

    line 0   [ panel 0: width elements ] [ panel 1 ] ...       element (line, x) stands at
    line 1   [                         ] [         ]              x // width * panel_bytes
                                                                + line * line_bytes + x % width
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blocknumba.cpu_lower.loop_text import Index, LoopText
from blocknumba.cpu_lower.micro_kernel import Arithmetic
from blocknumba.cpu_lower.vectors import Vector
from blocknumba.cpu_lower.writer import vector

_LARGEST_STEP = 4  # vectors copied by one iteration


@dataclass(frozen=True)
class Source:
    """A matrix in memory: element (line, x) is line * line_bytes + x * step_bytes behind base.

    scalar, size_bytes: LLVM type and size of an element.
    convert: the conversion of a vector to the arithmetic.
    """

    base: str
    line_bytes: Index
    step_bytes: Index
    scalar: str
    size_bytes: int
    convert: Callable[[Vector], Vector]

    def load(self, text: LoopText, lanes: int, address: str) -> str:
        """Neighbours in memory, converted."""
        loaded = text.load(vector(self.scalar, lanes), address, self.size_bytes)
        return self.convert(text.vector(lanes, self.scalar, loaded)).name


@dataclass(frozen=True)
class Panels:
    """The copy: number of lines, their extent, and where elements stand (see the module)."""

    base: str
    lines: int
    extent: int
    width: int
    line_bytes: int
    panel_bytes: int


def pack(text: LoopText, arithmetic: Arithmetic, lanes: int, source: Source,
         panels: Panels) -> None:
    """Copy source into panels, by vectors where it is contiguous along one of its axes."""
    def along_lines() -> Sequence[str]:
        _copy_lines(text, arithmetic, lanes, source, panels)
        return ()

    def across_lines(most: int) -> Sequence[str]:
        _transpose(text, arithmetic, min(most, panels.lines, panels.width), source, panels)
        return ()

    def otherwise() -> Sequence[str]:
        across = text.equal(source.line_bytes, source.size_bytes)
        return text.either(across, lambda: across_lines(lanes), lambda: across_lines(1))

    text.either(text.equal(source.step_bytes, source.size_bytes), along_lines, otherwise)


def _copy_lines(text: LoopText, arithmetic: Arithmetic, lanes: int, source: Source,
                panels: Panels) -> None:
    """Copy lines that are contiguous."""
    lanes = min(lanes, panels.width)
    type_, size = arithmetic.vector(lanes), arithmetic.size_bytes
    step = min(_LARGEST_STEP * lanes, panels.width)

    def line(index: str) -> None:
        start = text.address(source.base, text.product(index, source.line_bytes))
        copy = text.address(panels.base, text.product(index, panels.line_bytes))

        def panel(number: str) -> None:
            first = text.product(number, panels.width)
            own = text.address(copy, text.product(number, panels.panel_bytes))

            def part(x: str) -> None:
                read = text.address(start, text.product(text.sum(first, x), source.size_bytes))
                written = text.address(own, text.product(x, size))
                for ahead in range(0, step, lanes):
                    value = source.load(text, lanes,
                                        text.address(read, ahead * source.size_bytes))
                    text.store(type_, value, text.address(written, ahead * size), size)

            text.each(panels.width, step, part)

        text.each(panels.extent // panels.width, 1, panel)

    text.each(panels.lines, 1, line)


def _transpose(text: LoopText, arithmetic: Arithmetic, lanes: int, source: Source,
               panels: Panels) -> None:
    """Copy a matrix whose columns are contiguous, by squares of lanes x lanes.

    One lane copies element by element, whatever the strides.
    """
    type_, size = arithmetic.vector(lanes), arithmetic.size_bytes

    def square(number: str, x: str, line: str) -> None:
        """x: within a panel."""
        first = text.sum(text.product(number, panels.width), x)
        read = text.address(source.base, text.sum(text.product(line, source.line_bytes),
                                                  text.product(first, source.step_bytes)))
        rows = [source.load(text, lanes, text.address(read, text.product(k, source.step_bytes)))
                for k in range(lanes)]
        place = text.sum(text.product(line, panels.line_bytes), text.product(x, size))
        written = text.address(panels.base, text.sum(
            place, text.product(number, panels.panel_bytes)))
        for k, column in enumerate(_transposed(text, type_, rows)):
            text.store(type_, column, text.address(written, k * panels.line_bytes), size)

    def panel(number: str) -> None:
        def column(x: str) -> None:
            text.each(panels.lines, lanes, lambda line: square(number, x, line))

        text.each(panels.width, lanes, column)

    text.each(panels.extent // panels.width, 1, panel)


def _transposed(text: LoopText, type_: str, rows: list[str]) -> list[str]:
    """The columns of a square of vectors: at every distance, exchange blocks off the diagonal."""
    count, distance = len(rows), 1
    while distance < count:
        for i in (i for i in range(count) if not i & distance):
            x, y = rows[i], rows[i | distance]
            upper = [j if not j & distance else count + j - distance for j in range(count)]
            lower = [j + distance if not j & distance else count + j for j in range(count)]
            rows[i], rows[i | distance] = (_shuffle(text, type_, x, y, lanes)
                                           for lanes in (upper, lower))
        distance *= 2
    return rows


def _shuffle(text: LoopText, type_: str, x: str, y: str, lanes: list[int]) -> str:
    indices = ", ".join(f"i32 {lane}" for lane in lanes)
    return text.assign(f"shufflevector {type_} {x}, {type_} {y}, <{len(lanes)} x i32> "
                      f"<{indices}>")

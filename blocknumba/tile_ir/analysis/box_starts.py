"""Where boxes start: the address of a tile's first element, told apart by the axes of its array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd

from blocknumba.tile_ir.analysis.affine import ONE
from blocknumba.tile_ir.analysis.polynomial import Atom, Monomial, Polynomial
from blocknumba.tile_ir.ir import Parameter

AtLaunch = Callable[[Atom], Parameter | None]


@dataclass(frozen=True, slots=True)
class Line:
    """An axis of an array as a tile meets it.

    stride: elements, known at launch.
    tile_axis: the axis of the tile that runs along it; None where one index is taken of it.
    extent: of the tile along it.
    inside: the mask holds where the index in the tile is below it; None where it does not say.
    start: of the tile along it; None until it is known.
    """

    stride: Polynomial
    tile_axis: int | None = None
    extent: int = 1
    inside: Polynomial | None = None
    start: Polynomial | None = None


def placements(lines: Sequence[Line], first: Polynomial, argument: str, at_launch: AtLaunch,
               ) -> Iterator[list[Line]]:
    """Ways to write the address of a tile's first element as a sum of start * stride.

    lines: those along the axes of the tile, of which one has unit stride.
    first: the address, in elements from the first of the array, whose name is argument.
    at_launch: what a scalar is, if it is known at launch.
    Each way gives all lines with their starts, those that the tile has no axis along as well.
    Strides that are parameters tell whose part of the address a term is; where strides are
    numbers, the mask does: it holds where index < extent - start.
    """
    for guess in product(*(_guesses(line, at_launch) for line in lines)):
        guessed = [replace(line, start=start) for line, start in zip(lines, guess, strict=True)]
        placed = _placed(guessed, first, argument, at_launch)
        if placed is not None:
            yield placed


def _guesses(line: Line, at_launch: AtLaunch) -> list[Polynomial | None]:
    """Starts that the mask suggests; None for what the address says."""
    if line.inside is None or line.stride.number is None:
        return [None]
    extents = [Polynomial(((monomial, number),)) for monomial, number in line.inside.terms
               if not monomial or (len(monomial) == number == 1 and at_launch(monomial[0]))]
    return [*(extent - line.inside for extent in extents), None]


def _placed(lines: list[Line], first: Polynomial, argument: str, at_launch: AtLaunch,
            ) -> list[Line] | None:
    """The lines with all their starts, or None where they do not add up to the address."""
    rest = first
    for line in lines:
        if line.start is not None:
            rest = rest - line.start * line.stride
    placed = []
    for line in sorted(lines, key=_specificity, reverse=True):
        if line.start is None and line.stride != ONE:
            start, rest = rest.divided(line.stride)
            line = replace(line, start=start)
        placed.append(line)
    unit = placed.pop()
    scalar_lines, rest = _scalar_lines(rest, argument, at_launch, numbers=unit.start is not None)
    if unit.start is None:
        unit, rest = replace(unit, start=rest), Polynomial()
    placed.sort(key=lambda line: line.tile_axis, reverse=True)
    return None if rest else [unit, *placed, *scalar_lines]


def _specificity(line: Line) -> tuple[int, int]:
    """How much a stride says: that of a term that two strides divide, the greater one is meant."""
    ((monomial, number),) = line.stride.terms
    return len(monomial), number


def _scalar_lines(rest: Polynomial, argument: str, at_launch: AtLaunch, *, numbers: bool,
                  ) -> tuple[list[Line], Polynomial]:
    """Lines that one index is taken of, and what of the address is no part of one.

    Each term of the address is a product of something known at launch, the stride, and of
    something computed in the kernel.
    numbers: whether strides may be numbers.
    """
    lines = []
    for stride in _strides_in(rest, argument, at_launch):
        start, rest = rest.divided(stride)
        if start:
            lines.append(Line(stride, start=start))
    groups: dict[tuple[Monomial, int], list[tuple[Monomial, int]]] = {}
    left = []
    for monomial, number in rest.terms:
        known = tuple(atom for atom in monomial if at_launch(atom))
        computed = tuple(atom for atom in monomial if not at_launch(atom))
        if computed and (known or numbers):
            groups.setdefault((known, 0 if known else number), []).append((computed, number))
        else:
            left.append((monomial, number))
    for (known, _), terms in groups.items():
        unit = gcd(*(number for _, number in terms))
        start = Polynomial.sum((computed, number // unit) for computed, number in terms)
        lines.append(Line(Polynomial(((known, unit),)), start=start))
    return lines, Polynomial(tuple(left))


def _strides_in(rest: Polynomial, argument: str, at_launch: AtLaunch) -> list[Polynomial]:
    """The strides of an array that an address is made with."""
    atoms = dict.fromkeys(atom for monomial, _ in rest.terms for atom in monomial)
    found = []
    for atom in atoms:
        parameter = at_launch(atom)
        if parameter and parameter.kind == "stride" and parameter.argument == argument:
            found.append(Polynomial.of(atom))
    return found

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
    First what the strides say, each of which divides the terms that belong to it; then what the
    mask suggests, which holds where index < extent - start.
    """
    for *starts, apart in product(*(_guesses(line, at_launch) for line in lines), (False, True)):
        guessed = [replace(line, start=start) for line, start in zip(lines, starts, strict=True)]
        placed = _placed(guessed, first, _Scalars(argument, at_launch, apart))
        if placed is not None:
            yield placed


def _guesses(line: Line, at_launch: AtLaunch) -> list[Polynomial | None]:
    """None for what the address says; then starts that the mask suggests."""
    if line.inside is None:
        return [None]
    extents = [Polynomial(((monomial, number),)) for monomial, number in line.inside.terms
               if not monomial or (len(monomial) == number == 1 and at_launch(monomial[0]))]
    return [None, *(extent - line.inside for extent in extents)]


def _placed(lines: list[Line], first: Polynomial, scalars: _Scalars) -> list[Line] | None:
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
    indexed, rest = scalars.lines(rest, numbers=unit.start is not None)
    if unit.start is None:
        unit, rest = replace(unit, start=rest), Polynomial()
    placed.sort(key=lambda line: line.tile_axis, reverse=True)
    return None if rest else [unit, *placed, *indexed]


def _specificity(line: Line) -> tuple[int, int]:
    """How much a stride says: that of a term that two strides divide, the greater one is meant."""
    ((monomial, number),) = line.stride.terms
    return len(monomial), number


@dataclass(frozen=True, slots=True)
class _Scalars:
    """How to find lines that one index is taken of.

    argument: the array.  at_launch: what a scalar is, if it is known at launch.
    apart: whether each term of an index is one of its own; sums may not fit 32 bits.
    """

    argument: str
    at_launch: AtLaunch
    apart: bool

    def lines(self, rest: Polynomial, *, numbers: bool) -> tuple[list[Line], Polynomial]:
        """Lines, and what of the address is no part of one.

        Each term of the address is a product of something known at launch, the stride, and of
        something computed in the kernel.
        numbers: whether strides may be numbers.
        """
        found = []
        for stride in self._strides_in(rest):
            start, rest = rest.divided(stride)
            if start:
                found.append(Line(stride, start=start))
        groups: dict[tuple[Monomial, int], list[tuple[Monomial, int]]] = {}
        left = []
        for monomial, number in rest.terms:
            known = tuple(atom for atom in monomial if self.at_launch(atom))
            computed = tuple(atom for atom in monomial if not self.at_launch(atom))
            if computed and (known or numbers):
                key = known, number if self.apart or not known else 0
                groups.setdefault(key, []).append((computed, number))
            else:
                left.append((monomial, number))
        for (known, _), terms in groups.items():
            factor = gcd(*(number for _, number in terms))
            start = Polynomial.sum((computed, number // factor) for computed, number in terms)
            found.append(Line(Polynomial(((known, factor),)), start=start))
        return found, Polynomial(tuple(left))

    def _strides_in(self, rest: Polynomial) -> list[Polynomial]:
        """The strides of the array that an address is made with."""
        atoms = dict.fromkeys(atom for monomial, _ in rest.terms for atom in monomial)
        found = []
        for atom in atoms:
            parameter = self.at_launch(atom)
            if parameter and parameter.kind == "stride" and parameter.argument == self.argument:
                found.append(Polynomial.of(atom))
        return found

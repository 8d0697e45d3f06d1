"""Axes of an array found from addresses of its elements, for programs that have only pointers.

    x + 64 * p * s + k     of a tile with steps s and 1:    64 * p along s,  k along 1

A view knows its axes (accesses.py); of a pointer they are guessed: the address of a tile's first
element is divided by the strides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd

from blocknumba.tile_ir.analysis.boxes import Line
from blocknumba.tile_ir.analysis.polynomial import ONE, Atom, Monomial, Polynomial
from blocknumba.tile_ir.ir.function import Parameter


AtLaunch = Callable[[Atom], Parameter | None]


def decompositions(lines: Sequence[Line], first: Polynomial, argument: str, at_launch: AtLaunch,
               ) -> Iterator[list[Line]]:
    """Decompositions of the address of a tile's first element into a sum of start * stride.

    lines: those along the axes of the tile, of which one has unit stride.
    first: the address, in elements from the first of the array, whose name is argument.
    at_launch: the launch parameter that a scalar is, if it is one.
    Each decomposition has all lines with their starts, also those that scalars index.
    First come starts by division: a stride divides the terms that belong to it.  Then come starts
    that the mask suggests, which holds where index < extent - start.
    """
    for *starts, apart in product(*(_guesses(line, at_launch) for line in lines), (False, True)):
        guessed = [replace(line, start=start) for line, start in zip(lines, starts, strict=True)]
        complete = _completed(guessed, first, _Scalars(argument, at_launch, apart))
        if complete is not None:
            yield complete


def _guesses(line: Line, at_launch: AtLaunch) -> list[Polynomial | None]:
    """Candidates for a line's start: None (by division), then those that the mask suggests."""
    if line.inside is None:
        return [None]
    extents = [Polynomial(((monomial, number),)) for monomial, number in line.inside.terms
               if not monomial or (len(monomial) == number == 1 and at_launch(monomial[0]))]
    return [None, *(extent - line.inside for extent in extents)]


def _completed(lines: list[Line], first: Polynomial, scalars: _Scalars) -> list[Line] | None:
    """The lines with all their starts; None where they do not add up to the address."""
    rest = first
    for line in lines:
        if line.start is not None:
            rest = rest - line.start * line.stride
    complete = []
    for line in sorted(lines, key=_specificity, reverse=True):
        if line.start is None and line.stride != ONE:
            start, rest = rest.divided(line.stride)
            line = replace(line, start=start)
        complete.append(line)
    unit = complete.pop()
    indexed, rest = scalars.lines(rest, numbers=unit.start is not None)
    if unit.start is None:
        unit, rest = replace(unit, start=rest), Polynomial()
    complete.sort(key=lambda line: line.tile_axis, reverse=True)
    return None if rest else [unit, *complete, *indexed]


def _specificity(line: Line) -> tuple[int, int]:
    """Sort key of strides: a term that two strides divide belongs to the more specific one."""
    ((monomial, number),) = line.stride.terms
    return len(monomial), number


@dataclass(frozen=True, slots=True)
class _Scalars:
    """Search for lines that scalars index.

    argument: the array.  at_launch: the launch parameter that a scalar is, if it is one.
    apart: whether each term of an index makes a line of its own; sums may not fit 32 bits.
    """

    argument: str
    at_launch: AtLaunch
    apart: bool

    def lines(self, rest: Polynomial, *, numbers: bool) -> tuple[list[Line], Polynomial]:
        """Lines, and the terms of the address that belong to none.

        A term of the address is a product of a stride, known at launch, and of an index that the
        kernel computes.
        numbers: whether strides may be numbers.
        """
        found = []
        for stride in self._strides_in(rest):
            start, rest = rest.divided(stride)
            if start:
                found.append(Line(stride, start=start))
        groups: dict[tuple[Monomial, int], list[tuple[Monomial, int]]] = {}
        left = []
        for monomial, coefficient in rest.terms:
            known = tuple(atom for atom in monomial if self.at_launch(atom))
            computed = tuple(atom for atom in monomial if not self.at_launch(atom))
            if computed and (known or numbers):
                key = known, coefficient if self.apart or not known else 0
                groups.setdefault(key, []).append((computed, coefficient))
            else:
                left.append((monomial, coefficient))
        for (known, _), terms in groups.items():
            factor = gcd(*(coefficient for _, coefficient in terms))
            start = Polynomial.sum(
                (computed, coefficient // factor) for computed, coefficient in terms)
            found.append(Line(Polynomial(((known, factor),)), start=start))
        return found, Polynomial(tuple(left))

    def _strides_in(self, rest: Polynomial) -> list[Polynomial]:
        """The strides of the array that occur in an address."""
        atoms = dict.fromkeys(atom for monomial, _ in rest.terms for atom in monomial)
        found = []
        for atom in atoms:
            parameter = self.at_launch(atom)
            if parameter and parameter.kind == "stride" and parameter.argument == self.argument:
                found.append(Polynomial.of(atom))
        return found

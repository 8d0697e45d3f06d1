"""The least that index arithmetic gives, and whether it fits 32 bits.

Ranges of values count with overflow.  Here it is assumed that index arithmetic does not overflow
and that what an index is divided by is positive, as it is in every program that is at a place
that exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from blocknumba.tile_ir.analysis.affine import Form, Forms
from blocknumba.tile_ir.analysis.polynomial import Atom, Monomial, Polynomial
from blocknumba.tile_ir.analysis.ranges import Range, Ranges
from blocknumba.tile_ir.builder import constant_of
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.types import int32

Bound = int | float  # minus infinity where nothing is known
UNKNOWN = -math.inf


class LowerBounds:
    """What numbers are at least.

    promised: what atoms are at least, besides what their ranges say.
    """

    def __init__(self, forms: Forms, ranges: Ranges, promised: Mapping[Atom, int]):
        self._forms, self._ranges, self._promised = forms, ranges, promised

    def of(self, number: Polynomial) -> Bound:
        """What a polynomial is never below."""
        return sum(self._term(*term) for term in number.terms)

    def of_value(self, value: Value) -> Bound:
        """What an integer scalar is never below."""
        form = self._forms[value]
        assert isinstance(form, Form) and value.type.is_scalar
        return self.of(form.base)

    def _term(self, monomial: Monomial, coefficient: int) -> Bound:
        if not monomial:
            return coefficient
        factors = [self._atom(atom) for atom in monomial]
        if coefficient < 0 or (min(factors) < 0 and len(factors) > 1):
            return UNKNOWN
        return coefficient * math.prod(factors)

    def _atom(self, atom: Atom) -> Bound:
        value, op = atom.value, atom.value.owner
        found = [self._promised.get(atom, UNKNOWN)]
        known = self._ranges[value].low
        if known > value.type.dtype.minimum or not value.type.dtype.is_signed:
            found.append(known)
        if op is not None and op.name in _RULES:
            found.append(_RULES[op.name](self, op))
        if value in self._forms.counters:
            found.append(self._counter(self._forms.counters[value]))
        return max(found)

    def _counter(self, loop: Op) -> Bound:
        """A counter that rises is never below where it starts."""
        start, _, step = loop.operands[:3]
        return self.of_value(start) if self.of_value(step) >= 0 else UNKNOWN


def interval(number: Polynomial, ranges: Ranges) -> Range:
    """The least and the greatest that a polynomial can be, in integers that do not overflow."""
    total = Range(0, 0)
    for monomial, coefficient in number.terms:
        corners = [coefficient]
        for atom in monomial:
            known = ranges[atom.value]
            corners = [corner * bound for corner in (min(corners), max(corners))
                       for bound in (known.low, known.high)]
        total = Range(total.low + min(corners), total.high + max(corners))
    return total


def fits_32_bits(number: Polynomial, ranges: Ranges) -> bool:
    """Whether a polynomial is an int32 whatever its atoms are."""
    found = interval(number, ranges)
    return int32.minimum <= found.low and found.high <= int32.maximum


# what ops that are no sums or products give at least ----------------------------------------------

def _least(bounds: LowerBounds, op: Op) -> Bound:
    return min(bounds.of_value(value) for value in op.operands)


def _greatest(bounds: LowerBounds, op: Op) -> Bound:
    return max(bounds.of_value(value) for value in op.operands)


def _chosen(bounds: LowerBounds, op: Op) -> Bound:
    return min(bounds.of_value(value) for value in op.operands[1:])


def _same(bounds: LowerBounds, op: Op) -> Bound:
    return bounds.of_value(op.operands[0])


def _remainder(_: LowerBounds, __: Op) -> Bound:
    return 0


def _quotient(bounds: LowerBounds, op: Op) -> Bound:
    return 0 if bounds.of_value(op.operands[0]) >= 0 else UNKNOWN


def _shifted(bounds: LowerBounds, op: Op) -> Bound:
    least, count = bounds.of_value(op.operands[0]), constant_of(op.operands[1])
    if least < 0:
        return UNKNOWN
    return 0 if count is None else int(least) >> int(count)


def _masked(bounds: LowerBounds, op: Op) -> Bound:
    return 0 if _greatest(bounds, op) >= 0 else UNKNOWN


_RULES: dict[str, Callable[[LowerBounds, Op], Bound]] = {
    "minimum": _least, "maximum": _greatest, "select": _chosen, "hint": _same, "mod": _remainder,
    "floordiv": _quotient, "shr": _shifted, "and": _masked,
}

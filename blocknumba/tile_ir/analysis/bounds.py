"""Bounds of index arithmetic: what a mask demands of indices, and the least that they can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from blocknumba.tile_ir.analysis.affine import RULES, Form, Forms, is_index
from blocknumba.tile_ir.analysis.polynomial import Atom, Monomial, Polynomial
from blocknumba.tile_ir.analysis.ranges import Range, Ranges
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.types import int32

NO_BOUND = "the mask is more than bounds of indices"

_REARRANGED = frozenset(("splat", "broadcast", "reshape", "transpose"))
_COMPARED = frozenset(("lt", "le", "gt", "ge"))


def conditions(forms: Forms, ranges: Ranges, mask: Value) -> list[Form] | str:
    """Forms in the indices of a mask's tile; the mask holds where all of them are positive.

    Or a sentence that says why there are none.
    """
    op = mask.owner
    if op is None:
        return NO_BOUND
    if op.name == "and":
        return _all(forms, ranges, op)
    if op.name in _REARRANGED:
        inner = conditions(forms, ranges, op.x)
        if isinstance(inner, str):
            return inner
        found = [RULES[op.name](op, form) for form in inner]
        return NO_BOUND if None in found else found
    if op.name in _COMPARED and op.x.type.dtype.is_integer:
        return _comparison(forms, ranges, op)
    return NO_BOUND


def promises(forms: Forms, ranges: Ranges, body: Region) -> dict[Atom, int]:
    """What scalars are at least, as the `assume` ops of a function's body promise."""
    least: dict[Atom, int] = {}
    for op in body.ops:
        demands = conditions(forms, ranges, op.condition) if op.name == "assume" else []
        for demand in demands if isinstance(demands, list) else []:
            constant = Polynomial.constant(dict(demand.base.terms).get((), 0))
            match (demand.base - constant).terms:
                case (((atom,), 1),):
                    least[atom] = max(1 - constant.number, least.get(atom, 1 - constant.number))
    return least


def _all(forms: Forms, ranges: Ranges, op: Op) -> list[Form] | str:
    found = []
    for value in op.operands:
        part = conditions(forms, ranges, value)
        if isinstance(part, str):
            return part
        found += part
    return found


def _comparison(forms: Forms, ranges: Ranges, op: Op) -> list[Form] | str:
    smaller, greater = (op.x, op.y) if op.name in ("lt", "le") else (op.y, op.x)
    if smaller.type.dtype.is_signed:
        left, right = forms[smaller], forms[greater]
    elif ranges[greater].high < 1 << greater.type.dtype.bits - 1:
        left, right = _as_signed(forms, smaller), _as_signed(forms, greater)
    else:
        return NO_BOUND
    for form in (left, right):
        if isinstance(form, str):
            return f"in the mask, {form}"
    one = Form(Polynomial.constant(1), (Polynomial(),) * len(left.steps))
    above = right - left
    found = [above if op.name in ("lt", "gt") else above + one]
    # among unsigned numbers, negative ones are above all others
    return found if smaller.type.dtype.is_signed else [*found, left + one]


def _as_signed(forms: Forms, value: Value) -> Form | str:
    """The form of the signed integers whose bits unsigned ones are."""
    op = value.owner
    if op is not None and op.name == "cast":
        source = op.x.type.dtype
        if is_index(source) and source.bits <= value.type.dtype.bits:
            return forms[op.x]
    if op is not None and op.name in _REARRANGED:
        inner = _as_signed(forms, op.x)
        return inner if isinstance(inner, str) else RULES[op.name](op, inner) or NO_BOUND
    found = forms[value]
    is_known = isinstance(found, Form) and found.base.number is not None
    return found if is_known else "unsigned integers are compared"


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
        start, _, step = (loop.start, loop.stop, loop.step)
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
    return min(bounds.of_value(value) for value in (op.x, op.y))


def _same(bounds: LowerBounds, op: Op) -> Bound:
    return bounds.of_value(op.x)


def _remainder(_: LowerBounds, __: Op) -> Bound:
    return 0


def _quotient(bounds: LowerBounds, op: Op) -> Bound:
    return 0 if bounds.of_value(op.x) >= 0 else UNKNOWN


def _shifted(bounds: LowerBounds, op: Op) -> Bound:
    least, count = bounds.of_value(op.x), constant_of(op.y)
    if least < 0:
        return UNKNOWN
    return 0 if count is None else int(least) >> int(count)


def _masked(bounds: LowerBounds, op: Op) -> Bound:
    return 0 if _greatest(bounds, op) >= 0 else UNKNOWN


_RULES: dict[str, Callable[[LowerBounds, Op], Bound]] = {
    "minimum": _least, "maximum": _greatest, "select": _chosen, "hint": _same, "mod": _remainder,
    "floordiv": _quotient, "shr": _shifted, "and": _masked,
}

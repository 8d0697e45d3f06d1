"""Bounds of index arithmetic: constraints that a mask puts on indices, and lower bounds.

    mask = (r >= 0) & (r < n)       constraints  r + 1 > 0,  n - r > 0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from blocknumba.tile_ir.analysis.affine import RULES, AffineExpressions, is_index
from blocknumba.tile_ir.analysis.polynomial import (
    AffineExpression, Atom, Monomial, Polynomial,
)
from blocknumba.tile_ir.analysis.ranges import Range, Ranges
from blocknumba.tile_ir.folds.patterns import conjuncts
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Op, Region, Value
from blocknumba.tile_ir.ir.opdef import REARRANGES, OpTable
from blocknumba.tile_ir.ir.types import int32
from blocknumba.tile_ir.ops.views import elements_of

NO_BOUND = "the mask is more than bounds of indices"

_COUNTING = frozenset(("add", "mul", "cast", "truncmod", "truncdiv", "floordiv", "mod"))
_COMPARED = frozenset(("lt", "le", "gt", "ge"))


def conditions(expressions: AffineExpressions, ranges: Ranges,
               mask: Value) -> list[AffineExpression] | str:
    """Constraints of a mask: it holds where all of these affine expressions are positive.

    Returns the reason, a sentence, for a mask that is anything else.
    """
    found = []
    for test in conjuncts(mask):
        of_test = _conditions_of_test(expressions, ranges, test)
        if isinstance(of_test, str):
            return of_test
        found += of_test
    return found


def _conditions_of_test(expressions: AffineExpressions, ranges: Ranges,
                        test: Value) -> list[AffineExpression] | str:
    op = test.owner
    if op is None:
        return NO_BOUND
    if elements_of(test):
        access = expressions.access(op)
        return access if isinstance(access, str) else list(access.bounds)
    if op.opdef.has(REARRANGES):
        inner = conditions(expressions, ranges, op.x)
        if isinstance(inner, str):
            return inner
        moved = [RULES[op.name](op, expression) for expression in inner]
        return NO_BOUND if None in moved else moved
    if op.name in _COMPARED and op.x.type.dtype.is_integer:
        return _comparison(expressions, ranges, op)
    return NO_BOUND


def assumptions(expressions: AffineExpressions, ranges: Ranges, body: Region) -> dict[Atom, int]:
    """Lower bounds of scalars by the `assume` ops of a function's body."""
    lowest: dict[Atom, int] = {}
    for op in body.ops:
        constraints = conditions(expressions, ranges, op.condition) if op.name == "assume" else []
        for constraint in constraints if isinstance(constraints, list) else []:
            constant = Polynomial.constant(dict(constraint.base.terms).get((), 0))
            match (constraint.base - constant).terms:
                case (((atom,), 1),):
                    lowest[atom] = max(1 - constant.number, lowest.get(atom, 1 - constant.number))
    return lowest


def _comparison(expressions: AffineExpressions, ranges: Ranges,
                op: Op) -> list[AffineExpression] | str:
    smaller, greater = (op.x, op.y) if op.name in ("lt", "le") else (op.y, op.x)
    if smaller.type.dtype.is_signed:
        left, right = expressions[smaller], expressions[greater]
    elif ranges[greater].high < 1 << greater.type.dtype.bits - 1:
        left, right = _as_signed(expressions, smaller), _as_signed(expressions, greater)
    else:
        return NO_BOUND
    for expression in (left, right):
        if isinstance(expression, str):
            return f"in the mask, {expression}"
    one = AffineExpression(Polynomial.constant(1), (Polynomial(),) * len(left.steps))
    above = right - left
    found = [above if op.name in ("lt", "gt") else above + one]
    # among unsigned numbers, negative ones are above all others
    return found if smaller.type.dtype.is_signed else [*found, left + one]


def _as_signed(expressions: AffineExpressions, value: Value) -> AffineExpression | str:
    """The expression of the signed integers that were cast to unsigned ones."""
    op = value.owner
    if op is not None and op.name == "cast":
        source = op.x.type.dtype
        if is_index(source) and source.bits <= value.type.dtype.bits:
            return expressions[op.x]
    if op is not None and op.opdef.has(REARRANGES):
        inner = _as_signed(expressions, op.x)
        return inner if isinstance(inner, str) else RULES[op.name](op, inner) or NO_BOUND
    found = expressions[value]
    is_known = isinstance(found, AffineExpression) and found.base.number is not None
    return found if is_known else "unsigned integers are compared"


Bound = int | float  # minus infinity where nothing is known
UNKNOWN = -math.inf


class LowerBounds:
    """Lower bounds of polynomials and of scalars.

    assumed: lower bounds of atoms, besides those of their ranges.
    """

    def __init__(self, expressions: AffineExpressions, ranges: Ranges, assumed: Mapping[Atom, int]):
        self._expressions, self._ranges, self._assumed = expressions, ranges, assumed

    def of(self, number: Polynomial) -> Bound:
        """A lower bound of a polynomial."""
        return sum(self._term(*term) for term in number.terms)

    def of_value(self, value: Value) -> Bound:
        """A lower bound of an integer scalar."""
        expression = self._expressions[value]
        assert isinstance(expression, AffineExpression) and value.type.is_scalar
        return self.of(expression.base)

    def _term(self, monomial: Monomial, coefficient: int) -> Bound:
        if not monomial:
            return coefficient
        factors = [self._atom(atom) for atom in monomial]
        if coefficient < 0 or (min(factors) < 0 and len(factors) > 1):
            return UNKNOWN
        return coefficient * math.prod(factors)

    def _atom(self, atom: Atom) -> Bound:
        value, op = atom.value, atom.value.owner
        found = [self._assumed.get(atom, UNKNOWN)]
        known = self._ranges[value].low
        if known > value.type.dtype.minimum or not value.type.dtype.is_signed:
            found.append(known)
        if op is not None and op.name in _RULES:
            found.append(_RULES[op.name](self, op))
        if value in self._expressions.counters:
            found.append(self._counter(self._expressions.counters[value]))
        return max(found)

    def _counter(self, loop: Op) -> Bound:
        """Lower bound of a loop's counter: one that rises is never below its start."""
        start, _, step = (loop.start, loop.stop, loop.step)
        return self.of_value(start) if self.of_value(step) >= 0 else UNKNOWN


def interval(number: Polynomial, ranges: Ranges) -> Range:
    """Range of a polynomial, in integers that do not overflow."""
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
    """Whether a polynomial fits an int32 for all values of its atoms."""
    found = interval(number, ranges)
    return int32.minimum <= found.low and found.high <= int32.maximum


def counts_from_zero(value: Value, ranges: Ranges) -> bool:
    """Whether an index is never below 0, unless the arithmetic of indices overflows: sums and
    products of indices of tiles, of programs, and of numbers that are not below 0."""
    waiting, seen = [value], {value}
    while waiting:
        number = waiting.pop()
        if number.type.is_pointer or not number.type.dtype.is_integer:
            return False
        if ranges[number].low >= 0:
            continue
        op = number.owner
        if op is None or not (op.name in _COUNTING or op.opdef.has(REARRANGES)):
            return False
        # a remainder towards zero has the sign of the dividend
        needed = (op.x,) if op.name == "truncmod" else op.operands
        waiting += [operand for operand in needed if operand not in seen]
        seen.update(needed)
    return True


# lower bounds of the results of ops that are no sums or products ---------------------------------

def _minimum(bounds: LowerBounds, op: Op) -> Bound:
    return min(bounds.of_value(value) for value in op.operands)


def _maximum(bounds: LowerBounds, op: Op) -> Bound:
    return max(bounds.of_value(value) for value in op.operands)


def _chosen(bounds: LowerBounds, op: Op) -> Bound:
    return min(bounds.of_value(value) for value in (op.x, op.y))


def _same(bounds: LowerBounds, op: Op) -> Bound:
    return bounds.of_value(op.x)


def _remainder(_: LowerBounds, __: Op) -> Bound:
    return 0


def _quotient(bounds: LowerBounds, op: Op) -> Bound:
    """Of a division by a positive number, or of what it leaves with the sign of x."""
    return 0 if bounds.of_value(op.x) >= 0 else UNKNOWN


def _shifted(bounds: LowerBounds, op: Op) -> Bound:
    lowest, count = bounds.of_value(op.x), constant_of(op.y)
    if lowest < 0:
        return UNKNOWN
    return 0 if count is None else int(lowest) >> int(count)


def _masked(bounds: LowerBounds, op: Op) -> Bound:
    return 0 if _maximum(bounds, op) >= 0 else UNKNOWN


_RULES = OpTable[Callable[[LowerBounds, Op], Bound]]("lower bound", {
    "minimum": _minimum, "maximum": _maximum, "select": _chosen, "hint": _same, "mod": _remainder,
    **dict.fromkeys(("floordiv", "truncdiv", "truncmod"), _quotient), "shr": _shifted,
    "and": _masked,
})

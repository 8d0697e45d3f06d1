"""Sums of products of scalars, and affine expressions of them: the algebra of index arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce

from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.types import DType


@dataclass(frozen=True, slots=True, order=True)
class Atom:
    """A scalar that is not expressed by others.

    number: its position in the order of atoms, which makes the emitted ops deterministic.
    """

    number: int
    value: Value = field(compare=False)


Monomial = tuple[Atom, ...]  # sorted; an atom that is squared is there twice


@dataclass(frozen=True, slots=True)
class Polynomial:
    """terms: (monomial, coefficient) in order of the monomials; no coefficient is 0."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @classmethod
    def constant(cls, number: int) -> Polynomial:
        return cls((((), number),)) if number else cls()

    @classmethod
    def of(cls, atom: Atom) -> Polynomial:
        return cls((((atom,), 1),))

    @classmethod
    def sum(cls, terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
        """The sum of terms in any order; a monomial may come more than once."""
        sums: dict[Monomial, int] = {}
        for monomial, coefficient in terms:
            sums[monomial] = sums.get(monomial, 0) + coefficient
        return cls(tuple(sorted(term for term in sums.items() if term[1])))

    @property
    def number(self) -> int | None:
        """Its value, if it is a constant; else None."""
        if not self.terms:
            return 0
        monomial, coefficient = self.terms[0]
        return coefficient if len(self.terms) == 1 and not monomial else None

    def __bool__(self) -> bool:
        """Whether it is anything but 0."""
        return bool(self.terms)

    def __add__(self, other: Polynomial) -> Polynomial:
        if not self.terms or not other.terms:
            return self if self.terms else other  # most steps are 0
        return Polynomial.sum((*self.terms, *other.terms))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((monomial, -number) for monomial, number in self.terms))

    def __mul__(self, other: Polynomial) -> Polynomial:
        return Polynomial.sum((tuple(sorted(a + b)), x * y)
                              for a, x in self.terms for b, y in other.terms)

    def divided(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """(quotient, rest) with self = quotient * divisor + rest.

        divisor: one term; the quotient has every term that it divides.  A sum divides nothing:
        everything is rest.
        """
        if len(divisor.terms) != 1:
            return Polynomial(), self
        quotient, rest = [], []
        ((factors, number),) = divisor.terms
        for monomial, coefficient in self.terms:
            left = _without(monomial, factors)
            if left is None or coefficient % number:
                rest.append((monomial, coefficient))
            else:
                quotient.append((left, coefficient // number))
        return Polynomial.sum(quotient), Polynomial(tuple(rest))

    def emit(self, rebuilder: Rebuilder, dtype: DType) -> Value:
        """Its value in a signed integer dtype, modulo 2**bits, as ops on the new values."""
        emit = rebuilder.builder.emit
        terms = (reduce(partial(emit, OPS["mul"]), _factors(rebuilder, dtype, *term))
                 for term in self.terms or (((), 0),))
        return reduce(partial(emit, OPS["add"]), terms)


def _factors(rebuilder: Rebuilder, dtype: DType, monomial: Monomial,
             coefficient: int) -> Iterator[Value]:
    """The factors of a term, emitted one by one."""
    for atom in monomial:
        value = rebuilder[atom.value]
        yield value if value.type.dtype == dtype else (
            rebuilder.builder.emit(OPS["cast"], value, dtype=dtype.name))
    if coefficient != 1 or not monomial:
        yield rebuilder.builder.constant(coefficient, dtype)


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    """The monomial divided by factors; None when it lacks one of them."""
    left = list(monomial)
    for atom in factors:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


ONE = Polynomial.constant(1)


@dataclass(frozen=True, slots=True)
class AffineExpression:
    """base + sum(steps[axis] * index[axis]).

    base, steps: polynomials in scalars; a step is 0 along an axis of extent 1.
    origin: of a pointer, the parameter whose elements it counts; None for an integer.
    """

    base: Polynomial
    steps: tuple[Polynomial, ...] = ()
    origin: Value | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether all elements of the tile are equal."""
        return not any(self.steps)

    def __add__(self, other: AffineExpression) -> AffineExpression:
        steps = tuple(a + b for a, b in zip(self.steps, other.steps, strict=True))
        return AffineExpression(self.base + other.base, steps, self.origin)

    def __sub__(self, other: AffineExpression) -> AffineExpression:
        steps = tuple(a - b for a, b in zip(self.steps, other.steps, strict=True))
        return AffineExpression(self.base - other.base, steps, self.origin)

    def times(self, factor: Polynomial) -> AffineExpression:
        return AffineExpression(self.base * factor, tuple(step * factor for step in self.steps))


def reach_differing_places(steps: Iterable[tuple[Polynomial, int]]) -> bool:
    """Whether sum(step * index) differs for all index < extent of (step, extent).

    Places differ if they are sums of another number of some monomial, as those of an array's
    strides are.
    """
    left = [({monomial: abs(number) for monomial, number in step.terms}, extent)
            for step, extent in steps if extent > 1]
    while own := [axis for axis in left if any(
            all(monomial not in other for other, _ in left if other is not axis[0])
            for monomial in axis[0])]:
        left = [axis for axis in left if axis not in own]  # a number tells its index
    reached: dict[Monomial, int] = {}
    for numbers, extent in sorted(left, key=lambda axis: sum(axis[0].values())):
        if len(numbers) != 1:
            return False
        ((monomial, number),) = numbers.items()
        if number <= reached.get(monomial, 0):
            return False
        reached[monomial] = reached.get(monomial, 0) + number * (extent - 1)
    return True

"""Polynomials against numbers put in for their atoms."""

from __future__ import annotations

import random

import numpy as np
import pytest

from blocknumba.tile_ir.analysis.polynomial import Atom, Polynomial
from blocknumba.tile_ir.ir.builder import constant_of
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.types import TileType, int32, int64

ATOMS = [Atom(number, Value(TileType(int32))) for number in range(3)]
X, Y, Z = map(Polynomial.of, ATOMS)
SEEDS = pytest.mark.parametrize("seed", range(20))


def number(value: int) -> Polynomial:
    return Polynomial.constant(value)


def drawn(rng: random.Random) -> Polynomial:
    """A sum of up to four terms."""
    return Polynomial.sum((tuple(sorted(rng.choices(ATOMS, k=rng.randrange(3)))),
                           rng.randint(-3, 3)) for _ in range(rng.randrange(5)))


def value_at(polynomial: Polynomial, numbers: dict[Atom, int]) -> int:
    return sum(coefficient * int(np.prod([numbers[atom] for atom in monomial], dtype=object))
               for monomial, coefficient in polynomial.terms)


@SEEDS
def test_arithmetic_is_that_of_the_values(seed):
    rng = random.Random(seed)
    a, b = drawn(rng), drawn(rng)
    numbers = {atom: rng.randint(-9, 9) for atom in ATOMS}

    results = [a + b, a - b, a * b, -a]

    x, y = value_at(a, numbers), value_at(b, numbers)
    assert [value_at(result, numbers) for result in results] == [x + y, x - y, x * y, -x]


@SEEDS
def test_equal_sums_are_equal_however_they_are_made(seed):
    rng = random.Random(seed)
    a, b, c = drawn(rng), drawn(rng), drawn(rng)

    assert (a + b) * c - b * c == c * a
    assert not a - a


@SEEDS
def test_a_quotient_and_its_rest_are_the_dividend(seed):
    rng = random.Random(seed)
    dividend = drawn(rng)
    for divisor in (X, X * Y, number(2), number(3) * Z, number(-2) * X):
        quotient, rest = dividend.divided(divisor)

        assert quotient * divisor + rest == dividend
        assert not rest.divided(divisor)[0]


def test_nothing_is_divided_by_a_sum():
    assert (X + Y).divided(X + Y) == (Polynomial(), X + Y)


@pytest.mark.parametrize(("polynomial", "expected"), [
    (Polynomial(), 0), (number(7), 7), (X, None), (X + number(1), None), (X - X, 0),
], ids=["nothing", "constant", "atom", "sum", "difference"])
def test_a_polynomial_is_a_number_when_it_has_no_atom(polynomial, expected):
    assert polynomial.number == expected


@SEEDS
@pytest.mark.parametrize("dtype", [int32, int64], ids=str)
def test_emitted_ops_compute_the_polynomial(seed, dtype):
    rng = random.Random(seed)
    polynomial = drawn(rng)
    numbers = {atom: rng.randint(-9, 9) for atom in ATOMS}
    rebuilder = Rebuilder()
    for atom, chosen in numbers.items():
        rebuilder[atom.value] = rebuilder.builder.constant(chosen, int32)

    emitted = polynomial.emit(rebuilder, dtype)

    assert emitted.type == TileType(dtype)
    assert constant_of(emitted) == value_at(polynomial, numbers)

"""What recipes are: each writes an expression of a generated kernel, from variables there are.

Recipes know what a result must be, so that kernels have one right answer on every device: floats
are whole numbers small enough for exact sums, or any bits that no rounding or order can change,
or near: within some units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy_tiles import BOOL, HALVES, INTS, is_float

EXACT = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53}  # whole numbers
MAX_RANK = 4  # of tiles: arrays have an axis of programs and one of iterations besides


@dataclass(frozen=True)
class Facts:
    """What is known of the elements of a value.

    low, high: bounds of ints, and of floats that are whole numbers; None where nothing is known.
    ulps, absolute: how far floats may be off; a float with bounds is exact.
    """

    low: int | None = None
    high: int | None = None
    ulps: int = 0
    absolute: float = 0.0

    @property
    def size(self) -> int:
        """The greatest absolute value."""
        return max(abs(self.low), abs(self.high))


ANY = Facts()


@dataclass(frozen=True)
class Variable:
    """A variable of a kernel that holds a tile or a scalar."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    facts: Facts = ANY

    @property
    def is_float(self) -> bool:
        return is_float(self.dtype)

    @property
    def is_int(self) -> bool:
        return self.dtype in INTS

    @property
    def is_exact(self) -> bool:
        return not self.facts.ulps

    @property
    def is_whole(self) -> bool:
        """Whether its elements are whole numbers of known bounds."""
        return self.facts.low is not None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def signed(self) -> str:
        """Its text, where the sign of a zero counts: + 0.0 makes it positive."""
        return f"({self.name} + 0.0)" if self.is_float else self.name


@dataclass(frozen=True)
class Made:
    """The text of an expression, and the facts of its result, or of each of its results."""

    text: str
    facts: Facts | tuple[Facts, ...] = ANY


Recipe = Callable[["object"], Made | None]  # of the maker; None where it has nothing to work on
RECIPES: list[tuple[int, Recipe]] = []


def recipe(weight: int) -> Callable[[Recipe], Recipe]:
    """Decorator: a recipe that is chosen that often."""
    def add(function: Recipe) -> Recipe:
        RECIPES.append((weight, function))
        return function
    return add


def places(index: Variable, extent: int) -> str:
    """The text of indices below an extent, of an int variable; some are outside where its dtype
    does not hold the extent."""
    fits = extent <= np.iinfo(index.dtype).max
    return f"{index.name} % {extent}" if fits else index.name


def bn(dtype: np.dtype) -> str:
    """A dtype as kernels write it."""
    return "bn.bool_" if dtype == BOOL else f"bn.{dtype.name}"


def converted(x: Variable, to: np.dtype) -> Made | None:
    """x in another dtype; None where two roundings could differ from one."""
    facts = x.facts
    if x.dtype == to:
        return Made(x.name, facts)
    if x.is_int and to in HALVES and not (x.is_whole and facts.size <= EXACT["float32"]):
        return None
    return Made(f"{x.name}.to({bn(to)})", _kept(facts, to) if x.dtype != BOOL else Facts(0, 1))


def _kept(facts: Facts, to: np.dtype) -> Facts:
    """The facts of a value after its conversion: bounds remain where it holds them."""
    if facts.low is None:
        return replace(ANY, ulps=facts.ulps, absolute=facts.absolute)
    if is_float(to):
        return facts if facts.size <= EXACT[to.name] else ANY
    if to == BOOL:
        return ANY
    limits = np.iinfo(to)
    return facts if limits.min <= facts.low and facts.high <= limits.max else ANY


def bounded(low: int, high: int, dtype: np.dtype) -> Facts:
    """Facts of whole numbers that a dtype may not hold."""
    return _kept(Facts(low, high), dtype)


def with_zero(facts: Facts) -> Facts:
    """The facts of elements some of which may be 0 besides."""
    if facts.low is None:
        return facts
    return replace(facts, low=min(facts.low, 0), high=max(facts.high, 0))

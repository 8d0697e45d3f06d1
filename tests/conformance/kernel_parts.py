"""What a generated kernel is made of besides its body: arrays, arguments and scopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from kernel_recipes import ANY, Facts, Variable


class Pair(NamedTuple):
    """Two things under names, as a kernel takes and makes them."""

    first: object
    second: object


@dataclass(frozen=True)
class Group:
    """Two things under names, as a dataclass."""

    left: object
    right: object


FIELDS = {tuple: ("[0]", "[1]"), Pair: (".first", ".second"), Group: (".left", ".right")}


@dataclass(frozen=True)
class Input:
    """An array that a kernel reads.

    largest: of its whole numbers; 0 for edge values of its dtype and any bits.
    layout: how it lies in memory, one of array_layouts.LAYOUTS.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    largest: int
    layout: str = "c"

    @property
    def facts(self) -> Facts:
        """Those of what is read, 0 outside."""
        if not self.largest:
            return ANY
        return Facts(0 if self.dtype.kind in "ub" else -self.largest, self.largest)


@dataclass(frozen=True)
class Output:
    """An array that a kernel writes, and may read.

    facts: how far floats may be off.   zeros: what it starts as, small whole numbers else.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    facts: Facts = ANY
    zeros: bool = False
    layout: str = "c"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    arrays: the names of those that it holds.   kind: tuple, Pair or Group of them, None of one.
    cut: of one, the slices of it that are given.
    value: of a number or a constant.   annotation: its text.
    """

    name: str
    arrays: tuple[str, ...] = ()
    kind: type | None = None
    cut: tuple[slice, ...] = ()
    value: object = None
    annotation: str = ""

    def argument(self, arrays: dict[str, object]) -> object:
        """What it is given, of arrays by name."""
        if not self.arrays:
            return self.value
        given = [arrays[name] for name in self.arrays]
        if self.kind is None:
            return given[0][self.cut] if self.cut else given[0]
        return tuple(given) if self.kind is tuple else self.kind(*given)


@dataclass
class Scope:
    """What code can use: variables; numbers, names of Python ints; those that a loop carries.

    slot: of a loop with a known number of iterations.   in_function: it returns a value.
    """

    variables: list[Variable]
    numbers: list[str]
    carried: list[Variable] = field(default_factory=list)
    depth: int = 0
    slot: tuple[str, int] | None = None
    in_function: bool = False

    def inner(self, **changes: object) -> Scope:
        """The scope of a block."""
        return replace(self, variables=list(self.variables), numbers=list(self.numbers),
                       depth=self.depth + 1, **{"carried": [], "slot": None} | changes)


Statement = Callable[["object"], "list[str] | None"]  # of the maker; None where it has no place
STATEMENTS: list[tuple[float, Statement]] = []


def statement(weight: float) -> Callable[[Statement], Statement]:
    """Decorator: a kind of statement that is chosen that often."""
    def add(function: Statement) -> Statement:
        STATEMENTS.append((weight, function))
        return function
    return add


def indented(lines: list[str]) -> list[str]:
    """The lines of a block."""
    return ["    " + line for line in lines]

"""Patterns that folds match, and the constants that they emit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from blocknumba.tile_ir.ir.builder import Builder, constant_of
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.types import BOOL, DType, TileType

Number = bool | int | float
Answer = TypeVar("Answer")
MAX_DEPTH = 24  # of an expression that is followed


def number(value: Value) -> Number | None:
    """The number that every element of a value equals, when it is known."""
    constant = constant_of(value)
    return None if constant is None else constant.item()


def made_by(value: Value, name: str) -> Op | None:
    """The op that made a value, if it has that name."""
    op = value.owner
    return op if op is not None and op.opdef.name == name else None


def conjuncts(mask: Value, opens: Callable[[Value], bool] = lambda _: True) -> Iterator[Value]:
    """The bools that must all be true for a mask to be, from left to right, each once.

    opens: whether a conjunction is taken apart.
    """
    waiting, seen = [mask], set()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        conjunction = made_by(value, "and")
        if conjunction is None or not opens(value):
            yield value
        else:
            waiting += reversed(conjunction.operands)


class Answers(Generic[Answer]):
    """Answers to a question on values, each found once, however many others ask for it.

    rule: (value, ask) -> the answer, for which it may ask on what the value is made of.
    beyond: the answer where MAX_DEPTH ops have asked one after the other.
    """

    def __init__(self, rule: Callable[[Value, Callable[[Value], Answer]], Answer], beyond: Answer):
        self._rule, self._beyond = rule, beyond
        self._found: dict[Value, Answer] = {}
        self._depth = 0

    def __call__(self, value: Value) -> Answer:
        if value in self._found:
            return self._found[value]
        if self._depth > MAX_DEPTH:
            return self._beyond
        self._depth += 1
        answer = self._found[value] = self._rule(value, self)
        self._depth -= 1
        return answer


def same_number(a: Number | None, b: Number) -> bool:
    """Whether two numbers are equal; -0.0 and 0.0 differ."""
    return a == b and (a != 0 or math.copysign(1, a) == math.copysign(1, b))


def is_counted(type_: TileType) -> bool:
    """Whether elements are integers or bools: arithmetic on them is exact."""
    return not type_.is_pointer and not type_.dtype.is_float


def wrapped(dtype: DType, value: int) -> Number:
    """An int as a value of an integer or bool dtype, modulo 2**bits."""
    if dtype.kind == BOOL:
        return bool(value & 1)
    return (value - dtype.minimum) % (1 << dtype.bits) + dtype.minimum


def filled(builder: Builder, type_: TileType, value: Number) -> Value:
    """A constant in every element of a type."""
    return splatted(builder, builder.constant(value, type_.dtype), type_.shape)


def splatted(builder: Builder, scalar: Value, shape: tuple[int, ...]) -> Value:
    """A scalar in every element of a shape."""
    return builder.emit(OPS["splat"], scalar, shape=shape) if shape else scalar


def zero_of(dtype: DType) -> Number:
    """0 as a Python value of a dtype's kind."""
    return False if dtype.kind == BOOL else 0.0 if dtype.is_float else 0

"""The values that loops carry from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values


@dataclass(frozen=True, slots=True)
class _Places:
    """How many come before the carried ones: operands of the loop, arguments of its region,
    operands of its terminator."""

    operands: int
    args: int
    handed: int


_PLACES = {"for": _Places(3, 1, 0), "loop": _Places(0, 0, 1)}


@dataclass(frozen=True, slots=True)
class Carried:
    """What a loop carries, value by value: at first, within a round, and into the next."""

    initial: tuple[Value, ...]
    args: tuple[Value, ...]
    following: tuple[Value, ...]


def is_loop(op: Op) -> bool:
    """Whether an op runs its only region again and again."""
    return op.name in _PLACES


def carried(loop: Op) -> Carried:
    """What a loop carries."""
    places, (region,) = _PLACES[loop.name], loop.regions
    return Carried(loop.operands[places.operands:], region.args[places.args:],
                   region.terminator.operands[places.handed:])


def controls(loop: Op) -> tuple[Value, ...]:
    """The values that decide how many rounds a loop makes."""
    places, (region,) = _PLACES[loop.name], loop.regions
    return loop.operands[:places.operands] + region.terminator.operands[:places.handed]


def keep(rebuilder: Rebuilder, loop: Op, kept: Sequence[bool]) -> Values:
    """Re-emit a loop with some of its carried values; give the results of those.

    An argument that is not kept and still used must stand for something in the rebuilder.
    """
    places, (region,) = _PLACES[loop.name], loop.regions
    builder, values = rebuilder.builder, carried(loop)
    args = (*region.args[:places.args], *compress(values.args, kept))
    with builder.region(*(a.type for a in args), hints=[a.hint for a in args]) as (copy, new_args):
        for old, new in zip(args, new_args, strict=True):
            rebuilder[old] = new
        rebuilder.ops(region.ops[:-1])
        end = region.terminator
        handed = (*end.operands[:places.handed], *compress(values.following, kept))
        builder.emit(end.opdef, *(rebuilder[value] for value in handed))
    builder.loc = loop.loc
    operands = (*loop.operands[:places.operands], *compress(values.initial, kept))
    types = tuple(value.type for value in compress(loop.results, kept))
    made = builder.emit(loop.opdef, *(rebuilder[value] for value in operands), regions=(copy,),
                        types=types, **loop.attrs)
    return made if isinstance(made, tuple) else (made,)

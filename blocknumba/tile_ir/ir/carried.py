"""The values that loops carry from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values


@dataclass(frozen=True, slots=True)
class Carried:
    """What a loop carries, value by value: at first, within a round, and into the next."""

    initial: tuple[Value, ...]
    args: tuple[Value, ...]
    following: tuple[Value, ...]


def is_loop(op: Op) -> bool:
    """Whether an op runs its only region again and again."""
    return op.name in ("for", "loop")


def carried(loop: Op) -> Carried:
    """What a loop carries."""
    (region,), initial = loop.regions, loop.initial
    return Carried(initial, region.args[len(region.args) - len(initial):],
                   region.terminator.values)


def controls(loop: Op) -> tuple[Value, ...]:
    """The values that decide how many rounds a loop makes: bounds and step, or a condition."""
    if loop.name == "for":
        return loop.start, loop.stop, loop.step
    (region,) = loop.regions
    return (region.terminator.condition,)


def keep(rebuilder: Rebuilder, loop: Op, kept: Sequence[bool]) -> Values:
    """Re-emit a loop with some of its carried values; give the results of those.

    An argument that is not kept and still used must stand for something in the rebuilder.
    """
    (region,), builder, values = loop.regions, rebuilder.builder, carried(loop)
    counter = region.args[:1] if loop.name == "for" else ()
    args = (*counter, *compress(values.args, kept))
    with builder.region(*(a.type for a in args), hints=[a.hint for a in args]) as (copy, new_args):
        for old, new in zip(args, new_args, strict=True):
            rebuilder[old] = new
        rebuilder.ops(region.ops[:-1])
        end = region.terminator
        condition = () if loop.name == "for" else (end.condition,)
        yielded = (*condition, *compress(values.following, kept))
        builder.emit(end.opdef, *(rebuilder[value] for value in yielded))
    builder.loc = loop.loc
    bounds = controls(loop) if loop.name == "for" else ()
    operands = (*bounds, *compress(values.initial, kept))
    types = tuple(value.type for value in compress(loop.results, kept))
    made = builder.emit(loop.opdef, *(rebuilder[value] for value in operands), regions=(copy,),
                        types=types, **loop.attrs)
    return made if isinstance(made, tuple) else (made,)

"""Loop-carried values: what a loop passes from iteration to iteration.

    %r = for %lo, %hi, %step, %zero : float32 (%i: int32, %acc: float32) {
      ...                  initial = %zero    args = %acc
      yield %next          following = %next  results = %r
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values


@dataclass(frozen=True, slots=True)
class Carried:
    """The loop-carried values of a loop: initial ones, region arguments, and yielded ones."""

    initial: tuple[Value, ...]
    args: tuple[Value, ...]
    following: tuple[Value, ...]


def is_loop(op: Op) -> bool:
    """Whether an op is a loop."""
    return op.name in ("for", "loop")


def carried(loop: Op) -> Carried:
    """The loop-carried values of a loop."""
    (region,), initial = loop.regions, loop.initial
    return Carried(initial, region.args[len(region.args) - len(initial):],
                   region.terminator.values)


def controls(loop: Op) -> tuple[Value, ...]:
    """Values that decide the number of iterations: bounds and step, or a condition."""
    if loop.name == "for":
        return loop.start, loop.stop, loop.step
    (region,) = loop.regions
    return (region.terminator.condition,)


def keep(rebuilder: Rebuilder, loop: Op, kept: Sequence[bool]) -> Values:
    """Re-emit a loop with some of its loop-carried values; returns the results of those.

    An argument that is dropped but still used must have a new value in the rebuilder.
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

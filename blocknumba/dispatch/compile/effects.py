"""Effects: the array arguments that a kernel reads, and those that it stores to."""

from __future__ import annotations

from dataclasses import dataclass

from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import CONTROL, READS, WRITES
from blocknumba.tile_ir.ir.types import ViewType
from blocknumba.tile_ir.ops.memory import pointer_at


@dataclass(frozen=True, slots=True)
class Effects:
    """The array arguments, by name, that programs may read and may store to."""

    read: frozenset[str]
    stored: frozenset[str]


def effects(fn: Function) -> Effects:
    """Effects of a function on its arrays.

    Every pointer is followed back to the arguments it may come from, through pointer
    arithmetic, selections and loops; a region may get any pointer that its op is given.
    """
    origins: dict[Value, frozenset[str]] = {
        value: frozenset((parameter.argument,)) if parameter.kind == "pointer" else frozenset()
        for parameter, value in zip(fn.parameters, fn.body.args, strict=True)}
    ops = list(walk(fn.body))
    anywhere = frozenset().union(*origins.values())
    origins |= {op.result: anywhere for op in ops if op.opdef is pointer_at}
    changed = True
    while changed:  # again while a loop carries a pointer back
        changed = False
        for op in ops:
            changed |= _follow(op, origins)
    read = (_origins(op, origins) for op in ops if op.opdef.has(READS))
    stored = (_origins(op, origins) for op in ops if op.opdef.has(WRITES))
    return Effects(frozenset().union(*read), frozenset().union(*stored))


def _follow(op: Op, origins: dict[Value, frozenset[str]]) -> bool:
    """Give the pointers that an op makes their origins; whether that was news."""
    found = _origins(op, origins)
    targets = list(op.results)
    if op.opdef.has(CONTROL):
        for region in op.regions:
            targets += region.args
            found |= _origins(region.terminator, origins)
    news = False
    for target in targets:
        if _has_origins(target) and not found <= origins.get(target, frozenset()):
            origins[target] = origins.get(target, frozenset()) | found
            news = True
    return news


def _origins(op: Op, origins: dict[Value, frozenset[str]]) -> frozenset[str]:
    """The arguments that the pointers among an op's operands may come from.

    Those of a pointer that was made of an integer are known from the start.
    """
    return frozenset().union(*(origins.get(value, frozenset()) for value in op.operands
                               if _has_origins(value)))


def _has_origins(value: Value) -> bool:
    """Whether a value is a pointer or a view."""
    return value.type.is_pointer or isinstance(value.type.dtype, ViewType)

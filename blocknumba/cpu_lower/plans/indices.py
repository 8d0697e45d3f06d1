"""Integers that are only indices: nothing but addresses, masks and other indices is made of them.

    x[i * stride + j]      i * stride + j counts elements: int32 that an access needs does not wrap
    i * stride + j < n     an index too, but the mask is asked of elements that no access touches
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import attribute

MASKS = frozenset(("lt", "le", "gt", "ge"))
MADE = frozenset(("add", "sub", "mul", "cast", "splat", "broadcast", "reshape", "transpose"))


def made_into(fn: Function, more: Container[str] = ()) -> frozenset[Value]:
    """Integers of which nothing is made but addresses, masks and other such integers.

    more: names of ops by which integers are made into others.
    """
    return _only(fn, lambda op: op.name in MASKS or op.name == "offset",
                 lambda op: op.name in MADE or op.name in more)


def counts_of_elements(fn: Function) -> frozenset[Value]:
    """Integers of which nothing is made but addresses, without wrapping around."""
    return _only(fn, lambda op: op.name == "offset" and (
        attribute(op, "narrow") or op.count.type.dtype.bits == 64), _keeps_counts)


def _keeps_counts(op: Op) -> bool:
    if op.name != "cast":
        return op.name in MADE
    source, to = op.x.type.dtype, op.result.type.dtype
    return to.is_integer and source.is_signed and source.bits <= to.bits


def _only(fn: Function, ends: Callable[[Op], bool], goes_on: Callable[[Op], bool]) -> frozenset[
        Value]:
    """Values of which ops make nothing, in the end, but what `ends` takes.

    goes_on: whether the results of an op count, instead of the op.
    """
    other: set[Value] = set()
    for op in _backwards(fn.body):
        if not ends(op) and (not goes_on(op) or any(v in other for v in op.results)):
            other.update(op.operands)
    return frozenset(v for op in walk(fn.body) for v in op.results
                     if v not in other and not v.type.is_pointer and v.type.dtype.is_integer)


def _backwards(region: Region) -> Iterator[Op]:
    """All ops, each before those whose results it takes."""
    for op in reversed(region.ops):
        yield op
        for inner in reversed(op.regions):
            yield from _backwards(inner)

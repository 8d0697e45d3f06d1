"""Which kernel arguments a function reads and writes memory through."""

from __future__ import annotations

from collections.abc import Sequence

from blocknumba.tile_ir.carried import carried, is_loop
from blocknumba.tile_ir.ir import Function, Op, Region, Value, walk
from blocknumba.tile_ir.opdef import READS, WRITES, Traits

Origins = frozenset[str]


def loaded(fn: Function) -> set[str]:
    """Names of the array arguments that the function may read elements of."""
    return _touched(fn, READS)


def stored(fn: Function) -> set[str]:
    """Names of the array arguments that the function may write elements of."""
    return _touched(fn, WRITES)


def origins(fn: Function) -> dict[Value, Origins]:
    """For every pointer, the names of the arguments that it may point into."""
    found: dict[Value, Origins] = {}
    for parameter, arg in zip(fn.parameters, fn.body.args, strict=True):
        if arg.type.is_pointer:
            found[arg] = frozenset((parameter.argument,))
    _visit(fn.body, found)
    return found


def _touched(fn: Function, traits: Traits) -> set[str]:
    found = origins(fn)
    names: set[str] = set()
    for op in walk(fn.body):
        if op.opdef.has(traits):
            names.update(*(found.get(value, ()) for value in op.operands))
    return names


def _visit(region: Region, found: dict[Value, Origins]) -> None:
    for op in region.ops:
        if is_loop(op):
            _visit_loop(op, found)
        elif op.name == "if":
            for inner in op.regions:
                _visit(inner, found)
            yielded = (inner.terminator.operands for inner in op.regions)
            for result, *values in zip(op.results, *yielded, strict=True):
                _join(result, values, found)
        else:
            for inner in op.regions:
                _visit(inner, found)
            for value in op.results:
                _join(value, op.operands, found)


def _visit_loop(loop: Op, found: dict[Value, Origins]) -> None:
    """Visit until it is stable what the pointers that are carried round may point into."""
    values = carried(loop)
    for arg, value in zip(values.args, values.initial, strict=True):
        _join(arg, (arg, value), found)
    grown = True
    while grown:
        _visit(loop.regions[0], found)
        grown = False
        for arg, value in zip(values.args, values.following, strict=True):
            before = found.get(arg)
            _join(arg, (arg, value), found)
            grown = grown or found.get(arg) != before
    for result, arg, value in zip(loop.results, values.args, values.following, strict=True):
        _join(result, (arg, value), found)


def _join(target: Value, sources: Sequence[Value], found: dict[Value, Origins]) -> None:
    """A pointer made of sources points into what the pointers among them do."""
    if target.type.is_pointer:
        found[target] = frozenset().union(*(found.get(value, ()) for value in sources))

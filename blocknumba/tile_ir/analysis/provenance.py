"""Which kernel arguments a function reads and writes memory through."""

from __future__ import annotations

from blocknumba.tile_ir.ir import Function, Region, Value, walk
from blocknumba.tile_ir.opdef import READS, WRITES, Trait

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


def _touched(fn: Function, trait: Trait) -> set[str]:
    found = origins(fn)
    names: set[str] = set()
    for op in walk(fn.body):
        if op.opdef.has(trait):
            names.update(*(found.get(value, ()) for value in op.operands))
    return names


def _visit(region: Region, found: dict[Value, Origins]) -> None:
    for op in region.ops:
        incoming = _union(op.operands, found)
        for inner in op.regions:
            _visit_region(inner, incoming, found)
        pointers = [value for value in op.results if value.type.is_pointer]
        if not pointers:
            continue
        for inner in op.regions:
            incoming |= _union(inner.terminator.operands, found)
        for value in pointers:
            found[value] = incoming


def _visit_region(region: Region, incoming: Origins, found: dict[Value, Origins]) -> None:
    """Visit until what the pointers that are carried round may point into is stable."""
    pointers = [arg for arg in region.args if arg.type.is_pointer]
    while True:
        for arg in pointers:
            found[arg] = incoming
        _visit(region, found)
        carried = _union(region.terminator.operands, found) if pointers else frozenset()
        if carried <= incoming:
            return
        incoming |= carried


def _union(values: tuple[Value, ...], found: dict[Value, Origins]) -> Origins:
    """The origins of all pointers among values."""
    names: Origins = frozenset()
    for value in values:
        if value.type.is_pointer:
            names |= found[value]
    return names

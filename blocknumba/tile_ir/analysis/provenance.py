"""Provenance of values: the arguments that pointers point into, and scalars known at launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from blocknumba.tile_ir.ir.function import Function, Op, Region, Value, walk
from blocknumba.tile_ir.ir.opdef import PURE, READS, WRITES, may_write
from blocknumba.tile_ir.ir.types import ViewType
from blocknumba.tile_ir.ir.uses import carried, controls, is_loop
from blocknumba.tile_ir.ops.assembly import inline_asm
from blocknumba.tile_ir.ops.memory import address, pointer_at

Origins = frozenset[str]
Test = Callable[[Op], bool]


@dataclass(frozen=True, slots=True)
class Effects:
    """The array arguments, by name, that programs may read, and those that they may store to."""

    read: Origins
    stored: Origins


def effects(fn: Function) -> Effects:
    """Effects of a function on its arrays."""
    return Effects(loaded(fn), stored(fn))


def loaded(fn: Function) -> Origins:
    """Names of the array arguments that the function may read elements of."""
    return _touched(fn, lambda op: op.opdef.has(READS), lambda op: op.opdef is inline_asm)


def stored(fn: Function) -> Origins:
    """Names of the array arguments that the function may write elements of."""
    return _touched(fn, lambda op: op.opdef.has(WRITES),
                    lambda op: op.opdef is inline_asm and may_write(op))


def origins(fn: Function) -> dict[Value, Origins]:
    """For every pointer, the names of the arguments that it may point into."""
    found: dict[Value, Origins] = {}
    anywhere = frozenset(p.argument for p in fn.parameters if p.kind == "pointer")
    found |= {op.result: anywhere for op in walk(fn.body) if op.opdef is pointer_at}
    for parameter, arg in zip(fn.parameters, fn.body.args, strict=True):
        if arg.type.is_pointer:
            found[arg] = frozenset((parameter.argument,))
    _visit(fn.body, found)
    return found


def _touched(fn: Function, touches: Test, touches_any: Test) -> Origins:
    """Names of the arguments whose elements some op touches.

    touches: whether an op does at its pointers.
    touches_any: whether it may do so at any address that the function has made a number.
    """
    found, ops = origins(fn), list(walk(fn.body))
    through = [op for op in ops if touches(op)]
    if any(map(touches_any, ops)):
        through += [op for op in ops if op.opdef is address]
    return frozenset().union(*(found.get(value, ()) for op in through for value in op.operands))


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
    """Visit a loop until the origins of its loop-carried pointers are stable."""
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
    """A pointer, or a view, made from sources has the origins of all of them."""
    if target.owner is not None and target.owner.opdef is pointer_at:
        return  # into any argument
    if target.type.is_pointer or isinstance(target.type.dtype, ViewType):
        found[target] = frozenset().union(*(found.get(value, ()) for value in sources))


def plannable(fn: Function) -> frozenset[Value]:
    """Scalars that depend on parameters, constants, program ids and loop counters alone.

    A producer warp can compute them by itself.  A loop-carried value is plannable only if the
    values that decide the number of iterations are.  An op within an `if` may be plannable
    whatever the condition is.
    """
    search = _Search()
    search.region(fn.body)
    while search.grown:
        search.grown = False
        search.region(fn.body)
    return frozenset(search.seen - search.unknown)


class _Search:
    """Marks values that are not plannable, visiting all ops until nothing new is found."""

    def __init__(self):
        self.seen: set[Value] = set()
        self.unknown: set[Value] = set()
        self.grown = False

    def region(self, region: Region) -> None:
        self.seen.update(region.args)
        self._mark(value for value in region.args if not value.type.is_scalar)
        for op in region.ops:
            self._op(op)

    def _op(self, op: Op) -> None:
        self.seen.update(op.results)
        for inner in op.regions:
            self.region(inner)
        if is_loop(op):
            self._loop(op)
        elif op.name == "if":
            self._choice(op)
        elif not op.opdef.has(PURE) or self._any_unknown(op.operands):
            self._mark(op.results)
        else:
            self._mark(value for value in op.results if not value.type.is_scalar)

    def _loop(self, loop: Op) -> None:
        (region,), values = loop.regions, carried(loop)
        if self._any_unknown(controls(loop)):
            self._mark((*region.args, *loop.results))
        for group in zip(values.args, values.initial, values.following, loop.results, strict=True):
            if self._any_unknown(group):
                self._mark((group[0], group[3]))

    def _choice(self, op: Op) -> None:
        yielded = (region.terminator.operands for region in op.regions)
        for result, *values in zip(op.results, *yielded, strict=True):
            if self._any_unknown((*op.operands, *values)):
                self._mark((result,))

    def _any_unknown(self, values: Iterable[Value]) -> bool:
        return any(value in self.unknown for value in values)

    def _mark(self, values: Iterable[Value]) -> None:
        for value in values:
            if value not in self.unknown:
                self.unknown.add(value)
                self.grown = True

"""Which scalars are known without anything that a kernel loads or computes in tiles."""

from __future__ import annotations

from collections.abc import Iterable

from blocknumba.tile_ir.carried import carried, controls, is_loop
from blocknumba.tile_ir.ir import Function, Op, Region, Value
from blocknumba.tile_ir.opdef import PURE


def plannable(fn: Function) -> frozenset[Value]:
    """The scalars made of parameters, constants, program ids and counters of loops alone.

    A warp that only fetches can compute them by itself.  A value that a loop carries is one when
    what decides the number of rounds is; an op in an `if`, whatever its condition is.
    """
    search = _Search()
    search.region(fn.body)
    while search.grown:
        search.grown = False
        search.region(fn.body)
    return frozenset(search.seen - search.unknown)


class _Search:
    """Visits ops in order, noting what is not plannable; again until a visit finds nothing new."""

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

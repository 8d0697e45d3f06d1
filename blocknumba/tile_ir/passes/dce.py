"""Dead code elimination."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress

from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import EFFECT, PLACED, PURE, READS, TERMINATOR, WRITES
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values
from blocknumba.tile_ir.ir.uses import carried, controls, is_loop, keep
from blocknumba.tile_ir.passes.contract import declared


def must_run(op: Op) -> bool:
    """Whether an op without regions has an effect besides its results.

    A load has no effect unless it is volatile.
    """
    if op.opdef.has(PURE | PLACED):
        return False
    return op.opdef.traits != READS or bool(op.attrs.get("volatile"))


@dataclass
class Liveness:
    """values: those that are needed; ops: those with regions that must run."""

    values: set[Value] = field(default_factory=set)
    ops: set[Op] = field(default_factory=set)


def liveness(fn: Function) -> Liveness:
    """The values that reach an effect, found backwards from the effects."""
    search = _Search()
    search.region(fn.body, ())
    search.finish()
    return search.found


class _Search:
    """Marks live values; todo holds those whose operands are still to be marked."""

    def __init__(self):
        self.found = Liveness()
        self._todo: list[Value] = []
        self._arg_of: dict[Value, tuple[Op, int]] = {}  # loop-carried argument -> loop, index
        self._inside: dict[Op, tuple[Op, ...]] = {}  # op with regions -> those around it

    def region(self, region: Region, around: tuple[Op, ...]) -> None:
        """Mark the effects of a region and the values that decide whether they happen."""
        for op in region.ops:
            if op.opdef.has(TERMINATOR):
                continue
            if not op.regions:
                if must_run(op):
                    self._runs(around)
                    self._needs(op.operands)
                continue
            self._inside[op] = around
            if op.opdef.has(WRITES | EFFECT):
                self._runs((*around, op))
            if is_loop(op):
                for index, arg in enumerate(carried(op).args):
                    self._arg_of[arg] = op, index
            for inner in op.regions:
                self.region(inner, (*around, op))

    def finish(self) -> None:
        while self._todo:
            value = self._todo.pop()
            if value in self._arg_of:
                self._carried(*self._arg_of[value])
            elif value.owner is None:
                continue
            elif value.owner.regions:
                self._result(value.owner, value.owner.results.index(value))
            else:
                self._needs(value.owner.operands)

    def _needs(self, values: tuple[Value, ...]) -> None:
        for value in values:
            if value not in self.found.values:
                self.found.values.add(value)
                self._todo.append(value)

    def _runs(self, ops: tuple[Op, ...]) -> None:
        """Ops with regions that must run, for something within them."""
        for op in ops:
            if op not in self.found.ops:
                self.found.ops.add(op)
                self._needs(controls(op) if is_loop(op) else op.operands)

    def _carried(self, loop: Op, index: int) -> None:
        """A live loop-carried value needs its initial value and the one that is yielded."""
        self._runs((*self._inside[loop], loop))
        values = carried(loop)
        self._needs((values.initial[index], values.following[index]))

    def _result(self, op: Op, index: int) -> None:
        if is_loop(op):
            self._carried(op, index)
            return
        self._runs((*self._inside[op], op))
        for region in op.regions:
            yielded = region.terminator.values
            self._needs(yielded[index:index + 1] if op.name == "if" else yielded)


@declared(reads=("ops",), writes=("ops",))
def dce(fn: Function, _: object = None) -> Function:
    """Remove ops, carried values, results of branches and parameters that nothing needs."""
    live = liveness(fn)
    rebuilder = Rebuilder(lambda rebuilder, op: _needed(rebuilder, op, live), folding=False)
    kept = [arg in live.values for arg in fn.body.args]
    args = tuple(compress(fn.body.args, kept))
    with rebuilder.builder.region(*(a.type for a in args), hints=[a.hint for a in args]) as (
            body, new_args):
        for old, new in zip(args, new_args, strict=True):
            rebuilder[old] = new
        rebuilder.ops(fn.body.ops)
    return fn.with_body(body, tuple(compress(fn.parameters, kept)))


def _needed(rebuilder: Rebuilder, op: Op, live: Liveness) -> Values | None:
    """The rewrite: drops dead ops, and dead results of live ops with regions."""
    if op.opdef.has(TERMINATOR):
        return None
    if not op.regions:
        used = must_run(op) or not live.values.isdisjoint(op.results)
        return None if used else op.results
    if op not in live.ops:
        return op.results
    if is_loop(op):
        values = zip(op.results, carried(op).args, strict=True)
        kept = [result in live.values or arg in live.values for result, arg in values]
        return _scattered(op, kept, keep(rebuilder, op, kept))
    if op.name != "if":
        return None
    kept = [result in live.values for result in op.results]
    return _scattered(op, kept, _choice(rebuilder, op, kept))


def _scattered(op: Op, kept: list[bool], results: Values) -> Values:
    """New values for all results of an op; dead ones stand for themselves."""
    live = iter(results)
    return tuple(next(live) if keep_ else old
                 for keep_, old in zip(kept, op.results, strict=True))


def _choice(rebuilder: Rebuilder, op: Op, kept: list[bool]) -> Values:
    """An `if` with some of its results."""
    regions = [_yielding(rebuilder, region, kept) for region in op.regions]
    types = tuple(value.type for value in compress(op.results, kept))
    rebuilder.builder.loc = op.loc
    made = rebuilder.builder.emit(op.opdef, rebuilder[op.condition], regions=regions, types=types,
                                  **{**op.attrs, "result_types": types})
    return made if isinstance(made, tuple) else (made,)


def _yielding(rebuilder: Rebuilder, region: Region, kept: list[bool]) -> Region:
    """A region of an `if` that yields some of its values."""
    with rebuilder.builder.region() as (copy, _):
        rebuilder.ops(region.ops[:-1])
        values: tuple[Value, ...] = tuple(compress(region.terminator.values, kept))
        rebuilder.builder.emit(region.terminator.opdef, *(rebuilder[value] for value in values))
    return copy

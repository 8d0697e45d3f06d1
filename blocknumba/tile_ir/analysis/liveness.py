"""Which values and ops a function needs for what it does to the outside."""

from __future__ import annotations

from dataclasses import dataclass, field

from blocknumba.tile_ir.carried import carried, controls, is_loop
from blocknumba.tile_ir.ir import Function, Op, Region, Value
from blocknumba.tile_ir.opdef import EFFECT, PURE, READS, TERMINATOR, WRITES


def must_run(op: Op) -> bool:
    """Whether an op without regions does more than give its results.

    A load has no effect unless it is volatile.
    """
    if op.opdef.has(PURE):
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
    """Marks what is needed; todo holds values whose own needs are still to be marked."""

    def __init__(self):
        self.found = Liveness()
        self._todo: list[Value] = []
        self._arg_of: dict[Value, tuple[Op, int]] = {}  # carried argument -> loop, place
        self._inside: dict[Op, tuple[Op, ...]] = {}  # op with regions -> those around it

    def region(self, region: Region, around: tuple[Op, ...]) -> None:
        """Mark the effects of a region and what decides whether they happen."""
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
                for place, arg in enumerate(carried(op).args):
                    self._arg_of[arg] = op, place
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

    def _carried(self, loop: Op, place: int) -> None:
        """Within a loop, a carried value is what came in, or what the last round handed on."""
        self._runs((*self._inside[loop], loop))
        values = carried(loop)
        self._needs((values.initial[place], values.following[place]))

    def _result(self, op: Op, place: int) -> None:
        if is_loop(op):
            self._carried(op, place)
            return
        self._runs((*self._inside[op], op))
        for region in op.regions:
            yielded = region.terminator.operands
            self._needs(yielded[place:place + 1] if op.name == "if" else yielded)

"""Re-emission of functions: how passes make a changed copy of what they were given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value

Values = tuple[Value, ...]
Rewrite = Callable[["Rebuilder", Op], "Values | None"]


class Rebuilder:
    """Re-emits ops through a builder, with an environment from old values to new ones.

    The rewrite is called with every op, each before its regions.  It emits what it needs on
    self.builder and returns the new values of the op's results; or it returns None, and the op
    is re-emitted.
    """

    def __init__(self, rewrite: Rewrite | None = None, folding: bool = True):
        self.builder = Builder(folding)
        self._rewrite = rewrite
        self._new: dict[Value, Value] = {}

    def __getitem__(self, value: Value) -> Value:
        """The new value of an old one; the old one itself where there is none."""
        return self._new.get(value, value)

    def __setitem__(self, old: Value, new: Value) -> None:
        self._new[old] = new

    @contextmanager
    def apart(self, values: Iterable[Value]) -> Iterator[None]:
        """Context in which old values may get other new values; they are restored after it."""
        before = {value: self._new.get(value) for value in values}
        yield
        for value, new in before.items():
            if new is None:
                self._new.pop(value, None)
            else:
                self._new[value] = new

    def operands(self, op: Op) -> list[Value]:
        """The new operands of an old op."""
        new = self._new
        return [new.get(value, value) for value in op.operands]

    def function(self, fn: Function) -> Function:
        """A copy of a function."""
        self.builder.loc = fn.loc
        return fn.with_body(self.region(fn.body))

    def region(self, region: Region) -> Region:
        """A copy of a region with its arguments."""
        types, hints = [arg.type for arg in region.args], [arg.hint for arg in region.args]
        with self.builder.region(*types, hints=hints) as (copy, args):
            self._new.update(zip(region.args, args, strict=True))
            self.ops(region.ops)
        return copy

    def ops(self, ops: Sequence[Op]) -> None:
        """Copies of ops at the insertion point; their results have new values afterwards."""
        for op in ops:
            self.op(op)

    def op(self, op: Op) -> None:
        """A copy of one op, or what the rewrite emits instead."""
        self.builder.loc = op.loc
        results = None if self._rewrite is None else self._rewrite(self, op)
        if results is None:
            results = self.again(op)
        for old, new in zip(op.results, results, strict=True):
            self._new[old] = new
            # a fold may have returned a value that is named already
            new.hint = new.hint or old.hint

    def again(self, op: Op, regions: Sequence[Region] | None = None) -> Values:
        """An old op emitted with its new operands; its regions are copied unless given.

        Attributes and layouts stay.
        """
        operands = tuple(self.operands(op))
        if regions is None and op.regions:
            regions = [self.region(inner) for inner in op.regions]
        return self.builder.emit_again(op, operands, tuple(regions or ()))


def rebuild(fn: Function, rewrite: Rewrite | None = None, *, folding: bool = True) -> Function:
    """A copy of a function in which a rewrite has replaced some ops."""
    return Rebuilder(rewrite, folding).function(fn)

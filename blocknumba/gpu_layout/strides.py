"""Scalars of a loop that grow by the same from round to round, so that they need not be computed.

As of analysis/affine.py, this holds as long as index arithmetic does not overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.opdef import OPS
from blocknumba.tile_ir.rebuild import Rebuilder
from blocknumba.tile_ir.types import int32

_SUMS = ("add", "sub", "offset")


def scalar_pointers(ops: Iterable[Op]) -> tuple[Value, ...]:
    """The scalar pointers among the results of ops that tiles of pointers are made of by others."""
    ops = tuple(ops)
    used = {value for op in ops if op.results[0].type.shape for value in op.operands}
    return tuple(value for op in ops for value in op.results
                 if value in used and value.type.is_pointer and value.type.is_scalar)


def growths(rebuilder: Rebuilder, loop: Op, values: Iterable[Value]) -> Mapping[Value, Value]:
    """By how much values of a loop grow from round to round, emitted before the loop.

    A `for`; of pointers, in elements.  Values that do not grow by the same are left out.
    """
    finder = _Growths(rebuilder, loop)
    found = {value: finder.of(value) for value in values}
    return {value: growth for value, growth in found.items() if growth is not None}


class _Growths:
    """Takes the arithmetic of a loop's scalars apart."""

    def __init__(self, rebuilder: Rebuilder, loop: Op):
        self._rebuilder = rebuilder
        self._inside = set(loop.regions[0].ops)
        self._counter, *self._carried = loop.regions[0].args
        self._step = rebuilder[loop.operands[2]]

    def of(self, value: Value) -> Value | None:
        """The growth of a value that varies."""
        op, dtype = value.owner, value.type.dtype
        if not value.type.is_pointer and not (dtype.is_signed and dtype.bits >= int32.bits):
            return None  # these may wrap around
        if value is self._counter:
            return self._step
        if op not in self._inside or not (op.name in _SUMS or op.name == "mul"):
            return None
        left, right = op.operands
        if self._varies(left) and self._varies(right):
            return None if op.name == "mul" else self._sum(op, self.of(left), self.of(right))
        varying, other = (left, right) if self._varies(left) else (right, left)
        growth, emit = self.of(varying), self._rebuilder.builder.emit
        if growth is None or op.name in ("add", "offset"):
            return growth
        if op.name == "mul":
            return emit(OPS["mul"], growth, self._rebuilder[other])
        zero = self._rebuilder.builder.constant(0, growth.type.dtype)
        return growth if varying is left else emit(OPS["sub"], zero, growth)

    def _sum(self, op: Op, left: Value | None, right: Value | None) -> Value | None:
        """The growth of the sum or difference of two values that grow."""
        if left is None or right is None or left.type != right.type:
            return None
        return self._rebuilder.builder.emit(OPS["sub" if op.name == "sub" else "add"], left, right)

    def _varies(self, value: Value) -> bool:
        return (value is self._counter or value in self._carried or value.owner in self._inside)

"""Increments of a loop's scalars from one iteration to the next, through additions and products.

Like analysis/affine.py, this assumes that index arithmetic does not overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.types import int32

_ADDITIVE = ("add", "sub", "offset")


def scalar_pointers(ops: Iterable[Op]) -> tuple[Value, ...]:
    """The scalar pointers that some of the ops compute and others make tiles of pointers from."""
    ops = tuple(ops)
    used = {value for op in ops if op.results[0].type.shape for value in op.operands}
    return tuple(value for op in ops for value in op.results
                 if value in used and value.type.is_pointer and value.type.is_scalar)


def increments(rebuilder: Rebuilder, loop: Op, values: Iterable[Value]) -> Mapping[Value, Value]:
    """Emit, before a `for`, the increments of its values from one iteration to the next.

    Increments of pointers are in elements.  Values with varying increments are left out.
    """
    finder = _Increments(rebuilder, loop)
    found = {value: finder.of(value) for value in values}
    return {value: increment for value, increment in found.items() if increment is not None}


class _Increments:
    """Finds increments through the arithmetic of a loop's scalars."""

    def __init__(self, rebuilder: Rebuilder, loop: Op):
        self._rebuilder = rebuilder
        self._inside = set(loop.regions[0].ops)
        self._counter, *self._carried = loop.regions[0].args
        self._step = rebuilder[loop.step]

    def of(self, value: Value) -> Value | None:
        """The increment of a value that varies in the loop; None if it is unknown or varies too."""
        op, dtype = value.owner, value.type.dtype
        if not value.type.is_pointer and not (dtype.is_signed and dtype.bits >= int32.bits):
            return None  # these may wrap around
        if value is self._counter:
            return self._step
        if op not in self._inside or not (op.name in _ADDITIVE or op.name == "mul"):
            return None
        left, right = (op.pointer, op.count) if op.name == "offset" else (op.x, op.y)
        if self._varies(left) and self._varies(right):
            return None if op.name == "mul" else self._sum(op, self.of(left), self.of(right))
        varying, other = (left, right) if self._varies(left) else (right, left)
        increment, emit = self.of(varying), self._rebuilder.builder.emit
        if increment is None or op.name in ("add", "offset"):
            return increment
        if op.name == "mul":
            return emit(OPS["mul"], increment, self._rebuilder[other])
        zero = self._rebuilder.builder.constant(0, increment.type.dtype)
        return increment if varying is left else emit(OPS["sub"], zero, increment)

    def _sum(self, op: Op, left: Value | None, right: Value | None) -> Value | None:
        """The increment of the sum or difference of two values that vary."""
        if left is None or right is None or left.type != right.type:
            return None
        return self._rebuilder.builder.emit(OPS["sub" if op.name == "sub" else "add"], left, right)

    def _varies(self, value: Value) -> bool:
        return (value is self._counter or value in self._carried or value.owner in self._inside)

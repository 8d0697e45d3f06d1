"""Folds of products of matrices."""

from __future__ import annotations

from blocknumba.tile_ir.builder import Builder
from blocknumba.tile_ir.folds.patterns import is_counted, number
from blocknumba.tile_ir.ir import Op, Value
from blocknumba.tile_ir.ops import dot as family


@family.dot.fold
def _(_: Builder, op: Op) -> Value | None:
    """A product with zeros adds nothing, of integers: of floats, 0 times infinity is NaN."""
    a, b, acc = op.operands
    return acc if is_counted(a.type) and 0 in (number(a), number(b)) else None

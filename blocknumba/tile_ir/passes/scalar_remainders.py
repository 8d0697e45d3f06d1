"""Remainders of tiles become remainders of their starts.

    (start + arange(0, 128)) % M   ->   start % M + arange(0, 128)

This holds when `start` and `M` are multiples of 128: no tile wraps around within itself.  Then the
indices are known to rise by 1, so that accesses are wide and TMA can be used.
"""

from __future__ import annotations

from blocknumba.tile_ir.analysis.axis import power_of_two_in
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.folds.patterns import made_by, number, splatted
from blocknumba.tile_ir.ir.builder import Builder, rearranged_from
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import OPS
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.passes.contract import declared


@declared(reads=("ops",), writes=("ops",))
def scalar_remainders(fn: Function, _: object = None) -> Function:
    """Take the remainder of a tile's start, where no tile wraps around within itself."""
    if not any(map(_is_remainder, walk(fn.body))):
        return fn
    return rebuild(fn, _Remainders(fn))


class _Remainders:
    """The rewrite; knows the axis info and the ranges of the old values."""

    def __init__(self, fn: Function):
        self._infos = AxisInfos(fn)

    def __call__(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        index = made_by(op.x, "add") if _is_remainder(op) else None
        if index is None or not self._is_positive(op):
            return None
        for repeated, within in (index.operands, reversed(index.operands)):
            start = _scalar(repeated)
            if start is None or not self._is_whole(op, start, within):
                continue
            builder = rebuilder.builder
            rest = builder.emit(op.opdef, rebuilder[start], _modulus(rebuilder, op))
            tile = splatted(builder, rest, op.result.type.shape)
            return (builder.emit(OPS["add"], tile, rebuilder[within]),)
        return None

    def _is_positive(self, op: Op) -> bool:
        """Whether the divisor is positive.  That of `and` is a mask, the largest remainder."""
        return self._infos.ranges[op.y].low > 0

    def _is_whole(self, op: Op, start: Value, within: Value) -> bool:
        """Whether start + within lie between two neighbouring multiples of the divisor."""
        indices = self._infos.ranges[within]
        divisor = self._infos[op.y].axes[0].divisibility
        if op.name == "and":
            divisor = power_of_two_in(number(op.y) + 1)
        step = min(self._infos[start].axes[0].divisibility, divisor)
        return 0 <= indices.low and indices.high < step


def _is_remainder(op: Op) -> bool:
    """Whether it is a remainder of a tile of integers; by a power of two, it is a mask."""
    if op.name not in ("mod", "and") or not op.result.type.shape:
        return False
    if not op.result.type.dtype.is_integer:
        return False
    divisor = number(op.y)
    if op.name == "and":
        return divisor is not None and divisor > 0 and not divisor & divisor + 1
    return divisor is not None or _scalar(op.y) is not None


def _scalar(tile: Value) -> Value | None:
    """The scalar that a tile repeats; None for other tiles."""
    source = rearranged_from(tile)
    return None if source.type.shape else source


def _modulus(rebuilder: Rebuilder, op: Op) -> Value:
    """The second operand of a tile's remainder, as a scalar."""
    builder: Builder = rebuilder.builder
    known = number(op.y)
    if known is not None:
        return builder.constant(known, op.result.type.dtype)
    return rebuilder[_scalar(op.y)]

"""Masks and clamps of indices whose effect a few elements tell: those at the corners of a tile.

    index < n                 true throughout if it is true for the last element of rising indices
    index >= n                if it is for the first one
    minimum(index, n - 1)     changes no index if it changes neither the first nor the last one
"""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.tile_ir.analysis.affine import is_index
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.folds.patterns import Answers, made_by, number
from blocknumba.tile_ir.ir.builder import rearranged_from
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import REARRANGES

Corner = tuple[Value, bool]  # the last element of a tile, or its first one

CLAMPS = ("minimum", "maximum")


def corners(infos: AxisInfos, mask: Value) -> list[Corner] | None:
    """Elements of masks that, if all are true, make a mask true throughout; None if there are none.
    """
    axes, owner = infos[mask].axes, mask.owner
    if all(axis.bounded >= n for axis, n in zip(axes, mask.type.shape)):
        return [(mask, True)]
    if owner is None:
        return None
    if owner.opdef.has(REARRANGES):
        return corners(infos, owner.x)
    if owner.name == "and":
        both = [corners(infos, part) for part in (owner.x, owner.y)]
        return None if None in both else both[0] + both[1]
    if owner.name in ("ge", "gt", "le", "lt"):
        is_greater = owner.name in ("ge", "gt")
        greater, less = (owner.x, owner.y) if is_greater else (owner.y, owner.x)
        if _is_one_number(less) and rises(greater):
            return [(mask, False)]
        if _is_one_number(greater):
            return _corners_below(infos, mask, less, greater)
    return None


def _corners_below(infos: AxisInfos, mask: Value, index: Value,
                   bound: Value) -> list[Corner] | None:
    """Of a mask `index < bound`.  As unsigned numbers, indices below 0 are great."""
    owner = index.owner
    if rises(index):
        return [(mask, True)]
    if owner is None or owner.name != "cast" or not rises(owner.x):
        return None
    signed, unsigned = owner.x.type.dtype, index.type.dtype
    if (signed.is_signed and signed.bits == unsigned.bits
            and infos.ranges[bound].high < 1 << signed.bits - 1):
        return [(mask, False), (mask, True)]
    return None


def clamped(op: Op) -> Value | None:
    """The indices that a minimum or maximum with one number clamps; None of other ops."""
    if op.name not in CLAMPS or not op.result.type.dtype.is_integer:
        return None
    for index, bound in ((op.x, op.y), (op.y, op.x)):
        if _is_one_number(bound) and not _is_one_number(index) and rises(index):
            return index
    return None


def rises(value: Value) -> bool:
    """Whether integers never fall, from each element to the next along any axis."""
    return Answers(_rises, False)(value)


def _rises(value: Value, ask: Callable[[Value], bool]) -> bool:
    owner = value.owner
    if _is_one_number(value) or owner is not None and owner.name == "arange":
        return True
    if owner is None or not value.type.dtype.is_integer:
        return False
    if owner.name in ("broadcast", "reshape"):
        return ask(owner.x)
    if owner.name == "cast":
        source, to = owner.x.type.dtype, value.type.dtype
        is_wide = source.is_integer and to.bits >= source.bits and to.is_signed == source.is_signed
        return is_wide and ask(owner.x)
    if owner.name in ("add", *CLAMPS):
        return ask(owner.x) and ask(owner.y)
    if owner.name == "mul":
        return is_index(value.type.dtype) and any(_constant(factor) >= 0 and ask(x)
                   for x, factor in ((owner.x, owner.y), (owner.y, owner.x)))
    if owner.name == "floordiv":
        return _constant(owner.y) > 0 and ask(owner.x)
    if owner.name == "shr":
        return _is_one_number(owner.y) and ask(owner.x)
    return owner.name == "sub" and _is_one_number(owner.y) and ask(owner.x)


def _constant(value: Value) -> int:
    """A constant of a whole tile; -1 for other values."""
    value = rearranged_from(value)
    while hint := made_by(value, "hint"):
        value = rearranged_from(hint.x)
    known = number(value)
    return -1 if known is None else known


def _is_one_number(value: Value) -> bool:
    while value.owner is not None and value.owner.name in ("broadcast", "reshape"):
        value = value.owner.x
    return not value.type.shape or value.owner is not None and value.owner.name == "splat"

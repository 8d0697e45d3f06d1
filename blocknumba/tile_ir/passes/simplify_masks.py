"""The pass that makes masks cheaper, or removes them, by what is known of indices.

An access of the array dialect is masked by `index >= 0 & index < extent` on each axis.  Per element
that is four instructions and two predicates; worse, a mask that is really needed keeps an access
from being moved or merged.  Three things are done:

1. A comparison that the ranges of its operands decide is a constant: `arange(128) >= 0`.
2. `index >= 0 & index < extent`, where extent is never negative, is one unsigned comparison: a
   negative index is greater than every extent when both are taken as unsigned.
3. Of a conjunction, parts that were broadcast from one shape are combined before they are
   broadcast: the rows' mask is computed per row.
"""

from __future__ import annotations

from functools import reduce

from blocknumba.tile_ir.analysis.ranges import Ranges
from blocknumba.tile_ir.folds.patterns import filled, is_counted, made_by, number
from blocknumba.tile_ir.ir.function import Function, Op, Value, walk
from blocknumba.tile_ir.ir.opdef import OPS, PURE
from blocknumba.tile_ir.ir.rebuild import Rebuilder, Values, rebuild
from blocknumba.tile_ir.ir.types import BOOL
from blocknumba.tile_ir.ir.uses import Uses
from blocknumba.tile_ir.passes.contract import declared


@declared(reads=("ops",), writes=("ops",))
def simplify_masks(fn: Function, _: object = None) -> Function:
    """Decide comparisons by ranges, and bound an index from both sides by one comparison."""
    return rebuild(fn, _Simplifier(fn))


class _Simplifier:
    """A rewrite; knows the ranges of the old values, and which conjunctions are parts of others."""

    def __init__(self, fn: Function):
        self._ranges = Ranges(fn)
        self._parts = _parts_of_conjunctions(fn)

    def __call__(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        if not op.opdef.has(PURE) or len(op.results) != 1 or not is_counted(op.result.type):
            return None
        known = self._ranges[op.result]
        if known.low == known.high and op.operands and op.name != "splat":
            value = bool(known.low) if op.result.type.dtype.kind == BOOL else known.low
            return (filled(rebuilder.builder, op.result.type, value),)
        if _is_conjunction(op) and op.result not in self._parts:
            return self._conjunction(rebuilder, op)
        return None

    def _conjunction(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        """The parts of `a & b & ...`: bounds in pairs, then by the shape they are repeated from."""
        parts = [part for part in dict.fromkeys(self._flat(op)) if self._ranges[part].low == 0]
        groups: dict[tuple[int, ...] | None, list[Value]] = {}
        for part in parts:
            repeated = made_by(part, "broadcast")
            shape = repeated.x.type.shape if repeated else None
            groups.setdefault(shape, []).append(part)
        combined, paired = [], False
        for group in groups.values():
            values = self._paired(rebuilder, group)
            paired = paired or len(values) < len(group)
            combined.append(_all(rebuilder, values))
        if not paired and len(groups) == len(parts):
            return None
        return (_all(rebuilder, combined),)

    def _flat(self, op: Op) -> list[Value]:
        """The parts of a conjunction, from left to right."""
        parts, todo = [], list(reversed(op.operands))
        while todo:
            value = todo.pop()
            if value in self._parts and value.owner is not None and _is_conjunction(value.owner):
                todo += reversed(value.owner.operands)
            else:
                parts.append(value)
        return parts

    def _paired(self, rebuilder: Rebuilder, parts: list[Value]) -> list[Value]:
        """New values for parts; `x >= 0` and `x < n` together become one."""
        lower = {op.x: part for part in parts
                 if (op := _compared(part, "ge")) and number(op.y) == 0}
        values, dropped = [], set()
        for part in parts:
            op = _compared(part, "lt")
            if op is None or op.x not in lower or self._ranges[op.y].low < 0:
                continue
            dropped |= {part, lower[op.x]}
            values.append(_unsigned(rebuilder, part, op))
        return values + [rebuilder[part] for part in parts if part not in dropped]


def _is_conjunction(op: Op) -> bool:
    return op.name == "and" and op.result.type.dtype.kind == BOOL


def _parts_of_conjunctions(fn: Function) -> set[Value]:
    """Values whose only use is in a conjunction."""
    uses = Uses(fn)
    within = {value for op in walk(fn.body) if op.name == "and" for value in op.operands}
    return {value for value in within if len(uses.users(value)) == 1}


def _wrappers(part: Value) -> list[Op]:
    """The broadcasts and reshapes between a part and what they rearrange, the last one first."""
    found = []
    while op := made_by(part, "broadcast") or made_by(part, "reshape"):
        found.append(op)
        part = op.x
    return found


def _compared(part: Value, name: str) -> Op | None:
    """The comparison of signed integers that a part is, rearranged or not."""
    wrappers = _wrappers(part)
    op = made_by(wrappers[-1].x if wrappers else part, name)
    return op if op and op.x.type.dtype.kind == "int" else None


def _unsigned(rebuilder: Rebuilder, part: Value, op: Op) -> Value:
    """The comparison of a part, of the same bits taken as unsigned."""
    builder = rebuilder.builder
    index, bound = (builder.emit(OPS["cast"], rebuilder[value], dtype=f"u{value.type.dtype}")
                    for value in (op.x, op.y))
    inside = builder.emit(OPS["lt"], index, bound)
    for wrapper in reversed(_wrappers(part)):
        inside = builder.emit(wrapper.opdef, inside, shape=wrapper.result.type.shape)
    return inside


def _all(rebuilder: Rebuilder, values: list[Value]) -> Value:
    """The conjunction of values."""
    return reduce(lambda x, y: rebuilder.builder.emit(OPS["and"], x, y), values)

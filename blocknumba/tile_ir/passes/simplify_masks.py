"""Mask simplification: masks become cheaper, or go, by the ranges of indices.

An access of the array dialect is masked by `index >= 0 & index < extent` on each axis.  That is
four instructions and two predicates per element, and a mask that stays keeps an access from being
moved or merged.  Three things are done:

1. A comparison that the ranges of its operands decide is a constant: `arange(128) >= 0`.
2. `index >= 0 & index < extent`, where extent is never negative, is one unsigned comparison: a
   negative index is greater than every extent when both are taken as unsigned.
3. Conjuncts that were broadcast from one shape are combined before they are broadcast: the rows'
   mask is computed per row.
"""

from __future__ import annotations

from functools import reduce

from blocknumba.tile_ir.analysis.ranges import Ranges
from blocknumba.tile_ir.folds.patterns import conjuncts, filled, is_counted, made_by, number
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
    """The rewrite; knows the ranges of the old values, and which values are only conjuncts."""

    def __init__(self, fn: Function):
        self._ranges = Ranges(fn)
        self._conjuncts = _conjuncts_of(fn)

    def __call__(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        if not op.opdef.has(PURE) or len(op.results) != 1 or not is_counted(op.result.type):
            return None
        known = self._ranges[op.result]
        if known.low == known.high and op.operands and op.name != "splat":
            value = bool(known.low) if op.result.type.dtype.kind == BOOL else known.low
            return (filled(rebuilder.builder, op.result.type, value),)
        if _is_conjunction(op) and op.result not in self._conjuncts:
            return self._conjunction(rebuilder, op)
        return None

    def _conjunction(self, rebuilder: Rebuilder, op: Op) -> Values | None:
        """`a & b & ...` anew: bounds in pairs, grouped by the shape they are broadcast from."""
        found = conjuncts(op.result, lambda value: value is op.result or value in self._conjuncts)
        tests = [test for test in found if self._ranges[test].low == 0]
        groups: dict[tuple[int, ...] | None, list[Value]] = {}
        for test in tests:
            repeated = made_by(test, "broadcast")
            shape = repeated.x.type.shape if repeated else None
            groups.setdefault(shape, []).append(test)
        combined, paired = [], False
        for group in groups.values():
            values = self._paired(rebuilder, group)
            paired = paired or len(values) < len(group)
            combined.append(_all(rebuilder, values))
        if not paired and len(groups) == len(tests):
            return None
        return (_all(rebuilder, combined),)

    def _paired(self, rebuilder: Rebuilder, tests: list[Value]) -> list[Value]:
        """New values for tests; `x >= 0` and `x < n` together become one."""
        lower = {op.x: test for test in tests
                 if (op := _compared(test, "ge")) and number(op.y) == 0}
        values, dropped = [], set()
        for test in tests:
            op = _compared(test, "lt")
            if op is None or op.x not in lower or self._ranges[op.y].low < 0:
                continue
            dropped |= {test, lower[op.x]}
            values.append(_unsigned(rebuilder, test, op))
        return values + [rebuilder[test] for test in tests if test not in dropped]


def _is_conjunction(op: Op) -> bool:
    return op.name == "and" and op.result.type.dtype.kind == BOOL


def _conjuncts_of(fn: Function) -> set[Value]:
    """Values whose only use is in a conjunction."""
    uses = Uses(fn)
    within = {value for op in walk(fn.body) if op.name == "and" for value in op.operands}
    return {value for value in within if len(uses.users(value)) == 1}


def _wrappers(conjunct: Value) -> list[Op]:
    """The broadcasts and reshapes that lead to a conjunct, the last one first."""
    found = []
    while op := made_by(conjunct, "broadcast") or made_by(conjunct, "reshape"):
        found.append(op)
        conjunct = op.x
    return found


def _compared(conjunct: Value, name: str) -> Op | None:
    """The comparison of signed integers that a conjunct is, rearranged or not."""
    wrappers = _wrappers(conjunct)
    op = made_by(wrappers[-1].x if wrappers else conjunct, name)
    return op if op and op.x.type.dtype.kind == "int" else None


def _unsigned(rebuilder: Rebuilder, conjunct: Value, op: Op) -> Value:
    """The comparison of a conjunct, of the same bits taken as unsigned."""
    builder = rebuilder.builder
    index, bound = (builder.emit(OPS["cast"], rebuilder[value], dtype=f"u{value.type.dtype}")
                    for value in (op.x, op.y))
    inside = builder.emit(OPS["lt"], index, bound)
    for wrapper in reversed(_wrappers(conjunct)):
        inside = builder.emit(wrapper.opdef, inside, shape=wrapper.result.type.shape)
    return inside


def _all(rebuilder: Rebuilder, values: list[Value]) -> Value:
    """The conjunction of values."""
    return reduce(lambda x, y: rebuilder.builder.emit(OPS["and"], x, y), values)

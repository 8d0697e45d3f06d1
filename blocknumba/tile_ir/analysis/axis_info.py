"""The axis info analysis: an AxisInfo for every value of a function; axis.py defines the terms."""

from __future__ import annotations

from blocknumba.tile_ir.analysis.axis import (
    MAX_DIVISIBILITY, Axis, AxisInfo, power_of_two_in, unit_of, unknown,
)
from blocknumba.tile_ir.analysis.axis_rules import RULES, of_elements, of_unknown_op
from blocknumba.tile_ir.analysis.ranges import Ranges
from blocknumba.tile_ir.folds.patterns import conjuncts
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value
from blocknumba.tile_ir.ir.opdef import PURE
from blocknumba.tile_ir.ir.uses import carried
from blocknumba.tile_ir.ops.views import elements, raised_elements


class AxisInfos:
    """infos[value]: the AxisInfo of a value of a function."""

    def __init__(self, fn: Function):
        self.ranges = Ranges(fn)
        self._found: dict[Value, AxisInfo] = {}
        for parameter, arg in zip(fn.parameters, fn.body.args, strict=True):
            self._found[arg] = AxisInfo((Axis(1, power_of_two_in(parameter.divisibility), 1),))
        self._region(fn.body)

    def __getitem__(self, value: Value) -> AxisInfo:
        found = self._found.get(value)
        return unknown(value) if found is None else found

    def access_width(self, pointer: Value, mask: Value | None, axis: int) -> int:
        """Elements along an axis that one access may take: contiguous, aligned, under one mask."""
        along = self[pointer].axes[axis]
        width = min(along.contiguity, along.divisibility // pointer.type.dtype.pointee.bytes)
        if mask is not None:
            width = min(width, self[mask].axes[axis].constancy)
        return max(1, width)

    def guarded_width(self, pointer: Value, mask: Value, axis: int) -> int:
        """Elements along an axis that one access may take where their mask is true throughout.

        The mask is true up to one of them and false from there on: it is true throughout if it
        is true for the last.
        """
        return max(1, min(self.access_width(pointer, None, axis), self[mask].axes[axis].bounded))

    def whole_width(self, pointer: Value, mask: Value, axis: int) -> int:
        """Elements along an axis that one load may take where their mask is true for the first.

        As guarded_width, of masks that end amid so many only where a position is compared with a
        position (columns up to the row): what follows is in the array, as far as bounds say.
        """
        return min(self.guarded_width(pointer, mask, axis), *(
            self[test].axes[axis].constancy for test in conjuncts(mask)
            if not _compares_positions(test)), MAX_DIVISIBILITY)

    def _region(self, region: Region) -> None:
        for op in region.ops:
            if op.regions:
                self._control(op)
                continue
            if op.opdef is elements:
                self._found[op.results[0]] = of_elements(self, op)
                continue
            if op.opdef is raised_elements:
                for result, same in zip(op.results, (op.pointer, op.inside), strict=True):
                    self._found[result] = self[same]
                continue
            rule = RULES.get(op.name, of_unknown_op)
            for value in op.results:
                self._found[value] = rule(self, op)

    def _control(self, op: Op) -> None:
        if op.name == "for":
            start, step = self[op.start].axes[0], self[op.step].axes[0]
            counter = Axis(1, min(start.divisibility, step.divisibility), 1)
            self._found[op.regions[0].args[0]] = AxisInfo((counter,))
            self._loop(op)
        elif op.name == "loop":
            self._loop(op)
        else:
            self._alternatives(op)

    def _alternatives(self, op: Op) -> None:
        """Results of an `if`: the join of what its regions yield; of other ops nothing is known."""
        for region in op.regions:
            self._region(region)
        if op.name != "if":
            return
        one, other = (region.terminator.values for region in op.regions)
        for result, a, b in zip(op.results, one, other, strict=True):
            self._found[result] = self[a].joined(self[b], unit_of(result))

    def _loop(self, op: Op) -> None:
        """Loop-carried values: the info of the initial ones, joined until a fixed point."""
        (region,), values = op.regions, carried(op)
        for arg, value in zip(values.args, values.initial, strict=True):
            # an enclosing loop comes here again, knowing less each time
            before = self._found.get(arg, self[value])
            self._found[arg] = before.joined(self[value], unit_of(arg))
        weakened = True
        while weakened:
            self._region(region)
            weakened = False
            for arg, value in zip(values.args, values.following, strict=True):
                before = self._found[arg]
                after = before.joined(self[value], unit_of(arg))
                weakened = weakened or after != before
                self._found[arg] = after
        # `for` may make no iteration; then the results are the initial values
        last = values.args if op.name == "for" else values.following
        for result, value in zip(op.results, last, strict=True):
            self._found[result] = self[value]


def _compares_positions(test: Value) -> bool:
    return (test.owner is not None and test.owner.name in ("lt", "le", "gt", "ge")
            and all(map(_is_position, test.owner.operands)))


def _is_position(value: Value) -> bool:
    """Whether an integer counts elements of the tile: of an arange, and nothing that is loaded."""
    met, left = set(), [value]
    while left:
        op = left.pop().owner
        if op is None or op in met:
            continue
        if not op.opdef.has(PURE):
            return False
        met.add(op)
        left += op.operands
    return any(op.name == "arange" for op in met)


def axis_info(fn: Function) -> AxisInfos:
    """The AxisInfo of every value of a function."""
    return AxisInfos(fn)

"""The analysis that finds the AxisInfo of every value of a function; axis.py says what that is."""

from __future__ import annotations

from blocknumba.tile_ir.analysis.axis import Axis, AxisInfo, power_of_two_in, unit_of, unknown
from blocknumba.tile_ir.analysis.axis_rules import RULES, of_unknown_op
from blocknumba.tile_ir.analysis.ranges import Ranges
from blocknumba.tile_ir.ir.function import Function, Op, Region, Value


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
        """How many neighbours along an axis one access can take: aligned, contiguous, one mask."""
        along = self[pointer].axes[axis]
        width = min(along.contiguity, along.divisibility // pointer.type.dtype.pointee.bytes)
        if mask is not None:
            width = min(width, self[mask].axes[axis].constancy)
        return max(1, width)

    def guarded_width(self, pointer: Value, mask: Value, axis: int) -> int:
        """How many neighbours along an axis one access can take if their mask is all true.

        The mask is true of the first of them, or of none; so it is all true if the last is.
        """
        return max(1, min(self.access_width(pointer, None, axis), self[mask].axes[axis].bounded))

    def _region(self, region: Region) -> None:
        for op in region.ops:
            if op.regions:
                self._control(op)
                continue
            rule = RULES.get(op.name, of_unknown_op)
            for value in op.results:
                self._found[value] = rule(self, op)

    def _control(self, op: Op) -> None:
        if op.name == "for":
            start, step = self[op.operands[0]].axes[0], self[op.operands[2]].axes[0]
            counter = Axis(1, min(start.divisibility, step.divisibility), 1)
            self._found[op.regions[0].args[0]] = AxisInfo((counter,))
            self._loop(op, op.operands[3:], 1, 0)
        elif op.name == "loop":
            self._loop(op, op.operands, 0, 1)
        else:
            self._alternatives(op)

    def _alternatives(self, op: Op) -> None:
        """The results are what one of the regions yields; of other ops nothing is known."""
        for region in op.regions:
            self._region(region)
        if op.name != "if":
            return
        one, other = (region.terminator.operands for region in op.regions)
        for result, a, b in zip(op.results, one, other, strict=True):
            self._found[result] = self[a].joined(self[b], unit_of(result))

    def _loop(self, op: Op, initial: tuple[Value, ...], first: int, skipped: int) -> None:
        """Carried values: what holds of the initial ones, weakened until it holds of the next.

        first: index of the first carried argument of the region; skipped: operands of its
        terminator before the carried ones.
        """
        (region,) = op.regions
        carried = region.args[first:]
        for arg, value in zip(carried, initial, strict=True):
            # an enclosing loop comes here again, knowing less each time
            before = self._found.get(arg, self[value])
            self._found[arg] = before.joined(self[value], unit_of(arg))
        weakened = True
        while weakened:
            self._region(region)
            weakened = False
            following = region.terminator.operands[skipped:]
            for arg, value in zip(carried, following, strict=True):
                before = self._found[arg]
                after = before.joined(self[value], unit_of(arg))
                weakened = weakened or after != before
                self._found[arg] = after
        for result, arg, value in zip(op.results, carried, following, strict=True):
            # `for` may run no round at all; then the results are the initial values
            self._found[result] = self._found[arg] if first else self[value]


def axis_info(fn: Function) -> AxisInfos:
    """The AxisInfo of every value of a function."""
    return AxisInfos(fn)

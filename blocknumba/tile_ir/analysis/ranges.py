"""Ranges of integer values: the lowest and the highest that any element can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blocknumba.tile_ir.ir.function import Function, Op, Parameter, Region, Value
from blocknumba.tile_ir.ir.opdef import OpTable, attribute
from blocknumba.tile_ir.ir.types import BOOL, DType, TileType
from blocknumba.tile_ir.ir.uses import Carried, carried, is_loop

# Launch limits of every CUDA device so far: programs along each grid axis.
# Source: CUDA Programming Guide, "Technical Specifications per Compute Capability".
MAX_PROGRAMS = (2**31 - 1, 65535, 65535)

_ITERATIONS_BEFORE_WIDENING = 3


@dataclass(frozen=True, slots=True)
class Range:
    """Every element is in [low, high], both included."""

    low: int
    high: int

    def joined(self, other: Range) -> Range:
        """The smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def met(self, other: Range) -> Range:
        """The intersection; self where it is empty (the code is never reached)."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Range(low, high) if low <= high else self


class Ranges:
    """ranges[value]: the range of an integer or bool value of a function."""

    def __init__(self, fn: Function):
        self._found: dict[Value, Range] = {}
        self._assumed: list[tuple[Value, Range]] = []  # ranges from before each assume
        for parameter, arg in zip(fn.parameters, fn.body.args, strict=True):
            if _is_counted(arg.type):
                self._found[arg] = _parameter_range(parameter, arg.type.dtype)
        self._region(fn.body)

    def __getitem__(self, value: Value) -> Range:
        found = self._found.get(value)
        return whole(value.type.dtype) if found is None else found

    def _region(self, region: Region) -> None:
        outer, self._assumed = self._assumed, []
        for op in region.ops:
            self._op(op)
        # a region may not be run at all: its assumptions on outer values end with it
        while self._assumed:
            value, before = self._assumed.pop()
            self._found[value] = before
        self._assumed = outer

    def _op(self, op: Op) -> None:
        if op.regions:
            self._control(op)
            return
        if op.name == "assume":
            self._assume(op.condition.owner)
            return
        rule = RULES.get(op.name)
        if rule is None or len(op.results) != 1 or not _is_counted(op.result.type):
            return
        exact, dtype = rule(self, op), op.result.type.dtype
        if exact is not None and dtype.minimum <= exact.low and exact.high <= dtype.maximum:
            self._found[op.result] = exact
        else:
            self._found.pop(op.result, None)  # of an earlier iteration over an enclosing loop

    def _control(self, op: Op) -> None:
        if op.name == "if":
            for region in op.regions:
                self._region(region)
            yielded = [region.terminator.values for region in op.regions]
            self._join(op.results, *yielded)
        elif is_loop(op):
            self._loop(op)
        else:
            for region in op.regions:
                self._region(region)

    def _loop(self, op: Op) -> None:
        """Ranges of loop-carried values: joined to a fixed point, widened after a few visits."""
        (region,), values = op.regions, carried(op)
        if op.name == "for":
            self._found[region.args[0]] = self._induction(op.start, op.stop, op.step)
        for arg, value in zip(values.args, values.initial, strict=True):
            if _is_counted(arg.type):
                # an enclosing loop comes here again, with ranges that have only grown
                self._found[arg] = self[value].joined(self._found.get(arg, self[value]))
        iterations = 0
        while self._grow(region, values, iterations >= _ITERATIONS_BEFORE_WIDENING):
            iterations += 1
        if op.name == "for":  # which may make no iteration
            self._join(op.results, values.initial, values.following)
        else:
            self._join(op.results, values.following)

    def _grow(self, region: Region, values: Carried, widen: bool) -> bool:
        """Visit a loop's region once; whether a loop-carried value got a wider range from it."""
        self._region(region)
        grown = False
        for arg, value in zip(values.args, values.following, strict=True):
            if not _is_counted(arg.type):
                continue
            before = self[arg]
            after = before.joined(self[value])
            if after != before:
                grown = True
                self._found[arg] = _widened(before, after, arg.type.dtype) if widen else after
        return grown

    def _join(self, targets: tuple[Value, ...], *sources: tuple[Value, ...]) -> None:
        """Each target is one of the values at its index in the sources."""
        for target, *values in zip(targets, *sources, strict=True):
            if not _is_counted(target.type):
                continue
            joined = self[values[0]]
            for value in values[1:]:
                joined = joined.joined(self[value])
            self._found[target] = joined

    def _induction(self, start: Value, stop: Value, step: Value) -> Range:
        """Range of a `for`'s counter, which never reaches stop."""
        first, last, stride = self[start], self[stop], self[step]
        if stride.low > 0:
            return Range(first.low, max(first.low, last.high - 1))
        if stride.high < 0:
            return Range(min(first.high, last.low + 1), first.high)
        return first.joined(last)

    def _assume(self, op: Op | None) -> None:
        """Narrow ranges by an assumed comparison; the program is undefined where it is false."""
        if op is None:
            return
        if op.name == "and":
            for operand in op.operands:
                self._assume(operand.owner)
        if op.name not in _MIRRORED or not op.x.type.dtype.is_integer:
            return
        left, right = op.x, op.y
        bounds = self[left], self[right]
        dtype = left.type.dtype
        self._constrain(left, _bounded(op.name, dtype, bounds[1]))
        self._constrain(right, _bounded(_MIRRORED[op.name], dtype, bounds[0]))

    def _constrain(self, value: Value, range_: Range) -> None:
        before = self[value]
        self._assumed.append((value, before))
        self._found[value] = before.met(range_)


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def whole(dtype: DType) -> Range:
    """Every value of a dtype."""
    return Range(dtype.minimum, dtype.maximum)


def _is_counted(type_: TileType) -> bool:
    return not type_.is_pointer and (type_.dtype.is_integer or type_.dtype.kind == BOOL)


def _parameter_range(parameter: Parameter, dtype: DType) -> Range:
    lowest = 0 if parameter.kind == "extent" else dtype.minimum
    if parameter.minimum is not None:
        lowest = max(lowest, parameter.minimum)
    return Range(lowest, dtype.maximum)


def _widened(before: Range, after: Range, dtype: DType) -> Range:
    """after, with each bound that moved widened; 0 is tried first, as loops count from it."""
    low = before.low if after.low == before.low else 0 if after.low >= 0 else dtype.minimum
    return Range(low, before.high if after.high == before.high else dtype.maximum)


def _bounded(comparison: str, dtype: DType, other: Range) -> Range:
    """The range of x where `x comparison y` and y is in other."""
    low, high = dtype.minimum, dtype.maximum
    if comparison in ("ge", "gt", "eq"):
        low = other.low + (comparison == "gt")
    if comparison in ("le", "lt", "eq"):
        high = other.high - (comparison == "lt")
    return Range(low, high)


# rules: (ranges, op) -> the range before the result is wrapped to its dtype; None: anything -----

Rule = Callable[[Ranges, Op], Range | None]


def _corners(combine: Callable[[int, int], int]) -> Rule:
    """The rule of an operation whose extremes are at the bounds of its operands."""

    def rule(ranges: Ranges, op: Op) -> Range:
        left, right = ranges[op.x], ranges[op.y]
        values = [combine(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
        return Range(min(values), max(values))

    return rule


def _sub(ranges: Ranges, op: Op) -> Range:
    left, right = ranges[op.x], ranges[op.y]
    return Range(left.low - right.high, left.high - right.low)


def _floordiv(ranges: Ranges, op: Op) -> Range | None:
    if ranges[op.y].low <= 0:
        return None
    return _corners(int.__floordiv__)(ranges, op)


def _truncdiv(ranges: Ranges, op: Op) -> Range | None:
    return _floordiv(ranges, op) if ranges[op.x].low >= 0 else None


def _truncmod(ranges: Ranges, op: Op) -> Range | None:
    dividend, divisor = ranges[op.x], ranges[op.y]
    greatest = max(max(abs(divisor.low), abs(divisor.high)) - 1, 0)
    return Range(max(-greatest, min(dividend.low, 0)), min(greatest, max(dividend.high, 0)))


def _mod(ranges: Ranges, op: Op) -> Range | None:
    dividend, divisor = ranges[op.x], ranges[op.y]
    if divisor.low < 0:
        return None
    high = max(divisor.high - 1, 0)
    return Range(0, min(high, dividend.high) if dividend.low >= 0 else high)


def _and(ranges: Ranges, op: Op) -> Range | None:
    known = [r.high for r in (ranges[value] for value in op.operands) if r.low >= 0]
    return Range(0, min(known)) if known else None


def _or(ranges: Ranges, op: Op) -> Range | None:
    left, right = ranges[op.x], ranges[op.y]
    if min(left.low, right.low) < 0:
        return None
    return Range(0, (1 << max(left.high, right.high).bit_length()) - 1)


def _shift(combine: Callable[[int, int], int]) -> Rule:
    def rule(ranges: Ranges, op: Op) -> Range | None:
        count = ranges[op.y]
        if count.low < 0 or count.high >= op.result.type.dtype.bits:
            return None
        return _corners(combine)(ranges, op)

    return rule


def _absolute(ranges: Ranges, op: Op) -> Range:
    x = ranges[op.x]
    lowest = 0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
    return Range(lowest, max(abs(x.low), abs(x.high)))


def _neg(ranges: Ranges, op: Op) -> Range:
    x = ranges[op.x]
    return Range(-x.high, -x.low)


def _same(ranges: Ranges, op: Op) -> Range | None:
    source = op.x
    return ranges[source] if _is_counted(source.type) else None


def _select(ranges: Ranges, op: Op) -> Range:
    return ranges[op.x].joined(ranges[op.y])


def _join(ranges: Ranges, op: Op) -> Range:
    return ranges[op.x].joined(ranges[op.y])


def _reduce(ranges: Ranges, op: Op) -> Range | None:
    kind = attribute(op, "kind")
    keeps = kind in ("max", "min") or kind != "xor" and op.result.type.dtype.kind == BOOL
    return _same(ranges, op) if keeps else None


def _arg_reduce(_: Ranges, op: Op) -> Range:
    return Range(0, op.x.type.shape[attribute(op, "axis")] - 1)


def _constant(_: Ranges, op: Op) -> Range:
    value = int(attribute(op, "value"))
    return Range(value, value)


def _arange(_: Ranges, op: Op) -> Range:
    start = attribute(op, "start")
    return Range(start, start + attribute(op, "size") - 1)


def _program_id(_: Ranges, op: Op) -> Range:
    return Range(0, MAX_PROGRAMS[attribute(op, "axis")] - 1)


def _num_programs(_: Ranges, op: Op) -> Range:
    return Range(1, MAX_PROGRAMS[attribute(op, "axis")])


def _compared(ranges: Ranges, op: Op) -> Range | None:
    """[1, 1] where a comparison of integers always holds, [0, 0] where it never does."""
    if not _is_counted(op.x.type):
        return None
    left, right = ranges[op.x], ranges[op.y]
    if op.name in ("gt", "ge"):
        left, right = right, left
    if op.name in ("lt", "gt"):
        always, never = left.high < right.low, left.low >= right.high
    else:
        always, never = left.high <= right.low, left.low > right.high
    return Range(1, 1) if always else Range(0, 0) if never else None


def _always_or_never_equal(ranges: Ranges, op: Op) -> Range | None:
    if not _is_counted(op.x.type):
        return None
    left, right = ranges[op.x], ranges[op.y]
    disjoint = left.high < right.low or right.high < left.low
    equal = left == right and left.low == left.high
    if not disjoint and not equal:
        return None
    holds = equal if op.name == "eq" else disjoint
    return Range(int(holds), int(holds))


# other packages add the rules of their own ops
RULES = OpTable[Rule]("range", {
    "constant": _constant, "arange": _arange,
    "program_id": _program_id, "num_programs": _num_programs,
    "add": _corners(int.__add__), "sub": _sub, "mul": _corners(int.__mul__),
    "floordiv": _floordiv, "mod": _mod, "truncdiv": _truncdiv, "truncmod": _truncmod,
    "neg": _neg, "absolute": _absolute,
    "minimum": _corners(min), "maximum": _corners(max),
    "and": _and, "or": _or, "shl": _shift(int.__lshift__), "shr": _shift(int.__rshift__),
    "lt": _compared, "le": _compared, "gt": _compared, "ge": _compared,
    "eq": _always_or_never_equal, "ne": _always_or_never_equal,
    "cast": _same, "splat": _same, "broadcast": _same, "reshape": _same, "transpose": _same,
    "flip": _same, "extract": _same, "hint": _same, "select": _select, "join": _join,
    "reduce": _reduce, "arg_reduce": _arg_reduce,
})

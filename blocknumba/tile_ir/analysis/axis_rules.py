"""Transfer rules of the axis analysis: what holds of an op's results, given its operands.

A rule takes anything that maps values to AxisInfo and to Range (see Facts) and the op, and gives
the AxisInfo of each result.  Rules of ops of later levels are added to RULES by their stage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from blocknumba.tile_ir.analysis.axis import MOST, Axis, AxisInfo, power_of_two_in, unit_of, unknown
from blocknumba.tile_ir.analysis.ranges import Ranges
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, attribute
from blocknumba.tile_ir.ir.types import BOOL


class Facts(Protocol):
    """What rules may ask: the info of a value, and its range."""

    ranges: Ranges

    def __getitem__(self, value: Value) -> AxisInfo: ...


Rule = Callable[[Facts, Op], AxisInfo]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of the ops of these names."""

    def declare(function: Rule) -> Rule:
        for name in names:
            assert name not in RULES, f"two rules for {name}"
            RULES[name] = function
        return function

    return declare


def of_unknown_op(facts: Facts, op: Op) -> AxisInfo:
    """An elementwise op of constant runs is constant; of other ops nothing is known.

    All results of the op have the type of the first.
    """
    if not op.opdef.has(ELEMENTWISE) or not op.operands:
        return unknown(op.results[0])
    operands = [facts[value] for value in op.operands]
    return AxisInfo(tuple(Axis(constancy=min(axis.constancy for axis in axes))
                          for axes in zip(*(info.axes for info in operands), strict=True)))


def _each(axis: Axis) -> int:
    """What every element along an axis is a multiple of."""
    return axis.start(1)


def _every(info: AxisInfo) -> int:
    """What every element of a value is a multiple of."""
    return max(_each(axis) for axis in info.axes)


def _pairs(facts: Facts, op: Op, combine: Callable[[Axis, Axis], Axis]) -> AxisInfo:
    left, right = (op.pointer, op.count) if op.name == "offset" else (op.x, op.y)
    return _pairs_of(facts[left], facts[right], combine)


def _pairs_of(left: AxisInfo, right: AxisInfo,
              combine: Callable[[Axis, Axis], Axis]) -> AxisInfo:
    return AxisInfo(tuple(map(combine, left.axes, right.axes)))


def _is_bool(op: Op) -> bool:
    return not op.result.type.is_pointer and op.result.type.dtype.kind == BOOL


# values from nothing --------------------------------------------------------------------------

@rule("constant")
def _(_: Facts, op: Op) -> AxisInfo:
    value = attribute(op, "value")
    if isinstance(value, float):
        return AxisInfo((Axis(),))
    return AxisInfo((Axis(1, power_of_two_in(int(value)), 1),), int(value))


@rule("undefined")
def _(_: Facts, op: Op) -> AxisInfo:
    # no path uses it, so what is said of it is free; this weakens a joined value least
    return AxisInfo(tuple(Axis(1, MOST, extent) for extent in op.result.type.shape or (1,)))


@rule("arange")
def _(_: Facts, op: Op) -> AxisInfo:
    start, size = attribute(op, "start"), attribute(op, "size")
    return AxisInfo((Axis(size, power_of_two_in(start), 1),), start if size == 1 else None)


@rule("program_id", "num_programs")
def _(_: Facts, op: Op) -> AxisInfo:
    return unknown(op.result)


# arithmetic -----------------------------------------------------------------------------------

@rule("add", "sub")
def _(facts: Facts, op: Op) -> AxisInfo:
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(facts, op)
    commutes = op.name == "add"

    def combine(x: Axis, y: Axis) -> Axis:
        run = min(x.contiguity, y.constancy)
        if commutes:
            run = max(run, min(x.constancy, y.contiguity))
        return Axis(run, min(x.start(run), y.start(run)), min(x.constancy, y.constancy))

    return _pairs(facts, op, combine)


@rule("mul")
def _(facts: Facts, op: Op) -> AxisInfo:
    x, y = facts[op.x], facts[op.y]
    if x.value == 1:
        return y
    if y.value == 1:
        return x
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(facts, op)
    return _pairs(facts, op, lambda a, b: Axis(1, min(_each(a) * _each(b), MOST),
                                               min(a.constancy, b.constancy)))


def _block(x: Axis, y: Axis) -> int:
    """The length of aligned runs in which x counts up from a multiple of it, and which divides
    the y of the run."""
    return min(x.certain, _each(y), y.constancy)


@rule("floordiv")
def _(facts: Facts, op: Op) -> AxisInfo:
    x, y = facts[op.x], facts[op.y]
    if y.value == 1:
        return x
    # x // -y rounds the other way, and x // 0 is 0
    positive = op.result.type.dtype.is_integer and facts.ranges[op.y].low > 0
    exact = power_of_two_in(y.value) if y.value else 0
    exact = exact if exact == y.value else 0

    def combine(a: Axis, b: Axis) -> Axis:
        constancy = min(a.constancy, b.constancy)
        if positive:
            constancy = max(constancy, _block(a, b))
        return Axis(1, max(1, _each(a) // exact) if exact else 1, constancy)

    return _pairs(facts, op, combine)


@rule("mod")
def _(facts: Facts, op: Op) -> AxisInfo:
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(facts, op)
    positive = facts.ranges[op.y].low > 0

    def combine(x: Axis, y: Axis) -> Axis:
        run = _block(x, y) if positive else 1
        return Axis(run, min(x.start(run), _each(y)), min(x.constancy, y.constancy))

    return _pairs(facts, op, combine)


@rule("neg", "absolute")
def _(facts: Facts, op: Op) -> AxisInfo:
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(facts, op)
    x = facts[op.x]
    return AxisInfo(tuple(Axis(1, _each(axis), axis.constancy) for axis in x.axes))


@rule("minimum", "maximum", "or", "xor")
def _(facts: Facts, op: Op) -> AxisInfo:
    if _is_bool(op) and op.name != "xor":
        return _pairs(facts, op, _both_falling)
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(facts, op)
    return _pairs(facts, op, lambda x, y: Axis(1, min(_each(x), _each(y)),
                                               min(x.constancy, y.constancy)))


def _both_falling(x: Axis, y: Axis) -> Axis:
    """The conjunction or the disjunction of two bools."""
    return Axis(constancy=min(x.constancy, y.constancy), falling=min(x.bounded, y.bounded))


@rule("and")
def _(facts: Facts, op: Op) -> AxisInfo:
    if _is_bool(op):
        return _pairs(facts, op, _both_falling)
    x, y = facts[op.x], facts[op.y]
    if y.value is None:
        x, y = y, x
    mask = y.value or 0
    low = mask + 1 if mask > 0 and mask & mask + 1 == 0 else 0  # mask keeps the low bits
    high = -mask if mask < 0 and -mask & -mask - 1 == 0 else 0  # mask drops them

    def combine(a: Axis, b: Axis) -> Axis:
        run = min(a.certain, low) if low else 1
        constancy = min(a.constancy, b.constancy)
        if high:
            constancy = max(constancy, min(a.certain, high))
        start = a.start(run) if low else max(_each(a), _each(b))
        return Axis(run, start, constancy)

    return AxisInfo(tuple(map(combine, x.axes, y.axes)))


@rule("shl", "shr")
def _(facts: Facts, op: Op) -> AxisInfo:
    x, count = facts[op.x], facts[op.y]
    bits = op.result.type.dtype.bits
    shift = count.value if count.value is not None and 0 <= count.value < bits else 0
    left = op.name == "shl"

    def combine(a: Axis, b: Axis) -> Axis:
        if shift == count.value == 0:
            return a
        constancy = min(a.constancy, b.constancy)
        if left:
            return Axis(1, min(_each(a) << shift, MOST), constancy)
        if shift:
            constancy = max(constancy, min(a.certain, 1 << shift))
        return Axis(1, max(1, _each(a) >> shift) if shift else 1, constancy)

    return AxisInfo(tuple(map(combine, x.axes, count.axes)))


# comparisons and choices ----------------------------------------------------------------------

@rule("lt", "ge", "gt", "le")
def _(facts: Facts, op: Op) -> AxisInfo:
    """x < y does not change within a run that counts up from a multiple of it and divides y.

    Where x counts up and y is constant, x < y and x <= y fall.
    """
    swapped = op.name in ("gt", "le")
    left, right = facts[op.x], facts[op.y]
    if swapped:
        left, right = right, left
    falls = op.name in ("lt", "gt")  # the others are not (x < y)

    def combine(x: Axis, y: Axis) -> Axis:
        low, high = (x, y) if falls else (y, x)
        return Axis(constancy=max(min(x.constancy, y.constancy), _block(x, y)),
                    falling=min(low.certain, high.constancy))

    return _pairs_of(left, right, combine)


@rule("select")
def _(facts: Facts, op: Op) -> AxisInfo:
    condition, x, y = facts[op.condition], facts[op.x], facts[op.y]
    if condition.value is not None:
        return x if condition.value else y
    unit = unit_of(op.result)

    def combine(c: Axis, a: Axis, b: Axis) -> Axis:
        run = min(c.constancy, a.contiguity, b.contiguity)
        return Axis(run, min(a.start(run, unit), b.start(run, unit)),
                    min(c.constancy, a.constancy, b.constancy))

    return AxisInfo(tuple(map(combine, condition.axes, x.axes, y.axes)))


@rule("cast", "bitcast")
def _(facts: Facts, op: Op) -> AxisInfo:
    source, dtype = op.x, op.result.type.dtype
    x = facts[source]
    keeps_bits = op.name == "cast" or source.type.dtype.kind != "float"
    if not (source.type.dtype.is_integer and dtype.is_integer and keeps_bits):
        return of_unknown_op(facts, op)
    # a run of 2**bits that starts at a multiple of that does not rise where the sign changes
    most = 1 << dtype.bits - dtype.is_signed
    axes = []
    for axis in x.axes:
        run = min(axis.contiguity, most)
        axes.append(Axis(run, axis.start(run), axis.constancy))
    fits = x.value is not None and dtype.minimum <= x.value <= dtype.maximum
    return AxisInfo(tuple(axes), x.value if fits else None)


@rule("offset")
def _(facts: Facts, op: Op) -> AxisInfo:
    """Address plus count times the bytes of an element."""
    unit = unit_of(op.result)

    def combine(pointer: Axis, count: Axis) -> Axis:
        run = max(min(pointer.contiguity, count.constancy),
                  min(pointer.constancy, count.contiguity))
        start = min(pointer.start(run, unit), count.start(run) * unit)
        return Axis(run, start, min(pointer.constancy, count.constancy))

    return _pairs(facts, op, combine)


@rule("hint")
def _(facts: Facts, op: Op) -> AxisInfo:
    """What is known and what is promised; a promised divisibility is of the longer runs."""
    x = facts[op.x]
    axes = []
    for number, (axis, extent) in enumerate(zip(x.axes, op.result.type.shape or (1,), strict=True)):
        divisibility, contiguity, constancy = (
            power_of_two_in(promises[number]) if promises else 1
            for promises in (attribute(op, name)
                             for name in ("divisibility", "contiguity", "constancy")))
        axes.append(Axis(max(axis.contiguity, min(contiguity, extent)),
                         max(axis.divisibility, divisibility),
                         max(axis.constancy, min(constancy, extent))))
    return AxisInfo(tuple(axes), x.value)


# shapes ---------------------------------------------------------------------------------------

@rule("splat")
def _(facts: Facts, op: Op) -> AxisInfo:
    x = facts[op.x]
    axes = (Axis(1, x.axes[0].divisibility, extent) for extent in op.result.type.shape or (1,))
    return AxisInfo(tuple(axes), x.value)


@rule("broadcast")
def _(facts: Facts, op: Op) -> AxisInfo:
    x, source = facts[op.x], op.x.type
    repeated = zip(x.axes, source.shape or (1,), op.result.type.shape or (1,), strict=True)
    return AxisInfo(tuple(axis if old == new else Axis(1, axis.divisibility, new)
                          for axis, old, new in repeated), x.value)


@rule("reshape")
def _(facts: Facts, op: Op) -> AxisInfo:
    """Axes from the last: those with one product are joined into one run of elements, then cut."""
    x, unit = facts[op.x], unit_of(op.result)
    sources = list(zip(x.axes, op.x.type.shape, strict=False))
    lone = Axis(1, max(axis.start(1, unit) for axis in x.axes), 1)
    axes: list[Axis] = []
    joined, extent = lone, 1  # what is not yet cut up
    for wanted in reversed(op.result.type.shape or (1,)):
        while extent < wanted:
            outer, outer_extent = sources.pop()
            joined = _with_outer(joined, extent, outer, outer_extent)
            extent *= outer_extent
        axes.append(lone if wanted == 1 else _inner(joined, wanted, unit))
        joined, extent = _stepping(joined, wanted, lone), extent // wanted
    return AxisInfo(tuple(reversed(axes)), x.value)


def _with_outer(inner: Axis, extent: int, outer: Axis, outer_extent: int) -> Axis:
    """An inner axis of an extent, and the axis outside it, as one axis."""
    if extent == 1:
        return outer
    if outer_extent == 1:
        return inner
    repeated = inner.constancy == extent
    return Axis(inner.contiguity, inner.divisibility,
                inner.constancy * (outer.constancy if repeated else 1))


def _inner(axis: Axis, extent: int, unit: int) -> Axis:
    """The first `extent` elements of every run of that many of an axis."""
    run = min(axis.contiguity, extent)
    return Axis(run, axis.start(run, unit), min(axis.constancy, extent), min(axis.falling, extent))


def _stepping(axis: Axis, stride: int, lone: Axis) -> Axis:
    """An axis seen in steps of stride; what holds of every element goes on to hold."""
    if stride == 1:
        return axis
    return Axis(1, lone.divisibility, max(1, axis.constancy // stride))


@rule("transpose")
def _(facts: Facts, op: Op) -> AxisInfo:
    x, order = facts[op.x], attribute(op, "axes")
    return AxisInfo(tuple(x.axes[axis] for axis in order) or x.axes, x.value)


@rule("flip")
def _(facts: Facts, op: Op) -> AxisInfo:
    x, flipped, unit = facts[op.x], attribute(op, "axis"), unit_of(op.result)
    axes = list(x.axes)
    axes[flipped] = Axis(1, axes[flipped].start(1, unit), axes[flipped].constancy)
    return AxisInfo(tuple(axes), x.value)


@rule("extract")
def _(facts: Facts, op: Op) -> AxisInfo:
    x, unit = facts[op.x], unit_of(op.result)
    extents = op.result.type.shape or (1,)
    return AxisInfo(tuple(_inner(axis, extent, unit)
                          for axis, extent in zip(x.axes, extents, strict=True)), x.value)


@rule("split")
def _(facts: Facts, op: Op) -> AxisInfo:
    """What holds of both halves; axes other than the last stay as they are."""
    x, unit = facts[op.x], unit_of(op.results[0])
    if len(x.axes) > 1:
        return AxisInfo(x.axes[:-1], x.value)
    return AxisInfo((Axis(1, x.axes[0].start(1, unit), 1),), x.value)


@rule("join")
def _(facts: Facts, op: Op) -> AxisInfo:
    x, y = facts[op.x], facts[op.y]
    unit = unit_of(op.result)
    both = x.joined(y, unit)
    last = Axis(1, max(axis.start(1, unit) for axis in both.axes),
                2 if op.x is op.y else 1)
    return AxisInfo(((*both.axes, last) if op.x.type.shape else (last,)), both.value)


@rule("reduce")
def _(facts: Facts, op: Op) -> AxisInfo:
    """Sums and extremes of multiples are multiples; where slices are equal, so are results."""
    x, dropped = facts[op.x], attribute(op, "axis")
    if not op.result.type.dtype.is_integer:
        return unknown(op.result)
    keeps = attribute(op, "kind") in ("sum", "max", "min", "and", "or", "xor")
    divisibility = _every(x) if keeps else 1
    kept = x.axes[:dropped] + x.axes[dropped + 1:] or (Axis(),)
    return AxisInfo(tuple(Axis(1, divisibility, axis.constancy) for axis in kept))

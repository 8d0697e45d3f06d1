"""Transfer rules of the axis info analysis: the info of an op's results from that of its operands.

A rule takes the known infos (see Infos) and the op, and returns the AxisInfo of each result.
Other packages add the rules of their own ops to RULES.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from blocknumba.tile_ir.analysis.axis import (
    MAX_DIVISIBILITY, Axis, AxisInfo, power_of_two_in, unit_of, unknown,
)
from blocknumba.tile_ir.analysis.bounds import counts_from_zero
from blocknumba.tile_ir.analysis.ranges import Ranges
from blocknumba.tile_ir.ir.function import Op, Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, OpTable, attribute
from blocknumba.tile_ir.ir.types import BOOL
from blocknumba.tile_ir.ops.views import known_stride, placements


class Infos(Protocol):
    """The known infos that rules read: the AxisInfo of a value, and its range."""

    ranges: Ranges

    def __getitem__(self, value: Value) -> AxisInfo: ...


Rule = Callable[[Infos, Op], AxisInfo]
rule = RULES = OpTable[Rule]("axis info")


def of_unknown_op(infos: Infos, op: Op) -> AxisInfo:
    """Info of an op without a rule: elementwise ops of constant runs are constant.

    All results of the op have the type of the first.
    """
    if not op.opdef.has(ELEMENTWISE) or not op.operands:
        return unknown(op.results[0])
    operands = [infos[value] for value in op.operands]
    return AxisInfo(tuple(Axis(constancy=min(axis.constancy for axis in axes))
                          for axes in zip(*(info.axes for info in operands), strict=True)))


def _each(axis: Axis) -> int:
    """Divisibility of every element along an axis."""
    return axis.start(1)


def _every(info: AxisInfo) -> int:
    """Divisibility of every element of a value."""
    return max(_each(axis) for axis in info.axes)


def _pairs(infos: Infos, op: Op, combine: Callable[[Axis, Axis], Axis]) -> AxisInfo:
    left, right = (op.pointer, op.count) if op.name == "offset" else (op.x, op.y)
    return _pairs_of(infos[left], infos[right], combine)


def _pairs_of(left: AxisInfo, right: AxisInfo,
              combine: Callable[[Axis, Axis], Axis]) -> AxisInfo:
    return AxisInfo(tuple(map(combine, left.axes, right.axes)))


def _is_bool(op: Op) -> bool:
    return not op.result.type.is_pointer and op.result.type.dtype.kind == BOOL


# values from nothing --------------------------------------------------------------------------

@rule("constant")
def _(_: Infos, op: Op) -> AxisInfo:
    value = attribute(op, "value")
    if isinstance(value, float):
        return AxisInfo((Axis(),))
    return AxisInfo((Axis(1, power_of_two_in(int(value)), 1),), int(value))


@rule("undefined")
def _(_: Infos, op: Op) -> AxisInfo:
    # no path uses it, so any info holds; this one weakens a joined value least
    extents = op.result.type.shape or (1,)
    return AxisInfo(tuple(Axis(1, MAX_DIVISIBILITY, extent) for extent in extents))


@rule("arange")
def _(_: Infos, op: Op) -> AxisInfo:
    start, size = attribute(op, "start"), attribute(op, "size")
    return AxisInfo((Axis(size, power_of_two_in(start), 1),), start if size == 1 else None)


@rule("program_id", "num_programs")
def _(_: Infos, op: Op) -> AxisInfo:
    return unknown(op.result)


# arithmetic -----------------------------------------------------------------------------------

@rule("add", "sub")
def _(infos: Infos, op: Op) -> AxisInfo:
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(infos, op)
    commutes = op.name == "add"

    def combine(x: Axis, y: Axis) -> Axis:
        run = min(x.contiguity, y.constancy)
        if commutes:
            run = max(run, min(x.constancy, y.contiguity))
        return Axis(run, min(x.start(run), y.start(run)), min(x.constancy, y.constancy))

    return _pairs(infos, op, combine)


@rule("mul")
def _(infos: Infos, op: Op) -> AxisInfo:
    x, y = infos[op.x], infos[op.y]
    if x.value == 1:
        return y
    if y.value == 1:
        return x
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(infos, op)
    return _pairs(infos, op, lambda a, b: Axis(1, min(_each(a) * _each(b), MAX_DIVISIBILITY),
                                               min(a.constancy, b.constancy)))


def _block(x: Axis, y: Axis) -> int:
    """Length of aligned runs in which x counts up from a multiple of the length.

    y is constant in each run, and a multiple of the length.
    """
    return min(x.certain, _each(y), y.constancy)


@rule("floordiv", "truncdiv")
def _(infos: Infos, op: Op) -> AxisInfo:
    x, y = infos[op.x], infos[op.y]
    if y.value == 1:
        return x
    # x // -y rounds in the other direction, and x // 0 is 0; towards zero, of x below 0, the first
    # of a run may be a multiple of y, and has a quotient of its own
    constant = op.result.type.dtype.is_integer and (
        infos.ranges[op.y].low > 0 if op.name == "floordiv"
        else counts_from_zero(op.x, infos.ranges))
    exact = power_of_two_in(y.value) if y.value else 0
    exact = exact if exact == y.value else 0

    def combine(a: Axis, b: Axis) -> Axis:
        constancy = min(a.constancy, b.constancy)
        if constant:
            constancy = max(constancy, _block(a, b))
        return Axis(1, max(1, _each(a) // exact) if exact else 1, constancy)

    return _pairs(infos, op, combine)


# truncmod: as of mod where it is not negative.  Of negative dividends the run that begins with a
# multiple of the divisor begins with 0, and is no run; Triton's analysis takes no notice of them
# either, and what wraps around is an index of an array.  A remainder towards zero is the same for
# a divisor and for its negative, and nobody divides by 0, the extent of an empty array.
@rule("mod", "truncmod")
def _(infos: Infos, op: Op) -> AxisInfo:
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(infos, op)
    counts = op.name == "truncmod" or infos.ranges[op.y].low > 0

    def combine(x: Axis, y: Axis) -> Axis:
        run = _block(x, y) if counts else 1
        return Axis(run, min(x.start(run), _each(y)), min(x.constancy, y.constancy))

    return _pairs(infos, op, combine)


@rule("neg", "absolute")
def _(infos: Infos, op: Op) -> AxisInfo:
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(infos, op)
    x = infos[op.x]
    return AxisInfo(tuple(Axis(1, _each(axis), axis.constancy) for axis in x.axes))


@rule("minimum", "maximum", "or", "xor")
def _(infos: Infos, op: Op) -> AxisInfo:
    if _is_bool(op) and op.name != "xor":
        return _pairs(infos, op, _both_falling)
    if not op.result.type.dtype.is_integer:
        return of_unknown_op(infos, op)
    return _pairs(infos, op, lambda x, y: Axis(1, min(_each(x), _each(y)),
                                               min(x.constancy, y.constancy)))


def _both_falling(x: Axis, y: Axis) -> Axis:
    """The conjunction or the disjunction of two bools."""
    return Axis(constancy=min(x.constancy, y.constancy), falling=min(x.bounded, y.bounded))


@rule("and")
def _(infos: Infos, op: Op) -> AxisInfo:
    if _is_bool(op):
        return _pairs(infos, op, _both_falling)
    x, y = infos[op.x], infos[op.y]
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
def _(infos: Infos, op: Op) -> AxisInfo:
    x, count = infos[op.x], infos[op.y]
    bits = op.result.type.dtype.bits
    shift = count.value if count.value is not None and 0 <= count.value < bits else 0
    left = op.name == "shl"

    def combine(a: Axis, b: Axis) -> Axis:
        if shift == count.value == 0:
            return a
        constancy = min(a.constancy, b.constancy)
        if left:
            return Axis(1, min(_each(a) << shift, MAX_DIVISIBILITY), constancy)
        if shift:
            constancy = max(constancy, min(a.certain, 1 << shift))
        return Axis(1, max(1, _each(a) >> shift) if shift else 1, constancy)

    return AxisInfo(tuple(map(combine, x.axes, count.axes)))


# comparisons and choices ----------------------------------------------------------------------

@rule("lt", "ge", "gt", "le")
def _(infos: Infos, op: Op) -> AxisInfo:
    """x < y is constant in runs in which x counts up and whose length divides x's start and y.

    Where x counts up and y is constant, x < y and x <= y are falling.
    """
    swapped = op.name in ("gt", "le")
    left, right = infos[op.x], infos[op.y]
    if swapped:
        left, right = right, left
    falls = op.name in ("lt", "gt")  # the others are not (x < y)

    def combine(x: Axis, y: Axis) -> Axis:
        low, high = (x, y) if falls else (y, x)
        return Axis(constancy=max(min(x.constancy, y.constancy), _block(x, y)),
                    falling=min(low.certain, high.constancy))

    return _pairs_of(left, right, combine)


@rule("select")
def _(infos: Infos, op: Op) -> AxisInfo:
    condition, x, y = infos[op.condition], infos[op.x], infos[op.y]
    if condition.value is not None:
        return x if condition.value else y
    unit = unit_of(op.result)

    def combine(c: Axis, a: Axis, b: Axis) -> Axis:
        run = min(c.constancy, a.contiguity, b.contiguity)
        return Axis(run, min(a.start(run, unit), b.start(run, unit)),
                    min(c.constancy, a.constancy, b.constancy))

    return AxisInfo(tuple(map(combine, condition.axes, x.axes, y.axes)))


@rule("cast", "bitcast")
def _(infos: Infos, op: Op) -> AxisInfo:
    source, dtype = op.x, op.result.type.dtype
    x = infos[source]
    keeps_bits = op.name == "cast" or source.type.dtype.kind != "float"
    if not (source.type.dtype.is_integer and dtype.is_integer and keeps_bits):
        return of_unknown_op(infos, op)
    # a run of 2**bits that starts at a multiple of that does not rise where the sign changes
    longest = 1 << dtype.bits - dtype.is_signed
    axes = []
    for axis in x.axes:
        run = min(axis.contiguity, longest)
        axes.append(Axis(run, axis.start(run), axis.constancy))
    fits = x.value is not None and dtype.minimum <= x.value <= dtype.maximum
    return AxisInfo(tuple(axes), x.value if fits else None)


@rule("offset")
def _(infos: Infos, op: Op) -> AxisInfo:
    """Address plus count times the bytes of an element."""
    unit = unit_of(op.result)

    def combine(pointer: Axis, count: Axis) -> Axis:
        run = max(min(pointer.contiguity, count.constancy),
                  min(pointer.constancy, count.contiguity))
        start = min(pointer.start(run, unit), count.start(run) * unit)
        return Axis(run, start, min(pointer.constancy, count.constancy))

    return _pairs(infos, op, combine)


@rule("hint")
def _(infos: Infos, op: Op) -> AxisInfo:
    """The stronger of the operand's info and the hint; a hinted divisibility is of longer runs."""
    x = infos[op.x]
    axes = []
    for number, (axis, extent) in enumerate(zip(x.axes, op.result.type.shape or (1,), strict=True)):
        divisibility, contiguity, constancy = (
            power_of_two_in(hinted[number]) if hinted else 1
            for hinted in (attribute(op, name)
                           for name in ("divisibility", "contiguity", "constancy")))
        axes.append(Axis(max(axis.contiguity, min(contiguity, extent)),
                         max(axis.divisibility, divisibility),
                         max(axis.constancy, min(constancy, extent))))
    return AxisInfo(tuple(axes), x.value)


# shapes ---------------------------------------------------------------------------------------

@rule("splat")
def _(infos: Infos, op: Op) -> AxisInfo:
    x = infos[op.x]
    axes = (Axis(1, x.axes[0].divisibility, extent) for extent in op.result.type.shape or (1,))
    return AxisInfo(tuple(axes), x.value)


@rule("broadcast")
def _(infos: Infos, op: Op) -> AxisInfo:
    x, source = infos[op.x], op.x.type
    repeated = zip(x.axes, source.shape or (1,), op.result.type.shape or (1,), strict=True)
    return AxisInfo(tuple(axis if old == new else Axis(1, axis.divisibility, new)
                          for axis, old, new in repeated), x.value)


@rule("reshape")
def _(infos: Infos, op: Op) -> AxisInfo:
    """From the last axis on: source axes are joined until they suffice, then cut into new ones."""
    x, unit = infos[op.x], unit_of(op.result)
    sources = list(zip(x.axes, op.x.type.shape, strict=False))
    lone = Axis(1, max(axis.start(1, unit) for axis in x.axes), 1)
    axes: list[Axis] = []
    joined, extent = lone, 1  # joined source axes that are not yet cut
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
    """Info of every stride-th element of an axis; the divisibility of all elements stays."""
    if stride == 1:
        return axis
    return Axis(1, lone.divisibility, max(1, axis.constancy // stride))


@rule("transpose")
def _(infos: Infos, op: Op) -> AxisInfo:
    x, order = infos[op.x], attribute(op, "axes")
    return AxisInfo(tuple(x.axes[axis] for axis in order) or x.axes, x.value)


@rule("flip")
def _(infos: Infos, op: Op) -> AxisInfo:
    x, flipped, unit = infos[op.x], attribute(op, "axis"), unit_of(op.result)
    axes = list(x.axes)
    axes[flipped] = Axis(1, axes[flipped].start(1, unit), axes[flipped].constancy)
    return AxisInfo(tuple(axes), x.value)


@rule("extract")
def _(infos: Infos, op: Op) -> AxisInfo:
    x, unit = infos[op.x], unit_of(op.result)
    extents = op.result.type.shape or (1,)
    return AxisInfo(tuple(_inner(axis, extent, unit)
                          for axis, extent in zip(x.axes, extents, strict=True)), x.value)


@rule("split")
def _(infos: Infos, op: Op) -> AxisInfo:
    """Info of both halves; axes other than the last stay as they are."""
    x, unit = infos[op.x], unit_of(op.results[0])
    if len(x.axes) > 1:
        return AxisInfo(x.axes[:-1], x.value)
    return AxisInfo((Axis(1, x.axes[0].start(1, unit), 1),), x.value)


@rule("join")
def _(infos: Infos, op: Op) -> AxisInfo:
    x, y = infos[op.x], infos[op.y]
    unit = unit_of(op.result)
    both = x.joined(y, unit)
    last = Axis(1, max(axis.start(1, unit) for axis in both.axes),
                2 if op.x is op.y else 1)
    return AxisInfo(((*both.axes, last) if op.x.type.shape else (last,)), both.value)


@rule("reduce")
def _(infos: Infos, op: Op) -> AxisInfo:
    """Sums and extremes of multiples are multiples; where slices are equal, so are results."""
    x, dropped = infos[op.x], attribute(op, "axis")
    if not op.result.type.dtype.is_integer:
        return unknown(op.result)
    keeps = attribute(op, "kind") in ("sum", "max", "min", "and", "or", "xor")
    divisibility = _every(x) if keeps else 1
    kept = x.axes[:dropped] + x.axes[dropped + 1:] or (Axis(),)
    return AxisInfo(tuple(Axis(1, divisibility, axis.constancy) for axis in kept))


# elements of views ----------------------------------------------------------------------------

def of_elements(infos: Infos, op: Op) -> AxisInfo:
    """Info of pointers to elements: they rise by 1 where an index of unit stride does alone.

    Nothing is said of their divisibility: widths are chosen when `lower_views` has made addresses.
    """
    sizes = attribute(op, "sizes")
    places, shape = placements([index.type.shape for index in op.indices], sizes)
    runs, constant = [1] * len(shape), list(shape)
    for axis, (index, size, place) in enumerate(zip(op.indices, sizes, places, strict=True)):
        if size is not None:
            along = {place.first: Axis(size)}
        elif index.type.shape:
            own, first = index.type.shape, place.first_of(index.type.shape)
            along = {first + number: info for number, (info, extent) in enumerate(
                zip(infos[index].axes, own, strict=True)) if extent > 1}
        else:
            continue
        has_unit_stride = known_stride(op.view, axis) == 1
        for tile_axis, info in along.items():
            run = info.contiguity if has_unit_stride else 1
            runs[tile_axis] = max(min(runs[tile_axis], info.constancy),
                                  min(constant[tile_axis], run))
            constant[tile_axis] = min(constant[tile_axis], info.constancy)
    return AxisInfo(tuple(Axis(run, 1, length) for run, length in zip(runs, constant)) or (Axis(),))

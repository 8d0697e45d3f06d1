"""Accesses that touch a box of an array, as tensor copies (TMA) do.

    load x[r, c], r = 64 * p + arange(64), c = arange(32), mask c < n
      address:  x + s * (64 * p) + s * i + j         i, j: indices in the tile
      box:      axis of stride 1   extent 32  start 0       bound n
                axis of stride s   extent 64  start 64 * p  no bound

The axes of a view are known (`accesses`), those of pointers once `raise_pointers` has found them.
A Matcher compares the starts with the constraints of the mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from blocknumba.tile_ir.analysis.affine import AffineExpressions
from blocknumba.tile_ir.analysis.axis import MAX_DIVISIBILITY, power_of_two_in
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.bounds import LowerBounds, conditions, fits_32_bits, assumptions
from blocknumba.tile_ir.analysis.polynomial import ONE, AffineExpression, Atom, Polynomial
from blocknumba.tile_ir.analysis.provenance import plannable
from blocknumba.tile_ir.folds.patterns import number, same_number, zero_of
from blocknumba.tile_ir.ir.function import Function, Op, Value
from blocknumba.tile_ir.ir.opdef import OPS, attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.tensor_map import MAX_RANK, STRIDE_ALIGNMENT, UNBOUNDED, Number, Product
from blocknumba.tile_ir.ir.types import int32, int64
from blocknumba.tile_ir.ops.memory import load
from blocknumba.tile_ir.ops.views import elements_of

ALIGNMENT = STRIDE_ALIGNMENT  # also of the pointer, and of starts along the axis of unit stride
MAX_AXES = MAX_RANK


@dataclass(frozen=True, slots=True)
class Line:
    """An axis of an array, found from the tile's addresses.

    stride: elements, known at launch.
    tile_axis: the axis of the tile that runs along it; None where a scalar indexes it.
    extent: of the tile along it.
    inside: the mask holds where the index in the tile is below it; None without such a mask.
    start: of the tile along it; None until it is known.
    """

    stride: Polynomial
    tile_axis: int | None = None
    extent: int = 1
    inside: Polynomial | None = None
    start: Polynomial | None = None

    @property
    def bound(self) -> Polynomial | None:
        """The extent of the array along it; None without a mask that says it."""
        return None if self.inside is None else self.inside + self.start


@dataclass(frozen=True, slots=True)
class BoxAxis:
    """One axis of a box, and of the array.

    line: with its start.
    stride: of the array, in elements.
    bound: extent of the array; None where the kernel checks none: then it stays inside.
    clamped: start may need 64 bits; a start that does not fit 32 is outside of the array.
    checked: the mask holds only where indices are 0 or more; otherwise they are known to be.
    """

    line: Line
    stride: Product
    bound: Product | None
    clamped: bool = False
    checked: bool = False

    @property
    def extent(self) -> int:
        """Extent of the box; 1 along an axis that is indexed by a scalar."""
        return self.line.extent

    @property
    def tile_axis(self) -> int | None:
        """The axis of the tile along it; None where a scalar indexes it."""
        return self.line.tile_axis

    @property
    def start(self) -> Polynomial:
        """Index of the first element."""
        return self.line.start

    def emit_start(self, rebuilder: Rebuilder) -> Value:
        """The start as an int32 scalar, emitted at the builder's insertion point."""
        if not self.clamped:
            return self.start.emit(rebuilder, int32)
        builder, start = rebuilder.builder, self.start.emit(rebuilder, int64)
        for name, limit in (("maximum", int32.minimum), ("minimum", int32.maximum)):
            start = builder.emit(OPS[name], start, builder.constant(limit, int64))
        return builder.emit(OPS["cast"], start, dtype=int32.name)


@dataclass(frozen=True, slots=True)
class Box:
    """A box of an array that a load or store touches.

    argument: the array's name.  base: the parameter that points to its first element.
    axes: the one of unit stride first.
    """

    argument: str
    base: Value
    axes: tuple[BoxAxis, ...]

    @property
    def extents(self) -> tuple[Product, ...]:
        """Extents of the array; an axis without a bound has as many elements as int32 can index."""
        return tuple(Product(UNBOUNDED) if axis.bound is None else axis.bound
                     for axis in self.axes)

    @property
    def strides(self) -> tuple[Product, ...]:
        """Strides of the array, of all axes but the first."""
        return tuple(axis.stride for axis in self.axes[1:])

    @property
    def numbers(self) -> frozenset[Number]:
        """The launch parameters that describe the array."""
        return frozenset(number for product in (*self.extents, *self.strides)
                         for number in product.numbers)

    @property
    def is_own(self) -> bool:
        """Whether all extents and strides that are not constants are the argument's own."""
        return (all(extent.is_of("extent", self.argument) for extent in self.extents
                    if extent.numbers)
                and all(stride.is_of("stride", self.argument) for stride in self.strides
                        if stride.numbers))


NOT_A_VIEW = "it is by pointers that are those of no view"
NOT_BOUNDS = "the mask is not the array's bounds"


@dataclass(frozen=True, slots=True)
class Matcher:
    """Match of one access.

    infos, expressions: of the function.  assumed: lower bounds of scalars, by assumptions.
    pointer, expression: of the elements.  constraints: positive where the mask holds.
    completions: see Boxes.box_of.
    """

    infos: AxisInfos
    expressions: AffineExpressions
    assumed: Mapping[Atom, int]
    pointer: Value
    expression: AffineExpression
    constraints: Sequence[AffineExpression]
    completions: Completions

    def box(self) -> Box | str:
        """The box, or the reason why there is none."""
        origin = self.expression.origin
        argument = self.expressions.parameters[origin].argument
        if self.infos[origin].axes[0].divisibility % ALIGNMENT:
            return f"{argument} does not start at a multiple of {ALIGNMENT} bytes"
        lines = self._lines()
        if isinstance(lines, str):
            return lines
        reasons = []
        for complete in self.completions(self, lines):
            axes = self._axes(complete)
            if not isinstance(axes, str):
                return Box(argument, origin, axes)
            reasons.append(axes)
        return reasons[0] if reasons else NOT_BOUNDS

    def _lines(self) -> list[Line] | str:
        """The axes of the array along those of the tile, with their bounds by the mask."""
        lines = []
        for axis, extent in enumerate(self.pointer.type.shape):
            if extent == 1:
                continue
            refusal = self._stride_refusal(axis)
            if refusal:
                return refusal
            line = self._bounded(Line(self.expression.steps[axis], axis, extent))
            if line is None:
                return NOT_BOUNDS
            lines.append(line)
        if len(lines) < 2:
            return "the tile has one axis"
        units = [line for line in lines if line.stride == ONE]
        if len(units) != 1:
            return "no axis of the tile has unit stride" if not units else (
                "two axes of the tile have unit stride")
        if units[0].extent * self._element_bytes < ALIGNMENT:
            return f"rows of the tile are shorter than {ALIGNMENT} bytes"
        return lines

    def _stride_refusal(self, axis: int) -> str | None:
        """The reason why no axis of an array can lie along an axis of the tile; None if it can."""
        step = self.expression.steps[axis]
        if not step:
            return f"all elements along axis {axis} have one address"
        if self._product(step) is None:
            return f"the stride of axis {axis} is no positive number that is known at launch"
        if step != ONE and self._bytes_divisibility(step) % ALIGNMENT:
            return f"the stride of axis {axis} is not known to be a multiple of {ALIGNMENT} bytes"
        return None

    def _bounded(self, line: Line) -> Line | None:
        """A line with the bound that the mask sets; None if the mask is no simple bound."""
        for constraint in self.constraints:
            step = constraint.steps[line.tile_axis]
            if not step:
                continue
            if step not in (ONE, -ONE) or sum(map(bool, constraint.steps)) > 1:
                return None
            if step == -ONE:
                if line.inside not in (None, constraint.base):
                    return None
                line = replace(line, inside=constraint.base)
        return line

    def _axes(self, complete: list[Line]) -> tuple[BoxAxis, ...] | str:
        """The axes of the box for one decomposition, or the reason why there is none."""
        if len(complete) > MAX_AXES:
            return f"the array has more than {MAX_AXES} axes"
        complete = self._with_scalar_bounds(complete)
        if complete is None:
            return "a condition of the whole tile is no bound of the array"
        refusal = self._alignment_refusal(complete)
        if refusal:
            return refusal
        bounds = [line.bound for line in complete]
        if any(bound is not None and self._product(bound) is None for bound in bounds):
            return NOT_BOUNDS
        lower_bounds = self._lower_bounds(bounds)
        axes = []
        for line in complete:
            axis = self._axis(line, lower_bounds)
            if isinstance(axis, str):
                return axis
            axes.append(axis)
        return tuple(axes)

    def _axis(self, line: Line, lower_bounds: LowerBounds) -> BoxAxis | str:
        """One axis of the box, or the reason why the array has none like it."""
        where = ("an axis that one index is taken of" if line.tile_axis is None
                 else f"axis {line.tile_axis}")
        stride = self._product(line.stride)
        if stride is None:
            return f"the stride of {where} is no positive number that is known at launch"
        checked = False
        for lower in self._lower_constraints(line.tile_axis):
            if lower == line.start:
                checked = True
            elif lower_bounds.of(lower) < 0 and line.tile_axis is not None:
                return NOT_BOUNDS
        if not checked and lower_bounds.of(line.start) < 0:
            return f"along {where} the tile may start before the array"
        fits = (self.expressions.fits_32_bits(line.start)
                or fits_32_bits(line.start, self.infos.ranges))
        if not fits and line.bound is None:
            return f"along {where} the start of the tile may not fit 32 bits"
        bound = None if line.bound is None else self._product(line.bound)
        return BoxAxis(line, stride, bound, not fits, checked)

    def _lower_constraints(self, tile_axis: int | None) -> list[Polynomial]:
        """Numbers that the mask wants to be 0 or more: at an axis's first index, or of the tile."""
        return [constraint.base - ONE for constraint in self.constraints
                if (constraint.is_uniform if tile_axis is None
                    else constraint.steps[tile_axis] == ONE)]

    def _with_scalar_bounds(self, complete: list[Line]) -> list[Line] | None:
        """Lines with the bounds of scalar indices; None where a constraint bounds no index."""
        lower_bounds = self._lower_bounds([])
        for constraint in self.constraints:
            if not constraint.is_uniform:
                continue
            base = constraint.base
            is_lower = any(line.tile_axis is None and base == line.start + ONE for line in complete)
            is_upper = any(line.inside == base for line in complete)
            if is_lower or is_upper or lower_bounds.of(base) > 0:
                continue
            bounded = next((i for i, line in enumerate(complete)
                            if line.tile_axis is None and line.inside is None
                            and self._product(base + line.start) is not None), None)
            if bounded is None:
                return None
            complete = [replace(line, inside=base) if i == bounded else line
                      for i, line in enumerate(complete)]
        return complete

    def _alignment_refusal(self, complete: list[Line]) -> str | None:
        """The reason why TMA cannot describe an array with these axes, or fetch the box."""
        unit, *others = complete
        if any(self._bytes_divisibility(line.stride) % ALIGNMENT for line in others):
            return f"a stride of the array is not known to be a multiple of {ALIGNMENT} bytes"
        along_rows = self.infos[self.pointer].axes[unit.tile_axis]
        if self._bytes_divisibility(unit.start) % ALIGNMENT and along_rows.divisibility % ALIGNMENT:
            return f"rows of the tile are not known to start at a multiple of {ALIGNMENT} bytes"
        return None

    def _lower_bounds(self, bounds: list[Polynomial | None]) -> LowerBounds:
        """Lower bounds of scalars, given that the array and these bounds are not empty."""
        assumed = dict(self.assumed)
        argument = self.expressions.parameters[self.expression.origin].argument
        for value, parameter in self.expressions.parameters.items():
            if parameter.kind == "extent" and parameter.argument == argument:
                bounds = [*bounds, self.expressions.atom(value)]
        for bound in bounds:
            match bound and bound.terms:
                case (((atom,), 1),):
                    assumed[atom] = max(assumed.get(atom, 1), 1)
        return LowerBounds(self.expressions, self.infos.ranges, assumed)

    def _product(self, number: Polynomial) -> Product | None:
        """The polynomial as a positive number known at launch; None if it is not one."""
        if len(number.terms) != 1:
            return None
        ((monomial, factor),) = number.terms
        parameters = [self.expressions.parameter(atom) for atom in monomial]
        if factor < 0 or None in parameters:
            return None
        return Product(factor, tuple([Number(parameter.kind, parameter.argument, parameter.axis)
                                      for parameter in parameters]))

    @property
    def _element_bytes(self) -> int:
        return self.pointer.type.dtype.pointee.bytes

    def _bytes_divisibility(self, elements: Polynomial) -> int:
        return bytes_divisibility(self.infos, elements, self._element_bytes)


def bytes_divisibility(infos: AxisInfos, elements: Polynomial, element_bytes: int) -> int:
    """A power of two that a number of elements is a multiple of, in bytes."""
    found = MAX_DIVISIBILITY
    for monomial, coefficient in elements.terms:
        factors = prod(infos[atom.value].axes[0].divisibility for atom in monomial)
        found = min(found, power_of_two_in(coefficient) * factors)
    return found * element_bytes


# The lines along a tile, all with their starts, and with those that scalars index, in the order in
# which they are tried.
Completions = Callable[[Matcher, list[Line]], Iterable[list[Line]]]


def known_lines(matcher: Matcher, lines: list[Line]) -> Iterable[list[Line]]:
    """The lines of an access to a view, that of unit stride first.

    One index at the start of an axis needs no line.  There are none where the access is no box of
    the view.
    """
    axes = matcher.expressions.access(elements_of(matcher.pointer)).axes
    if axes is None:
        return ()
    starts = {axis.tile_axis: axis.start for axis in axes}
    along = [replace(line, start=starts[line.tile_axis]) for line in lines]
    along.sort(key=lambda line: (line.stride != ONE, -line.tile_axis))
    return [along + [Line(axis.stride, start=axis.start) for axis in axes
                     if axis.tile_axis is None and axis.start]]


class Boxes:
    """The boxes among the accesses of a function."""

    def __init__(self, fn: Function, infos: AxisInfos | None = None):
        self._infos = AxisInfos(fn) if infos is None else infos
        self._expressions = AffineExpressions(fn)
        self._assumed = assumptions(self._expressions, self._infos.ranges, fn.body)
        self._function = fn

    def box_of(self, access: Op, completions: Completions = known_lines) -> Box | str:
        """The box that a load or a store touches, or the reason, a sentence, why there is none.

        completions: for accesses by pointers, which have no axes but those that are guessed.
        """
        if completions is known_lines and elements_of(access.pointer) is None:
            return NOT_A_VIEW
        refusal = _refusal(access)
        if refusal:
            return refusal
        pointer, mask = access.pointer, access.mask
        expression = self._expressions[pointer]
        if isinstance(expression, str):
            return expression
        constraints = []
        if mask is not None:
            constraints = conditions(self._expressions, self._infos.ranges, mask)
        if isinstance(constraints, str):
            return constraints
        return Matcher(self._infos, self._expressions, self._assumed, pointer, expression,
                       constraints, completions).box()

    def ends_whole(self, box: Box) -> bool:
        """Whether rows of the array are known to end at a multiple of ALIGNMENT bytes.

        Where they do not, a store by TMA changes what is beside the array: it leaves out whole
        ALIGNMENT bytes only (measured on a H200).
        """
        unit = box.axes[0].line
        return unit.bound is None or not bytes_divisibility(
            self._infos, unit.bound, box.base.type.dtype.pointee.bytes) % ALIGNMENT

    def is_plannable(self, start: Polynomial) -> bool:
        """Whether a start depends on nothing that the kernel loads or computes in tiles."""
        return all(atom.value in self._plannable for monomial, _ in start.terms
                   for atom in monomial)

    @cached_property
    def _plannable(self) -> frozenset[Value]:
        return plannable(self._function)


def _refusal(access: Op) -> str | None:
    """The reason why an access is no box whatever its addresses are; None if it may be one."""
    if access.opdef is not load:
        return None
    if attribute(access, "volatile"):
        return "the load is volatile"
    zero = zero_of(access.result.type.dtype)
    if access.other is not None and not same_number(number(access.other), zero):
        return "what the mask leaves out is not 0"
    return None

"""Accesses that touch a box of an array, as tensor copies (TMA) do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import gcd, prod

from blocknumba.tile_ir.analysis.affine import ONE, Form, Forms
from blocknumba.tile_ir.analysis.axis import MOST, power_of_two_in
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.bounds import LowerBounds, conditions, fits_32_bits, promises
from blocknumba.tile_ir.analysis.polynomial import Atom, Monomial, Polynomial
from blocknumba.tile_ir.analysis.provenance import plannable
from blocknumba.tile_ir.folds.patterns import number, same_number, zero_of
from blocknumba.tile_ir.ir.function import Function, Op, Parameter, Value
from blocknumba.tile_ir.ir.opdef import OPS, attribute
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.tensor_map import MAX_RANK, STRIDE_ALIGNMENT, UNBOUNDED, Number, Product
from blocknumba.tile_ir.ir.types import int32, int64
from blocknumba.tile_ir.ops.memory import load

ALIGNMENT = STRIDE_ALIGNMENT  # also of the pointer, and of starts along the axis of unit stride
MOST_AXES = MAX_RANK


@dataclass(frozen=True, slots=True)
class BoxAxis:
    """An axis of an array that a box lies along.

    extent: of the box; 1 along an axis that one index is taken of.
    tile_axis: the axis of the tile along it; None where one index is taken.
    stride: of the array, in elements.
    bound: extent of the array; None where the kernel checks none, which says that it stays inside.
    start: where the box begins.
    clamped: start may need 64 bits; what does not fit 32 is outside of the array.
    """

    extent: int
    tile_axis: int | None
    stride: Product
    bound: Product | None
    start: Polynomial
    clamped: bool = False

    def emit_start(self, rebuilder: Rebuilder) -> Value:
        """Where the box begins, an int32 scalar, made of new values at the place of the access."""
        if not self.clamped:
            return self.start.emit(rebuilder, int32)
        builder, start = rebuilder.builder, self.start.emit(rebuilder, int64)
        for name, limit in (("maximum", int32.minimum), ("minimum", int32.maximum)):
            start = builder.emit(OPS[name], start, builder.constant(limit, int64))
        return builder.emit(OPS["cast"], start, dtype=int32.name)


@dataclass(frozen=True, slots=True)
class Box:
    """What a load or store touches: axes of the array, the one of unit stride first.

    argument: the array's name.  base: the parameter that points to its first element.
    """

    argument: str
    base: Value
    axes: tuple[BoxAxis, ...]

    @property
    def extents(self) -> tuple[Product, ...]:
        """Of the array, an axis that nobody checks being as long as there are places."""
        return tuple(Product(UNBOUNDED) if axis.bound is None else axis.bound
                     for axis in self.axes)

    @property
    def strides(self) -> tuple[Product, ...]:
        """Of the array, of all axes but the first."""
        return tuple(axis.stride for axis in self.axes[1:])

    @property
    def numbers(self) -> frozenset[Number]:
        """What the launch describes the array with."""
        return frozenset(number for product in (*self.extents, *self.strides)
                         for number in product.numbers)

    @property
    def is_own(self) -> bool:
        """Whether what is not known at compile time are extents and strides of the argument."""
        return (all(extent.is_of("extent", self.argument) for extent in self.extents
                    if extent.numbers)
                and all(stride.is_of("stride", self.argument) for stride in self.strides
                        if stride.numbers))


AtLaunch = Callable[[Atom], Parameter | None]


@dataclass(frozen=True, slots=True)
class Line:
    """An axis of an array as a tile meets it.

    stride: elements, known at launch.
    tile_axis: the axis of the tile that runs along it; None where one index is taken of it.
    extent: of the tile along it.
    inside: the mask holds where the index in the tile is below it; None where it does not say.
    start: of the tile along it; None until it is known.
    """

    stride: Polynomial
    tile_axis: int | None = None
    extent: int = 1
    inside: Polynomial | None = None
    start: Polynomial | None = None


def placements(lines: Sequence[Line], first: Polynomial, argument: str, at_launch: AtLaunch,
               ) -> Iterator[list[Line]]:
    """Ways to write the address of a tile's first element as a sum of start * stride.

    lines: those along the axes of the tile, of which one has unit stride.
    first: the address, in elements from the first of the array, whose name is argument.
    at_launch: what a scalar is, if it is known at launch.
    Each way gives all lines with their starts, those that the tile has no axis along as well.
    First what the strides say, each of which divides the terms that belong to it; then what the
    mask suggests, which holds where index < extent - start.
    """
    for *starts, apart in product(*(_guesses(line, at_launch) for line in lines), (False, True)):
        guessed = [replace(line, start=start) for line, start in zip(lines, starts, strict=True)]
        placed = _placed(guessed, first, _Scalars(argument, at_launch, apart))
        if placed is not None:
            yield placed


def _guesses(line: Line, at_launch: AtLaunch) -> list[Polynomial | None]:
    """None for what the address says; then starts that the mask suggests."""
    if line.inside is None:
        return [None]
    extents = [Polynomial(((monomial, number),)) for monomial, number in line.inside.terms
               if not monomial or (len(monomial) == number == 1 and at_launch(monomial[0]))]
    return [None, *(extent - line.inside for extent in extents)]


def _placed(lines: list[Line], first: Polynomial, scalars: _Scalars) -> list[Line] | None:
    """The lines with all their starts, or None where they do not add up to the address."""
    rest = first
    for line in lines:
        if line.start is not None:
            rest = rest - line.start * line.stride
    placed = []
    for line in sorted(lines, key=_specificity, reverse=True):
        if line.start is None and line.stride != ONE:
            start, rest = rest.divided(line.stride)
            line = replace(line, start=start)
        placed.append(line)
    unit = placed.pop()
    indexed, rest = scalars.lines(rest, numbers=unit.start is not None)
    if unit.start is None:
        unit, rest = replace(unit, start=rest), Polynomial()
    placed.sort(key=lambda line: line.tile_axis, reverse=True)
    return None if rest else [unit, *placed, *indexed]


def _specificity(line: Line) -> tuple[int, int]:
    """How much a stride says: that of a term that two strides divide, the greater one is meant."""
    ((monomial, number),) = line.stride.terms
    return len(monomial), number


@dataclass(frozen=True, slots=True)
class _Scalars:
    """How to find lines that one index is taken of.

    argument: the array.  at_launch: what a scalar is, if it is known at launch.
    apart: whether each term of an index is one of its own; sums may not fit 32 bits.
    """

    argument: str
    at_launch: AtLaunch
    apart: bool

    def lines(self, rest: Polynomial, *, numbers: bool) -> tuple[list[Line], Polynomial]:
        """Lines, and what of the address is no part of one.

        Each term of the address is a product of something known at launch, the stride, and of
        something computed in the kernel.
        numbers: whether strides may be numbers.
        """
        found = []
        for stride in self._strides_in(rest):
            start, rest = rest.divided(stride)
            if start:
                found.append(Line(stride, start=start))
        groups: dict[tuple[Monomial, int], list[tuple[Monomial, int]]] = {}
        left = []
        for monomial, coefficient in rest.terms:
            known = tuple(atom for atom in monomial if self.at_launch(atom))
            computed = tuple(atom for atom in monomial if not self.at_launch(atom))
            if computed and (known or numbers):
                key = known, coefficient if self.apart or not known else 0
                groups.setdefault(key, []).append((computed, coefficient))
            else:
                left.append((monomial, coefficient))
        for (known, _), terms in groups.items():
            factor = gcd(*(coefficient for _, coefficient in terms))
            start = Polynomial.sum(
                (computed, coefficient // factor) for computed, coefficient in terms)
            found.append(Line(Polynomial(((known, factor),)), start=start))
        return found, Polynomial(tuple(left))

    def _strides_in(self, rest: Polynomial) -> list[Polynomial]:
        """The strides of the array that an address is made with."""
        atoms = dict.fromkeys(atom for monomial, _ in rest.terms for atom in monomial)
        found = []
        for atom in atoms:
            parameter = self.at_launch(atom)
            if parameter and parameter.kind == "stride" and parameter.argument == self.argument:
                found.append(Polynomial.of(atom))
        return found


NOT_BOUNDS = "the mask is not the array's bounds"


@dataclass(frozen=True, slots=True)
class Matcher:
    """One access.

    infos, forms: of the function.  promised: what scalars are promised to be at least.
    pointer, form: of the elements.  demands: what the mask wants to be positive.
    """

    infos: AxisInfos
    forms: Forms
    promised: Mapping[Atom, int]
    pointer: Value
    form: Form
    demands: Sequence[Form]

    def box(self) -> Box | str:
        """The box, or why there is none."""
        origin = self.form.origin
        argument = self.forms.parameters[origin].argument
        if self.infos[origin].axes[0].divisibility % ALIGNMENT:
            return f"{argument} does not start at a multiple of {ALIGNMENT} bytes"
        lines = self._lines()
        if isinstance(lines, str):
            return lines
        reasons = []
        for placed in placements(lines, self.form.base, argument, self.forms.parameter):
            axes = self._axes(placed)
            if not isinstance(axes, str):
                return Box(argument, origin, axes)
            reasons.append(axes)
        return reasons[0] if reasons else NOT_BOUNDS

    def _lines(self) -> list[Line] | str:
        """The axes of the array along those of the tile, with what the mask says of them."""
        lines = []
        for axis, extent in enumerate(self.pointer.type.shape):
            if extent == 1:
                continue
            refusal = self._stride_refusal(axis)
            if refusal:
                return refusal
            line = self._bounded(Line(self.form.steps[axis], axis, extent))
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
        """Why no array can have an axis along that of the tile."""
        step = self.form.steps[axis]
        if not step:
            return f"all elements along axis {axis} have one address"
        if self._product(step) is None:
            return f"the stride of axis {axis} is no positive number that is known at launch"
        if step != ONE and self._bytes_divisibility(step) % ALIGNMENT:
            return f"the stride of axis {axis} is not known to be a multiple of {ALIGNMENT} bytes"
        return None

    def _bounded(self, line: Line) -> Line | None:
        """A line with the bound that the mask sets to its index; None if it is no simple bound."""
        for demand in self.demands:
            step = demand.steps[line.tile_axis]
            if not step:
                continue
            if step not in (ONE, -ONE) or sum(map(bool, demand.steps)) > 1:
                return None
            if step == -ONE:
                if line.inside not in (None, demand.base):
                    return None
                line = replace(line, inside=demand.base)
        return line

    def _axes(self, placed: list[Line]) -> tuple[BoxAxis, ...] | str:
        """The axes of the box for one way to place it, or why it is none."""
        if len(placed) > MOST_AXES:
            return f"the array has more than {MOST_AXES} axes"
        placed = self._with_scalar_bounds(placed)
        if placed is None:
            return "a condition of the whole tile is no bound of the array"
        refusal = self._alignment_refusal(placed)
        if refusal:
            return refusal
        bounds = [None if line.inside is None else line.inside + line.start for line in placed]
        if any(bound is not None and self._product(bound) is None for bound in bounds):
            return NOT_BOUNDS
        least = self._least(bounds)
        axes = []
        for line, bound in zip(placed, bounds, strict=True):
            axis = self._axis(line, bound, least)
            if isinstance(axis, str):
                return axis
            axes.append(axis)
        return tuple(axes)

    def _axis(self, line: Line, bound: Polynomial | None, least: LowerBounds) -> BoxAxis | str:
        """One axis of the box, or why the array has none like it."""
        where = ("an axis that one index is taken of" if line.tile_axis is None
                 else f"axis {line.tile_axis}")
        checked = False
        for lower in self._lower_demands(line.tile_axis):
            if lower == line.start:
                checked = True
            elif least.of(lower) < 0 and line.tile_axis is not None:
                return NOT_BOUNDS
        if not checked and least.of(line.start) < 0:
            return f"along {where} the tile may start before the array"
        fits = self.forms.fits_32_bits(line.start) or fits_32_bits(line.start, self.infos.ranges)
        if not fits and bound is None:
            return f"along {where} the start of the tile may not fit 32 bits"
        return BoxAxis(line.extent, line.tile_axis, self._product(line.stride),
                       None if bound is None else self._product(bound), line.start, not fits)

    def _lower_demands(self, tile_axis: int | None) -> list[Polynomial]:
        """What the mask wants to be 0 or more: of an axis for its first index, or of the tile."""
        return [demand.base - ONE for demand in self.demands
                if (demand.is_uniform if tile_axis is None else demand.steps[tile_axis] == ONE)]

    def _with_scalar_bounds(self, placed: list[Line]) -> list[Line] | None:
        """Lines with the bounds of indices that are scalars; None where one bounds no index."""
        least = self._least([])
        for demand in self.demands:
            if not demand.is_uniform:
                continue
            base = demand.base
            is_lower = any(line.tile_axis is None and base == line.start + ONE for line in placed)
            if is_lower or any(line.inside == base for line in placed) or least.of(base) > 0:
                continue
            bounded = next((i for i, line in enumerate(placed)
                            if line.tile_axis is None and line.inside is None
                            and self._product(base + line.start) is not None), None)
            if bounded is None:
                return None
            placed = [replace(line, inside=base) if i == bounded else line
                      for i, line in enumerate(placed)]
        return placed

    def _alignment_refusal(self, placed: list[Line]) -> str | None:
        """Why an array with these axes cannot be described, or the box not be fetched."""
        unit, *others = placed
        if any(self._bytes_divisibility(line.stride) % ALIGNMENT for line in others):
            return f"a stride of the array is not known to be a multiple of {ALIGNMENT} bytes"
        along_rows = self.infos[self.pointer].axes[unit.tile_axis]
        if self._bytes_divisibility(unit.start) % ALIGNMENT and along_rows.divisibility % ALIGNMENT:
            return f"rows of the tile are not known to start at a multiple of {ALIGNMENT} bytes"
        return None

    def _least(self, bounds: list[Polynomial | None]) -> LowerBounds:
        """Lower bounds where an array is described, and with these bounds: it is not empty."""
        promised = dict(self.promised)
        argument = self.forms.parameters[self.form.origin].argument
        for value, parameter in self.forms.parameters.items():
            if parameter.kind == "extent" and parameter.argument == argument:
                bounds = [*bounds, self.forms.atom(value)]
        for bound in bounds:
            match bound and bound.terms:
                case (((atom,), 1),):
                    promised[atom] = max(promised.get(atom, 1), 1)
        return LowerBounds(self.forms, self.infos.ranges, promised)

    def _product(self, number: Polynomial) -> Product | None:
        """A number that is known at launch and positive, if it is one."""
        if len(number.terms) != 1:
            return None
        ((monomial, factor),) = number.terms
        parameters = [self.forms.parameter(atom) for atom in monomial]
        if factor < 0 or None in parameters:
            return None
        return Product(factor, tuple([Number(parameter.kind, parameter.argument, parameter.axis)
                                      for parameter in parameters]))

    @property
    def _element_bytes(self) -> int:
        return self.pointer.type.dtype.pointee.bytes

    def _bytes_divisibility(self, elements: Polynomial) -> int:
        """A power of two that a number of elements is a multiple of, in bytes."""
        found = MOST
        for monomial, coefficient in elements.terms:
            factors = prod(self.infos[atom.value].axes[0].divisibility for atom in monomial)
            found = min(found, power_of_two_in(coefficient) * factors)
        return found * self._element_bytes


class Boxes:
    """Finds the boxes among the accesses of a function."""

    def __init__(self, fn: Function, infos: AxisInfos | None = None):
        self._infos = AxisInfos(fn) if infos is None else infos
        self._forms = Forms(fn)
        self._promised = promises(self._forms, self._infos.ranges, fn.body)
        self._function = fn

    def box_of(self, access: Op) -> Box | str:
        """The box that a load or a store touches, or a sentence that says why it is none."""
        refusal = _refusal(access)
        if refusal:
            return refusal
        pointer, mask = access.pointer, access.mask
        form = self._forms[pointer]
        if isinstance(form, str):
            return form
        demands = [] if mask is None else conditions(self._forms, self._infos.ranges, mask)
        if isinstance(demands, str):
            return demands
        return Matcher(self._infos, self._forms, self._promised, pointer, form, demands).box()

    def is_plannable(self, start: Polynomial) -> bool:
        """Whether a start is known without anything that the kernel loads or computes in tiles."""
        return all(atom.value in self._plannable for monomial, _ in start.terms
                   for atom in monomial)

    @cached_property
    def _plannable(self) -> frozenset[Value]:
        return plannable(self._function)


def _refusal(access: Op) -> str | None:
    """Why an access is no box whatever its addresses are."""
    if access.opdef is not load:
        return None
    if attribute(access, "volatile"):
        return "the load is volatile"
    zero = zero_of(access.result.type.dtype)
    if access.other is not None and not same_number(number(access.other), zero):
        return "what the mask leaves out is not 0"
    return None

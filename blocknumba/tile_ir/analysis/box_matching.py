"""Whether one access touches a box of an array, and which.

It does when its addresses are affine in the indices of its tile and its mask, if it has one, says
just what lies inside of the array.  Index arithmetic is taken not to overflow, divisors in it to be
positive (see lower_bounds), and the extents of described arrays to be 1 or more: an empty one
cannot be described.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from blocknumba.tile_ir.analysis.affine import ONE, Form, Forms
from blocknumba.tile_ir.analysis.axis import MOST, power_of_two_in
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.box import ALIGNMENT, MOST_AXES, Box, BoxAxis
from blocknumba.tile_ir.analysis.box_starts import Line, placements
from blocknumba.tile_ir.analysis.lower_bounds import LowerBounds, fits_32_bits
from blocknumba.tile_ir.analysis.polynomial import Atom, Polynomial
from blocknumba.tile_ir.ir import Value
from blocknumba.tile_ir.tensor_map import Number, Product

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

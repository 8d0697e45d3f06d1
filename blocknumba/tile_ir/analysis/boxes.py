"""Which loads and stores of a function touch a box of an array, as tensor copies do."""

from __future__ import annotations

from functools import cached_property

from blocknumba.tile_ir.analysis.affine import Forms
from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.box import Box
from blocknumba.tile_ir.analysis.box_matching import Matcher
from blocknumba.tile_ir.analysis.conditions import conditions, promises
from blocknumba.tile_ir.analysis.plannable import plannable
from blocknumba.tile_ir.analysis.polynomial import Polynomial
from blocknumba.tile_ir.folds.patterns import number, same_number, zero_of
from blocknumba.tile_ir.ir import Function, Op, Value
from blocknumba.tile_ir.opdef import attribute
from blocknumba.tile_ir.ops.memory import load


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
        pointer, mask = access.operands[0], _mask(access)
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
    others = access.operands[2:]
    zero = zero_of(access.result.type.dtype)
    if others and not same_number(number(others[0]), zero):
        return "what the mask leaves out is not 0"
    return None


def _mask(access: Op) -> Value | None:
    place = 1 if access.opdef is load else 2
    return access.operands[place] if len(access.operands) > place else None

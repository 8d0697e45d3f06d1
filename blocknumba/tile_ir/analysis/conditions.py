"""What a mask demands of the indices in its tile, comparison by comparison."""

from __future__ import annotations

from blocknumba.tile_ir.analysis.affine import RULES, Form, Forms, is_index
from blocknumba.tile_ir.analysis.polynomial import Atom, Polynomial
from blocknumba.tile_ir.analysis.ranges import Ranges
from blocknumba.tile_ir.ir import Op, Region, Value

NO_BOUND = "the mask is more than bounds of indices"

_REARRANGED = frozenset(("splat", "broadcast", "reshape", "transpose"))
_COMPARED = frozenset(("lt", "le", "gt", "ge"))


def conditions(forms: Forms, ranges: Ranges, mask: Value) -> list[Form] | str:
    """Forms in the indices of a mask's tile; the mask holds where all of them are positive.

    Or a sentence that says why there are none.
    """
    op = mask.owner
    if op is None:
        return NO_BOUND
    if op.name == "and":
        return _all(forms, ranges, op)
    if op.name in _REARRANGED:
        inner = conditions(forms, ranges, op.operands[0])
        if isinstance(inner, str):
            return inner
        found = [RULES[op.name](op, form) for form in inner]
        return NO_BOUND if None in found else found
    if op.name in _COMPARED and op.operands[0].type.dtype.is_integer:
        return _comparison(forms, ranges, op)
    return NO_BOUND


def promises(forms: Forms, ranges: Ranges, body: Region) -> dict[Atom, int]:
    """What scalars are at least, as the `assume` ops of a function's body promise."""
    least: dict[Atom, int] = {}
    for op in body.ops:
        demands = conditions(forms, ranges, op.operands[0]) if op.name == "assume" else []
        for demand in demands if isinstance(demands, list) else []:
            constant = Polynomial.constant(dict(demand.base.terms).get((), 0))
            match (demand.base - constant).terms:
                case (((atom,), 1),):
                    least[atom] = max(1 - constant.number, least.get(atom, 1 - constant.number))
    return least


def _all(forms: Forms, ranges: Ranges, op: Op) -> list[Form] | str:
    found = []
    for value in op.operands:
        part = conditions(forms, ranges, value)
        if isinstance(part, str):
            return part
        found += part
    return found


def _comparison(forms: Forms, ranges: Ranges, op: Op) -> list[Form] | str:
    smaller, greater = op.operands if op.name in ("lt", "le") else reversed(op.operands)
    if smaller.type.dtype.is_signed:
        left, right = forms[smaller], forms[greater]
    elif ranges[greater].high < 1 << greater.type.dtype.bits - 1:
        left, right = _as_signed(forms, smaller), _as_signed(forms, greater)
    else:
        return NO_BOUND
    for form in (left, right):
        if isinstance(form, str):
            return f"in the mask, {form}"
    one = Form(Polynomial.constant(1), (Polynomial(),) * len(left.steps))
    above = right - left
    found = [above if op.name in ("lt", "gt") else above + one]
    # among unsigned numbers, negative ones are above all others
    return found if smaller.type.dtype.is_signed else [*found, left + one]


def _as_signed(forms: Forms, value: Value) -> Form | str:
    """The form of the signed integers whose bits unsigned ones are."""
    op = value.owner
    if op is not None and op.name == "cast":
        source = op.operands[0].type.dtype
        if is_index(source) and source.bits <= value.type.dtype.bits:
            return forms[op.operands[0]]
    if op is not None and op.name in _REARRANGED:
        inner = _as_signed(forms, op.operands[0])
        return inner if isinstance(inner, str) else RULES[op.name](op, inner) or NO_BOUND
    found = forms[value]
    is_known = isinstance(found, Form) and found.base.number is not None
    return found if is_known else "unsigned integers are compared"

"""Constraints that masks put on indices, against the masks themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blocknumba.tile_ir.analysis.affine import AffineExpressions
from blocknumba.tile_ir.analysis.bounds import conditions
from blocknumba.tile_ir.analysis.ranges import Ranges
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.text.parser import parse

SHAPE = (4, 8)
SOURCE = """kernel f(
  %out: ptr<bool> = pointer(out)
  %e: int32 = extent(x, 0) {{minimum=0}}
  %n: int32 = value(n)
  %u: uint32 = value(u)
  %b: bool = value(b)
) {{
  %i = arange {{start=0, size=4}} : tile<4xint32>
  %j = arange {{start=0, size=8}} : tile<8xint32>
  %es = splat %e : tile<4xint32>
  %ns = splat %n : tile<8xint32>
  %moved = add %j, %ns : tile<8xint32>
  {ops}
  %k = arange {{start=0, size=32}} : tile<32xint32>
  %o = splat %out : tile<32xptr<bool>>
  %p = offset %o, %k : tile<32xptr<bool>>
  %flat = reshape %mask : tile<32xbool>
  store %p, %flat
  return
}}
"""
ROWS = ("%r1 = reshape %rows : tile<4x1xbool>", "%r2 = broadcast %r1 : tile<4x8xbool>")
COLUMNS = ("%c1 = reshape %columns : tile<1x8xbool>", "%c2 = broadcast %c1 : tile<4x8xbool>")
BOTH = (*ROWS, *COLUMNS, "%mask = and %r2, %c2 : tile<4x8xbool>")
ONLY_ROWS = (*ROWS, "%mask = and %r2, %r2 : tile<4x8xbool>")


def function(*ops: str) -> Function:
    return parse(SOURCE.format(ops="\n  ".join(ops)))


def constraints_of(fn: Function) -> object:
    """The conditions of the mask, or why there are none."""
    (mask,) = [value for op in fn.body.ops for value in op.results if value.hint == "mask"]
    return conditions(AffineExpressions(fn), Ranges(fn), mask)


def holds(constraints, numbers: dict[str, int], index: tuple[int, ...]) -> bool:
    """Whether all constraints are positive at one index."""
    def value(polynomial) -> int:
        return sum(coefficient * int(np.prod([numbers[atom.value.hint] for atom in monomial]))
                   for monomial, coefficient in polynomial.terms)

    return all(value(each.base) + sum(value(step) * i for step, i in zip(each.steps, index)) > 0
               for each in constraints)


@pytest.mark.parametrize("ops", [
    ("%rows = lt %i, %es : tile<4xbool>", "%columns = gt %ns, %j : tile<8xbool>", *BOTH),
    ("%rows = le %i, %es : tile<4xbool>", "%columns = ge %ns, %j : tile<8xbool>", *BOTH),
    ("%rows = gt %i, %es : tile<4xbool>", "%columns = ge %moved, %j : tile<8xbool>", *BOTH),
    ("%ui = cast %i {dtype=\"uint32\"} : tile<4xuint32>",
     "%ue = cast %e {dtype=\"uint32\"} : uint32",
     "%ues = splat %ue : tile<4xuint32>", "%rows = lt %ui, %ues : tile<4xbool>", *ONLY_ROWS),
    ("%ns4 = splat %n : tile<4xint32>", "%at = add %i, %ns4 : tile<4xint32>",
     "%ui = cast %at {dtype=\"uint32\"} : tile<4xuint32>",
     "%three = constant {value=3} : uint32", "%threes = splat %three : tile<4xuint32>",
     "%rows = lt %ui, %threes : tile<4xbool>", *ONLY_ROWS),
    ("%r = lt %n, %e : bool", "%mask = splat %r : tile<4x8xbool>"),
    ("%rows = lt %i, %es : tile<4xbool>", "%r1 = reshape %rows : tile<1x4xbool>",
     "%r2 = broadcast %r1 : tile<8x4xbool>",
     "%mask = transpose %r2 {axes=(1, 0)} : tile<4x8xbool>"),
], ids=["below", "at most", "above", "unsigned", "unsigned constants", "scalars", "transposed"])
def test_a_mask_holds_where_its_conditions_are_positive(ops):
    fn = function(*ops)
    constraints = constraints_of(fn)
    for e, n in itertools.product((0, 2, 9), (-2, 0, 5)):
        out = np.zeros(SHAPE, bool)
        run(fn, (1, 1, 1), {"out": out, "x": np.zeros(e), "n": np.int32(n), "u": np.uint32(1),
                            "b": np.bool_(True)})

        found = [holds(constraints, {"e": e, "n": n}, index) for index in np.ndindex(SHAPE)]

        assert found == out.ravel().tolist()


@pytest.mark.parametrize(("ops", "expected"), [
    (["%mask = splat %b : tile<4x8xbool>"], "the mask is more than bounds of indices"),
    (["%rows = ne %i, %es : tile<4xbool>", *ONLY_ROWS], "the mask is more than bounds of indices"),
    (["%rows = lt %i, %es : tile<4xbool>", "%r1 = reshape %rows : tile<2x2xbool>",
      "%r2 = reshape %r1 : tile<2x2x1xbool>", "%r3 = broadcast %r2 : tile<2x2x8xbool>",
      "%mask = reshape %r3 : tile<4x8xbool>"], "the mask is more than bounds of indices"),
    (["%rem = mod %i, %es : tile<4xint32>", "%rows = lt %rem, %es : tile<4xbool>", *ONLY_ROWS],
     "in the mask, an index wraps around (% x.shape[0]), and x.shape[0] is not known to be a "
     "multiple of 4: use a mask (< x.shape[0])"),
    (["%us = splat %u : tile<4xuint32>", "%ui = cast %i {dtype=\"uint32\"} : tile<4xuint32>",
      "%rows = lt %ui, %us : tile<4xbool>", *ONLY_ROWS],
     "the mask is more than bounds of indices"),
    (["%us = splat %u : tile<4xuint32>", "%ues = cast %es {dtype=\"uint32\"} : tile<4xuint32>",
      "%rows = lt %us, %ues : tile<4xbool>", *ONLY_ROWS],
     "in the mask, unsigned integers are compared"),
], ids=["a bool", "not equal", "cut up", "a remainder", "an unsigned bound", "an unsigned index"])
def test_a_mask_that_is_no_bound_says_so(ops, expected):
    assert constraints_of(function(*ops)) == expected

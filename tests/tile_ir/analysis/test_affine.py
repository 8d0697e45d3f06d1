"""Forms of indices: what they say of each element, and of which values there are none."""

from __future__ import annotations

import pytest

from blocknumba.tile_ir.analysis.affine import AffineExpression, AffineExpressions
from blocknumba.tile_ir.ir.function import Function, Value, walk
from blocknumba.tile_ir.text.parser import parse

HEADER = """kernel f(
  %p: ptr<float32> = pointer(p)
  %n: int32 = value(n)
  %m: int32 = value(m)
  %w: int64 = value(w)
  %u: uint32 = value(u)
  %c: bool = value(c)
) {
  %i = arange {start=0, size=8} : tile<8xint32>
  %j = arange {start=3, size=4} : tile<4xint32>
  %k2 = constant {value=2} : int32
"""
FOOTER = """
  return
}
"""


def function(*ops: str) -> Function:
    return parse(HEADER + "\n".join(f"  {op}" for op in ops) + FOOTER)


def last(fn: Function) -> Value:
    """The result of the last op of the body that has one."""
    return [op for op in fn.body.ops if op.results][-1].results[0]


def written(expression: AffineExpression | str) -> str:
    """An affine expression as 'base; step, step'."""
    if isinstance(expression, str):
        return expression

    def sum_of(polynomial) -> str:
        terms = ["*".join([str(number), *(atom.value.hint for atom in monomial)])
                 for monomial, number in polynomial.terms]
        return " + ".join(terms) or "0"

    steps = ", ".join(map(sum_of, expression.steps))
    return "; ".join([sum_of(expression.base), steps]).strip("; ")


@pytest.mark.parametrize(("ops", "expected"), [
    (["%r = mul %n, %k2 : int32"], "2*n"),
    (["%a = add %n, %m : int32", "%r = mul %a, %n : int32"], "1*n*n + 1*n*m"),
    (["%r = sub %n, %n : int32"], "0"),
    (["%r = neg %n : int32"], "-1*n"),
    (["%r = shl %n, %k2 : int32"], "4*n"),
    (["%r = cast %n {dtype=\"int64\"} : int64"], "1*n"),
    (["%a = mul %u, %u : uint32", "%r = cast %a {dtype=\"int64\"} : int64"], "1*a"),
    (["%a = mul %u, %u : uint32", "%r = cast %a {dtype=\"int32\"} : int32"], "1*r"),
    (["%r = floordiv %n, %m : int32"], "1*r"),
    (["%r = reshape %j : tile<4x1xint32>"], "3; 1, 0"),
    (["%s = splat %n : tile<8xint32>", "%r = mul %i, %s : tile<8xint32>"], "0; 1*n"),
    (["%s = splat %n : tile<4xint32>", "%r = sub %s, %j : tile<4xint32>"], "-3 + 1*n; -1"),
    (["%a = reshape %i : tile<8x1xint32>", "%b = broadcast %a : tile<8x4xint32>",
      "%r = transpose %b {axes=(1, 0)} : tile<4x8xint32>"], "0; 0, 1"),
    (["%o = offset %p, %n : ptr<float32>", "%s = splat %o : tile<8xptr<float32>>",
      "%r = offset %s, %i : tile<8xptr<float32>>"], "1*n; 1"),
    (["%s = splat %n : tile<8xint32>", "%r = reshape %s : tile<2x4xint32>"], "1*n; 0, 0"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_index_arithmetic_has_a_form(ops, expected):
    fn = function(*ops)

    found = AffineExpressions(fn)[last(fn)]

    assert written(found) == expected


@pytest.mark.parametrize(("ops", "expected"), [
    (["%s = splat %n : tile<8xint32>", "%r = mod %i, %s : tile<8xint32>"],
     "an index wraps around (% n), and n is not known to be a multiple of 8: use a mask (< n)"),
    (["%s = splat %n : tile<8xint32>", "%r = mod %s, %i : tile<8xint32>"],
     "an index wraps around (%)"),
    (["%s = splat %n : tile<8xint32>", "%r = floordiv %i, %s : tile<8xint32>"],
     "an index is the quotient of a division"),
    (["%r = mul %i, %i : tile<8xint32>"], "an index is a product of indices"),
    (["%r = reshape %i : tile<2x4xint32>"], "an axis of indices is cut into several"),
    (["%r = flip %i {axis=0} : tile<8xint32>"], "an index is computed by flip"),
    (["%q = offset %p, %n : ptr<float32>", "%r = select %c, %p, %q : ptr<float32>"],
     "an index is chosen by a condition"),
    (["%a = cast %i {dtype=\"int8\"} : tile<8xint8>"], "an index is computed by cast"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_what_has_no_form_says_why(ops, expected):
    fn = function(*ops)

    found = AffineExpressions(fn)[last(fn)]

    assert found == expected


LOOP = """%a = for {bounds}, %p : ptr<float32> (%x: int32, %q: ptr<float32>) {{
    %v = load %q : float32
    %next = {step}
    yield %next
  }}"""


def carried_pointer(bounds: str, step: str, *before: str) -> str:
    """The expression of a loop-carried pointer within the loop."""
    fn = function(*before, LOOP.format(bounds=bounds, step=step))
    loop = next(op for op in walk(fn.body) if op.name == "for")
    return written(AffineExpressions(fn)[loop.regions[0].args[1]])


ZERO = "%zero = constant {value=0} : int32"
SIX = "%six = constant {value=6} : int32"


@pytest.mark.parametrize(("bounds", "step", "expected"), [
    ("%zero, %n, %k2", "offset %q, %six : ptr<float32>", "3*x"),
    ("%m, %n, %k2", "offset %q, %six : ptr<float32>", "-3*m + 3*x"),
    ("%zero, %n, %m", "offset %q, %nm : ptr<float32>", "1*n*x"),
    ("%zero, %n, %six", "offset %q, %k2 : ptr<float32>",
     "an index moves by a distance that is no multiple of the loop's step"),
    ("%zero, %n, %k2", "offset %q, %x : ptr<float32>",
     "an index does not change by a fixed distance in each iteration"),
    ("%zero, %n, %k2", "offset %p, %six : ptr<float32>",
     "an index does not change by a fixed distance in each iteration"),
], ids=["a multiple of the step", "from a start", "by products", "no multiple", "by the counter",
        "not from itself"])
def test_a_pointer_that_a_loop_carries_is_where_its_counter_says(bounds, step, expected):
    found = carried_pointer(bounds, step, ZERO, SIX, "%nm = mul %n, %m : int32")

    assert found == expected


def test_what_a_loop_leaves_has_a_form_only_if_it_did_not_change():
    left = "%r = offset %a, %n : ptr<float32>"
    moving = function(ZERO, LOOP.format(bounds="%zero, %n, %k2",
                                        step="offset %q, %k2 : ptr<float32>"), left)
    staying = function(ZERO, LOOP.format(bounds="%zero, %n, %k2",
                                         step="offset %q, %zero : ptr<float32>").replace(
        "yield %next", "yield %q"), left)

    found = [AffineExpressions(fn)[last(fn)] for fn in (moving, staying)]

    assert list(map(written, found)) == ["an index is what a loop has left", "1*n"]


def test_an_assumption_about_a_parameter_leaves_it_a_number_known_at_launch():
    fn = function("%r = hint %n {divisibility=(8,), contiguity=(), constancy=()} : int32")
    expressions = AffineExpressions(fn)

    ((atom,), _), = expressions[last(fn)].base.terms

    assert expressions.parameter(atom) is fn.parameters[1]


def test_long_sums_have_no_form_in_tiles_and_are_atoms_as_scalars():
    factors = [f"%f{i} = floordiv %n, %m : int32" for i in range(6)]
    sums = ["%s0 = add %f0, %n : int32", "%t0 = mul %s0, %s0 : int32"]
    for i in range(1, 6):
        sums += [f"%s{i} = add %f{i}, %n : int32", f"%t{i} = mul %t{i - 1}, %s{i} : int32"]
    fn = function(*factors, *sums)

    found = AffineExpressions(fn)[last(fn)]

    assert len(found.base.terms) <= 16

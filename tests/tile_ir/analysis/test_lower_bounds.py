"""Lower bounds of index arithmetic, and numbers that fit 32 bits."""

from __future__ import annotations

import math

import pytest

from blocknumba.tile_ir.analysis.affine import AffineExpressions
from blocknumba.tile_ir.analysis.bounds import LowerBounds, fits_32_bits, interval, assumptions
from blocknumba.tile_ir.analysis.ranges import Range, Ranges
from blocknumba.tile_ir.ir.function import Function
from blocknumba.tile_ir.text.parser import parse

SOURCE = """kernel f(
  %e: int32 = extent(x, 0) {{minimum=0}}
  %n: int32 = value(n)
  %s: int8 = value(s)
) {{
  %p = program_id {{axis=1}} : int32
  %c1 = constant {{value=1}} : int32
  %c6 = constant {{value=6}} : int32
  %c64 = constant {{value=64}} : int32
  %m1 = constant {{value=-1}} : int32
  %p64 = mul %p, %c64 : int32
  {ops}
  return
}}
"""
UNKNOWN = -math.inf


def function(*ops: str) -> Function:
    return parse(SOURCE.format(ops="\n  ".join(ops)))


def lowest(fn: Function, **assumed: int) -> float:
    """The lower bound of %r, with assumptions about parameters."""
    expressions, ranges = AffineExpressions(fn), Ranges(fn)
    atoms = {arg.hint: expressions.atom(arg).terms[0][0][0] for arg in fn.body.args}
    known = {**assumptions(expressions, ranges, fn.body),
             **{atoms[name]: number for name, number in assumed.items()}}
    (result,) = [value for op in fn.body.ops for value in op.results if value.hint == "r"]
    return LowerBounds(expressions, ranges, known).of_value(result)


@pytest.mark.parametrize(("ops", "expected"), [
    (["%r = add %p64, %c6 : int32"], 6),
    (["%r = add %p64, %m1 : int32"], -1),
    (["%r = sub %c6, %p : int32"], UNKNOWN),
    (["%r = mul %p64, %e : int32"], 0),
    (["%r = mul %p64, %n : int32"], UNKNOWN),
    (["%r = hint %n {divisibility=(8,), contiguity=(), constancy=()} : int32"], UNKNOWN),
    (["%r = floordiv %p64, %n : int32"], 0),
    (["%r = floordiv %n, %c6 : int32"], -(2**31) // 6),
    (["%r = truncdiv %p64, %n : int32"], 0),
    (["%r = truncdiv %n, %c6 : int32"], UNKNOWN),
    (["%r = mod %n, %e : int32"], 0),
    (["%r = truncmod %p64, %n : int32"], 0),
    (["%r = truncmod %n, %e : int32"], -(2**31) + 2),
    (["%a = add %p64, %c64 : int32", "%r = shr %a, %c1 : int32"], 32),
    (["%r = shr %n, %c6 : int32"], -(2**31) >> 6),
    (["%r = minimum %p64, %c6 : int32"], 0),
    (["%r = minimum %p64, %n : int32"], UNKNOWN),
    (["%r = maximum %n, %c6 : int32"], 6),
    (["%b = lt %n, %e : bool", "%r = select %b, %p64, %c6 : int32"], 0),
    (["%r = and %n, %p64 : int32"], 0),
    (["%a = cast %s {dtype=\"int32\"} : int32", "%r = add %a, %p64 : int32"], UNKNOWN),
], ids=lambda value: "" if isinstance(value, list) else str(value))
def test_a_scalar_is_never_below_its_bound(ops, expected):
    assert lowest(function(*ops)) == expected


def test_assumed_numbers_bound_what_is_made_of_them():
    fn = function("%r = mul %p64, %n : int32")

    assert lowest(fn, n=1) == 0


@pytest.mark.parametrize(("condition", "expected"), [
    ("gt %n, %c6", 7), ("ge %n, %c6", 6), ("lt %c6, %n", 7), ("le %n, %c6", UNKNOWN),
    ("ge %n, %p", UNKNOWN), ("ne %n, %c6", UNKNOWN),
])
def test_what_is_assumed_of_a_scalar_bounds_it(condition, expected):
    fn = function(f"%b = {condition} : bool", "assume %b", "%r = add %n, %c1 : int32")

    assert lowest(fn) == expected + 1


def test_the_greatest_of_several_assumptions_counts():
    fn = function("%a = gt %n, %c6 : bool", "%b = ge %n, %c1 : bool", "assume %a", "assume %b",
                  "%r = add %n, %c1 : int32")

    assert lowest(fn) == 8


@pytest.mark.parametrize(("op", "expected", "fits"), [
    ("sub %c6, %p", Range(6 - 65534, 6), True),
    ("mul %p, %c64", Range(0, 64 * 65534), True),
    ("mul %p, %m1", Range(-65534, 0), True),
    ("mul %p64, %p64", Range(0, (64 * 65534) ** 2), False),
    ("add %n, %c1", Range(1 - 2**31, 2**31), False),
])
def test_a_number_fits_32_bits_when_its_interval_does(op, expected, fits):
    fn = function(f"%r = {op} : int32")
    expressions, ranges = AffineExpressions(fn), Ranges(fn)
    number = expressions[fn.body.ops[-2].result].base

    assert interval(number, ranges) == expected
    assert fits_32_bits(number, ranges) == fits

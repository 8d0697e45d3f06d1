"""Which scalars a warp that only fetches can compute by itself."""

from __future__ import annotations

from blocknumba.tile_ir.analysis.provenance import plannable
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.text.parser import parse

HEADER = """kernel f(
  %x: ptr<int32> = pointer(x)
  %n: int32 = value(n)
) {
  %zero = constant {value=0} : int32
  %one = constant {value=1} : int32
  %loaded = load %x : int32
"""


def named(body: str, *names: str) -> list[bool]:
    """Whether the values of these names are plannable."""
    fn = parse(HEADER + body + "\n  return\n}\n")
    found = plannable(fn)
    return [value in found for name in names for value in _values(fn) if value.hint == name]


def _values(fn: Function):
    yield from fn.body.args
    for op in walk(fn.body):
        yield from op.results
        for region in op.regions:
            yield from region.args


def test_parameters_programs_and_arithmetic_are_plannable_and_loads_are_not():
    body = """  %p = program_id {axis=0} : int32
  %a = mul %p, %n : int32
  %q = offset %x, %a : ptr<int32>
  %b = add %a, %loaded : int32"""

    assert named(body, "n", "x", "p", "a", "q", "loaded", "b") == [True] * 5 + [False] * 2


def test_what_is_reduced_from_a_tile_is_not_plannable():
    body = """  %t = arange {start=0, size=8} : tile<8xint32>
  %r = reduce %t {axis=0, kind="sum"} : int32"""

    assert named(body, "t", "r") == [False, False]


def test_counters_and_carried_scalars_are_plannable_when_all_they_come_from_is():
    head = "  %a, %b, %c = for %zero, %n, %one, %zero, %zero, %zero : int32, int32, int32 "
    body = head + """(%i: int32, %u: int32, %v: int32, %w: int32) {
    %u2 = add %u, %i : int32
    %v2 = add %v, %loaded : int32
    %w2 = add %v, %w : int32
    yield %u2, %v2, %w2
  }"""

    assert named(body, "i", "u", "a") == [True, True, True]
    assert named(body, "v", "b", "w", "w2", "c") == [False] * 5


def test_nothing_of_a_loop_whose_trip_count_is_loaded_is_plannable():
    body = """  %a = for %zero, %loaded, %one, %zero : int32 (%i: int32, %u: int32) {
    %u2 = add %u, %one : int32
    yield %u2
  }"""

    assert named(body, "i", "u", "a") == [False, False, False]


def test_a_while_loop_is_plannable_when_its_condition_is():
    body = """  %a = loop %zero : int32 (%u: int32) {{
    %u2 = add %u, %one : int32
    %more = lt %u2, {bound} : bool
    continue_if %more, %u2
  }}"""

    assert named(body.format(bound="%n"), "u", "a") == [True, True]
    assert named(body.format(bound="%loaded"), "u", "a") == [False, False]


def test_a_choice_is_plannable_when_its_condition_and_what_it_gives_are():
    body = """  %known = lt %n, %one : bool
  %unknown = lt %loaded, %one : bool
  %a, %b = if %known {result_types=(int32, int32)} : int32, int32 {
    yield %n, %loaded
  } else {
    yield %one, %one
  }
  %c = if %unknown {result_types=(int32,)} : int32 {
    yield %n
  } else {
    yield %one
  }"""

    assert named(body, "a", "b", "c") == [True, False, False]

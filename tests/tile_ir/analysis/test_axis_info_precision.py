"""Axis info of the accesses that matter for speed: how many neighbours one access takes."""

import pytest

from blocknumba.tile_ir.analysis.axis import Axis
from blocknumba.tile_ir.analysis.axis_info import axis_info
from blocknumba.tile_ir.ir.function import Function, walk
from blocknumba.tile_ir.text.parser import parse


def kernel(body: str, n: str = "divisibility=16, minimum=0", alignment: int = 16) -> Function:
    return parse(f"""kernel f(
  %x: ptr<float32> = pointer(x) {{divisibility={alignment}}}
  %n: int32 = extent(x, 0) {{{n}}}
  %s: int32 = stride(x, 0) {{divisibility=16}}
) {{
{body}
  return
}}
""")


def accesses(fn: Function) -> list[tuple[int, ...]]:
    """Per load, how many neighbours it can take along each axis."""
    infos = axis_info(fn)
    widths = []
    for op in walk(fn.body):
        if op.name == "load":
            pointer, mask, *_ = (*op.operands, None)
            widths.append(tuple(infos.access_width(pointer, mask, axis)
                                for axis in range(len(pointer.type.shape))))
    return widths


BLOCK = """
  %pid = program_id {axis=0} : int32
  %size = constant {value=128} : int32
  %start = mul %pid, %size : int32
  %starts = splat %start : tile<128xint32>
  %lanes = arange {start=0, size=128} : tile<128xint32>
  %index = add %starts, %lanes : tile<128xint32>
  %ns = splat %n : tile<128xint32>
  %mask = lt %index, %ns : tile<128xbool>
  %xs = splat %x : tile<128xptr<float32>>
"""
LOAD = """
  %p = offset %xs, %index : tile<128xptr<float32>>
  %v = load %p, %mask : tile<128xfloat32>
"""


@pytest.mark.parametrize(("n", "alignment", "width"), [
    ("divisibility=16", 16, 4), ("divisibility=16", 8, 2), ("divisibility=16", 4, 1),
    ("divisibility=2", 16, 2), ("divisibility=1", 16, 1)])
def test_a_masked_block_is_as_wide_as_alignment_and_extent_allow(n, alignment, width):
    assert accesses(kernel(BLOCK + LOAD, n, alignment)) == [(width,)]


def test_a_bound_from_both_sides_is_as_wide_as_one():
    both = BLOCK.replace("%mask = lt %index, %ns", "%upper = lt %index, %ns") + """
  %zero = constant {value=0} : int32
  %zeros = splat %zero : tile<128xint32>
  %lower = ge %index, %zeros : tile<128xbool>
  %mask = and %lower, %upper : tile<128xbool>
"""
    unsigned = BLOCK.replace("%mask = lt %index, %ns", "%old = lt %index, %ns") + """
  %u = cast %index : tile<128xuint32>
  %un = cast %ns : tile<128xuint32>
  %mask = lt %u, %un : tile<128xbool>
"""

    widths = accesses(kernel(both + LOAD)) + accesses(kernel(unsigned + LOAD))

    assert widths == [(4,), (4,)]


def test_a_shifted_block_goes_by_one():
    shifted = BLOCK + """
  %one = constant {value=1} : int32
  %ones = splat %one : tile<128xint32>
  %next = add %index, %ones : tile<128xint32>
""" + LOAD.replace("%index", "%next")
    fn = kernel(shifted)
    pointer = next(op for op in walk(fn.body) if op.name == "load").operands[0]

    assert accesses(fn) == [(1,)]
    assert axis_info(fn)[pointer].axes[0].contiguity == 128


def test_rows_of_a_matrix_are_wide_along_the_columns():
    fn = kernel("""
  %0 = arange {start=0, size=32} : tile<32xint32>
  %rows = reshape %0 : tile<32x1xint32>
  %1 = splat %s : tile<32x1xint32>
  %2 = mul %rows, %1 : tile<32x1xint32>
  %3 = splat %x : tile<32x1xptr<float32>>
  %4 = offset %3, %2 : tile<32x1xptr<float32>>
  %5 = broadcast %4 : tile<32x32xptr<float32>>
  %columns = reshape %0 : tile<1x32xint32>
  %6 = broadcast %columns : tile<32x32xint32>
  %p = offset %5, %6 : tile<32x32xptr<float32>>
  %v = load %p : tile<32x32xfloat32>
""")

    assert accesses(fn) == [(1, 4)]


def test_pointers_that_step_through_a_loop_stay_wide():
    fn = kernel(BLOCK + """
  %zero = constant {value=0} : int32
  %first = offset %xs, %index : tile<128xptr<float32>>
  %last = for %zero, %n, %size, %first : tile<128xptr<float32>> (%i: int32, %p: tile<128xptr<float32>>) {
    %v = load %p : tile<128xfloat32>
    %step = splat %s : tile<128xint32>
    %q = offset %p, %step : tile<128xptr<float32>>
    yield %q
  }
  %w = load %last : tile<128xfloat32>
""")

    assert accesses(fn) == [(4,), (4,)]


def test_a_counter_is_as_divisible_as_its_start_and_step():
    fn = kernel("""
  %start = constant {value=8} : int32
  %step = constant {value=64} : int32
  for %start, %n, %step (%i: int32) {
    yield
  }
""")
    counter = fn.body.ops[2].regions[0].args[0]

    assert axis_info(fn)[counter].axes == (Axis(1, 8, 1),)


@pytest.mark.parametrize(("n", "width"), [("divisibility=16, minimum=1", 4),
                                          ("divisibility=16", 1)])
def test_indices_modulo_an_extent_are_wide_only_if_it_is_positive(n, width):
    fn = kernel(BLOCK + "  %m = mod %index, %ns : tile<128xint32>\n"
                + LOAD.replace("%index", "%m").replace(", %mask", ""), n)

    assert accesses(fn) == [(width,)]


def test_remainders_towards_zero_are_wide_whatever_the_sign_of_the_extent():
    fn = kernel(BLOCK + "  %m = truncmod %index, %ns : tile<128xint32>\n"
                + LOAD.replace("%index", "%m").replace(", %mask", ""), "divisibility=16")

    assert accesses(fn) == [(4,)]


def test_a_hint_is_believed():
    fn = kernel(BLOCK + "  %h = hint %s {divisibility=(4,)} : int32\n" + """
  %e = constant {value=3} : int32
  %odd = mul %pid, %e : int32
  %hinted = hint %odd {divisibility=(4,)} : int32
  %from = splat %hinted : tile<128xint32>
  %from_lanes = add %from, %lanes : tile<128xint32>
""" + LOAD.replace("%index", "%from_lanes").replace(", %mask", ""))

    assert accesses(fn) == [(4,)]

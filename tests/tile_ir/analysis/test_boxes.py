"""Which accesses of kernels are boxes, and that tensor copies of them touch the same elements."""

from __future__ import annotations

from dataclasses import replace

import box_kernels as kernels
import numpy as np
import pytest
from box_kernels import Case
from tensor_copies import accesses, box_or_reason, described, with_copies

from blocknumba.tile_ir.analysis.axis_info import AxisInfos
from blocknumba.tile_ir.analysis.boxes import Boxes
from blocknumba.tile_ir.folds.patterns import number
from blocknumba.tile_ir.ir.function import Value, walk
from blocknumba.tile_ir.ir.rebuild import Rebuilder
from blocknumba.tile_ir.ir.types import TileType, int32
from blocknumba.tile_ir.ir.verifier import TILE, verify
from blocknumba.tile_ir.ops.views import raised_elements
from blocknumba.tile_ir.passes.dce import dce
from blocknumba.tile_ir.passes.raise_pointers import lower_raised, raise_pointers
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.text.printer import text

MATRIX = {"M": 37, "N": 72, "stride": 80}
ROWS = {"M": 37, "stride": 80}
BATCH = {"grid": (3, 3, 2), "shape": (2, 37, 72), "strides": (3200, 80, 1)}
HEADS = {"grid": (3, 4, 1), "shape": (2, 2, 40, 80), "strides": (6400, 3200, 80, 1)}
LOOP = (3, 1, 1)

ARRAY_BOX = ["1:32 * 1 < x.extent1", "0:16 * x.stride0 < x.extent0"]
POINTER_BOX = ["1:32 * 1 < N", "0:16 * stride < M"]

# a kernel, and the box that its load is of: axis of the tile : extent * stride < bound
BOXES = [
    (Case(kernels.spans), ARRAY_BOX),
    (Case(kernels.spans, wide=True), ARRAY_BOX),
    (Case(kernels.spans, strides=(1, 40)),
     ["0:16 * 1 < x.extent0", "1:32 * x.stride1 < x.extent1"]),
    (Case(kernels.loop_of_spans, LOOP), ARRAY_BOX),
    (Case(kernels.persistent), ARRAY_BOX),
    (Case(kernels.slices), ARRAY_BOX),
    (Case(kernels.tiles_of_indices), ARRAY_BOX),
    (Case(kernels.before_the_array), ARRAY_BOX),
    (Case(kernels.transposed_view), ["0:32 * 1 < x.extent1", "1:16 * x.stride0 < x.extent0"]),
    (Case(kernels.batch_of_matrices, **BATCH),
     ["1:32 * 1 < x.extent2", "0:16 * x.stride1 < x.extent1", "-:1 * x.stride0 < x.extent0"]),
    (Case(kernels.matrix_within, (3, 3, 2), (37, 2, 72), (160, 80, 1)),
     ["1:32 * 1 < x.extent2", "0:16 * x.stride0 < x.extent0", "-:1 * x.stride1 < x.extent1"]),
    (Case(kernels.view_of_a_matrix, **BATCH),
     ["1:32 * 1 < x.extent2", "0:16 * x.stride1 < x.extent1", "-:1 * x.stride0 < any"]),
    (Case(kernels.second_matrix, **BATCH),
     ["1:32 * 1 < x.extent2", "0:16 * x.stride1 < x.extent1", "-:1 * x.stride0 < x.extent0"]),
    (Case(kernels.masked, numbers=MATRIX), POINTER_BOX),
    (Case(kernels.column_major, numbers=MATRIX), ["0:32 * 1 < N", "1:16 * stride < M"]),
    (Case(kernels.advancing, LOOP, numbers=MATRIX), POINTER_BOX),
    (Case(kernels.advancing_rows, (1, 3, 1), numbers=MATRIX), POINTER_BOX),
    (Case(kernels.backwards, LOOP, numbers=MATRIX), POINTER_BOX),
    (Case(kernels.unmasked, (9, 1, 1), numbers={"stride": 80}),
     ["1:64 * 1 < any", "0:4 * stride < any"]),
    (Case(kernels.unmasked_columns, LOOP, numbers=ROWS), ["1:64 * 1 < any", "0:16 * stride < M"]),
    (Case(kernels.padded_columns, LOOP, numbers=ROWS), ["1:128 * 1 < 72", "0:16 * stride < M"]),
    (Case(kernels.strides_that_are_numbers, numbers={"M": 37}), ["1:32 * 1 < 72", "0:16 * 80 < M"]),
    (Case(kernels.parts_of_rows, numbers={**MATRIX, "part": 24}),
     ["1:8 * 1 < N", "0:16 * stride < M"]),
    (Case(kernels.grouped_programs, (9, 1, 1), numbers=MATRIX), POINTER_BOX),
    (Case(kernels.heads, **HEADS, numbers={"H": 2, "S": 37, "stride": 80}),
     ["1:64 * 1 < any", "0:16 * stride < S", "-:1 * 80 * stride < any", "-:1 * 40 * stride < any"]),
    (Case(kernels.hinted, numbers={**MATRIX, "step": 24}), ["1:8 * 1 < N", "0:16 * stride < M"]),
    (Case(kernels.counted_by_while, LOOP, numbers=MATRIX), POINTER_BOX),
    (Case(kernels.strided_columns, numbers={**MATRIX, "step": 1}), POINTER_BOX),
    (Case(kernels.wrapped_rows, LOOP, numbers={"M": 32, "stride": 80}, positive=True),
     ["1:64 * 1 < any", "0:16 * stride < any"]),
]

# a kernel, and why its load is of no box
NOT_BOXES = [
    (Case(kernels.spans, alignment=4), "x does not start at a multiple of 16 bytes"),
    (Case(kernels.spans, strides=(76, 1)),
     "the stride of axis 0 is not known to be a multiple of 16 bytes"),
    (Case(kernels.spans, strides=(80, 2)),
     "the stride of axis 1 is not known to be a multiple of 16 bytes"),
    (Case(kernels.spans, strides=(2048, 16)), "no axis of the tile has unit stride"),
    (Case(kernels.spans, strides=(0, 1)), "all elements along axis 0 have one address"),
    (Case(kernels.rows_from_the_end),
     "the stride of axis 0 is no positive number that is known at launch"),
    (Case(kernels.one_column_further),
     "rows of the tile are not known to start at a multiple of 16 bytes"),
    (Case(kernels.gathered_rows), "an index wraps around (%)"),
    (Case(kernels.one_row, (37, 3, 1)), "the tile has one axis"),
    (Case(kernels.narrow_rows), "rows of the tile are shorter than 16 bytes"),
    (Case(kernels.wrapped_rows, LOOP, numbers=ROWS),
     "an index wraps around (% M), and M is not known to be a multiple of 16: use a mask (< M)"),
    (Case(kernels.advancing_by_while, LOOP, numbers=MATRIX),
     "an index moves on in a loop that does not count its iterations"),
    (Case(kernels.moved_by_the_counter, LOOP, numbers=ROWS),
     "an index does not change by a fixed distance in each iteration"),
    (Case(kernels.less_than_the_array, numbers=MATRIX), "the mask is not the array's bounds"),
    (Case(kernels.checked_by_a_tile, numbers=MATRIX), "the mask is more than bounds of indices"),
    (Case(kernels.all_or_nothing, numbers=MATRIX),
     "a condition of the whole tile is no bound of the array"),
    (Case(kernels.filled_with_ones, numbers=MATRIX), "what the mask leaves out is not 0"),
    (Case(kernels.left_neighbours, numbers=MATRIX),
     "along axis 1 the tile may start before the array"),
    (Case(kernels.repeated_row, LOOP, numbers={"N": 72}),
     "all elements along axis 0 have one address"),
    (Case(kernels.sixty_four_bit_rows, (9, 1, 1), numbers={"stride": 80}),
     "along axis 0 the start of the tile may not fit 32 bits"),
]

# an access has the same box, for the same reason, as the addresses that it is lowered to
BOXES += [(replace(case, views=True), expected) for case, expected in BOXES]
NOT_BOXES += [(replace(case, views=True), reason) for case, reason in NOT_BOXES]

LOADS = """kernel f(
  %x: ptr<float16> = pointer(x) {divisibility=16}
  %n: int32 = extent(x, 0) {minimum=0}
  %s: int32 = stride(x, 0) {divisibility=8}
  %first: int32 = value(first)
) {
  %i = arange {start=0, size=16} : tile<16xint32>
  %0 = splat %s : tile<16xint32>
  %1 = mul %i, %0 : tile<16xint32>
  %2 = reshape %1 : tile<16x1xint32>
  %3 = broadcast %2 : tile<16x16xint32>
  %4 = reshape %i : tile<1x16xint32>
  %5 = broadcast %4 : tile<16x16xint32>
  %6 = add %3, %5 : tile<16x16xint32>
  %7 = splat %x : tile<16x16xptr<float16>>
  %8 = offset %7, %6 : tile<16x16xptr<float16>>
  %9 = mul %first, %s : int32
  %10 = splat %9 : tile<16x16xint32>
  %11 = offset %8, %10 : tile<16x16xptr<float16>>
  %12 = sub %n, %first : int32
  %13 = splat %12 : tile<16xint32>
  %14 = lt %i, %13 : tile<16xbool>
  %15 = neg %first : int32
  %16 = splat %15 : tile<16xint32>
  %17 = ge %i, %16 : tile<16xbool>
  %18 = and %14, %17 : tile<16xbool>
  %19 = reshape %18 : tile<16x1xbool>
  %20 = broadcast %19 : tile<16x16xbool>
  %21 = load %11, %20 : tile<16x16xfloat16>
  return
}
"""
LOADED_FIRST = """) {
  %a = load %x : float16
  %first = cast %a {dtype="int32"} : int32
"""


def _name(value: object) -> str:
    return str(value) if isinstance(value, Case) else ""


@pytest.mark.parametrize(("case", "expected"), BOXES, ids=_name)
def test_a_load_of_what_lies_inside_of_an_array_is_a_box(case, expected):
    found = box_or_reason(case.kernel(), 0)

    assert described(found) == expected


@pytest.mark.parametrize("case", [case for case, _ in BOXES if case.views], ids=str)
def test_elements_of_a_view_rise_along_the_axes_along_which_their_addresses_do(case):
    runs = []
    for fn in (case.kernel(), replace(case, views=False).kernel()):
        infos = AxisInfos(fn)
        runs.append([[axis.contiguity for axis in infos[access.pointer].axes]
                     for access in accesses(fn)])

    assert runs[0] == runs[1]


@pytest.mark.parametrize(("case", "expected"), NOT_BOXES, ids=_name)
def test_a_load_that_is_no_box_says_why(case, expected):
    found = box_or_reason(case.kernel(), 0)

    assert found == expected


@pytest.mark.parametrize("case", [case for case, _ in BOXES], ids=str)
def test_a_tensor_copy_touches_what_the_kernel_does(case):
    fn = case.kernel()
    copying = with_copies(raise_pointers(fn))

    verify(copying)
    copied = case.run(copying)

    assert copied.any()
    assert (copied == case.run(fn)).all()


@pytest.mark.parametrize("case", [case for case, _ in BOXES], ids=str)
def test_stores_to_out_are_boxes_as_well(case):
    found = box_or_reason(case.kernel(), 1)

    # the bound of a counter of a `while` is not known
    assert isinstance(found, str) == (case.function is kernels.counted_by_while)


@pytest.mark.parametrize("case", [case for case, _ in BOXES], ids=str)
def test_starts_that_come_from_programs_and_loops_are_plannable(case):
    fn = raise_pointers(case.kernel())
    boxes = Boxes(fn)

    box = boxes.box_of(accesses(fn)[0])

    assert all(boxes.is_plannable(axis.start) for axis in box.axes)


@pytest.mark.parametrize(("case", "is_own"), [
    (Case(kernels.spans), True),
    (Case(kernels.spans, strides=(1, 40)), True),
    (Case(kernels.transposed_view), True),
    (Case(kernels.batch_of_matrices, **BATCH), True),
    (Case(kernels.view_of_a_matrix, **BATCH), True),
    (Case(kernels.strides_that_are_numbers, numbers={"M": 37}), False),
    (Case(kernels.masked, numbers=MATRIX), False),
    (Case(kernels.own_extents, numbers={"stride": 80}), False),
    (Case(kernels.own_strides, (9, 1, 1)), True),
], ids=_name)
def test_whether_a_launch_needs_numbers_to_describe_the_array_is_known(case, is_own):
    box = box_or_reason(case.kernel(), 0)

    assert box.is_own == is_own


def test_a_start_that_is_loaded_is_not_plannable():
    fn = raise_pointers(parse(LOADS.replace("  %first: int32 = value(first)\n", "").replace(
        ") {\n", LOADED_FIRST, 1)))
    boxes = Boxes(fn)

    box = boxes.box_of(accesses(fn)[0])

    assert [boxes.is_plannable(axis.start) for axis in box.axes] == [True, False]


def test_a_start_beyond_32_bits_is_outside_of_the_array():
    case = Case(kernels.rows_from, numbers={"start": np.int64(2**32 + 3)}, wide=True)
    fn = raise_pointers(case.kernel())

    copied = case.run(with_copies(fn))

    assert described(Boxes(fn).box_of(accesses(fn)[0])) == ARRAY_BOX
    assert not copied.any()


def test_a_start_is_made_of_new_values():
    fn = raise_pointers(parse(LOADS))
    (load,) = accesses(fn)
    unit, rows = Boxes(fn).box_of(load).axes
    rebuilder = Rebuilder()
    rebuilder[fn.body.args[3]] = new = Value(TileType(int32))

    starts = unit.emit_start(rebuilder), rows.emit_start(rebuilder)

    assert number(starts[0]) == 0
    assert starts[1] is new


@pytest.mark.parametrize(("change", "reason"), [
    (("load %11, %20", "load %11, %20 {volatile=True}"), "the load is volatile"),
    (("%14 = lt %i, %13", "%14 = lt %i, %0"), "the mask is not the array's bounds"),
    (("and %14, %17", "or %14, %17"), "the mask is more than bounds of indices"),
    (("neg %first", "add %first, %s"), "the mask is not the array's bounds"),
    (("  %7 = splat %x", "  %p = undefined {dtype=\"ptr<float16>\", shape=()} : ptr<float16>\n"
      "  %7 = splat %p"), "an index is computed by undefined"),
], ids=["volatile", "another bound", "a disjunction", "another lower bound", "another pointer"])
def test_a_load_that_differs_in_one_op_is_no_box(change, reason):
    found = box_or_reason(parse(LOADS.replace(*change)), 0)

    assert found == reason


POINTERS = [case for case, _ in (*BOXES, *NOT_BOXES) if not case.views]


@pytest.mark.parametrize("case", [case for case, _ in BOXES if not case.views], ids=str)
def test_the_elements_of_a_raised_view_are_those_that_the_pointers_point_to(case):
    fn = case.kernel()

    raised = raise_pointers(fn)  # the interpreter runs the view

    verify(raised, TILE)
    assert any(op.opdef is raised_elements for op in walk(raised.body))
    assert (case.run(raised) == case.run(fn)).all()


@pytest.mark.parametrize("case", POINTERS, ids=str)
def test_a_raised_view_is_lowered_to_the_pointers_that_it_was_raised_from(case):
    fn = case.kernel()

    lowered = lower_raised(raise_pointers(fn))

    assert text(lowered) == text(dce(fn))

"""What the layout passes make of whole kernels: accesses, conversions and barriers."""

import time

import pytest
from laid_out_kernels import (
    ADD,
    COLUMN_SUMS,
    GATHER_AND_COUNT,
    SOFTMAX,
    SUBTRACT_ROW_MAXIMUM,
    TRANSPOSE,
    WALK_ROWS,
)

from blocknumba.gpu_layout.layouts.linear_layout import LinearLayout
from blocknumba.gpu_layout.layouts.registers import blocked, contiguous_registers
from blocknumba.gpu_layout.layouts.shared import access
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.text.parser import parse
from blocknumba.tile_ir.text.printer import text

DISJOINT = LayoutOptions(num_warps=4, arrays_are_disjoint=True)


def ops_of(fn, *names):
    return [op for op in walk(fn.body) if op.name in names]


def layouts_of(fn, *names):
    """The layouts of the pointers of loads, stores and atomics."""
    return {op.operands[0].type.layout for op in ops_of(fn, *names) if op.operands[0].type.shape}


def test_a_row_of_1024_is_two_16_byte_accesses_a_thread_the_first_of_all_threads_contiguous():
    laid_out = lay_out(ADD.function(), DISJOINT)

    (layout,) = layouts_of(laid_out, "load", "store")
    assert layout == blocked((1024,), (0,), 4, 4)
    assert layout["register"] == (1, 2, 512)
    assert not ops_of(laid_out, "convert_layout", "shared_write", "barrier")


def test_fewer_elements_than_vectors_for_all_threads_are_spread_over_all_threads():
    narrow = parse(ADD.text.replace("1024", "256"))

    (layout,) = layouts_of(lay_out(narrow, DISJOINT), "load", "store")

    assert contiguous_registers(layout, 0) == 2
    assert layout.is_injective


def test_arrays_that_may_overlap_are_read_before_any_thread_writes():
    laid_out = lay_out(ADD.function(), LayoutOptions())

    names = [op.name for op in walk(laid_out.body)]
    assert names.count("barrier") == 1
    assert names.index("barrier") == names.index("store") - 1


def test_softmax_holds_its_row_in_registers_and_crosses_warps_once_per_reduction():
    laid_out = lay_out(SOFTMAX.function(), DISJOINT)

    assert layouts_of(laid_out, "load", "store") == {blocked((1024,), (0,), 4, 4)}
    assert len(ops_of(laid_out, "shared_write")) == len(ops_of(laid_out, "shared_read")) == 2
    assert len(ops_of(laid_out, "barrier")) == 2
    assert laid_out.attrs["shared_bytes"] == 2 * 16
    for op in ops_of(laid_out, "shared_read"):
        assert access(op.result.type.layout, op.operands[0].type.layout, 32).vector == 4


def test_softmax_with_one_warp_needs_no_shared_memory():
    laid_out = lay_out(SOFTMAX.function(), LayoutOptions(num_warps=1))

    assert not ops_of(laid_out, "shared_allocate")
    assert laid_out.attrs.get("shared_bytes", 0) == 0


def test_rows_that_are_reduced_are_not_split_over_warps():
    laid_out = lay_out(SUBTRACT_ROW_MAXIMUM.function(), DISJOINT)

    assert not ops_of(laid_out, "convert_layout", "partial_reduce", "barrier")
    (layout,) = layouts_of(laid_out, "load", "store")
    assert contiguous_registers(layout, 1) == 4


def test_a_transposition_goes_through_shared_memory_once_without_conflicts():
    laid_out = lay_out(TRANSPOSE.function(), DISJOINT)

    assert layouts_of(laid_out, "load", "store") == {blocked((64, 64), (1, 0), 4, 4)}
    (write,) = ops_of(laid_out, "shared_write")
    (read,) = ops_of(laid_out, "shared_read")
    shared = write.operands[0].type.layout
    for layout in (write.operands[1].type.layout, read.result.type.layout):
        assert access(layout, shared, 32).degree == 1
    assert len(ops_of(laid_out, "barrier")) == 1


def test_a_bias_is_loaded_where_it_is_added_and_a_loop_carries_one_layout():
    laid_out = lay_out(COLUMN_SUMS.function(), DISJOINT)

    (loop,) = ops_of(laid_out, "for")
    inside = [op.name for op in walk(loop.regions[0])]
    assert "convert_layout" not in inside
    assert len(ops_of(laid_out, "shared_write")) == 1
    loads = ops_of(laid_out, "load")
    assert all(contiguous_registers(op.operands[0].type.layout, axis) == 8
               for op, axis in zip(loads, (0, 1), strict=True))


def test_partial_sums_of_16_bit_floats_are_float32():
    fn = parse("""
kernel total(
  %x: ptr<float16> = pointer(x) {divisibility=16}
) {
  %i = arange {start=0, size=512} : tile<512xint32>
  %xs = splat %x : tile<512xptr<float16>>
  %xp = offset %xs, %i : tile<512xptr<float16>>
  %a = load %xp : tile<512xfloat16>
  %sum = reduce %a {axis=0, kind="sum"} : float16
  store %x, %sum
  return
}
""")

    laid_out = lay_out(fn, DISJOINT)

    (partial,) = ops_of(laid_out, "partial_reduce")
    assert str(partial.result.type.dtype) == "float32"


def test_the_result_of_an_atomic_reaches_every_thread_through_shared_memory():
    laid_out = lay_out(GATHER_AND_COUNT.function(), DISJOINT)

    of_all, of_one, of_few = ops_of(laid_out, "atomic_rmw")
    users = {value: op.name for op in walk(laid_out.body) for value in op.operands}
    assert users[of_all.result] == "partial_arg_reduce"
    assert users[of_one.result] == users[of_few.result] == "shared_write"


def test_values_and_indices_of_an_arg_reduction_cross_warps_behind_one_barrier():
    laid_out = lay_out(GATHER_AND_COUNT.function(), DISJOINT)

    names = [op.name for op in walk(laid_out.body)]
    first = names.index("partial_arg_reduce")
    assert names[first : names.index("finish_arg_reduce")].count("barrier") == 1


def test_indices_that_were_loaded_are_used_where_they_are():
    laid_out = lay_out(GATHER_AND_COUNT.function(), DISJOINT)

    assert len(layouts_of(laid_out, "load")) == 1


@pytest.mark.parametrize("kernel", [SOFTMAX, TRANSPOSE, COLUMN_SUMS, GATHER_AND_COUNT])
def test_the_text_of_a_laid_out_kernel_parses_back(kernel):
    laid_out = lay_out(kernel.function(), DISJOINT)

    assert text(parse(text(laid_out), LinearLayout.parse)) == text(laid_out)


def test_a_pass_changes_nothing_it_was_given():
    fn = SOFTMAX.function()
    before = text(fn)

    lay_out(fn, DISJOINT)

    assert text(fn) == before


def test_laying_out_softmax_takes_milliseconds():
    fn = SOFTMAX.function()

    def once():
        start = time.perf_counter()
        lay_out(fn, DISJOINT)
        return time.perf_counter() - start

    assert min(once() for _ in range(20)) < 0.015


def test_pointers_that_a_loop_carries_are_in_the_layout_of_its_load():
    laid_out = lay_out(WALK_ROWS.function(), DISJOINT)

    (loop,) = ops_of(laid_out, "for")
    (load,) = ops_of(laid_out, "load")
    assert loop.result.type.layout == load.result.type.layout == blocked((256,), (0,), 2, 4)

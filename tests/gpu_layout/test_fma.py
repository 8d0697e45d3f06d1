"""Dots by plain arithmetic: which elements every thread multiplies."""

import numpy as np
import pytest
from emulated_threads import element_index

from blocknumba.gpu_layout.dots.fma import accumulator_layout, fma_plan
from blocknumba.gpu_layout.layouts.registers import register_count
from blocknumba.gpu_layout.layouts.shared import access, swizzled, widest_swizzle

SHAPES = [(1, 1), (1, 64), (64, 1), (4, 4), (16, 8), (64, 64), (2, 16, 16), (8, 1, 2), (32, 8, 8)]


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("depth", [1, 4, 16])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_sum_is_of_its_row_and_its_column(shape, depth, num_warps):
    layout = accumulator_layout(shape, num_warps, (4, 4))

    plan = fma_plan(layout, depth)

    *batch, rows, columns = shape
    indices = np.unravel_index(element_index(layout), shape)
    for k in range(depth):
        of_a, of_b = (np.unravel_index(element_index(tile)[:, :, np.array(registers) + k], extents)
                      for tile, registers, extents in (
                          (plan.a, plan.a_of, (*batch, rows, depth)),
                          (plan.b, plan.b_of, (*batch, depth, columns))))
        assert (of_a[-1] == k).all() and (of_b[-2] == k).all()
        assert all((a == s).all() for a, s in zip(of_a[:-1], indices[:-1], strict=True))
        assert all((b == s).all() for b, s in zip(of_b[:-2], indices[:-2], strict=True))
        assert (of_b[-1] == indices[-1]).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_sum_is_somewhere_and_in_no_thread_twice(shape):
    layout = accumulator_layout(shape, 4, (1, 4))

    assert layout.is_surjective
    assert len(set(layout["register"])) == len(layout["register"])
    assert 0 not in layout["register"]


@pytest.mark.parametrize("vectors", [(1, 4), (4, 4), (1, 1), (4, 1)], ids=str)
@pytest.mark.parametrize("shape, num_warps", [((128, 128), 8), ((64, 64), 2)])
def test_a_thread_has_as_many_rows_as_columns(shape, num_warps, vectors):
    plan = fma_plan(accumulator_layout(shape, num_warps, vectors), 8)

    assert register_count(plan.layout) == 64
    assert len(set(plan.a_of)) == len(set(plan.b_of)) == 8


@pytest.mark.parametrize("a_minor", [0, 1])
@pytest.mark.parametrize("b_minor", [0, 1])
def test_operands_are_read_16_bytes_at_a_time_without_conflicts_either_way_round(a_minor, b_minor):
    vectors = (4 if a_minor == 0 else 1, 4 if b_minor == 1 else 1)
    plan = fma_plan(accumulator_layout((128, 128), 8, vectors), 32)

    for shape, minor, layout in (((128, 32), a_minor, plan.a), ((32, 128), b_minor, plan.b)):
        shared = swizzled(shape, minor, 32, widest_swizzle(shape[minor], 32))
        read = access(layout, shared, 32)
        assert (read.vector, read.degree) == (4, 1)

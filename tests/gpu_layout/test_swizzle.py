"""Swizzled layouts against the address formula of TMA, element by element."""

import math

import pytest

from blocknumba.gpu_layout.layouts.registers import transpose
from blocknumba.gpu_layout.layouts.shared import SWIZZLES, recognized, swizzled, widest_swizzle

SHAPES = ((8, 64), (16, 16), (32, 128), (1, 256), (4, 8), (64, 2), (2, 4, 32), (256,))
CASES = [
    (shape, axis, bits, swizzle)
    for shape in SHAPES for axis in range(len(shape)) for bits in (8, 16, 32)
    for swizzle in SWIZZLES if swizzle * 8 // bits <= shape[axis]
]


def _address(shape, minor_axis, element_bits, swizzle, index):
    """The byte offset of an element.  Source: PTX ISA, "Swizzling Modes"."""
    item = element_bits // 8
    width = swizzle // item if swizzle else shape[minor_axis]
    panel, column = divmod(index[minor_axis], width)
    row, rows = 0, 1
    for axis, extent in enumerate(shape):
        if axis != minor_axis:
            row, rows = row * extent + index[axis], rows * extent
    offset = ((panel * rows + row) * width + column) * item
    return offset ^ (offset >> 7 & max(swizzle // 16 - 1, 0)) << 4


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_element_is_where_the_copy_engine_puts_it(case):
    shape, minor_axis, element_bits, swizzle = case

    layout = swizzled(*case)

    for offset in range(math.prod(shape)):
        found = layout(offset=offset)
        index = [found[f"dim{axis}"] for axis in range(len(shape))]
        assert _address(shape, minor_axis, element_bits, swizzle, index) == (
            offset * element_bits // 8)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_swizzled_layout_is_recognized_as_one_that_is_equal(case):
    layout = swizzled(*case)

    minor_axis, swizzle = recognized(layout, case[2])

    assert swizzled(case[0], minor_axis, case[2], swizzle) == layout


def test_the_transposed_tile_has_the_other_axis_as_its_minor_one():
    layout = swizzled((64, 128), 1, 16, 128)

    turned = transpose(layout, (1, 0))

    assert turned == swizzled((128, 64), 0, 16, 128)
    assert recognized(turned, 16) == (0, 128)


def test_a_layout_with_an_element_out_of_place_is_not_recognized():
    layout = swizzled((16, 64), 1, 16, 128)
    columns = (layout.columns[1], layout.columns[0], *layout.columns[2:])

    assert recognized(layout.with_columns("offset", columns), 16) is None


@pytest.mark.parametrize(
    "extent, bits, expected",
    [(64, 16, 128), (128, 16, 128), (32, 16, 64), (16, 16, 32), (8, 16, 0), (128, 8, 128),
     (32, 32, 128), (4, 32, 0), (1, 8, 0)])
def test_the_widest_swizzle_is_one_whose_row_fits_the_axis(extent, bits, expected):
    assert widest_swizzle(extent, bits) == expected


@pytest.mark.parametrize("swizzle", [128, 64, 32])
@pytest.mark.parametrize("minor_axis", [0, 1])
def test_eight_rows_of_one_chunk_are_read_without_conflicts(swizzle, minor_axis):
    shape = (64, 64)
    layout = swizzled(shape, minor_axis, 16, swizzle)
    banks = set()

    for row in range(8):
        index = {f"dim{minor_axis}": 0, f"dim{1 - minor_axis}": row}
        offset = next(o for o in range(4096) if layout(offset=o) == {
            name: index[name] for name, _ in layout.outs})
        banks.add(offset * 2 % 128 // 16)

    assert len(banks) == 8

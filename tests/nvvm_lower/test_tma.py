"""Boxes of arrays through shared memory, by TMA, in the emulator."""

import itertools
import math
import re

import numpy as np
import pytest
from hopper import copied_by_the_engine, numbers

from blocknumba.gpu_layout.layouts.shared import in_panels, offset_of, swizzled
from blocknumba.nvvm_lower.ops.asynchronous import pieces

# dtype, shape of the tile, box (innermost first), swizzle, minor axis
TILES = [
    ("float16", (64, 64), (64, 64), 128, 1),
    ("float16", (64, 128), (64, 64), 128, 1),
    ("float16", (512, 64), (64, 256), 128, 1),
    ("float16", (16, 32), (32, 16), 64, 1),
    ("float16", (16, 64), (16, 16), 32, 1),
    ("float16", (128, 64), (64, 64), 128, 0),
    ("float32", (32, 64), (32, 32), 128, 1),
    ("int8", (64, 256), (128, 64), 128, 1),
    ("bfloat16", (16, 16), (16, 16), 32, 1),
    ("float32", (16, 8), (8, 16), 0, 1),
    ("float32", (64,), (64,), 0, 0),
    ("float64", (4, 8, 16), (16, 8, 4), 128, 2),
    ("float16", (2, 2, 8, 32), (32, 8, 2, 2), 64, 3),
    ("float16", (2, 2, 2, 8, 16), (16, 8, 2, 2, 2), 32, 4),
]


def _array_of(tile, dtype, minor_axis, seed=0):
    """An array with room for a few boxes, whose axis minor_axis is contiguous."""
    order = (*[axis for axis in range(len(tile)) if axis != minor_axis], minor_axis)
    memory = numbers([2 * tile[axis] + 16 for axis in order], dtype, seed)
    return memory.transpose(np.argsort(order)), order[::-1]


@pytest.mark.parametrize("case", TILES, ids=str)
def test_a_box_is_fetched_and_stored(case):
    dtype, tile, box, swizzle, minor_axis = case
    x, axes = _array_of(tile, dtype, minor_axis)
    out, _ = _array_of(tile, dtype, minor_axis, seed=1)
    expected = out.copy()
    start = [16 if axis == minor_axis else 1 for axis in range(len(tile))]
    there = tuple(slice(first, first + extent) for first, extent in zip(start, tile))
    expected[tuple(slice(extent) for extent in tile)] = x[there]
    kernel = copied_by_the_engine(dtype, tile, box, swizzle, minor_axis, axes)

    kernel.launch(x, out, *[start[axis] for axis in axes])

    np.testing.assert_array_equal(out, expected)


def test_what_is_outside_of_the_array_is_zeros_and_is_not_stored():
    x, out = numbers((40, 48), "float16"), numbers((40, 48), "float16", 1)
    kernel = copied_by_the_engine("float16", (64, 64), (64, 64), 128, 1, (1, 0))
    expected = np.zeros_like(out)
    expected[:24, :32] = x[16:, 16:]

    kernel.launch(x, out, 16, 16)

    np.testing.assert_array_equal(out, expected)


def test_axes_of_extent_one_may_be_left_out_of_the_tile():
    x, out = numbers((4, 32, 3, 64), "float16"), numbers((4, 32, 3, 64), "float16", 1)
    kernel = copied_by_the_engine("float16", (16, 64), (64, 1, 16, 1), 128, 1, (3, 2, 1, 0))
    expected = out.copy()
    expected[0, :16, 0] = x[3, 8:24, 2]

    kernel.launch(x, out, 0, 2, 8, 3)

    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("case", TILES, ids=str)
def test_pieces_cover_the_buffer_and_lie_one_after_the_other(case):
    dtype, tile, box, swizzle, minor_axis = case
    bits = 8 * np.dtype(dtype).itemsize if dtype != "bfloat16" else 16

    found = pieces(swizzled(tile, minor_axis, bits, swizzle), bits, box)

    size = math.prod(box) * bits // 8
    assert [piece.offset_bytes for piece in found] == list(
        range(0, math.prod(tile) * bits // 8, size))


def test_every_element_of_a_piece_is_where_its_panel_has_it():
    tile, box = (512, 128), (64, 256)
    panels = in_panels(tile, 1, 16, 128)

    found = pieces(swizzled(tile, 1, 16, 128), 16, box)

    for piece, row, column in itertools.product(found, (0, 1, 100, 255), (0, 1, 63)):
        index = {0: piece.starts[1] + row, 1: piece.starts[0] + column}
        assert offset_of(panels, index) * 2 == piece.offset_bytes + row * 128 + column * 2


def test_a_kernel_with_tensor_maps_says_so_and_uses_the_copy_engine():
    kernel = copied_by_the_engine("float16", (64, 128), (64, 64), 128, 1, (1, 0))

    sass, ptx = kernel.sass, kernel.ptx

    assert ptx.count("prefetch.tensormap") == 2
    assert re.search(r"\.param \.align 64 \.b8 k_param_0\[128\]", ptx)
    assert len(re.findall(r"\bUTMALDG\.2D", sass)) == 2
    assert len(re.findall(r"\bUTMASTG\.2D", sass)) == 2
    assert kernel.assembled.warnings == ()
    assert kernel.assembled.spill_bytes == kernel.assembled.stack_bytes == 0

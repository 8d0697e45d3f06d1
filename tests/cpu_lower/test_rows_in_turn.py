"""Neighbouring programs take turns row by row, where that changes no result."""

import re

import numpy as np
import pytest
from native_kernels import NativeKernel

import blocknumba as bn

PLANE = "f32[:,::1]"


@bn.jit(device="cpu")
def around(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    out[r, c] = x[r + -1, c] + x[r + 1, c] + x[r, c + -1] + x[r, c + 1] - 4 * x[r, c]


@bn.jit(device="cpu")
def boxes(x, scale, out, D: bn.constexpr, R: bn.constexpr, C: bn.constexpr):
    """The last axis of the arrays is the first one of the grid."""
    c, r, d = bn.block(0, C), bn.block(1, R), bn.block(2, D)
    out[d, r, c] = x[d, r, c] * scale[r][None, :, None]


@bn.jit(device="cpu")
def parts(x, sums, differences, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    a, b = x[r, c], x[r, c + 1]
    sums[r, c] = a + b
    differences[r, c] = a - b


@bn.jit(device="cpu")
def doubled(x, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    x[r, c] = x[r, c] * 2


@bn.jit(device="cpu")
def shifted(x, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """A program reads all of its rows before it writes any."""
    r, c = bn.span(0, ROWS), bn.block(1, COLUMNS)
    x[r + 1, c] = x[r, c]


@bn.jit(device="cpu")
def scaled_by_first(x, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """The factor is one of the elements that are stored."""
    r, c = bn.span(0, ROWS), bn.block(1, COLUMNS)
    x[r, c] = x[r, c] * x[0, bn.program_id(1) * COLUMNS]


@bn.jit(device="cpu")
def transposed(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    out[r, c] = x[c, r].T


@bn.jit(device="cpu")
def minus_mean(x, out, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    r, c = bn.block(0, ROWS), bn.block(1, COLUMNS)
    tile = x[r, c]
    out[r, c] = tile - bn.sum(tile, 0, keepdims=True)


SIZES = {"ROWS": 8, "COLUMNS": 64}


def take_turns(native: NativeKernel) -> bool:
    return "%turn" in native.lowered.llvm_ir


def exact_around(x: np.ndarray) -> np.ndarray:
    wide = np.pad(x.astype(np.float64), 1)
    return (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
            - 4 * wide[1:-1, 1:-1])


@pytest.mark.parametrize("shape", [(8, 64), (37, 1000), (64, 640), (5, 63), (40, 5000)], ids=str)
def test_neighbours_that_take_turns_find_what_numpy_does(shape):
    native = NativeKernel(around, (PLANE, PLANE), SIZES)
    x = np.random.default_rng().standard_normal(shape, np.float32)
    out = np.full_like(x, np.nan)
    native.run((bn.cdiv(shape[0], 8), bn.cdiv(shape[1], 64)), x=x, out=out)
    assert take_turns(native)
    np.testing.assert_allclose(out, exact_around(x), atol=2e-5)


def test_any_ranges_of_programs_together_are_the_launch():
    native = NativeKernel(around, (PLANE, PLANE), SIZES)
    x = np.random.default_rng().standard_normal((50, 1100), np.float32)
    out, whole = np.full_like(x, np.nan), native._call
    native._call = lambda slots, first, stop, *grid: [
        whole(slots, *ends, *grid) for ends in ((0, 1), (1, 30), (30, 31), (31, stop))][-1]
    native.run((7, 18), x=x, out=out)
    np.testing.assert_allclose(out, exact_around(x), atol=2e-5)


def test_a_grid_that_covers_a_part_leaves_the_rest_alone():
    native = NativeKernel(around, (PLANE, PLANE), SIZES)
    x = np.random.default_rng().standard_normal((40, 500), np.float32)
    out = np.full_like(x, np.nan)
    native.run((2, 3), x=x, out=out)
    np.testing.assert_allclose(out[:16, :192], exact_around(x)[:16, :192], atol=2e-5)
    assert np.isnan(out[16:]).all() and np.isnan(out[:, 192:]).all()


def test_rows_of_boxes_of_any_axes_of_the_grid():
    native = NativeKernel(boxes, ("f32[:,:,::1]", "f32[::1]", "f32[:,:,::1]"),
                          {"D": 2, "R": 4, "C": 32})
    x = np.random.default_rng().standard_normal((5, 11, 300), np.float32)
    scale, out = x[0, :, 0].copy(), np.full_like(x, np.nan)
    native.run((10, 3, 3), x=x, scale=scale, out=out)
    assert take_turns(native)
    np.testing.assert_allclose(out, x.astype(np.float64) * scale[:, None], rtol=1e-6)


def test_stores_of_one_nest_take_turns_together():
    native = NativeKernel(parts, (PLANE, PLANE, PLANE), SIZES)
    x = np.random.default_rng().standard_normal((30, 700), np.float32)
    sums, differences = np.full((2, 30, 700), np.nan, np.float32)
    native.run((4, 11), x=x, sums=sums, differences=differences)
    after = np.pad(x.astype(np.float64), ((0, 0), (0, 1)))[:, 1:]
    assert take_turns(native)
    np.testing.assert_allclose(sums, x + after, atol=1e-6)
    np.testing.assert_allclose(differences, x - after, atol=1e-6)


def test_elements_that_are_written_where_they_are_read_take_turns():
    native = NativeKernel(doubled, (PLANE,), SIZES)
    x = np.random.default_rng().standard_normal((30, 700), np.float32)
    before = x.copy()
    native.run((4, 11), x=x)
    assert take_turns(native)
    np.testing.assert_array_equal(x, before * 2)


@pytest.mark.parametrize("kernel, exact", [
    (shifted, lambda x: np.concatenate([x[:1], x[:-1]])),
    (scaled_by_first, lambda x: x * np.repeat(x[0, ::64], 64))], ids=["shifted", "first"])
def test_rows_that_read_what_others_write_take_no_turns(kernel, exact):
    native = NativeKernel(kernel, (PLANE,), SIZES)
    x = np.random.default_rng().standard_normal((9 if kernel is shifted else 8, 256), np.float32)
    expected = exact(x)
    native.run((1, 4), x=x)
    assert not take_turns(native)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("kernel", [transposed, minus_mean], ids=lambda kernel: kernel.__name__)
def test_columns_that_are_read_at_once_take_no_turns(kernel):
    native = NativeKernel(kernel, (PLANE, PLANE), SIZES)
    assert not take_turns(native)


def test_pointers_to_neighbours_are_one_and_constant_distances():
    text = NativeKernel(around, (PLANE, PLANE), SIZES).lowered.llvm_ir
    distances = re.findall(r"getelementptr float, ptr %v\d+, i64 (-?\d+)$", text, re.MULTILINE)
    assert distances[:2] == ["2", "-1"], "from c - 1 to c + 1, from there to c"

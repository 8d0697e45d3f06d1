"""Spellings that public kernels use beside those of Triton's documentation."""

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.errors import BlockIndexError, BlockTypeError
from blocknumba.triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
from blocknumba.triton.language.standard import _log2, sum as sum_of


@triton.jit
def sum_of_rows(x, out, rows, FLATTEN: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.arange(0, COLUMNS)
    total = tl.zeros([COLUMNS], tl.float32)
    for row in range(rows, flatten=FLATTEN):
        for part in range(0, 2, num_stages=2):
            total += tl.load(x + row * COLUMNS + columns) * part
    tl.store(out + columns, total)


@pytest.mark.parametrize("flatten", (False, True))
def test_the_range_of_python_takes_the_keywords_of_tritons(flatten):
    x = np.random.default_rng().standard_normal((5, 16)).astype(np.float32)
    out = np.full(16, np.nan, np.float32)
    sum_of_rows[(1,)](x, out, 5, FLATTEN=flatten, COLUMNS=16)
    np.testing.assert_allclose(out, x.astype(np.float64).sum(0), rtol=0, atol=1e-5)


@triton.jit
def compared(x, stage: tl.core.constexpr, n_dims: tl.core.constexpr):
    shape: tl.core.constexpr = [2 ** stage, 2, 2 ** (n_dims - stage - 1)]
    parts = tl.core.reshape(x, shape)
    is_right = tl.core.arange(0, 2)[None, :, None]
    left = tl.core.broadcast_to(sum_of(parts * (1 - is_right), 1)[:, None, :], shape)
    right = tl.core.broadcast_to(sum_of(parts * is_right, 1)[:, None, :], shape)
    return tl.core.reshape(tl.core.where(is_right == 0, tl.minimum(left, right),
                                         tl.maximum(left, right)), x.shape)


@triton.jit
def merged(x, out, SIZE: tl.constexpr):
    values = tl.load(x + tl.arange(0, SIZE))
    n_dims: tl.core.constexpr = _log2(values.shape[0])
    for stage in tl.core.static_range(0, n_dims):
        values = compared(values, stage, n_dims)
    tl.store(out + tl.arange(0, SIZE), values)


def test_a_network_is_written_with_the_modules_core_and_standard():
    rng = np.random.default_rng()
    halves = np.sort(rng.integers(-99, 99, (2, 16)).astype(np.int32), axis=1)
    bitonic = np.concatenate([halves[0], halves[1][::-1]])
    out = np.full(32, -1, np.int32)
    merged[(1,)](bitonic, out, SIZE=32)
    np.testing.assert_array_equal(out, np.sort(bitonic))


@triton.jit
def doubled_by_steps(x, out, n, BLOCK: tl.constexpr):
    for start in range(0, n, step=BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, at < n) * 2, at < n)


def test_the_range_of_python_takes_its_step_by_name():
    x = np.random.default_rng().standard_normal(50).astype(np.float32)
    out = np.full(50, np.nan, np.float32)
    doubled_by_steps[(1,)](x, out, 50, BLOCK=16)
    np.testing.assert_array_equal(out, x * 2)


@triton.jit
def last_row(x, out, rows, KEEP: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    if KEEP:
        kept = out + SIZE
    for row in range(rows):
        value = tl.load(x + row * SIZE + at)
        if row == rows - 1 and KEEP:
            tl.store(kept + at, value)
        if row < rows - 1 or not KEEP:
            tl.store(out + at, value)


@pytest.mark.parametrize("keep", (False, True))
def test_a_constant_on_the_right_of_and_and_or_decides(keep):
    x = np.random.default_rng().standard_normal((3, 16)).astype(np.float32)
    out = np.full((2, 16), np.nan, np.float32)
    last_row[(1,)](x, out, 3, KEEP=keep, SIZE=16)
    np.testing.assert_array_equal(out, x[1:] if keep else [x[2], np.full(16, np.nan)])


@triton.jit
def least_of(dtype):
    of = dtype.value
    if of.is_floating():
        result: tl.constexpr = float("-inf")
        return result
    width: tl.constexpr = of.int_bitwidth
    result: tl.constexpr = -1 * 2 ** (width - 1)
    return result


@triton.jit
def greatest_of(x, out, n, SIZE: tl.constexpr):
    tl.static_assert(not x.type.is_fp16() and x.type.is_ptr() and not x.type.is_floating())
    at = tl.arange(0, SIZE)
    least = least_of(x.type.element_ty)
    tl.store(out, tl.max(tl.load(x + at, mask=at < n, other=least), axis=0))


@pytest.mark.parametrize("dtype", (np.float16, np.int16, np.int32))
def test_a_helper_asks_a_dtype_for_its_value(dtype):
    x = np.random.default_rng().integers(-90, -1, 16).astype(dtype)
    out = np.zeros(1, dtype)
    greatest_of[(1,)](x, out, 11, SIZE=16)
    assert out[0] == x[:11].max()


@triton.jit
def shape_of_a_type(x, out, SIZE: tl.constexpr):
    tile = tl.load(x + tl.arange(0, SIZE)[:, None] * 4 + tl.arange(0, 4))
    sevens = tl.full(tile.type.get_block_shapes(), 7, tl.int32)
    tl.store(out + tl.arange(0, SIZE)[:, None] * 4 + tl.arange(0, 4), tile + sevens)


def test_a_tile_type_gives_its_shape():
    x = np.random.default_rng().integers(-90, 90, (8, 4)).astype(np.int32)
    out = np.zeros_like(x)
    shape_of_a_type[(1,)](x, out, SIZE=8)
    np.testing.assert_array_equal(out, x + 7)


@triton.jit
def methods(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    gdc_wait()
    value = tl.load(x + at)
    tl.static_assert(value.dtype.fp_mantissa_width == 23 and value.dtype.exponent_bias == 127)
    tl.static_assert(tl.float16.fp_mantissa_width == 10 and tl.float8e4nv.exponent_bias == 7)
    is_kept = (value > 0).logical_and(at > 2).logical_or(at == 0)
    tl.store(out + at, tl.where(is_kept, value.sigmoid(), value.sqrt_rn()))
    gdc_launch_dependents()


def test_functions_of_one_tile_are_its_methods():
    x = np.abs(np.random.default_rng().standard_normal(16)).astype(np.float32) + 1
    out = np.full(16, np.nan, np.float32)
    methods[(1,)](x, out, SIZE=16)
    wide = x.astype(np.float64)
    expected = np.where(np.isin(np.arange(16), (1, 2)), np.sqrt(wide), 1 / (1 + np.exp(-wide)))
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@triton.jit
def described(out, SCALE: tl.constexpr, SIZE: tl.constexpr):
    tl.static_print(f"{SIZE=} {SCALE:.2f} {SCALE!s:>6}")
    tl.static_assert(f"{SIZE=} {SCALE:.2f}{SCALE!r:>6}" == "SIZE=16 0.25  0.25")
    tl.store(out + tl.arange(0, SIZE), SIZE)


def test_texts_of_constants_have_formats(capsys):
    out = np.zeros(16, np.int32)
    described[(1,)](out, SCALE=0.25, SIZE=16)
    assert capsys.readouterr().out == "SIZE=16 0.25   0.25\n"
    assert (out == 16).all()


@triton.jit
def offset_by_a_scalar(out, stride, M: tl.constexpr, N: tl.constexpr):
    number = tl.program_id(0)
    at = (tl.arange(0, M)[:, None, None] * N + tl.arange(0, N)[None, :, None]
          + number[None, None, :] * stride)
    tl.store(out + at, tl.full((M, N, 1), 0, tl.int32) + number[None, :])


def test_a_scalar_has_axes_of_one():
    out = np.full((3, 4, 8), -1, np.int32)
    offset_by_a_scalar[(3,)](out, 32, M=4, N=8)
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(3)[:, None, None], (3, 4, 8)))


@triton.jit
def first_row_of(x, out, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    values = tl.load(x + column, mask=row == 0, other=0)
    tl.store(out + row * N + column, values)


def test_pointers_of_a_load_broadcast_with_its_mask():
    x = np.random.default_rng().random(16, np.float32)
    out = np.full((4, 16), np.nan, np.float32)
    first_row_of[(1,)](x, out, M=4, N=16)
    np.testing.assert_array_equal(out, np.where(np.arange(4)[:, None] == 0, x, 0))


@triton.jit
def with_wide_other(x, out, OTHER: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at, mask=at < 3, other=OTHER))


def test_another_value_than_the_elements_hold_is_converted_as_by_a_cast():
    for dtype, other in ((np.int32, (1 << 62) + 5), (np.uint8, -1), (np.int16, 1 << 15)):
        x, out = np.arange(8, dtype=dtype), np.zeros(8, dtype)
        with_wide_other[(1,)](x, out, OTHER=other, SIZE=8)
        expected = np.where(np.arange(8) < 3, x, np.array(other).astype(dtype))
        np.testing.assert_array_equal(out, expected)


@tl.constexpr
def integer_of(like, signed):
    return tl.core.get_int_dtype(like.primitive_bitwidth, signed.value)


@triton.jit
def bits_of(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    values = tl.load(x + at)
    kind: tl.constexpr = integer_of(values.dtype, signed=False)
    tl.static_assert(kind.primitive_bitwidth == values.dtype.primitive_bitwidth)
    tl.store(out + at, values.to(kind, bitcast=True))


@tl.constexpr
def wide_enough(dtype):
    return {tl.float16: tl.float32, tl.int8: tl.int64}[dtype] if dtype.is_fp16() else dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_python_gets_a_dtype_as_it_is(dtype):
    @triton.jit
    def double(x_ptr, out_ptr, N: tl.constexpr):
        wide: tl.constexpr = wide_enough(x_ptr.type.element_ty)
        tl.store(out_ptr + tl.arange(0, N), 2 * tl.load(x_ptr + tl.arange(0, N)).to(wide))

    x, out = np.full(16, 40_000, dtype), np.full(16, np.nan)
    double[(1,)](x, out, N=16)
    assert (out == 80_000).all()


@pytest.mark.parametrize("size", (2, 4))
def test_python_runs_a_function_in_a_constexpr(size):
    x = np.random.default_rng().standard_normal(8).astype(f"f{size}")
    out = np.zeros(8, f"u{size}")
    bits_of[(1,)](x, out, SIZE=8)
    np.testing.assert_array_equal(out, x.view(f"u{size}"))


@triton.jit
def of_run_time(out, count):
    tl.store(out, integer_of(count, False))


def test_a_function_in_a_constexpr_is_refused_a_number_of_run_time():
    with pytest.raises(BlockTypeError, match="integer_of runs at compile time: given int32, "
                                             "accepted constants") as refused:
        of_run_time[(1,)](np.zeros(1, np.int32), 3)
    assert refused.value.hint == "make its parameters constexpr, or a function of jit of it"


@triton.jit
def first_axes(out, SIZES: tl.constexpr, KINDS: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    m, n = SIZES
    first, _ = KINDS  # which stay known at compile time
    tl.static_assert(first == tl.int16)
    tl.store(out + i * 3 + j, (m * 100 + n).to(first))


def test_values_beyond_the_names_that_a_tuple_is_unpacked_into_are_left_out():
    out = np.zeros((2, 3), np.int32)
    first_axes[(2, 3)](out, SIZES=(5, 4, 7), KINDS=(tl.int16, tl.int8, tl.int32))
    np.testing.assert_array_equal(out, 504)


@triton.jit
def too_few(out):
    i, j, k = tl.program_id(0), tl.program_id(1)
    tl.store(out + i, j + k)


def test_fewer_values_than_names_are_refused():
    with pytest.raises(BlockTypeError, match="unpacking: given 2 values, accepted 3"):
        too_few[(1,)](np.zeros(1, np.int32))


@triton.jit
def counted(x, out, BINS: tl.constexpr, SIZE: tl.constexpr):
    values = tl.load(x + tl.arange(0, SIZE))
    tl.store(out + tl.arange(0, BINS), values.histogram(BINS))
    tl.store(out + tl.arange(0, BINS), tl.histogram(values, BINS, mask=values < 5))


def test_numbers_beyond_the_bins_of_a_histogram_are_found_by_debug():
    x, out = np.array([0, 3, 3, 7], np.uint8), np.full(4, -1, np.int32)
    counted[(1,)](x, out, BINS=4, SIZE=4)
    np.testing.assert_array_equal(out, [1, 0, 0, 2])
    with pytest.raises(BlockIndexError, match="the bins of a histogram: index 7 is outside"):
        counted[(1,)](x, out, BINS=4, SIZE=4, device="cpu", debug=True)
    counted[(1,)](x[:3].repeat(2)[:4], out, BINS=4, SIZE=4, device="cpu", debug=True)
    np.testing.assert_array_equal(out, [2, 0, 0, 2])

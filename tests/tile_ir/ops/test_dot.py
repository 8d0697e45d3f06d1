"""Products of matrices in the interpreter: every dtype and shape against exact ones."""

import itertools

import numpy as np
import pytest
from dot_oracle import KINDS, as_tf32, assert_close, error_bound, exact_dot, random_matrix

from blocknumba.errors import BlockTypeError
from blocknumba.tile_ir.ir.types import (
    DTYPES, TileType, bfloat16, bool_, float16, float32, float64, float8_e4m3fn, int32, int8,
)
from blocknumba.tile_ir.ops.dot import dot, rounded_to_tf32

EXTENTS = (1, 2, 4, 8, 16, 32, 64)
PROGRAMS = 2


def operands(rows, inner, columns, kind, leading=(PROGRAMS,), seed=0):
    """a, b and acc with leading axes: of the programs, and of batches."""
    generator = np.random.default_rng(seed)
    shapes = (rows, inner), (inner, columns), (rows, columns)
    return [random_matrix(generator, (*leading, *shape), dtype)
            for shape, dtype in zip(shapes, kind)]


def multiplied(a, b, acc, precision="ieee"):
    with np.errstate(all="ignore"):
        return dot.evaluate(a, b, acc, precision=precision)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_dots_of_every_shape_are_within_the_stated_error(kind):
    for rows, inner, columns in itertools.product(EXTENTS, repeat=3):
        a, b, acc = operands(rows, inner, columns, kind)

        found = multiplied(a, b, acc, kind[3])

        assert found.dtype == DTYPES[kind[2]].numpy
        assert_close(found, exact_dot(a, b, acc, kind[3]), error_bound(a, b, acc, kind[3]))


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_batches_are_multiplied_one_by_one(kind):
    a, b, acc = operands(4, 16, 8, kind, leading=(PROGRAMS, 4))

    found = multiplied(a, b, acc, kind[3])

    assert_close(found, exact_dot(a, b, acc, kind[3]), error_bound(a, b, acc, kind[3]))


@pytest.mark.parametrize("shared", list(itertools.product((False, True), repeat=3)))
def test_operands_on_which_all_programs_agree_are_repeated(shared):
    tiles = operands(4, 8, 2, KINDS[0])
    given = [tile[:1] if is_shared else tile for tile, is_shared in zip(tiles, shared)]

    found = multiplied(*given)

    whole = [np.broadcast_to(tile, (PROGRAMS, *tile.shape[1:])) for tile in given]
    assert found.shape[0] == (1 if all(shared) else PROGRAMS)
    assert_close(np.broadcast_to(found, whole[2].shape), exact_dot(*whole), error_bound(*whole))


@pytest.mark.parametrize("inner", [512, 1024, 2048, 65536])
@pytest.mark.parametrize("dtypes", list(itertools.product(("int8", "uint8"), repeat=2)),
                         ids="-".join)
def test_integers_of_the_greatest_magnitude_are_added_up_exactly(dtypes, inner):
    for ends in itertools.product(("minimum", "maximum"), repeat=2):
        a, b = (np.full(shape, getattr(DTYPES[dtype], end), dtype) for shape, dtype, end in
                zip(((1, 2, inner), (1, inner, 2)), dtypes, ends))
        acc = np.full((1, 2, 2), 2**31 - 1, np.int32)

        found = multiplied(a, b, acc)

        exact = inner * int(a[0, 0, 0]) * int(b[0, 0, 0]) + 2**31 - 1
        assert (found == (exact + 2**31) % 2**32 - 2**31).all()


def test_tf32_rounds_ties_away_from_zero():
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2**32, 1 << 16, np.uint32)
    ties = bits & np.uint32(0xFFFFE000) | np.uint32(0x1000)
    near = [bits, ties, ties - np.uint32(1), ties + np.uint32(1)]
    x = np.concatenate(near).view(np.float32)
    # the oracle has no value for what rounds up to infinity
    x = x[np.abs(x) < 3e38]

    found = rounded_to_tf32(x)

    normal = np.abs(x) >= 2.0**-126
    np.testing.assert_array_equal(found[normal], as_tf32(x[normal]).astype(np.float32))
    assert (np.abs(found[~normal] - x[~normal]) <= 2.0**-137).all()


def test_tf32_keeps_infinities_and_nan():
    x = np.array([np.inf, -np.inf, np.nan], np.float32)
    x = np.concatenate([x, np.array([0x7FFFFFFF, 0xFFFFF001], np.uint32).view(np.float32)])

    np.testing.assert_array_equal(rounded_to_tf32(x), x)


def test_tf32_is_less_exact_than_tf32x3_and_this_as_exact_as_it_says():
    a, b, acc = operands(32, 64, 32, KINDS[-4], seed=3)

    errors = [np.abs(multiplied(a, b, acc, precision) - exact_dot(a, b, acc)).max()
              for precision in ("tf32", "tf32x3")]

    assert errors[0] > 100 * errors[1]


@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3"])
def test_infinities_and_nan_stay_in_their_row(precision):
    a, b, acc = (np.ones((1, 4, 4), np.float32) for _ in range(3))
    a[0, 0, 0], a[0, 1, 1], b[0, 0, 2] = np.inf, np.nan, 0

    found = multiplied(a, b, acc, precision)[0]

    np.testing.assert_array_equal(found, [
        [np.inf, np.inf, np.nan, np.inf], [np.nan] * 4, [5, 5, 4, 5], [5, 5, 4, 5]])


def tile(dtype, *shape):
    return TileType(dtype, shape)


ACCEPTED = "accepted float16, bfloat16, float32 or float64 of one kind, 8-bit floats, or 8-bit " \
           "integers"


@pytest.mark.parametrize("types, attrs, message", [
    ((tile(float32, 4, 8), tile(float32, 4, 8), tile(float32, 4, 8)), {},
     "dot: a has 8 columns, b has 4 rows"),
    ((tile(float32, 8), tile(float32, 8, 4), tile(float32, 4)), {},
     "dot: given tile<8xfloat32>, tile<8x4xfloat32> and tile<4xfloat32>, accepted tiles of one "
     "rank, 2 or 3"),
    ((tile(float32, 4, 8), tile(float32, 8, 4), tile(float32, 4, 8)), {},
     "dot: given tile<4x8xfloat32>, tile<8x4xfloat32> and acc tile<4x8xfloat32>, accepted acc of "
     "the product's shape"),
    ((tile(float32, 2, 4, 8), tile(float32, 4, 8, 4), tile(float32, 2, 4, 4)), {},
     "dot: given tile<2x4x8xfloat32>, tile<4x8x4xfloat32> and acc tile<2x4x4xfloat32>, accepted "
     "acc of the product's shape"),
    ((tile(float16, 4, 4), tile(bfloat16, 4, 4), tile(float32, 4, 4)), {},
     f"dot: a is float16, b is bfloat16, {ACCEPTED}"),
    ((tile(int32, 4, 4), tile(int32, 4, 4), tile(int32, 4, 4)), {},
     f"dot: a is int32, b is int32, {ACCEPTED}"),
    ((tile(bool_, 4, 4), tile(bool_, 4, 4), tile(int32, 4, 4)), {},
     f"dot: a is bool, b is bool, {ACCEPTED}"),
    ((tile(float8_e4m3fn, 4, 4), tile(int8, 4, 4), tile(float32, 4, 4)), {},
     f"dot: a is float8_e4m3fn, b is int8, {ACCEPTED}"),
    ((tile(float16, 4, 4), tile(float16, 4, 4), tile(float64, 4, 4)), {},
     "dot: acc is float64, accepted float32 or float16"),
    ((tile(float32, 4, 4), tile(float32, 4, 4), tile(float32, 4, 4)), {"precision": "bf16x3"},
     "dot: precision must be one of ('ieee', 'tf32', 'tf32x3'), got 'bf16x3'"),
    ((tile(float64, 4, 4), tile(float64, 4, 4), tile(float64, 4, 4)), {"precision": "tf32"},
     "dot: precision 'tf32' is of float32, given float64"),
])
def test_what_does_not_fit_is_an_error_that_says_so(types, attrs, message):
    with pytest.raises(BlockTypeError) as error:
        dot.infer(*types, **attrs)

    assert error.value.message == message


def test_the_result_has_the_type_of_the_accumulator():
    found = dot.infer(tile(int8, 2, 4, 8), tile(DTYPES["uint8"], 2, 8, 16), tile(int32, 2, 4, 16))

    assert found == tile(int32, 2, 4, 16)


def test_a_float64_dot_is_added_up_in_float64():
    assert dot.infer(*[tile(float64, 4, 4)] * 3) == tile(float64, 4, 4)

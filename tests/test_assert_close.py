"""`bn.testing.assert_close`: what it lets pass, what it finds, what it says."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockTypeError

DTYPES = ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64"]


@bn.jit
def largest(x, y, out, where, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    out[r] = bn.maximum(x[r], y[r])
    where[r] = x[r] < y[r]


@bn.jit
def copy(x, out, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    out[r] = x[r]


@bn.jit
def last_is_left_out(x, out, BLOCK: bn.constexpr):
    r = bn.block(0, BLOCK)
    bn.store(out.at[r], x[r], mask=r.index < x.size - 1)


@bn.jit
def row_sums(x, out, COLUMNS: bn.constexpr):
    i = bn.program_id(0)
    out[i] += bn.sum(x[i, bn.span(0, COLUMNS)])


def blocks(arguments):
    return bn.cdiv(arguments["x"].size, arguments["BLOCK"])


def check(kernel, function, shapes=([(5,)],), dtypes=("float32",), **keywords):
    bn.testing.assert_close(kernel, function, shapes, dtypes, **{"grid": blocks, "BLOCK": 8}
                            | keywords)


def test_several_results_in_all_dtypes_and_shapes():
    check(largest, lambda x, y: (np.maximum(x, y), x < y), [[(1,), (1,)], [(30,), (30,)]],
          [*DTYPES, ("int8", "int8")])


def test_each_dtype_and_each_shape_is_run():
    seen = []

    def function(x):
        seen.append((x.dtype.name, x.shape))
        return x

    check(copy, function, [[(3,)], [(20,)]], ["int16", "float32"])

    assert set(seen) == {(dtype, shape) for dtype in ("int16", "float32", "float64")
                         for shape in ((3,), (20,))}


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_element_that_is_not_stored_is_found(dtype):
    with pytest.raises(AssertionError, match=r"1 of 20 elements of out are wrong, \[19\] most"):
        check(last_is_left_out, lambda x: x, [[(20,)]], [dtype])


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("other", [np.nan, np.inf, -np.inf, 1.0])
def test_a_special_value_equals_itself_alone(special, other):
    def draw(generator, shape, dtype):
        return np.full(shape, special, dtype)

    def check_for(value):
        check(copy, lambda x: np.full_like(x, value), draw=draw, rtol=0.1)

    check_for(special)
    if not np.array_equal(special, other, equal_nan=True):
        with pytest.raises(AssertionError, match="5 of 5"):
            check_for(other)


def test_a_result_that_is_nan_and_not_stored_is_found():
    with pytest.raises(AssertionError, match="1 of 5"):
        check(last_is_left_out, lambda x: x, draw=lambda generator, shape, dtype:
              np.full(shape, np.nan, dtype))


def test_the_error_may_be_some_steps_of_the_coarsest_float_and_no_more():
    def off_by(steps, dtype):
        return lambda x: x + steps * float(np.finfo(dtype).eps)

    check(copy, off_by(12, "float32"))
    check(copy, off_by(12, "float16"), dtypes=["float16"])
    with pytest.raises(AssertionError):
        check(copy, off_by(100, "float32"))
    check(copy, off_by(100, "float32"), rtol=0, atol=1e-4)


def test_ints_are_exact():
    with pytest.raises(AssertionError, match="5 of 5"):
        check(copy, lambda x: x ^ 1, dtypes=["int64"])


def test_results_begin_with_what_is_wanted():
    bn.testing.assert_close(row_sums, lambda x: 1 + x.sum(axis=1), [[(6, 10)]], ["float64"],
                            grid=6, COLUMNS=16, initial=1)


def test_the_seed_of_the_message_draws_the_same_arrays():
    drawn = []

    def function(x):
        drawn.append(x)
        return x + 1

    with pytest.raises(AssertionError) as caught:
        check(copy, function, dtypes=["float64"])
    seed = int(caught.value.hint.partition("seed=")[2].split()[0])
    with pytest.raises(AssertionError):
        check(copy, function, dtypes=["float64"], seed=seed)

    np.testing.assert_array_equal(drawn[0], drawn[2])


@pytest.mark.parametrize("given, message", [
    ({"kernel": np.add}, "accepted a kernel"), ({"shapes": [(5,)]}, "accepted a list of tuples"),
    ({"dtypes": "float32"}, "accepted a list of dtypes"),
    ({"dtypes": [("int8", "int8")]}, "given 2 dtypes for 1 arrays"),
    ({"dtypes": ["complex64"]}, "complex64")])
def test_mistakes(given, message):
    with pytest.raises(BlockTypeError, match=message):
        check(**{"kernel": copy, "function": lambda x: x} | given)

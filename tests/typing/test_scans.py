"""Scans and reductions by functions: NumPy's results, in order, on tuples, with any function."""

import functools
import operator

import ml_dtypes
import numpy as np
import pytest
from launching import kernel_of

import blocknumba as bn
from blocknumba.errors import BlockError

M, N = 8, 64
CUMULATIVE = {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate,
              "cummin": np.minimum.accumulate}
DTYPES = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16",
          "float32", "float64")


@bn.jit
def cumulative(x, out, function: bn.constexpr, axis: bn.constexpr, reverse: bn.constexpr):
    r, c = bn.span(0, 8), bn.span(0, 64)
    out[r, c] = bn.reshape(function(x[r, c], axis, reverse), (8, 64))


def some(dtype, name):
    """Numbers of a dtype; products of them stay in range."""
    random = np.random.default_rng()
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if name == "cumprod":
        x = random.choice([1, 1, 1, 2] if dtype.kind in "iu" else [-1, 1], (M, N)).astype(dtype)
        x[0, :4] *= dtype.type(2)
        return x
    low = 0 if dtype.kind == "u" else -4
    x = random.integers(low, 5, (M, N)).astype(dtype)
    return x if dtype.kind in "iu" else (x + random.random((M, N))).astype(dtype)


def numpy_result(name, x, axis, reverse):
    """What NumPy says, floats in more bits, small ints in 32."""
    if x.dtype.kind not in "iu":
        # NumPy's own sums in float64 are off by many roundings
        wide = x.astype(np.longdouble if x.dtype == np.float64 else np.float64)
    elif name in ("cumsum", "cumprod"):
        wide = x.astype(np.promote_types(x.dtype, f"{x.dtype.kind}4"))
    else:
        wide = x
    flat = wide.ravel() if axis is None else wide
    along = -1 if axis is None else axis
    flat = np.flip(flat, along) if reverse else flat
    kept = {} if name in ("cummax", "cummin") else {"dtype": wide.dtype}
    made = CUMULATIVE[name](flat, axis=along, **kept)
    made = made.astype(np.float64) if made.dtype == np.longdouble else made
    return (np.flip(made, along) if reverse else made).reshape(M, N)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_functions_are_numpys(name, dtype, axis, reverse):
    x = some(dtype, name)
    expected = numpy_result(name, x, axis, reverse)
    out = np.full((M, N), 99, x.dtype if expected.dtype == np.float64 else expected.dtype)

    cumulative[1](x, out, function=getattr(bn, name), axis=axis, reverse=reverse)

    if x.dtype.kind in "iu":
        assert np.array_equal(out, expected)
        return
    # one rounding of a result that is exact to a few float32 ulps of the greatest partial sum
    computed = np.float64 if dtype == "float64" else np.float32
    slack = 8 * np.finfo(computed).eps * np.abs(expected).max()
    bound = float(ml_dtypes.finfo(x.dtype).eps) * np.abs(expected) + slack
    assert (np.abs(out.astype(np.float64) - expected) <= bound).all()


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_extremes_are_nan_from_the_first_nan_on(name):
    x = some("float32", name)
    x[:, 17] = np.nan
    out = np.zeros_like(x)

    cumulative[1](x, out, function=getattr(bn, name), axis=1, reverse=False)

    assert np.isnan(out[:, 17:]).all()
    assert np.array_equal(out[:, :17], CUMULATIVE[name](x, axis=1)[:, :17])


@bn.jit
def compose(a0, b0, a1, b1):
    """The affine map x -> a1 * (a0 * x + b0) + b1: associative, not commutative."""
    return a1 * a0, a1 * b0 + b1


def greater(value, index, other, other_index):
    if other > value:
        return other, other_index
    return value, index


@bn.jit
def recurrences(a, b, out_a, out_b, best, where, N: bn.constexpr):
    r = bn.span(0, N)
    out_a[r], out_b[r] = bn.associative_scan((a[r], b[r]), 0, compose)
    best[()], where[()] = bn.reduce((a[r], r.index), 0, greater)


def test_functions_of_tuples_combine_in_order(device):
    random = np.random.default_rng()
    a, b = (random.integers(-9, 9, N).astype(np.int64) for _ in range(2))
    out_a, out_b = np.full(N, 7), np.full(N, 7)
    best, where = np.full((), -99), np.full((), -99, np.int32)

    device.run(recurrences, 1, a, b, out_a, out_b, best, where, N=N)

    expected = [(a[0], b[0])]
    with np.errstate(over="ignore"):
        for pair in zip(a[1:], b[1:]):
            expected.append(compose.python_function(*expected[-1], *pair))
    assert np.array_equal(out_a, [x for x, _ in expected])
    assert np.array_equal(out_b, [y for _, y in expected])
    assert best == a.max() and where == a.argmax()


def times(factor):
    def combine(a, b):
        return a + b * factor // factor
    return combine


@bn.jit
def by_function(x, out, combine: bn.constexpr, N: bn.constexpr):
    r = bn.span(0, N)
    out[r] = x[r].associative_scan(0, combine)
    out[N] = x[r].reduce(0, combine)


@pytest.mark.parametrize("combine", [operator.add, np.add, bn.jit(lambda a, b: a + b), times(3),
                                     functools.partial],
                         ids=["operator", "numpy", "jit", "closure", "no function of two"])
def test_any_function_combines(combine):
    x = np.random.default_rng().integers(-9, 9, N).astype(np.int32)
    out = np.full(N + 1, 99, np.int32)

    if combine is functools.partial:
        with pytest.raises(BlockError, match="cannot be called in a kernel"):
            by_function[1](x, out, combine=combine, N=N)
        return
    by_function[1](x, out, combine=combine, N=N)

    assert np.array_equal(out[:N], np.cumsum(x)) and out[N] == x.sum()


@bn.jit
def kept_axes(x, out):
    r, c = bn.span(0, 8), bn.span(0, 64)
    tile = x[r, c]
    out[r, c] = tile - bn.reduce(tile, 1, lambda a, b: a if a > b else b, keep_dims=True)
    out[0, 0] = bn.reduce(tile, None, lambda a, b: a + b)


def test_reductions_by_functions_keep_axes_and_flatten():
    x = np.random.default_rng().integers(-99, 99, (M, N)).astype(np.int32)
    out = np.zeros_like(x)

    kept_axes[1](x, out)

    expected = x - x.max(axis=1, keepdims=True)
    expected[0, 0] = x.sum()
    assert np.array_equal(out, expected)


def combined_otherwise(a, b):
    return a - b if OTHERWISE else a + b


OTHERWISE = False


@bn.jit
def watching(x, out, N: bn.constexpr):
    r = bn.span(0, N)
    out[0] = bn.reduce(x[r], 0, combined_otherwise)


def test_a_function_that_changes_is_compiled_again():
    global OTHERWISE
    x, out = np.arange(2, dtype=np.int32), np.zeros(1, np.int32)

    watching[1](x, out, N=2)
    before = out[0]
    OTHERWISE = True
    try:
        watching[1](x, out, N=2)
    finally:
        OTHERWISE = False

    assert (before, out[0]) == (1, -1)


# mistakes -------------------------------------------------------------------------------------

def no_function(x, y, n):
    bn.associative_scan(bn.arange(0, 16), 0, 3)


def another_dtype(x, y, n):
    bn.reduce(bn.arange(0, 16), 0, lambda a, b: a / b)


def too_many_results(x, y, n):
    bn.associative_scan(bn.arange(0, 16), 0, lambda a, b: (a, b))


def too_few_operands(x, y, n):
    bn.associative_scan((bn.arange(0, 16), bn.arange(0, 16)), 0, lambda a, b: a)


def a_load(x, y, n):
    bn.reduce(bn.arange(0, 16), 0, lambda a, b: a + bn.load(bn.zeros((), bn.int32) + b))


def a_tile(x, y, n):
    bn.reduce(bn.arange(0, 16), 0, lambda a, b: bn.sum(bn.arange(0, 4)) + a + b)


def a_run_time_value(x, y, n):
    bn.reduce(bn.arange(0, 16), 0, lambda a, b: a + b + n)


def shapes_that_differ(x, y, n):
    bn.associative_scan((bn.arange(0, 16), bn.arange(0, 8)), 0, lambda a, b, c, d: (a, b))


def of_a_scalar(x, y, n):
    bn.cumsum(n)


def axis_out_of_range(x, y, n):
    bn.cumsum(bn.arange(0, 16), 1)


NOT_STEPS = "accepted arithmetic on scalars"
MISTAKES = [
    (no_function, "associative_scan: combine_fn: given 3, accepted a function of two elements", ""),
    (another_dtype, "reduce: combine_fn returns float32 for int32, accepted int32",
     "convert it: bn.cast(x, bn.int32)"),
    (too_many_results, "associative_scan: combine_fn returns (int32, int32), accepted one value "
     "for each of 1 tiles", ""),
    (a_tile, f"a function of a reduction or scan: given arange, {NOT_STEPS}",
     "it computes with elements: no loads, stores, tiles or loops of run time in it"),
    (a_run_time_value, "<lambda>: given a function that reads run-time values of the kernel "
     "around it, accepted one of its arguments and of constants",
     "pass what it needs as one more tile: bn.full_like(x, value)"),
    (shapes_that_differ, "associative_scan: given (tile<16xint32>, tile<8xint32>), accepted tiles "
     "of one shape", ""),
    (of_a_scalar, "cumsum: given int32, accepted a tile", ""),
    (axis_out_of_range, "cumsum: axis 1 is out of range for rank 1, accepted -1 to 0", ""),
]


def error_of(function) -> BlockError:
    with pytest.raises(BlockError) as caught:
        kernel_of(function, x=np.zeros(8, np.float32), y=np.zeros((8, 8), np.float32), n=3)
    return caught.value


@pytest.mark.parametrize("function,message,hint", MISTAKES, ids=[m[0].__name__ for m in MISTAKES])
def test_every_mistake_has_one_message(function, message, hint):
    error = error_of(function)

    assert (error.message, error.hint) == (message, hint)
    assert error.loc.file == __file__


def test_a_mistake_in_the_function_is_shown_in_it_and_where_it_is_called_from():
    error = error_of(too_few_operands)

    assert error.message.startswith("<lambda>: too many positional arguments")
    assert error.loc.file == __file__
    assert error.loc.line == too_few_operands.__code__.co_firstlineno + 1


def test_a_load_in_the_function_is_refused():
    assert error_of(a_load).loc.file == __file__

"""sort, argsort, topk and median: NumPy's results, on every dtype, axis and kind of number."""

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

M, N = 8, 64
FLOATS = ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64")
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", *FLOATS)


@bn.jit
def ordered(x, out, axis: bn.constexpr, descending: bn.constexpr, stable: bn.constexpr):
    r, c = bn.span(0, 8), bn.span(0, 64)
    out[r, c] = bn.reshape(bn.sort(x[r, c], axis, descending, stable), (8, 64))


@bn.jit
def indices(x, out, axis: bn.constexpr, descending: bn.constexpr):
    r, c = bn.span(0, 8), bn.span(0, 64)
    out[r, c] = bn.reshape(bn.argsort(x[r, c], axis, descending), (8, 64))


@bn.jit
def greatest(x, values, where, only, k: bn.constexpr, largest: bn.constexpr):
    r, c, j = bn.span(0, 8), bn.span(0, 64), bn.span(0, k)
    values[r, j], where[r, j] = bn.topk(x[r, c], k, largest=largest, return_indices=True)
    only[r, j] = bn.topk(x[r, c], k, largest=largest)


def some(dtype, shape=(M, N)):
    """Numbers with ties; of floats, with every kind that there is."""
    random = np.random.default_rng()
    if dtype == "bool":
        return random.random(shape) < 0.4
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        x[:, ::3] = random.integers(0, 4, x[:, ::3].shape)
        x[0, :2] = limits.max, limits.min
        return x
    x = (random.integers(-40, 40, shape) / 8).astype(dtype)
    kinds = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, float(ml_dtypes.finfo(dtype).tiny),
             float(ml_dtypes.finfo(dtype).max), float(ml_dtypes.finfo(dtype).min)]
    places = random.random(shape) < 0.4
    x[places] = np.array(kinds, np.float64).astype(dtype)[random.integers(0, 9, places.sum())]
    return x


def order_of(x, axis, descending):
    """The indices of a stable sort, by Python's own, NaN greatest."""
    if axis is None:
        return order_of(x.ravel(), 0, descending)

    def of_row(row):
        keys = [(value != value, 0 if value != value else value) for value in row.tolist()]
        # Python keeps equal elements in order, reversed too
        return np.array(sorted(range(len(row)), key=lambda i: keys[i], reverse=descending))
    wide = x if x.dtype.kind in "iub" else x.astype(np.float64)
    return np.apply_along_axis(of_row, axis, wide)


def same_bits(x, y):
    """Whether arrays are equal, zeros with their signs, and NaN to NaN."""
    if x.dtype.kind in "iub":
        return x.dtype == y.dtype and np.array_equal(x, y)
    x, y = x.astype(np.float64), y.astype(np.float64)
    return np.array_equal(x, y, equal_nan=True) and np.array_equal(
        np.signbit(x) & (x == 0), np.signbit(y) & (y == 0))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_stable_sort_is_numpys(dtype, axis, descending):
    x = some(dtype)
    order = order_of(x, axis, descending)
    expected = np.take_along_axis(x.ravel() if axis is None else x, order, axis or 0)
    out = np.ones_like(x)
    found = np.full(x.shape, -1, np.int32)

    ordered[1](x, out, axis=axis, descending=descending, stable=True)
    indices[1](x, found, axis=axis, descending=descending)

    assert same_bits(out, expected.reshape(x.shape))
    assert np.array_equal(found, order.reshape(x.shape))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sort_has_the_same_elements_in_order(dtype):
    x, out = some(dtype), np.ones((M, N), some(dtype).dtype)

    ordered[1](x, out, axis=1, descending=False, stable=False)

    if np.dtype(x.dtype).kind in "iub":
        assert np.array_equal(out, np.sort(x, 1))
        return
    wide = out.astype(np.float64)
    assert np.array_equal(wide, np.sort(x.astype(np.float64), 1), equal_nan=True)
    negative = [np.count_nonzero(np.signbit(y) & (y == 0)) for y in (wide, x.astype(np.float64))]
    assert negative[0] == negative[1]


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 2, 16, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_topk_takes_the_first_of_a_stable_sort(dtype, k, largest):
    x = some(dtype)
    order = order_of(x, 1, largest)[:, :k]
    values, only = np.ones((2, M, k), x.dtype)
    where = np.full((M, k), -1, np.int32)

    greatest[1](x, values, where, only, k=k, largest=largest)

    assert np.array_equal(where, order)
    assert same_bits(values, np.take_along_axis(x, order, 1))
    kinds = (x.astype(np.float64), only.astype(np.float64))
    expected = np.take_along_axis(kinds[0], order, 1)
    assert np.array_equal(kinds[1], expected, equal_nan=True)


@pytest.mark.parametrize("axis", [0, 1, (0, 1), None, ()])
@pytest.mark.parametrize("dtype", ["int16", "float16", "float32", "float64"])
def test_the_median_is_numpys(dtype, axis):
    @bn.jit
    def middle(x, out, axis: bn.constexpr):
        tile = x[bn.span(0, 8), bn.span(0, 64)]
        r = bn.median(tile, axis, keepdims=True)
        out[bn.span(0, 8), bn.span(0, 64)] = bn.broadcast_to(r, (8, 64))
    x = np.random.default_rng().integers(-99, 99, (M, N)).astype(dtype)
    if dtype[0] == "f":
        x[3, 5] = np.nan
        x[4] = np.finfo("float32" if dtype == "float64" else dtype).max
    expected = np.median(x.astype(np.float64), axis, keepdims=True)
    out = np.full((M, N), 77, dtype if dtype[0] == "f" else np.float32)

    middle[1](x, out, axis=axis)

    assert np.array_equal(out, np.broadcast_to(expected, (M, N)).astype(out.dtype), equal_nan=True)


def test_numpys_names_and_methods_do_the_same():
    @bn.jit
    def four(x, out):
        r = bn.span(0, 64)
        tile = x[r]
        out[0, r], out[1, r] = np.sort(tile), tile.sort(descending=True)
        out[2, r], out[3, r] = np.argsort(tile), tile.argsort()
    x = np.random.default_rng().permutation(N).astype(np.int32)
    out = np.full((4, N), -1, np.int32)

    four[1](x, out)

    assert np.array_equal(out, [np.sort(x), np.sort(x)[::-1], np.argsort(x), np.argsort(x)])


@bn.jit
def wrong(x, which: bn.constexpr):
    tile = x[bn.span(0, 64)]
    if which == "scalar":
        bn.sort(3)
    elif which == "axis":
        bn.argsort(tile, 1)
    elif which == "k":
        bn.topk(tile, 10)
    elif which == "too many":
        bn.topk(tile, 128)
    elif which == "run time":
        bn.topk(tile, x.shape[0])
    elif which == "array":
        bn.median(x)
    elif which == "descending":
        bn.sort(tile, descending=x.shape[0] > 3)
    elif which == "keyword":
        bn.argsort(tile, reverse=True)


@pytest.mark.parametrize("which, message", [
    ("scalar", "sort: given 3, accepted a tile"),
    ("axis", "argsort: axis 1 is out of range for rank 1, accepted -1 to 0"),
    ("k", "topk: k must be a power of two up to 64, got 10"),
    ("too many", "topk: k must be a power of two up to 64, got 128"),
    ("run time", "topk: k must be a compile-time constant, got an int of run time"),
    ("array", "median: given an array, accepted a tile"),
    ("descending", "sort: descending must be a compile-time constant, got bool"),
    ("keyword", "argsort: got an unexpected keyword argument 'reverse', accepted argsort(x, "
                "axis=-1, descending=False, stable=True)"),
])
def test_mistakes_say_what_is_accepted(which, message):
    with pytest.raises(BlockError) as caught:
        wrong[1](np.zeros(64, np.float32), which=which)

    assert str(caught.value).split("\n")[0] == message


def test_the_next_power_of_two_is_hinted_at():
    with pytest.raises(BlockError) as caught:
        wrong[1](np.zeros(64, np.float32), which="k")

    assert caught.value.hint == "use topk(x, 16) and leave out what is too much"

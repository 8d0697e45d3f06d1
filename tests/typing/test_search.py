"""searchsorted and unique_counts: NumPy's results, NaN and ties included."""

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

DTYPES = ("bool", "int8", "uint16", "int32", "uint32", "int64", "uint64", "float8_e4m3fn",
          "float16", "bfloat16", "float32", "float64")


def some(dtype, size, kinds=True):
    """Numbers with ties, NaN and both zeros."""
    random = np.random.default_rng()
    if dtype == "bool":
        return random.random(size) < 0.6
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = random.integers(0 if dtype.kind == "u" else -12, 13, size).astype(dtype)
    if dtype.kind not in "iu":
        x[random.random(size) < 0.2] = np.nan
        x[random.random(size) < 0.1] = -0.0
    return x


def wide(x):
    """The same numbers in a dtype that NumPy sorts."""
    return x if x.dtype.kind in "iub" else x.astype(np.float64)


@bn.jit
def searched(a, v, out, N: bn.constexpr, M: bn.constexpr, side: bn.constexpr):
    m = bn.span(0, M)
    out[m] = bn.searchsorted(a[bn.span(0, N)], v[m], side)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 32), (2, 8), (64, 16), (256, 512)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_are_numpys(dtype, sizes, side):
    n, m = sizes
    a, v = some(dtype, n), some(dtype, m)
    a = a[np.argsort(wide(a), kind="stable")]
    out = np.full(m, -1, np.int32)

    searched[1](a, v, out, N=n, M=m, side=side)

    assert out.tolist() == np.searchsorted(wide(a), wide(v), side).tolist()


def test_numbers_and_tiles_of_any_shape_are_promoted():
    @bn.jit
    def several(a, v, out, scalar):
        tile = a[bn.span(0, 64)]
        out[bn.span(0, 4), bn.span(0, 8)] = np.searchsorted(tile, v[bn.span(0, 4), bn.span(0, 8)],
                                                            side="right")
        scalar[0] = bn.searchsorted(tile, 7)
        scalar[1] = bn.searchsorted(tile, 7.5)
    random = np.random.default_rng()
    a = np.sort(random.integers(-20, 20, 64).astype(np.int16))
    v = random.normal(0, 9, (4, 8)).astype(np.float32)
    out, scalar = np.full((4, 8), -1, np.int32), np.full(2, -1, np.int32)

    several[1](a, v, out, scalar)

    assert np.array_equal(out, np.searchsorted(a, v, "right"))
    assert scalar.tolist() == np.searchsorted(a, [7, 7.5]).tolist()


@bn.jit
def counted(x, values, counts, number, N: bn.constexpr):
    r = bn.span(0, N)
    values[r], counts[r], number[0] = bn.unique_counts(x[r])


@pytest.mark.parametrize("size", [1, 2, 64, 512])
@pytest.mark.parametrize("dtype", DTYPES)
def test_different_elements_are_numpys(dtype, size):
    x = some(dtype, size)
    values, counts, number = np.ones_like(x), np.full(size, -1, np.int32), np.zeros(1, np.int32)
    expected = np.unique_counts(wide(x))

    counted[1](x, values, counts, number, N=size)

    found = int(number[0])
    assert found == len(expected.values)
    assert np.array_equal(wide(values)[:found], expected.values,
                          equal_nan=x.dtype.kind not in "iub")
    assert counts.tolist() == expected.counts.tolist() + [0] * (size - found)


@bn.jit
def wrong(x, which: bn.constexpr):
    tile = x[bn.span(0, 64)]
    if which == "side":
        bn.searchsorted(tile, 3, side="middle")
    elif which == "rank":
        bn.searchsorted(bn.reshape(tile, (8, 8)), 3)
    elif which == "array":
        bn.searchsorted(x, 3)
    elif which == "scalar":
        bn.unique_counts(3)


@pytest.mark.parametrize("which, message", [
    ("side", "searchsorted: side must be one of ('left', 'right'), got 'middle'"),
    ("rank", "searchsorted: a: given tile<8x8xfloat32>, accepted a tile of one axis"),
    ("array", "searchsorted: given an array, accepted a tile"),
    ("scalar", "unique_counts: given 3, accepted a tile"),
])
def test_mistakes_say_what_is_accepted(which, message):
    with pytest.raises(BlockError) as caught:
        wrong[1](np.zeros(64, np.float32), which=which)

    assert str(caught.value).split("\n")[0] == message

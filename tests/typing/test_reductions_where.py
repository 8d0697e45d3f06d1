"""`where` and `initial` of reductions: NumPy's results over the elements that count."""

import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import BlockError

M, N = 4, 8
DTYPES = ("bool", "int8", "uint8", "int32", "uint64", "float16", "bfloat16", "float32", "float64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean", "var")


@bn.jit
def reduced(x, m, out, function: bn.constexpr, axis: bn.constexpr, keep: bn.constexpr):
    tile, mask = x[bn.span(0, 4), bn.span(0, 8)], m[bn.span(0, 4), bn.span(0, 8)]
    result = function(tile, axis, keep_dims=keep, where=mask)
    if axis is None:
        out[()] = bn.sum(result)
    else:
        n: bn.constexpr = 4 if axis == 1 else 8
        out[bn.span(0, n)] = bn.reshape(result, (n,))


def some(dtype, seed):
    """Numbers of a dtype, small enough for sums of theirs to be exact."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    low = 0 if dtype.kind in "bu" else -3
    return random.integers(low, 4, (M, N)).astype(dtype), random.random((M, N)) < 0.6


def numpy_result(name, x, mask, axis):
    """What NumPy says, floats in float64."""
    wide = x.astype(np.float64) if x.dtype.kind not in "biu" else x
    if name in ("sum", "prod", "any", "all", "mean", "var"):
        with np.errstate(all="ignore"):
            return getattr(np, name)(wide, axis=axis, where=mask)
    identity = -np.inf if name == "max" else np.inf
    if x.dtype == bool:
        identity = name == "min"
    elif x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        identity = limits.min if name == "max" else limits.max
    return getattr(np, name)(wide, axis=axis, where=mask, initial=identity)


def result_dtype(name, dtype):
    """The dtype of an array for a result."""
    if name in ("any", "all"):
        return np.dtype(bool)
    if name in ("mean", "var") and dtype.kind in "biu":
        return np.dtype(np.float64)
    return np.dtype(np.int64) if name in ("sum", "prod") and dtype.kind in "biu" else dtype


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_elements_that_do_not_count_change_nothing(name, device):
    dtypes = list(enumerate(DTYPES))
    if device.kind != "cpu":
        dtypes = dtypes[REDUCTIONS.index(name) % 3::3]  # each compiles; axes differ among names
    for case, dtype in dtypes:
        x, mask = some(dtype, case)
        axis = (None, 0, 1)[(case + case // 3) % 3]
        if case % 2:
            mask[:, 0] = mask[1] = False  # nothing counts there
        expected = np.asarray(numpy_result(name, x, mask, axis))
        if name == "prod" and axis is None and dtype != "float64":
            mask[2:] = False  # no overflow
            expected = np.asarray(numpy_result(name, x, mask, axis))
        out = np.full(expected.shape, 77).astype(result_dtype(name, x.dtype))

        device.run(reduced, 1, x, mask, out, getattr(bn, name), axis, case % 2 == 0)

        tolerance = 0 if name not in ("mean", "var") else 2e-2 if out.itemsize == 2 else 1e-5
        np.testing.assert_allclose(out.astype(np.float64), expected.astype(np.float64), tolerance,
                                   err_msg=f"{dtype} {axis}")


@pytest.mark.parametrize("dtype", ("int8", "uint64", "bool", *FLOATS))
def test_the_index_is_that_of_an_element_that_counts(dtype):
    """Even where it equals the identity, or is NaN."""
    for seed in range(8):
        x, mask = some(dtype, seed)
        if seed == 1 and x.dtype.kind not in "biu":
            x[...] = -np.inf if dtype != "float8_e4m3fn" else -448
            x[2, 3] = np.nan
        if seed == 2:
            x[...] = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else 0
        for name in ("argmax", "argmin"):
            out = np.full(M, -1, np.int32)
            reduced[1](x, mask, out, getattr(bn, name), 1, True, interpret=True)

            for row, counts, found in zip(x.astype(object), mask, out):
                indices = np.flatnonzero(counts)
                exact = np.array([row[i] for i in indices], np.float64)
                expected = indices[getattr(np, name)(exact)] if len(indices) else 0
                assert found == expected, (name, row, counts)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_machine_code_finds_the_same_index(name, device):
    x, mask = some("float32", 3)
    x[0], x[1, ::2], mask[3] = np.inf, np.nan, False
    flat = np.full((), -1, np.int32)
    expected, out = np.full(M, -1, np.int32), np.full(M, -1, np.int32)

    reduced[1](x, mask, expected, getattr(bn, name), 1, False, interpret=True)
    device.run(reduced, 1, x, mask, out, getattr(bn, name), 1, False)
    device.run(reduced, 1, x, mask, flat, getattr(bn, name), None, False)

    np.testing.assert_array_equal(out, expected)
    chosen = np.where(mask, x, -np.inf if name == "argmax" else np.inf)
    assert flat == getattr(np, name)(chosen)


@bn.jit
def started(x, out, n, first, function: bn.constexpr):
    tile = x[bn.span(0, 8)]
    out[0] = function(tile, initial=first, where=bn.arange(0, 8) < n)
    out[1] = function(tile, 0, initial=2)


@pytest.mark.parametrize("name, dtype", [("sum", "int32"), ("prod", "float16"), ("max", "float64"),
                                         ("min", "int32")])
@pytest.mark.parametrize("n", [0, 3])
def test_initial_counts_as_an_element(name, dtype, n, device):
    x = np.array([3, -4, 5, 1, 1, 2, -1, 1]).astype(dtype)
    out = np.full(2, 77).astype(dtype)

    device.run(started, 1, x, out, n, -2, getattr(bn, name))

    of = getattr(np, name)
    assert out.tolist() == [of(x[:n], initial=-2), of(x, initial=2)]


@bn.jit
def sum_of_halves(x, out, first):
    out[0] = bn.sum(x[bn.span(0, 2)], initial=first)


def test_a_sum_of_halves_and_initial_is_rounded_once(device):
    out = np.zeros(1, np.float16)

    device.run(sum_of_halves, 1, np.array([2048, 1], np.float16), out, np.float16(1))

    assert out[0] == 2050


@bn.jit
def others(x, i, out, index):
    r = bn.span(0, 8)
    tile, mask = x[r], r.index < 6
    out[0] = bn.nanmax(tile, where=mask)
    out[1] = bn.nanmin(tile, where=mask)
    out[2] = bn.nanmax(tile, where=r.index < 0)
    out[3] = bn.xor_sum(i[r], where=mask, initial=64)
    value, place = bn.max(tile, 0, return_indices=True, where=(1 < r.index) & mask)
    out[4] = value
    out[5] = tile.sum(0, where=mask)
    out[6] = sum(i[r], where=mask)
    out[7] = np.max(i[r], where=mask, initial=0)
    index[0] = place


def test_every_reduction_has_where_and_so_have_methods_and_other_spellings(device):
    x = np.array([9, np.nan, 3, 5, 5, -2, 99, np.nan], np.float32)
    i, out = np.arange(11, 19, dtype=np.int32), np.zeros(8, np.float32)
    x[1], index = 8, np.zeros(1, np.int32)

    device.run(others, 1, x, i, out, index)

    xor = np.bitwise_xor.reduce(i[:6]) ^ 64
    assert out[[0, 1, 3, 4, 5, 6, 7]].tolist() == [9, -2, xor, 5, x[:6].sum(), i[:6].sum(), 16]
    assert np.isnan(out[2]) and index[0] == 3


@bn.jit
def soft(x, out, n, BLOCK: bn.constexpr):
    r, c = bn.span(0, 4), bn.span(0, BLOCK)
    out[r, c] = bn.softmax(x[r, c], 1, where=(c.index < n)[None, :] & (r.index < 3)[:, None])


def test_softmax_leaves_out_what_does_not_count(device):
    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    x[:, 11] = np.inf
    out = np.full_like(x, np.nan)

    device.run(soft, 1, x, out, 11, 16)

    exact = np.exp(x[:3, :11].astype(np.float64))
    np.testing.assert_allclose(out[:3, :11], exact / exact.sum(1, keepdims=True), 1e-5)
    assert not out[:, 11:].any() and not out[3].any()


@pytest.mark.parametrize("name", ["var", "softmax"])
def test_rows_that_are_shorter_than_the_tile_are_right_with_where(name, device):
    """The remedy that the documentation names."""
    @bn.jit
    def rows(x, out, BLOCK: bn.constexpr):
        r = bn.span(0, BLOCK)
        tile = x[bn.program_id(0), r]
        out[bn.program_id(0)] = bn.sum(function(tile, 0, where=r.index < x.shape[1]))

    function = getattr(bn, name)
    x = np.random.default_rng(2).uniform(-3, -1, (2, 10)).astype(np.float32)
    out = np.full(2, np.nan, np.float32)

    device.run(rows, 2, x, out, 16)

    expected = np.ones(2) if name == "softmax" else getattr(np, name)(x.astype(np.float64), 1)
    np.testing.assert_allclose(out, expected, 1e-5)


@bn.jit
def wrongly(x, out, where: bn.constexpr, initial: bn.constexpr, indices: bn.constexpr):
    tile = x[bn.span(0, 8)]
    condition = tile if where == "numbers" else bn.arange(0, 4) > 1 if where == "short" else True
    first = tile if initial == "tile" else initial
    out[0] = bn.max(tile, 0, indices, where=condition, initial=first)


@pytest.mark.parametrize("arguments, message", [
    (("numbers", None, False), "max: where must be bool, got tile<8xfloat32>"),
    (("short", None, False), r"max: where: given shape \(4,\), accepted one that broadcasts to"),
    ((True, "tile", False), "max: initial must be a scalar, got tile<8xfloat32>"),
    ((True, 1, True), "max: given initial and return_indices, accepted one of them"),
])
def test_a_wrong_where_or_initial_is_refused(arguments, message):
    with pytest.raises(BlockError, match=message) as caught:
        wrongly[1](np.zeros(8, np.float32), np.zeros(1, np.float32), *arguments, interpret=True)

    assert "out[0] = bn.max" in str(caught.value)

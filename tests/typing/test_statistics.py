"""Means, variances, counts and reductions without NaN: NumPy's, against float64."""

import ml_dtypes
import numpy as np
import pytest
from launching import kernel_of

import blocknumba as bn
from blocknumba.errors import BlockError

SHAPE = (4, 2, 8)


@bn.jit
def reduced(x, m, out, function: bn.constexpr, axis: bn.constexpr, keep: bn.constexpr,
            MASKED: bn.constexpr, SIZE: bn.constexpr, named: bn.constexpr = None):
    index = (bn.span(0, 4), bn.span(0, 2), bn.span(0, 8))
    tile = x[index]
    if MASKED:
        result = function(tile, axis, keepdims=keep, where=m[index])
    elif named is not None:
        result = function(tile, axis, keepdims=keep, ddof=named)
    else:
        result = function(tile, axis, keepdims=keep)
    bn.static_assert(len(result.shape) == 3 if keep else True)
    out[bn.span(0, SIZE)] = bn.reshape(bn.broadcast_to(result, result.shape or (1,)), (SIZE,))


def run(device, x, function, axis, mask=None, keep=False, dtype=None, named=None):
    """The results of a function along axis, flat."""
    axes = tuple(range(3)) if axis is None else np.atleast_1d(axis) % 3
    size = int(np.prod([n for i, n in enumerate(SHAPE) if i not in axes]))
    out = np.full(size, 77).astype(dtype or x.dtype)
    device.run(reduced, 1, x, np.ones(SHAPE, bool) if mask is None else mask, out, function, axis,
               keep, mask is not None, size, named)
    return out


def wide(x):
    return x.astype(np.float64) if x.dtype.kind not in "biu" else x


AXES = (None, 0, (0, 2), (-1, -2), (0, 1), (2,))


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std",
                                  "ptp", "count_nonzero"])
def test_several_axes_are_numpys(name, axis, device):
    random = np.random.default_rng()
    for dtype in ("float32", "int32") if device.kind == "cpu" else ("float32",):
        x = random.integers(-3, 4, SHAPE).astype(dtype)
        if name == "prod":
            x = np.select([x == 2, x == 3], [2, -2], 1).astype(dtype)  # products are exact
        # int32 is multiplied in int32, which 64 elements may leave
        own = {"dtype": dtype} if name == "prod" and dtype == "int32" else {}
        expected = np.asarray(getattr(np, name)(wide(x), axis=axis, **own))
        kind = np.float64 if name in ("mean", "var", "std") else expected.dtype

        out = run(device, x, getattr(bn, name), axis, keep=axis == 0, dtype=kind)

        np.testing.assert_allclose(out, expected.ravel(), 4e-7 if kind == np.float64 else 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_several_axes_of_narrow_floats_are_rounded_once(dtype):
    x = np.random.default_rng().uniform(0, 1, SHAPE).astype(getattr(ml_dtypes, dtype, dtype))
    for axis in ((0, 2), (0, 1), None):
        out = np.full(2 if axis == (0, 2) else 8 if axis == (0, 1) else 1, 77).astype(x.dtype)
        reduced[1](x, x > 0, out, bn.sum, axis, False, False, out.size, interpret=True)

        exact = np.sum(x.astype(np.float64), axis=axis).astype(np.float32)
        np.testing.assert_array_equal(out.astype(np.float64),
                                      exact.ravel().astype(x.dtype).astype(np.float64))


@bn.jit
def in_order(x, y, out, axes: bn.constexpr):
    index = (bn.span(0, 4), bn.span(0, 2), bn.span(0, 8))

    def compose(a0, b0, a1, b1):
        return a1 * a0, a1 * b0 + b1

    a, b = bn.reduce((x[index], y[index]), axes, compose)
    out[0, bn.span(0, a.size)], out[1, bn.span(0, a.size)] = a, b


@pytest.mark.parametrize("axes", [(0, 2), (1, 2), (2, 0)], ids=str)
def test_functions_combine_several_axes_in_c_order(axes, device):
    x, y = np.random.default_rng().integers(-2, 3, (2, *SHAPE)).astype(np.int32)
    kept = ({0, 1, 2} - set(axes)).pop()
    out = np.full((2, SHAPE[kept]), 77, np.int32)

    device.run(in_order, 1, x, y, out, axes)

    rows = [np.moveaxis(t, kept, 0).reshape(SHAPE[kept], -1).tolist() for t in (x, y)]
    for row, (a, b) in enumerate(zip(*rows)):
        one, other = 1, 0
        for a_, b_ in zip(a, b):
            one, other = one * a_, other * a_ + b_
        assert out[:, row].tolist() == [np.int64(v).astype(np.int32) for v in (one, other)]


NAN = ("nanmax", "nanmin", "nansum", "nanprod", "nanmean", "nanvar", "nanstd")


@pytest.mark.filterwarnings("ignore:.*(empty slice|All-NaN|Degrees of freedom|invalid value)")
@pytest.mark.parametrize("name", NAN)
def test_nan_is_left_out_as_numpy_does(name, device):
    random = np.random.default_rng()
    dtypes = ("float16", "bfloat16", "float32", "float64", "int32", "uint8", "float8_e5m2")
    for dtype in dtypes if device.kind == "cpu" else ("float32",):
        x = random.integers(1, 4, SHAPE).astype(getattr(ml_dtypes, dtype, dtype))
        if name == "nanprod":
            x[x == 3] = 1
            x[1:] = 1
        if x.dtype.kind not in "iu":
            x[random.random(SHAPE) < 0.4] = np.nan
            x[:, 1, 3], x[2] = np.nan, np.nan
        for axis in ((0, None, (1, 2), -1) if device.kind == "cpu" else ((1, 2), 0)):
            expected = np.asarray(getattr(np, name)(wide(x), axis=axis))

            out = run(device, x, getattr(bn, name), axis, dtype=np.float64)

            narrow = np.float16 if dtype == "float16" else x.dtype if x.dtype.itemsize < 4 else 0
            if narrow and x.dtype.kind not in "iu":
                with np.errstate(over="ignore"):
                    expected = expected.astype(x.dtype).astype(np.float64)
            tolerance = 1e-2 if narrow else 1e-6
            np.testing.assert_allclose(out, expected.ravel(), tolerance, err_msg=f"{dtype} {axis}")


@pytest.mark.parametrize("name", ["nansum", "nanmean", "nanvar", "nanmax"])
def test_nan_and_a_mask_leave_out_more(name):
    x = np.random.default_rng().uniform(1, 2, SHAPE)  # sums of one sign: no digits cancel
    x[:2, 0, ::3], mask = np.nan, np.random.default_rng().random(SHAPE) < 0.7
    mask[0, 0, 1] = True
    out = np.full(4, 77.0)

    reduced[1](x, mask, out, getattr(bn, name), (1, 2), False, True, 4)

    expected = [getattr(np, name)(row[m]) for row, m in zip(x, mask)]
    np.testing.assert_allclose(out, expected, 1e-14)


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_places_among_numbers(name, device):
    x = np.random.default_rng().standard_normal(SHAPE).astype(np.float32)
    x[np.random.default_rng().random(SHAPE) < 0.5], x[:, :, 2] = np.nan, -9

    out = run(device, x, getattr(bn, name), -1, dtype=np.int32)

    np.testing.assert_array_equal(out, getattr(np, name)(x, axis=-1).ravel())


@bn.jit
def cumulated(x, out, function: bn.constexpr):
    out[bn.span(0, 4), bn.span(0, 8)] = function(x[bn.span(0, 4), bn.span(0, 8)], 1)


@pytest.mark.parametrize("name", ["nancumsum", "nancumprod"])
def test_cumulated_nan_is_the_neutral_number(name, device):
    x = np.random.default_rng().integers(1, 3, (4, 8)).astype(np.float32)
    x[:, ::3], out = np.nan, np.full((4, 8), 77, np.float32)

    device.run(cumulated, 1, x, out, getattr(bn, name))

    np.testing.assert_array_equal(out, getattr(np, name)(x, axis=1))


OFFSETS = (0, 1e2, 1e4, 1e6)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("name", ["var", "std", "mean"])
def test_variances_of_nearly_equal_numbers_keep_their_digits(name, offset, device):
    x = np.random.default_rng().normal(offset, 3, (4, 1024)).astype(np.float32)
    out = np.full(4, 77, np.float64)

    device.run(row_statistics, 1, x, out, getattr(bn, name), 0 if name == "mean" else 1)

    named = {} if name == "mean" else {"ddof": 1}
    exact = getattr(np, name)(x.astype(np.float64), axis=1, **named)
    # a mean is off by the roundings of sums in float32: of its numbers, which may cancel
    rounded = 2.0**-20 * np.abs(x).mean() if name == "mean" else 0
    np.testing.assert_allclose(out, exact, rtol=1e-5, atol=rounded)


@bn.jit
def row_statistics(x, out, function: bn.constexpr, ddof: bn.constexpr):
    tile = x[bn.span(0, 4), bn.span(0, 1024)]
    if ddof:
        out[bn.span(0, 4)] = function(tile, 1, ddof=ddof)
    else:
        out[bn.span(0, 4)] = function(tile, 1)


@pytest.mark.filterwarnings("ignore:.*(Degrees of freedom|invalid value|divide by zero)")
@pytest.mark.parametrize("ddof", [0, 1, 8, 9, 0.5])
def test_fewer_degrees_of_freedom_are_numpys(ddof):
    x = np.random.default_rng().standard_normal(SHAPE)
    out = np.full(8, 77.0)
    for function in (bn.var, bn.nanstd):
        reduced[1](x, x > 0, out, function, 2, False, False, 8, ddof)

        expected = getattr(np, function.__name__)(x, axis=2, ddof=ddof)
        np.testing.assert_allclose(out, expected.ravel(), 1e-13)


@bn.jit
def in_chunks(x, out, BLOCK: bn.constexpr):
    mean, m2, count = 0.0, 0.0, 0.0
    for r in bn.spans(x.shape[0], BLOCK):
        m, s, n = bn.welford(x[r], where=r.index < x.shape[0])
        mean, m2, count = bn.welford_combine(mean, m2, count, m, s, n)
    out[0], out[1], out[2] = mean, m2 / count, count


@pytest.mark.parametrize("size", [1, 255, 1000])
def test_moments_of_chunks_are_combined(size, device):
    x = np.random.default_rng().normal(1e2, 2, size).astype(np.float32)
    out = np.full(3, 77, np.float32)

    device.run(in_chunks, 1, x, out, BLOCK=256)

    exact = x.astype(np.float64)
    np.testing.assert_allclose(out, [exact.mean(), exact.var(), size], 1e-5)


@bn.jit
def combined_moments(x, out):
    tile = x[bn.span(0, 4), bn.span(0, 64)]
    parts = bn.welford(tile, 1)
    mean, m2, count = bn.reduce(parts, 0, bn.welford_combine)
    out[0], out[1], out[2] = mean, m2, count


def test_moments_are_combined_by_reduce(device):
    x, out = np.random.default_rng().normal(3, 2, (4, 64)), np.full(3, 77.0)

    device.run(combined_moments, 1, x, out)

    np.testing.assert_allclose(out, [x.mean(), x.var() * x.size, x.size], 1e-13)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_logsumexp_neither_overflows_nor_loses_infinities(axis, device):
    x = np.random.default_rng().normal(0, 60, SHAPE).astype(np.float32)
    x[0], x[1, 0], x[2, 1, 3], x[3, 1, 5] = -np.inf, 300, np.inf, np.nan

    out = run(device, x, bn.logsumexp, axis, dtype=np.float64, keep=axis == 0)

    expected = np.logaddexp.reduce(x.astype(np.float64), axis=axis)
    np.testing.assert_allclose(out, np.ravel(expected), 1e-6)


def test_logsumexp_of_what_counts():
    x, mask = np.random.default_rng().normal(0, 9, SHAPE), np.ones(SHAPE, bool)
    mask[1], mask[2, :, 3:], x[2, :, 5] = False, False, np.inf
    out = np.full(4, 77.0)

    reduced[1](x, mask, out, bn.logsumexp, (1, 2), False, True, 4)

    expected = [np.logaddexp.reduce(row[m]) for row, m in zip(x, mask)]
    np.testing.assert_allclose(out, expected, 1e-14)


@pytest.mark.parametrize("name,ufunc", [("reduce_or", np.bitwise_or), ("xor_sum", np.bitwise_xor),
                                        ("reduce_and", np.bitwise_and)])
def test_bits_are_reduced(name, ufunc, device):
    random = np.random.default_rng()
    for dtype in ("int8", "uint16", "int32", "uint64") if device.kind == "cpu" else ("int32",):
        limits = np.iinfo(dtype)
        x = random.integers(limits.min, limits.max, SHAPE, dtype, True)
        x[0] = limits.max
        mask = random.random(SHAPE) < 0.6
        mask[3] = False

        for axis in (0, (1, 2)):
            out = run(device, x, getattr(bn, name), axis, mask, dtype=dtype)
            expected = ufunc.reduce(x, axis=axis, where=mask)
            np.testing.assert_array_equal(out, expected.ravel())


@bn.jit
def spelled_as_numpy(x, out):
    tile = x[bn.span(0, 4), bn.span(0, 2), bn.span(0, 8)]
    out[0] = np.nansum(tile)
    out[1] = np.ptp(tile[:, :, 1]) if bn.constexpr(False) else np.nanstd(tile)
    out[2] = np.count_nonzero(tile)
    out[3] = tile.std(ddof=1)
    out[4] = np.nanmean(tile, axis=(0, 1, 2))


def test_numpys_names_are_ours():
    x, out = np.random.default_rng().standard_normal(SHAPE), np.full(5, 77.0)

    spelled_as_numpy[1](x, out)

    expected = [x.sum(), x.std(), x.size, x.std(ddof=1), x.mean()]
    np.testing.assert_allclose(out, expected, 1e-13)


# mistakes -------------------------------------------------------------------------------------

def twice(x, n):
    bn.sum(x[bn.span(0, 8), bn.span(0, 4)], axis=(0, -2))


def out_of_range(x, n):
    bn.nanmean(x[bn.span(0, 8), bn.span(0, 4)], axis=(0, 2))


def of_run_time(x, n):
    bn.logsumexp(x[bn.span(0, 8), bn.span(0, 4)], axis=n)


def freedom_of_run_time(x, n):
    bn.var(x[bn.span(0, 8), bn.span(0, 4)], ddof=n)


def freedom_of_text(x, n):
    bn.nanstd(x[bn.span(0, 8), bn.span(0, 4)], ddof="one")


def of_an_array(x, n):
    bn.nansum(x)


def bits_of_floats(x, n):
    bn.reduce_or(x[bn.span(0, 8), bn.span(0, 4)], 0)


def range_of_bools(x, n):
    bn.ptp(x[bn.span(0, 8), bn.span(0, 4)] > 0)


def mask_of_numbers(x, n):
    tile = x[bn.span(0, 8), bn.span(0, 4)]
    bn.nanvar(tile, where=tile)


def mask_of_another_shape(x, n):
    bn.welford(x[bn.span(0, 8), bn.span(0, 4)], 0, where=bn.arange(0, 8) > 3)


def places_of_several_axes(x, n):
    bn.nanargmax(x[bn.span(0, 8), bn.span(0, 4)], axis=(0, 1))


def unknown_keyword(x, n):
    bn.std(x[bn.span(0, 8), bn.span(0, 4)], dof=1)


MISTAKES = [
    (twice, "sum: axis (0, -2) names one axis twice", ""),
    (out_of_range, "nanmean: axis 2 is out of range for rank 2, accepted -2 to 1", ""),
    (of_run_time, "logsumexp: axis must be a compile-time constant, got an int of run time",
     "pass it as a bn.constexpr argument"),
    (freedom_of_run_time, "var: ddof must be a compile-time constant, got an int of run time",
     "pass it as a bn.constexpr argument"),
    (freedom_of_text, "nanstd: ddof: given 'one', accepted a number", ""),
    (of_an_array, "nansum: given an array, accepted a tile",
     "load elements first: x[bn.span(0, SIZE), bn.span(0, SIZE)]"),
    (bits_of_floats, "reduce_or: given float32, accepted ints and bools",
     "reinterpret the bits: bn.cast(x, bn.int32, bitcast=True)"),
    (range_of_bools, "ptp: given tile<8x4xbool>, accepted numbers", ""),
    (mask_of_numbers, "nanvar: where must be bool, got tile<8x4xfloat32>", "compare it: x != 0"),
    (mask_of_another_shape, "welford: where: given shape (8,), accepted one that broadcasts to "
     "(8, 4)", ""),
    (places_of_several_axes, "argmax: axis must be an int, got (0, 1)", ""),
    (unknown_keyword, "std: got an unexpected keyword argument 'dof', accepted std(x, axis=None, "
     "keep_dims=False, keepdims=False, *, ddof=0, where=None)", "did you mean ddof?"),
]


@pytest.mark.parametrize("function,message,hint", MISTAKES, ids=[m[0].__name__ for m in MISTAKES])
def test_every_mistake_has_one_message(function, message, hint):
    with pytest.raises(BlockError) as caught:
        kernel_of(function, x=np.zeros((8, 4), np.float32), n=1)

    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.loc.file == __file__

"""Functions, methods and operators of tiles give what NumPy gives."""

from __future__ import annotations

import io
import operator
from contextlib import redirect_stdout

import numpy as np
import pytest
from launching import kernel_of, launch, op_names

import blocknumba as bn

from blocknumba.errors import BlockNameError
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.ir.function import walk
from blocknumba.typing.context import Options

RNG = np.random.default_rng(0)
X = RNG.integers(-9, 10, (4, 8)).astype(np.float32)
Y = RNG.integers(1, 10, (4, 8)).astype(np.float32)
I, J = X.astype(np.int32), Y.astype(np.int32)


def store_tile(out, tile):
    """out[...] = tile, of any rank up to 3."""
    shape = tile.shape
    if tile.ndim == 0:
        out[()] = tile
    elif tile.ndim == 1:
        out[bn.span(0, shape[0])] = tile
    elif tile.ndim == 2:
        out[bn.span(0, shape[0]), bn.span(0, shape[1])] = tile
    else:
        out[bn.span(0, shape[0]), bn.span(0, shape[1]), bn.span(0, shape[2])] = tile


def apply(x, y, out, F, STORE):
    r, c = bn.span(0, 4), bn.span(0, 8)
    STORE(out, F(x[r, c], y[r, c]))


def agree(function, expected, x=X, y=Y) -> None:
    """What a function of two tiles stores is what NumPy says, dtype included."""
    expected = np.asarray(expected)
    out = np.zeros(expected.shape, expected.dtype)
    launch(apply, x=x, y=y, out=out, constants={"F": function, "STORE": store_tile})
    np.testing.assert_array_equal(out, expected)


def empty_kernel(x, out, n):
    r = bn.span(0, 8)
    out[r] = bn.where(r.index < n, x[r], bn.empty((8,), bn.float32))


def test_an_empty_tile_holds_zeros():
    out = np.ones(8, np.float32)

    launch(empty_kernel, x=np.full(8, 7, np.float32), out=out, n=3)

    assert out.tolist() == [7, 7, 7, 0, 0, 0, 0, 0]


def test_in_debug_an_empty_tile_must_not_be_stored():
    arguments = {"x": np.ones(8, np.float32), "out": np.ones(8, np.float32), "n": 3}
    kernel = kernel_of(empty_kernel, Options(debug=True), **arguments)

    with pytest.raises(BlockNameError, match=r"store: element \(3,\) of a tile is used") as caught:
        run(kernel, (1, 1, 1), arguments, debug=True)

    assert caught.value.loc.line == empty_kernel.__code__.co_firstlineno + 2


@pytest.mark.parametrize("function", [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    np.maximum, np.minimum, np.add, np.floor_divide, np.copysign, np.arctan2, np.hypot],
    ids=lambda f: f.__name__)
def test_two_tiles(function):
    agree(function, function(X, Y))


@pytest.mark.parametrize("function", [
    operator.add, operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor,
    operator.lshift, operator.rshift, operator.pow, np.maximum, np.bitwise_xor],
    ids=lambda f: f.__name__)
def test_two_integer_tiles(function):
    x = np.abs(I) if function is operator.pow else I
    agree(function, function(x, J % 4), x, J % 4)


@pytest.mark.parametrize("function", [
    operator.neg, operator.pos, abs, np.floor, np.abs, np.negative, lambda x: x ** 2,
    lambda x: x ** 1, lambda x: x // 2, lambda x: 7 % x, lambda x: -x - -2, lambda x: 1.5 - x,
    lambda x: x > 0, lambda x: 3 >= x, lambda x: (x > 0) & (x < 5) | ~(x != -3)])
def test_one_tile(function):
    nonzero = np.where(X == 0, 1, X).astype(np.float32)
    agree(lambda x, y: function(x), function(nonzero), nonzero)


@pytest.mark.parametrize("function", [
    lambda x: -(x // 2), lambda x: x // -2, lambda x: -7 % x, lambda x: x % -3, lambda x: ~x,
    lambda x: x << 2 >> 1, lambda x: 100 // x])
def test_one_integer_tile(function):
    """triton-lang/triton#619"""
    nonzero = np.where(I == 0, 1, I).astype(np.int32)
    agree(lambda x, y: function(x), function(nonzero), nonzero, nonzero)


@pytest.mark.parametrize("name", ["exp", "log2", "sqrt", "sin", "tanh", "floor", "rint", "trunc"])
def test_mathematics_of_integers_is_done_in_float32(name):
    x, function = np.abs(I) + 1, getattr(np, name)
    out = np.zeros(x.shape, np.float32)

    launch(apply, x=x, y=x, out=out,
           constants={"F": lambda x, y: function(x), "STORE": store_tile})

    np.testing.assert_allclose(out, function(x.astype(np.float32)), rtol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), (-1,)])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "any", "all", "mean"])
def test_reductions(name, axis, keep):
    function, ours = getattr(np, name), getattr(bn, name)
    expected = function(Y, axis=axis, keepdims=keep)
    out = np.zeros(expected.shape, expected.dtype)

    launch(apply, x=X, y=Y, out=out, constants={
        "F": lambda x, y: ours(y, axis, keep_dims=keep), "STORE": store_tile})

    np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_places_of_extremes(axis):
    agree(lambda x, y: bn.argmax(x, axis=axis), np.argmax(X, axis=axis).astype(np.int32))
    agree(lambda x, y: x.argmin(axis), np.argmin(X, axis=axis).astype(np.int32))


def test_extremes_give_their_place_on_request():
    agree(lambda x, y: bn.max(x, 1, return_indices=True)[0], X.max(1))
    agree(lambda x, y: bn.min(x, 1, return_indices=True)[1], X.argmin(1).astype(np.int32))


def test_variance_is_numpys():
    out = np.zeros(4, np.float32)

    launch(apply, x=X, y=Y, out=out, constants={
        "F": lambda x, y: x.var(axis=1), "STORE": store_tile})

    np.testing.assert_allclose(out, X.var(axis=1), rtol=1e-6)


@pytest.mark.parametrize("function", [
    lambda x: x.T, lambda x: x.reshape(8, 4), lambda x: x.reshape((2, -1)), lambda x: x.ravel(),
    lambda x: x[:, None], lambda x: x[None], lambda x: x[..., None], lambda x: x[2:4, 0:4],
    lambda x: x[3], lambda x: x[:, -1], lambda x: x[1, 2], lambda x: x.transpose(1, 0),
    lambda x: x.swapaxes(0, 1), lambda x: np.flip(x, 1), lambda x: np.expand_dims(x, 1),
    lambda x: np.expand_dims(x, (0,)), lambda x: x[:1].squeeze(0), lambda x: x.sum(axis=0).T])
def test_shapes(function):
    agree(lambda x, y: function(x), function(X))


def test_shape_functions_that_numpy_spells_otherwise():
    agree(lambda x, y: bn.trans(x), X.T)
    agree(lambda x, y: bn.permute(x, (1, 0)), X.T)
    agree(lambda x, y: bn.broadcast_to(x[:, :1], 4, 8), np.broadcast_to(X[:, :1], (4, 8)))
    agree(lambda x, y: bn.broadcast(x[:, :1], y)[0], np.broadcast_to(X[:, :1], (4, 8)))
    agree(lambda x, y: bn.split(bn.join(x, y))[1], Y)
    agree(lambda x, y: bn.interleave(x[:, 0], y[:, 0]), np.stack([X[:, 0], Y[:, 0]], 1).ravel())
    agree(lambda x, y: bn.item(x[:1, :1]), X[0, 0])
    agree(lambda x, y: bn.sum(bn.join(bn.max(x), bn.min(x))), X.max() + X.min())


def test_creation():
    agree(lambda x, y: bn.full((4,), 2.5, bn.float32), np.full(4, 2.5, np.float32))
    agree(lambda x, y: bn.ones((2, 4), bn.int8), np.ones((2, 4), np.int8))
    agree(lambda x, y: bn.arange(4, 8) + bn.arange(4), np.arange(4, 12, 2, dtype=np.int32))
    agree(lambda x, y: bn.zeros_like(x) + bn.ones_like(y) * bn.full_like(x, 3), np.full_like(X, 3))
    agree(lambda x, y: bn.full((), 3, bn.int32), np.int32(3))


def test_conversions():
    agree(lambda x, y: x.to(bn.int32), I)
    agree(lambda x, y: x.astype(np.int16), X.astype(np.int16))
    agree(lambda x, y: bn.cast(x, bn.int32, bitcast=True), X.view(np.int32))
    agree(lambda x, y: (x / 3).to(bn.float16), (X / 3).astype(np.float16))
    agree(lambda x, y: int(bn.max(x)) + bn.int8(3), np.int32(X.max()) + 3)
    agree(lambda x, y: float(bn.max(x)) / 2, X.max() / 2)
    agree(lambda x, y: np.float32(7), np.float32(7))


def test_selection_and_clamping():
    agree(lambda x, y: bn.where(x > y, x, 0), np.where(X > Y, X, 0))
    agree(lambda x, y: np.where(x > 0, 1, 2), np.where(X > 0, 1, 2).astype(np.int32))
    agree(lambda x, y: bn.clamp(x, -2, 5), X.clip(-2, 5))
    agree(lambda x, y: bn.fma(x, y, 1), X * Y + 1)


def test_library_functions():
    out = np.zeros((2, 4, 8), np.float32)

    def kernel(x, out):
        r, c = bn.span(0, 4), bn.span(0, 8)
        out[0, r, c] = bn.softmax(x[r, c], 1)
        out[1, r, c] = bn.sigmoid(x[r, c])

    launch(kernel, x=X, out=out)

    shifted = np.exp(X - X.max(1, keepdims=True))
    np.testing.assert_allclose(out[0], shifted / shifted.sum(1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(out[1], 1 / (1 + np.exp(-X)), rtol=1e-6)


def test_swizzle2d_visits_every_tile_once():
    out = np.zeros((5, 7), np.int32)

    def kernel(out):
        i, j = bn.swizzle2d(bn.program_id(0), bn.program_id(1), 5, 7, 2)
        bn.atomic_add(out.at[i, j], 1)

    launch(kernel, (5, 7), out=out)

    np.testing.assert_array_equal(out, 1)


def test_scalars_have_pythons_functions():
    out = np.zeros(8, np.float32)

    def kernel(out, n, f):
        out[0] = min(n, 3, 7) + max(f, 0.5)
        out[1] = abs(-n) + len(out.shape)
        out[2] = round(f)
        out[3] = sum((n, 1, 2))
        out[4] = pow(n, 2) + n ** 2
        out[5] = not n
        out[6] = n in (1, 5)
        out[7] = int(f) if bool(n) else -1

    launch(kernel, out=out, n=5, f=2.75)

    assert out.tolist() == [5.75, 6, 3, 8, 50, 0, 1, 2]


def test_printing_shows_constants_and_elements():
    def kernel(x, n):
        print("n is", n)
        bn.device_print("tile", x[bn.span(0, 2)])

    shown = io.StringIO()
    with redirect_stdout(shown):
        launch(kernel, x=np.array([3, 4], np.int32), n=5)

    assert "n is" in shown.getvalue() and "5" in shown.getvalue()
    assert "tile" in shown.getvalue() and "4" in shown.getvalue()


def test_hints_reach_the_ir():
    def kernel(x, out, n):
        offsets = bn.max_contiguous(bn.multiple_of(n + bn.arange(0, 8), 8), 8)
        bn.assume(n > 0)
        bn.store(out + offsets, bn.load(bn.multiple_of(x, 16) + offsets))

    names = op_names(kernel_of(kernel, x=np.zeros(64), out=np.zeros(64), n=8))

    assert names.count("hint") == 3
    assert names.count("assume") == 1


def test_options_of_accesses_reach_the_ir():
    def kernel(x, out):
        p = bn.arange(0, 8)
        v = bn.load(x + p, cache_modifier=".cg", eviction_policy="evict_first", volatile=True)
        bn.store(out + p, v, cache_modifier=".wt")

    fn = kernel_of(kernel, x=np.zeros(8), out=np.zeros(8))
    attrs = {op.name: dict(op.attrs) for op in walk(fn.body)}

    assert attrs["load"] == {"cache": ".cg", "eviction": "evict_first", "volatile": True}
    assert attrs["store"] == {"cache": ".wt"}


def test_debug_checks_indices_but_not_spans():
    def kernel(x, rows, out):
        r = bn.span(0, 8)
        out[r] = x[rows[r]] + x[rows[0]]

    arguments = {"x": np.zeros(8), "rows": np.zeros(8, np.int32), "out": np.zeros(8)}

    assert op_names(kernel_of(kernel, Options(debug=True), **arguments)).count("check_index") == 3
    assert op_names(kernel_of(kernel, **arguments)).count("check_index") == 0

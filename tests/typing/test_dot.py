"""Products of matrices in kernels: spellings, shapes, dtypes, loops and errors."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import pytest
from dot_oracle import KINDS, assert_close, error_bound, exact_dot, random_matrix
from launching import kernel_of, launch, op_names

import blocknumba as bn

from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.tile_ir.ir.function import Op, walk
from blocknumba.tile_ir.ir.types import DTYPES
from blocknumba.tile_ir.passes.pipeline import optimise  # noqa: E402

FLOAT32 = ("float32", "float32", "float32", "ieee")


def matrices(kind=KINDS[0], rows=16, inner=32, columns=8):
    generator = np.random.default_rng(0)
    return (random_matrix(generator, (rows, inner), kind[0]),
            random_matrix(generator, (inner, columns), kind[1]))


def store_product(a, b, out, F, M, K, N):
    m, k, n = bn.span(0, M), bn.span(0, K), bn.span(0, N)
    out[m, n] = F(a[m, k], b[k, n])


def product(function, a, b, dtype=np.float32):
    """What a function of two tiles of rank 2 stores."""
    (rows, inner), columns = a.shape, b.shape[1]
    out = np.zeros((rows, columns), dtype)
    launch(store_product, a=a, b=b, out=out,
           constants={"F": function, "M": rows, "K": inner, "N": columns})
    return out


def dots(function, a, b, out=None) -> list[Op]:
    """The products in the optimised kernel of a function of two tiles."""
    (rows, inner), columns = a.shape, b.shape[1]
    out = np.zeros((rows, columns), np.float32) if out is None else out
    kernel = kernel_of(store_product, a=a, b=b, out=out,
                       constants={"F": function, "M": rows, "K": inner, "N": columns})
    return [op for op in walk(optimise(kernel).body) if op.name == "dot"]


def assert_product(found, a, b, precision="ieee"):
    zeros = np.zeros(found.shape, found.dtype)
    assert_close(found, exact_dot(a, b, zeros, precision), error_bound(a, b, zeros, precision))


@pytest.mark.parametrize("function", [bn.dot, operator.matmul, np.matmul, np.dot],
                         ids=["bn.dot", "@", "np.matmul", "np.dot"])
def test_every_spelling_is_the_same_product(function):
    a, b = matrices()

    found = product(function, a, b)

    assert_product(found, a, b)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_every_kind_of_product_has_its_accumulator(kind):
    a, b = matrices(kind)

    found = product(lambda a, b: bn.dot(a, b, out_dtype=kind[2], precision=kind[3]), a, b,
                    DTYPES[kind[2]].numpy)

    assert_product(found, a, b, kind[3])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[2] != "float16"], ids="-".join)
def test_without_being_asked_the_result_has_the_dtype_of_the_sums(kind):
    (dot,) = dots(operator.matmul, *matrices(kind))

    assert dot.result.type.dtype.name == kind[2]
    assert dot.attrs["precision"] == "ieee"


@pytest.mark.parametrize("function", [
    lambda a, b: bn.dot(a, b, input_precision="tf32"), lambda a, b: bn.dot(a, b, allow_tf32=True),
    lambda a, b: bn.dot(a, b, precision="tf32")],
    ids=["input_precision", "allow_tf32", "precision"])
def test_every_spelling_of_tf32_is_one(function):
    (dot,) = dots(function, *matrices(FLOAT32))

    assert dot.attrs["precision"] == "tf32"


@pytest.mark.parametrize("function", [
    lambda a, b: bn.dot(a, b, allow_tf32=False),
    lambda a, b: bn.dot(a, b, allow_tf32=True, input_precision="ieee"),
    lambda a, b: bn.dot(a, b, max_num_imprecise_acc=0)], ids=["no tf32", "ieee", "all imprecise"])
def test_float32_is_exact_unless_asked(function):
    (dot,) = dots(function, *matrices(FLOAT32))

    assert dot.attrs["precision"] == "ieee"


def test_a_precision_is_ignored_where_there_is_nothing_to_choose():
    (dot,) = dots(lambda a, b: bn.dot(a, b, input_precision="tf32"), *matrices())

    assert dot.attrs["precision"] == "ieee"


def test_arguments_are_in_tritons_order():
    a, b = matrices()

    found = product(lambda a, b: bn.dot(a, b, None, None, None, None, np.float16), a, b,
                    np.float16)

    assert_product(found, a, b)


def test_another_out_dtype_rounds_the_result():
    a, b = matrices(("bfloat16", "bfloat16"))

    found = product(lambda a, b: bn.dot(a, b, out_dtype=bn.bfloat16), a, b, ml_dtypes.bfloat16)

    np.testing.assert_array_equal(found, product(bn.dot, a, b).astype(ml_dtypes.bfloat16))


# shapes ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("left, right", [
    ((4, 8), (8, 2)), ((8,), (8, 2)), ((4, 8), (8,)), ((8,), (8,)), ((2, 4, 8), (2, 8, 2)),
    ((1, 4, 8), (2, 8, 2)), ((2, 4, 8), (8, 2)), ((2, 2, 4, 8), (2, 1, 8, 2)),
    ((2, 4, 8), (8,)), ((1, 4, 8), (1, 8, 1))], ids=str)
def test_shapes_are_those_of_numpy_matmul(left, right):
    def multiply(a, b, out, LEFT, RIGHT, SIZE, F):
        x = bn.load(a + bn.arange(0, F(LEFT))).reshape(LEFT)
        y = bn.load(b + bn.arange(0, F(RIGHT))).reshape(RIGHT)
        z = x @ y
        bn.store(out + bn.arange(0, SIZE), bn.broadcast_to(z, z.shape or (1,)).reshape(SIZE))

    a = np.arange(1, 1 + np.prod(left), dtype=np.float32).reshape(left)
    b = np.arange(1, 1 + np.prod(right), dtype=np.float32).reshape(right)
    expected = np.matmul(a, b)
    out = np.zeros(expected.size, np.float32)

    launch(multiply, a=a.ravel(), b=b.ravel(), out=out, constants={
        "LEFT": left, "RIGHT": right, "SIZE": expected.size, "F": lambda shape: shape[0] * (
            1 if len(shape) == 1 else shape[1] * (1 if len(shape) == 2 else shape[2] * (
                1 if len(shape) == 3 else shape[3])))})

    np.testing.assert_array_equal(out.reshape(expected.shape), expected)


def test_batches_of_one_matrix_are_a_product_of_rank_2():
    def multiply(a, b, out):
        m = bn.span(0, 16)
        x, y = a[m, m], b[m, m]
        out[m, m] = (x[None] @ y[None]).reshape(16, 16)

    a, b = matrices(rows=16, inner=16, columns=16)
    kernel = kernel_of(multiply, a=a, b=b, out=np.zeros((16, 16), np.float32))

    (dot,) = (op for op in walk(kernel.body) if op.name == "dot")

    assert dot.result.type.shape == (16, 16)


@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
def test_operands_may_be_transposed_in_the_kernel_or_in_memory(turn_a, turn_b):
    def multiply(a, b, out, TURN_A, TURN_B):
        m, k, n = bn.span(0, 16), bn.span(0, 32), bn.span(0, 8)
        x = a[k, m].T if TURN_A else a[m, k]
        y = bn.trans(b[n, k]) if TURN_B else b[k, n]
        out[m, n] = x @ y

    a, b = matrices()
    for as_given in (np.ascontiguousarray, np.asfortranarray):
        out = np.zeros((16, 8), np.float32)

        launch(multiply, a=as_given(a.T if turn_a else a), b=as_given(b.T if turn_b else b),
               out=out, constants={"TURN_A": turn_a, "TURN_B": turn_b})

        assert_product(out, a, b)


@pytest.mark.parametrize("kind", KINDS[:4] + KINDS[7:8], ids="-".join)
def test_operands_may_have_any_strides(kind):
    a, b = (np.ascontiguousarray(np.tile(x, (2, 3))) for x in matrices(kind, 16, 16, 8))
    a, b = a[::-2, 2::3], b[1::2, ::-1]

    for rows in (a, a[:, ::-1], np.broadcast_to(a[:1], a.shape)):
        found = product(bn.dot, np.lib.stride_tricks.as_strided(rows[:, :16], (16, 16),
                                                                rows.strides),
                        b[:, :8], DTYPES[kind[2]].numpy)

        assert_product(found, rows[:, :16], b[:, :8])


# accumulators ---------------------------------------------------------------------------------

def matmul(a, b, out, M, K, N):
    m, n = bn.block(0, M), bn.block(1, N)
    acc = bn.zeros((M, N), out.dtype)
    for k in bn.spans(a.shape[1], K):
        acc += a[m, k] @ b[k, n]
    out[m, n] = acc


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[2] != "float16"], ids="-".join)
def test_a_loop_adds_up_a_product_of_any_length(kind):
    a, b = matrices(kind, 40, 2052, 9)
    out = np.zeros((40, 9), DTYPES[kind[2]].numpy)

    launch(matmul, (3, 2), a=a, b=b, out=out, constants={"M": 16, "K": 64, "N": 8})

    assert_product(out, a, b)


def test_a_masked_loop_over_the_greatest_integers_is_exact():
    a, b = np.full((16, 2052), 127, np.int8), np.full((2052, 16), -128, np.int8)
    out = np.zeros((16, 16), np.int32)

    launch(matmul, a=a, b=b, out=out, constants={"M": 16, "K": 64, "N": 16})

    assert (out == -127 * 128 * 2052).all()


@pytest.mark.parametrize("add", [
    lambda acc, a, b: acc + a @ b, lambda acc, a, b: a @ b + acc,
    lambda acc, a, b: bn.dot(a, b, acc), lambda acc, a, b: bn.dot(a, b, acc=acc)],
    ids=["acc + a @ b", "a @ b + acc", "dot(a, b, acc)", "acc=acc"])
def test_every_spelling_of_an_accumulation_is_one_dot(add):
    def accumulate(a, b, out, ADD):
        m, n = bn.span(0, 16), bn.span(0, 8)
        acc = bn.zeros((16, 8))
        for k in bn.spans(a.shape[1], 32):
            acc = ADD(acc, a[m, k], b[k, n])
        out[m, n] = acc

    a, b = matrices(inner=64)
    kernel = optimise(kernel_of(accumulate, a=a, b=b, out=np.zeros((16, 8), np.float32),
                                constants={"ADD": add}))

    (loop,) = (op for op in walk(kernel.body) if op.name == "for")
    (dot,) = (op for op in walk(loop.regions[0]) if op.name == "dot")
    assert dot.operands[2] in loop.regions[0].args
    assert loop.regions[0].terminator.operands == (dot.result,)


def test_two_products_into_one_accumulator():
    def both(a, b, out):
        m, k, n = bn.span(0, 16), bn.span(0, 32), bn.span(0, 8)
        x, y = a[m, k], b[k, n]
        out[m, n] = x @ y + (-x) @ (y * 2)

    a, b = matrices()
    out = np.zeros((16, 8), np.float32)
    kernel = optimise(kernel_of(both, a=a, b=b, out=out))

    launch(both, a=a, b=b, out=out)

    assert op_names(kernel).count("dot") == 2 and "add" not in op_names(kernel)[-4:]
    zeros = np.zeros_like(out)
    assert_close(out, -exact_dot(a, b, zeros), 3 * error_bound(a, b, zeros))


def test_a_chain_of_products():
    def chain(a, b, c, out):
        m, k, n = bn.span(0, 16), bn.span(0, 32), bn.span(0, 8)
        out[m, m] = (a[m, k] @ b[k, n]).to(a.dtype) @ c[n, m]

    a, b = matrices()
    c = random_matrix(np.random.default_rng(1), (8, 16), "float16")
    out = np.zeros((16, 16), np.float32)

    launch(chain, a=a, b=b, c=c, out=out)

    middle = product(bn.dot, a, b).astype(np.float16)
    assert_product(out, middle, c)


def test_an_accumulator_may_be_used_inside_the_loop():
    """As the running sum of fused attention is."""
    def rescaled(a, b, out):
        m, n = bn.span(0, 16), bn.span(0, 8)
        acc = bn.zeros((16, 8))
        for k in bn.spans(a.shape[1], 32):
            acc = acc * 0.5
            acc = bn.dot(a[m, k], b[k, n], acc)
            acc = bn.where(acc > 0, acc, 0)
        out[m, n] = acc

    a, b = matrices(inner=96)
    out = np.zeros((16, 8), np.float32)

    launch(rescaled, a=a, b=b, out=out)

    expected = np.zeros((16, 8))
    for first in range(0, 96, 32):
        part = slice(first, first + 32)
        expected = np.maximum(exact_dot(a[:, part], b[part], expected / 2), 0)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


# errors ---------------------------------------------------------------------------------------

def error_of(function, a, b):
    """The error of a function of two tiles."""
    with pytest.raises((BlockTypeError, BlockValueError)) as error:
        kernel_of(store_product, a=a, b=b, out=np.zeros((16, 8), np.float32), constants={
            "F": function, "M": a.shape[0], "K": 32, "N": 8})
    return error.value


def test_a_matrix_that_must_be_transposed_is_an_error_with_a_hint():
    a, b = matrices()

    error = error_of(lambda a, b: bn.dot(a, b.T), a, b)

    assert error.message == "dot: a has 32 columns, b has 8 rows"
    assert error.hint == "b is (8, 32); pass b.T"


def test_inner_extents_that_do_not_fit_either_way_have_no_hint():
    error = error_of(lambda a, b: a.T @ b, *matrices())

    assert error.message == "@: a has 16 columns, b has 32 rows" and not error.hint


@pytest.mark.parametrize("function, message, hint", [
    (lambda a, b: bn.dot(a, b.to(bn.bfloat16)), "dot: a is float16, b is bfloat16, accepted one "
     "dtype", "cast one of them with .to(...)"),
    (lambda a, b: a.to(bn.float32) @ b, "@: a is float32, b is float16, accepted one dtype",
     "cast one of them with .to(...)"),
    (lambda a, b: a.to(bn.int32) @ b.to(bn.int32), "@: given int32, accepted floats, int8 and "
     "uint8", "cast both, to int8 where their values fit or else to float64"),
    (lambda a, b: bn.dot(a, 1.0), "dot: b must be a tile, got 1.0", ""),
    (lambda a, b: bn.dot(a.sum(), b), "dot: a must be a tile, got float16", ""),
    (lambda a, b: bn.dot(a, b, bn.zeros((8, 16))),
     "dot: acc must be of shape (16, 8), got tile<8x16xfloat32>", ""),
    (lambda a, b: bn.dot(a, b, 1.0), "dot: acc must be of shape (16, 8), got 1.0", ""),
    (lambda a, b: bn.dot(a, b, bn.zeros((16, 8), bn.float64)),
     "dot: acc is float64, accepted float32 or float16", ""),
    (lambda a, b: bn.dot(a, b, bn.zeros((16, 8), bn.float32), out_dtype=bn.float16),
     "dot: acc is float32 and out_dtype float16, accepted one of them for both", ""),
    (lambda a, b: bn.dot(a, b, precision="bf16x3"),
     "dot: precision must be one of ('ieee', 'tf32', 'tf32x3'), got 'bf16x3'", ""),
    (lambda a, b: bn.dot(a, b, out_dtype=3), "dot: out_dtype: dtype must be a dtype such as "
     "bn.float32, got 3", ""),
    (lambda a, b: np.dot(a[None], b[None]), "np.dot: given tile<1x16x32xfloat16>, accepted tiles "
     "of rank 1 or 2", "of batches of matrices, use a @ b"),
])
def test_what_does_not_fit_is_an_error_that_says_so(function, message, hint):
    error = error_of(function, *matrices())

    assert (error.message, error.hint) == (message, hint)


def test_batches_that_do_not_broadcast_are_an_error():
    error = error_of(lambda a, b: a.reshape(2, 8, 32) @ b.reshape(4, 32, 2), *matrices())

    assert error.message == "@: shapes (2,) and (4,) do not broadcast together"


def test_an_array_is_not_a_tile():
    def multiply(a, b, out):
        out[bn.span(0, 16), bn.span(0, 8)] = bn.dot(a, b)

    a, b = matrices()
    with pytest.raises(BlockTypeError, match="dot: a must be a tile, got an array"):
        kernel_of(multiply, a=a, b=b, out=np.zeros((16, 8), np.float32))

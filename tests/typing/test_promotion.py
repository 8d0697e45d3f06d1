"""dtypes of results: NumPy 2's table, and the exceptions that promotion.py states."""

from __future__ import annotations

import itertools
import operator

import ml_dtypes
import numpy as np
import pytest
from launching import kernel_of, launch

import blocknumba as bn

from blocknumba.errors import BlockError, BlockTypeError, BlockValueError
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.ir import types
from blocknumba.tile_ir.ir.function import Value, walk
from blocknumba.tile_ir.ir.types import TileType
from blocknumba.typing import promotion

NUMPY_DTYPES = [types.DTYPES[name] for name in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64")]
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


def tile(dtype: types.DType) -> Value:
    return Value(TileType(dtype, (4,)))


def scalar(dtype: types.DType) -> Value:
    return Value(TileType(dtype))


def dtype_of_result(function, **arrays: np.ndarray) -> str:
    """The dtype of what a kernel prints, for a function of the tiles in arrays."""
    def kernel(x, y, F):
        r = bn.span(0, 4)
        print(F(x[r], y[r]))

    fn = kernel_of(kernel, constants={"F": function}, **arrays)
    (shown,) = [op for op in walk(fn.body) if op.name == "print"]
    return shown.operands[0].type.dtype.name


@pytest.mark.parametrize("a,b", list(itertools.combinations_with_replacement(NUMPY_DTYPES, 2)),
                         ids=str)
def test_two_tiles_promote_as_in_numpy(a, b):
    expected = types.dtype_of(np.promote_types(a.numpy, b.numpy))

    assert promotion.result_dtype([tile(a), tile(b)]) == expected
    assert promotion.result_dtype([tile(b), tile(a)]) == expected


@pytest.mark.parametrize("function", ARITHMETIC + BITWISE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("a,b", [("int8", "uint8"), ("uint16", "int16"), ("int64", "int32"),
                                 ("uint8", "uint8"), ("int32", "uint32")])
def test_integer_operators_give_numpys_dtype(function, a, b):
    x, y = np.ones(4, a), np.ones(4, b)

    assert dtype_of_result(function, x=x, y=y) == function(x, y).dtype.name


@pytest.mark.parametrize("dtype", [d.name for d in NUMPY_DTYPES])
@pytest.mark.parametrize("literal", [2, 2.0, True], ids=str)
def test_a_literal_takes_the_dtype_of_a_tile(dtype, literal):
    x = np.ones(4, dtype)
    expected = (x * literal).dtype.name
    if isinstance(literal, float) and not dtype.startswith("float"):
        expected = "float32"  # the stated exception: never float64
    if dtype == "bool" and literal is not True and isinstance(literal, int):
        expected = "int32"  # NumPy's default int has 64 bits

    assert dtype_of_result(lambda x, y: x * literal, x=x, y=x) == expected
    assert dtype_of_result(lambda x, y: literal * x, x=x, y=x) == expected


@pytest.mark.parametrize("given,expected", [
    (("int8", "int8"), "float32"), (("int32", "int32"), "float32"), (("bool", "uint8"), "float32"),
    (("int64", "int32"), "float64"), (("float16", "int8"), "float16"),
    (("float16", "float16"), "float16"), (("float32", "int32"), "float64")])
def test_true_division_makes_floats(given, expected):
    x, y = (np.ones(4, dtype) for dtype in given)

    assert dtype_of_result(operator.truediv, x=x, y=y) == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_an_integer_scalar_is_weak_beside_a_float(dtype):
    """A kernel's scalars are Python ints to whoever writes it."""
    given = types.DTYPES[dtype]

    assert promotion.result_dtype([tile(given), scalar(types.int64)]) == given
    assert promotion.result_dtype([scalar(given), scalar(types.int32)]) == given


@pytest.mark.parametrize("dtype,expected", [
    ("float32", "float32"), ("float64", "float64"), ("float16", "float32")])
def test_a_float_scalar_beside_integer_tiles_never_grows(dtype, expected):
    given = scalar(types.DTYPES[dtype])

    assert promotion.result_dtype([given, tile(types.int64)]).name == expected
    assert promotion.result_dtype([tile(types.int8), given]).name == dtype


OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
             operator.mod, operator.pow, operator.and_, operator.or_, operator.xor,
             operator.lshift, operator.rshift, operator.lt, operator.eq, bn.maximum, bn.minimum)
NUMPY = {bn.maximum: np.maximum, bn.minimum: np.minimum, operator.pow: np.power}


def numpy_result(function, x, y) -> np.ndarray | None:
    """What NumPy makes of an array and a Python number, with our exceptions; None if nothing."""
    function = NUMPY.get(function, function)
    tile, number = (x, y) if isinstance(x, np.ndarray) else (y, x)
    try:
        dtype = function(x, y).dtype
    except TypeError:
        return None
    to = tile.dtype
    if dtype == np.float64 != to:
        to = np.float64 if to.itemsize == 8 and not isinstance(number, float) else np.float32
    elif dtype == np.int64 != to:
        to = np.int32
    return function(*(v.astype(to) if v is tile else v for v in (x, y)))


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("dtype", [d.name for d in NUMPY_DTYPES])
@pytest.mark.parametrize("number", [2, 2.5, True], ids=str)
def test_a_number_of_run_time_promotes_as_numpys_python_numbers(dtype, number):
    x = np.array([1, 0, 3, 5]).astype(dtype)
    cases = [(f, swapped, expected) for f in OPERATORS for swapped in (False, True)
             if (expected := numpy_result(f, *((number, x) if swapped else (x, number)))
                 ) is not None]

    def kernel(x, number, out, CASES):
        r = bn.span(0, 4)
        for k, (function, swapped) in enumerate(CASES):
            result = function(number, x[r]) if swapped else function(x[r], number)
            print(result)
            out[k, r] = result

    constants = {"CASES": tuple((f, swapped) for f, swapped, _ in cases)}
    arguments = {"x": x, "number": np.bool_(number) if number is True else number,
                 "out": np.full((len(cases), 4), np.nan)}
    fn = kernel_of(kernel, constants=constants, **arguments)
    run(fn, (1, 1, 1), {p.argument: arguments[p.argument] for p in fn.parameters})

    dtypes = [op.operands[0].type.dtype.name for op in walk(fn.body) if op.name == "print"]
    for (function, swapped, expected), found, row in zip(cases, dtypes, arguments["out"],
                                                         strict=True):
        assert found == expected.dtype.name, (function, swapped)
        np.testing.assert_allclose(row, expected.astype(float), err_msg=str(function))


def test_an_integer_scalar_counts_beside_an_integer_tile():
    assert promotion.result_dtype([tile(types.int8), scalar(types.int64)]) == types.int64


@pytest.mark.parametrize("other,expected", [
    ("bool", "bfloat16"), ("int8", "bfloat16"), ("uint8", "bfloat16"), ("int16", "float32"),
    ("int32", "float32"), ("float16", "float32"), ("float32", "float32"), ("float64", "float64")])
def test_bfloat16_promotes_beside_float16(other, expected):
    pair = [tile(types.bfloat16), tile(types.DTYPES[other])]

    assert promotion.result_dtype(pair).name == expected


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("other,expected", [
    ("bool", None), ("int8", None), ("uint8", None), ("int16", "float32"), ("int64", "float64"),
    ("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32"),
    ("float64", "float64")])
def test_eight_bit_floats_promote_as_ml_dtypes_has_them(kind, other, expected):
    found = promotion.promote(types.DTYPES[other], types.DTYPES[kind])

    assert found.name == (expected or kind)


@pytest.mark.parametrize("function,dtype", [
    (lambda x, m: bn.where(m, x, 0), "float16"), (lambda x, m: bn.where(m, x, 0.0), "float16"),
    (lambda x, m: bn.where(m, 0, x), "int8"), (lambda x, m: x << 2, "uint8"),
    (lambda x, m: bn.maximum(x, 7), "int16"), (lambda x, m: bn.clamp(x, 0.0, 1.0), "float16"),
    (lambda x, m: bn.clamp(x, 0.0, 1.0), "bfloat16"), (lambda x, m: x * 2, "uint64"),
    (lambda x, m: x // 3, "uint64"), (lambda x, m: -x, "uint8"), (lambda x, m: abs(x), "float16"),
    (lambda x, m: x ** 2, "int16"), (lambda x, m: x ** 2, "float16"), (lambda x, m: ~x, "bool"),
    (lambda x, m: x | m, "bool"), (lambda x, m: np.maximum(x, 1), "float16")])
def test_scalars_in_functions_are_weak_too(function, dtype):
    """triton-lang/triton#1891, #2151; NVIDIA/numba-cuda-mlir#277"""
    x, mask = np.ones(4, types.DTYPES[dtype].numpy), np.ones(4, bool)

    assert dtype_of_result(function, x=x, y=mask) == dtype


@pytest.mark.parametrize("function,dtype,message", [
    (lambda x, y: x + 300, "int8", r"\+: 300 is out of range for int8, accepted -128 to 127"),
    (lambda x, y: x & -1, "uint8", "&: -1 is out of range for uint8, accepted 0 to 255"),
    (lambda x, y: bn.full((4,), 256, bn.uint8), "uint8", "full: 256 is out of range for uint8"),
    (lambda x, y: x * 2**40, "int32", r"\*: 1099511627776 is out of range for int32"),
    (lambda x, y: bn.where(y, x, 70000), "int16", "where: 70000 is out of range for int16")])
def test_a_literal_that_does_not_fit_is_an_error(function, dtype, message):
    """triton-lang/triton PR#5926"""
    x = np.ones(4, dtype)

    with pytest.raises(BlockValueError, match=message):
        dtype_of_result(function, x=x, y=x)


@pytest.mark.parametrize("comparison", [operator.lt, operator.le, operator.gt, operator.ge,
                                        operator.eq, operator.ne], ids=lambda f: f.__name__)
@pytest.mark.parametrize("literal", [300, -1, 2**70, 255])
def test_comparison_with_a_literal_out_of_range_is_exact(comparison, literal):
    x, out = np.array([0, 1, 254, 255], np.uint8), np.zeros((2, 4), bool)

    def kernel(x, out, COMPARE, LITERAL):
        r = bn.span(0, 4)
        out[0, r] = COMPARE(x[r], LITERAL)
        out[1, r] = COMPARE(LITERAL, x[r])

    launch(kernel, x=x, out=out, constants={"COMPARE": comparison, "LITERAL": literal})

    expected = [comparison(int(v), literal) for v in x], [comparison(literal, int(v)) for v in x]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("comparison", [operator.lt, operator.le, operator.gt, operator.ge,
                                        operator.eq, operator.ne], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_comparison_across_signedness_is_exact(comparison, dtype):
    x = np.array([-1, 0, 2**63 - 1, 2**53 + 1], np.int64).astype(dtype)
    y = np.array([2**64 - 1, 2**63, 2**63 - 1, 2**53], np.uint64)
    out = np.zeros((2, 4, 4), bool)

    def kernel(x, y, out, COMPARE):
        r = bn.span(0, 4)
        out[0, r, r] = COMPARE(x[r][:, None], y[r][None, :])
        out[1, r, r] = COMPARE(y[r][:, None], x[r][None, :])

    launch(kernel, x=x, y=y, out=out, constants={"COMPARE": comparison})

    pairs = [[comparison(int(a), int(b)) for b in y] for a in x]
    swapped = [[comparison(int(b), int(a)) for a in x] for b in y]
    np.testing.assert_array_equal(out, [pairs, swapped])


@pytest.mark.parametrize("value", [
    np.bool_(True), np.int8(-3), np.uint64(2**63), np.float16(0.1), np.float32(0.1),
    np.float64(0.1), ml_dtypes.bfloat16(3), np.array(5, np.int16)], ids=lambda v: str(v.dtype))
def test_numpy_scalars_of_the_surrounding_program_keep_their_dtype(value):
    """NVIDIA/numba-cuda-mlir#192"""
    out = np.zeros(4, value.dtype)

    def kernel(out):
        out[bn.span(0, 4)] = bn.zeros((4,), out.dtype) + value

    launch(kernel, out=out)

    np.testing.assert_array_equal(out, np.full(4, value))


def test_complex_scalars_are_refused():
    value = np.complex64(1j)

    def kernel(out):
        out[0] = value

    with pytest.raises(BlockError, match="complex64"):
        launch(kernel, out=np.zeros(4, np.float32))


def test_a_bool_is_one_or_zero():
    """NVIDIA/numba-cuda-mlir#266"""
    x, out = np.array([True, False, True, False]), np.zeros((4, 4), np.int32)

    def kernel(x, out):
        r = bn.span(0, 4)
        b = x[r]
        out[0, r] = b
        out[1, r] = b + 0
        out[2, r] = (r.index < 2).to(bn.int32) * 3
        out[3, 0] = bn.sum(b, axis=0)
        out[3, 1] = int(bn.max(b, axis=0))

    launch(kernel, x=x, out=out)

    np.testing.assert_array_equal(out, [[1, 0, 1, 0], [1, 0, 1, 0], [3, 3, 0, 0], [2, 1, 0, 0]])


def test_sums_of_small_integers_do_not_overflow():
    x, out = np.full(16, 100, np.int8), np.zeros(2, np.int32)

    def kernel(x, out):
        tile = x[bn.span(0, 16)]
        out[0] = bn.sum(tile)
        out[1] = tile.sum(dtype=bn.int8)

    launch(kernel, x=x, out=out)

    np.testing.assert_array_equal(out, [1600, x.sum(dtype=np.int8)])

"""The check of benchmarks' products: right ones of every kind pass, wrong ones do not."""

import ml_dtypes
import numpy as np
import pytest
from product_rounding import ROUNDINGS, TENSOR_CORE_TERMS, is_right

M, N, K = 96, 64, 1024


def operands(seed: int, same_sign: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(M, K) and (K, N), normal random numbers in float64."""
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((M, K)), random.standard_normal((K, N))
    return (abs(a), abs(b)) if same_sign else (a, b)


def kept(x: np.ndarray, bits: int, rounded: bool = True) -> np.ndarray:
    """x to some significant bits, rounded to nearest or cut off."""
    fraction, exponent = np.frexp(x)
    scaled = fraction * 2.0**bits
    return np.ldexp(np.rint(scaled) if rounded else np.trunc(scaled), exponent - bits)


def right(kind: str, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    exact, terms = a @ b, abs(a) @ abs(b)
    times = ROUNDINGS[kind].measure(abs(c.astype(np.float64) - exact), exact, terms, a.shape[1])
    return is_right(times)


def in_tensor_cores(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """The product with sums that are cut off to some bits."""
    sums = np.zeros((a.shape[0], b.shape[1]))
    for k in range(0, a.shape[1], TENSOR_CORE_TERMS):
        block = slice(k, k + TENSOR_CORE_TERMS)
        sums = kept(sums + a[:, block] @ b[block], bits, rounded=False)
    return sums


def summed_in(dtype: type, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product with every sum rounded to a dtype."""
    sums = np.zeros((a.shape[0], b.shape[1]), dtype)
    for k in range(a.shape[1]):
        sums += (a[:, k:k + 1] * b[k:k + 1]).astype(dtype)
    return sums


def product(kind: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    """The operands of a kind, and their product as hardware makes it."""
    if kind in ("f32", "f64"):
        dtype = np.dtype(kind[0] + str(int(kind[1:]) // 8)).type
        a, b = a.astype(dtype).astype(np.float64), b.astype(dtype).astype(np.float64)
        return a, b, summed_in(dtype, a, b)
    if kind == "tf32":
        a, b = (x.astype(np.float32).astype(np.float64) for x in (a, b))
        return a, b, in_tensor_cores(kept(a, 11), kept(b, 11), 24).astype(np.float32)
    operand, result, bits = {
        "f16": (np.float16, np.float16, 24), "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, 24),
        "fp8": (ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, 14)}[kind]
    a, b = a.astype(operand).astype(np.float64), b.astype(operand).astype(np.float64)
    return a, b, in_tensor_cores(a, b, bits).astype(result)


KINDS = ("f16", "bf16", "fp8", "tf32", "f32", "f64")


@pytest.mark.parametrize("same_sign", [False, True], ids=["any signs", "one sign"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_product_that_only_rounds_is_right(kind, same_sign):
    for seed in range(2):
        a, b, c = product(kind, *operands(seed, same_sign))
        assert right(kind, c, a, b)


def test_a_product_of_equal_rows_and_columns_is_right_in_fp8():
    a, _ = operands(0)
    a, b, c = product("fp8", a, a.T)
    assert right("fp8", c, a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spoil", [
    lambda c, a, b: np.zeros_like(c),
    lambda c, a, b: np.where(np.arange(c.size).reshape(c.shape) == 17, np.nan, c),
    lambda c, a, b: c[::-1],
    lambda c, a, b: c - (a[:, :128] @ b[:128]).astype(c.dtype),
], ids=["zeros", "a NaN", "rows in another order", "an eighth of the terms is missing"])
def test_a_product_that_is_another_is_wrong(kind, spoil):
    a, b, c = product(kind, *operands(0))
    assert not right(kind, spoil(c, a, b), a, b)


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32", "f32", "f64"])
def test_one_term_that_is_missing_in_one_tile_is_wrong(kind):
    a, b, c = product(kind, *operands(0))
    c[:32, :32] -= (a[:32, :8] @ b[:8, :32]).astype(c.dtype)
    assert not right(kind, c, a, b)


@pytest.mark.parametrize("kind, bits", [("f32", 11), ("f64", 24), ("tf32", 8)])
def test_operands_of_less_precision_are_wrong(kind, bits):
    a, b, _ = product(kind, *operands(0))
    assert not right(kind, kept(a, bits) @ kept(b, bits), a, b)


def test_integers_are_exact():
    random = np.random.default_rng(0)
    a, b = random.integers(-128, 128, (M, K)), random.integers(-128, 128, (K, N))
    c = a @ b
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert right("int8", c, a, b)
    c[3, 5] += 1
    assert not right("int8", c, a, b)


def test_small_integers_in_fp8_round_the_result_alone():
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, shape).astype(np.float64) for shape in ((M, 8192), (8192, N)))
    sums = in_tensor_cores(a, b, 14)
    assert right("fp8 of integers", sums.astype(ml_dtypes.bfloat16), a, b)
    sums[7, 9] *= 1.0625
    assert not right("fp8 of integers", sums.astype(ml_dtypes.bfloat16), a, b)

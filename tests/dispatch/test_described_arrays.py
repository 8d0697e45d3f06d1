"""Arrays that the numbers of a launch describe to TMA."""

import attention
import emulated_gpu
import numpy as np
import pytest
from matmul import matmul_pointers

import blocknumba as bn

TILE = {"BM": 128, "BN": 64, "BK": 64, "GROUP": 8, "num_warps": 4}
FETCHED = {"TMA"}


@pytest.fixture
def kernel():
    """The pointer kernel, with nothing compiled."""
    return bn.jit(matmul_pointers.python_function)


def product(kernel, M, N, K, rows, backwards=False):
    """kernel's x[:M] @ w, where x has more rows; what it should be; the code.

    backwards: x is given by its last row, and a negative stride.
    """
    generator = np.random.default_rng(M + N + K)
    x = generator.standard_normal((rows, 128)).astype(np.float16)
    x = x[::-1] if backwards else x
    w = generator.standard_normal((128, N)).astype(np.float16)
    out = np.full((rows, N), np.nan, np.float16)
    grid = bn.cdiv(M, TILE["BM"]) * bn.cdiv(N, TILE["BN"])
    compiled = emulated_gpu.launch(
        kernel, grid, (x, w, out, M, N, K, x.strides[0] // 2, 1, N, 1, N, 1), TILE)
    return out, x[:M, :K].astype(np.float64) @ w[:K], compiled


def ways(compiled):
    """By whom loads and stores are done."""
    return {access.way for access in compiled.stats.accesses}


@pytest.mark.parametrize("M, N, K", [(200, 136, 128), (136, 136, 128), (200, 136, 104)])
def test_a_pointer_kernel_is_fetched_whatever_part_of_its_arrays_it_is_told_of(kernel, M, N, K):
    out, expected, compiled = product(kernel, M, N, K, rows=200)

    np.testing.assert_allclose(out[:M], expected, rtol=0, atol=0.05)
    assert np.isnan(out[M:]).all()
    assert ways(compiled) == FETCHED


def test_other_numbers_are_no_reason_to_compile_again(kernel):
    first, second = (product(kernel, M, 136, 128, rows=200)[2] for M in (200, 136))

    assert second is first


@pytest.mark.parametrize("M, K, backwards", [(200, 0, False), (200, 128, True)])
def test_numbers_that_describe_no_array_are_taken_at_their_word_by_other_code(
        kernel, M, K, backwards):
    out, expected, compiled = product(kernel, M, 136, K, 200, backwards)

    np.testing.assert_allclose(out, expected, rtol=0, atol=0.05)
    assert ways(compiled) == {"asynchronous", "threads"}
    assert any("no tensor map can describe x with what is given: " in reason
               for access in compiled.stats.accesses for reason in access.reasons)


@pytest.mark.parametrize("D, length, causal", attention.SHORT)
def test_attention_in_the_pointer_dialect_is_fetched(D, length, causal):
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 3, length, D)).astype(np.float16)
    out = np.full(q.shape, np.nan, np.float32)

    compiled = emulated_gpu.launch(
        attention.attention_pointers, (bn.cdiv(length, 64), 3, 2),
        (q, k, v, out, length, D**-0.5, causal, D), {"BM": 64, "BN": 64})

    np.testing.assert_allclose(out, attention.reference(q, k, v, D**-0.5, causal), rtol=0,
                               atol=2e-3)
    assert ways(compiled) == FETCHED

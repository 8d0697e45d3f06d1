"""Numbers that a kernel is given and that are extents or strides of its arrays."""

import emulated_gpu
import numpy as np
import pytest
from matmul import matmul_pointers

import blocknumba as bn
from blocknumba.dispatch.arrays import array_facts
from blocknumba.dispatch.scalars import scalar_facts
from blocknumba.dispatch.specialize import relations

TILE = {"BM": 128, "BN": 64, "BK": 64, "GROUP": 8, "num_warps": 4}


def facts(**values):
    """The facts of arguments, as a launch reads them."""
    return {name: scalar_facts(value, None, name) or array_facts(value, name)
            for name, value in values.items()}


def product(kernel, M, N, K, rows):
    """kernel's x[:M] @ w, where x has more rows; what it should be; the code."""
    generator = np.random.default_rng(M + N + K)
    x = generator.standard_normal((rows, K)).astype(np.float16)
    w = generator.standard_normal((K, N)).astype(np.float16)
    out = np.full((rows, N), np.nan, np.float16)
    before = set(kernel._compiled)
    grid = bn.cdiv(M, TILE["BM"]) * bn.cdiv(N, TILE["BN"])
    emulated_gpu.launch(kernel, grid, (x, w, out, M, N, K, K, 1, N, 1, N, 1), TILE)
    (added,) = set(kernel._compiled) - before
    return out, x[:M].astype(np.float64) @ w, kernel._compiled[added]


@pytest.fixture
def kernel():
    """The pointer kernel, with nothing compiled."""
    return bn.jit(matmul_pointers.python_function)


def test_numbers_that_are_extents_and_strides_of_arrays_are_found():
    found = relations(facts(x=np.zeros((3, 5)), n=5, m=3, other=7, scale=5.0))

    assert set(found) == {("n", "extent", "x", 1), ("n", "stride", "x", 0),
                          ("m", "extent", "x", 0)}


def test_a_pointer_kernel_whose_numbers_describe_its_arrays_is_fetched_by_the_copy_engine(kernel):
    out, expected, compiled = product(kernel, 200, 136, 128, rows=200)

    np.testing.assert_allclose(out, expected, rtol=0, atol=0.05)
    assert compiled.relies_on >= {"M", "N", "K", "stride_xm", "stride_wk"}
    assert "tma_load" in compiled.asm["gpu"] and "tma_store" in compiled.asm["gpu"]


def test_numbers_that_describe_a_part_of_an_array_are_taken_at_their_word(kernel):
    out, expected, compiled = product(kernel, 136, 136, 128, rows=200)

    np.testing.assert_allclose(out[:136], expected, rtol=0, atol=0.05)
    assert np.isnan(out[136:]).all()
    assert not {"M"} & compiled.relies_on
    assert "x_map" not in compiled.asm["gpu"]


def test_once_a_relation_was_broken_code_relies_on_none(kernel):
    kernel.break_relations()

    out, expected, compiled = product(kernel, 200, 136, 128, rows=200)

    np.testing.assert_allclose(out, expected, rtol=0, atol=0.05)
    assert not compiled.relies_on

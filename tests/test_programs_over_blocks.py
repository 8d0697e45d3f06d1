"""num_ctas: programs that several blocks run together give what one block gives, bit for bit."""

import attention
import emulated_gpu
import matmul
import ml_dtypes
import numpy as np
import pytest

import blocknumba as bn

from blocknumba.dispatch.compile.compiled import Compiled

TILE = {"BM": 256, "BN": 64, "BK": 64, "num_warps": 4}


def emulated(kernel, grid, arguments, out, **keywords) -> Compiled:
    """Launch a kernel, emulated, with one block a program and with more; the code of those."""
    num_ctas = keywords.pop("num_ctas")
    results = []
    for blocks in (1, num_ctas):
        result = np.full_like(out, np.nan)
        code = emulated_gpu.launch(kernel, grid, (*arguments, result),
                                   keywords | {"num_ctas": blocks}, seed=blocks)
        results.append(result)
    np.testing.assert_array_equal(*results)
    out[...] = results[1]
    return code


def random(dtype, *shape):
    return np.random.default_rng().standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("num_ctas", [2, 4])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(520, 136, 200), (8, 8, 8), (300, 72, 0)])
def test_products_of_any_shape(shape, turned, num_ctas):
    M, N, K = shape
    x, out = random(np.float16, M, K), np.empty((M, N), np.float16)
    w = random(np.float16, N, K).T if turned else random(np.float16, K, N)

    code = emulated(matmul.matmul, 3, (x, w), out, **TILE, num_ctas=num_ctas)

    matmul.assert_product(out, x, w)
    assert code.machine.cluster == num_ctas
    if K:  # no tensor map describes an array without elements
        assert not code.stats.unused_options
        assert [ring.blocks for ring in code.stats.rings if ring.array == "w"] == [num_ctas]


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
def test_other_dtypes(dtype):
    x, w, out = random(dtype, 200, 96), random(dtype, 96, 128), np.empty((200, 128), dtype)
    lost = 2.0**-10 if dtype is np.float32 else 0
    kernel, more = ((matmul.matmul_float32, {"PRECISION": "tf32"}) if lost
                    else (matmul.matmul, {}))
    w = np.asfortranarray(w)

    emulated(kernel, 2, (x, w), out, **TILE | {"BK": 32}, **more, num_ctas=2)

    matmul.assert_product(out, x, w, lost)


def test_what_is_added_and_applied_to_a_product():
    x, w, bias = random(np.float16, 300, 80), random(np.float16, 80, 72), random(np.float16, 72)
    out = np.empty((300, 72), np.float16)

    code = emulated(matmul.matmul_bias, (2, 2), (x, w, bias), out, ACTIVATION=matmul.relu, **TILE,
                  num_ctas=2)

    exact = np.maximum(x.astype(float) @ w.astype(float) + bias, 0)
    np.testing.assert_allclose(out, exact, rtol=2**-10, atol=1e-3)
    assert code.machine.cluster == 2


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    q, k, v = (random(np.float16, 1, 2, 300, 64) for _ in range(3))
    out = np.empty_like(q)

    code = emulated(attention.attention, (2, 2, 1), (q, k, v), out, scale=0.125, CAUSAL=causal,
                  D=64, BM=256, BN=64, num_warps=8, num_ctas=2)

    np.testing.assert_allclose(out, attention.reference(q, k, v, 0.125, causal), atol=2e-3)
    assert {ring.blocks for ring in code.stats.rings} == {2}


def test_a_program_with_too_few_rows_says_so():
    x, w, out = random(np.float16, 64, 64), random(np.float16, 64, 64), np.empty((64, 64), "f2")

    code = emulated(matmul.matmul, 1, (x, w), out, **TILE | {"BM": 64}, num_ctas=2)

    assert code.machine.cluster == 1
    assert code.stats.unused_options == (
        "num_ctas=2: fewer than 128 rows of a dot cannot be partitioned",)


@pytest.mark.gpu(emulated="test_products_of_any_shape")
@pytest.mark.parametrize("num_ctas", [2, 4, 8])
@pytest.mark.parametrize("shape", [(2056, 520, 1000), (300, 72, 64)])
def test_products_on_a_gpu(shape, num_ctas):
    cupy = pytest.importorskip("cupy")
    M, N, K = shape
    x, w = random(np.float16, M, K), random(np.float16, K, N)
    out = cupy.full((M, N), np.nan, np.float16)

    for _ in range(20):  # a race would show some time
        out[:] = np.nan
        matmul.matmul[5](cupy.asarray(x), cupy.asarray(w), out,
                         **TILE | {"BM": 64 * num_ctas, "num_ctas": num_ctas})
        matmul.assert_product(cupy.asnumpy(out), x, w)

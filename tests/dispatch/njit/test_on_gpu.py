"""Launches from functions that Numba compiles, on a GPU."""

import numpy as np
import pytest
from array_libraries import NUMPY, present
from numba import njit, prange

import blocknumba as bn

RANDOM = np.random.default_rng(5)
LIBRARIES = [library for library in present() if library is not NUMPY]
needs_gpu = pytest.mark.gpu(not_emulated="the launch is what is tested: on the stub driver")
every_library = pytest.mark.parametrize("library", LIBRARIES, ids=str)


@bn.jit
def scale(x, out, factor, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] * factor + 1


@bn.jit
def product(x, y, out, M: bn.constexpr, N: bn.constexpr, K: bn.constexpr):
    r, c = bn.block(0, M), bn.block(1, N)
    total = bn.zeros((M, N), bn.float32)
    for k in bn.spans(x.shape[1], K):
        total = bn.dot(x[r, k], y[k, c], total)
    out[r, c] = total


@njit
def run_scale(x, out, factor, times):
    for _ in range(times):
        scale[bn.cdiv(x.shape[0], 128)](x, out, factor, 128)


@njit
def run_product(x, y, out):
    product[bn.cdiv(x.shape[0], 64), bn.cdiv(y.shape[1], 64)](x, y, out, 64, 64, 32)


@needs_gpu
@every_library
@pytest.mark.parametrize("size", [1, 100, 1024, 5000])
def test_vectors_of_every_library(library, size):
    x = RANDOM.random(size, np.float32)
    given, out = library.array(x), library.array(np.full_like(x, np.nan))
    for factor in (2, 2.5, 1):
        run_scale(bn.device(given), bn.device(out), factor, 3)

        np.testing.assert_array_equal(library.numpy(out), x * np.float32(factor) + 1)


@needs_gpu
@every_library
@pytest.mark.parametrize("m, n, k", [(256, 128, 512), (100, 72, 40), (33, 7, 5)])
def test_products_by_tensor_cores_and_tma(library, m, n, k):
    pairs = [(RANDOM.standard_normal((m, k)).astype(np.float16),
              RANDOM.standard_normal((k, n)).astype(np.float16)) for _ in range(3)]
    arrays = [[library.array(x), library.array(y),
               library.array(np.full((m, n), np.nan, np.float32))] for x, y in pairs]
    for _ in range(2):  # the second time with maps that are known
        for given in arrays:
            run_product(*map(bn.device, given))

    for (x, y), (_, _, out) in zip(pairs, arrays):
        np.testing.assert_allclose(library.numpy(out), x.astype(np.float64) @ y, rtol=1e-3,
                                   atol=1e-2)


@needs_gpu
@every_library
def test_launches_from_the_threads_of_prange(library):
    @njit(parallel=True)
    def run(x, out):
        for _ in prange(50):
            scale[bn.cdiv(x.shape[0], 128)](x, out, 2.0, 128)

    x = RANDOM.random(5000, np.float32)
    out = library.array(np.full_like(x, np.nan))
    run(bn.device(library.array(x)), bn.device(out))

    np.testing.assert_array_equal(library.numpy(out), x * 2 + 1)


@needs_gpu
def test_host_arrays_run_on_the_cpu_where_there_is_a_gpu_too():
    x = RANDOM.random(1000, np.float32)
    out = np.full_like(x, np.nan)
    run_scale(x, out, 2.0, 1)

    np.testing.assert_array_equal(out, x * 2 + 1)

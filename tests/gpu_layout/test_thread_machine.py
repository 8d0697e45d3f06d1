"""Laid-out kernels, run by emulated threads, do what the tile IR says, without races."""

import numpy as np
import pytest
from laid_out_kernels import COLUMN_SUMS, KERNELS, SOFTMAX, TRANSPOSE
from thread_machine import ThreadMachine
from tile_ir import random_functions

from blocknumba.gpu_layout.ops import barrier
from blocknumba.gpu_layout.options import LayoutOptions
from blocknumba.gpu_layout.pipeline import lay_out
from blocknumba.tile_ir import interpreter  # noqa: F401  fills in the numerics of ops with effects
from blocknumba.tile_ir.ir.rebuild import rebuild


def run_by_threads(kernel, laid_out, num_warps):
    arrays = kernel.make_arrays()
    ThreadMachine(laid_out, num_warps, arrays, kernel.scalars()).run()
    return arrays


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
@pytest.mark.parametrize("name", KERNELS)
def test_threads_compute_what_the_interpreter_does(name, num_warps, disjoint):
    kernel = KERNELS[name]
    fn = kernel.function()
    expected = kernel.make_arrays()
    interpreter.run(fn, (1, 1, 1), expected)
    options = LayoutOptions(num_warps=num_warps, arrays_are_disjoint=disjoint)

    result = run_by_threads(kernel, lay_out(fn, options, verify=True), num_warps)

    for array, values in expected.items():
        tolerance = 1e-2 if values.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(result[array], values, rtol=tolerance, err_msg=array)


@pytest.mark.parametrize("seed", range(24))
def test_threads_compute_what_the_interpreter_does_for_random_functions(seed):
    num_warps = (1, 2, 4)[seed % 3]
    fn = random_functions.random_function(seed)
    size = random_functions.ELEMENTS * random_functions.RESULTS
    k, s = np.int32(seed % 7 - 3), np.float32(0.5)

    def arrays():
        x = np.linspace(-8, 8, random_functions.ELEMENTS, dtype=np.float32)
        return {"x": x, "out": np.zeros(size, np.float32), "counts": np.zeros(size, np.int32)}

    expected, result = arrays(), arrays()
    interpreter.run(fn, (1, 1, 1), {**expected, "k": k, "s": s})
    laid_out = lay_out(fn, LayoutOptions(num_warps=num_warps), verify=True)
    scalars = {("extent", "x", 0): len(result["x"]), ("value", "k", None): k}
    scalars["value", "s", None] = s

    with np.errstate(all="ignore"):
        ThreadMachine(laid_out, num_warps, result, scalars).run()

    for name, values in expected.items():
        np.testing.assert_array_equal(result[name], values, err_msg=name)


@pytest.mark.parametrize("kernel", [SOFTMAX, TRANSPOSE, COLUMN_SUMS])
def test_a_missing_barrier_is_a_race(kernel):
    laid_out = lay_out(kernel.function(), LayoutOptions(arrays_are_disjoint=True))
    unordered = rebuild(
        laid_out, lambda _, op: () if op.opdef is barrier else None, folding=False
    )

    with pytest.raises(AssertionError, match="race at"):
        run_by_threads(kernel, unordered, 4)

"""Stores to what a load fetches wait for it, and store what they stored."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton.language as tl
from blocknumba.tile_ir.analysis.awaited_loads import loads_to_await
from blocknumba.tile_ir.ir.types import DTYPES, bool_


@bn.triton.jit
def shifted(x_ptr, chunks, size, N: bn.constexpr, USED: bn.constexpr):
    """In place, the sum before each chunk; or after it, if USED."""
    at = tl.arange(0, N)
    pointers = x_ptr + at
    total = tl.zeros((N,), x_ptr.dtype.element_ty)
    for _ in range(chunks):
        added = tl.load(pointers, mask=at < size, other=0)
        if USED:
            tl.store(pointers, total + added, mask=at < size)
        else:
            tl.store(pointers, total, mask=at < size)
        total += added
        pointers += size


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("size", [256, 100])
def test_what_waits_is_stored(dtype, size):
    x = np.random.default_rng(0).integers(-3, 4, (5, size)).astype(dtype)
    before = np.cumsum(x, axis=0, dtype=dtype) - x

    emulated_gpu.launch(shifted, 1, (x, 5, size), {"N": 256, "USED": False, "num_warps": 1})

    np.testing.assert_array_equal(x, before)


@bn.jit
def exchanged(x, y, N: bn.constexpr):
    r = bn.span(0, N)
    before = x[r]
    x[r] = y[r]
    y[r] = before


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_elements_of_every_dtype_wait(dtype):
    codes = np.random.default_rng(1).integers(0, 256, (2, 100 * dtype.bytes), np.uint8)
    x, y = (code % 2 != 0 if dtype == bool_ else code.view(dtype.numpy) for code in codes)
    before = [array.tobytes() for array in (x, y)]

    compiled = emulated_gpu.launch(exchanged, 1, (x, y), {"N": 128, "num_warps": 1})

    assert [array.tobytes() for array in (y, x)] == before
    assert loads_to_await(compiled.tile.body)


@pytest.mark.parametrize("used", [False, True])
def test_only_what_needs_nothing_of_the_load_waits(used):
    compiled = bn.compile(shifted, "*fp32:16, i32, i32:16", {"N": 256, "USED": used},
                          target="sm_90a")

    assert len(loads_to_await(compiled.tile.body)) == (not used)
    assert ("%lanemask_lt" in compiled.asm["ptx"]) == (not used)


def test_the_assembler_keeps_what_waits():
    sass = bn.compile(shifted, "*fp32:16, i32, i32:16", {"N": 256, "USED": False},
                      target="sm_90a").asm["sass"]

    assert "SR_LTMASK" in sass and "SR_GTMASK" in sass

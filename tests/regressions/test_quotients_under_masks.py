"""Quotients in int64 of places below a size that fits into int32: in int32, where they matter."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl

FIRST, SIZE = 2**31 - 2 * 128, 2**31 - 100  # the last places are beyond an int32


@triton.jit
def repeated(x, out, size, n, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    """Elements of x in turn: the place of each is beyond an int32 where the mask is false."""
    at = (tl.program_id(0).to(tl.int64) + FIRST // BLOCK) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    value = tl.load(x + at % n + at // n * 0, mask=mask, other=-1)
    tl.store(out + (at - FIRST), value, mask=mask)


@triton.jit
def quotients(out, size, n, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    """Every quotient, also of places that are no less than the size."""
    at = (tl.program_id(0).to(tl.int64) + FIRST // BLOCK) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + (at - FIRST), tl.where(at < size, -1, at // n))


def run(kernel, on, *arguments):
    constants = {"FIRST": FIRST, "BLOCK": 128, "num_warps": 4}
    if on == "emulator":
        return emulated_gpu.launch(kernel, (4,), arguments, constants).ptx
    kernel[(4,)](*arguments, **constants)
    return ""


@pytest.mark.parametrize("on", ["cpu", "emulator"])
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_places_below_a_size_of_int32_are_divided_in_int32(n, on):
    x, out = np.random.default_rng(n).integers(0, 1 << 30, n), np.full(512, -2)

    ptx = run(repeated, on, x, out, SIZE, n)

    at = FIRST + np.arange(512)
    np.testing.assert_array_equal(out, np.where(at < SIZE, x[at % n], -2))
    assert "rem.s64" not in ptx and "div.s64" not in ptx


@pytest.mark.parametrize("on", ["cpu", "emulator"])
def test_places_that_are_no_less_keep_all_their_bits(on):
    out = np.full(512, -2)

    run(quotients, on, out, SIZE, 7)

    at = FIRST + np.arange(512)
    np.testing.assert_array_equal(out, np.where(at < SIZE, -1, at // 7))

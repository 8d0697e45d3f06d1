"""Sizes that are a multiple of nothing: kernels of either dialect in the emulator, as NumPy says."""

import re

import numpy as np
import pytest
from emulated_gpu import launch

import blocknumba as bn


@bn.jit
def add(x, y, out, n, B: bn.constexpr):
    o = bn.program_id(0) * B + bn.arange(0, B)
    m = o < n
    bn.store(out + o, bn.load(x + o, mask=m) + bn.load(y + o, mask=m, other=1), mask=m)


@bn.jit
def add_in_a_loop(x, y, out, n, B: bn.constexpr):
    for r in bn.grid_spans(n, B):
        m = r.index < n
        bn.store(out + r.index, bn.load(x + r.index, mask=m) + bn.load(y + r.index, mask=m), mask=m)


@bn.jit
def add_arrays(x, y, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] + y[r]


@bn.jit
def softmax(x, out, stride, n, B: bn.constexpr):
    o = bn.arange(0, B)
    row = bn.program_id(0) * stride
    v = bn.load(x + row + o, mask=o < n, other=-float("inf"))
    e = bn.exp(v - bn.max(v))
    bn.store(out + row + o, e / bn.sum(e), mask=o < n)


@bn.jit
def double(x, out, stride, m, n, R: bn.constexpr, B: bn.constexpr):
    r = bn.program_id(0) * R + bn.arange(0, R)
    o = bn.program_id(1) * B + bn.arange(0, B)
    mask = (r < m)[:, None] & (o < n)[None, :]
    at = r[:, None] * stride + o[None, :]
    bn.store(out + at, bn.load(x + at, mask=mask) * 2, mask=mask)


def vectors(compiled):
    """The widths in bytes of predicated loads and stores of the PTX, without repetition."""
    found = re.findall(r"(ld|st)\.global(?:\.v(\d))?\.b(\d+)", compiled.ptx)
    return {(kind, int(count or 1) * int(bits) // 8) for kind, count, bits in found}


@pytest.mark.parametrize("n", [1, 15, 2047, 2049, 4095])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.float64])
@pytest.mark.parametrize("kernel", [add, add_in_a_loop, add_arrays], ids=lambda k: k.__name__)
def test_sums_of_any_length(kernel, dtype, n):
    x = np.arange(n).astype(dtype) % 50
    y, out = x[::-1].copy(), np.zeros_like(x)
    length = () if kernel is add_arrays else (n,)

    compiled = launch(kernel, 2, (x, y, out, *length), {"B": 2048})

    np.testing.assert_array_equal(out, x + y)
    assert {("ld", 16), ("st", 16)} <= vectors(compiled)
    assert {access.cut_bytes for access in compiled.stats.accesses} == {x.itemsize}
    assert {access.width_bytes for access in compiled.stats.accesses} == {16}
    assert f"16 bytes at a time, {x.itemsize} where the mask cuts them" in str(compiled.stats)


@pytest.mark.parametrize("n", [1, 7, 777, 1023])
def test_rows_of_any_length_whose_beginnings_are_aligned(n):
    x = np.random.default_rng(n).standard_normal((3, 1024)).astype(np.float32)
    out = np.full_like(x, 5)

    compiled = launch(softmax, 3, (x.ravel(), out.ravel(), 1024, n), {"B": 1024})

    e = np.exp(x[:, :n] - x[:, :n].max(1, keepdims=True))
    np.testing.assert_allclose(out[:, :n], e / e.sum(1, keepdims=True), rtol=1e-5)
    assert (out[:, n:] == 5).all()
    assert ("ld", 16) in vectors(compiled)


@pytest.mark.parametrize("m, n", [(1, 1), (5, 63), (17, 127), (32, 129)])
def test_tiles_that_two_bounds_cut(m, n):
    x = np.arange(32 * 256).reshape(32, 256).astype(np.float16) % 64
    out = np.full_like(x, -1)

    compiled = launch(double, (2, 2), (x.ravel(), out.ravel(), 256, m, n), {"R": 16, "B": 128})

    np.testing.assert_array_equal(out[:m, :n], 2 * x[:m, :n])
    assert (out[m:] == -1).all() and (out[:, n:] == -1).all()
    assert ("st", 16) in vectors(compiled)

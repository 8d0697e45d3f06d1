"""Accesses to every second element, and to the elements between: one access of both."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl


@triton.jit
def rotate(x, rows, M: tl.constexpr, N: tl.constexpr):
    """In place, neighbours (a, b) to (a - b, a + b)."""
    m, n = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    at = x + m[:, None] * 2 * N + 2 * n[None, :]
    mask = (m < rows)[:, None]
    a = tl.load(at, mask=mask, other=0)
    b = tl.load(at + 1, mask=mask, other=0)
    tl.store(at, a - b, mask=mask)
    tl.store(at + 1, a + b, mask=mask)


@triton.jit
def apart(x, out, N: tl.constexpr, LAST: tl.constexpr):
    """Even elements, then odd ones; what is loaded first is what LAST says."""
    n = tl.arange(0, N)
    if LAST:
        odd = tl.load(x + 2 * n + 1)
        even = tl.load(x + 2 * n)
    else:
        even = tl.load(x + 2 * n)
        odd = tl.load(x + 2 * n + 1)
    tl.store(out + n, even)
    tl.store(out + N + n, odd)


@triton.jit
def columns(x, out, M: tl.constexpr, N: tl.constexpr):
    """Pairs along the first axis of the tile."""
    at = tl.arange(0, M)[:, None] * 2 + tl.arange(0, N)[None, :] * 2 * M
    a, b = tl.load(x + at), tl.load(x + at + 1)
    tl.store(out + at + 1, a)
    tl.store(out + at, b)


@triton.jit
def changed_between(x, y, out, N: tl.constexpr):
    """y is x in disguise: what is stored is loaded afterwards."""
    n = tl.arange(0, N)
    even = tl.load(x + 2 * n)
    tl.store(y + 2 * n + 1, even + 1)
    odd = tl.load(x + 2 * n + 1)
    tl.store(out + n, even + odd)


@bn.jit
def overlapping(out, stride, M: bn.constexpr, N: bn.constexpr, EVERY: bn.constexpr):
    """Rows that may overlap: what is stored later stays."""
    at = bn.arange(M)[:, None] * (stride * EVERY) + 2 * bn.arange(N)[None, :]
    bn.store(out + at, bn.full((M, N), 1, bn.int32))
    bn.store(out + at + 1, bn.full((M, N), 2, bn.int32))


def launch(kernel, grid, *arguments, **keywords):
    return emulated_gpu.launch(kernel, grid, arguments, {"num_warps": 4, **keywords})


def tiles_of(compiled, op):
    lines = [line for line in compiled.machine.gpu.splitlines() if f"{op} %" in line]
    return [line.rpartition(" : tile<")[2].partition(",")[0].strip(">") for line in lines]


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64])
@pytest.mark.parametrize("rows", [16, 13])
def test_neighbours_are_loaded_and_stored_together(dtype, rows):
    x = np.random.default_rng(0).integers(-1000, 1000, (16, 64, 2)).astype(dtype)
    a, b = x[:rows, :, 0], x[:rows, :, 1]
    wanted = np.concatenate([np.stack([a - b, a + b], -1), x[rows:]])

    compiled = launch(rotate, 2, x, rows, M=8, N=64)

    np.testing.assert_array_equal(x, wanted)
    assert tiles_of(compiled, "load") == [f"8x128x{x.dtype}"]
    assert "bar.sync" not in compiled.ptx  # each thread stores what it loaded


def test_halves_take_sixteen_bytes_at_once():
    x = np.zeros((16, 64, 2), np.float16)

    ptx = emulated_gpu.compiled(rotate, (x, 16), {"M": 16, "N": 64, "num_warps": 4}).ptx

    assert ptx.count("ld.global") == ptx.count(".v4.") // 2 == 2


@pytest.mark.parametrize("last", [False, True])
def test_either_may_come_first(last):
    x, out = np.random.default_rng(1).random(512).astype(np.float32), np.full(512, np.nan, "f4")

    compiled = launch(apart, 1, x, out, N=256, LAST=last)

    np.testing.assert_array_equal(out, x.reshape(256, 2).T.ravel())
    assert tiles_of(compiled, "load") == ["512xfloat32"]


def test_pairs_may_lie_along_any_axis():
    x = np.random.default_rng(2).random((16, 32, 2)).astype(np.float32)
    out = np.full_like(x, np.nan)

    compiled = launch(columns, 1, x, out, M=32, N=16)

    np.testing.assert_array_equal(out, x[..., ::-1])
    assert tiles_of(compiled, "load") == ["64x16xfloat32"]


def test_a_load_stays_behind_a_store_that_it_may_meet():
    x, out = np.arange(512, dtype=np.int32), np.full(256, -1, np.int32)

    launch(changed_between, 1, x, x, out, N=256)

    np.testing.assert_array_equal(out, 2 * np.arange(0, 512, 2) + 1)


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("stride", [1, 3, 64])
def test_rows_that_overlap_keep_what_was_stored_last(stride, every):
    out = np.zeros(2048, np.int32)
    at = np.arange(16)[:, None] * stride * every + 2 * np.arange(32)
    wanted = out.copy()
    wanted[at] = 1
    wanted[at + 1] = 2

    compiled = launch(overlapping, 1, out, stride, M=16, N=32, EVERY=every)

    np.testing.assert_array_equal(out, wanted)
    # where rows begin at any place, elements of both stores may be the same
    assert len(tiles_of(compiled, "store")) == (2 if every == 1 and stride != 64 else 1)


def test_elements_between_the_pairs_of_memory_are_left_alone():
    """Of x[1], x[2] no thread can take two at once."""
    x, out = np.arange(514, dtype=np.float32), np.full(512, np.nan, np.float32)

    compiled = launch(apart, 1, x[1:], out, N=256, LAST=False)

    np.testing.assert_array_equal(out, x[1:513].reshape(256, 2).T.ravel())
    assert len(tiles_of(compiled, "load")) == 2


@pytest.mark.parametrize("n, loads", [(4096, 1), (8192, 2)])
def test_what_a_thread_cannot_hold_is_not_joined(n, loads):
    arguments = np.zeros(2 * n, np.int8), np.zeros(2 * n, np.int8)
    constants = {"N": n, "LAST": False, "num_warps": 1}

    compiled = emulated_gpu.compiled(apart, arguments, constants)

    assert len(tiles_of(compiled, "load")) == loads

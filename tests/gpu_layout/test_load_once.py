"""Loads of which runs of elements have one address."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn


@bn.jit
def unpack(words, out, n, N: bn.constexpr, EACH: bn.constexpr):
    """Small ints, EACH of them in a word."""
    i = bn.program_id(0) * N + bn.arange(N)
    word = words[i // EACH]
    out[i] = (word >> (i % EACH * (32 // EACH))) & 3


@bn.jit
def scaled(x, scales, out, M: bn.constexpr, N: bn.constexpr, GROUP: bn.constexpr):
    """Rows with one row of scales for each group."""
    m, n = bn.program_id(0) * M + bn.arange(M)[:, None], bn.arange(N)[None, :]
    out[m, n] = x[m, n] * scales[m // GROUP, n]


@bn.jit
def walked(x, out, stride, rounds, M: bn.constexpr, N: bn.constexpr):
    """Pointers that a loop carries, four rows of which are one."""
    at = bn.arange(M)[:, None] // 4 * stride + bn.arange(N)[None, :]
    pointers, total = x + at, bn.zeros((M, N), bn.float32)
    for _ in range(rounds):
        total += bn.load(pointers)
        pointers += M // 4 * stride
    bn.store(out + bn.arange(M)[:, None] * N + bn.arange(N)[None, :], total)


def launch(kernel, grid, *arguments, **keywords):
    return emulated_gpu.launch(kernel, grid, arguments, {"num_warps": 4, **keywords})


def tiles_loaded(compiled):
    lines = [line for line in compiled.machine.gpu.splitlines() if " = load " in line]
    return [line.rpartition(" : ")[2].partition(",")[0] for line in lines]


@pytest.mark.parametrize("each", [4, 8])
@pytest.mark.parametrize("count", [2048, 2000])
def test_a_word_is_loaded_once_for_all_that_it_holds(each, count):
    words = np.random.default_rng(0).integers(-2 ** 31, 2 ** 31, 2048 // each).astype(np.int32)
    words = words[:count // each]
    out = np.full(count, -1, np.int32)

    compiled = launch(unpack, 2, words, out, count, N=1024, EACH=each)

    i = np.arange(count)
    np.testing.assert_array_equal(out, words[i // each] >> (i % each * (32 // each)) & 3)
    assert tiles_loaded(compiled) == [f"tile<{1024 // each}xint32"]


@pytest.mark.parametrize("group", [1, 4, 32, 64])
def test_a_row_of_scales_is_loaded_once_for_its_group(group):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((128, 64)).astype(np.float32)
    scales = rng.standard_normal((128 // group, 64)).astype(np.float32)
    out = np.full_like(x, np.nan)

    compiled = launch(scaled, 4, x, scales, out, M=32, N=64, GROUP=group)

    np.testing.assert_array_equal(out, x * np.repeat(scales, group, 0))
    assert f"tile<{max(32 // group, 1)}x64xfloat32" in tiles_loaded(compiled)


def test_carried_pointers_are_taken_from_their_tile():
    x = np.random.default_rng(2).standard_normal((24, 64)).astype(np.float32)
    out = np.full((32, 64), np.nan, np.float32)

    compiled = launch(walked, 1, x, out, 64, 3, M=32, N=64)

    wanted = np.repeat((x[:8] + x[8:16] + x[16:]).astype(np.float32), 4, 0)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)
    assert tiles_loaded(compiled) == ["tile<8x64xfloat32"]

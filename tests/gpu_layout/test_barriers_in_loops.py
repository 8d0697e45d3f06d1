"""Barriers for global memory in loops: none where each thread meets its own elements only."""

import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton
import blocknumba.triton.language as tl
import emulated_gpu

N, BLOCK = 1000, 256


@bn.jit
def in_place(x, FIRST: bn.constexpr, STEP: bn.constexpr, BLOCK: bn.constexpr):
    for start in range(0, x.shape[0], STEP):
        r = start + bn.arange(BLOCK)
        values = bn.load(x.at[r + FIRST], mask=r + FIRST < x.shape[0], other=0)
        bn.store(x.at[r], values * 2 + 1, mask=r < x.shape[0])


@bn.jit
def in_place_in_a_loop(x, repeats, BLOCK: bn.constexpr):
    for _ in range(repeats):
        for start in range(0, x.shape[0], BLOCK):
            r = start + bn.arange(BLOCK)
            mask = r < x.shape[0]
            bn.store(x.at[r], bn.load(x.at[r], mask=mask) * 2, mask=mask)


@bn.jit
def after_a_load(x, out, BLOCK: bn.constexpr):
    first = bn.load(x.at[bn.arange(BLOCK) * 3 % BLOCK])
    for start in range(0, x.shape[0], BLOCK):
        r = start + bn.arange(BLOCK)
        bn.store(x.at[r], first, mask=r < x.shape[0])
    bn.store(out.at[bn.arange(BLOCK)], first)


@bn.jit
def the_same_again(x, repeats, BLOCK: bn.constexpr):
    r = bn.arange(BLOCK)
    for _ in range(repeats):
        bn.store(x.at[r], bn.load(x.at[r]) * 2)


@triton.jit
def carried_pointers(x, repeats, BLOCK: tl.constexpr):
    pointers = x + tl.arange(0, BLOCK)
    for _ in range(repeats):
        tl.store(pointers, tl.load(pointers) * 2)
        pointers += 1


def barriers(compiled):
    """Barriers in loops, and outside of them."""
    depth, inside, outside = 0, 0, 0
    for line in compiled.asm["gpu"].split("\n"):
        text = line.strip()
        if text == "barrier":
            inside, outside = inside + (depth > 0), outside + (depth == 0)
        depth += text.startswith(("for ", "loop ")) or " = for " in text
        depth -= text == "}" and depth > 0
    return inside, outside


def test_chunks_that_follow_each_other_need_none():
    x = np.random.default_rng().normal(size=N).astype(np.float32)
    expected = x * 2 + 1

    code = emulated_gpu.launch(in_place, 1, (x, 0, BLOCK, BLOCK), {"num_warps": 4})

    assert barriers(code) == (0, 0)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("first, step", [(1, BLOCK), (0, BLOCK // 2), (0, BLOCK - 1)])
def test_chunks_that_overlap_need_one(first, step):
    x = np.random.default_rng().normal(size=N).astype(np.float32)
    expected = x.copy()
    for start in range(0, N, step):
        chunk = np.append(expected, np.zeros(2 * BLOCK, np.float32))[start + first:][:BLOCK]
        chunk = chunk[:max(N - start, 0)] * 2 + 1
        expected[start:start + BLOCK] = chunk

    code = emulated_gpu.launch(in_place, 1, (x, first, step, BLOCK), {"num_warps": 4})

    assert barriers(code)[0] > 0
    np.testing.assert_array_equal(x, expected)


def test_a_loop_around_such_a_loop_keeps_its_barriers():
    x = np.random.default_rng().normal(size=N).astype(np.float32)
    expected = x * 8

    emulated_gpu.launch(in_place_in_a_loop, 1, (x, 3, BLOCK), {"num_warps": 4})

    np.testing.assert_array_equal(x, expected)


def test_what_was_done_before_a_loop_needs_one_in_front_of_it():
    x = np.random.default_rng().normal(size=N).astype(np.float32)
    out = np.full(BLOCK, 7, np.float32)
    first = x[np.arange(BLOCK) * 3 % BLOCK].copy()

    code = emulated_gpu.launch(after_a_load, 1, (x, out, BLOCK), {"num_warps": 4})

    assert barriers(code) == (0, 1)
    np.testing.assert_array_equal(out, first)
    np.testing.assert_array_equal(x, np.resize(first, 4 * BLOCK)[:N])


def test_pointers_from_before_a_loop_are_those_of_the_same_threads():
    x = np.random.default_rng().normal(size=BLOCK).astype(np.float32)
    expected = x * 8

    code = emulated_gpu.launch(the_same_again, 1, (x, 3, BLOCK), {"num_warps": 4})

    assert barriers(code) == (0, 0)
    np.testing.assert_array_equal(x, expected)


def test_carried_pointers_may_be_those_of_other_threads():
    x = np.random.default_rng().normal(size=N).astype(np.float32)
    expected = x.copy()
    for first in range(3):
        expected[first:first + BLOCK] *= 2

    code = emulated_gpu.launch(carried_pointers, 1, (x, 3, BLOCK), {"num_warps": 4})

    assert barriers(code)[0] > 0
    np.testing.assert_array_equal(x, expected)

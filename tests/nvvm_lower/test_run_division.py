"""Quotients and remainders of integers that rise by 1: fewer divisions, the same numbers."""

import emulated_gpu
import numpy as np
import pytest

import blocknumba as bn
import blocknumba.triton as triton

tl = triton.language
N = 1024
STARTS = (0, 32, 48, 16 * 12345, -16, -1024, -1040, -16 * 777, 2**31 - 1024, -2**31)
WRAPPING = 2**31 - 512
DIVISORS = (16, 48, 4096, 16 * 1001, -16, -48, -2048, 0)


@bn.jit
def floors(start, by, quotients, rests, N: bn.constexpr):
    i = bn.arange(N)
    x = start + i
    quotients[i] = x // by
    rests[i] = x % by


@triton.jit
def towards_zero(start, by, quotients, rests, N: tl.constexpr):
    i = tl.arange(0, N)
    x = start + i
    tl.store(quotients + i, x // by)
    tl.store(rests + i, x % by)


@triton.jit
def image(x, out, width, height, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    column, row, plane = at % width, at // width % height, at // width // height
    tl.store(out + at, tl.load(x + (plane * height + height - 1 - row) * width + column))


def divided(kernel, start, by, dtype=np.int32):
    """Quotients, remainders, and the PTX."""
    found = [np.full(N, -77, dtype) for _ in range(2)]
    run = emulated_gpu.launch(kernel, 1, (start, by, *found), {"N": N, "num_warps": 4}, "sm_90a")
    return *found, run.ptx


def rising(start):
    """The dividends, wrapped as int32 are."""
    return (np.arange(N) + start).astype(np.uint32).view(np.int32).astype(np.int64)


@pytest.mark.parametrize("by", DIVISORS)
def test_floor_division_of_runs_is_numpys(by):
    for start in (*STARTS, WRAPPING):
        quotients, rests, _ = divided(floors, start, by)

        x = rising(start)
        np.testing.assert_array_equal(quotients, x // by if by else 0 * x)
        np.testing.assert_array_equal(rests, x % by if by else 0 * x)


@pytest.mark.parametrize("by", [by for by in DIVISORS if by])
def test_division_of_runs_towards_zero_is_exact(by):
    for start in STARTS:
        quotients, rests, _ = divided(towards_zero, start, by)

        x = rising(start)
        wanted = np.sign(x) * np.sign(by) * (abs(x) // abs(by))
        np.testing.assert_array_equal(quotients, wanted)
        np.testing.assert_array_equal(rests, x - wanted * by)


@pytest.mark.parametrize("kernel", [floors, towards_zero], ids=["floor", "towards zero"])
@pytest.mark.parametrize("start, by, each", [(32, 48, 1), (-32, -48, 2)])
def test_a_run_takes_one_division_or_two(kernel, start, by, each):
    """Eight elements a thread in two runs of four: of signs that are known, one for each run."""
    *_, ptx = divided(kernel, start, by)

    assert ptx.count("div.s32") + ptx.count("rem.s32") == 2 * each


def test_divisors_that_are_multiples_of_nothing_take_one_for_each():
    quotients, rests, ptx = divided(floors, 32, 17)

    np.testing.assert_array_equal(quotients, rising(32) // 17)
    np.testing.assert_array_equal(rests, rising(32) % 17)
    assert ptx.count("div.s32") + ptx.count("rem.s32") == 8


def test_images_are_indexed_by_few_divisions():
    width, height = 48, 32
    x = np.random.default_rng(0).standard_normal((4, height, width)).astype(np.float32)
    out = np.full_like(x, np.nan)

    ptx = emulated_gpu.launch(image, x.size // N, (x.ravel(), out.ravel(), width, height),
                              {"N": N, "num_warps": 4}, "sm_90a").ptx

    np.testing.assert_array_equal(out, x[:, ::-1])
    assert ptx.count("div.s32") + ptx.count("rem.s32") <= 8 + 4


@bn.triton.jit
def masked_copy(x_ptr, out_ptr, n, N: bn.constexpr):
    at = tl.arange(0, N)
    x = tl.where(at < n, tl.load(x_ptr + at).to(tl.float32), 1.0)
    tl.store(out_ptr + at, x.to(tl.float16), mask=at < n)


@pytest.mark.parametrize("size, comparisons", [("i32:16", 1), ("i32", 8)])
def test_a_run_that_lies_within_a_bound_or_beyond_is_compared_once(size, comparisons):
    compiled = bn.compile(masked_copy, f"*fp16:16, *fp16:16, {size}", {"N": 1024},
                          target="sm_90a", num_warps=4)

    assert compiled.asm["ptx"].count("setp.lt.s32") == comparisons


@bn.triton.jit
def mask_of_each_image(x_ptr, mask_ptr, out_ptr, heads, squared, N: bn.constexpr):
    at = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    of = at // (heads * squared) * squared + at % squared
    tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(mask_ptr + of))


def test_wide_indices_that_do_not_fall_below_zero_have_one_quotient_for_a_run():
    compiled = bn.compile(mask_of_each_image, "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16",
                          {"N": 1024}, target="sm_90a", num_warps=4)

    assert compiled.asm["ptx"].count("div.s64") == 2  # of all images, and of one
    assert compiled.asm["ptx"].count("ld.global.v4") == 2


@bn.triton.jit
def image_rows(x_ptr, out_ptr, height, width, N: bn.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    column, row = at % (width * 2) // 2, at // (width * 2) % height
    tl.store(out_ptr + at, tl.load(x_ptr + row * width + column))


def test_indices_of_programs_count_from_0_and_have_one_quotient_for_a_run():
    compiled = bn.compile(image_rows, "*fp32:16, *fp32:16, i32:16, i32:16", {"N": 512},
                          target="sm_90a", num_warps=4)
    divisions = compiled.asm["ptx"].count("div.s32") + compiled.asm["ptx"].count("rem.s32")

    x = np.random.default_rng(0).standard_normal((32, 48)).astype(np.float32)
    out = np.full((32, 96), np.nan, np.float32)
    emulated_gpu.launch(image_rows, 6, (x, out, 32, 48), {"N": 512, "num_warps": 4})

    assert divisions <= 4  # of a row and of a column, for two elements that are loaded
    np.testing.assert_array_equal(out, x.repeat(2, 1))


@bn.triton.jit
def beside_each_other(a_ptr, b_ptr, out_ptr, a_width, b_width, N: bn.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    column, row = at % (a_width + b_width), at // (a_width + b_width)
    a = tl.load(a_ptr + row * a_width + column, mask=column < a_width, other=0.0)
    b = tl.load(b_ptr + row * b_width + column - a_width, mask=column >= a_width, other=0.0)
    tl.store(out_ptr + at, a + b)


def test_rows_that_are_put_together_are_read_in_vectors():
    ptx = bn.compile(beside_each_other, "*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16",
                     {"N": 512}, target="sm_90a", num_warps=4).asm["ptx"]
    a, b = (np.random.default_rng(i).standard_normal((16, n)).astype(np.float32)
            for i, n in enumerate((48, 16)))
    out = np.full((16, 64), np.nan, np.float32)

    emulated_gpu.launch(beside_each_other, 2, (a, b, out, 48, 16), {"N": 512, "num_warps": 4})

    assert ptx.count("ld.global.v4") == 2 and "ld.global.b32" not in ptx
    np.testing.assert_array_equal(out, np.concatenate([a, b], 1))

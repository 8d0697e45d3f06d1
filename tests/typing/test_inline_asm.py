"""inline_asm_elementwise: the user's PTX on an emulated GPU and on a real one."""

import numpy as np
import pytest
from conftest import EMULATOR, GPU, Device

import blocknumba as bn
import blocknumba.language as tl
from blocknumba.errors import BlockError, UnsupportedError

N = 256
GPUS = (pytest.param(Device(EMULATOR), id="emulator"),
        pytest.param(Device(GPU), id="gpu", marks=pytest.mark.gpu(emulated="on_gpu")))


@pytest.fixture(params=GPUS)
def on_gpu(request) -> Device:
    """An emulated GPU, and the GPU where there is one."""
    return request.param


@bn.jit
def fused(x, y, out, N: tl.constexpr):
    r = bn.span(0, N)
    out[r] = tl.inline_asm_elementwise("fma.rn.f32 $0, $1, $2, $3;", "=f,f,f,f",
                                       [x[r], y[r], 0.5], dtype=tl.float32, is_pure=True, pack=1)


def test_each_element_goes_through_the_text(on_gpu):
    x, y = np.random.default_rng().standard_normal((2, N)).astype(np.float32)
    out = np.full(N, 77, np.float32)

    on_gpu.run(fused, 1, x, y, out, N=N)

    exact = x.astype(np.float64) * y + 0.5
    assert np.array_equal(out, exact.astype(np.float32))


@bn.jit
def bytes_of(x, out, high, N: tl.constexpr):
    r = bn.span(0, N)
    negated, shifted = tl.inline_asm_elementwise(
        "{ .reg .b32 t; not.b32 $0, $2; and.b32 t, $2, 0xf0f0f0f0; shr.u32 $1, t, 4; }",
        "=r,=r,r", args=[x[r]], dtype=(tl.uint8, tl.uint8), is_pure=False, pack=4)
    out[r] = negated
    high[r] = shifted


def test_narrow_elements_are_packed_into_words(on_gpu):
    x = np.random.default_rng().integers(0, 256, N).astype(np.uint8)
    out, high = np.zeros((2, N), np.uint8)

    on_gpu.run(bytes_of, 1, x, out, high, N=N, num_warps=1)

    assert np.array_equal(out, ~x) and np.array_equal(high, x >> 4)


@bn.jit
def bits_of(x, out, halves, N: tl.constexpr):
    r = bn.span(0, N)
    out[r] = tl.inline_asm_elementwise("mov.b64 $0, $1;", "=l,d", [x[r]], tl.int64, True, 1)
    h = x[r].to(tl.float16)
    halves[r] = tl.inline_asm_elementwise("neg.f16 $0, $1;", "=h,h", [h], tl.float16, True, 1)


def test_registers_of_all_sizes(on_gpu):
    x = np.random.default_rng().standard_normal(N)
    out, halves = np.zeros(N, np.int64), np.zeros(N, np.float16)

    on_gpu.run(bits_of, 1, x, out, halves, N=N)

    assert np.array_equal(out, x.view(np.int64))
    assert np.array_equal(halves, -x.astype(np.float16))


@bn.jit
def programs(out):
    size = tl.inline_asm_elementwise("mov.u32 $0, %nctaid.x;", "=r", [], dtype=tl.int32,
                                     is_pure=True, pack=1)
    block = tl.inline_asm_elementwise("mov.u32 $0, %ctaid.x;", "=r,~{memory}", [], dtype=tl.int32,
                                      is_pure=False, pack=1)
    out[bn.program_id(0)] = block + 100 * size


def test_a_text_without_operands_gives_a_scalar(on_gpu):
    out = np.full(5, -1, np.int32)

    on_gpu.run(programs, 5, out)

    np.testing.assert_array_equal(out, np.arange(5) + 500)


def test_the_cpu_says_why_it_cannot():
    x = np.zeros(N, np.float32)
    for interpret in ({}, {"debug": True}):
        with pytest.raises(UnsupportedError,
                           match="PTX runs on GPUs and in the emulator") as caught:
            fused[1](x, x, x, N=N, interpret=True, **interpret)
        assert caught.value.loc.file == __file__


def wrong_letter(x, N: tl.constexpr):
    r = bn.span(0, N)
    x[r] = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=x,f", [x[r]], tl.float32, True, 1)


def too_few_operands(x, N: tl.constexpr):
    r = bn.span(0, N)
    x[r] = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=f,f", [x[r], x[r]], tl.float32, True, 1)


def wrong_size(x, N: tl.constexpr):
    r = bn.span(0, N)
    x[r] = tl.inline_asm_elementwise("mov.b32 $0, 0;", "=f,d", [x[r]], tl.float32, True, 1)


def too_wide_a_pack(x, N: tl.constexpr):
    r = bn.span(0, N)
    x[r] = tl.inline_asm_elementwise("mov.b32 $0, $1;", ",".join(["=f"] * 8 + ["f"] * 8), [x[r]],
                                     tl.float32, True, 8)


def no_power_of_two(x, N: tl.constexpr):
    r = bn.span(0, N)
    x[r] = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=f,f", [x[r]], tl.float32, True, 3)


def no_instruction(x, N: tl.constexpr):
    r = bn.span(0, N)
    x[r] = tl.inline_asm_elementwise("bogus.f32 $0, $1;", "=f,f", [x[r]], tl.float32, True, 1)


NAME = "inline_asm_elementwise: "
MISTAKES = [
    (wrong_letter, NAME + "constraints: given '=x', accepted h, r, l, f, d, and = before those of "
     "results"),
    (too_few_operands, NAME + "given 1 operands in the constraints, accepted 2"),
    (wrong_size, NAME + "given a register of 32 bits for a constraint of 64"),
    (too_wide_a_pack, NAME + "pack: given 8, accepted what divides the 2 elements of a thread"),
    (no_instruction, NAME + "the assembler refuses the text: Not a name of any known instruction: "
     "'bogus'"),
    (no_power_of_two, NAME + "pack: given 3, accepted a power of two"),
]


@pytest.mark.parametrize("function,message", MISTAKES, ids=[m[0].__name__ for m in MISTAKES])
def test_every_mistake_has_one_message(function, message):
    with pytest.raises(BlockError) as caught:
        bn.compile(bn.jit(function), "f32[::1]", {"N": N}, target="sm_90a", num_warps=4)

    assert caught.value.message == message
    assert caught.value.loc.file == __file__


@bn.jit
def reads_again(x, out, N: tl.constexpr):
    r = bn.span(0, N)
    before = x[r]
    tl.inline_asm_elementwise("{ st.global.f32 [$1], $2; mov.u32 $0, 0; }", "=r,l,f",
                              (x + tl.arange(0, N), 5.0), dtype=tl.int32, is_pure=False, pack=1)
    out[r] = x[r] - before


def test_what_assembly_stores_is_read_after_it(on_gpu):
    x = np.random.default_rng().standard_normal(N).astype(np.float32)
    expected, out = 5 - x, np.full(N, np.nan, np.float32)

    on_gpu.run(reads_again, 1, x, out, N=N)

    assert np.array_equal(out, expected) and (x == 5).all()


@bn.jit
def low_half(x, out, N: tl.constexpr):
    r = bn.span(0, N)
    out[r] = tl.inline_asm_elementwise("cvt.u32.u64 $0, $1;", "=r,l", [x[r]], dtype=tl.int64,
                                       is_pure=True, pack=1)


def test_a_narrower_register_is_extended_by_zeros(on_gpu):
    x = np.random.default_rng().integers(-1 << 62, 1 << 62, N)
    out = np.full(N, -1)

    on_gpu.run(low_half, 1, x, out, N=N)

    assert np.array_equal(out, x & 0xffffffff)


@bn.jit
def too_wide(x, out, N: tl.constexpr):
    r = bn.span(0, N)
    out[r] = tl.inline_asm_elementwise("mov.b64 $0, $1;", "=l,l", [x[r]], dtype=tl.int32,
                                       is_pure=True, pack=1)


def test_a_wider_register_is_refused():
    with pytest.raises(BlockError, match="given a result of 64 bits in the constraints, "
                                         "accepted 32"):
        bn.compile(too_wide, ("i64[::1]", "i32[::1]"), {"N": N}, target="sm_90a")

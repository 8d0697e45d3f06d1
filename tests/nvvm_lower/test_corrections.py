"""No PTX that we hand to an assembler has an instruction that it gets wrong."""

import pytest

import blocknumba as bn
import blocknumba.triton.language as tl
from blocknumba.nvvm_lower.ptx.corrections import corrected


@bn.jit
def negated(x, out):
    r = bn.span(0, 64)
    out[r] = (-x[r]).to(bn.int64) + bn.abs(x[r] * -1)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100"])
def test_negations_of_16_bits_are_done_in_32(target):
    ptx = bn.compile(negated, "i16[::1]:16, i64[::1]:16", target=target).asm["ptx"]

    assert "neg.s32" in ptx
    assert "neg.s16" not in ptx and "abs.s16" not in ptx


@bn.jit
def negated_otherwise(x, y, out):
    r = bn.span(0, 64)
    v, w = x[r], y[r]
    out[r] = (0 - v).to(bn.int64) + (v * -1) + bn.abs(w) + v // w + bn.div(v, -1).to(bn.int64)


def test_the_code_that_we_lower_has_no_negation_of_16_bits():
    """So that routes without PTX text are right too: LTO IR, device functions."""
    for kernel, signature in ((negated, "i16[::1]:16, i64[::1]:16"),
                              (negated_otherwise, "i16[::1]:16, i16[::1]:16, i64[::1]:16")):
        asm = bn.compile(kernel, signature, target="sm_90a").asm

        assert "neg.s32" in asm["nvvm"]
        assert "sub i16 0," not in asm["nvvm"]


def test_other_text_stays():
    text = b"neg.s32 %r1, %r2; abs.f16 %h1, %h2; add.s16 %rs1, %rs2, %rs3;"
    assert corrected(text) == text


def test_sums_need_no_modifier_where_products_have_one():
    text = b"mul.rn.f32 %f3, %f1, %f2; add{}.f32 %f4, %f3, %f2; add.rn.f64 %fd1, %fd2, %fd3;"
    assert corrected(text.replace(b"{}", b".rn")) == text.replace(b"{}", b"")


def test_sums_keep_it_beside_a_product_without():
    text = b"mul.ftz.f32 %f3, %f1, %f2; sub.rn.f32 %f4, %f3, %f2;"
    assert corrected(text) == text


@bn.triton.jit
def sigmoid(x_ptr, out_ptr, N: bn.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.sigmoid(tl.load(x_ptr + at)))


def test_a_sigmoid_has_no_check_of_a_small_divisor():
    compiled = bn.compile(sigmoid, "*fp32:16, *fp32:16", {"N": 512}, target="sm_90a", num_warps=4)

    assert compiled.asm["sass"].count("FSETP") == 2 * 4  # of the exponent, and of a great divisor


@bn.jit
def multiplied_and_added(x, out):
    r = bn.span(0, 128)
    v = x[r]
    out[r] = v * v + 1.5 - v * 2.0


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100"])
def test_sums_of_products_stay_rounded_twice(target):
    sass = bn.compile(multiplied_and_added, "f32[::1]:16, f32[::1]:16", target=target).asm["sass"]

    assert "FADD" in sass and "FFMA" not in sass

"""No PTX that we hand to an assembler has an instruction that it gets wrong."""

import pytest

import blocknumba as bn
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
